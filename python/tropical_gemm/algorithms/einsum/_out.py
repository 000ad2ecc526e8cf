"""Results in arrays of the caller."""

from typing import Any

from ..._arrays import common_kind, is_tensor
from ..._count import CountResult


def check_out(out: Any, first: Any, shape: tuple[int, ...], operands: list[Any]) -> None:
    """Says what is wrong with ``out`` before any work; ``first`` is like the result but for its shape."""
    if isinstance(first, tuple):
        if not isinstance(out, tuple) or len(out) != 2:
            raise TypeError(f"out is of type {type(out).__name__}, expected a pair (values, counts)")
        for x, like in zip(out, first, strict=True):
            check_out(x, like, shape, operands)
        return
    kind = common_kind(**{"operands[0]": first, "out": out})
    kind.output(out, "out")
    if tuple(out.shape) != shape or out.dtype != first.dtype:
        raise ValueError(
            f"out has shape {tuple(out.shape)} and dtype {out.dtype}, expected {shape} and {first.dtype}"
        )
    if is_tensor(out):
        from ...torch import _autograd

        if _autograd.records(out, *(x for x in operands if is_tensor(x))):
            raise RuntimeError(
                "a gradient is wanted, but a call with out= records none; leave out= away, "
                "or call it under torch.no_grad()"
            )
    strides = out.stride() if is_tensor(out) else out.strides
    if any(step == 0 and size > 1 for step, size in zip(strides, shape, strict=True)):
        raise ValueError(
            f"out of shape {shape} has a stride of 0, expected an element of its own for each entry"
        )


def written(out: Any, value: Any) -> Any:
    if isinstance(value, tuple):
        return CountResult._make(written(x, y) for x, y in zip(out, value, strict=True))
    if is_tensor(out):
        out.copy_(value)
    else:
        out[...] = value
    return out

"""``matmul`` and ``matmul_backward`` on tensors: what the arguments mean, and which way a call takes."""

from typing import Any

import torch

from .. import _core, _ops
from .._arrays import common_kind, placed, torch_kind
from . import _autograd, _operators
from ._operators import Threads

_AUTOCAST = (torch.float16, torch.bfloat16, torch.float32)


def matmul(
    a: Any,
    b: Any,
    *,
    semiring: str = "max_plus",
    return_argmax: bool = False,
    out: Any = None,
    accumulate: bool = False,
    argmax_offset: int = 0,
    stream: Any = None,
    threads: int | None = None,
) -> Any:
    """:func:`tropical_gemm.matmul` on torch tensors, which that function calls for them.

    Shapes, dtypes, values, argmax and errors are those of :func:`tropical_gemm.matmul`. Gradients flow to
    ``a`` and ``b`` through the one index that was selected, the lowest on a tie, as those of
    ``torch.max(dim)`` do; where none was (index -1), nothing flows. Works under torch.compile, torch.export,
    torch.func, checkpointing and CUDA graphs.

    Under autocast, operands of float16, bfloat16 and float32 are brought to the wider type; nothing else is
    cast.

    Raises
    ------
    RuntimeError
        For ``out`` where a gradient is wanted or under a transform of torch.func; else as
        :func:`tropical_gemm.matmul`.

    Examples
    --------
    >>> import torch
    >>> from tropical_gemm.torch import matmul
    >>> a = torch.tensor([[1.0, 2.0]], requires_grad=True)
    >>> c = matmul(a, torch.tensor([[3.0], [0.0]]))
    >>> c
    tensor([[4.]], grad_fn=<PlainProductBackward>)
    >>> c.backward()
    >>> a.grad
    tensor([[1., 0.]])
    """
    if (
        _operators.is_plain(a, b)
        and out is None
        and accumulate is False
        and stream is None
        and a.dtype is b.dtype
    ):
        # The short ways for small products.
        if not ((a.requires_grad or b.requires_grad) and torch.is_grad_enabled()):
            if return_argmax is False:
                return _core.matmul(a, b, (True, False), semiring, False, argmax_offset, threads, None)
            if return_argmax is True:
                return _ops.MatmulResult._make(
                    _core.matmul(a, b, (True, True), semiring, False, argmax_offset, threads, None)
                )
        elif return_argmax is False and argmax_offset == 0 and a.dim() > 1 and b.dim() > 1:
            return _autograd.differentiable(a, b, semiring, 0, threads, False)

    want_argmax, accumulates, outputs = _ops.wanted(return_argmax, accumulate, out)
    _check({"a": a, "b": b, **outputs}, semiring)
    if stream is not None:
        with placed(torch_kind, a, stream):
            return matmul(
                a, b, semiring=semiring, return_argmax=return_argmax, out=out, accumulate=accumulate,
                argmax_offset=argmax_offset, threads=threads,
            )  # fmt: skip
    a, b = _promoted(a, b)
    if outputs:
        return _into(a, b, outputs, semiring, accumulates, argmax_offset, threads)
    if argmax_offset and not want_argmax:
        raise ValueError(f"argmax_offset is {argmax_offset} but no argmax was asked for")
    x, y, dropped = _matrices(a, b)
    if not want_argmax:
        return _without(_values(x, y, semiring, threads), dropped)
    values, argmax = _values_and_argmax(x, y, semiring, argmax_offset, threads)
    return _ops.MatmulResult(_without(values, dropped), _without(argmax, dropped))


def _values(a: Any, b: Any, semiring: str, threads: Threads) -> Any:
    if not _operators.is_plain(a, b):
        return torch.ops.tropical_gemm.matmul(a, b, semiring, threads)
    if _autograd.records(a, b):
        return _autograd.differentiable(a, b, semiring, 0, threads, False)
    return _operators.below_autograd("matmul", a, b, semiring, threads)


def _values_and_argmax(a: Any, b: Any, *rest: Any) -> Any:
    if not _operators.is_plain(a, b):
        return torch.ops.tropical_gemm.matmul_argmax(a, b, *rest)
    if _autograd.records(a, b):
        return _autograd.differentiable(a, b, *rest, True)
    return _operators.below_autograd("matmul_argmax", a, b, *rest)


def matmul_backward(
    grad_c: Any,
    argmax: Any,
    a: Any,
    b: Any,
    *,
    semiring: str = "max_plus",
    needs: tuple[bool, bool] = (True, True),
    stream: Any = None,
    threads: int | None = None,
) -> _ops.MatmulGradients:
    """:func:`tropical_gemm.matmul_backward` on torch tensors, itself differentiable."""
    needs = _ops.needed(needs)
    _check({"grad_c": grad_c, "argmax": argmax, "a": a, "b": b}, semiring)
    if stream is not None:
        with placed(torch_kind, a, stream):
            return matmul_backward(grad_c, argmax, a, b, semiring=semiring, needs=needs, threads=threads)
    if _operators.is_plain(grad_c, argmax, a, b) and not _autograd.records(grad_c, a, b):
        made = _core.matmul_backward(grad_c, argmax, a, b, needs, semiring, threads, None)
        return _ops.MatmulGradients._make(made)
    x, y, dropped = _matrices(a, b)
    grads = _autograd.gradients(
        _with(grad_c, dropped), _with(argmax, dropped), x, y, (x.shape, y.shape), semiring, needs, threads
    )
    grad_a, grad_b = (
        None if grad is None else grad.reshape(of.shape) for grad, of in zip(grads, (a, b), strict=True)
    )
    return _ops.MatmulGradients(grad_a, grad_b)


def _into(
    a: Any,
    b: Any,
    outputs: dict[str, Any],
    semiring: str,
    accumulate: bool,
    offset: int,
    threads: Threads,
) -> Any:
    plain = _operators.is_plain(a, b, *outputs.values())
    traced = _operators.is_compiling()
    if not (plain or traced) and _operators.in_transform():
        raise RuntimeError(
            "out= is not for the transforms of torch.func, whose functions write nothing in place"
        )
    for name, x in {"a": a, "b": b, **outputs}.items():
        if _autograd.records(x) or (not (plain or traced) and _operators.has_tangent(x)):
            raise RuntimeError(
                f"{name} requires grad, but a call with out= records no gradient; leave out= away, "
                "or call it under torch.no_grad()"
            )
    out, argmax = outputs["out"], outputs.get("argmax")
    if plain:
        _core.matmul(
            a, b, (out, False if argmax is None else argmax), semiring, accumulate, offset, threads, None
        )
        for x in outputs.values():
            torch_kind.written(x)
    else:
        x, y, dropped = _matrices(a, b)
        written = [None if z is None else _with(z, dropped) for z in (out, argmax)]
        torch.ops.tropical_gemm.matmul_into(x, y, *written, semiring, accumulate, offset, threads)
    return out if argmax is None else _ops.MatmulResult(out, argmax)


def _check(arrays: dict[str, Any], semiring: Any) -> None:
    if not isinstance(semiring, str):
        _core.semiring_name(semiring)  # says what came
    for name, x in arrays.items():
        if not isinstance(x, torch.Tensor):
            common_kind(**arrays)  # says which two kinds were mixed
        if x.is_nested:
            raise TypeError(
                f"{name} is a nested tensor, expected one of a single shape; pad it, or multiply its parts"
            )


def _promoted(a: Any, b: Any) -> tuple[Any, Any]:
    """Under autocast, operands of two of its types in the wider one, since none is faster by itself."""
    mixed = a.dtype != b.dtype and a.dtype in _AUTOCAST and b.dtype in _AUTOCAST
    if not mixed or not torch.is_autocast_enabled(a.device.type):
        return a, b
    dtype = torch.promote_types(a.dtype, b.dtype)
    return a.to(dtype), b.to(dtype)


def _matrices(a: Any, b: Any) -> tuple[Any, Any, tuple[int, ...]]:
    """Vectors as matrices, and the axes of the product that they do not have."""
    for name, x in (("a", a), ("b", b)):
        if x.dim() == 0:
            raise ValueError(f"{name} has 0 dimensions, expected at least 1")
    dropped: tuple[int, ...] = ()
    if a.dim() == 1:
        a, dropped = a.unsqueeze(0), (-2,)
    if b.dim() == 1:
        b, dropped = b.unsqueeze(1), (*dropped, -1)
    return a, b, dropped


def _without(x: Any, dropped: tuple[int, ...]) -> Any:
    for axis in dropped:
        x = x.squeeze(axis)
    return x


def _with(x: Any, dropped: tuple[int, ...]) -> Any:
    for axis in reversed(dropped):
        x = x.unsqueeze(axis)
    return x

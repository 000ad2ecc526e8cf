"""The operators as torch's dispatcher knows them: schemas, kernels, shapes of results, rules under vmap.

Tensors are matrices here, of at least two dimensions; vectors are settled in front. Dispatching costs more
than a small product, so calls that nothing observes go to the core at once (:func:`is_plain`).
"""

from typing import Any, NamedTuple

import torch

from .. import _core
from . import _batching

NAMESPACE = "tropical_gemm"
_PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))
_semirings: dict[str, tuple[str, ...]] = _core.info()["semirings"]

_is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor  # also one that outlived its transform
_is_batched = torch._C._functorch.is_legacy_batchedtensor  # by torch.autograd.grad(is_grads_batched=True)
_transforms = torch._C._are_functorch_transforms_active
_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._len_torch_function_stack
_jit_trace = torch._C._get_tracing_state
_profiling = torch._C._autograd._profiler_enabled
is_compiling = torch.compiler.is_dynamo_compiling
_forward_ad = torch.autograd.forward_ad

Threads = int | None


def is_plain(*tensors: Any) -> bool:
    """Whether these are ordinary tensors and nothing wants to see the operations on them.

    Observers are torch.compile, the transforms of torch.func, modes such as fake tensors, forward-mode
    differentiation, torch.jit.trace and the profiler.
    """
    if is_compiling():
        return False
    for x in tensors:
        if type(x) not in _PLAIN or x.is_meta or _is_wrapped(x) or _is_batched(x):
            return False
    return not (
        _transforms()
        or _dispatch_modes()
        or _function_modes()
        or _forward_ad._current_level >= 0
        or _jit_trace() is not None
        or _profiling()
    )


def in_transform() -> bool:
    """Whether a transform of torch.func is active."""
    return bool(_transforms())


def has_tangent(x: Any) -> bool:
    """Whether forward mode follows ``x``: torch has one level of it, number 0."""
    # Asking is an operation too, which would show in graphs; torch.func opens the level below Python's count.
    may_have = _forward_ad._current_level >= 0 or in_transform()
    return may_have and torch._VF._unpack_dual(x, 0).tangent is not None


def below_autograd(name: str, *arguments: Any) -> Any:
    """The operator of that name, recorded by nothing on this level."""
    if is_plain(*arguments[:2]):
        return _OPERATORS[name].kernel(*arguments)
    with torch._C._AutoDispatchBelowAutograd():
        return getattr(torch.ops.tropical_gemm, name)(*arguments)


# Kernels, for every device that the core knows; it says what is wrong with others.


def _matmul(a: Any, b: Any, semiring: str, threads: Threads) -> Any:
    return _core.matmul(a, b, (True, False), semiring, False, 0, threads, None)


def _matmul_argmax(a: Any, b: Any, semiring: str, offset: int, threads: Threads) -> tuple[Any, Any]:
    made: tuple[Any, Any] = _core.matmul(a, b, (True, True), semiring, False, offset, threads, None)
    return made


def _matmul_into(
    a: Any, b: Any, out: Any, argmax: Any, semiring: str, accumulate: bool, offset: int, threads: Threads
) -> None:
    _core.matmul(
        a, b, (out, False if argmax is None else argmax), semiring, accumulate, offset, threads, None
    )


def stand_ins(grad_c: Any, a: Any, b: Any, shapes: tuple[Any, Any]) -> tuple[Any, Any]:
    """The operands, or tensors of their shapes with one element for all where the values are not read."""
    some = grad_c if grad_c.numel() else grad_c.new_empty(1)
    x, y = (
        some.as_strided(shape, (0,) * len(shape)) if x is None else x
        for x, shape in zip((a, b), shapes, strict=True)
    )
    return x, y


def _matmul_backward(
    grad_c: Any,
    argmax: Any,
    a: Any,
    b: Any,
    shape_a: list[int],
    shape_b: list[int],
    semiring: str,
    need_a: bool,
    need_b: bool,
    threads: Threads,
) -> tuple[Any, Any]:
    x, y = stand_ins(grad_c, a, b, (shape_a, shape_b))
    made = _core.matmul_backward(grad_c, argmax, x, y, (need_a, need_b), semiring, threads, None)
    return tuple(grad_c.new_empty(0) if grad is None else grad for grad in made)


# What they return, told from shapes and dtypes that may be symbolic.


def _product_shape(a: Any, b: Any, semiring: str) -> Any:
    semiring = _core.semiring_name(semiring)
    if a.dtype != b.dtype:
        raise TypeError(f"b has dtype {_dtype(b)}, expected {_dtype(a)} like a")
    if _dtype(a) not in _semirings[semiring]:
        raise TypeError(
            f"a has dtype {_dtype(a)}, which the semiring {semiring} does not have; it is defined on "
            + ", ".join(_semirings[semiring])
        )
    if a.device != b.device:
        raise ValueError(
            f"a is on {a.device} and b is on {b.device}; all arrays of a call have to be on one device"
        )
    both = f"a has shape {tuple(a.shape)} and b has shape {tuple(b.shape)}"
    torch._check_value(  # type: ignore[no-untyped-call]  # for sizes that data decides, at run time
        a.shape[-1] == b.shape[-2],
        lambda: (
            f"{both}: the last axis of a ({a.shape[-1]}) must equal "
            f"the last axis but one of b ({b.shape[-2]})"
        ),
    )
    try:
        lead = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])  # type: ignore[no-untyped-call]
    except RuntimeError:
        raise ValueError(f"{both}: their leading axes do not broadcast") from None
    return (*lead, a.shape[-2], b.shape[-1])


def _dtype(x: Any) -> str:
    return str(x.dtype).removeprefix("torch.")


def _fake_matmul(a: Any, b: Any, semiring: str, threads: Threads) -> Any:
    return a.new_empty(_product_shape(a, b, semiring))


def _fake_matmul_argmax(a: Any, b: Any, semiring: str, offset: int, threads: Threads) -> tuple[Any, Any]:
    shape = _product_shape(a, b, semiring)
    return a.new_empty(shape), a.new_empty(shape, dtype=torch.int32)


def _fake_matmul_into(
    a: Any, b: Any, out: Any, argmax: Any, semiring: str, accumulate: bool, offset: int, threads: Threads
) -> None:
    shape = _product_shape(a, b, semiring)
    for name, x, dtype in (("out", out, a.dtype), ("argmax", argmax, torch.int32)):
        if x is None:
            continue
        if x.dtype != dtype:
            raise TypeError(f"{name} has dtype {_dtype(x)}, expected {str(dtype).removeprefix('torch.')}")
        if tuple(x.shape) != tuple(shape):
            raise ValueError(f"{name} has shape {tuple(x.shape)}, expected {tuple(shape)}")


def _fake_matmul_backward(
    grad_c: Any,
    argmax: Any,
    a: Any,
    b: Any,
    shape_a: list[int],
    shape_b: list[int],
    semiring: str,
    need_a: bool,
    need_b: bool,
    threads: Threads,
) -> tuple[Any, Any]:
    return grad_c.new_empty(shape_a if need_a else (0,)), grad_c.new_empty(shape_b if need_b else (0,))


# Under vmap a batch axis becomes one more leading axis, and the operator is called again one level down.


def _vmap_matmul(info: Any, dims: Any, a: Any, b: Any, semiring: str, threads: Threads) -> tuple[Any, int]:
    x, y = _batching.operands(dims[:2], a, b)
    return torch.ops.tropical_gemm.matmul(x, y, semiring, threads), 0


def _vmap_matmul_argmax(
    info: Any, dims: Any, a: Any, b: Any, semiring: str, offset: int, threads: Threads
) -> tuple[tuple[Any, Any], tuple[int, int]]:
    x, y = _batching.operands(dims[:2], a, b)
    return torch.ops.tropical_gemm.matmul_argmax(x, y, semiring, offset, threads), (0, 0)


def _vmap_matmul_backward(
    info: Any,
    dims: Any,
    grad_c: Any,
    argmax: Any,
    a: Any,
    b: Any,
    shape_a: list[int],
    shape_b: list[int],
    semiring: str,
    need_a: bool,
    need_b: bool,
    threads: Threads,
) -> tuple[tuple[Any, Any], tuple[int, int]]:
    arrays, shapes = _batching.gradient(info.batch_size, dims[:4], (grad_c, argmax, a, b), (shape_a, shape_b))
    made = torch.ops.tropical_gemm.matmul_backward(*arrays, *shapes, semiring, need_a, need_b, threads)
    n = info.batch_size
    grads = tuple(
        grad.reshape((n, *shape)) if need else grad.new_empty((n, 0))
        for grad, need, shape in zip(made, (need_a, need_b), (shape_a, shape_b), strict=True)
    )
    return (grads[0], grads[1]), (0, 0)


class Operator(NamedTuple):
    schema: str
    kernel: Any
    fake: Any
    vmap: Any


_OPERATORS = {
    "matmul": Operator(
        "(Tensor a, Tensor b, str semiring, int? threads) -> Tensor",
        _matmul,
        _fake_matmul,
        _vmap_matmul,
    ),
    "matmul_argmax": Operator(
        "(Tensor a, Tensor b, str semiring, int argmax_offset, int? threads) -> (Tensor, Tensor)",
        _matmul_argmax,
        _fake_matmul_argmax,
        _vmap_matmul_argmax,
    ),
    "matmul_into": Operator(
        "(Tensor a, Tensor b, Tensor(a!) out, Tensor(b!)? argmax, str semiring, bool accumulate, "
        "int argmax_offset, int? threads) -> ()",
        _matmul_into,
        _fake_matmul_into,
        None,
    ),
    "matmul_backward": Operator(
        "(Tensor grad_c, Tensor argmax, Tensor? a, Tensor? b, SymInt[] shape_a, SymInt[] shape_b, "
        "str semiring, bool need_a, bool need_b, int? threads) -> (Tensor, Tensor)",
        _matmul_backward,
        _fake_matmul_backward,
        _vmap_matmul_backward,
    ),
}

library: Any = torch.library.Library(NAMESPACE, "DEF")  # type: ignore[no-untyped-call]


def register(name: str, operator: Operator) -> None:
    """Make ``torch.ops.tropical_gemm.NAME``."""
    library.define(name + operator.schema, tags=(torch.Tag.pt2_compliant_tag,))
    library.impl(name, operator.kernel, "CompositeExplicitAutograd")
    torch.library.register_fake(f"{NAMESPACE}::{name}", operator.fake, lib=library)
    if operator.vmap is not None:
        torch.library.register_vmap(f"{NAMESPACE}::{name}", operator.vmap, lib=library)


for _name, _operator in _OPERATORS.items():
    register(_name, _operator)

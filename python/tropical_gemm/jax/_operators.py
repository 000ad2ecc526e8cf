"""The product, its tangent and its gradient as JAX's primitives: types of results, lowering, vmap.

All arrays of a call are matrices with equally many leading axes, which broadcast; the front sees to that. The
product and the gradient are one custom call each, the tangent gathers by XLA's own operations.
"""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

from .. import _core

Needs = tuple[bool, bool]  # of a and b, or of what belongs to them


def is_times(semiring: str) -> bool:
    """Whether the gradient is weighted with the operands."""
    return semiring.endswith("mul")


def reads(semiring: str, needs: Needs) -> Needs:
    """Which operands the gradients that are needed look at."""
    if semiring.endswith("plus"):
        return False, False
    return (needs[1], needs[0]) if is_times(semiring) else (True, True)


def lead(*arrays: Any) -> tuple[int, ...]:
    """The leading axes of a result of these."""
    return tuple(np.broadcast_shapes(*(x.shape[:-2] for x in arrays)))


def pairs(arrays: Any, *present: Needs) -> list[Any]:
    """Those of each pair that are there, in order; None for the others."""
    rest = iter(arrays)
    return [next(rest) if there else None for pair in present for there in pair]


def _type(shape: tuple[int, ...], dtype: Any, like: Any) -> Any:
    # Of the operand's type, to vary over the same axes of a mesh.
    return like.update(shape=shape, dtype=np.dtype(dtype), weak_type=False)


def _in_front(arrays: Any, dims: Any) -> list[Any]:
    """With the batch axis in front; of size 1 where there is none."""
    return [
        jnp.expand_dims(x, 0) if d is None else jnp.moveaxis(x, d, 0)
        for x, d in zip(arrays, dims, strict=True)
    ]


def _size(arrays: Any, dims: Any) -> int:
    sizes: set[int] = {x.shape[d] for x, d in zip(arrays, dims, strict=True) if d is not None}
    return sizes.pop()


# a, b -> [values, and the argmax if it is wanted]


def _product_types(a: Any, b: Any, *, argmax: bool, **_: Any) -> list[Any]:
    shape = (*lead(a, b), a.shape[-2], b.shape[-1])
    return [_type(shape, dtype, a) for dtype in (a.dtype, "int32")[: 1 + argmax]]


def _product_batching(arrays: Any, dims: Any, **params: Any) -> tuple[list[Any], list[int]]:
    made = product_p.bind(*_in_front(arrays, dims), **params)
    return made, [0] * len(made)


def _product_lowering(ctx: Any, *arrays: Any, semiring: str, argmax: bool, offset: int, threads: int) -> Any:
    rule = jax.ffi.ffi_lowering("tropical_gemm_matmul")
    return rule(ctx, *arrays, semiring=semiring, argmax_offset=np.int64(offset), threads=np.int64(threads))


# argmax, the operands that are read, the tangents that are there -> [the tangent of the product]


def _tangent_types(argmax: Any, *arrays: Any, semiring: str, has: Needs, threads: int) -> list[Any]:
    return [_type((*lead(argmax, *arrays), *argmax.shape[-2:]), arrays[-1].dtype, argmax)]


def _tangent_batching(arrays: Any, dims: Any, **params: Any) -> tuple[list[Any], list[int]]:
    return tangent_p.bind(*_in_front(arrays, dims), **params), [0]


def _tangent(argmax: Any, *arrays: Any, semiring: str, has: Needs, threads: int) -> list[Any]:
    """``dA[i, k] * wa + dB[k, j] * wb``, with the gradient's weights; 0 where nothing was selected."""
    a, b, dot_a, dot_b = pairs(arrays, reads(semiring, has), has)
    depth = dot_b.shape[-2] if dot_a is None else dot_a.shape[-1]
    valid = (argmax >= 0) & (argmax < depth)
    index = jnp.where(valid, argmax, 0)

    def at(x: Any, axis: int) -> Any:
        return jnp.take_along_axis(x, index, axis, mode="promise_in_bounds")

    if depth == 0:
        return [jnp.zeros((*lead(argmax, *arrays), *argmax.shape[-2:]), arrays[-1].dtype)]
    chose_a: Any = None
    if not is_times(semiring) and a is not None:
        a_is_smaller = {"max_min": True, "min_max": False}[semiring]
        x, y = at(a, -1), at(b, -2)
        # As the kernels choose: a on a tie, and the first NaN.
        chose_a = jnp.isnan(x) | (~jnp.isnan(y) & ((x <= y) if a_is_smaller else (x >= y)))
    terms = []
    if dot_a is not None:
        term = at(dot_a, -1)
        if chose_a is not None:
            term = jnp.where(chose_a, term, 0)
        terms.append(term * at(b, -2) if is_times(semiring) else term)
    if dot_b is not None:
        term = at(dot_b, -2)
        if chose_a is not None:
            term = jnp.where(chose_a, 0, term)
        terms.append(term * at(a, -1) if is_times(semiring) else term)
    return [jnp.where(valid, sum(terms[1:], terms[0]), 0)]


# grad_c, argmax, the operands that are read -> [the gradients that are needed], of the shapes given


def _gradient_types(grad_c: Any, *_: Any, shapes: tuple[Any, Any], **__: Any) -> list[Any]:
    return [_type(shape, grad_c.dtype, grad_c) for shape in shapes if shape is not None]


def _gradient_batching(
    arrays: Any, dims: Any, *, shapes: tuple[Any, Any], **params: Any
) -> tuple[list[Any], list[int]]:
    size = _size(arrays, dims)
    full = tuple(None if shape is None else (size, *shape) for shape in shapes)
    made = gradient_p.bind(*_in_front(arrays, dims), shapes=full, **params)
    return made, [0] * len(made)


def _gradient_lowering(ctx: Any, *arrays: Any, semiring: str, shapes: tuple[Any, Any], threads: int) -> Any:
    needs = shapes[0] is not None, shapes[1] is not None
    read = reads(semiring, needs)
    rule = jax.ffi.ffi_lowering("tropical_gemm_matmul_backward")
    return rule(
        ctx, *arrays, semiring=semiring, need_a=needs[0], need_b=needs[1], read_a=read[0], read_b=read[1],
        threads=np.int64(threads),
    )  # fmt: skip


def _on_cuda(lowering: Any) -> Any:
    def checked(*arguments: Any, **params: Any) -> Any:
        cuda = _core.cuda_info()
        if not cuda["built"]:
            raise RuntimeError(cuda["problem"])
        return lowering(*arguments, **params)

    return checked


def _primitive(name: str, types: Any, rule_of_vmap: Any, lowerings: dict[str | None, Any]) -> Any:
    primitive: Any = Primitive(name)
    primitive.multiple_results = True
    primitive.def_abstract_eval(types)

    @cache
    def compiled(**params: Any) -> Any:
        def call(*arrays: Any) -> Any:
            return primitive.bind(*arrays, **params)

        call.__name__ = call.__qualname__ = primitive.name
        # As JAX marks its own: what jax_debug_nans finds here cannot be looked for inside.
        call._apply_primitive = True  # type: ignore[attr-defined]
        return jax.jit(call)

    def outside_of_jit(*arrays: Any, **params: Any) -> Any:
        with jax.disable_jit(False):  # what that leaves over are primitives, and this is one
            return compiled(**params)(*arrays)

    primitive.def_impl(outside_of_jit)
    batching.primitive_batchers[primitive] = rule_of_vmap
    for platform, lowering in lowerings.items():
        mlir.register_lowering(primitive, lowering, platform=platform)
    return primitive


product_p = _primitive(
    "tropical_gemm_matmul",
    _product_types,
    _product_batching,
    {"cpu": _product_lowering, "cuda": _on_cuda(_product_lowering)},
)
tangent_p = _primitive(
    "tropical_gemm_tangent",
    _tangent_types,
    _tangent_batching,
    {None: mlir.lower_fun(_tangent, multiple_results=True)},
)
gradient_p = _primitive(
    "tropical_gemm_matmul_backward",
    _gradient_types,
    _gradient_batching,
    {"cpu": _gradient_lowering, "cuda": _on_cuda(_gradient_lowering)},
)

"""Derivatives: each of the tangent and the gradient is the derivative and the transpose of the other.

With ``k`` the selected index, ``dC[i, j] = dA[i, k] * wa + dB[k, j] * wb``, where the weights ``wa`` and
``wb`` are 1 and 1 in max_plus and min_plus, ``B[k, j]`` and ``A[i, k]`` in max_mul and min_mul, and 1 for the
operand that the inner operation selected and 0 for the other in max_min and min_max. The tangent is this sum,
the gradient its adjoint; in max_mul and min_mul both are linear in the weights too. None stands for a zero of
JAX's here.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad

from ._operators import Needs, gradient_p, is_times, lead, pairs, product_p, reads, tangent_p

Pair = tuple[Any, Any]  # of a and b


def _known(x: Any) -> Any:
    return None if type(x) is ad.Zero else x


def _zero(x: Any) -> Any:
    return ad.Zero(jax.typeof(x).to_tangent_aval())


def _sum(x: Any, y: Any) -> Any:
    return y if x is None else x if y is None else x + y


def _reduced(x: Any, shape: Any) -> Any:
    """Summed over the axes of which ``shape`` has one element."""
    if x is None:
        return None
    axes = tuple(d for d in range(len(shape)) if shape[d] == 1 != x.shape[d])
    return jnp.sum(x, axes, keepdims=True) if axes else x


def tangent(argmax: Any, a: Any, b: Any, dot_a: Any, dot_b: Any, semiring: str, threads: int) -> Any:
    """How the product changes with its operands; None where it does not."""
    has = dot_a is not None, dot_b is not None
    if not any(has):
        return None
    operands = (x for x, read in zip((a, b), reads(semiring, has), strict=True) if read)
    dots = (x for x in (dot_a, dot_b) if x is not None)
    return tangent_p.bind(argmax, *operands, *dots, semiring=semiring, has=has, threads=threads)[0]


def gradient(grad_c: Any, argmax: Any, a: Any, b: Any, shapes: Pair, semiring: str, threads: int) -> Pair:
    """``(grad_a, grad_b)`` in these shapes, None where there is none; operands may be None where not read."""
    needs = shapes[0] is not None, shapes[1] is not None
    if not any(needs):
        return None, None
    read = reads(semiring, needs)
    x, y = (z if r else None for z, r in zip((a, b), read, strict=True))
    operands = [z for z in (x, y) if z is not None]
    # The kernel sums over an axis along which an operand is broadcast and the other is not; else it is here.
    full = lead(grad_c, argmax, *operands)
    to_x, to_y = _widened(shapes[0], x), _widened(shapes[1], y)
    if all(needs) and np.broadcast_shapes(to_x[:-2], to_y[:-2]) != full:
        to_x = (*full, *to_x[-2:])
    made = gradient_p.bind(grad_c, argmax, *operands, semiring=semiring, shapes=(to_x, to_y), threads=threads)
    grad_x, grad_y = pairs(made, needs)
    return _reduced(grad_x, shapes[0]), _reduced(grad_y, shapes[1])


def _widened(shape: Any, operand: Any) -> Any:
    if shape is None or operand is None:
        return shape
    return (*np.broadcast_shapes(shape[:-2], operand.shape[:-2]), *shape[-2:])


def _product_jvp(
    primals: Any, tangents: Any, *, semiring: str, argmax: bool, offset: int, threads: int
) -> tuple[list[Any], list[Any]]:
    dot_a, dot_b = map(_known, tangents)
    values, index = product_p.bind(*primals, semiring=semiring, argmax=True, offset=offset, threads=threads)
    selected = index - offset if offset else index  # what was -1 stays negative
    a, b = primals
    dot = tangent(selected, a, b, dot_a, dot_b, semiring, threads)
    made = [values, index], [_zero(values) if dot is None else dot, _zero(index)]
    return made if argmax else (made[0][:1], made[1][:1])


def _tangent_jvp(
    primals: Any, tangents: Any, *, semiring: str, has: Needs, threads: int
) -> tuple[list[Any], list[Any]]:
    read = reads(semiring, has)
    argmax, *arrays = primals
    a, b, dot_a, dot_b = pairs(arrays, read, has)
    to_a, to_b, to_dot_a, to_dot_b = pairs(map(_known, tangents[1:]), read, has)
    (value,) = tangent_p.bind(*primals, semiring=semiring, has=has, threads=threads)
    change = tangent(argmax, a, b, to_dot_a, to_dot_b, semiring, threads)
    if is_times(semiring):
        u, v = None if to_b is None else dot_a, None if to_a is None else dot_b
        change = _sum(change, tangent(argmax, to_a, to_b, u, v, semiring, threads))
    return [value], [_zero(value) if change is None else change]


def _shape_if_linear(x: Any) -> Any:
    return x.aval.shape if isinstance(x, ad.UndefinedPrimal) else None


def _tangent_transpose(
    cotangents: Any, argmax: Any, *arrays: Any, semiring: str, has: Needs, threads: int
) -> list[Any]:
    (ct,) = map(_known, cotangents)
    if ct is None:
        return [None] * (1 + len(arrays))
    read = reads(semiring, has)
    a, b, dot_a, dot_b = pairs(arrays, read, has)
    rest = semiring, threads
    to_dots = gradient(ct, argmax, a, b, (_shape_if_linear(dot_a), _shape_if_linear(dot_b)), *rest)
    to_operands: Any = None, None
    if is_times(semiring):
        to_operands = gradient(ct, argmax, dot_a, dot_b, (_shape_if_linear(a), _shape_if_linear(b)), *rest)
    every = zip((*to_operands, *to_dots), (*read, *has), strict=True)
    return [None, *(x for x, there in every if there)]


def _gradient_jvp(
    primals: Any, tangents: Any, *, semiring: str, shapes: Pair, threads: int
) -> tuple[list[Any], list[Any]]:
    read = reads(semiring, (shapes[0] is not None, shapes[1] is not None))
    grad_c, argmax, *operands = primals
    to_c, _, *changes = map(_known, tangents)
    rest = semiring, threads
    made = gradient_p.bind(*primals, semiring=semiring, shapes=shapes, threads=threads)
    sums: Any = None, None
    if to_c is not None:
        a, b = pairs(operands, read)
        sums = gradient(to_c, argmax, a, b, shapes, *rest)
    if is_times(semiring):
        to_a, to_b = pairs(changes, read)
        changed = None if to_b is None else shapes[0], None if to_a is None else shapes[1]
        cross = gradient(grad_c, argmax, to_a, to_b, changed, *rest)
        sums = tuple(map(_sum, sums, cross))
    dots = [x for x, shape in zip(sums, shapes, strict=True) if shape is not None]
    return made, [_zero(x) if dot is None else dot for x, dot in zip(made, dots, strict=True)]


def _gradient_transpose(
    cotangents: Any,
    grad_c: Any,
    argmax: Any,
    *operands: Any,
    semiring: str,
    shapes: Pair,
    threads: int,
) -> list[Any]:
    needs = shapes[0] is not None, shapes[1] is not None
    u, v = pairs(map(_known, cotangents), needs)
    read = reads(semiring, needs)
    a, b = pairs(operands, read)
    if (shape := _shape_if_linear(grad_c)) is not None:
        to_c = tangent(argmax, a, b, u, v, semiring, threads)
        return [None if to_c is None else _reduced(to_c, shape), *(None for _ in (argmax, *operands))]
    linear = (
        None if v is None else _shape_if_linear(a),
        None if u is None else _shape_if_linear(b),
    )
    grads = gradient(grad_c, argmax, u, v, linear, semiring, threads)
    return [None, None, *(x for x, r in zip(grads, read, strict=True) if r)]


for _p, _jvp in ((product_p, _product_jvp), (tangent_p, _tangent_jvp), (gradient_p, _gradient_jvp)):
    ad.primitive_jvps[_p] = _jvp
ad.primitive_transposes[tangent_p] = _tangent_transpose
ad.primitive_transposes[gradient_p] = _gradient_transpose

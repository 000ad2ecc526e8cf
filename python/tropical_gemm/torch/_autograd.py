"""The derivatives of the product and of its gradient, and the operators' rules that record them.

With ``k`` the selected index, ``dC[i, j] = dA[i, k] * wa + dB[k, j] * wb``, where the weights ``wa`` and
``wb`` are 1 and 1 in max_plus and min_plus, ``B[k, j]`` and ``A[i, k]`` in max_mul and min_mul, and 1 for the
operand that the inner operation selected and 0 for the other in max_min and min_max. :func:`tangent` is this
sum, :class:`Gradient` its adjoint, and each is the derivative of the other.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd.forward_ad import _set_fwd_grad_enabled
from torch.autograd.function import _SingleLevelFunction

from .. import _core
from . import _operators
from ._operators import Threads

Modes = tuple[bool, bool] | None  # of reverse and forward mode; None without a transform of torch.func


def is_plus(semiring: str) -> bool:
    """Whether the weights are constant, so that the gradient does not look at the operands."""
    return semiring.endswith("plus")


def is_times(semiring: str) -> bool:
    """Whether the weights are the operands themselves."""
    return semiring.endswith("mul")


def _keep(ctx: Any, a: Any, b: Any, argmax: Any, semiring: str, offset: int, threads: Threads) -> Any:
    """Set what the derivatives of the product need; the tensors to save for them."""
    ctx.semiring, ctx.offset, ctx.threads = _core.semiring_name(semiring), offset, threads
    ctx.shapes = a.shape, b.shape
    ctx.set_materialize_grads(False)
    return (argmax, None, None) if is_plus(ctx.semiring) else (argmax, a, b)


class Product(_SingleLevelFunction):
    """``(values, argmax)`` of two matrices, with the derivative of the values."""

    @staticmethod
    def forward(a: Any, b: Any, semiring: str, offset: int, threads: Threads, modes: Modes) -> Any:
        with _switched(modes):
            return _operators.below_autograd("matmul_argmax", a, b, semiring, offset, threads)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        a, b, semiring, offset, threads, ctx.modes = inputs
        ctx.mark_non_differentiable(output[1])
        saved = _keep(ctx, a, b, output[1], semiring, offset, threads)
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)

    @staticmethod
    def backward(ctx: Any, grad_c: Any, _: Any) -> Any:
        if grad_c is None:
            return None, None, None, None, None, None
        argmax, a, b = ctx.saved_tensors
        if ctx.offset:
            argmax = argmax - ctx.offset  # what was -1 stays negative
        needs = ctx.needs_input_grad[0], ctx.needs_input_grad[1]
        grads = gradients(grad_c, argmax, a, b, ctx.shapes, ctx.semiring, needs, ctx.threads)
        return *grads, None, None, None, None

    @staticmethod
    def jvp(ctx: Any, dot_a: Any, dot_b: Any, *_: Any) -> Any:
        with _switched(ctx.modes):
            argmax, a, b = _primals(ctx)
            if ctx.offset:
                argmax = argmax - ctx.offset
            return tangent(argmax, a, b, dot_a, dot_b, ctx.semiring), None


class PlainProduct(_SingleLevelFunction):
    """The same for plain tensors, reverse mode only, with less around it; the argmax if it is asked for."""

    @staticmethod
    def forward(
        ctx: Any, a: Any, b: Any, semiring: str, offset: int, threads: Threads, return_argmax: bool
    ) -> Any:
        values, argmax = _core.matmul(a, b, (True, True), semiring, False, offset, threads, None)
        ctx.save_for_backward(*_keep(ctx, a, b, argmax, semiring, offset, threads))
        if not return_argmax:
            return values
        ctx.mark_non_differentiable(argmax)
        return values, argmax

    @staticmethod
    def backward(ctx: Any, grad_c: Any, _: Any = None) -> Any:
        return Product.backward(ctx, grad_c, None)


class Gradient(_SingleLevelFunction):
    """``(grad_a, grad_b)``, an empty tensor for one that is not needed; linear in ``grad_c``."""

    @staticmethod
    def forward(
        grad_c: Any,
        argmax: Any,
        a: Any,
        b: Any,
        shape_a: Any,
        shape_b: Any,
        semiring: str,
        need_a: bool,
        need_b: bool,
        threads: Threads,
        modes: Modes,
    ) -> Any:
        with _switched(modes):
            return _operators.below_autograd(
                "matmul_backward", grad_c, argmax, a, b, shape_a, shape_b, semiring, need_a, need_b, threads
            )

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        grad_c, argmax, a, b, *shapes, ctx.semiring, need_a, need_b, ctx.threads, ctx.modes = inputs
        ctx.semiring = _core.semiring_name(ctx.semiring)
        ctx.shapes, ctx.needs = tuple(shapes), (need_a, need_b)
        ctx.set_materialize_grads(False)
        if not is_times(ctx.semiring):
            grad_c = None  # the weights are constant nearly everywhere
        ctx.save_for_backward(grad_c, argmax, a, b)
        ctx.save_for_forward(grad_c, argmax, a, b)

    @staticmethod
    def backward(ctx: Any, u: Any, v: Any) -> Any:
        grad_c, argmax, a, b = ctx.saved_tensors
        u, v = (x if need else None for x, need in zip((u, v), ctx.needs, strict=True))
        to_c = to_a = to_b = None
        if ctx.needs_input_grad[0]:
            to_c = tangent(argmax, a, b, u, v, ctx.semiring)
        if is_times(ctx.semiring):
            needs = ctx.needs_input_grad[2], ctx.needs_input_grad[3]
            to_a, to_b = _cross_terms(ctx, grad_c, argmax, u, v, needs)
        return to_c, None, to_a, to_b, None, None, None, None, None, None, None

    @staticmethod
    def jvp(ctx: Any, dot_c: Any, _: Any, dot_a: Any, dot_b: Any, *__: Any) -> Any:
        with _switched(ctx.modes):
            grad_c, argmax, a, b = _primals(ctx)
            sums: Any = None, None
            if dot_c is not None:
                sums = gradients(dot_c, argmax, a, b, ctx.shapes, ctx.semiring, ctx.needs, ctx.threads)
            if is_times(ctx.semiring):
                cross = _cross_terms(ctx, grad_c, argmax, dot_a, dot_b, ctx.needs)
                sums = [
                    y if x is None else x if y is None else x + y for x, y in zip(sums, cross, strict=True)
                ]
            like = next(x for x in (dot_c, dot_a, dot_b) if x is not None)
            return tuple(
                like.new_zeros(shape if need else 0) if x is None else x
                for x, need, shape in zip(sums, ctx.needs, ctx.shapes, strict=True)
            )


# The values of plain matrices, with a gradient; and the argmax if that is asked for.
differentiable: Any = PlainProduct.apply  # type: ignore[attr-defined]


def gradients(
    grad_c: Any,
    argmax: Any,
    a: Any,
    b: Any,
    shapes: tuple[Any, Any],
    semiring: str,
    needs: tuple[bool, bool],
    threads: Threads,
) -> tuple[Any, Any]:
    """``(grad_a, grad_b)``, None where not needed; ``a`` and ``b`` may be None where they are not read."""
    operands = [x for x in (grad_c, a, b) if x is not None]
    if _operators.is_plain(argmax, *operands) and not records(*operands):
        x, y = _operators.stand_ins(grad_c, a, b, shapes)
        made: tuple[Any, Any] = _core.matmul_backward(grad_c, argmax, x, y, needs, semiring, threads, None)
        return made
    grads = torch.ops.tropical_gemm.matmul_backward(grad_c, argmax, a, b, *shapes, semiring, *needs, threads)
    return grads[0] if needs[0] else None, grads[1] if needs[1] else None


def records(*tensors: Any) -> bool:
    """Whether reverse mode records what is done with these."""
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


def _cross_terms(ctx: Any, grad_c: Any, argmax: Any, u: Any, v: Any, needs: tuple[bool, bool]) -> Any:
    """How ``sum(u * grad_a) + sum(v * grad_b)`` depends on the operands that the gradient was weighted with.

    ``sum(grad_c * (u[i, k] * b[k, j] + v[k, j] * a[i, k]))`` is the gradient's own form with ``u`` and ``v``
    for ``a`` and ``b``.
    """
    needs = needs[0] and v is not None, needs[1] and u is not None
    if not any(needs):
        return None, None
    return gradients(grad_c, argmax, u, v, ctx.shapes, ctx.semiring, needs, ctx.threads)


def tangent(argmax: Any, a: Any, b: Any, dot_a: Any, dot_b: Any, semiring: str) -> Any:
    """How the product changes with its operands; 0 where nothing was selected. None: does not change."""
    like = dot_a if dot_a is not None else dot_b
    if like is None:
        return None
    depth = dot_a.shape[-1] if dot_a is not None else dot_b.shape[-2]
    if depth == 0:
        return like.new_zeros(argmax.shape)
    valid = (argmax >= 0) & (argmax < depth)
    index = torch.where(valid, argmax, 0).long()
    lead = argmax.shape[:-2]

    def at_a(x: Any) -> Any:
        return x.expand((*lead, *x.shape[-2:])).gather(-1, index)

    def at_b(x: Any) -> Any:
        return x.expand((*lead, *x.shape[-2:])).gather(-2, index)

    terms = [
        at(dot) if weight is None else weight(at(dot))
        for at, dot, weight in zip(
            (at_a, at_b), (dot_a, dot_b), _weights(a, b, at_a, at_b, semiring), strict=True
        )
        if dot is not None
    ]
    return torch.where(valid, terms[0] if len(terms) == 1 else terms[0] + terms[1], 0)


def _weights(a: Any, b: Any, at_a: Any, at_b: Any, semiring: str) -> tuple[Any, Any]:
    """The multiplications by ``wa`` and by ``wb``, None for 1."""
    if is_plus(semiring):
        return None, None
    if is_times(semiring):
        return (lambda x: x * at_b(b)), (lambda x: x * at_a(a))
    a_is_smaller = {"max_min": True, "min_max": False}[semiring]
    x, y = at_a(a), at_b(b)
    # As the kernels choose: a on a tie, and the first NaN.
    chose_a = x.isnan() | (~y.isnan() & ((x <= y) if a_is_smaller else (x >= y)))
    return (lambda x: torch.where(chose_a, x, 0)), (lambda x: torch.where(chose_a, 0, x))


# The operators' rules for autograd. Each records on the level of torch.func where it is called, as torch's
# own operators do. A torch.autograd.Function would start at the outermost level, and looks at its signature
# first, which takes longer than a small product.


def _apply(function: Any, *arguments: Any) -> Any:
    if not _operators.in_transform():
        return function.apply(*arguments, None)
    with enable_single_level_autograd_function():
        return function.apply(*arguments, (torch.is_grad_enabled(), torch._C._is_fwd_grad_enabled()))


def _switched(modes: Modes) -> Any:
    """A Function switches reverse and forward mode off; the levels further out need them as they were."""
    return nullcontext() if modes is None else _modes(*modes)


@contextmanager
def _modes(reverse: bool, forward: bool) -> Iterator[None]:
    with torch.set_grad_enabled(reverse), _set_fwd_grad_enabled(forward):
        yield


def _primals(ctx: Any) -> Any:
    """What was saved, without the tangents of this level, which ``jvp`` is there to combine."""
    if ctx.modes is None:
        return ctx.saved_tensors
    return [
        torch._VF._unpack_dual(x, 0).primal if x is not None and x.is_floating_point() else x
        for x in ctx.saved_tensors
    ]


def is_followed(*tensors: Any) -> bool:
    """Whether reverse or forward mode wants to know what is done with these."""
    return records(*tensors) or any(_operators.has_tangent(x) for x in tensors)


def _autograd_matmul(a: Any, b: Any, semiring: str, threads: Threads) -> Any:
    if is_followed(a, b):
        return _apply(Product, a, b, semiring, 0, threads)[0]
    return _operators.below_autograd("matmul", a, b, semiring, threads)


def _autograd_matmul_argmax(a: Any, b: Any, *rest: Any) -> Any:
    if is_followed(a, b):
        return _apply(Product, a, b, *rest)
    return _operators.below_autograd("matmul_argmax", a, b, *rest)


def _autograd_matmul_backward(grad_c: Any, argmax: Any, a: Any, b: Any, *rest: Any) -> Any:
    if is_followed(*(x for x in (grad_c, a, b) if x is not None)):
        return _apply(Gradient, grad_c, argmax, a, b, *rest)
    return _operators.below_autograd("matmul_backward", grad_c, argmax, a, b, *rest)


for _name, _rule in (
    ("matmul", _autograd_matmul),
    ("matmul_argmax", _autograd_matmul_argmax),
    ("matmul_backward", _autograd_matmul_backward),
):
    _operators.library.impl(_name, _rule, "Autograd")

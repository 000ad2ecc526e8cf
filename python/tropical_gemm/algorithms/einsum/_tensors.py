"""Axes of arrays of any library, and the operations that a contraction is made of."""

import sys
from typing import Any

import numpy as np

from ... import _core
from ..._count import count_matmul
from ..._ops import matmul
from ._plan import Product

identity = tuple(range(64))


def namespace(x: Any) -> Any:
    """The module whose functions make arrays of the kind of ``x``."""
    if isinstance(x, np.ndarray):
        return np
    if type(x).__module__.startswith("jax"):
        return sys.modules["jax.numpy"]
    return sys.modules[type(x).__module__.partition(".")[0]]


def dtype_text(x: Any) -> str:
    return str(x.dtype).removeprefix("torch.")


def permuted(x: Any, order: tuple[int, ...]) -> Any:
    if order == identity[: len(order)]:
        return x
    return x.permute(order) if hasattr(x, "permute") else x.transpose(order)


def diagonal(x: Any, labels: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """A view in which every label has one axis, where the first of its axes was."""
    once = list(dict.fromkeys(labels))
    while len(labels) > len(once):
        label = next(y for i, y in enumerate(labels) if y in labels[:i])
        i = labels.index(label)
        j = labels.index(label, i + 1)
        x = x.diagonal(0, i, j)  # its axis comes last
        rest = [y for place, y in enumerate(labels) if place not in (i, j)]
        rest.insert(i, label)
        last = len(rest) - 1
        x = permuted(x, (*range(i), last, *range(i, last)))
        labels = tuple(rest)
    return x, labels


class Algebra:
    """The two operations of a contraction, on plain arrays."""

    def __init__(self, semiring: str) -> None:
        self.semiring = semiring

    def check(self, x: Any) -> None:
        """Says what is wrong with the semiring, or with the dtype of an operand."""
        _core.semiring_constants(self.semiring, dtype_text(x))

    def each(self, operation: Any, x: Any) -> Any:
        """An operation on axes, on all arrays that make a tensor."""
        return operation(x)

    def operands(self, pairs: list[tuple[Any, Any]]) -> list[Any]:
        """From values and counts, which are None where none came."""
        for i, (_, counts) in enumerate(pairs):
            if counts is not None:
                raise TypeError(f"operands[{i}] is a pair, expected an array: {self.semiring} has no counts")
        return [x for x, _ in pairs]

    def product(self, step: Product, a: Any, b: Any) -> Any:
        x = permuted(a, step.a_order).reshape(step.a_shape)
        y = permuted(b, step.b_order).reshape(step.b_shape)
        return self.batched(x, y).reshape(step.c_shape)

    def stacked(self, x: Any, y: Any) -> Any:
        return namespace(x).stack([x.reshape(-1), y.reshape(-1)], -1)

    def batched(self, a: Any, b: Any) -> Any:
        """``(B, M, K)`` times ``(B, K, N)``."""
        return matmul(a, b, semiring=self.semiring)

    def total(self, x: Any) -> Any:
        """``(M, K)`` summed over K: ``(M, 1)``."""
        return self.batched(x, _ones(self.semiring, x, x.shape[1]))

    def taken(self, a: Any, b: Any | None = None) -> int:
        """``(1, K)`` times ``(K, 1)``, or the sum of the former: the lowest k that gives the value."""
        b = _ones(self.semiring, a, a.shape[1]) if b is None else b
        argmax = matmul(a, b, semiring=self.semiring, return_argmax=True).argmax
        return max(int(argmax[0, 0]), 0)


class Counting(Algebra):
    """The same on pairs of values and counts."""

    def each(self, operation: Any, x: Any) -> Any:
        return operation(x[0]), operation(x[1])

    def operands(self, pairs: list[tuple[Any, Any]]) -> list[Any]:
        given = next((counts for _, counts in pairs if counts is not None), None)
        return [(x, self._implied(x, given) if counts is None else counts) for x, counts in pairs]

    def product(self, step: Product, a: Any, b: Any) -> Any:
        x = self.each(lambda part: permuted(part, step.a_order).reshape(step.a_shape), a)
        y = self.each(lambda part: permuted(part, step.b_order).reshape(step.b_shape), b)
        return self.each(lambda part: part.reshape(step.c_shape), self.batched(x, y))

    def stacked(self, x: Any, y: Any) -> Any:
        return tuple(super(Counting, self).stacked(u, v) for u, v in zip(x, y, strict=True))

    def batched(self, a: Any, b: Any) -> Any:
        return tuple(count_matmul(a, b, semiring=self.semiring))

    def total(self, x: Any) -> Any:
        values, counts = x
        n = values.shape[1]
        one = namespace(counts).ones_like(counts[:1]).reshape((n, 1))
        return self.batched(x, (_ones(self.semiring, values, n), one))

    def _implied(self, x: Any, like: Any) -> Any:
        """Values alone count 1, or 0 where they are the zero; in the dtype of other counts."""
        zero = _core.semiring_constants(self.semiring, dtype_text(x))[0]
        xp = namespace(x)
        dtype = xp.float64 if like is None else like.dtype
        return xp.where(x == zero, xp.zeros_like(x, dtype=dtype), xp.ones_like(x, dtype=dtype))


def _ones(semiring: str, like: Any, count: int) -> Any:
    """``count`` times what is neutral for the inner operation, as a column."""
    value = _core.semiring_constants(semiring, dtype_text(like))[1]
    xp = namespace(like)
    options = {"device": like.device} if xp.__name__ == "torch" else {}
    return xp.full((count, 1), value, dtype=like.dtype, **options)

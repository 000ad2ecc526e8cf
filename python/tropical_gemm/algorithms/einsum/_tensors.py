"""Axes of arrays of any library, and the operations that a contraction is made of."""

import sys
from typing import Any

import numpy as np

from ... import _core
from ..._arrays import common_kind, is_tensor
from ..._count import check_counts, count_matmul
from ..._ops import matmul
from ._layout import Operand
from ._plan import Product

identity = tuple(range(64))

# Zero and one of each semiring on each of its dtypes: a table, since torch.compile can look into that.
constants = {
    (semiring, dtype): _core.semiring_constants(semiring, dtype)
    for semiring, dtypes in _core.info()["semirings"].items()
    for dtype in dtypes
}


def namespace(x: Any) -> Any:
    """The module whose functions make arrays of the kind of ``x``."""
    if isinstance(x, np.ndarray):
        return np
    if is_tensor(x):
        return sys.modules["torch"]
    if type(x).__module__.startswith("jax"):
        return sys.modules["jax.numpy"]
    return sys.modules[type(x).__module__.partition(".")[0]]


def dtype_text(x: Any) -> str:
    return str(x.dtype).removeprefix("torch.")


def permuted(x: Any, order: tuple[int, ...]) -> Any:
    if order == identity[: len(order)]:
        return x
    return x.permute(order) if hasattr(x, "permute") else x.transpose(order)


def matrices(x: Any, operand: Operand) -> Any:
    """``x`` as an operand of a product wants it: a view where that can be, else a copy."""
    order, shape, copies = operand
    if type(x) is np.ndarray:  # the short way for small tensors
        return (
            _core.permute(x, order, None, None).reshape(shape)
            if copies
            else x.transpose(order).reshape(shape)
        )
    if copies and _is_plain(x):
        return _core.permute(x, order, None, None).reshape(shape)
    return permuted(x, order).reshape(shape)


def is_compiling(x: Any) -> bool:
    """Whether torch.compile looks at what is done with ``x``."""
    return is_tensor(x) and bool(sys.modules["torch"].compiler.is_compiling())


def _is_plain(x: Any) -> bool:
    """Whether the core may copy it: tensors on which nothing is recorded."""
    if not is_tensor(x) or is_compiling(x):
        return False
    from ...torch import _autograd, _operators

    return _operators.is_plain(x) and not _autograd.records(x)


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
        known = any(semiring == name for name, _ in constants)
        self.semiring = semiring if known else _core.semiring_name(semiring)

    def check(self, x: Any, pairs: list[tuple[Any, Any]]) -> None:
        """Says what is wrong with the semiring, or with the dtypes of the operands (values and counts)."""
        if (self.semiring, dtype_text(x)) not in constants:
            raise TypeError(
                f"the operands have dtype {dtype_text(x)}, which the semiring {self.semiring} does not have"
            )

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
        to_a, to_b, shape, _, turned = step.layout
        x, y = matrices(a, to_a), matrices(b, to_b)
        return (self.batched(y, x) if turned else self.batched(x, y)).reshape(shape)

    def stacked(self, x: Any, y: Any) -> Any:
        return namespace(x).stack([x.reshape(-1), y.reshape(-1)], -1)

    def batched(self, a: Any, b: Any) -> Any:
        """``(..., M, K)`` times ``(..., K, N)``."""
        if type(a) is np.ndarray:  # checked before
            return _core.matmul(a, b, (True, False), self.semiring, False, 0, None, None)
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

    def check(self, x: Any, pairs: list[tuple[Any, Any]]) -> None:
        super().check(x, pairs)
        check_counts(common_kind(operands=x))
        if self.semiring not in ("max_plus", "min_plus"):
            raise ValueError(f"semiring is count_{self.semiring}, expected count_max_plus or count_min_plus")
        if dtype_text(x) not in ("float32", "float64", "int32", "int64"):
            raise TypeError(
                f"operands[0] has dtype {dtype_text(x)}; values that are counted are float32, float64, int32 "
                "or int64"
            )
        first: Any = next((counts for _, counts in pairs if counts is not None), None)
        for i, (_, counts) in enumerate(pairs):
            if counts is None:
                continue
            if dtype_text(counts) not in ("float64", "int64") or counts.dtype != first.dtype:
                raise TypeError(
                    f"the counts of operands[{i}] have dtype {dtype_text(counts)}, expected float64 or int64 "
                    "throughout"
                )

    def operands(self, pairs: list[tuple[Any, Any]]) -> list[Any]:
        given = next((counts for _, counts in pairs if counts is not None), None)
        return [(x, self._counts(x, counts, given)) for x, counts in pairs]

    def product(self, step: Product, a: Any, b: Any) -> Any:
        x = self.each(lambda part: matrices(part, step.layout.a), a)
        y = self.each(lambda part: matrices(part, step.layout.b), b)
        made = self.batched(*((y, x) if step.layout.turned else (x, y)))
        return self.each(lambda part: part.reshape(step.layout.shape), made)

    def stacked(self, x: Any, y: Any) -> Any:
        return tuple(super(Counting, self).stacked(u, v) for u, v in zip(x, y, strict=True))

    def batched(self, a: Any, b: Any) -> Any:
        if type(a[0]) is np.ndarray:
            return _core.count_matmul(a[0], a[1], b[0], b[1], self.semiring, None, None)
        return tuple(count_matmul(a, b, semiring=self.semiring))

    def total(self, x: Any) -> Any:
        values, counts = x
        n = values.shape[1]
        return self.batched(x, (_ones(self.semiring, values, n), _column(counts, n, 1)))

    def _counts(self, x: Any, counts: Any, like: Any) -> Any:
        """Those that came, else 1 in the dtype of others; and 0 where the value is the zero or NaN."""
        zero = constants[self.semiring, dtype_text(x)][0]
        xp = namespace(x)
        dtype = xp.float64 if like is None else like.dtype
        present = xp.ones_like(x, dtype=dtype) if counts is None else counts
        return xp.where((x == zero) | (x != x), xp.zeros_like(x, dtype=dtype), present)


def _ones(semiring: str, like: Any, count: int) -> Any:
    """``count`` times what is neutral for the inner operation, as a column."""
    return _column(like, count, constants[semiring, dtype_text(like)][1])


def _column(like: Any, count: int, value: Any) -> Any:
    xp = namespace(like)
    options = {"device": like.device} if xp.__name__ == "torch" else {}
    return xp.full((count, 1), value, dtype=like.dtype, **options)

"""Axes of arrays of any library, and the two operations that a contraction is made of."""

import sys
from typing import Any

import numpy as np

from ... import _core
from ..._ops import matmul

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


def batched(a: Any, b: Any, semiring: str, argmax: bool = False) -> Any:
    """``(B, M, K)`` times ``(B, K, N)``."""
    return matmul(a, b, semiring=semiring, return_argmax=argmax)


def ones(semiring: str, like: Any, count: int) -> Any:
    """``count`` times what is neutral for the inner operation, as a column."""
    value = _core.semiring_constants(semiring, dtype_text(like))[1]
    xp = namespace(like)
    options = {"device": like.device} if xp.__name__ == "torch" else {}
    return xp.full((count, 1), value, dtype=like.dtype, **options)


def total(x: Any, semiring: str, argmax: bool = False) -> Any:
    """``(M, K)`` summed over K: ``(M, 1)``."""
    return matmul(x, ones(semiring, x, x.shape[1]), semiring=semiring, return_argmax=argmax)

"""Sums and products that leave the range of their dtype."""

import math
from typing import Any

import numpy as np

from .errors import PathOverflowError

_LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38}


def largest(dtype: str) -> float:
    """The largest finite element; for integers the largest but the extreme, which is the infinity."""
    if dtype.startswith("int"):
        return float(np.iinfo(dtype).max - 1)
    return _LARGEST.get(dtype) or float(np.finfo(dtype).max)


def is_safe(semiring: str, dtype: str, magnitude: float, n: int) -> bool:
    """Whether no path of a graph with ``n`` nodes can leave the range, by its largest weight alone."""
    steps = max(n - 1, 1)
    if semiring.endswith("plus"):
        return magnitude * steps <= largest(dtype) * (1 - 1e-9)
    if semiring.endswith("mul"):
        return magnitude <= 1 or steps * math.log2(magnitude) <= math.log2(largest(dtype)) * (1 - 1e-9)
    return True


def extremes(dtype: str) -> tuple[Any, Any]:
    """The lowest and the highest element."""
    if dtype.startswith("int"):
        info = np.iinfo(dtype)
        return info.min, info.max
    return -np.inf, np.inf


def any_beyond(values: Any) -> bool:
    """Whether something is not a value in range: out of it, or of no path."""
    low, high = extremes(values.dtype.name)
    return bool(((values == low) | (values == high) | (values != values)).any())


def check(semiring: str, dtype: str, values: Any, reach: Any, sources: "list[int] | None" = None) -> None:
    """Raises OverflowError where a pair that a path joins has no finite value.

    ``values`` (s, n), of those ``sources`` or all, and ``reach`` (n, n, bool) are in host memory. A sum that
    left the range on the way to a value in range shows too: the part of the path that left it is a best path
    itself.
    """
    low, high = extremes(dtype)
    beyond = (values == low) | (values == high) | (values != values)
    bad = np.argwhere(beyond & (reach if sources is None else reach[sources]))
    if len(bad):
        i, j = (int(x) for x in bad[0])
        raise PathOverflowError(
            f"the best path from node {{}} to node {{}} has a value that {dtype} cannot hold; "
            "scale the weights or use a wider dtype",
            i if sources is None else sources[i],
            j,
        )

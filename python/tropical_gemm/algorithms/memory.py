"""What a call will need at its peak, before it allocates."""

from typing import Any

from .._arrays import Kind
from . import checks

_SCRATCH = 0.3
"""Of a matrix: the columns of half the pivots, and packed blocks, while a closure runs."""
_MARKS = 3
"""Bytes an element of the bool matrices in which components are looked for."""
_EDGE = 48
"""Bytes an edge while SciPy's Dijkstra is prepared: coordinates, weights in float64, its own copies."""
_NODE = 96
"""Bytes a node in SciPy's graph algorithms: pointers to its edges, labels, an element of the heap."""
_SMALLER = "use a smaller dtype, or pass overwrite=True"
_ADVICE = f"pass indices= for some rows, {_SMALLER}"


def item(dtype: str) -> int:
    """Bytes of an element; "bfloat16" and its like end with their bits."""
    return 1 if dtype == "bool" else int(dtype[-2:]) // 8


class Estimate:
    """Of a closure, or of products with the whole matrix."""

    def __init__(self, n: int, dtype: str, tracks: bool, kind: Kind, like: Any) -> None:
        self.n, self.dtype, self.tracks, self.kind, self.like = n, dtype, tracks, kind, like

    def check_results(self, rows: int, in_place: bool) -> None:
        """``rows`` of results, and of scratch memory."""
        size = item(self.dtype)
        self._check(rows * self.n * ((0 if in_place else size) + _SCRATCH * size + 4 * self.tracks))

    def check_shift(self) -> None:
        """What graphs with negative floats need besides: a float64 matrix if they are none."""
        self._check(self.n * self.n * (_MARKS + (0 if self.dtype == "float64" else 8 + 4 + _SCRATCH * 4)))

    def _check(self, size: float) -> None:
        checks.check_memory(self.n, size, checks.available_memory(self.kind, self.like), _ADVICE)


def check_closure(n: int, dtype: str, in_place: bool, kind: Kind, like: Any) -> None:
    size = n * n * item(dtype) * ((0 if in_place else 1) + _SCRATCH)
    checks.check_memory(n, size, checks.available_memory(kind, like), _SMALLER)


def check_dijkstra(n: int, rows: int, edges: int, dtype: str, tracks: bool) -> None:
    """In host memory: results, and the sparse graph, whose nodes may be many more than its edges."""
    size = rows * n * (item(dtype) + 4 * tracks) + edges * _EDGE + n * _NODE
    checks.check_memory(n, size, checks.host_memory(), _ADVICE)


def check_dense(n: int, dtype: str) -> None:
    """In host memory: the matrix of a sparse graph."""
    advice = "pass indices= and method='D' to compute some rows on the sparse graph itself"
    checks.check_memory(n, n * n * item(dtype), checks.host_memory(), advice)

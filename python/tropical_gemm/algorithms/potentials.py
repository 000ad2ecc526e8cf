"""Negative floats: weights shifted by potentials, after Johnson, so that none is negative.

Floyd-Warshall on them would round a cycle of length about 0 to a negative one, and each pivot could double
the error. With h[v] the length of a shortest path to v from anywhere, w[u, v] + h[u] - h[v] is at least 0
but for rounding, and a path from i to j becomes longer by h[i] - h[j].
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .dense import Session, rounding
from .errors import NegativeCycleError
from .host import from_numpy, to_numpy

_ROUNDS = (16, 64, 256, 1024, 4096, 16384)


@dataclass
class Shift:
    """``weights`` from 0 on, of the kind of array that came, and the potentials that made them."""

    weights: Any
    potentials: Any

    def undo(self, distances: Any, sources: "list[int] | None" = None) -> Any:
        """Distances of the graph as it was, in all rows or those of ``sources``."""
        h = self.potentials
        of_sources = (
            h if sources is None else h[np.asarray(sources, np.intp)] if _takes_arrays(h) else h[sources]
        )
        return distances - of_sources[:, None] + h[None, :]


def _takes_arrays(x: Any) -> bool:
    return not type(x).__module__.startswith(("torch", "cupy"))


def shift(session: Session, weights: Any, made: Any, dtype: str, magnitude: float) -> Shift:
    """Shifts a matrix as the core made it (``made``) and as its library has it (``weights``).

    Raises NegativeCycleError: potentials come to rest within n rounds, or an edge of some cycle keeps
    lowering them by more than rounding does: 4 eps of the largest weight or potential.
    """
    n = int(weights.shape[0])
    for rounds in (*(r for r in _ROUNDS if r <= n), n + 1):
        found, before, settled = session.paths_from(made, [-1], True, rounds, None)
        h = to_numpy(session.kind, session.kind.result(found))[0]
        shifts = from_numpy(session.kind, np.ascontiguousarray(h), session.like)
        reduced = weights + shifts[:, None] - shifts[None, :]
        allowed = 4 * rounding(dtype, 1) * max(magnitude, float(np.abs(h).max(initial=0.0)))
        if settled or float(reduced.min()) >= -allowed:
            return Shift(reduced.clip(min=0), shifts)
    matrix = to_numpy(session.kind, weights)
    node = _node_on_cycle(matrix, to_numpy(session.kind, session.kind.result(before))[0])
    raise NegativeCycleError(f"csgraph has a cycle of negative length through node {node}", node)


def _node_on_cycle(weights: Any, before: Any) -> int:
    """A node on the cycle of least length that the predecessors form."""
    n = len(weights)
    at = np.where(before < 0, np.arange(n), before)
    for _ in range(max(1, n.bit_length())):
        at = at[at]
    best, node = 0.0, int(np.diag(weights).argmin())
    seen: set[int] = set()
    for first in np.unique(at).tolist():
        if first in seen or before[first] < 0:
            continue
        length, v = 0.0, first
        while v not in seen:
            seen.add(v)
            length += float(weights[before[v], v])
            v = int(before[v])
        if length < best:
            best, node = length, v
    return node

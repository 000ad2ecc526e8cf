"""Negative floats: weights shifted by potentials, after Johnson, so that no cycle has a negative edge.

Floyd-Warshall on them as they are would round a cycle of length about 0 to a negative one, and each pivot
could double the error. With h[v] the length of a shortest path to v from anywhere, w[u, v] + h[u] - h[v] is
at least 0, and a path from i to j becomes longer by h[i] - h[j].

A sum with h keeps no more digits than h has. Hence each strongly connected component has potentials of its
own, and only if it has a negative edge within: what no walk from i to j can use has no influence on that
distance. And all of it is in float64, float32 too, as SciPy computes.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import ranges
from .components import strong, with_negative_edges
from .dense import Session, rounding
from .errors import NegativeCycleError
from .host import as_dtype, dtype_name, from_numpy, to_numpy

NEGATIVE_CYCLE = "csgraph has a cycle of negative length through node {}"
_DOUBLE = 2.0**-52


@dataclass
class Shift:
    """A matrix without negative edges on cycles, of the kind of array that came, and what made it so."""

    session: Session
    dtype: str
    weights: Any
    potentials: Any  # None where the weights are as they came
    exponent: int = 0

    def undo(self, distances: Any, sources: "list[int] | None" = None) -> Any:
        """Distances of the graph as it was, in all rows or those of ``sources``; ``distances`` is used up."""
        if self.potentials is None:
            return distances
        kind, h = self.session.kind, self.potentials
        with self.session.placed(), np.errstate(over="ignore"):  # ranges.check finds what is too large
            to = from_numpy(kind, h, distances)
            of = to if sources is None else from_numpy(kind, h[sources], distances)
            for some in _blocks(*distances.shape):
                distances[some] -= of[some, None] - to[None, :]
            distances *= 2.0**self.exponent
            return as_dtype(kind, distances, self.dtype)


def shift(session: Session, weights: Any, magnitude: float) -> Shift:
    """Shifts a matrix as its library has it; it is used up.

    NegativeCycleError names a node on such a cycle.
    """
    with session.placed():
        return _shift(session, weights, magnitude)


def _shift(session: Session, weights: Any, magnitude: float) -> Shift:
    kind, n, dtype = session.kind, int(weights.shape[0]), dtype_name(weights)
    labels = strong(to_numpy(kind, weights != math.inf))
    parts = with_negative_edges(labels, to_numpy(kind, weights < 0))
    if not parts and ranges.is_safe("min_plus", dtype, magnitude, n):
        return Shift(session, dtype, weights, None)
    exponent = scale(magnitude, n)
    wide = as_dtype(kind, weights, "float64")
    wide *= 2.0**-exponent
    h = np.zeros(n)
    for nodes in parts:
        h[nodes] = of_component(session, wide, nodes, dtype)
    of, label = from_numpy(kind, h, wide), from_numpy(kind, labels, wide)
    for some in _blocks(n, n):
        wide[some] += of[some, None] - of[None, :]
        wide[some] -= wide[some].clip(None, 0) * (label[some, None] == label[None, :])  # rounding
    return Shift(session, dtype, wide, h, exponent)


def scale(magnitude: float, n: int) -> int:
    """A power of two by which to divide, so that no sum of weights and potentials leaves float64."""
    return max(0, math.ceil(math.log2(magnitude) + math.log2(4 * n)) - 1020) if magnitude > 0 else 0


def of_component(session: Session, weights: Any, nodes: Any, dtype: str) -> Any:
    """Potentials of some nodes of a float64 matrix that came as ``dtype``.

    Raises NegativeCycleError if a cycle is shorter than -4 eps times the sum of the absolute values of its
    weights: by as much are all weights raised where some cycle is about 0 and lowers potentials for ever.
    """
    kind = session.kind
    if len(nodes) < int(weights.shape[0]):
        some = from_numpy(kind, nodes, weights)
        weights = weights[some][:, some]
    eps = 4 * rounding(dtype, 1)
    h, cycle = _settled(session, weights, eps, 0.0)
    if cycle is None and h is None:
        h, cycle = _settled(session, weights + eps * abs(weights), 0.0, 4 * _DOUBLE)
    if cycle is not None:
        raise NegativeCycleError(NEGATIVE_CYCLE, int(nodes[cycle]))
    return h


def _settled(session: Session, w: Any, of_lengths: float, of_potentials: float) -> "tuple[Any, int | None]":
    """Potentials, or a node on a negative cycle; (None, None) where a cycle is within the first tolerance.

    The first is relative to the absolute values along a cycle. The second to the potentials, for each edge:
    where none lowers one by more, they are good enough.
    """
    kind, n = session.kind, int(w.shape[0])
    found: list[Cycle] = []
    for rounds in stages(n):
        rows, before, settled = session.paths_from(kind.operand(w, "csgraph"), [-1], True, rounds, None)
        h = to_numpy(kind, kind.result(rows))[0]
        allowed = of_potentials * float(np.abs(h).max())
        if settled or (of_potentials and _lowest(kind, w, h) >= -allowed):
            return h, None
        found = cycles(kind, w, to_numpy(kind, kind.result(before))[0])
        for cycle in found:
            if cycle.length < -of_lengths * cycle.absolute - allowed * cycle.edges:
                return None, cycle.node
        if found and of_lengths:
            return None, None
    return None, found[0].node  # a node that is lowered in round n + 1 has a cycle behind it


def stages(n: int) -> Iterator[int]:
    """After how many rounds to look for cycles; without one, potentials come to rest within n."""
    rounds = 16
    while rounds < n:
        yield rounds
        rounds *= 4
    yield n + 1


@dataclass(order=True)
class Cycle:
    length: Any
    absolute: Any  # the sum of the absolute values of its weights
    edges: int
    node: int


def cycles(kind: Any, weights: Any, before: Any) -> list[Cycle]:
    """The cycles that predecessors form, the shortest first."""
    n = len(before)
    at = np.where(before < 0, np.arange(n), before)
    places = (from_numpy(kind, x, weights) for x in (at, np.arange(n)))
    steps = to_numpy(kind, weights[tuple(places)]).tolist()
    ends = at
    for _ in range(n.bit_length()):
        ends = ends[ends]
    found = []
    seen: set[int] = set()
    for node in np.unique(ends).tolist():
        lengths: list[Any] = []
        while before[node] >= 0 and node not in seen:
            seen.add(node)
            lengths.append(steps[node])
            node = int(before[node])
        if lengths:
            total = math.fsum if isinstance(lengths[0], float) else sum
            found.append(Cycle(total(lengths), total(map(abs, lengths)), len(lengths), node))
    return sorted(found)


def _lowest(kind: Any, w: Any, h: Any) -> float:
    """The least edge of the shifted matrix."""
    of = from_numpy(kind, h, w)
    return min(float((w[some] + (of[some, None] - of[None, :])).min()) for some in _blocks(*w.shape))


def _blocks(rows: int, columns: int) -> Iterator[slice]:
    """Rows of a few megabytes: what is computed of them takes no memory to speak of."""
    size = max(1, 2**19 // max(columns, 1))
    return (slice(first, first + size) for first in range(0, rows, size))

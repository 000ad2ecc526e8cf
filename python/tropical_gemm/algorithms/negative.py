"""Graphs with negative cycles that are to be ignored. In host memory: they are rare."""

from typing import Any

import numpy as np

from .. import _core
from .._arrays import common_kind
from . import ranges
from .dense import Reading, Session, reachable
from .errors import NegativeCycleError
from .potentials import shift

NONE = -9999


def close(
    weights: Any, magnitude: float, tracks: bool, threads: "int | None", progress: Any
) -> tuple[Any, Any]:
    """Distances and predecessors; NegativeCycleError names a node on such a cycle."""
    session = Session(common_kind(d=weights), weights, threads)
    distances, before, facts = session.load(weights, Reading("min_plus"), pred=tracks)
    if weights.dtype.kind == "f" and facts.negative_at is not None:
        shifted = shift(session, distances, distances, weights.dtype.name, magnitude)
        distances, before, _ = session.load(shifted.weights, Reading("min_plus"), pred=tracks)
        session.close(distances, before, "min_plus", 0.0, progress)
        return shifted.undo(distances), before
    node = session.close(distances, before, "min_plus", 0.0, progress)
    if node is not None:
        raise NegativeCycleError(f"csgraph has a cycle of negative length through node {node}", node)
    return distances, before


def nodes_on_cycles(weights: Any, reach: Any, magnitude: float, threads: "int | None") -> Any:
    """The nodes through which a closed walk of negative length leads, as a bool array.

    They are whole strongly connected components: who can reach a negative cycle and be reached from it can go
    there, round as often as needed, and back. Each component is closed by itself.
    """
    n = len(weights)
    component = (reach & reach.T).argmax(axis=1)
    found = np.zeros(n, bool)
    sizes = np.bincount(component, minlength=n)
    for first in np.flatnonzero(sizes):
        nodes = np.flatnonzero(component == first)
        if len(nodes) == 1 and weights[first, first] >= 0:
            continue
        try:
            close(np.ascontiguousarray(weights[np.ix_(nodes, nodes)]), magnitude, False, threads, None)
        except NegativeCycleError:
            found[nodes] = True
    return found


def ignoring_cycles(
    weights: Any, magnitude: float, tracks: bool, threads: "int | None", progress: Any
) -> tuple[Any, Any]:
    """Distances and predecessors; -inf (or the lowest integer) and -9999 where a negative cycle can be used.

    ``weights`` has inf, or the highest integer, where there is no edge. Pairs that no negative cycle touches
    use no node on one, so that they are those of the graph without these nodes.
    """
    low, high = ranges.extremes(weights.dtype.name)
    reach = reachable(weights != high, threads)
    bad = nodes_on_cycles(weights, reach, magnitude, threads)
    rest = weights.copy()
    rest[bad, :] = high
    rest[:, bad] = high
    distances, before = close(rest, magnitude, tracks, threads, progress)
    into, out = np.ascontiguousarray(reach[:, bad]), np.ascontiguousarray(reach[bad, :])
    touched = _core.matmul(into, out, (True, False), "or_and", False, 0, threads, None)
    distances[touched] = low
    if before is not None:
        before[touched] = NONE
    return distances, before

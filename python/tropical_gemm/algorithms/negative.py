"""Graphs with negative cycles. In host memory: they are rare."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _core
from .._arrays import common_kind
from . import ranges
from .components import strong, with_negative_edges
from .dense import Session, reachable
from .errors import NegativeCycleError
from .potentials import Cycle, cycles, of_component, scale, stages

NONE = -9999


def ignoring_cycles(
    weights: Any, close: Callable[[Any], tuple[Any, Any]], threads: "int | None"
) -> tuple[Any, Any]:
    """Distances and predecessors; -inf (or the lowest integer) and -9999 where a negative cycle can be used.

    ``weights`` has inf, or the highest integer, where there is no edge. Pairs that no negative cycle touches
    use no node on one, so that they are those of the graph without these nodes, which ``close`` finds. Raises
    OverflowError where one of them is out of range.
    """
    dtype = weights.dtype.name
    low, high = ranges.extremes(dtype)
    bad = nodes_on_cycles(weights, threads)
    reach = reachable(weights != high, threads)
    into, out = np.ascontiguousarray(reach[:, bad]), np.ascontiguousarray(reach[bad, :])
    touched = _core.matmul(into, out, (True, False), "or_and", False, 0, threads, None)
    weights[bad, :] = weights[:, bad] = high
    distances, before = close(weights)
    ranges.check("min_plus", dtype, distances, reach & ~touched)
    distances[touched] = low
    if before is not None:
        before[touched] = NONE
    return distances, before


def nodes_on_cycles(weights: Any, threads: "int | None") -> Any:
    """The nodes through which a closed walk of negative length leads, as a bool array.

    They are whole strongly connected components: who can reach a negative cycle and be reached from it can go
    there, round as often as needed, and back.
    """
    found = np.zeros(len(weights), bool)
    for nodes, node in _searched(weights, threads):
        found[nodes] = node is not None
    return found


def node_on_cycle(weights: Any, threads: "int | None") -> "int | None":
    """A node on a negative cycle, if there is one, whether or not sums leave the range of the dtype."""
    return next((node for _, node in _searched(weights, threads) if node is not None), None)


def _searched(weights: Any, threads: "int | None") -> "Iterator[tuple[Any, int | None]]":
    """Components that have a negative edge, and a node on a negative cycle of each."""
    dtype = weights.dtype.name
    edges = weights != ranges.extremes(dtype)[1]
    parts = with_negative_edges(strong(edges), weights < 0)
    if dtype.startswith("int"):
        for nodes in parts:
            node = _integer_cycle(weights[np.ix_(nodes, nodes)], threads)
            yield nodes, None if node is None else int(nodes[node])
        return
    largest = float(np.abs(weights[edges]).max(initial=0.0))
    wide = np.ldexp(weights.astype(np.float64), -scale(largest, len(weights)))
    session = Session(common_kind(d=wide), wide, threads)
    for nodes in parts:
        try:
            of_component(session, wide, nodes, dtype)
        except NegativeCycleError as error:
            yield nodes, error.node
        else:
            yield nodes, None


def _integer_cycle(weights: Any, threads: "int | None") -> "int | None":
    """A node on a negative cycle of integers, exactly."""
    n, most = len(weights), np.iinfo(np.int64).max
    edges = weights != np.iinfo(weights.dtype).max
    wide = np.where(edges, weights.astype(np.int64), most)
    if int(np.abs(wide[edges]).max(initial=0)) * (n + 2) >= most:
        return _cycle_of_python_ints(wide)
    session = Session(common_kind(d=wide), wide, threads)
    found: list[Cycle] = []
    for rounds in stages(n):
        _, before, settled = session.paths_from(wide, [-1], True, rounds, None)
        if settled:
            return None
        found = cycles(session.kind, wide, before[0])
        if found:
            break
    return found[0].node  # a node that is lowered in round n + 1 has a cycle behind it


def _cycle_of_python_ints(weights: Any) -> "int | None":
    """The same where int64 does not hold the sums. Each node of a component has an edge that ends there."""
    n = len(weights)
    columns, rows = np.nonzero((weights != np.iinfo(np.int64).max).T)
    values = weights[rows, columns].astype(object)
    first = np.searchsorted(columns, np.arange(n))
    h = np.zeros(n, object)
    before = np.full(n, NONE)
    while True:
        offers = h[rows] + values
        best = np.minimum.reduceat(offers, first)
        lower = best < h
        if not lower.any():
            return None
        h = np.where(lower, best, h)
        places = np.flatnonzero(offers == best[columns])
        chosen = rows[places[np.searchsorted(places, first)]]
        before = np.where(lower, chosen, before)
        found = cycles(common_kind(d=weights), weights, before)
        if found:
            return found[0].node

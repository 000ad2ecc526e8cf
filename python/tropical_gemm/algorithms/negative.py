"""Graphs with negative cycles, and negative weights that round. In host memory: these are rare."""

from typing import Any

import numpy as np

from .. import _core
from .._arrays import common_kind
from . import ranges
from .dense import Reading, Session, reachable

NONE = -9999


def nodes_on_cycles(weights: Any, reach: Any, tolerance: float, threads: "int | None") -> Any:
    """The nodes through which a closed walk of negative length leads, as a bool array.

    They are whole strongly connected components: who can reach a negative cycle and be reached from it can go
    there, round as often as needed, and back. Each component is closed by itself.
    """
    n = len(weights)
    mutual = reach & reach.T
    component = mutual.argmax(axis=1)
    found = np.zeros(n, bool)
    sizes = np.bincount(component, minlength=n)
    alone = np.flatnonzero(sizes[component] == 1)
    found[alone] = weights[alone, alone] < -tolerance
    session = Session(common_kind(d=weights), weights, threads)
    for first in np.flatnonzero(sizes > 1):
        nodes = np.flatnonzero(component == first)
        part = np.ascontiguousarray(weights[np.ix_(nodes, nodes)])
        part, _, _ = session.load(part, Reading("min_plus"))
        found[nodes] = session.close(part, None, "min_plus", tolerance, None) is not None
    return found


def ignoring_cycles(
    weights: Any, tolerance: float, want_predecessors: bool, threads: "int | None", progress: Any
) -> tuple[Any, Any]:
    """Distances and predecessors; -inf (or the lowest integer) and -9999 where a negative cycle can be used.

    ``weights`` has inf, or the highest integer, where there is no edge. Pairs that no negative cycle touches
    use no node on one, so that they are those of the graph without these nodes.
    """
    low, high = ranges.extremes(weights.dtype.name)
    reach = reachable(weights != high, threads)
    bad = nodes_on_cycles(weights, reach, tolerance, threads)
    rest = weights.copy()
    rest[bad, :] = high
    rest[:, bad] = high
    session = Session(common_kind(d=rest), rest, threads)
    distances, before, _ = session.load(rest, Reading("min_plus"), pred=want_predecessors)
    session.close(distances, before, "min_plus", tolerance, progress)
    if bad.any():
        into, out = np.ascontiguousarray(reach[:, bad]), np.ascontiguousarray(reach[bad, :])
        touched = _core.matmul(into, out, (True, False), "or_and", False, 0, threads, None)
        distances[touched] = low
        if before is not None:
            before[touched] = NONE
    return distances, before


def settle_predecessors(weights: Any, distances: Any, before: Any, sources: "list[int] | None" = None) -> Any:
    """Predecessors that lead back to their source in every row.

    With exact sums, or weights that are not negative, they do so anyway. Where negative floats round, a cycle of
    length about 0 may seem to shorten a path: such a row gets the fewest steps along edges that are on shortest
    paths up to rounding.
    """
    rows, n = before.shape
    fixed = before
    for first in range(0, rows, max(1, 2**22 // n)):
        part = before[first : first + max(1, 2**22 // n)]
        end = np.where(part < 0, np.arange(n, dtype=part.dtype), part)
        for _ in range(max(1, (n - 1).bit_length())):
            end = np.take_along_axis(end, end, axis=1)
        for i in np.flatnonzero((before[first : first + len(part)] >= 0).any(axis=1)):
            row = first + int(i)
            source = sources[row] if sources is not None else row
            if (end[i][part[i] >= 0] != source).any():
                if fixed is before:
                    fixed = before.copy()
                fixed[row] = _fewest_steps(weights, distances[row], source)
    return fixed


def _fewest_steps(weights: Any, distances: Any, source: int) -> Any:
    finite = np.isfinite(distances)
    slack_unit = np.finfo(distances.dtype).eps * max(np.abs(distances[finite]).max(), _largest(weights))
    allowed = 4 * slack_unit
    while True:
        before = np.full(len(distances), NONE, np.int32)
        seen = np.zeros(len(distances), bool)
        seen[source] = True
        front = np.array([source])
        while len(front):
            with np.errstate(invalid="ignore"):
                slack = distances[front][:, None] + weights[front] - distances[None, :]
                tight = (slack <= allowed) & ~seen & finite
            new = np.flatnonzero(tight.any(axis=0))
            before[new] = front[tight[:, new].argmax(axis=0)]
            seen[new] = True
            front = new
        if seen[finite].all():
            return before
        allowed *= 4


def _largest(weights: Any) -> float:
    return float(np.abs(weights[np.isfinite(weights)]).max(initial=0.0))

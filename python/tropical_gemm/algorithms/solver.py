"""Shortest paths through a graph that is given as a matrix."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _core
from .._arrays import Kind, common_kind
from . import memory, negative, ranges, sparse
from .crossover import Problem
from .dense import Facts, Reading, Session, contiguous, reachable, refuse_strange
from .errors import NegativeCycleError, NegativeEdgeError
from .host import dtype_name, from_numpy, rows_of, to_numpy
from .potentials import NEGATIVE_CYCLE, shift

_EXPECTED = "weights above -infinity, and inf (or the highest integer, or no_edge) where there is no edge"
_SMALL = 4096
"""Nodes below which a closure is the fastest for all pairs, whatever the density."""


@dataclass
class Wishes:
    """What the caller of shortest_path asked for."""

    method: str
    directed: bool
    predecessors: bool
    unweighted: bool
    overwrite: bool
    ignore_cycles: bool
    report: Any
    threads: "int | None"
    stream: Any
    warning: str = ""


Sources = tuple[list[int], bool]
"""Nodes, and whether it is a single one whose row is wanted without an axis for it."""


class Solver:
    """One graph and one call. Distances and predecessors are arrays of the caller's kind."""

    def __init__(
        self, kind: Kind, csgraph: Any, reading: Reading, sources: "Sources | None", wishes: Wishes
    ) -> None:
        self.kind, self.csgraph, self.reading = kind, csgraph, reading
        self.n, self.dtype = int(csgraph.shape[0]), dtype_name(csgraph)
        self.sources, self.wishes = sources, wishes
        self.rows = self.n if sources is None else len(sources[0])
        self.source = kind.operand(csgraph, "csgraph")
        self.session = Session(kind, self.source, wishes.threads, wishes.stream)
        self.memory = memory.Estimate(self.n, self.dtype, wishes.predecessors, kind, self.source)

    def solve(self) -> tuple[Any, Any]:
        wishes = self.wishes
        self.in_place = wishes.overwrite and self.sources is None and contiguous(self.kind, self.csgraph)
        self.memory.check_results(self.rows, self.in_place)
        if wishes.method == "FW" and not self.in_place:
            return self._closed(None)
        # A look first: at what may be overwritten, and at how many edges there are.
        if not self.in_place and wishes.method == "auto" and self.sources is None and self.n < _SMALL:
            return self._closed(None)
        _, _, facts = self.session.load(self.source, self.reading, to=False)
        self._check(facts)
        method = self._method(facts)
        if method == "D":
            return self._by_dijkstra(facts)
        if method == "BF":
            found = self._from_sources(facts)
            if found is not None:
                return found
        return self._closed(facts)

    def _method(self, facts: Facts) -> str:
        method = self.wishes.method
        if method == "D":
            if facts.negative_at is not None:
                no_dijkstra(facts.negative_at)
            if self._on_device():
                raise ValueError(
                    "method is 'D', SciPy's Dijkstra, and csgraph is on a GPU; expected 'FW' or 'BF'"
                )
            return method
        if method == "auto":
            allowed = facts.negative_at is None and not self._on_device() and sparse.have_dijkstra()
            return self._problem(facts).fastest(dijkstra_allowed=allowed and self._exact(facts))
        return method

    def _problem(self, facts: Facts) -> Problem:
        threads = self.wishes.threads or int(_core.info()["threads"])
        wide = self.dtype.endswith("64")
        return Problem(self.n, self._edges(facts), self.rows, threads, wide, self._on_device())

    def _edges(self, facts: Facts) -> int:
        return max(self.n * (self.n - 1) - facts.absent, 0)

    def _on_device(self) -> bool:
        return self.kind.device(self.source) is not None

    def _exact(self, facts: Facts) -> bool:
        return self.dtype.startswith("float") or facts.magnitude * self.n < 2.0**53

    def _safe(self, facts: Facts) -> bool:
        return ranges.is_safe("min_plus", self.dtype, facts.magnitude, self.n)

    def _shifts(self, facts: Facts) -> bool:
        return facts.negative_at is not None and self.dtype.startswith("float")

    def _check(self, facts: Facts) -> None:
        refuse_strange(facts, "csgraph", _EXPECTED)
        pairs = self.n * (self.n - 1)
        if pairs and facts.absent == 0 and facts.zeros > pairs / 2 and self.reading.no_edge is None:
            self.wishes.warning = (
                f"{facts.zeros} of {pairs} entries of csgraph off the diagonal are 0 and none is inf: each "
                "of them is an edge of length 0; if 0 means that there is no edge, pass no_edge=0"
            )

    # All pairs.

    def _closed(self, facts: "Facts | None") -> tuple[Any, Any]:
        wishes = self.wishes
        if facts is not None and facts.negative_at is not None:
            # The weights may be needed again, to find negative cycles.
            keeps = wishes.ignore_cycles or self._shifts(facts) or not self._safe(facts)
            self.in_place = self.in_place and not keeps
        self.memory.check_results(self.n, self.in_place)
        to = self.kind.output(self.csgraph, "csgraph") if self.in_place else True
        made, before, facts = self.session.load(self.source, self.reading, to=to, pred=wishes.predecessors)
        if not self.in_place:
            self._check(facts)
        if self._shifts(facts) and not self._computes_here():
            return self._on_host()
        edges = None if self._safe(facts) else self._edge_matrix(made)
        try:
            distances, before = self._close(made, before, facts)
            if edges is not None:
                self._check_range(distances, edges, facts)
        except NegativeCycleError:
            if not wishes.ignore_cycles:
                raise
            return self._ignoring()
        return self._selected(distances), self._selected(before)

    def _close(self, made: Any, before: Any, facts: Facts) -> tuple[Any, Any]:
        """The closure of what ``load`` made, as arrays of the caller's kind."""
        if self._shifts(facts):
            self.memory.check_shift()
        distances, before = closed(self.session, made, before, facts, self.wishes.report)
        if self.in_place:
            self.kind.written(self.csgraph)
            distances = self.csgraph
        return distances, before

    def _computes_here(self) -> bool:
        """Whether the library of the arrays has the float64 that negative floats are shifted in."""
        return self.kind.library in ("numpy", "torch", "cupy")

    def _edge_matrix(self, made: Any) -> Any:
        matrix = to_numpy(self.kind, self.kind.result(made))
        return matrix != ranges.extremes(self.dtype)[1]

    def _check_range(self, distances: Any, edges: Any, facts: Facts, sources: Any = None) -> None:
        values = to_numpy(self.kind, distances)
        if not ranges.any_beyond(values):
            return
        try:
            ranges.check("min_plus", self.dtype, values, reachable(edges, self.wishes.threads), sources)
        except OverflowError:
            # A sum on the way round a negative cycle may have left the range as well.
            node = None
            if facts.negative_at is not None and self.dtype.startswith("int"):
                node = negative.node_on_cycle(self._weights(), self.wishes.threads)
            if node is None:
                raise
            raise NegativeCycleError(NEGATIVE_CYCLE, node) from None

    def _weights(self) -> Any:
        """The edges in host memory, as a closure reads them but for the diagonal."""
        made, _, _ = self.session.load(self.source, replace(self.reading, reflexive=False))
        return np.array(to_numpy(self.kind, self.kind.result(made)))

    def _ignoring(self) -> tuple[Any, Any]:
        """In host memory."""
        weights, wishes = self._weights(), self.wishes

        def close(rest: Any) -> tuple[Any, Any]:
            session = Session(common_kind(d=rest), rest, wishes.threads)
            made, before, facts = session.load(rest, Reading("min_plus"), pred=wishes.predecessors)
            return closed(session, made, before, facts, wishes.report)

        found = negative.ignoring_cycles(weights, close, wishes.threads)
        distances, before = (None if x is None else from_numpy(self.kind, x, self.csgraph) for x in found)
        return self._selected(distances), self._selected(before)

    def _on_host(self) -> tuple[Any, Any]:
        weights = self._weights()
        kind, reading = common_kind(d=weights), Reading("min_plus")
        wishes = replace(self.wishes, overwrite=False, stream=None)
        found = Solver(kind, weights, reading, self.sources, wishes).solve()
        distances, before = (None if x is None else from_numpy(self.kind, x, self.csgraph) for x in found)
        return distances, before

    def _selected(self, x: Any) -> Any:
        if x is None or self.sources is None:
            return x
        nodes, single = self.sources
        return rows_of(self.kind, x, nodes[0] if single else nodes)

    # Some rows.

    def _from_sources(self, facts: Facts) -> "tuple[Any, Any] | None":
        """By products; None where they do not come to rest soon, or at all: a closure then says why."""
        wishes, kind, reading = self.wishes, self.kind, self.reading
        nodes, single = self.sources or (list(range(self.n)), False)
        if not nodes:
            return None
        w, shifted = self.source, None
        if self._shifts(facts) and not self._computes_here():
            return self._on_host()
        if reading.no_edge is not None or reading.undirected or reading.unweighted or self._shifts(facts):
            self.memory.check_results(self.n, False)
            w, _, _ = self.session.load(self.source, reading)
        edges = None if self._safe(facts) else self._weights() != ranges.extremes(self.dtype)[1]
        if self._shifts(facts):
            self.memory.check_shift()
            try:
                shifted = shift(self.session, kind.result(w), facts.magnitude)
            except NegativeCycleError:
                if not wishes.ignore_cycles:
                    raise
                return None
            w = kind.operand(shifted.weights, "csgraph")
        # A row that starts everywhere finds every negative cycle of integers, as a closure does.
        everywhere = facts.negative_at is not None and shifted is None
        limit = self.n + 1 if wishes.method == "BF" else self._problem(facts).product_limit()
        made, pred, settled = self.session.paths_from(
            w, [*nodes, -1] if everywhere else nodes, wishes.predecessors, limit, wishes.report
        )
        if not settled:
            return None
        distances, before = kind.result(made), None if pred is None else kind.result(pred)
        if everywhere:
            # At the lowest integer everything comes to rest, negative cycles too.
            if (to_numpy(kind, distances) == ranges.extremes(self.dtype)[0]).any():
                return None
            distances = distances[: len(nodes)]
            before = None if before is None else before[: len(nodes)]
        if shifted is not None:
            distances = shifted.undo(distances, nodes)
        if edges is not None:
            self._check_range(distances, edges, facts, nodes)
        if single:
            return distances[0], None if before is None else before[0]
        return distances, before

    def _by_dijkstra(self, facts: Facts) -> tuple[Any, Any]:
        if not self._exact(facts):
            no_doubles()
        memory.check_dijkstra(self.n, self.rows, self._edges(facts), self.dtype, self.wishes.predecessors)
        made, _, _ = self.session.load(self.source, self.reading)
        edges = sparse.edges_of_dense(to_numpy(self.kind, self.kind.result(made)))
        distances, before = by_dijkstra(edges, self.sources, self.wishes)
        if before is not None:
            before = from_numpy(self.kind, before, self.csgraph)
        if not self.in_place:
            return from_numpy(self.kind, distances, self.csgraph), before
        to_numpy(self.kind, self.csgraph)[...] = distances
        self.kind.written(self.csgraph)
        return self.csgraph, before


def closed(session: Session, made: Any, before: Any, facts: Facts, report: Any) -> tuple[Any, Any]:
    """The closure of what ``session`` loaded, as arrays of its kind."""
    kind, shifted = session.kind, None
    if facts.negative_at is not None and dtype_name(session.like).startswith("float"):
        shifted = shift(session, kind.result(made), facts.magnitude)
        made = kind.operand(shifted.weights, "csgraph")
    node = session.close(made, before, "min_plus", 0.0, report)
    if node is not None:
        raise NegativeCycleError(NEGATIVE_CYCLE, node)
    distances = kind.result(made) if shifted is None else shifted.undo(shifted.weights)
    return distances, None if before is None else kind.result(before)


def by_dijkstra(edges: sparse.Edges, sources: "Sources | None", wishes: Wishes) -> tuple[Any, Any]:
    nodes = None if sources is None else sources[0]
    distances, before = sparse.dijkstra(edges, wishes.directed, nodes, wishes.predecessors, wishes.report)
    if sources is not None and sources[1]:
        return distances[0], None if before is None else before[0]
    return distances, before


def no_dijkstra(at: tuple[int, int]) -> None:
    raise NegativeEdgeError(
        "method is 'D', Dijkstra's, and csgraph is negative at ({}, {}); expected 'FW', 'BF' or 'auto'", *at
    )


def no_doubles() -> None:
    raise OverflowError(
        "csgraph has integers whose sums float64, in which SciPy's Dijkstra computes, does not hold; "
        "use another method"
    )

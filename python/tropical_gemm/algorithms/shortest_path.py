"""Shortest paths between all pairs, or from some nodes, by SciPy's call."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _core
from .._arrays import Kind, common_kind
from . import checks, negative, ranges, sparse
from .crossover import Problem
from .dense import Facts, Reading, Session, contiguous, reachable, refuse_strange
from .errors import NegativeCycleError
from .host import as_float32, dtype_name, from_numpy, rows_of, to_numpy
from .potentials import shift
from .progress import reporting

_METHODS = ("auto", "FW", "BF", "D")
_EXPECTED = "weights above -infinity, and inf (or the highest integer, or no_edge) where there is no edge"


def shortest_path(
    csgraph: Any,
    method: str = "auto",
    directed: bool = True,
    return_predecessors: bool = False,
    unweighted: bool = False,
    overwrite: bool = False,
    indices: Any = None,
    *,
    no_edge: Any = None,
    negative_cycles: str = "raise",
    progress: Any = False,
    stream: Any = None,
    threads: int | None = None,
) -> Any:
    """Lengths of the shortest paths of a graph, between all pairs of nodes or from some of them.

    The arguments are those of :func:`scipy.sparse.csgraph.shortest_path`, by name and order.

    Parameters
    ----------
    csgraph
        The graph: entry ``[i, j]`` is the length of the edge from i to j. An array (n, n) of float32,
        float64, int32, int64 or bool (an unweighted graph; True is an edge) of NumPy, PyTorch, CuPy, JAX or
        another library that speaks DLPack, in host memory or on a GPU. Or a sparse matrix or array of
        SciPy's, whose stored elements are the edges, explicit zeros too; of parallel edges the shortest
        counts.
    method
        ``"FW"``: blocked Floyd-Warshall. ``"BF"``: products of the rows of ``indices`` with the matrix
        until nothing changes (Bellman-Ford). ``"D"``: SciPy's Dijkstra, for weights that are not negative
        and arrays in host memory. ``"auto"``: the fastest of them by the measured table of
        docs/performance.md.
    directed
        False: edges can be used both ways; of ``[i, j]`` and ``[j, i]`` the shorter one counts.
    return_predecessors
        Return ``(distances, predecessors)``.
    unweighted
        Each edge has length 1.
    overwrite
        The distances may be written to ``csgraph``. They are if it is a row-major NumPy, CuPy or torch array,
        all pairs are wanted by ``"FW"``, and its weights are not needed any more.
    indices
        The sources: None for all nodes, an int, or a sequence of ints. Negative ones count from the end.
    no_edge
        In dense arrays, a value that stands for a missing edge, besides inf, for integers the dtype's
        maximum; ``no_edge=0`` is SciPy's reading of dense arrays. Zero weights are edges otherwise.
    negative_cycles
        ``"raise"`` a :class:`NegativeCycleError`, or ``"ignore"``: pairs between which a negative cycle can
        be used have -inf (integers: the dtype's minimum) and predecessor -9999, all others are exact. Where
        there is such a cycle, this computes in host memory.
    progress
        True draws a bar on stderr; a function is called with (done, total), from this thread, now and then.
        What it raises ends the call, as Ctrl-C does.
    stream, threads
        As for :func:`matmul`.

    Returns
    -------
    distances
        (n, n), (s, n) for s ``indices``, or (n,) for one: of the kind and dtype of ``csgraph`` (float32 for
        bool; NumPy for sparse ones). Unreachable nodes have inf, for integers the dtype's maximum. Integers
        are exact; floats are within n roundings of the length of a shortest path, or, where weights are
        negative, of the largest potential that they were shifted by.
    predecessors
        int32, of the same shape: the node before j on a shortest path from i, -9999 for i itself and where
        there is no path. They always lead back to i (see :func:`reconstruct_path`), also along edges of
        length 0; among paths of one length they may be others than SciPy's.

    Raises
    ------
    TypeError
        For objects that are no arrays, other dtypes, and arguments of a wrong type.
    ValueError
        For matrices that are not square, NaN and -inf (naming their place), nodes that do not exist, unknown
        methods, and ``"D"`` where a weight is negative.
    NegativeCycleError
        A ValueError; ``node`` lies on such a cycle. For floats a cycle of k edges counts as negative when
        its length is below -4 k eps s, where eps is the distance from 1 to the next float, and s the
        largest weight or the largest length, negative, of a shortest path from anywhere.
    OverflowError
        Where the length of a path does not fit the dtype.
    MemoryError
        Before anything is computed, where n x n matrices do not fit into memory.

    Warns
    -----
    UserWarning
        Where most of a dense matrix is 0 and nothing in it is "no edge": these zeros are edges of length 0.

    Examples
    --------
    >>> import numpy as np
    >>> import tropical_gemm as tg
    >>> inf = np.inf
    >>> lengths = np.array([[inf, 1.0, 5.0], [inf, inf, 1.0], [2.0, inf, inf]])
    >>> tg.shortest_path(lengths)
    array([[0., 1., 2.],
           [3., 0., 1.],
           [2., 3., 0.]])
    >>> tg.shortest_path(lengths, indices=0, return_predecessors=True)
    (array([0., 1., 2.]), array([-9999,     0,     1], dtype=int32))
    """
    wishes = _Wishes(
        checks.choice(method, "method", _METHODS),
        checks.flag(directed, "directed"),
        checks.flag(return_predecessors, "return_predecessors"),
        checks.flag(unweighted, "unweighted"),
        checks.flag(overwrite, "overwrite"),
        checks.choice(negative_cycles, "negative_cycles", ("raise", "ignore")) == "ignore",
        None,
        threads,
        stream,
    )
    with reporting(progress, "shortest paths") as report:
        wishes.report = report
        if sparse.is_sparse(csgraph):
            distances, before = _of_sparse(csgraph, indices, no_edge, wishes)
        else:
            distances, before = _of_dense(csgraph, indices, no_edge, wishes)
    if wishes.warning:
        warnings.warn(wishes.warning, UserWarning, stacklevel=2)
    return (distances, before) if wishes.predecessors else distances


shortest_paths = shortest_path


@dataclass
class _Wishes:
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


def _of_sparse(csgraph: Any, indices: Any, no_edge: Any, wishes: _Wishes) -> tuple[Any, Any]:
    dtype = csgraph.dtype.name
    if dtype not in checks.GRAPH_DTYPES:
        raise TypeError(f"csgraph has dtype {dtype}, expected one of {', '.join(checks.GRAPH_DTYPES)}")
    checks.no_edge_bytes(no_edge, dtype if dtype != "bool" else "float32")
    edges = sparse.edges_of(csgraph, no_edge, wishes.unweighted)
    sources = checks.sources_of(indices, edges.nodes)
    if wishes.method == "D" and edges.negative:
        at = int(edges.weights.argmin())
        _no_dijkstra((int(edges.rows[at]), int(edges.columns[at])))
    if not edges.negative and sparse.exact_in_double(edges):
        threads = wishes.threads or int(_core.info()["threads"])
        problem = Problem(
            edges.nodes,
            len(edges.rows) * (1 if wishes.directed else 2),
            edges.nodes if sources is None else len(sources[0]),
            threads,
            edges.weights.itemsize == 8,
            on_cuda=False,
            reached=sparse.reached(edges),
        )
        if wishes.method == "D" or (
            wishes.method == "auto" and problem.fastest(dijkstra_allowed=sparse.have_dijkstra()) == "D"
        ):
            rows = edges.nodes if sources is None else len(sources[0])
            _check_results(edges.nodes, rows, 8 + edges.weights.itemsize + 8, None, None)
            return _by_dijkstra(edges, sources, wishes)
    elif wishes.method == "D":
        raise OverflowError(
            "csgraph has integers whose sums float64, in which SciPy's Dijkstra computes, does not hold; "
            "use another method"
        )
    checks.check_memory(
        edges.nodes,
        edges.nodes**2 * edges.weights.itemsize,
        checks.available_memory(_numpy_kind(), None),
        "pass indices= and method='D' to compute some rows on the sparse graph itself",
    )
    # The dense matrix is ours.
    wishes.overwrite = wishes.overwrite or not wishes.ignore_cycles
    wishes.unweighted = False
    return _of_dense(sparse.dense(edges), indices, None, wishes)


def _of_dense(csgraph: Any, indices: Any, no_edge: Any, wishes: _Wishes) -> tuple[Any, Any]:
    kind = common_kind(csgraph=csgraph)
    n = checks.nodes_of(csgraph, "csgraph")
    dtype = dtype_name(csgraph)
    if dtype not in checks.GRAPH_DTYPES:
        raise TypeError(f"csgraph has dtype {dtype}, expected one of {', '.join(checks.GRAPH_DTYPES)}")
    if dtype == "bool":
        csgraph, dtype, no_edge = as_float32(kind, kind.operand(csgraph, "csgraph")), "float32", 0
        wishes.unweighted, wishes.overwrite = True, True
    reading = Reading(
        "min_plus", checks.no_edge_bytes(no_edge, dtype), not wishes.directed, wishes.unweighted
    )
    solver = _Dense(kind, csgraph, n, dtype, reading, checks.sources_of(indices, n), wishes)
    return solver.solve()


class _Dense:
    """Paths through a graph that is given as a matrix."""

    def __init__(
        self,
        kind: Kind,
        csgraph: Any,
        n: int,
        dtype: str,
        reading: Reading,
        sources: "tuple[list[int], bool] | None",
        wishes: _Wishes,
    ) -> None:
        self.kind, self.csgraph, self.n, self.dtype = kind, csgraph, n, dtype
        self.reading, self.sources, self.wishes = reading, sources, wishes
        self.source = kind.operand(csgraph, "csgraph")
        self.session = Session(kind, self.source, wishes.threads, wishes.stream)

    def solve(self) -> tuple[Any, Any]:
        wishes = self.wishes
        self.in_place = wishes.overwrite and self.sources is None and contiguous(self.kind, self.csgraph)
        self._check_memory(self.n if self.sources is None else len(self.sources[0]))
        if wishes.method in ("FW",) and not self.in_place:
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
                _no_dijkstra(facts.negative_at)
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
        edges = max(self.n * (self.n - 1) - facts.absent, 0)
        sources = self.n if self.sources is None else len(self.sources[0])
        threads = self.wishes.threads or int(_core.info()["threads"])
        return Problem(self.n, edges, sources, threads, self.dtype.endswith("64"), self._on_device())

    def _on_device(self) -> bool:
        return self.kind.device(self.source) is not None

    def _exact(self, facts: Facts) -> bool:
        return self.dtype.startswith("float") or facts.magnitude * self.n < 2.0**53

    def _check(self, facts: Facts) -> None:
        refuse_strange(facts, "csgraph", _EXPECTED)
        pairs = self.n * (self.n - 1)
        if pairs and facts.absent == 0 and facts.zeros > pairs / 2 and self.reading.no_edge is None:
            self.wishes.warning = (
                f"{facts.zeros} of {pairs} entries of csgraph off the diagonal are 0 and none is inf: each "
                "of them is an edge of length 0; if 0 means that there is no edge, pass no_edge=0"
            )

    def _check_memory(self, rows: int) -> None:
        item = 8 if self.dtype.endswith("64") else 4
        each = (0 if self.in_place else item) + (4 if self.wishes.predecessors else 0)
        _check_results(self.n, rows, each, self.kind, self.source)

    # All pairs.

    def _closed(self, facts: "Facts | None") -> tuple[Any, Any]:
        wishes = self.wishes
        if facts is not None and facts.negative_at is not None:
            self.in_place = self.in_place and not wishes.ignore_cycles and not self._shifts(facts)
        self._check_memory(self.n)
        to = self.kind.output(self.csgraph, "csgraph") if self.in_place else True
        made, before, facts = self.session.load(self.source, self.reading, to=to, pred=wishes.predecessors)
        if not self.in_place:
            self._check(facts)
        safe = ranges.is_safe("min_plus", self.dtype, facts.magnitude, self.n)
        reach = None if safe else self._reach(made)
        try:
            distances, before = self._close(made, before, facts)
        except NegativeCycleError:
            if not wishes.ignore_cycles:
                raise
            return self._ignoring(facts)
        if reach is not None:
            ranges.check("min_plus", self.dtype, to_numpy(self.kind, distances), reach)
        return self._selected(distances), self._selected(before)

    def _close(self, made: Any, before: Any, facts: Facts) -> tuple[Any, Any]:
        """The closure of what ``load`` made, as arrays of the caller's kind."""
        kind, report = self.kind, self.wishes.report
        shifted = None
        if self._shifts(facts):
            shifted = shift(self.session, kind.result(made), made, self.dtype, facts.magnitude)
            made, before, _ = self.session.load(
                kind.operand(shifted.weights, "csgraph"), Reading("min_plus"), pred=before is not None
            )
        node = self.session.close(made, before, "min_plus", 0.0, report)
        if self.in_place:
            kind.written(self.csgraph)
        if node is not None:
            raise NegativeCycleError(f"csgraph has a cycle of negative length through node {node}", node)
        distances = self.csgraph if self.in_place else kind.result(made)
        if shifted is not None:
            distances = shifted.undo(distances)
        return distances, None if before is None else kind.result(before)

    def _shifts(self, facts: Facts) -> bool:
        return facts.negative_at is not None and self.dtype.startswith("float")

    def _reach(self, made: Any) -> Any:
        matrix = to_numpy(self.kind, self.kind.result(made))
        return reachable(matrix != ranges.extremes(self.dtype)[1], self.wishes.threads)

    def _weights(self) -> Any:
        """The edges in host memory, as a closure reads them but for the diagonal."""
        made, _, _ = self.session.load(self.source, replace(self.reading, reflexive=False))
        return np.array(to_numpy(self.kind, self.kind.result(made)))

    def _ignoring(self, facts: Facts) -> tuple[Any, Any]:
        wishes = self.wishes
        distances, before = negative.ignoring_cycles(
            self._weights(), facts.magnitude, wishes.predecessors, wishes.threads, wishes.report
        )
        found = [None if x is None else from_numpy(self.kind, x, self.csgraph) for x in (distances, before)]
        return self._selected(found[0]), self._selected(found[1])

    def _selected(self, x: Any) -> Any:
        if x is None or self.sources is None:
            return x
        nodes, single = self.sources
        return rows_of(self.kind, x, nodes[0] if single else nodes)

    # Some rows.

    def _from_sources(self, facts: Facts) -> "tuple[Any, Any] | None":
        """By products; None where they do not come to rest soon, or at all: a closure then says why."""
        wishes, kind = self.wishes, self.kind
        nodes, single = self.sources or (list(range(self.n)), False)
        if not nodes:
            return None
        reading = self.reading
        w, shifted = self.source, None
        if reading.no_edge is not None or reading.undirected or reading.unweighted or self._shifts(facts):
            self._check_memory(self.n)
            w, _, _ = self.session.load(self.source, reading)
        if self._shifts(facts):
            try:
                shifted = shift(self.session, kind.result(w), w, self.dtype, facts.magnitude)
            except NegativeCycleError:
                if not wishes.ignore_cycles:
                    raise
                return None
            w = kind.operand(shifted.weights, "csgraph")
        # A row that starts everywhere finds every negative cycle, as a closure does.
        everywhere = facts.negative_at is not None and shifted is None
        limit = self.n + 1 if wishes.method == "BF" else self._problem(facts).product_limit()
        made, before, settled = self.session.paths_from(
            w, [*nodes, -1] if everywhere else nodes, wishes.predecessors, limit, wishes.report
        )
        if not settled:
            return None
        distances = kind.result(made)
        before = None if before is None else kind.result(before)
        safe = ranges.is_safe("min_plus", self.dtype, facts.magnitude, self.n)
        if everywhere and self.dtype.startswith("int"):
            # At the lowest integer everything comes to rest, negative cycles too.
            lowest = ranges.extremes(self.dtype)[0]
            if (to_numpy(kind, distances) == lowest).any():
                return None
        if everywhere:
            distances = distances[: len(nodes)]
            before = None if before is None else before[: len(nodes)]
        if shifted is not None:
            distances = shifted.undo(distances, nodes)
        if not safe:
            reach = reachable(self._weights() != ranges.extremes(self.dtype)[1], wishes.threads)
            ranges.check("min_plus", self.dtype, to_numpy(kind, distances), reach[nodes])
        if single:
            return distances[0], None if before is None else before[0]
        return distances, before

    def _by_dijkstra(self, facts: Facts) -> tuple[Any, Any]:
        rows = self.n if self.sources is None else len(self.sources[0])
        _check_results(self.n, rows, 24, None, None)
        made, _, _ = self.session.load(self.source, self.reading)
        edges = sparse.edges_of_dense(to_numpy(self.kind, self.kind.result(made)))
        if not self._exact(facts):
            raise OverflowError(
                "csgraph has integers whose sums float64, in which SciPy's Dijkstra computes, does not hold; "
                "use another method"
            )
        distances, before = _by_dijkstra(edges, self.sources, self.wishes)
        if self.in_place:
            to_numpy(self.kind, self.csgraph)[...] = distances
            self.kind.written(self.csgraph)
        else:
            distances = from_numpy(self.kind, distances, self.csgraph)
        result = self.csgraph if self.in_place else distances
        return result, None if before is None else from_numpy(self.kind, before, self.csgraph)


_SMALL = 4096
"""Nodes below which a closure is the fastest for all pairs, whatever the density."""


def _by_dijkstra(
    edges: sparse.Edges, sources: "tuple[list[int], bool] | None", wishes: _Wishes
) -> tuple[Any, Any]:
    nodes = None if sources is None else sources[0]
    distances, before = sparse.dijkstra(edges, wishes.directed, nodes, wishes.predecessors, wishes.report)
    if sources is not None and sources[1]:
        return distances[0], None if before is None else before[0]
    return distances, before


def _no_dijkstra(at: tuple[int, int]) -> None:
    raise ValueError(
        f"method is 'D', Dijkstra's, and csgraph is negative at {at}; expected 'FW', 'BF' or 'auto'"
    )


def _numpy_kind() -> Kind:
    return common_kind(a=np.empty(0))


def _check_results(n: int, rows: int, each: int, kind: "Kind | None", like: Any) -> None:
    available = checks.available_memory(kind or _numpy_kind(), like)
    alternative = "pass indices= for some rows, use a smaller dtype, or pass overwrite=True"
    checks.check_memory(n, n * rows * each, available, alternative)

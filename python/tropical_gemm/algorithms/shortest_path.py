"""Shortest paths between all pairs, or from some nodes, by SciPy's call."""

import warnings
from typing import Any

from .. import _core
from .._arrays import common_kind, no_stream
from . import checks, memory, sparse
from .crossover import Problem
from .dense import Reading
from .host import as_dtype, dtype_name
from .progress import reporting
from .solver import Solver, Wishes, by_dijkstra, no_dijkstra, no_doubles

_METHODS = ("auto", "FW", "BF", "D")


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
        are exact. Floats are within n roundings of the length of a shortest path; where weights are negative,
        within 4 n roundings of what the absolute values of weights along a path could sum up to, of the edges
        by which one can get from i to j: all others have no influence.
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
        A ValueError; ``node`` lies on such a cycle. Integers are decided exactly. For floats a cycle counts
        as negative when its length is below -4 eps a, where eps is the distance from 1 to the next float, and
        a the sum of the absolute values of its weights (for float64 below -4 eps (a + k h) where a potential
        h, the length of a shortest path to one of its k nodes, is far larger than they).
    OverflowError
        Where the length of a shortest path does not fit the dtype; with ``"ignore"``, of one that no negative
        cycle touches.
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
    checks.check_threads(threads)
    wishes = Wishes(
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


def _of_sparse(csgraph: Any, indices: Any, no_edge: Any, wishes: Wishes) -> tuple[Any, Any]:
    no_stream(wishes.stream)
    dtype = csgraph.dtype.name
    if dtype not in checks.GRAPH_DTYPES:
        raise TypeError(f"csgraph has dtype {dtype}, expected one of {', '.join(checks.GRAPH_DTYPES)}")
    checks.no_edge_bytes(no_edge, dtype if dtype != "bool" else "float32")
    edges = sparse.edges_of(csgraph, no_edge, wishes.unweighted)
    sources = checks.sources_of(indices, edges.nodes)
    if wishes.method == "D" and edges.negative:
        at = int(edges.weights.argmin())
        no_dijkstra((int(edges.rows[at]), int(edges.columns[at])))
    memory.check_dijkstra(edges.nodes, 1, len(edges.rows), dtype, wishes.predecessors)
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
            memory.check_dijkstra(edges.nodes, problem.sources, problem.edges, dtype, wishes.predecessors)
            return by_dijkstra(edges, sources, wishes)
    elif wishes.method == "D":
        no_doubles()
    memory.check_dense(edges.nodes, dtype)
    # The dense matrix is ours.
    wishes.overwrite = wishes.overwrite or not wishes.ignore_cycles
    wishes.unweighted = False
    found = _of_dense(sparse.dense(edges), indices, None, wishes)
    wishes.warning = ""  # zeros that are stored are meant
    return found


def _of_dense(csgraph: Any, indices: Any, no_edge: Any, wishes: Wishes) -> tuple[Any, Any]:
    kind = common_kind(csgraph=csgraph)
    n = checks.nodes_of(csgraph, "csgraph")
    dtype = dtype_name(csgraph)
    if dtype not in checks.GRAPH_DTYPES:
        raise TypeError(f"csgraph has dtype {dtype}, expected one of {', '.join(checks.GRAPH_DTYPES)}")
    if dtype == "bool":
        csgraph, dtype, no_edge = as_dtype(kind, kind.operand(csgraph, "csgraph"), "float32"), "float32", 0
        wishes.unweighted, wishes.overwrite = True, True
    reading = Reading(
        "min_plus", checks.no_edge_bytes(no_edge, dtype), not wishes.directed, wishes.unweighted
    )
    return Solver(kind, csgraph, reading, checks.sources_of(indices, n), wishes).solve()

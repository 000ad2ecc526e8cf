"""Shortest paths against plain Floyd-Warshall and SciPy; predecessors by walking every path."""

import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
import tropical_gemm as tg
from graphs import DATA, DTYPES, as_float, check_paths, floyd_warshall, needs_data, none, random_graph
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, coo_matrix, csc_array, csr_array, csr_matrix
from scipy.sparse.csgraph import dijkstra, johnson
from scipy.sparse.csgraph import shortest_path as scipy_shortest_path
from tropical_gemm.algorithms import checks
from tropical_gemm.algorithms.crossover import Problem


def as_coo(weights):
    rows, columns = np.nonzero(weights != none(weights.dtype))
    return coo_array((weights[rows, columns], (rows, columns)), shape=weights.shape)


@pytest.mark.filterwarnings("ignore:.*no_edge=0")
@given(
    seed=st.integers(0, 2**32),
    n=st.sampled_from([1, 2, 3, 7, 20, 64, 65, 90]),
    dtype=st.sampled_from(DTYPES),
    density=st.sampled_from([0.03, 0.2, 1.0]),
    high=st.sampled_from([1, 2, 6]),
    method=st.sampled_from(["auto", "FW", "BF", "D"]),
    directed=st.booleans(),
    sparse=st.booleans(),
)
def test_equals_floyd_warshall(seed, n, dtype, density, high, method, directed, sparse):
    """Weights from 0, all 0 where high is 1: ties everywhere, and cycles of length 0."""
    rng = np.random.default_rng(seed)
    weights = random_graph(rng, n, dtype, density, high)
    edges = weights if directed else np.minimum(weights, weights.T)
    expected = floyd_warshall(edges)
    graph = as_coo(weights) if sparse else weights
    before = weights.copy()
    distances, predecessors = tg.shortest_path(graph, method, directed, return_predecessors=True)
    assert distances.dtype == dtype
    np.testing.assert_array_equal(as_float(distances), expected)
    check_paths(edges, distances, predecessors)
    np.testing.assert_array_equal(weights, before)
    sources = rng.integers(-n, n, 3)
    rows, row_predecessors = tg.shortest_paths(
        graph, method, directed, return_predecessors=True, indices=sources
    )
    np.testing.assert_array_equal(as_float(rows), expected[sources])
    check_paths(edges, rows, row_predecessors, [int(s) % n for s in sources])
    one = tg.shortest_path(graph, method, directed, indices=int(sources[0]))
    np.testing.assert_array_equal(as_float(one), expected[sources[0]])


@given(seed=st.integers(0, 2**32), dtype=st.sampled_from(["float32", "float64"]), directed=st.booleans())
def test_rounded_sums_lead_back(seed, dtype, directed):
    """Weights of very different sizes and zeros, so that sums round and edges vanish beside long paths."""
    rng = np.random.default_rng(seed)
    n = 70
    weights = (10.0 ** rng.uniform(-5, 5, (n, n)) * (rng.random((n, n)) < 0.5)).astype(dtype)
    weights[rng.random((n, n)) < 0.8] = np.inf
    edges = weights if directed else np.minimum(weights, weights.T)
    expected = floyd_warshall(edges)
    for options in ({"method": "FW"}, {"method": "BF", "indices": np.arange(n)}):
        distances, predecessors = tg.shortest_path(
            weights, directed=directed, return_predecessors=True, **options
        )
        bound = n * np.finfo(dtype).eps * expected[np.isfinite(expected)].max()
        assert np.abs(distances[np.isfinite(expected)] - expected[np.isfinite(expected)]).max() <= bound
        check_paths(edges, distances, predecessors, tolerance=bound)


@given(seed=st.integers(0, 2**32), dtype=st.sampled_from(DTYPES))
def test_negative_weights(seed, dtype):
    """w + h(i) - h(j) has the closed walks of w, and many negative edges."""
    rng = np.random.default_rng(seed)
    n = 60
    weights = random_graph(rng, n, dtype, 0.2, 3)
    h = rng.integers(0, 20, n) if dtype[0] == "i" else rng.random(n) * 20
    present = weights != none(dtype)
    weights = np.where(
        present, (np.where(present, weights, 0) + h[:, None] - h[None, :]).astype(dtype), weights
    )
    expected = floyd_warshall(weights) if dtype[0] == "i" else None
    bound = 0.0 if dtype[0] == "i" else n * np.finfo(dtype).eps * 40
    for options in ({"method": "FW"}, {"method": "BF"}, {"indices": [3, 5]}, {"negative_cycles": "ignore"}):
        distances, predecessors = tg.shortest_path(weights, return_predecessors=True, **options)
        if expected is not None:
            np.testing.assert_array_equal(as_float(distances), expected[options.get("indices", slice(None))])
        check_paths(weights, distances, predecessors, options.get("indices"), 4 * bound)


@given(seed=st.integers(0, 2**32), dtype=st.sampled_from(["float64", "int32", "int64"]))
def test_negative_cycles(seed, dtype):
    rng = np.random.default_rng(seed)
    n = 30
    weights = random_graph(rng, n, dtype, 0.05, 9)
    ring = rng.permutation(n)[:3]
    for i, j in zip(ring, np.roll(ring, -1), strict=True):
        weights[i, j] = 1
    weights[ring[2], ring[0]] = -3
    weights[int(rng.integers(n)), int(rng.integers(n))] = -2
    for options in ({}, {"method": "BF"}, {"indices": 0}):
        with pytest.raises(tg.NegativeCycleError, match="node") as caught:
            tg.shortest_path(weights, **options)
        node = caught.value.node
        # It lies on a negative closed walk: the way to itself is negative within n steps.
        walk = as_float(weights)[node].copy()
        for _ in range(n):
            if walk[node] < 0:
                break
            walk = np.minimum(walk, (walk[:, None] + as_float(weights)).min(axis=0))
        assert walk[node] < 0
    # Affected: i reaches a node on a negative cycle that reaches j. 2n rounds of Bellman-Ford tell who they
    # are.
    w = as_float(weights)
    reach = np.isfinite(w) | np.eye(n, dtype=bool)
    for _ in range(n):
        reach = reach | (reach.astype(int) @ reach > 0)
    within = np.where(reach & reach.T, w, np.inf)
    potential = np.zeros(n)
    for _ in range(2 * n):
        potential = np.minimum(potential, (potential[:, None] + within).min(axis=0))
    loose = (potential[:, None] + within).min(axis=0) < potential
    bad = (reach & reach.T & loose[None, :]).any(axis=1)
    affected = (reach[:, bad].astype(int) @ reach[bad, :]) > 0
    clean = w.copy()
    clean[bad, :] = clean[:, bad] = np.inf
    expected = floyd_warshall(clean)
    distances, predecessors = tg.shortest_path(
        weights, negative_cycles="ignore", return_predecessors=True, indices=range(n)
    )
    lowest = -np.inf if dtype == "float64" else np.iinfo(dtype).min
    assert (distances[affected] == lowest).all()
    assert (predecessors[affected] == -9999).all()
    np.testing.assert_array_equal(as_float(distances)[~affected], expected[~affected])


def test_tolerance_of_floats():
    weights = np.full((3, 3), np.inf)
    weights[0, 1], weights[1, 2], weights[2, 0] = 0.1, 0.2, -0.3  # 0.1 + 0.2 > 0.3
    weights[1, 0] = -0.1
    distances, predecessors = tg.shortest_path(weights, return_predecessors=True)
    assert (np.diag(distances) == 0).all()
    check_paths(weights, distances, predecessors, tolerance=1e-15)
    weights[2, 0] = -0.3 - 1e-12
    with pytest.raises(tg.NegativeCycleError):
        tg.shortest_path(weights)


def test_cycles_that_round_to_nothing_lead_back():
    """Zero cycles of rounded edges both ways: every strict comparison may go round them."""
    rng = np.random.default_rng(5)
    for dtype in ("float32", "float64"):
        n = 50
        h = rng.random(n) * 7
        weights = (h[:, None] - h[None, :]).astype(dtype)
        distances, predecessors = tg.shortest_path(weights, return_predecessors=True)
        check_paths(weights, distances, predecessors, tolerance=n * np.finfo(dtype).eps * 7)


@given(seed=st.integers(0, 2**32), n=st.sampled_from([1, 10, 80]))
def test_unweighted_bool_and_scipy_readings(seed, n):
    rng = np.random.default_rng(seed)
    adjacency = rng.random((n, n)) < 2 / n
    for directed in (True, False):
        expected = scipy_shortest_path(adjacency.astype(float), unweighted=True, directed=directed)
        hops = tg.shortest_path(adjacency, directed=directed)
        assert hops.dtype == np.float32
        np.testing.assert_array_equal(hops, expected)
        weights = adjacency * rng.integers(1, 9, (n, n))
        np.testing.assert_array_equal(
            tg.shortest_path(weights.astype(float), no_edge=0, directed=directed),
            scipy_shortest_path(weights.astype(float), directed=directed),
        )
        np.testing.assert_array_equal(
            tg.shortest_path(csr_array(weights.astype(float)), unweighted=True, directed=directed), expected
        )


def test_parallel_edges_take_the_minimum():
    rows, columns, weights = [0, 0, 0, 1, 2], [1, 1, 1, 2, 1], [5, 2, 7, 0, 3]
    for make in (coo_array, coo_matrix, lambda *a, **k: coo_array(*a, **k)):
        graph = make((np.array(weights, np.int32), (rows, columns)), shape=(3, 3))
        for method in ("FW", "D"):
            assert tg.shortest_path(graph, method).tolist() == [
                [0, 2, 2], [none("int32"), 0, 0], [none("int32"), 3, 0]
            ]  # fmt: skip
    doubled = csr_matrix((np.array([4.0, 1.0]), np.array([1, 1]), np.array([0, 2, 2])), shape=(2, 2))
    assert tg.shortest_path(doubled)[0, 1] == 1
    assert tg.shortest_path(csc_array(np.array([[0, 3.0], [0, 0]])))[0, 1] == 3


def test_no_edge_and_infinities():
    weights = np.array([[0, -1, 4], [2, 0, -1], [-1, -1, 0]], np.int64)
    assert tg.shortest_path(weights, no_edge=-1).tolist() == [
        [0, none("int64"), 4],
        [2, 0, 6],
        [none("int64")] * 2 + [0],
    ]
    holes = np.array([[0, np.nan], [1.5, np.nan]])
    assert tg.shortest_path(holes, no_edge=np.nan).tolist() == [[0, np.inf], [1.5, 0]]
    with pytest.raises(ValueError, match=r"NaN at \(0, 1\)"):
        tg.shortest_path(holes)
    with pytest.raises(ValueError, match=r"nan at \(0, 1\)"):
        tg.shortest_path(coo_array(([np.nan], ([0], [1])), shape=(2, 2)))
    for bad in (np.array([[0, -np.inf], [1, 0]]), np.array([[0, np.iinfo("int32").min], [1, 0]], np.int32)):
        with pytest.raises(ValueError, match=r"\(0, 1\) is the infinity"):
            tg.shortest_path(bad)


def test_warns_of_zeros_that_are_edges():
    zeros = np.zeros((4, 4))
    zeros[0, 1] = 1
    with pytest.warns(UserWarning, match="no_edge=0") as seen:
        tg.shortest_path(zeros)
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tg.shortest_path(zeros, no_edge=0)[0, 1] == 1
        sparse = np.full((4, 4), np.inf)
        sparse[0, 1] = 0
        tg.shortest_path(sparse)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_overflow_is_an_error(dtype):
    big = 2.0**127 if dtype == "float32" else np.iinfo(dtype).max // 2 + 1
    weights = np.full((4, 4), none(dtype), dtype)
    weights[0, 1], weights[1, 2] = big, big
    for options in ({}, {"indices": 0, "method": "BF"}, {"method": "D"}, {"overwrite": True}):
        graph = weights.copy()
        if dtype == "int64" and options.get("method") == "D":
            continue
        with pytest.raises(OverflowError, match=dtype):
            tg.shortest_path(graph, **options)
    # In range again: the part on the way is not what counts.
    weights[2, 3], weights[0, 3] = 0, big
    weights[1, 2] = big / 2 if dtype == "float32" else big // 2
    assert tg.shortest_path(weights)[0, 2] == weights[0, 1] + weights[1, 2]


@pytest.mark.parametrize("order", ["C", "F"])
def test_overwrite(order):
    rng = np.random.default_rng(1)
    for dtype in DTYPES:
        weights = np.asarray(random_graph(rng, 40, dtype), order=order)
        expected = floyd_warshall(weights)
        got, _ = tg.shortest_path(weights, "FW", overwrite=True, return_predecessors=True)
        np.testing.assert_array_equal(as_float(got), expected)
        assert (got is weights) == (order == "C")
    bad = np.array([[0, np.nan], [1, 0]])
    with pytest.raises(ValueError, match="NaN"):
        tg.shortest_path(bad, overwrite=True)
    assert bad[1, 0] == 1


def test_strides_and_read_only():
    rng = np.random.default_rng(2)
    weights = random_graph(rng, 30, "float64")
    expected = floyd_warshall(weights)
    spread = np.full((60, 90), -5.0)
    spread[::2, ::3] = weights
    weights.flags.writeable = False
    for view in (weights, spread[::2, ::3], weights.T.copy().T, weights[::-1, ::-1].copy()[::-1, ::-1]):
        for options in ({}, {"indices": [4, 7]}, {"overwrite": True}):
            got = tg.shortest_path(view if view is weights else view.copy("K"), **options)
            np.testing.assert_array_equal(got, expected[options.get("indices", slice(None))])


def test_torch_and_jax():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    weights = random_graph(rng, 50, "float32")
    expected = floyd_warshall(weights)
    for options in ({}, {"indices": [1, 5], "method": "BF"}, {"indices": 3}, {"method": "D"}):
        d, p = tg.shortest_path(torch.from_numpy(weights), return_predecessors=True, **options)
        assert isinstance(d, torch.Tensor)
        assert p.dtype == torch.int32
        np.testing.assert_array_equal(d.numpy(), expected[options.get("indices", slice(None))])
    tensor = torch.from_numpy(weights.copy())
    assert tg.shortest_path(tensor, "FW", overwrite=True) is tensor
    assert tg.shortest_path(torch.from_numpy(weights < 3)).dtype == torch.float32
    jnp = pytest.importorskip("jax.numpy")
    for options in ({}, {"indices": [1, 5], "method": "BF"}, {"indices": 3, "method": "FW"}):
        d, p = tg.shortest_path(jnp.asarray(weights), return_predecessors=True, **options)
        assert isinstance(d, jnp.ndarray)
        np.testing.assert_array_equal(np.asarray(d), expected[options.get("indices", slice(None))])
    path = tg.reconstruct_path(0, 7, tg.shortest_path(jnp.asarray(weights), return_predecessors=True)[1])
    assert path[0] == 0


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (TypeError, "numpy.asarray", lambda: tg.shortest_path([[0, 1], [1, 0]])),
        (TypeError, "csgraph has dtype float16", lambda: tg.shortest_path(np.ones((2, 2), np.float16))),
        (TypeError, "csgraph has dtype uint8", lambda: tg.shortest_path(np.ones((2, 2), np.uint8))),
        (
            TypeError,
            "csgraph has dtype complex128",
            lambda: tg.shortest_path(csr_array(np.ones((2, 2), complex))),
        ),
        (ValueError, r"csgraph has shape \(2, 3\)", lambda: tg.shortest_path(np.ones((2, 3)))),
        (ValueError, r"csgraph has shape \(2, 3\)", lambda: tg.shortest_path(csr_array(np.ones((2, 3))))),
        (ValueError, "method is 'J', expected", lambda: tg.shortest_path(np.ones((2, 2)), "J")),
        (TypeError, "method is of type int", lambda: tg.shortest_path(np.ones((2, 2)), 3)),
        (TypeError, "directed is of type str", lambda: tg.shortest_path(np.ones((2, 2)), directed="no")),
        (ValueError, "indices holds 2, expected", lambda: tg.shortest_path(np.ones((2, 2)), indices=[0, 2])),
        (
            TypeError,
            "indices is an array of dtype float64",
            lambda: tg.shortest_path(np.ones((2, 2)), indices=0.5),
        ),
        (
            ValueError,
            "negative_cycles is 'keep'",
            lambda: tg.shortest_path(np.ones((2, 2)), negative_cycles="keep"),
        ),
        (ValueError, "no_edge is inf", lambda: tg.shortest_path(np.ones((2, 2), np.int32), no_edge=np.inf)),
        (TypeError, "no_edge is of type str", lambda: tg.shortest_path(np.ones((2, 2)), no_edge="0")),
        (TypeError, "progress is of type int", lambda: tg.shortest_path(np.ones((2, 2)), progress=3)),
        (ValueError, r"negative at \(0, 0\)", lambda: tg.shortest_path(-np.ones((2, 2)), "D")),
        (ValueError, r"negative at \(1, 0\)", lambda: tg.shortest_path(csr_array([[0, 1], [-1.0, 0]]), "D")),
        (ValueError, "target is 5", lambda: tg.reconstruct_path(0, 5, np.full((3, 3), -9999))),
        (TypeError, "source is of type float", lambda: tg.reconstruct_path(0.0, 1, np.full((3, 3), -9999))),
        (ValueError, "predecessors has shape", lambda: tg.reconstruct_path(0, 1, np.full((3, 4), -9999))),
        (TypeError, "predecessors has dtype", lambda: tg.reconstruct_path(0, 1, np.ones((3, 3)))),
        (ValueError, "not to 0", lambda: tg.reconstruct_path(0, 1, np.array([-9999, 2, 1]))),
    ],
)
def test_errors(error, text, call):
    with pytest.raises(error, match=text):
        call()


def test_memory_is_estimated_first(monkeypatch):
    monkeypatch.setattr(checks, "host_memory", lambda: (10**9, "of memory"))
    huge = np.broadcast_to(np.float32(1), (100_000, 100_000))
    with pytest.raises(MemoryError, match=r"n = 100000 nodes need 92\.0 GB.*1\.0 GB.*indices="):
        tg.shortest_path(huge, return_predecessors=True)
    with pytest.raises(MemoryError, match="n = 100000"):
        tg.shortest_path(csr_array((100_000, 100_000), dtype=np.float32), "FW")
    # What is needed besides the results counts: Dijkstra's sparse graph, and potentials in float64.
    edges = np.ones((1000, 1000), np.float32)
    monkeypatch.setattr(checks, "host_memory", lambda: (12_000_000, "of memory"))
    assert tg.shortest_path(edges).max() == 1
    with pytest.raises(MemoryError, match="n = 1000"):
        tg.shortest_path(edges, "D", indices=0)
    edges[0, 1] = -0.5
    with pytest.raises(MemoryError, match="n = 1000"):
        tg.shortest_path(edges)


def test_progress():
    weights = random_graph(np.random.default_rng(4), 300, "float32")
    seen = []
    tg.shortest_path(weights, "FW", progress=lambda done, total: seen.append((done, total)))
    assert seen
    assert seen[-1][0] == seen[-1][1]
    assert seen == sorted(seen)

    # SciPy's Dijkstra is run for some sources at a time.
    seen.clear()
    tg.shortest_path(weights, "D", progress=lambda done, total: seen.append((done, total)))
    assert seen[0] == (1, 300)
    assert seen[-1] == (300, 300)
    assert seen == sorted(seen)

    class StopHere(Exception):
        pass

    def stop(done, total):
        raise StopHere

    with pytest.raises(StopHere):
        tg.shortest_path(np.ones((3000, 3000), np.int64), "FW", progress=stop, threads=1)


LONG_CALLS = {
    "FW": """
weights = np.random.default_rng(0).random((6000, 6000))
call = lambda: tg.shortest_path(weights, "FW", return_predecessors=True)
""",
    "D": """
from scipy.sparse import coo_array
ends = np.random.default_rng(0).integers(0, 200_000, (2, 800_000))
graph = coo_array((np.ones(800_000), tuple(ends)), shape=(200_000, 200_000))
call = lambda: tg.shortest_path(graph, "D", indices=range(64))
""",
}


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("method", LONG_CALLS)
def test_ctrl_c_stops_within_a_second(method):
    program = f"""
import signal, threading, time
import numpy as np, tropical_gemm as tg
signal.signal(signal.SIGINT, signal.default_int_handler)
{LONG_CALLS[method]}
threading.Timer(1, print, ["begins"], {{"flush": True}}).start()
try:
    call()
except KeyboardInterrupt:
    print("stopped", flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "begins\n"
            child.send_signal(signal.SIGINT)
            start = time.perf_counter()
            assert child.stdout.readline() == "stopped\n"
            assert time.perf_counter() - start < 5  # a second on an idle machine
        finally:
            child.kill()


def test_auto_follows_the_table():
    def fastest(n, degree, sources=None, cuda=False):
        problem = Problem(n, n * degree, n if sources is None else sources, 2, False, cuda)
        return problem.fastest(dijkstra_allowed=not cuda)

    assert fastest(2000, 4) == "FW"
    assert fastest(100_000, 3) == "D"
    assert fastest(3000, 1500, sources=50) == "BF"
    assert fastest(3000, 3, sources=1) == "D"
    assert fastest(100_000, 3, cuda=True) == "FW"


@needs_data
def test_rome_equals_dijkstra():
    """Distances in metres between all junctions of Rome: equal to Dijkstra's over the minima of
    parallel arcs."""
    from tropical_gemm.cli.readers import read_graph

    rome = read_graph(DATA / "rome99.gr")
    assert rome.nodes == 3353
    arcs = [
        line.split()[1:] for line in (DATA / "rome99.gr").read_text().splitlines() if line.startswith("a ")
    ]
    least = {}
    for u, v, w in arcs:
        key = int(u) - 1, int(v) - 1
        least[key] = min(int(w), least.get(key, int(w)))
    assert len(arcs) - len(least) == 11
    ends = np.array(list(least))
    graph = csr_array((np.array(list(least.values()), float), (ends[:, 0], ends[:, 1])), shape=(3353, 3353))
    expected = dijkstra(graph)
    distances, predecessors = tg.shortest_path(rome.csgraph(), return_predecessors=True)
    assert distances.dtype == np.int32
    np.testing.assert_array_equal(as_float(distances), expected)
    weights = np.full((3353, 3353), none("int32"), np.int32)
    for (u, v), w in least.items():
        weights[u, v] = w
    check_paths(weights, distances[[0, 1000]], predecessors[[0, 1000]], [0, 1000])
    some = tg.shortest_path(weights, "BF", indices=[7, 2000])
    np.testing.assert_array_equal(some, distances[[7, 2000]])


@needs_data
def test_diameter_of_gnutella():
    """Undirected and unweighted, of the largest component, against networkx."""
    import networkx as nx
    from tropical_gemm.cli.readers import read_graph

    gnutella = read_graph(DATA / "p2p-Gnutella08.txt")
    assert (gnutella.nodes, gnutella.edge_count) == (6301, 20777)
    graph = nx.read_edgelist(DATA / "p2p-Gnutella08.txt", nodetype=int)
    largest = sorted(max(nx.connected_components(graph), key=len))
    part = nx.Graph(graph.subgraph(largest))  # a copy: views are slow
    hops = tg.shortest_path(gnutella.csgraph(), directed=False, unweighted=True)
    assert hops[np.ix_(largest, largest)].max() == nx.diameter(part, usebounds=True)
    assert (hops[np.ix_(largest, largest)] < none(hops.dtype)).all()
    assert hops[largest[0]].max() == none(hops.dtype)  # the other components


def test_johnson_agrees_on_negative_edges():
    rng = np.random.default_rng(6)
    n = 80
    h = rng.integers(0, 50, n)
    weights = random_graph(rng, n, "float64", 0.1, 20)
    weights = weights + h[:, None] - h[None, :]
    np.testing.assert_array_equal(tg.shortest_path(weights), johnson(as_coo(weights).tocsr()))


def test_integer_cycles_at_the_end_of_the_range_are_found():
    most = np.iinfo(np.int32).max
    loop = np.full((2, 2), most, np.int32)
    loop[0, 0] = -2 * 10**9
    graph = np.full((60, 60), most, np.int32)
    graph[7, 7] = -2 * 10**9
    graph[3, 7] = 1
    for csgraph, indices, node in ((loop, None, 0), (graph, [5], 7), (graph, [3], 7)):
        for method in ("BF", "FW", "auto"):
            with pytest.raises(tg.NegativeCycleError, match=f"through node {node}"):
                tg.shortest_path(csgraph, method, indices=indices)

"""Closures and shortest paths on a GPU: the distances of the CPU, predecessors by walking every path."""

import threading

import gpu
import numpy as np
import pytest
import tropical_gemm as tg
from gpu import needs_gpu, needs_two_gpus, torch
from graphs import DTYPES, as_float, check_paths, floyd_warshall, random_graph
from test_path_bounds import one_large_edge

pytestmark = needs_gpu


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 65, 300])
def test_equals_floyd_warshall(dtype, n):
    rng = np.random.default_rng(n)
    for directed in (True, False):
        weights = random_graph(rng, n, dtype, 0.05)
        edges = weights if directed else np.minimum(weights, weights.T)
        expected = floyd_warshall(edges)
        graph = gpu.to_gpu(weights)
        for options in (
            {},
            {"method": "BF"},
            {"method": "FW", "indices": [0, n - 1]},
            {"indices": 0, "method": "BF"},
        ):
            d, p = tg.shortest_path(graph, directed=directed, return_predecessors=True, **options)
            assert d.device == p.device == graph.device
            rows = options.get("indices", slice(None))
            np.testing.assert_array_equal(as_float(gpu.to_numpy(d)), expected[rows])
            sources = None if rows == slice(None) else np.atleast_1d(rows).tolist()
            check_paths(edges, np.atleast_2d(gpu.to_numpy(d)), np.atleast_2d(gpu.to_numpy(p)), sources)
        assert (graph == gpu.to_gpu(weights)).all()


def test_large_and_in_place():
    rng = np.random.default_rng(1)
    n = 5000
    weights = torch.rand(n, n, device="cuda")
    keep = weights.clone()
    values = tg.shortest_path(weights)
    tracked, predecessors = tg.shortest_path(weights, return_predecessors=True)
    assert (weights == keep).all()
    bound = n * 2.0**-23 * float(values.max())
    assert float((values - tracked).abs().max()) <= bound
    w, d, p = (x.cpu().numpy() for x in (weights, tracked, predecessors))
    for source in rng.integers(0, n, 5).tolist():
        check_paths(w, d[source : source + 1], p[source : source + 1], [source], bound)
    assert float((tg.matmul(values, values, semiring="min_plus") - values).abs().max()) <= bound
    assert tg.shortest_path(weights, overwrite=True) is weights
    assert (weights == values).all()


def test_negative_weights_and_cycles():
    rng = np.random.default_rng(2)
    n = 200
    for dtype in ("float32", "int64"):
        weights = random_graph(rng, n, dtype, 0.05, 20)
        h = rng.integers(0, 50, n)
        present = weights != (np.inf if dtype == "float32" else np.iinfo(dtype).max)
        shifted = np.where(present, np.where(present, weights, 0) + h[:, None] - h[None, :], weights).astype(
            dtype
        )
        expected = floyd_warshall(shifted)
        for options in ({}, {"indices": [3, 9]}):
            d, p = tg.shortest_path(gpu.to_gpu(shifted), return_predecessors=True, **options)
            np.testing.assert_array_equal(
                as_float(gpu.to_numpy(d)), expected[options.get("indices", slice(None))]
            )
            check_paths(shifted, gpu.to_numpy(d), gpu.to_numpy(p), options.get("indices"))
        shifted[5, 6], shifted[6, 5] = 1, -2
        with pytest.raises(tg.NegativeCycleError):
            tg.shortest_path(gpu.to_gpu(shifted))
        got = tg.shortest_path(gpu.to_gpu(shifted), negative_cycles="ignore")
        assert got.is_cuda
        np.testing.assert_array_equal(gpu.to_numpy(got), tg.shortest_path(shifted, negative_cycles="ignore"))


def test_refusals_and_readings():
    weights = torch.rand(100, 100, device="cuda")
    weights[3, 4] = torch.nan
    with pytest.raises(ValueError, match=r"NaN at \(3, 4\)"):
        tg.shortest_path(weights)
    with pytest.raises(ValueError, match="GPU"):
        tg.shortest_path(torch.rand(5, 5, device="cuda"), "D")
    zeros = torch.zeros(10, 10, device="cuda")
    zeros[0, 1] = 2
    with pytest.warns(UserWarning, match="no_edge=0"):
        tg.shortest_path(zeros)
    assert float(tg.shortest_path(zeros, no_edge=0)[0, 1]) == 2
    hops = tg.shortest_path(zeros > 0)
    assert hops.dtype == torch.float32
    with pytest.raises(MemoryError, match="n = 600000 nodes need"):
        tg.shortest_path(torch.zeros(1, 1, device="cuda").expand(600_000, 600_000))


def test_closures_of_every_semiring():
    rng = np.random.default_rng(3)
    for semiring, low, high in (
        ("max_plus", -4, 1),
        ("max_min", 0, 50),
        ("min_max", 0, 50),
        ("max_mul", 0, 2),
    ):
        for dtype in ("float32", "float16", "int32"):
            matrix = rng.integers(low, high, (150, 150)).astype(dtype)
            expected = tg.closure(matrix, semiring=semiring)
            np.testing.assert_array_equal(
                gpu.to_numpy(tg.closure(gpu.to_gpu(matrix), semiring=semiring)), expected
            )
    adjacency = rng.random((300, 300)) < 0.01
    got = tg.closure(gpu.to_gpu(adjacency), semiring="or_and")
    np.testing.assert_array_equal(gpu.to_numpy(got), tg.closure(adjacency, semiring="or_and"))


def test_streams_and_progress():
    weights = torch.rand(3000, 3000, device="cuda")
    expected = tg.shortest_path(weights)
    side = torch.cuda.Stream()
    seen = []
    with torch.cuda.stream(side):
        gpu.spin(50)
        late = torch.rand(3000, 3000, device="cuda").mul_(0).add_(weights)
        got = tg.shortest_path(late, progress=lambda done, total: seen.append((done, total)))
    side.synchronize()
    assert (got == expected).all()
    assert seen[-1][0] == seen[-1][1]
    results = []
    threads = [threading.Thread(target=lambda: results.append(tg.shortest_path(weights))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((result == expected).all() for result in results)


def test_cupy_and_jax():
    weights = random_graph(np.random.default_rng(4), 200, "float32", 0.1)
    expected = floyd_warshall(weights)
    cupy = pytest.importorskip("cupy")
    d, p = tg.shortest_path(cupy.asarray(weights), return_predecessors=True)
    assert isinstance(d, cupy.ndarray)
    np.testing.assert_array_equal(d.get(), expected)
    check_paths(weights, d.get(), p.get())
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU")
    d, p = tg.shortest_path(jax.numpy.asarray(weights), return_predecessors=True)
    np.testing.assert_array_equal(np.asarray(d), expected)
    check_paths(weights, np.asarray(d), np.asarray(p))


@needs_two_gpus
def test_second_gpu():
    weights = torch.rand(500, 500, device="cuda:1")
    got = tg.shortest_path(weights)
    assert got.device == weights.device
    assert (got.cpu() == tg.shortest_path(weights.to("cuda:0")).cpu()).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["source", "sink", "beside", "between"])
def test_small_weights_beside_a_large_negative_one(dtype, kind):
    w = one_large_edge(kind, 1e17, dtype)
    expected = tg.shortest_path(w)
    for options in ({}, {"method": "BF"}, {"negative_cycles": "ignore"}, {"indices": [1, 3]}):
        got = gpu.to_numpy(tg.shortest_path(gpu.to_gpu(w), **options))
        rows = options.get("indices", slice(None))
        np.testing.assert_allclose(got, expected[rows], rtol=8 * len(w) * np.finfo(dtype).eps)

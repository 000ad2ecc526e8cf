"""Shortest paths where sums round or leave the range, against exact arithmetic."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import tropical_gemm as tg
from graphs import check_paths, none
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from tropical_gemm.algorithms import components


def exact_distances(weights):
    """Distances as Fractions or None, and which pairs a negative cycle touches: plain Bellman-Ford."""
    n = len(weights)
    edges = [
        (int(i), int(j), Fraction(weights[i, j].item()))
        for i, j in np.argwhere(weights != none(weights.dtype))
    ]
    rows = []
    touched = np.zeros((n, n), bool)
    for source in range(n):
        d = [None] * n
        d[source] = Fraction(0)
        for _ in range(n):
            changed = relax(d, edges)
        while changed:  # spreads -inf, shown as touched
            changed = [j for j in changed if not touched[source, j]]
            touched[source, changed] = True
            changed = [j for i, j, _ in edges if touched[source, i] and not touched[source, j]]
        rows.append(d)
    return rows, touched


def relax(d, edges):
    lowered = []
    for i, j, w in edges:
        if d[i] is not None and (d[j] is None or d[i] + w < d[j]):
            d[j] = d[i] + w
            lowered.append(j)
    return lowered


def scales(weights):
    """For each pair: what a path could sum up to, of the edges by which one can get from i to j."""
    n = len(weights)
    edges = weights != none(weights.dtype)
    reach = tg.closure(edges, semiring="or_and")
    sizes = np.where(edges, np.abs(weights.astype(np.float64)), 0)
    result = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            result[i, j] = np.where(reach[i][:, None] & reach[:, j][None, :], sizes, 0).max(axis=1).sum()
    return result


def check_bound(weights, distances, units):
    """Within ``units`` of (roundings of the distance, roundings in float64 of the scale)."""
    expected, touched = exact_distances(weights)
    assert not touched.any()
    eps, n = float(np.finfo(weights.dtype).eps), len(weights)
    bounds = scales(weights)
    for i in range(n):
        for j in range(n):
            if expected[i][j] is None:
                assert distances[i, j] == np.inf
                continue
            error = abs(Fraction(distances[i, j].item()) - expected[i][j])
            allowed = units[0] * eps * abs(float(expected[i][j])) + units[1] * n * bounds[i, j]
            assert error <= allowed, (i, j, distances[i, j], float(expected[i][j]))


def one_large_edge(kind, large, dtype):
    """A graph whose small weights a large potential would swallow."""
    rng = np.random.default_rng(3)
    n = 12
    w = np.full((n, n), np.inf, dtype)
    w[1:, 1:] = rng.random((n - 1, n - 1))
    if kind == "source":
        w[0, 1:] = -large
    elif kind == "sink":
        w[1:, 0] = -large
    elif kind == "beside":
        w[0, :] = np.inf
        w[1, 2], w[2, 1] = -0.25, 0.5
        w[3:, :] = np.inf
        w[:, 3:] = np.inf
        w[4, 5] = large
    elif kind == "between":
        w[1:6, 6:], w[6:, 1:6] = np.inf, np.inf
        w[1:6, 0], w[0, 6:] = large, -large
        w[2, 3] = -(w[3, 2] / 2)
        w[7, 8] = -(w[8, 7] / 2)
    return w


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["source", "sink", "beside", "between"])
@pytest.mark.parametrize("large", [1e2, 1e8, 1e17, 1e30])
def test_what_a_walk_cannot_use_costs_no_digits(kind, large, dtype):
    w = one_large_edge(kind, large, dtype)
    eps = float(np.finfo(dtype).eps)
    for options in ({"method": "FW"}, {"method": "BF"}, {"indices": range(len(w)), "method": "BF"}):
        check_bound(w, tg.shortest_path(w, **options), (0, 2 * eps))


@given(
    seed=st.integers(0, 2**32),
    n=st.sampled_from([2, 3, 5, 9, 14]),
    dtype=st.sampled_from(["float32", "float64"]),
    spread=st.sampled_from([0, 3, 12, 25]),
    density=st.sampled_from([0.2, 0.5, 1.0]),
    method=st.sampled_from(["FW", "BF", "auto"]),
)
def test_bound_of_negative_floats(seed, n, dtype, spread, density, method):
    """Weights of all sizes, positive around cycles, mostly by shifting them."""
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.uniform(-spread / 2, spread / 2, (n, n))
    h = 10.0 ** rng.uniform(-spread / 2, spread / 2, n) * rng.choice([-1, 0, 1], n)
    w = (sizes + h[:, None] - h[None, :]).astype(dtype)
    w[rng.random((n, n)) >= density] = np.inf
    if exact_distances(w)[1].any():  # rounded to a negative cycle
        return
    distances, predecessors = tg.shortest_path(w, method, return_predecessors=True)
    eps = float(np.finfo(dtype).eps)
    check_bound(w, distances, (0, 4 * eps))
    check_paths(w, distances, predecessors, tolerance=8 * n * eps * scales(w).max())
    reach = tg.closure(w < np.inf, semiring="or_and")
    lower = np.where(w < 0, w * np.asarray(1 + 8 * eps, dtype), w * np.asarray(1 - 8 * eps, dtype))
    if dtype == "float32" and (reach.T & (w < 0)).any() and not exact_distances(lower)[1].any():
        # Negative edges on cycles, none of them about 0: all in float64, rounded once.
        check_bound(w, distances, (0.5, 4 * 2.0**-52))


def test_single_digits_beside_a_large_cycle():
    """float32 is computed in float64, and rounded once."""
    w = np.full((4, 4), np.inf, np.float32)
    w[0, 1:] = -1e8
    w[1, 2], w[1, 3], w[3, 2], w[2, 0] = 1.1, 0.2, 0.2, 1e8
    for options in ({}, {"method": "BF"}):
        d, p = tg.shortest_path(w, return_predecessors=True, **options)
        assert d[1, 2] == np.float32(0.4)
        assert tg.reconstruct_path(1, 2, p) == [1, 3, 2]


def test_a_negative_cycle_is_measured_by_its_own_weights():
    w = np.full((4, 4), np.inf, np.float32)
    w[0, 1], w[1, 0], w[2, 3] = -1, 0.5, 1e8
    with pytest.raises(tg.NegativeCycleError, match=r"node [01]$"):
        tg.shortest_path(w)
    w[1, 2] = w[3, 0] = 1e8  # on cycles with it
    with pytest.raises(tg.NegativeCycleError, match=r"node [01]$"):
        tg.shortest_path(w)
    for dtype in ("float32", "float64"):
        eps = np.finfo(dtype).eps
        cycle = np.array([[np.inf, -1], [1 - eps, np.inf]], dtype)
        np.testing.assert_allclose(tg.shortest_path(cycle), [[0, -1], [1, 0]], rtol=5 * eps)
        cycle[1, 0] = 1 - 16 * eps
        with pytest.raises(tg.NegativeCycleError):
            tg.shortest_path(cycle)


def extreme_graph(rng, n, dtype, density, negative):
    """Edges (some parallel) with weights of all sizes that the dtype has; of floats, whole numbers."""
    most = np.iinfo(dtype).max if dtype.startswith("int") else 2**12  # -1 is more than rounding
    sizes = [0, 0, 1, 2, 5, most // 4, most // 2, most - 3, most - 1]
    sizes = [sizes, sizes[:5], sizes[6:]][rng.integers(3)]
    count = int(density * n * n) + 1
    rows, columns = rng.integers(0, n, (2, count))
    onward = rng.random(count) < rng.choice([0, 0.8, 1])  # several components
    rows, columns = np.where(onward, np.sort([rows, columns], axis=0), [rows, columns])
    places = rng.permutation(n)
    rows, columns = places[rows], places[columns]
    weights = np.array([sizes[k] for k in rng.integers(0, len(sizes), count)], np.int64)
    weights = np.where(rng.random(count) < negative, -weights, weights)
    if rng.random() < 0.5:  # a cycle, of some length, beside the rest
        ring = places[: rng.integers(1, n + 1)]
        apart = np.isin(rows, ring) == np.isin(columns, ring)
        rows, columns = np.append(rows[apart], ring), np.append(columns[apart], np.roll(ring, 1))
        heavy = sizes[-1] * (len(ring) > 1)
        steps = np.resize([heavy, -heavy], len(ring))
        steps[-1] = -1 - steps[:-1].sum()
        weights = np.append(weights[apart], steps)
    return rows, columns, weights.astype(dtype)


@pytest.mark.filterwarnings("ignore:.*no_edge=0")
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 8),
    dtype=st.sampled_from(["int32", "int64", "float32", "float64"]),
    density=st.sampled_from([0.15, 0.3, 0.8]),
    negative=st.sampled_from([0, 0.1, 0.4]),
    method=st.sampled_from(["auto", "FW", "BF"]),
    ignore=st.booleans(),
    some=st.booleans(),
    sparse=st.booleans(),
)
def test_equals_python_ints(seed, n, dtype, density, negative, method, ignore, some, sparse):
    compare_with_python_ints(seed, n, dtype, density, negative, method, ignore, some, sparse)


@pytest.mark.filterwarnings("ignore:.*no_edge=0")
@pytest.mark.parametrize("ignore", [False, True])
def test_integers_at_the_end_of_their_range(ignore):
    """Many more, since an overflow beside a negative cycle is rare."""
    for seed in range(600):
        dtype, method = ("int32", "int64")[seed % 2], ("auto", "FW", "BF")[seed % 3]
        density, negative = (0.15, 0.3, 0.8)[seed % 3], (0, 0.1, 0.4)[seed // 3 % 3]
        compare_with_python_ints(
            seed, seed % 8 + 1, dtype, density, negative, method, ignore, seed % 5 == 0, False
        )


def compare_with_python_ints(seed, n, dtype, density, negative, method, ignore, some, sparse):
    """Distances, predecessors, which cycles and which overflows are errors: by Bellman-Ford in Fractions."""
    rng = np.random.default_rng(seed)
    rows, columns, values = extreme_graph(rng, n, dtype, density, negative)
    weights = np.full((n, n), none(dtype), dtype)
    np.minimum.at(weights, (rows, columns), values)
    lengths, touched = exact_distances(weights)
    low = np.iinfo(dtype).min if dtype.startswith("int") else -np.inf
    expected = np.full((n, n), none(dtype), object)
    for i in range(n):
        for j in range(n):
            if touched[i, j]:
                expected[i, j] = low
            elif lengths[i][j] is not None:
                expected[i, j] = lengths[i][j]
    beyond = np.array(
        [[x is not None and not low < x < none(dtype) for x in of_source] for of_source in lengths]
    )
    beyond &= ~touched
    sources = rng.integers(0, n, 2).tolist() if some else list(range(n))
    graph = coo_array((values, (rows, columns)), shape=(n, n)) if sparse else weights
    before = weights.copy()

    def solve():
        return tg.shortest_path(
            graph, method, return_predecessors=True, negative_cycles="ignore" if ignore else "raise",
            indices=sources if some else None,
        )  # fmt: skip

    if touched.any() and not ignore:
        with pytest.raises(tg.NegativeCycleError) as caught:
            solve()
        assert touched[caught.value.node, caught.value.node]
    elif beyond[sources].any():
        with pytest.raises(OverflowError, match=dtype):
            solve()
    elif beyond.any():  # in rows that were not asked for: some methods need all
        try:
            distances, _ = solve()
        except OverflowError:
            return
        assert (distances == expected[sources]).all()
    else:
        distances, predecessors = solve()
        assert (distances == expected[sources]).all()
        assert (predecessors[distances == low] == -9999).all()
        rest = np.where(touched, none(dtype), weights)
        shown = np.where(distances == low, none(dtype), distances)
        check_exact_paths(rest, shown, predecessors, sources)
    np.testing.assert_array_equal(weights, before)


def check_exact_paths(weights, distances, predecessors, sources):
    for row, source in enumerate(sources):
        for target in range(len(weights)):
            path = tg.reconstruct_path(source, target, predecessors[row])
            if target == source:
                continue
            assert (path == []) == (distances[row, target] == none(weights.dtype))
            steps = [Fraction(weights[i, j].item()) for i, j in itertools.pairwise(path)]
            if path:
                assert len(set(path)) == len(path)
                assert sum(steps) == Fraction(distances[row, target].item())


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_overflow_beside_a_negative_cycle(dtype):
    most = np.iinfo(dtype).max
    far = most // 8 * 7
    w = np.full((4, 4), most, dtype)
    w[0, 0], w[1, 2], w[2, 3] = -1, far, far
    with pytest.raises(OverflowError, match=f"from node 1 to node 3 .*{dtype}"):
        tg.shortest_path(w, negative_cycles="ignore")
    w[1, 0] = w[0, 3] = 5  # now a cycle reaches that pair
    got = tg.shortest_path(w, negative_cycles="ignore")
    assert got[1, 3] == np.iinfo(dtype).min
    assert got[1, 2] == far


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_cycle_whose_parts_leave_the_range(dtype):
    most = np.iinfo(dtype).max
    far = most // 8 * 7
    ring = np.full((4, 4), most, dtype)
    ring[0, 1] = ring[1, 2] = far
    ring[2, 3], ring[3, 0] = -far, -far - 1
    for order in itertools.permutations(range(4)):
        w = ring[np.ix_(order, order)].copy()
        for options in ({"method": "FW"}, {"method": "BF"}, {"indices": 2}):
            with pytest.raises(tg.NegativeCycleError):
                tg.shortest_path(w, **options)
        both = np.full((5, 5), most, dtype)
        both[1:, 1:], both[0, 0] = w, -1
        got = tg.shortest_path(both, negative_cycles="ignore")
        expected = np.full((5, 5), np.iinfo(dtype).min)
        expected[0, 1:] = expected[1:, 0] = most
        assert (got == expected).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_at_the_end_of_their_range(dtype):
    far = float(np.finfo(dtype).max) / 8 * 7
    w = np.full((4, 4), np.inf, dtype)
    w[0, 0], w[1, 2], w[2, 3] = -far / 4, far, far
    with pytest.raises(OverflowError, match=f"from node 1 to node 3 .*{dtype}"):
        tg.shortest_path(w, negative_cycles="ignore")
    w = np.full((2, 2), np.inf, dtype)
    w[0, 1], w[1, 0] = -far, -far / 3
    with pytest.raises(tg.NegativeCycleError):
        tg.shortest_path(w)
    assert (tg.shortest_path(w, negative_cycles="ignore") == -np.inf).all()
    w = np.full((3, 3), np.inf, dtype)
    w[0, 2], w[1, 2] = -far, far
    assert tg.shortest_path(w).tolist() == [[0, np.inf, w[0, 2]], [np.inf, 0, w[1, 2]], [np.inf, np.inf, 0]]
    w[2, 1] = -far / 2  # a cycle with a negative edge; the sum from 0 to 1 does not fit
    with pytest.raises(OverflowError, match="from node 0 to node 1"):
        tg.shortest_path(w)


def test_other_libraries_get_the_same_bits():
    """torch computes where its tensors are; JAX has no float64 unless told so."""
    w = one_large_edge("between", 1e8, "float32")
    w[8, 2] = 1e8
    expected = tg.shortest_path(w, return_predecessors=True)
    torch = pytest.importorskip("torch")
    jnp = pytest.importorskip("jax.numpy")
    for make in (torch.from_numpy, jnp.asarray):
        for options in ({}, {"method": "BF"}, {"negative_cycles": "ignore"}):
            graph = make(w.copy())
            got = tg.shortest_path(graph, return_predecessors=True, **options)
            for x, y in zip(got, expected, strict=True):
                assert type(x) is type(graph)
                np.testing.assert_array_equal(np.asarray(x), y)
            row = tg.shortest_path(graph, indices=3, **options)
            np.testing.assert_array_equal(np.asarray(row), expected[0][3])
        w[0, 0] = -1
        with pytest.raises(tg.NegativeCycleError, match="node 0"):
            tg.shortest_path(make(w.copy()))
        w[0, 0] = np.inf


@given(seed=st.integers(0, 2**32), n=st.integers(0, 40), degree=st.sampled_from([0.5, 1, 2, 5]))
def test_components_equal_scipys(seed, n, degree):
    rng = np.random.default_rng(seed)
    adjacency = rng.random((n, n)) < degree / max(n, 1)
    labels = components.strong(adjacency)
    assert labels.shape == (n,)
    count, expected = connected_components(csr_array(adjacency), connection="strong") if n else (0, [])
    pairs = set(zip(labels.tolist(), list(expected), strict=True))
    assert len(pairs) == count == len(set(labels.tolist()))
    negative = adjacency & (rng.random((n, n)) < 0.1)
    within = {labels[i] for i, j in np.argwhere(negative) if labels[i] == labels[j]}
    parts = components.with_negative_edges(labels, negative)
    assert sorted(within) == sorted({labels[part[0]] for part in parts})
    for part in parts:
        assert part.tolist() == np.flatnonzero(labels == labels[part[0]]).tolist()

"""Closures over every semiring against the definition, and the facts that make them useful."""

import numpy as np
import oracle
import pytest
import tropical_gemm as tg
from graphs import floyd_warshall, random_graph
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from tropical_gemm.algorithms import checks

SEMIRINGS = ("max_plus", "min_plus", "max_mul", "min_mul", "max_min", "min_max", "or_and")
DTYPES = ("float32", "float64", "float16", "int16", "int32", "int64")


def zero_and_one(semiring, dtype):
    low, high = (-np.inf, np.inf) if dtype.startswith("float") else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return {
        "max_plus": (low, 0), "min_plus": (high, 0), "max_mul": (0, 1), "min_mul": (high, 1),
        "max_min": (low, high), "min_max": (high, low),
    }[semiring]  # fmt: skip


def random_matrix(rng, semiring, dtype, n, density):
    """Weights whose sums and products are exact, and no closed walk better than one."""
    if semiring == "or_and":
        return rng.random((n, n)) < density
    values = {
        "max_plus": -rng.integers(0, 4, (n, n)), "min_plus": rng.integers(0, 4, (n, n)),
        "max_mul": rng.integers(0, 2, (n, n)), "min_mul": 2 ** rng.integers(0, 2, (n, n)),
    }.get(semiring, rng.integers(-50, 50, (n, n)))  # fmt: skip
    zero, _ = zero_and_one(semiring, dtype)
    return np.where(rng.random((n, n)) < density, values.astype(dtype), np.asarray(zero, dtype))


def by_definition(matrix, semiring, reflexive):
    """I add D add D² add ... by products; they end as every best path is simple."""
    better = np.minimum if semiring.startswith("min") else np.maximum
    total = matrix.copy()
    if reflexive:
        one = True if semiring == "or_and" else zero_and_one(semiring, matrix.dtype.name)[1]
        diagonal = np.diag_indices(len(matrix))
        total[diagonal] = better(total[diagonal], np.asarray(one, matrix.dtype))
    while True:
        more = better(total, tg.matmul(total, total, semiring=semiring)) if len(total) else total
        if np.array_equal(more, total):
            return total
        total = more


@pytest.mark.parametrize("semiring", SEMIRINGS)
@given(
    seed=st.integers(0, 2**32),
    n=st.sampled_from([0, 1, 2, 9, 64, 65, 100]),
    dtype=st.sampled_from(DTYPES),
    density=st.sampled_from([0.02, 0.3, 1.0]),
    reflexive=st.booleans(),
    overwrite=st.booleans(),
)
def test_is_the_sum_of_powers(semiring, seed, n, dtype, density, reflexive, overwrite):
    rng = np.random.default_rng(seed)
    matrix = random_matrix(rng, semiring, dtype, n, density)
    expected = by_definition(matrix, semiring, reflexive)
    before = matrix.copy()
    got = tg.closure(matrix, semiring=semiring, reflexive=reflexive, overwrite=overwrite)
    assert got.dtype == matrix.dtype
    np.testing.assert_array_equal(got, expected)
    if overwrite:
        assert got is matrix
    else:
        np.testing.assert_array_equal(matrix, before)


def test_every_instruction_set(isa):
    rng = np.random.default_rng(1)
    for semiring in SEMIRINGS:
        for dtype in ("float32", "float16", "int16", "int64"):
            matrix = random_matrix(rng, semiring, dtype, 150, 0.1)
            np.testing.assert_array_equal(
                tg.closure(matrix, semiring=semiring), by_definition(matrix, semiring, True)
            )
    weights = random_graph(rng, 150, "float64", 0.1)
    distances, predecessors = tg.shortest_path(weights, return_predecessors=True)
    np.testing.assert_array_equal(distances, floyd_warshall(weights))
    assert tg.reconstruct_path(0, 140, predecessors)[0] == 0


def test_minimax_paths_are_those_of_the_spanning_tree():
    rng = np.random.default_rng(2)
    n = 200
    weights = rng.random((n, n)) + 1
    weights = np.triu(weights, 1)
    keep = rng.random((n, n)) < 0.1
    weights = np.where(keep, weights, 0)
    weights[np.arange(n - 1), np.arange(1, n)] = 3 + rng.random(n - 1)  # connected
    weights = np.maximum(weights, weights.T)
    tree = minimum_spanning_tree(csr_array(weights))
    tree = (tree + tree.T).toarray()
    dense = np.where(weights > 0, weights, np.inf)
    got = tg.closure(dense, semiring="min_max")
    # Along the tree there is one path; its largest edge is the bottleneck.
    neighbours = [np.flatnonzero(tree[v]) for v in range(n)]
    for source in range(0, n, 20):
        bottleneck = np.full(n, -np.inf)
        stack, seen = [source], {source}
        while stack:
            v = stack.pop()
            for u in neighbours[v]:
                if u not in seen:
                    seen.add(u)
                    bottleneck[u] = max(bottleneck[v], tree[v, u])
                    stack.append(u)
        bottleneck[source] = -np.inf
        np.testing.assert_array_equal(got[source], bottleneck)
    # The widest path in the graph of negated weights is its mirror.
    np.testing.assert_array_equal(tg.closure(-dense, semiring="max_min"), -got)


def test_reachability_is_that_of_the_components():
    rng = np.random.default_rng(3)
    adjacency = rng.random((400, 400)) < 1.2 / 400
    reach = tg.closure(adjacency, semiring="or_and")
    count, labels = connected_components(csr_array(adjacency), connection="strong")
    np.testing.assert_array_equal(reach & reach.T, labels[:, None] == labels[None, :])
    assert count > 10
    _, weak = connected_components(csr_array(adjacency), directed=False)
    both = tg.closure(adjacency | adjacency.T, semiring="or_and")
    np.testing.assert_array_equal(both, weak[:, None] == weak[None, :])


@given(seed=st.integers(0, 2**32))
def test_triangles_and_fixed_point(seed):
    rng = np.random.default_rng(seed)
    d = tg.closure(random_graph(rng, 80, "int64", 0.1, 1000), semiring="min_plus")
    np.testing.assert_array_equal(tg.matmul(d, d, semiring="min_plus"), d)
    i, j, k = rng.integers(0, 80, (3, 200))
    finite = np.maximum(d[i, k], d[k, j]) < np.iinfo("int64").max
    assert (d[i, j][finite] <= (d[i, k] + d[k, j])[finite]).all()


def test_known_closures():
    matrix = np.array([[-5.0, -2, -6], [0, -3, 0], [2, -1, -2]])
    assert tg.closure(matrix, semiring="max_plus").tolist() == [[0, -2, -2], [2, 0, 0], [2, 0, 0]]
    reliable = np.array([[0, 0.5, 0.1], [0, 0, 0.5], [0, 0, 0]])
    assert tg.closure(reliable, semiring="max_mul").tolist() == [[1, 0.5, 0.25], [0, 1, 0.5], [0, 0, 1]]


@pytest.mark.parametrize(
    ("semiring", "matrix"),
    [
        ("max_plus", [[-1.0, 2], [-1, -5]]),
        ("min_plus", [[1.0, -2], [1, 5]]),
        ("max_mul", [[0.5, 2], [0.75, 0]]),
        ("min_mul", [[2.0, 0.5], [1.5, 3]]),
        ("max_plus", [[1.0, -2], [-2, 0]]),
    ],
)
def test_divergence(semiring, matrix):
    with pytest.raises(tg.DivergenceError, match=f"{semiring} closure") as caught:
        tg.closure(np.array(matrix), semiring=semiring)
    assert caught.value.node in (0, 1)
    assert isinstance(caught.value, ValueError)


def test_rounding_is_no_divergence():
    ring = np.full((3, 3), np.inf)
    ring[0, 1], ring[1, 2], ring[2, 0] = 0.1, 0.2, -0.3 - 2e-17
    assert (np.diag(tg.closure(ring, semiring="min_plus")) == 0).all()


def test_overflow():
    high = np.iinfo("int32").max
    for semiring, step in (("min_plus", high // 2 + 1), ("max_plus", -(high // 2) - 2), ("min_mul", 50_000)):
        zero = zero_and_one(semiring, "int32")[0]
        chain = np.full((3, 3), zero, np.int32)
        chain[0, 1] = chain[1, 2] = step
        with pytest.raises(OverflowError, match="int32"):
            tg.closure(chain, semiring=semiring)
    tg.closure(np.array([[0, 2**30], [0, 0]], np.int32), semiring="max_mul")
    with pytest.raises(OverflowError, match="float16"):
        tg.closure(np.array([[0, 40000, 0], [0, 0, 2], [0, 0, 0]], np.float16), semiring="max_mul")


def test_other_arrays():
    torch = pytest.importorskip("torch")
    matrix = torch.tensor([[0.0, 1, 5], [9, 0, 1], [9, 9, 0]])
    got = tg.closure(matrix, semiring="min_plus")
    assert got.tolist() == [[0, 1, 2], [9, 0, 1], [9, 9, 0]]
    half = tg.closure(matrix.to(torch.bfloat16), semiring="max_min")
    assert half.dtype == torch.bfloat16
    jnp = pytest.importorskip("jax.numpy")
    assert tg.closure(jnp.asarray(matrix.numpy()), semiring="min_plus").tolist() == got.tolist()
    bfloat16 = np.array([[0, 1], [2, 0]], oracle.DTYPES["bfloat16"])
    assert tg.closure(bfloat16, semiring="min_plus").dtype == bfloat16.dtype


def close(matrix, semiring, **options):
    return lambda: tg.closure(np.array(matrix), semiring=semiring, **options)


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (TypeError, "keyword-only argument: 'semiring'", lambda: tg.closure(np.ones((2, 2)))),
        (ValueError, "semiring is 'plus'", lambda: tg.closure(np.ones((2, 2)), semiring="plus")),
        (TypeError, "semiring is of type int", lambda: tg.closure(np.ones((2, 2)), semiring=1)),
        (TypeError, "or_and", lambda: tg.closure(np.ones((2, 2)), semiring="or_and")),
        (ValueError, r"d has shape \(2, 3\)", lambda: tg.closure(np.ones((2, 3)), semiring="max_min")),
        (ValueError, r"NaN at \(1, 0\)", close([[0, 1], [np.nan, 0]], "max_min")),
        (ValueError, r"at \(0, 1\) is the infinity", close([[0, np.inf], [0, 0]], "max_plus")),
        (ValueError, r"negative at \(0, 1\)", close([[0, -1.0], [0, 0]], "max_mul")),
        (ValueError, "2 zeros", close([[1, 0.0], [0, 1]], "min_mul")),
        (TypeError, "reflexive is of type int", close([[1.0]], "max_min", reflexive=1)),
    ],
)  # fmt: skip
def test_errors(error, text, call):
    with pytest.raises(error, match=text):
        call()


def test_nothing_is_written_on_bad_input():
    matrix = np.array([[0.0, 1], [np.nan, 0]])
    before = matrix.copy()
    with pytest.raises(ValueError, match="NaN"):
        tg.closure(matrix, semiring="min_plus", overwrite=True)
    np.testing.assert_array_equal(matrix, before)


def test_memory_is_estimated_first(monkeypatch):
    monkeypatch.setattr(checks, "host_memory", lambda: (10**9, "of memory"))
    huge = np.broadcast_to(np.float16(1), (100_000, 100_000))
    with pytest.raises(MemoryError, match=r"n = 100000 nodes need 26\.0 GB, 1\.0 GB.*overwrite=True"):
        tg.closure(huge, semiring="max_min")

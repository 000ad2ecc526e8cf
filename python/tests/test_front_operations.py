"""The other operations on arrays of every kind: the answers of plain formulas, for random small problems."""

import graphs
import numpy as np
import oracle
import problems
import pytest
import trellis
import tropical_gemm as tg
from fronts import FRONTS
from hypothesis import strategies as st
from test_fronts import holds, put

pytestmark = [
    pytest.mark.hypothesis,
    pytest.mark.filterwarnings("ignore:log_transition looks like", "ignore:.*no_edge=0"),
]

KINDS = ("numpy", "torch", "torch cuda", "cupy", "jax")
kinds = pytest.mark.parametrize(
    "front",
    [pytest.param(FRONTS[name], id=name, marks=FRONTS[name].marks) for name in KINDS if name in FRONTS],
)
DTYPES = ("float32", "float64", "int32", "int64")
seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@st.composite
def laid(draw, make):
    """What ``make(rng, draw)`` makes, its arrays in memory of any layout, and the rest."""
    rng = draw(seeds)
    *arrays, rest = make(rng, draw)
    return [problems.arranged(draw, x) for x in arrays], rest


def whole(rng, dtype, shape, missing):
    """Small numbers, whose sums are exact, and ties; some of them ``missing``."""
    x = rng.integers(-2, 3, shape).astype(dtype)
    x[rng.random(shape) < 0.2] = missing
    return x


def a_graph(rng, draw):
    n = draw(st.sampled_from((1, 2, 3, 9, 17)))
    dtype = draw(st.sampled_from(DTYPES))
    return graphs.random_graph(rng, n, dtype, draw(st.sampled_from((0.1, 0.3, 1.0)))), draw(st.booleans())


@kinds
def test_closure(front):
    @holds(front, laid(a_graph), share=0.5)
    def check(drawn):
        (weights,), _ = drawn
        for semiring in ("min_plus", "max_min", "min_max"):
            zero = oracle.zero(semiring, weights.dtype)
            d = np.where(weights == graphs.none(weights.dtype), zero, weights)
            one = (
                0
                if semiring == "min_plus"
                else oracle.zero("max_min" if semiring == "min_max" else "min_max", d.dtype)
            )
            expected = d.copy()
            better = np.minimum if semiring.startswith("min") else np.maximum
            np.fill_diagonal(expected, better(np.diag(expected), one))
            for _ in range(len(d).bit_length()):
                expected = oracle.product(semiring, expected, expected)[0]
            oracle.assert_same(front.get(tg.closure(front.put(d), semiring=semiring)), expected, semiring)


@kinds
def test_shortest_path(front):
    @holds(front, laid(a_graph), share=0.5)
    def check(drawn):
        (weights,), directed = drawn
        edges = weights if directed else np.minimum(weights, weights.T)
        found = tg.shortest_path(front.put(weights), directed=directed, return_predecessors=True)
        distances, predecessors = map(front.get, found)
        np.testing.assert_array_equal(graphs.as_float(distances), graphs.floyd_warshall(edges))
        graphs.check_paths(edges, distances, predecessors)


def a_trellis(rng, draw):
    dtype = oracle.DTYPES[draw(st.sampled_from(("float32", "float64", "float16")))]
    steps, states = draw(st.sampled_from((0, 1, 2, 5, 9))), draw(st.sampled_from((1, 2, 3, 17)))
    batch = draw(st.sampled_from(((), (1,), (3,), (2, 2), (0,))))
    method = draw(st.sampled_from(("sequential", "scan")))
    return (
        whole(rng, dtype, (*batch, steps, states), -np.inf),
        whole(rng, dtype, (states, states), -np.inf),
        method,
    )


@kinds
def test_viterbi(front):
    @holds(front, laid(a_trellis), share=0.5)
    def check(drawn):
        arrays, method = drawn
        paths, scores = trellis.batched(*arrays)
        got = tg.viterbi(*put(front, *arrays), method=method)
        np.testing.assert_array_equal(front.get(got.paths), paths)
        oracle.assert_same(front.get(got.scores), scores, "scores")


def a_count(rng, draw):
    dtype, semiring = draw(st.sampled_from(DTYPES)), draw(st.sampled_from(("max_plus", "min_plus")))
    m, k, n = (draw(st.sampled_from((1, 2, 5, 33))) for _ in range(3))
    missing = oracle.zero(semiring, dtype)
    return (*(whole(rng, dtype, shape, missing) for shape in ((m, k), (k, n))), semiring)


@kinds
def test_count(front):
    @holds(front, laid(a_count), share=0.5)
    def check(drawn):
        (a, b), semiring = drawn
        values, argmax = oracle.product(semiring, a, b)
        ties = oracle.mul(semiring, a[:, :, None], b) == values[:, None]
        got = tg.count_matmul(*put(front, a, b), semiring=semiring)
        oracle.assert_same(front.get(got.values), values)
        counts = front.get(got.counts)
        np.testing.assert_array_equal(counts, np.where(argmax < 0, 0, ties.sum(axis=1)))


def a_chain(rng, draw):
    semiring, dtype = draw(st.sampled_from([p for p in oracle.PAIRS if p[1] in (*DTYPES, "bool")]))
    i, j, k, n = (draw(st.sampled_from((1, 2, 3, 7))) for _ in range(4))
    matrices = [rng.integers(0, 2 if dtype == "bool" else 4, shape) for shape in ((i, j), (j, k), (k, n))]
    return (*(x.astype(dtype) for x in matrices), semiring)


@kinds
def test_einsum(front):
    @holds(front, laid(a_chain), share=0.5 if front.share == 1 else 0.1)
    def check(drawn):
        (a, b, c), semiring = drawn
        expected = oracle.product(semiring, oracle.product(semiring, a, b)[0], c)[0]
        got = tg.einsum("ij,jk,kl->il", *put(front, a, b, c), semiring=semiring)
        oracle.assert_same(front.get(got), expected)

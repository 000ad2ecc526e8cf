import numpy as np
import oracle
import pytest
import trellis
import tropical_gemm as tg
from cases import laid_out
from hypothesis import given
from hypothesis import strategies as st

FLOATS = ("float32", "float64", "float16", "bfloat16")


def check(got, expected):
    np.testing.assert_array_equal(np.asarray(got.paths), expected[0])
    oracle.assert_same(np.asarray(got.scores), expected[1], "scores")


def scores(rng, shape, dtype, kind):
    x = rng.normal(size=shape)
    if kind == "ties":
        x = rng.integers(-2, 2, shape).astype(float)
    if kind == "impossible integers":
        x = rng.integers(-2, 2, shape).astype(float)
    if kind.startswith("impossible") or kind in ("nan", "infinite"):
        x[rng.random(shape) < 0.3] = -np.inf
    if kind == "nan":
        x[rng.random(shape) < 0.02] = np.nan
    if kind == "infinite":
        x[rng.random(shape) < 0.05] = np.inf
    return x.astype(oracle.DTYPES[dtype])


@st.composite
def problems(draw, kinds=("normal", "ties", "impossible", "nan", "infinite")):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = draw(st.sampled_from(FLOATS))
    kind = draw(st.sampled_from(kinds))
    steps, states = draw(st.sampled_from((0, 1, 2, 5, 9))), draw(st.sampled_from((1, 2, 3, 17, 40)))
    batch = draw(st.sampled_from(((), (1,), (3,), (2, 2), (0,))))
    lead = lambda: batch if draw(st.booleans()) else batch[1:]  # noqa: E731
    between = draw(st.sampled_from((None, 1, max(steps - 1, 0))))
    square = (states, states) if between is None else (*lead(), between, states, states)
    lay = lambda x: laid_out(x, draw(st.sampled_from(("C", "F", "step", "reversed", "offset"))))  # noqa: E731
    make = lambda shape: lay(scores(rng, shape, dtype, kind))  # noqa: E731
    initial, final = (make((*lead(), states)) if draw(st.booleans()) else None for _ in range(2))
    lengths = rng.integers(0, steps + 1, lead()) if draw(st.booleans()) else None
    return make((*batch, steps, states)), make(square), initial, final, lengths


@pytest.mark.filterwarnings("ignore:log_transition looks like")
@given(problems())
def test_meaning(problem):
    *arrays, lengths = problem
    check(tg.viterbi(*arrays, lengths=lengths), trellis.batched(*arrays, lengths))


@pytest.mark.filterwarnings("ignore:log_transition looks like")
@given(problems(kinds=("ties", "impossible integers")))
def test_scan_of_integers(problem):
    # Sums of small integers are exact in any order.
    *arrays, lengths = problem
    check(tg.viterbi(*arrays, lengths=lengths, method="scan"), trellis.batched(*arrays, lengths))


def test_scan_of_floats():
    rng = np.random.default_rng(8)
    e, a = rng.normal(size=(3, 1000, 6)), rng.normal(size=(6, 6))
    step, scan = tg.viterbi(e, a), tg.viterbi(e, a, method="scan")
    np.testing.assert_allclose(scan.scores, step.scores, rtol=1e-13)
    np.testing.assert_array_equal(scan.paths, step.paths)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads(dtype, threads):
    rng = np.random.default_rng(5)
    e, a = scores(rng, (5, 20, 300), dtype, "normal"), scores(rng, (300, 300), dtype, "impossible")
    check(tg.viterbi(e, a, threads=threads), trellis.batched(e, a))
    each = scores(rng, (19, 300, 300), dtype, "normal")
    check(tg.viterbi(e, each, threads=threads), trellis.batched(e, each))


def test_padding_never_leaks():
    rng = np.random.default_rng(6)
    e, a = rng.normal(size=(3, 8, 4)), rng.normal(size=(3, 7, 4, 4))
    lengths = [8, 3, 0]
    expected = tg.viterbi(e, a, lengths=lengths)
    for row, n in enumerate(lengths):
        e[row, n:] = np.nan
        a[row, max(n - 1, 0) :] = np.nan
    check(tg.viterbi(e, a, lengths=lengths), expected)
    check(expected, trellis.batched(e, a, lengths=lengths))
    assert expected.scores[2] == 0
    assert (expected.paths[2] == -1).all()
    assert (expected.paths[1, 3:] == -1).all()


def test_result_kinds():
    e, a = np.zeros((2, 3, 4), np.float32), np.zeros((4, 4), np.float32)
    got = tg.viterbi(e, a)
    assert got.paths.dtype == np.int32
    assert got.scores.dtype == np.float32
    assert isinstance(tg.viterbi(e[0], a).scores, np.float32)
    assert tg.viterbi(e.astype(np.float16), a.astype(np.float16)).scores.dtype == np.float32
    torch = pytest.importorskip("torch")
    got = tg.viterbi(torch.from_numpy(e), torch.from_numpy(a), lengths=torch.tensor([1, 3]))
    assert got.paths.dtype == torch.int64
    assert got.paths.tolist() == [[0, -1, -1], [0, 0, 0]]
    assert got.scores.dtype == torch.float32


def test_jax():
    jnp = pytest.importorskip("jax.numpy")
    rng = np.random.default_rng(7)
    e, a = scores(rng, (2, 6, 5), "float32", "ties"), scores(rng, (5, 5), "float32", "ties")
    got = tg.viterbi(jnp.asarray(e), jnp.asarray(a), lengths=jnp.array([6, 2]))
    assert type(got.paths).__module__.startswith("jax")
    check(got, trellis.batched(e, a, lengths=[6, 2]))


def test_warns_of_probabilities():
    p = np.array([[0.7, 0.3], [0.4, 0.6]])
    e = np.zeros((3, 2))
    with pytest.warns(UserWarning, match="log_transition looks like probabilities"):
        tg.viterbi(e, p)
    tg.viterbi(e, np.log(p))  # warnings are errors


E, A = np.zeros((4, 3)), np.zeros((3, 3))


@pytest.mark.parametrize(
    ("arguments", "options", "error", "text"),
    [
        ((E[0], A), {}, ValueError, r"log_emission has shape \(3,\), expected \(..., steps, states\)"),
        ((np.zeros((4, 0)), A), {}, ValueError, r"log_emission has shape \(4, 0\)"),
        ((E, np.zeros((3, 2))), {}, ValueError, r"log_transition has shape \(3, 2\), expected \(3, 3\)"),
        (
            (E, np.zeros((2, 3, 3))),
            {},
            ValueError,
            r"log_transition has shape \(2, 3, 3\), .* \(..., 3, 3, 3\)",
        ),
        ((E, A, np.zeros(2)), {}, ValueError, r"log_initial has shape \(2,\), expected \(..., 3\)"),
        ((E, A, None, np.zeros(())), {}, ValueError, r"log_final has shape \(\), expected \(..., 3\)"),
        ((E[None].repeat(2, 0), A, np.zeros((3, 3))), {}, ValueError, "leading axes do not broadcast"),
        (
            (E, A.astype(np.float32)),
            {},
            TypeError,
            "log_transition has dtype float32, expected float64 like log_em",
        ),
        (
            (E.astype(int), A.astype(int)),
            {},
            TypeError,
            "log_emission has dtype int64, expected one of float32",
        ),
        ((E.tolist(), A), {}, TypeError, "log_emission is of type list, expected an array"),
        ((E, A), {"lengths": 5}, ValueError, r"lengths holds 5, expected values in \[0, 4\]"),
        ((E, A), {"lengths": [-1]}, ValueError, r"lengths holds -1, expected values in \[0, 4\]"),
        ((E, A), {"lengths": 1.5}, TypeError, "lengths is of dtype float64, expected integers"),
        (
            (E, A),
            {"method": "greedy"},
            ValueError,
            "method is 'greedy', expected one of 'sequential', 'scan'",
        ),
        ((E, A), {"threads": 0}, ValueError, "threads is 0, expected None or a positive int"),
        ((E, A), {"stream": 1}, ValueError, "stream is 1, expected None for arrays in host memory"),
    ],
)
def test_bad_input(arguments, options, error, text):
    with pytest.raises(error, match=text):
        tg.viterbi(*arguments, **options)

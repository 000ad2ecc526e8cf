import json
from pathlib import Path

import numpy as np
import oracle
import pytest
import tropical_gemm as tg
from cases import laid_out
from hypothesis import given
from hypothesis import strategies as st

FIXTURES = Path(__file__).parents[3] / "shared" / "fixtures" / "counting_f32"


def reference(semiring, a, b):
    """Candidate by candidate, in Python's integers where they are integers."""
    (av, ac), (bv, bc) = a, b
    exact = np.issubdtype(av.dtype, np.integer)
    wide = object if exact else av.dtype
    zero, best = oracle.zero(semiring, av.dtype), max if semiring == "max_plus" else min
    values, counts = np.empty((av.shape[0], bv.shape[1]), wide), np.zeros((av.shape[0], bv.shape[1]), object)
    for i, j in np.ndindex(values.shape):
        ways = {}
        for k in range(av.shape[1]):
            if exact and (av[i, k] == zero or bv[k, j] == zero):
                continue
            with np.errstate(invalid="ignore"):
                t = int(av[i, k]) + int(bv[k, j]) if exact else av[i, k] + bv[k, j]
            t = "nan" if t != t else t
            ways[t] = ways.get(t, 0) + ac[i, k].item() * bc[k, j].item()
        if "nan" in ways:
            values[i, j] = np.nan
        else:
            values[i, j] = best(ways, default=zero)
            counts[i, j] = 0 if values[i, j] == zero else ways[values[i, j]]
    return values, counts


@given(st.data())
def test_meaning(data):
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    semiring = draw(st.sampled_from(("max_plus", "min_plus")))
    dtype, counted = (
        draw(st.sampled_from(("float32", "float64", "int32", "int64"))),
        draw(st.sampled_from("fi")),
    )
    m, n, k = (
        draw(st.sampled_from((0, 1, 3, 33))),
        draw(st.sampled_from((1, 2, 65))),
        draw(st.sampled_from((0, 1, 9))),
    )
    extreme = draw(st.booleans())
    threads = draw(st.sampled_from((1, 3)))

    def operand(shape):
        x = rng.integers(-2, 3, shape).astype(dtype)
        x[rng.random(shape) < 0.2] = oracle.zero(semiring, x.dtype)
        if dtype.startswith("float") and draw(st.booleans()):
            x[rng.random(shape) < 0.05] = np.nan
            x[rng.random(shape) < 0.05] = -oracle.zero(semiring, x.dtype)
        if dtype == "int64" and extreme:
            edges = [2**62, -(2**62), 2**61, np.iinfo(np.int64).max, np.iinfo(np.int64).min]
            x = np.where(rng.random(shape) < 0.3, rng.choice(edges, shape), x)
        counts = rng.integers(0, 2**40 if extreme else 4, shape).astype(np.int64 if counted == "i" else float)
        lay = draw(st.sampled_from(("C", "F", "step", "reversed")))
        return laid_out(x, lay), laid_out(counts, lay)

    a, b = operand((m, k)), operand((k, n))
    values, counts = reference(semiring, a, b)
    info, ends = np.iinfo(np.int64), (np.iinfo(dtype) if "int" in dtype else None)
    zero = oracle.zero(semiring, dtype)
    too_large = ends is not None and any(v != zero and not ends.min < v < ends.max for v in values.flat)
    too_many = counted == "i" and any(not info.min <= c <= info.max for c in counts.flat)
    if too_large or too_many:
        with pytest.raises(OverflowError, match="does not fit"):
            tg.count_matmul(a, b, semiring=semiring, threads=threads)
        return
    got = tg.count_matmul(a, b, semiring=semiring, threads=threads)
    oracle.assert_same(got.values, oracle.canonical(values.astype(dtype)))
    assert got.counts.dtype == a[1].dtype
    np.testing.assert_array_equal(got.counts, counts.astype(a[1].dtype))


def test_plain_values_count_one():
    inf = np.inf
    a = np.array([[0.0, -inf], [1.0, 1.0]])
    got = tg.count_matmul(a, a, semiring="max_plus")
    assert got.values.tolist() == [[0, -inf], [2, 2]]
    assert got.counts.tolist() == [[1, 0], [1, 1]]
    ones = (a, np.where(a == -inf, 0, 1))
    assert tg.count_matmul(ones, a, semiring="max_plus").counts.dtype == np.int64
    np.testing.assert_array_equal(tg.count_matmul(ones, a, semiring="max_plus").counts, got.counts)


def test_batches_and_vectors():
    rng = np.random.default_rng(0)
    a, b = rng.integers(-1, 2, (3, 1, 4, 5)), rng.integers(-1, 2, (2, 5, 6))
    got = tg.count_matmul(a, b, semiring="min_plus")
    assert got.values.shape == got.counts.shape == (3, 2, 4, 6)
    for i, j in np.ndindex(3, 2):
        one = tg.count_matmul(a[i, 0], b[j], semiring="min_plus")
        np.testing.assert_array_equal(got.values[i, j], one.values)
        np.testing.assert_array_equal(got.counts[i, j], one.counts)
    assert tg.count_matmul(a[0, 0, 0], b[0, :, 0], semiring="min_plus").counts.shape == ()


@pytest.mark.skipif(not FIXTURES.exists(), reason="the reference data are not here")
def test_reference_data():
    files = sorted(FIXTURES.glob("*.json"))
    assert files
    for file in files:
        case = json.loads(file.read_text())
        a, b, expected = (np.array(case[key], np.float32) for key in ("a", "b", "c_expected"))
        got = tg.count_matmul(*((x[..., 0], x[..., 1].astype(float)) for x in (a, b)), semiring="max_plus")
        np.testing.assert_array_equal(got.values, expected[..., 0])
        np.testing.assert_array_equal(got.counts, expected[..., 1].astype(float))


X = np.zeros((2, 2))


@pytest.mark.parametrize(
    ("a", "b", "semiring", "error", "text"),
    [
        (X, X, "max_mul", ValueError, "semiring is max_mul, expected max_plus or min_plus"),
        (
            X.astype(np.float16),
            X.astype(np.float16),
            "max_plus",
            TypeError,
            "a has dtype float16; values that are",
        ),
        ((X, X, X), X, "max_plus", ValueError, "a is a tuple of 3, expected values or a pair"),
        ((X, np.zeros((2, 3))), X, "max_plus", ValueError, r"a_counts has shape \(2, 3\), expected \(2, 2\)"),
        (
            (X, X.astype(np.float32)),
            X,
            "max_plus",
            TypeError,
            "out_counts has dtype float32, expected float64 or",
        ),
        (
            (X, X),
            (X, X.astype(int)),
            "max_plus",
            TypeError,
            "b_counts has dtype int64, expected float64 like",
        ),
        (X, np.zeros((3, 2)), "max_plus", ValueError, "the last axis of a"),
    ],
)
def test_bad_input(a, b, semiring, error, text):
    with pytest.raises(error, match=text):
        tg.count_matmul(a, b, semiring=semiring)


def test_jax_needs_64_bits():
    jax = pytest.importorskip("jax")
    x = jax.numpy.zeros((2, 2))
    with pytest.raises(TypeError, match="jax_enable_x64"):
        tg.count_matmul(x, x, semiring="max_plus")
    with pytest.raises(TypeError, match="jax_enable_x64"):
        tg.einsum("ij,jk->ik", x, x, semiring="count_max_plus")


def test_no_rule_for_vmap():
    torch = pytest.importorskip("torch")
    count = torch.vmap(lambda x: tg.count_matmul(x, x, semiring="max_plus").values)
    with pytest.raises(RuntimeError, match=r"a is under a transform of torch\.func"):
        count(torch.zeros(3, 2, 2))


def test_one_long_side():
    rng = np.random.default_rng(7)
    for m, k, n in ((500, 2, 2), (2, 3, 500), (65, 1, 63), (1, 300, 1)):
        a, b = rng.integers(-2, 3, (m, k)), rng.integers(-2, 3, (k, n))
        values, counts = reference("max_plus", (a, np.ones_like(a)), (b, np.ones_like(b)))
        got = tg.count_matmul(a, b, semiring="max_plus")
        np.testing.assert_array_equal(got.values, values)
        np.testing.assert_array_equal(got.counts, counts)

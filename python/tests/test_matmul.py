"""Products against the NumPy formula, bit by bit."""

import cases
import numpy as np
import oracle
import pytest
import tropical_gemm as tg
from hypothesis import given, settings
from hypothesis import strategies as st

threads = st.sampled_from((None, 1, 2, 5))


@settings(max_examples=1000)
@given(case=cases.products(), threads=threads)
def test_values_and_argmax(isa, case, threads):
    semiring, a, b, _ = case
    values, argmax = oracle.product(semiring, a, b)
    got = tg.matmul(a, b, semiring=semiring, return_argmax=True, threads=threads)
    oracle.assert_same(got.values, values)
    oracle.assert_same(got.argmax, argmax, "argmax")


@settings(max_examples=1000)
@given(case=cases.products(), threads=threads)
def test_values_alone(isa, case, threads):
    semiring, a, b, _ = case
    oracle.assert_same(tg.matmul(a, b, semiring=semiring, threads=threads), oracle.product(semiring, a, b)[0])


def assert_product(semiring, a, b, what):
    """Values and argmax of a x b are the oracle's; returns the values."""
    got = tg.matmul(a, b, semiring=semiring, return_argmax=True)
    values, argmax = oracle.product(semiring, a, b)
    oracle.assert_same(got.values, values, f"values of {what}")
    oracle.assert_same(got.argmax, argmax, f"argmax of {what}")
    return values


@pytest.mark.parametrize(("semiring", "dtype"), oracle.PAIRS)
def test_tiny_shapes_in_full(semiring, dtype):
    rng = np.random.default_rng(0)
    for m, n, k in np.ndindex(4, 4, 4):
        for fill in cases.FILLS:
            a = cases.values(rng, fill, semiring, dtype, (m, k))
            b = cases.values(rng, fill, semiring, dtype, (k, n))
            assert_product(semiring, a, b, f"{fill} {m}x{k}x{n}")


@pytest.mark.parametrize(("semiring", "dtype"), oracle.PAIRS)
def test_larger_shapes(isa, semiring, dtype):
    rng = np.random.default_rng(1)
    small = dtype == "int64" and semiring.endswith(("plus", "mul"))
    for m, k, n in [(9, 300, 20), (70, 20, 130), (130, 33, 40)]:
        if small:
            m, n = m // 4, n // 4
        for fill in ("uniform", "masked", "infinities"):
            a = cases.values(rng, fill, semiring, dtype, (m, k))
            b = cases.values(rng, fill, semiring, dtype, (k, n))
            values = assert_product(semiring, a, b, f"{fill} {m}x{k}x{n}")
            oracle.assert_same(tg.matmul(a, b, semiring=semiring), values)


@pytest.mark.parametrize("semiring", oracle.NUMERIC)
def test_every_pair_of_half_numbers(semiring):
    """All float16 against a few: each candidate is rounded as NumPy rounds it."""
    a = np.arange(1 << 16, dtype=np.uint16).view(np.float16)[:, None]
    b = np.array([[2048, 0.1, -0.333, 6e-8, 65504, np.inf, -0.0, np.nan]], np.float16)
    oracle.assert_same(tg.matmul(a, b, semiring=semiring), oracle.product(semiring, a, b)[0])


@pytest.mark.parametrize("semiring", oracle.NUMERIC)
def test_every_pair_of_bfloat16_numbers(semiring):
    bf16 = oracle.DTYPES["bfloat16"]
    a = np.arange(1 << 16, dtype=np.uint16).view(bf16)[:, None]
    b = np.array([[256, 0.1, -0.333, 1e-40, 3e38, np.inf, -0.0, np.nan]]).astype(bf16)
    oracle.assert_same(tg.matmul(a, b, semiring=semiring), oracle.product(semiring, a, b)[0])


def test_shapes_follow_numpy():
    shapes = [
        ((3,), (3,)), ((3,), (3, 2)), ((4, 3), (3,)), ((5, 1, 4, 3), (6, 3, 2)), ((7, 3), (2, 5, 3, 1)),
        ((2, 5, 7, 3), (3,)), ((3,), (2, 3, 4)), ((0, 3), (3, 2)), ((4, 0), (0, 2)), ((0, 4, 3), (1, 3, 2)),
        ((1, 1), (1, 1)), ((2,) * 10, (2,) * 8),
    ]  # fmt: skip
    for shape_a, shape_b in shapes:
        a, b = np.zeros(shape_a), np.zeros(shape_b)
        got = tg.matmul(a, b)
        assert np.shape(got) == np.shape(np.matmul(a, b)), (shape_a, shape_b)
        assert isinstance(got, np.generic) == isinstance(np.matmul(a, b), np.generic), (shape_a, shape_b)
        argmax = tg.matmul(a, b, return_argmax=True).argmax
        assert np.shape(argmax) == np.shape(got)
        assert argmax.dtype == np.int32


def test_semiring_is_max_plus_unless_said():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(5, 6)), rng.normal(size=(6, 7))
    oracle.assert_same(tg.matmul(a, b), oracle.product("max_plus", a, b)[0])


@pytest.mark.parametrize("name", ["min_plus", "MinPlus", "min-plus", "minplus", "MIN_PLUS", "Min Plus"])
def test_spellings(name):
    x = np.array([[1.0, 4.0], [2.0, 0.0]])
    oracle.assert_same(tg.matmul(x, x, semiring=name), oracle.product("min_plus", x, x)[0])


def test_inputs_are_left_alone():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(20, 30)), rng.normal(size=(30, 20))
    before = a.copy(), b.copy()
    tg.matmul(a, b, return_argmax=True)
    oracle.assert_same(a, before[0])
    oracle.assert_same(b, before[1])


def test_one_array_twice():
    x = np.random.default_rng(4).normal(size=(17, 17)).astype(np.float32)
    oracle.assert_same(tg.matmul(x, x), oracle.product("max_plus", x, x)[0])
    oracle.assert_same(tg.matmul(x, x.T), oracle.product("max_plus", x, x.T)[0])

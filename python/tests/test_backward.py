"""Gradients against a plain loop, and against finite differences."""

import cases
import numpy as np
import oracle
import pytest
import tropical_gemm as tg
from hypothesis import given, settings
from hypothesis import strategies as st

FILLS = ("few", "masked", "signed_zeros")
RANDOM_ORDER = {"float64": 1e-12, "float32": 1e-4, "float16": 2e-3, "bfloat16": 2e-2}
gradient_products = cases.products(
    pairs=oracle.FLOAT_PAIRS, sizes=(0, 1, 2, 3, 8, 9), depths=(0, 1, 2, 5, 9), fills=FILLS
)


def whole_numbers(rng, dtype, shape):
    """Small ones, whose sums are exact in every order and every dtype."""
    return np.asarray(rng.integers(-1, 3, shape)).astype(dtype)


@settings(max_examples=500)
@given(
    case=gradient_products,
    index=st.sampled_from((np.int32, np.int64)),
    layout=st.sampled_from(cases.LAYOUTS[:6]),
    threads=st.sampled_from((None, 1, 2, 5)),
)
def test_whole_numbers_are_exact(isa, case, index, layout, threads):
    semiring, a, b, rng = case
    argmax = oracle.product(semiring, a, b)[1].astype(index)
    grad_c = cases.laid_out(whole_numbers(rng, a.dtype, argmax.shape), layout)
    argmax = cases.laid_out(np.asarray(argmax), layout)
    a, b = (np.where(np.isinf(x), np.asarray(2, x.dtype), np.rint(x)) for x in (a, b))
    expected = oracle.gradients(semiring, grad_c, argmax, a, b)
    got = tg.matmul_backward(grad_c, argmax, a, b, semiring=semiring, threads=threads)
    for name, x, y in zip(("grad_a", "grad_b"), got, expected, strict=True):
        oracle.assert_same(x, oracle.canonical(y), name)


@pytest.mark.parametrize(("semiring", "dtype"), oracle.FLOAT_PAIRS)
def test_reals_within_rounding(isa, semiring, dtype):
    rng = np.random.default_rng(0)
    a, b = (cases.values(rng, "uniform", semiring, dtype, s) for s in ((2, 11, 23), (23, 37)))
    grad_c = cases.values(rng, "uniform", semiring, dtype, (2, 11, 37))
    argmax = tg.matmul(a, b, semiring=semiring, return_argmax=True).argmax
    expected = oracle.gradients(semiring, grad_c, argmax, a, b)
    got = tg.matmul_backward(grad_c, argmax, a, b, semiring=semiring)
    scale = 4 * (4 if semiring.endswith("mul") else 1)
    for x, y in zip(got, expected, strict=True):
        assert x.dtype == a.dtype
        assert np.abs(x.astype(float) - y.astype(float)).max() <= RANDOM_ORDER[dtype] * scale * 4


@pytest.mark.parametrize(("semiring", "dtype"), oracle.FLOAT_PAIRS)
def test_bits_do_not_depend_on_threads(semiring, dtype):
    rng = np.random.default_rng(1)
    a, b = (cases.values(rng, "uniform", semiring, dtype, s) for s in ((3, 40, 30), (30, 90)))
    grad_c = cases.values(rng, "uniform", semiring, dtype, (3, 40, 90))
    argmax = tg.matmul(a, b, semiring=semiring, return_argmax=True).argmax
    first = tg.matmul_backward(grad_c, argmax, a, b, semiring=semiring, threads=1)
    for threads in (2, 3, 7):
        got = tg.matmul_backward(grad_c, argmax, a, b, semiring=semiring, threads=threads)
        oracle.assert_same(got.grad_a, first.grad_a, "grad_a")
        oracle.assert_same(got.grad_b, first.grad_b, "grad_b")


@pytest.mark.parametrize("semiring", oracle.NUMERIC)
def test_finite_differences(semiring):
    rng = np.random.default_rng(2)
    a, b = rng.uniform(0.5, 2, (2, 5, 7)), rng.uniform(0.5, 2, (7, 6))
    weight = rng.normal(size=(2, 5, 6))
    argmax = tg.matmul(a, b, semiring=semiring, return_argmax=True).argmax
    got = tg.matmul_backward(weight, argmax, a, b, semiring=semiring)
    step = 1e-6
    for x, gradient in ((a, got.grad_a), (b, got.grad_b)):
        numeric = np.zeros_like(x)
        for index in np.ndindex(*x.shape):
            kept = x[index]
            x[index] = kept + step
            up = (weight * tg.matmul(a, b, semiring=semiring)).sum()
            x[index] = kept - step
            down = (weight * tg.matmul(a, b, semiring=semiring)).sum()
            x[index] = kept
            numeric[index] = (up - down) / (2 * step)
        np.testing.assert_allclose(gradient, numeric, atol=1e-7)


def test_indices_outside_contribute_nothing():
    a, b = np.ones((1, 3)), np.ones((3, 1))
    for dtype, indices in [
        (np.int32, (-1, 3, 4, -3, 2**31 - 1, -(2**31))),
        (np.int64, (-1, 3, 2**32, 2**32 + 1, -(2**32), 2**63 - 1, -(2**63))),
    ]:
        for k in indices:
            got = tg.matmul_backward(np.ones((1, 1)), np.array([[k]], dtype), a, b)
            assert not got.grad_a.any(), k
            assert not got.grad_b.any(), k


def test_masked_entries_train_nothing():
    a = np.array([[-np.inf, -np.inf], [1, 2]])
    b = np.array([[1.0, -np.inf], [0.0, -np.inf]])
    values, argmax = tg.matmul(a, b, return_argmax=True)
    got = tg.matmul_backward(np.ones_like(values), argmax, a, b)
    assert got.grad_a.tolist() == [[0, 0], [1, 0]] or got.grad_a.tolist() == [[0, 0], [0, 1]]
    assert got.grad_b[:, 1].tolist() == [0, 0]
    assert got.grad_b.sum() == 1


def test_the_chosen_operand_of_max_min():
    # The smaller of each pair is the candidate; on a tie it is a's.
    a, b = np.array([[1.0, 5.0, 3.0]]), np.array([[9.0], [2.0], [3.0]])
    argmax = tg.matmul(a, b, semiring="max_min", return_argmax=True).argmax
    got = tg.matmul_backward(np.array([[4.0]]), argmax, a, b, semiring="max_min")
    assert (got.grad_a.tolist(), got.grad_b.ravel().tolist()) == ([[0, 0, 4]], [0, 0, 0])
    a[0, 2] = 3.5
    argmax = tg.matmul(a, b, semiring="max_min", return_argmax=True).argmax
    got = tg.matmul_backward(np.array([[4.0]]), argmax, a, b, semiring="max_min")
    assert (got.grad_a.tolist(), got.grad_b.ravel().tolist()) == ([[0, 0, 0]], [0, 0, 4])


def test_half_sums_are_rounded_once():
    # 2048 ones: a float16 running sum stops at 2048, one in bfloat16 at 256.
    for dtype, count in (("float16", 2050), ("bfloat16", 300)):
        dtype = oracle.DTYPES[dtype]
        a, b = np.zeros((1, 1), dtype), np.zeros((1, count), dtype)
        got = tg.matmul_backward(np.ones((1, count), dtype), np.zeros((1, count), np.int32), a, b)
        assert got.grad_a[0, 0] == np.asarray(count, dtype)


def test_broadcast_operands_are_summed_over():
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 9, (4, 5)).astype(float), rng.integers(0, 9, (3, 1, 5, 6)).astype(float)
    values, argmax = tg.matmul(a, b, return_argmax=True)
    grad_c = rng.integers(0, 5, values.shape).astype(float)
    got = tg.matmul_backward(grad_c, argmax, a, b)
    expected = oracle.gradients("max_plus", grad_c, argmax, a, b)
    assert (got.grad_a.shape, got.grad_b.shape) == (a.shape, b.shape)
    oracle.assert_same(got.grad_a, expected[0])
    oracle.assert_same(got.grad_b, expected[1])
    assert got.grad_a.sum() == grad_c.sum()


def test_only_what_is_needed():
    a, b = np.ones((2, 3)), np.ones((3, 4))
    argmax = np.zeros((2, 4), np.int32)
    both = tg.matmul_backward(np.ones((2, 4)), argmax, a, b)
    left = tg.matmul_backward(np.ones((2, 4)), argmax, a, b, needs=(True, False))
    right = tg.matmul_backward(np.ones((2, 4)), argmax, a, b, needs=(False, True))
    assert left.grad_b is None
    assert right.grad_a is None
    oracle.assert_same(left.grad_a, both.grad_a)
    oracle.assert_same(right.grad_b, both.grad_b)
    assert tuple(tg.matmul_backward(np.ones((2, 4)), argmax, a, b, needs=(False, False))) == (None, None)


def test_nan_gradients_propagate():
    a, b = np.ones((1, 2)), np.ones((2, 2))
    got = tg.matmul_backward(np.array([[np.nan, 1.0]]), np.array([[0, 1]], np.int32), a, b)
    assert np.isnan(got.grad_a[0, 0])
    assert got.grad_a[0, 1] == 1
    assert np.isnan(got.grad_b[0, 0])

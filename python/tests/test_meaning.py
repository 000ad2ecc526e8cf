"""The meaning of a result by small examples with the answer written out."""

import numpy as np
import oracle
import pytest
import tropical_gemm as tg

inf, nan = np.inf, np.nan
I32 = np.iinfo(np.int32)


def both(a, b, semiring, dtype=np.float64, **kwargs):
    """The single element of a row times a column, and its argmax."""
    a, b = np.array([a], dtype), np.array(b, dtype)[:, None]
    values, argmax = tg.matmul(a, b, semiring=semiring, return_argmax=True, **kwargs)
    return values[0, 0], int(argmax[0, 0])


def test_ties_go_to_the_lowest_index():
    assert both([1, 3, 3], [1, 0, 0], "max_plus") == (3, 1)
    assert both([2, 1, 1], [0, 1, 0], "min_plus") == (1, 2)
    assert both([-0.0, 0.0], [0, 0], "max_plus") == (0, 0)
    assert both([5, 5, 5], [5, 5, 5], "max_min") == (5, 0)


def test_rounded_candidates_tie():
    # 2048.25 and 2048.5 are both 2048 in float16.
    assert both([2048, 2048], [0.25, 0.5], "max_plus", np.float16) == (2048, 0)
    bf16 = oracle.DTYPES["bfloat16"]
    assert both([256, 256], [0.25, 0.5], "max_plus", bf16) == (256, 0)
    # The sums tie in float32 as well, though not in float64.
    assert both([1, 1], [1e-9, 2e-9], "max_plus", np.float32) == (1, 0)


@pytest.mark.parametrize(
    ("semiring", "zero"), [("max_plus", -inf), ("min_plus", inf), ("max_min", -inf), ("min_max", inf)]
)
def test_nothing_selected(semiring, zero):
    assert both([zero, zero], [1, 2], semiring) == (zero, -1)
    assert both([zero, 1], [5, 2], semiring)[1] == 1


def test_saturated_and_rounded_to_the_zero_is_nothing_selected():
    assert both([I32.min + 1], [-5], "max_plus", np.int32) == (I32.min, -1)
    assert both([I32.max - 1], [5], "min_plus", np.int32) == (I32.max, -1)
    assert both([-65504], [-65504], "max_plus", np.float16) == (-inf, -1)
    assert both([3e38], [3e38], "min_plus", np.float32) == (inf, -1)
    assert both([1e200], [1e200], "min_mul") == (inf, -1)


def test_ordinary_zeros_are_selected():
    assert both([0, 0], [5, 5], "max_mul") == (0, 0)
    assert both([0, -1], [5, 0], "max_mul") == (0, 0)
    values, argmax = tg.matmul(
        np.zeros((1, 3), bool), np.zeros((3, 1), bool), semiring="or_and", return_argmax=True
    )
    assert (values[0, 0], argmax[0, 0]) == (False, 0)


def test_nan_is_the_result_and_its_first_index_the_argmax():
    value, index = both([1, nan, 9, nan], [0, 0, 0, 0], "max_plus")
    assert np.isnan(value)
    assert index == 1
    value, index = both([1, 2, 9], [0, 0, nan], "min_mul")
    assert np.isnan(value)
    assert index == 2


def test_nan_from_infinities():
    for semiring in ("max_plus", "min_plus"):
        value, index = both([0, -inf, 7], [0, inf, 0], semiring)
        assert np.isnan(value)
        assert index == 1
    for semiring in ("max_mul", "min_mul"):
        value, index = both([1, 0], [1, inf], semiring)
        assert np.isnan(value)
        assert index == 1
    assert both([-inf], [inf], "max_min") == (-inf, -1)


@pytest.mark.parametrize("dtype", oracle.FLOATS)
def test_stored_bits_are_canonical(dtype):
    dtype = oracle.DTYPES[dtype]
    zero = tg.matmul(np.array([[-0.0]], dtype), np.array([[-0.0]], dtype))
    assert oracle.bits(zero)[0, 0] == 0
    odd = -np.array([[nan]], dtype)
    got = tg.matmul(odd, np.array([[1]], dtype))
    oracle.assert_same(got, oracle.canonical(np.array([[nan]], dtype)))
    # Also of what was in `out` before, unless K is 0.
    out = np.array([[-0.0]], dtype)
    tg.matmul(np.array([[-1]], dtype), np.array([[-1]], dtype), out=out, accumulate=True)
    assert oracle.bits(out)[0, 0] == 0
    out = np.array([[-0.0]], dtype)
    tg.matmul(np.empty((1, 0), dtype), np.empty((0, 1), dtype), out=out, accumulate=True)
    assert oracle.bits(out)[0, 0] != 0


@pytest.mark.parametrize(("semiring", "dtype"), oracle.PAIRS)
def test_empty(semiring, dtype):
    dtype = oracle.DTYPES[dtype]
    values, argmax = tg.matmul(
        np.empty((2, 0), dtype), np.empty((0, 3), dtype), semiring=semiring, return_argmax=True
    )
    assert (values == oracle.zero(semiring, dtype)).all()
    assert (argmax == -1).all()
    for shape_a, shape_b, shape_c in [
        ((0, 2), (2, 3), (0, 3)),
        ((2, 3), (3, 0), (2, 0)),
        ((0, 2, 3), (3, 4), (0, 2, 4)),
    ]:
        assert (
            tg.matmul(np.empty(shape_a, dtype), np.empty(shape_b, dtype), semiring=semiring).shape == shape_c
        )


def test_integers_absorb_and_saturate():
    assert both([I32.min], [5], "max_plus", np.int32) == (I32.min, -1)
    assert both([I32.min], [I32.max], "max_plus", np.int32) == (I32.min, -1)
    assert both([I32.max], [-5], "min_plus", np.int32) == (I32.max, -1)
    assert both([I32.max - 3], [100], "max_plus", np.int32) == (I32.max, 0)
    assert both([I32.min + 3], [-100], "min_plus", np.int32) == (I32.min, 0)
    assert both([I32.min], [-1], "max_mul", np.int32) == (I32.max, 0)
    assert both([50000], [50000], "min_mul", np.int32) == (I32.max, -1)
    big = np.iinfo(np.int64)
    assert both([big.max], [big.max], "max_mul", np.int64) == (big.max, 0)
    assert both([big.min], [big.max], "max_plus", np.int64) == (big.min, -1)
    assert both([200], [200], "max_mul", np.int16) == (32767, 0)


def test_saturated_candidates_tie():
    assert both([I32.max, I32.max], [5, 9], "max_plus", np.int32) == (I32.max, 0)
    assert both([30000, 32000], [30000, 32000], "max_plus", np.int16) == (32767, 0)
    assert both([1 << 61, 1 << 62], [1 << 62, 1 << 61], "max_plus", np.int64) == ((1 << 61) + (1 << 62), 0)
    assert both([1 << 62, 1 << 62], [1 << 62, (1 << 62) + 1], "max_plus", np.int64) == (
        np.iinfo(np.int64).max,
        0,
    )


def test_all_negative_products_have_a_negative_maximum():
    assert both([-1, -2], [3, 1], "max_mul") == (-2, 1)
    assert both([-1, -2], [3, 1], "max_mul", np.int32) == (-2, 1)


def test_reachability():
    a = np.array([[False, True], [False, False]])
    b = np.array([[True, False], [False, True]])
    values, argmax = tg.matmul(a, b, semiring="or_and", return_argmax=True)
    assert values.tolist() == [[False, True], [False, False]]
    assert argmax.tolist() == [[0, 1], [0, 0]]

"""What the Rust package of the same name got wrong, and must be right here."""

import inspect
import re

import numpy as np
import oracle
import pytest
import tropical_gemm as tg


def test_fortran_order_is_not_misread():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 7)), rng.normal(size=(7, 4))
    expected = tg.matmul(a, b)
    oracle.assert_same(tg.matmul(np.asfortranarray(a), np.asfortranarray(b)), expected)
    oracle.assert_same(tg.matmul(a.T.copy().T, b), expected)
    argmax = tg.matmul(a, b, return_argmax=True).argmax
    grad_c = rng.integers(0, 9, expected.shape).astype(float)
    plain = tg.matmul_backward(grad_c, argmax, a, b)
    fortran = tg.matmul_backward(*(np.asfortranarray(x) for x in (grad_c, argmax, a, b)))
    oracle.assert_same(fortran.grad_a, plain.grad_a)
    oracle.assert_same(fortran.grad_b, plain.grad_b)


def test_products_that_are_all_negative():
    a, b = np.array([[-3.0, -1.0]], np.float32), np.array([[2.0], [1.0]], np.float32)
    values, argmax = tg.matmul(a, b, semiring="max_mul", return_argmax=True)
    assert (values[0, 0], argmax[0, 0]) == (-1, 1)
    grad_a, grad_b = tg.matmul_backward(np.ones((1, 1), np.float32), argmax, a, b, semiring="max_mul")
    assert (grad_a.tolist(), grad_b.tolist()) == ([[0, 1]], [[0], [-1]])


@pytest.mark.parametrize("semiring", ["max_plus", "min_plus", "max_mul"])
def test_nan_does_not_erase_what_came_before(semiring):
    a, b = np.array([[5, np.nan, 1]], np.float32), np.ones((3, 1), np.float32)
    alone = tg.matmul(a, b, semiring=semiring)
    values, argmax = tg.matmul(a, b, semiring=semiring, return_argmax=True)
    assert np.isnan(alone[0, 0])
    oracle.assert_same(values, alone)
    assert argmax[0, 0] == 1


def test_double_precision_is_kept():
    x = np.array([[[1 + 2.0**-40]]])
    got = tg.matmul(x, np.zeros((1, 1, 1)))
    assert got.dtype == np.float64
    assert got[0, 0, 0] == x[0, 0, 0]


def test_nothing_is_cast_in_silence():
    a = np.ones((2, 2), np.float32)
    for b in (np.ones((2, 2)), np.ones((2, 2), np.float16), np.ones((2, 2), np.int32)):
        with pytest.raises(TypeError, match=f"b has dtype {b.dtype}, expected float32"):
            tg.matmul(a, b)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32", "int64"])
def test_every_dtype_has_batches_and_argmax(dtype):
    x = np.ones((2, 3, 3), oracle.DTYPES[dtype])
    values, argmax = tg.matmul(x, x, return_argmax=True)
    assert values.dtype == x.dtype
    assert (values == 2).all()
    assert (argmax == 0).all()


def test_integers_are_neither_clamped_low_nor_wrapped():
    far = np.array([[46341, 1_000_000]], np.int32)
    assert tg.matmul(far, np.array([[500_000], [0]], np.int32), semiring="min_plus")[0, 0] == 546_341
    top = np.iinfo(np.int32).max
    assert tg.matmul(np.array([[top - 1]], np.int32), np.array([[10]], np.int32))[0, 0] == top
    none = np.array([[top]], np.int32)
    assert tg.matmul(none, np.array([[10]], np.int32), semiring="min_plus")[0, 0] == top


def test_threads_and_argmax_change_no_value():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(4, 60, 50)).astype(np.float32), rng.normal(size=(4, 50, 70)).astype(np.float32)
    expected = oracle.product("max_plus", a, b)[0]
    for threads in (1, 2, None):
        oracle.assert_same(tg.matmul(a, b, threads=threads), expected)
        oracle.assert_same(tg.matmul(a, b, threads=threads, return_argmax=True).values, expected)


def test_nothing_empty_is_an_error():
    for shape_a, shape_b in [((0, 3), (3, 2)), ((2, 0), (0, 2)), ((2, 3), (3, 0)), ((0, 2, 3), (0, 3, 2))]:
        a, b = np.ones(shape_a, np.float32), np.ones(shape_b, np.float32)
        values, argmax = tg.matmul(a, b, return_argmax=True)
        assert values.shape == np.matmul(a, b).shape
        assert (values == -np.inf).all()
        got = tg.matmul_backward(np.ones_like(values), argmax, a, b)
        assert (got.grad_a.shape, got.grad_b.shape) == (a.shape, b.shape)
        assert not got.grad_a.any()
        assert not got.grad_b.any()


def test_gradients_check_their_shapes():
    a, b = np.ones((2, 3)), np.ones((3, 4))
    for shape in [(2, 3), (3, 4), (8,), (1, 4), (0, 4)]:
        with pytest.raises(ValueError, match="argmax has shape"):
            tg.matmul_backward(np.ones((2, 4)), np.zeros(shape, np.int32), a, b)
        with pytest.raises(ValueError, match="grad_c has shape"):
            tg.matmul_backward(np.ones(shape), np.zeros((2, 4), np.int32), a, b)


@pytest.mark.parametrize("function", [tg.matmul, tg.matmul_backward])
def test_docstrings_list_the_arguments_there_are(function):
    section = inspect.getdoc(function).split("Parameters\n----------\n")[1]
    documented = re.split("\n\n(?:Returns|Notes)\n", section)[0]
    names = {name for line in re.findall(r"^\w.*", documented, re.MULTILINE) for name in line.split(", ")}
    assert set(inspect.signature(function).parameters) == names

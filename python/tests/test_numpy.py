"""NumPy arrays of every kind are read in place, whatever their memory looks like."""

import cases
import numpy as np
import oracle
import pytest
import tropical_gemm as tg
from cases import Producer


@pytest.mark.parametrize("layout_b", cases.LAYOUTS)
@pytest.mark.parametrize("layout_a", cases.LAYOUTS)
def test_layouts(layout_a, layout_b):
    rng = np.random.default_rng(0)
    for dtype in ("float32", "float16", "int16", "int64"):
        a = cases.laid_out(cases.values(rng, "uniform", "max_plus", dtype, (2, 19, 18)), layout_a)
        b = cases.laid_out(cases.values(rng, "uniform", "max_plus", dtype, (2, 18, 21)), layout_b)
        got = tg.matmul(a, b, return_argmax=True)
        values, argmax = oracle.product("max_plus", a, b)
        oracle.assert_same(got.values, values)
        oracle.assert_same(got.argmax, argmax, "argmax")


def test_axes_in_any_order():
    x = np.random.default_rng(1).normal(size=(3, 4, 5, 6))
    for order in [(3, 1, 0, 2), (0, 2, 1, 3), (2, 3, 0, 1)]:
        a = x.transpose(order)
        b = a.swapaxes(-1, -2)
        oracle.assert_same(tg.matmul(a, b), oracle.product("max_plus", a, b)[0])


def test_broadcast_in_every_axis():
    for shape in [(7, 9), (1, 9), (7, 1)]:
        a = np.broadcast_to(np.arange(max(shape), dtype=np.float32).reshape(-1)[: shape[1]], (7, shape[1]))
        b = np.broadcast_to(np.float32(2), (shape[1], 5))
        oracle.assert_same(tg.matmul(a, b), oracle.product("max_plus", a, b)[0])


def test_windows_that_overlap():
    x = np.random.default_rng(2).normal(size=40)
    a = np.lib.stride_tricks.sliding_window_view(x, 9)
    oracle.assert_same(tg.matmul(a, a.T), oracle.product("max_plus", a, a.T)[0])


def test_memory_map(tmp_path):
    x = np.random.default_rng(3).normal(size=(20, 20))
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    oracle.assert_same(tg.matmul(mapped, mapped), oracle.product("max_plus", x, x)[0])


@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_results_have_the_dtype_of_the_operands(dtype):
    dtype = oracle.DTYPES[dtype]
    semiring = "or_and" if dtype.name == "bool" else "max_plus"
    x = np.ones((2, 2), dtype)
    got = tg.matmul(x, x, semiring=semiring, return_argmax=True)
    assert type(got.values) is np.ndarray
    assert got.values.dtype == dtype
    assert got.argmax.dtype == np.int32
    assert got.values.flags.c_contiguous
    assert got.values.flags.writeable
    assert (got.values == (True if dtype.name == "bool" else 2)).all()


def test_any_byte_but_zero_is_true():
    """As NumPy has it for arrays that were made by viewing other bytes as bool."""
    rng = np.random.default_rng(4)
    a, b = (rng.choice(np.array([0, 0, 1, 2, 4, 255], np.uint8), s) for s in ((40, 50), (50, 70)))
    for rows in (1, 40):
        x, y = a[:rows].view(bool), b.view(bool)
        got = tg.matmul(x, y, semiring="or_and", return_argmax=True)
        values, argmax = oracle.product("or_and", x != 0, y != 0)
        oracle.assert_same(got.values, values)
        oracle.assert_same(got.argmax, argmax, "argmax")
        oracle.assert_same(tg.matmul(x, y, semiring="or_and"), values)


def test_platform_integer_names():
    for code in "hilq":
        x = np.ones((2, 2), code)
        assert tg.matmul(x, x).dtype == np.dtype(code)


def test_explicit_byte_order_of_this_machine():
    x = np.ones((2, 2), "=f4")
    assert tg.matmul(x, np.ones((2, 2), "<f4" if np.little_endian else ">f4")).tolist() == [[2, 2], [2, 2]]


def test_results_do_not_share_memory():
    x = np.ones((4, 4))
    first, second = tg.matmul(x, x), tg.matmul(x, x)
    assert not np.shares_memory(first, x)
    assert not np.shares_memory(first, second)


def test_references_are_given_back():
    import gc
    import weakref

    class Owner:
        def __init__(self):
            self.__array_interface__ = {
                "data": (memory.ctypes.data, False), "shape": (3, 3), "typestr": "<f8", "version": 3,
            }  # fmt: skip

    memory = np.ones((3, 3))
    owner = Owner()
    alive = weakref.ref(owner)
    x = np.asarray(owner)
    del owner
    for _ in range(3):
        tg.matmul(x, x, out=np.empty((3, 3)))
        with pytest.raises(ValueError, match="out"):
            tg.matmul(x, x, out=np.empty((2, 2)))
        with pytest.raises(TypeError):
            tg.matmul(x, np.ones((3, 3), complex))
    del x
    gc.collect()
    assert alive() is None


def test_any_producer_of_dlpack():
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((5, 7), (7, 3)))
    got, argmax = tg.matmul(Producer(a), Producer(b), return_argmax=True)
    want = tg.matmul(a, b, return_argmax=True)
    assert isinstance(got, np.ndarray)
    assert isinstance(argmax, np.ndarray)
    np.testing.assert_array_equal(got, want.values)
    np.testing.assert_array_equal(argmax, want.argmax)
    out = np.empty((5, 3), np.float32)
    assert tg.matmul(Producer(a), Producer(b), out=(held := Producer(out))) is held
    np.testing.assert_array_equal(out, want.values)


def test_results_stand_beside_their_producers():
    a = np.arange(6.0).reshape(2, 3)
    got = tg.matmul(Producer(a), Producer(a.T), return_argmax=True)
    assert tg.matmul(got.values, Producer(a)).shape == (2, 3)
    assert tg.matmul(Producer(a.T), got.values).shape == (3, 2)
    grads = tg.matmul_backward(got.values, got.argmax, Producer(a), Producer(a.T))
    assert grads.grad_a.shape == (2, 3)

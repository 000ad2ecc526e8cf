"""The Rust package's functions: every name, its arguments, shapes and dtypes."""

import importlib.metadata
import inspect
import pickle

import numpy as np
import oracle
import pytest
import tropical_gemm as tg
from tropical_gemm.compat import legacy

SEMIRINGS = {"maxplus": "max_plus", "minplus": "min_plus", "maxmul": "max_mul"}
DTYPES = {"": "float32", "_f64": "float64", "_i32": "int32", "_i64": "int64"}


def operands(dtype, *shapes):
    rng = np.random.default_rng(0)
    return [np.asfortranarray(rng.integers(-9, 9, shape).astype(dtype)) for shape in shapes]


def test_every_name():
    assert len(legacy.functions) == 3 * (8 + 2 + 1 + 2 + 2) + 8
    for name, function in legacy.functions.items():
        assert getattr(tg, name) is function
        assert function.__name__ == name
        first = ["grad_c", "argmax"] if "backward" in name else ["a", "b"]
        assert list(inspect.signature(function).parameters)[:2] == first
    with pytest.raises(AttributeError, match="no attribute 'maxplus_matmul_f16'"):
        _ = tg.maxplus_matmul_f16


def test_star_import_and_dir():
    namespace = {}
    exec("from tropical_gemm import *", namespace)
    assert set(legacy.functions) <= set(namespace)
    assert set(tg.__all__) <= set(namespace)
    assert set(legacy.functions) <= set(dir(tg))


def test_pickling():
    """For pools of processes: by name, so that it is the same function there."""
    for name in tg.__all__:
        thing = getattr(tg, name)
        assert pickle.loads(pickle.dumps(thing)) == thing
    for name, function in legacy.functions.items():
        assert pickle.loads(pickle.dumps(function)) is function, name
    a = np.ones((2, 2), np.float32)
    made = tg.matmul(a, a, return_argmax=True)
    again = pickle.loads(pickle.dumps(made))
    assert type(again) is type(made)
    assert all(map(np.array_equal, again, made))


def test_pickled_errors():
    for csgraph, error in (
        (np.array([[-1.0]]), tg.NegativeCycleError),
        (np.array([[0, np.nan], [0, 0]]), ValueError),
        (np.float32([[0, 3e38, np.inf], [np.inf, 0, 3e38], [np.inf, np.inf, 0]]), OverflowError),
    ):
        with pytest.raises(error) as caught:
            tg.shortest_path(csgraph)
        again = pickle.loads(pickle.dumps(caught.value))
        assert type(again) is type(caught.value)
        assert str(again) == str(caught.value)
        assert getattr(again, "node", 0) == 0


def test_version_is_later_than_the_earlier_package():
    major, minor, _ = tg.__version__.split(".")
    assert (int(major), int(minor)) > (0, 4)
    assert tg.info()["version"] == tg.__version__ == importlib.metadata.version("tropical-gemm-cpp")


@pytest.mark.parametrize("prefix", SEMIRINGS)
@pytest.mark.parametrize("suffix", DTYPES)
def test_values(prefix, suffix):
    a, b = operands(DTYPES[suffix], (5, 7), (7, 4))
    expected = oracle.product(SEMIRINGS[prefix], a, b)[0]
    oracle.assert_same(getattr(tg, f"{prefix}_matmul{suffix}")(a, b), expected.ravel())
    oracle.assert_same(getattr(tg, f"{prefix}_matmul_2d{suffix}")(a=a, b=b), expected)


@pytest.mark.parametrize("prefix", SEMIRINGS)
@pytest.mark.parametrize("suffix", ["", "_f64"])
def test_argmax_and_gradients(prefix, suffix):
    semiring = SEMIRINGS[prefix]
    a, b = operands(DTYPES[suffix], (5, 7), (7, 4))
    values, argmax = oracle.product(semiring, a, b)
    got = getattr(tg, f"{prefix}_matmul_with_argmax{suffix}")(a, b)
    oracle.assert_same(got[0], values.ravel())
    oracle.assert_same(got[1], argmax.ravel())
    (g,) = operands(DTYPES[suffix], (5, 4))
    grad_a, grad_b = oracle.gradients(semiring, g, argmax, a, b)
    if prefix == "maxmul":
        oracle.assert_same(getattr(tg, f"maxmul_backward_a{suffix}")(g, argmax, b), grad_a.ravel())
        oracle.assert_same(getattr(tg, f"maxmul_backward_b{suffix}")(g, argmax, a), grad_b.ravel())
    else:
        oracle.assert_same(getattr(tg, f"backward_a{suffix}")(g, argmax, 7), grad_a.ravel())
        oracle.assert_same(getattr(tg, f"backward_b{suffix}")(g, argmax, 7), grad_b.ravel())


def test_batches():
    a, b = operands("float32", (3, 5, 7), (3, 7, 4))
    values, argmax = oracle.product("min_plus", a, b)
    got = tg.minplus_matmul_batched_with_argmax(a, b)
    oracle.assert_same(got[0], values.ravel())
    oracle.assert_same(got[1], argmax.ravel())
    with pytest.raises(ValueError, match="Batch size mismatch: A has batch 3, B has batch 2"):
        tg.minplus_matmul_batched_with_argmax(a, b[:2])


def test_dlpack_in_host_memory_gives_flat_arrays():
    a, b = operands("float32", (5, 7), (7, 4))
    values, argmax = oracle.product("max_plus", a, b)
    for x, y in ((a, b), (a.__dlpack__(), b.__dlpack__())):
        got = tg.maxplus_matmul_dlpack(x, y)
        oracle.assert_same(got[0], values.ravel())
        oracle.assert_same(got[1], argmax.ravel())
    with pytest.raises(RuntimeError, match="host memory"):
        tg.maxplus_matmul_batched_dlpack(a[None], b[None])
    with pytest.raises(ValueError, match="3 dimensions, expected 2"):
        tg.maxplus_matmul_dlpack(a[None], b)
    with pytest.raises(TypeError, match="list"):
        tg.maxplus_matmul_dlpack([[1.0]], b)
    with pytest.raises(RuntimeError, match="b is in host memory"):
        tg.maxplus_matmul_batched_dlpack(a[None].__dlpack__(), b[None])
    with pytest.raises(ValueError, match="the product of a and b has 3 dimensions, expected 2"):
        tg.maxplus_matmul_dlpack(a[None].__dlpack__(), b[None].__dlpack__())


def test_errors():
    a, b = operands("float32", (5, 7), (7, 4))
    for bad in (a.astype(float), a[0], [[1.0]]):
        with pytest.raises(TypeError, match=r"a is .*expected a float32"):
            tg.maxplus_matmul(bad, b)
    with pytest.raises(ValueError, match=r"\(5, 7\).*\(5, 7\)"):
        tg.maxplus_matmul(a, a)
    with pytest.raises(ValueError, match=r"argmax.*\(2, 4\)"):
        tg.backward_a(np.zeros((5, 4), np.float32), np.zeros((2, 4), np.int32), 7)

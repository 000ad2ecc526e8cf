"""JAX arrays in host memory come back as JAX arrays."""

import os

import numpy as np
import oracle
import pytest
import tropical_gemm as tg

if not tg.cuda_available():
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
jnp = pytest.importorskip("jax.numpy")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int16", "int32", "bool"])
def test_products(dtype):
    import jax

    semiring = "or_and" if dtype == "bool" else "min_plus"
    rng = np.random.default_rng(0)
    a, b = (
        rng.integers(0, 2 if dtype == "bool" else 50, s).astype(oracle.DTYPES[dtype])
        for s in ((3, 5, 7), (7, 9))
    )
    values, argmax = oracle.product(semiring, a, b)
    got = tg.matmul(jnp.asarray(a), jnp.asarray(b), semiring=semiring, return_argmax=True)
    assert isinstance(got.values, jax.Array)
    assert got.argmax.dtype == jnp.int32
    oracle.assert_same(np.asarray(got.values), values)
    oracle.assert_same(np.asarray(got.argmax), argmax, "argmax")


def test_gradients():
    a, b = jnp.array([[1.0, 2.0]]), jnp.array([[3.0], [0.0]])
    c, argmax = tg.matmul(a, b, return_argmax=True)
    got = tg.matmul_backward(jnp.ones_like(c), argmax, a, b)
    assert got.grad_a.tolist() == [[1, 0]]
    assert got.grad_b.tolist() == [[1], [0]]


def test_refusals():
    a = jnp.ones((2, 2))
    with pytest.raises(TypeError, match="out"):
        tg.matmul(a, a, out=jnp.zeros((2, 2)))
    with pytest.raises(TypeError, match=r"numpy\.ndarray"):
        tg.matmul(a, np.ones((2, 2), np.float32))

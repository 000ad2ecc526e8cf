"""What the tests on JAX arrays share: 64-bit types, and the formulas whose gradients are the oracle."""

import os

import numpy as np
import pytest
import tropical_gemm as tg

if not tg.cuda_available():
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
jax = pytest.importorskip("jax")
jnp = jax.numpy

SEMIRINGS = ("max_plus", "min_plus", "max_mul", "min_mul", "max_min", "min_max")
KINDS = ("max_plus", "max_mul", "min_max")  # one of each rule of the gradient

_MUL = {"plus": jnp.add, "mul": jnp.multiply, "min": jnp.minimum, "max": jnp.maximum}


@pytest.fixture
def x64():
    """With float64 and int64."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def formula(semiring):
    """The product by broadcasting; its gradients are those of the product where nothing ties."""
    add, mul = semiring.split("_")

    def product(a, b):
        candidates = _MUL[mul](a[..., :, :, None], b[..., None, :, :])
        return getattr(candidates, add)(axis=-2)

    return product


def normal(*shape, dtype="float64", seed=0):
    rng = np.random.default_rng(1000 * seed + sum(shape))
    return jnp.asarray(rng.normal(size=shape), dtype)


def same(got, expected, what=""):
    """Equal up to rounding, in every leaf."""
    assert jax.tree.structure(got) == jax.tree.structure(expected), what
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype), what
        narrow = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 1e-5}.get(str(x.dtype), 1e-10)
        np.testing.assert_allclose(
            np.asarray(x, np.float64), np.asarray(y, np.float64), rtol=narrow, atol=narrow, err_msg=what
        )


def calls(function, *arrays):
    """How many products and how many gradients a function compiles to."""
    text = jax.jit(function).lower(*arrays).compile().as_text()
    backward = text.count('custom_call_target="tropical_gemm_matmul_backward"')
    return text.count('custom_call_target="tropical_gemm_matmul"'), backward

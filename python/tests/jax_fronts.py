"""The front ends on JAX arrays: eager, inside jit, and under vmap."""

import jax
import jax.numpy as jnp
import numpy as np
import tropical_gemm as tg
from front import Front


class Jax(Front):
    writes = False
    share = 0.5

    def session(self):
        return jax.enable_x64(True)

    def put(self, x):
        return jnp.asarray(x)

    def get(self, x):
        assert isinstance(x, jax.Array)
        return np.asarray(x)


class Jit(Jax):
    share = 0.2

    def matmul(self, a, b, **options):
        return jax.jit(lambda a, b: tg.matmul(a, b, **options))(a, b)

    def backward(self, *arrays, **options):
        return jax.jit(lambda *arrays: tg.matmul_backward(*arrays, **options))(*arrays)


class Derivative(Jax):
    """Gradients by JAX's own way back."""

    dtypes = ("float16", "bfloat16", "float32", "float64")
    own_argmax = refuses = False
    share = 0.2

    def matmul(self, a, b, **options):
        values, _ = jax.vjp(lambda a, b: tg.matmul(a, b, **options), a, b)
        return values

    def backward(self, grad_c, argmax, a, b, *, needs, **options):
        _, back = jax.vjp(lambda a, b: tg.matmul(a, b, **options), a, b)
        return [grad if need else None for grad, need in zip(back(grad_c), needs, strict=True)]


class Vmap(Jax):
    refuses = differentiates = False
    share = 0.2

    def matmul(self, a, b, **options):
        def product(x, y):
            return tg.matmul(x, y, **options)

        if a.ndim == 2 and a.shape[0]:
            return jax.vmap(product, (0, None), -2 if b.ndim > 1 else 0)(a, b)
        if a.ndim > max(b.ndim, 2) and a.shape[0]:
            return jax.vmap(product, (0, None))(a, b)
        return product(a, b)


FRONTS = {"jax": Jax(), "jax jit": Jit(), "jax vjp": Derivative(), "jax vmap": Vmap()}

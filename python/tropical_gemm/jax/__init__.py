"""The product as XLA's custom call: under jit, vmap, grad, jvp and shard_map, on CPUs and CUDA devices.

>>> import jax, jax.numpy as jnp
>>> from tropical_gemm.jax import matmul
>>> jax.jit(matmul)(jnp.array([[1.0, 2.0]]), jnp.array([[3.0], [0.0]]))
Array([[4.]], dtype=float32)
"""

from . import _handlers

_handlers.register()

from . import _autograd as _autograd  # noqa: E402
from ._matmul import matmul, matmul_backward  # noqa: E402

__all__ = ["matmul", "matmul_backward"]

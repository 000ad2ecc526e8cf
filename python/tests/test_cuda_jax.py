"""JAX on the GPU: XLA's stream and memory. For what the product means test_jax*.py run there too."""

import cases
import numpy as np
import oracle
import pytest
import tropical_gemm as tg
from gpu import needs_gpu
from jax_cases import jax, jnp, x64

pytestmark = [
    needs_gpu,
    pytest.mark.skipif(jax.default_backend() != "gpu", reason="JAX has no GPU here"),
    pytest.mark.usefixtures(x64.__name__),
]

product = jax.jit(tg.matmul, static_argnames=("semiring", "return_argmax"))


@pytest.mark.parametrize(("semiring", "dtype"), oracle.PAIRS)
def test_larger_shapes(semiring, dtype):
    """With scratch memory: copies in another layout, partial results."""
    rng = np.random.default_rng(0)
    for m, k, n in ((301, 515, 263), (2, 5000, 3)):
        a, b = (cases.values(rng, "masked", semiring, dtype, s) for s in ((m, k), (k, n)))
        expected = tg.matmul(a, b, semiring=semiring, return_argmax=True)
        got = product(jnp.asarray(a), jnp.asarray(b), semiring=semiring, return_argmax=True)
        assert got.values.devices() == {jax.devices()[0]}
        oracle.assert_same(got.values, expected.values)
        oracle.assert_same(got.argmax, expected.argmax, "argmax")


def slow(x):
    """x, after some 10 ms of work on XLA's stream."""
    y = jnp.ones((4096, 4096), "float32")
    for _ in range(8):
        y = y @ y / 4096
    return x + (y[0, 0] - y[0, 0])


def test_order():
    """Long work before, short-lived operands, long work after."""
    late = jax.jit(slow)
    a, b = (jax.random.normal(jax.random.key(i), (1024, 1024), "float32") for i in range(2))
    first = tg.matmul(np.asarray(a), np.asarray(b))
    second = tg.matmul(first, np.asarray(a))
    late(a).block_until_ready()
    for _ in range(5):
        c = tg.matmul(late(a), late(b))
        overwriting = [jnp.zeros((1024, 1024)) + i for i in range(4)]
        d = tg.matmul(c, late(a))
        oracle.assert_same(c, first)
        oracle.assert_same(d, second)
        del overwriting


def test_the_host_does_not_wait():
    late = jax.jit(slow)
    a = jnp.ones((256, 256), "float32")
    gradient = jax.jit(jax.grad(lambda a: tg.matmul(a, a).sum()))
    jax.block_until_ready((tg.matmul(late(a), a), gradient(a)))  # compiled
    for _ in range(10):
        a = late(a)
    c, grad = tg.matmul(a, a), gradient(a)
    assert not a.is_ready()
    assert not grad.is_ready()
    assert float(c[0, 0]) == 2


@pytest.mark.parametrize("options", [{}, {"xla_gpu_graph_min_graph_size": 1}], ids=["default", "graphs"])
def test_one_program_with_other_data(options):
    """Among small kernels, which XLA gathers into CUDA graphs and replays."""

    def program(a, b):
        for i in range(4):
            c = tg.matmul(a * 0.5, b + i, return_argmax=True)
            a = jnp.where(c.argmax >= 0, jnp.tanh(c.values), 0) + a
        grads = jax.grad(lambda a: jnp.sin(tg.matmul(a, b, semiring="max_mul")).sum())(a)
        return a, grads

    def by_steps(a, b):
        with jax.disable_jit():
            return program(a, b)

    shape = jax.ShapeDtypeStruct((96, 96), "float32")
    compiled = jax.jit(program).lower(shape, shape).compile(compiler_options=options)
    for i in range(12):
        a, b = (jax.random.normal(jax.random.key(2 * i + j), (96, 96), "float32") for j in range(2))
        for got, expected in zip(compiled(a, b), by_steps(a, b), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


def test_memory_comes_from_xla():
    cupy = pytest.importorskip("cupy")
    runtime = cupy.cuda.runtime
    pool = runtime.deviceGetDefaultMemPool(0)

    def most():
        return runtime.memPoolGetAttribute(pool, runtime.cudaMemPoolAttrUsedMemHigh)

    a, b = jnp.ones((301, 515), "float32"), jnp.ones((515, 263), "float32")
    tg.matmul(a, b, return_argmax=True).values.block_until_ready()
    before, used = most(), jax.devices()[0].memory_stats()["bytes_in_use"]
    for _ in range(10):
        c = tg.matmul(a, b, return_argmax=True)
        grads = tg.matmul_backward(*c, a, b)
    jax.block_until_ready((c, grads))
    del c, grads
    assert most() == before, "memory from elsewhere"
    assert jax.devices()[0].memory_stats()["bytes_in_use"] == used


def test_two_devices():
    a = jax.device_put(jnp.ones((3, 3)), jax.devices()[0])
    on_cpu = jax.device_put(a, jax.devices("cpu")[0])
    with pytest.raises(ValueError, match="a is on cuda:0 and b is on the CPU"):
        tg.matmul(a, on_cpu)
    got = tg.matmul(on_cpu, on_cpu)
    assert got.devices() == on_cpu.devices()
    assert got.tolist() == [[2] * 3] * 3
    # An array that nobody put anywhere goes where the other one is.
    got = tg.matmul(jnp.ones((3, 3)), on_cpu)
    assert got.devices() == on_cpu.devices()
    assert got.tolist() == [[2] * 3] * 3

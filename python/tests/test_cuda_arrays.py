"""Arrays of CuPy, of JAX and of any DLPack producer on the GPU: in and out without a copy."""

import gc
import os

import numpy as np
import on_fake_cuda
import oracle
import pytest
import tropical_gemm as tg
from cases import Producer as Plain
from gpu import needs_gpu, spin, to_numpy, torch

pytestmark = needs_gpu

DTYPES = ["float32", "float64", "float16", "int16", "int32", "int64", "bool"]


def host_operands(dtype, *shapes):
    rng = np.random.default_rng(0)
    return [rng.integers(0, 2 if dtype == "bool" else 50, s).astype(oracle.DTYPES[dtype]) for s in shapes]


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy")


@pytest.mark.parametrize("dtype", DTYPES)
def test_cupy(cupy, dtype):
    semiring = "or_and" if dtype == "bool" else "min_plus"
    a, b = host_operands(dtype, (2, 9, 17), (17, 11))
    expected = tg.matmul(a, b, semiring=semiring, return_argmax=True)
    x, y = cupy.asarray(a), cupy.asarray(b)
    got = tg.matmul(x, y, semiring=semiring, return_argmax=True)
    assert isinstance(got.values, cupy.ndarray)
    assert got.values.dtype == dtype
    oracle.assert_same(got.values.get(), expected.values)
    oracle.assert_same(got.argmax.get(), expected.argmax)
    for view in (np.transpose, lambda v: v[..., ::-2, ::-1], lambda v: v[..., ::2, 1:]):
        u, v = view(a[0]), view(b)
        u, v = (u, v) if u.shape[1] == v.shape[0] else (v, u)
        if u.shape[1] != v.shape[0]:
            continue
        oracle.assert_same(
            tg.matmul(cupy.asarray(u), cupy.asarray(v), semiring=semiring).get(),
            tg.matmul(u, v, semiring=semiring),
        )
    reverse = tg.matmul(x[..., ::-1], y[::-1], semiring=semiring)
    oracle.assert_same(reverse.get(), expected.values)


def test_cupy_gradients_and_out(cupy):
    a, b = host_operands("float32", (20, 30), (30, 10))
    c, argmax = tg.matmul(a, b, return_argmax=True)
    expected = tg.matmul_backward(c, argmax, a, b)
    x, y = cupy.asarray(a), cupy.asarray(b)
    out = cupy.empty((10, 20), np.float32).T, cupy.empty((20, 10), np.int32)
    got = tg.matmul(x, y, out=out)
    assert got.values is out[0]
    oracle.assert_same(out[0].get(), c)
    grads = tg.matmul_backward(*got, x, y)
    assert isinstance(grads.grad_a, cupy.ndarray)
    np.testing.assert_array_equal(grads.grad_a.get(), expected.grad_a)
    np.testing.assert_array_equal(grads.grad_b.get(), expected.grad_b)
    with pytest.raises(TypeError, match="a has dtype uint8"):
        tg.matmul(x.astype("uint8"), y.astype("uint8"))


def test_cupy_streams(cupy):
    a, b = host_operands("float32", (64, 64), (64, 64))
    expected = tg.matmul(a, b)
    x, y = cupy.asarray(a), cupy.asarray(b)
    side = cupy.cuda.Stream(non_blocking=True)
    for options in ({}, {"stream": side}):
        late = cupy.zeros_like(x)
        cupy.cuda.Device().synchronize()
        with torch.cuda.stream(torch.cuda.ExternalStream(side.ptr)):
            spin(50)
        with side:
            late[...] = x
            c = tg.matmul(late, y) if not options else None
        if options:
            c = tg.matmul(late, y, **options)
        assert not side.done, "the host waited"
        side.synchronize()
        oracle.assert_same(c.get(), expected)
    for number in (1, 2):
        cupy.cuda.Device().synchronize()
        c = tg.matmul(x, y, stream=number)
        cupy.cuda.Device().synchronize()
        oracle.assert_same(c.get(), expected)


def test_cupy_graph(cupy):
    x, y = (cupy.random.standard_normal((96, 96), dtype=np.float32) for _ in range(2))
    out = cupy.empty((96, 96), np.float32), cupy.empty((96, 96), np.int32)
    side = cupy.cuda.Stream(non_blocking=True)
    with side:
        tg.matmul(x, y, out=out)  # the memory pool is warm
        side.synchronize()
        side.begin_capture()
        tg.matmul(x, y, out=out)
        graph = side.end_capture()
        for _ in range(20):
            x[...] = cupy.random.standard_normal((96, 96), dtype=np.float32)
            graph.launch(side)
            side.synchronize()
            expected = tg.matmul(x.get(), y.get(), return_argmax=True)
            oracle.assert_same(out[0].get(), expected.values)
            oracle.assert_same(out[1].get(), expected.argmax)


def test_managed_memory_is_the_devices(cupy):
    a, b = host_operands("float32", (30, 40), (40, 20))
    pool = cupy.cuda.MemoryPool(cupy.cuda.malloc_managed)
    with cupy.cuda.using_allocator(pool.malloc):
        x, y = cupy.asarray(a), cupy.asarray(b)
        c = tg.matmul(x, y)
    oracle.assert_same(c.get(), tg.matmul(a, b))
    # And by DLPack, as memory of that kind.
    got = tg.matmul(Producer(x, kind=13), Producer(y, kind=13))
    oracle.assert_same(to_numpy(got.x), tg.matmul(a, b))


class Namespace:
    __name__ = "producers"

    @staticmethod
    def from_dlpack(x):
        return Producer(torch.from_dlpack(x))


class Producer:
    """An array of a library of its own, on memory of torch or CuPy."""

    def __init__(self, x, kind=None):
        self.x, self.kind, self.streams = x, kind, []

    def __array_namespace__(self):
        return Namespace

    def __dlpack_device__(self):
        kind, index = self.x.__dlpack_device__()
        return self.kind or int(kind), index

    def __dlpack__(self, *, stream=None, max_version=None):
        self.streams.append(stream)
        return self.x.__dlpack__(stream=stream)


def test_any_producer():
    a, b = host_operands("float32", (2, 30, 40), (40, 20))
    expected = tg.matmul(a, b, return_argmax=True)
    x, y = Producer(torch.from_numpy(a).cuda()), Producer(torch.from_numpy(b).cuda())
    got = tg.matmul(x, y, return_argmax=True)
    assert x.streams == [1]
    oracle.assert_same(to_numpy(got.values.x), expected.values)
    oracle.assert_same(to_numpy(got.argmax.x), expected.argmax)
    side = torch.cuda.Stream()
    out = Producer(torch.zeros(2, 30, 20, device="cuda"))
    assert tg.matmul(x, y, out=out, stream=side) is out
    assert x.streams == [1, side.cuda_stream]
    side.synchronize()
    oracle.assert_same(to_numpy(out.x), expected.values)
    grads = tg.matmul_backward(got.values, got.argmax, x, y)
    cpu = tg.matmul_backward(expected.values, expected.argmax, a, b)
    np.testing.assert_allclose(to_numpy(grads.grad_a.x), cpu.grad_a, rtol=1e-5)


def test_a_producer_waits_and_its_memory_is_kept():
    a, b = (torch.randn(512, 512, device="cuda") for _ in range(2))
    expected = tg.matmul(to_numpy(a), to_numpy(b))
    side, work = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(work):
        spin(50)
    with torch.cuda.stream(side):
        spin(20)
        late = a.clone()
        got = tg.matmul(
            Producer(late), Producer(b), stream=work
        )  # torch's stream `side` is ordered before `work`
        held = late.data_ptr()
        del late
        # The same memory for other things, on the stream of its allocator: the product still reads the old.
        other = torch.zeros(512, 512, device="cuda")
        assert other.data_ptr() != held, "the operand was given back too early"
    torch.cuda.synchronize()
    oracle.assert_same(to_numpy(got.x), expected)


@pytest.fixture(scope="module")
def jax():
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = pytest.importorskip("jax")
    if not any(d.platform == "gpu" for d in jax.devices()):
        pytest.skip("JAX has no GPU here")
    return jax


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int16", "int32", "bool"])
def test_jax(jax, dtype):
    semiring = "or_and" if dtype == "bool" else "max_plus"
    a, b = host_operands(dtype, (2, 9, 17), (17, 11))
    expected = tg.matmul(a, b, semiring=semiring, return_argmax=True)
    x, y = jax.numpy.asarray(a), jax.numpy.asarray(b)
    got = tg.matmul(x, y, semiring=semiring, return_argmax=True)
    assert isinstance(got.values, jax.Array)
    assert got.values.devices() == x.devices()
    oracle.assert_same(np.asarray(got.values), expected.values)
    oracle.assert_same(np.asarray(got.argmax), expected.argmax)


def test_jax_order(jax):
    """Long work before, short-lived operands, long work after: JAX's streams are not ours."""
    jnp = jax.numpy

    @jax.jit
    def slow(x):
        y = jnp.ones((4096, 4096))
        for _ in range(8):
            y = y @ y / 4096
        return x + (y[0, 0] - y[0, 0])

    a, b = (jax.random.normal(jax.random.key(i), (1024, 1024)) for i in range(2))
    first = tg.matmul(np.asarray(a), np.asarray(b))
    second = tg.matmul(first, np.asarray(a))
    slow(a).block_until_ready()
    for _ in range(5):
        c = tg.matmul(slow(a), slow(b))
        overwriting = [jnp.zeros((1024, 1024)) + i for i in range(4)]
        d = tg.matmul(c, slow(a))
        oracle.assert_same(np.asarray(c), first)
        oracle.assert_same(np.asarray(d), second)
        del overwriting


def test_jax_gradients_and_streams(jax):
    a, b = host_operands("float32", (20, 30), (30, 10))
    c, argmax = tg.matmul(a, b, return_argmax=True)
    expected = tg.matmul_backward(c, argmax, a, b)
    x, y = jax.numpy.asarray(a), jax.numpy.asarray(b)
    stream = torch.cuda.Stream()
    got = tg.matmul_backward(jax.numpy.asarray(c), jax.numpy.asarray(argmax), x, y, stream=stream)
    np.testing.assert_array_equal(np.asarray(got.grad_a), expected.grad_a)
    np.testing.assert_array_equal(np.asarray(got.grad_b), expected.grad_b)
    for number in (1, stream):
        oracle.assert_same(np.asarray(tg.matmul(x, y, stream=number)), c)


def test_jax_refusals(jax):
    a = jax.numpy.ones((3, 3))
    with pytest.raises(TypeError, match=r"out is of type .*immutable"):
        tg.matmul(a, a, out=a)
    gone = a + 1
    gone.delete()
    with pytest.raises(ValueError, match=r"b is a jax\.Array that was deleted or donated"):
        tg.matmul(a, gone)
    donated = a + 2
    jax.jit(lambda x: x + 1, donate_argnums=0)(donated).block_until_ready()
    if donated.is_deleted():
        with pytest.raises(ValueError, match=r"a is a jax\.Array that was deleted or donated"):
            tg.matmul(donated, a)
    with pytest.raises(ValueError, match=r"a has shape \(3, 3\) and b has shape \(2, 3\)"):
        tg.matmul(a, a[:2])
    on_cpu = jax.device_put(a, jax.devices("cpu")[0])
    with pytest.raises(ValueError, match="a is on cuda:0 and b is on the CPU"):
        tg.matmul(a, on_cpu)


def test_two_libraries(cupy):
    with pytest.raises(TypeError, match=r"torch\.Tensor.*cupy"):
        tg.matmul(torch.ones(2, 2, device="cuda"), cupy.ones((2, 2)))


def test_result_outlives_its_stream():
    cupy = pytest.importorskip("cupy")
    a = torch.ones(512, 512, device="cuda")
    stream = cupy.cuda.Stream(non_blocking=True)
    held = tg.matmul(Plain(a), Plain(a), stream=stream)
    given = tg.matmul(Plain(a), Plain(a))
    with stream:
        taken = cupy.from_dlpack(given)
    stream.synchronize()
    del stream, given
    gc.collect()
    again = torch.from_dlpack(held)
    assert bool((again == 2).all())
    assert bool((taken == 2).all())
    del held, again, taken
    torch.cuda.synchronize()


def test_two_consumers_of_one_result():
    b = torch.zeros(1024, 1024, device="cuda")
    a = torch.ones_like(b)
    one, two = torch.cuda.Stream(), torch.cuda.Stream()
    result = tg.matmul(Plain(a), Plain(b), stream=one)
    with torch.cuda.stream(one):
        first = torch.from_dlpack(result)
    with torch.cuda.stream(two):
        second = torch.from_dlpack(result)
    del result
    with torch.cuda.stream(one):
        spin(10)
        copy = first + 0
    del first, second
    others = [tg.matmul(Plain(a * 5), Plain(b), stream=two) for _ in range(3)]
    torch.cuda.synchronize()
    assert bool((copy == 1).all())
    del others


def test_results_stand_beside_their_producers():
    a = torch.randn(20, 20, device="cuda")
    got = tg.matmul(Plain(a), Plain(a), return_argmax=True)
    grads = tg.matmul_backward(got.values, got.argmax, Plain(a), Plain(a))
    expected = tg.matmul(a, a, return_argmax=True)
    assert torch.equal(torch.from_dlpack(tg.matmul(got.values, Plain(a))), tg.matmul(expected.values, a))
    assert torch.from_dlpack(grads.grad_a).shape == (20, 20)


@pytest.mark.parametrize("index", [-1, -5, 100])
def test_no_such_device(index):
    class Elsewhere(Plain):
        def __dlpack_device__(self):
            return 2, index

        def __dlpack__(self, **options):
            return on_fake_cuda.moved(self.x.__dlpack__(stream=options.get("stream")), 2, index)

    x = Elsewhere(torch.ones(2, 2, device="cuda"))
    with pytest.raises(ValueError, match=f"there is no CUDA device {index}; this machine has"):
        tg.matmul(x, x, out=Elsewhere(torch.ones(2, 2, device="cuda")))

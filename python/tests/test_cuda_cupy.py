"""CuPy arrays on the GPU: its current stream and its memory pool are used, and the host does not wait."""

import numpy as np
import oracle
import pytest
import tropical_gemm as tg
from gpu import needs_gpu, spin, torch

cupy = pytest.importorskip("cupy")
pytestmark = needs_gpu

PAIRS = [p for p in oracle.PAIRS if p[1] != "bfloat16"]  # which CuPy does not have


def operands(dtype, *shapes):
    rng = np.random.default_rng(0)
    return [rng.integers(0, 2 if dtype == "bool" else 50, s).astype(oracle.DTYPES[dtype]) for s in shapes]


@pytest.mark.parametrize(("semiring", "dtype"), PAIRS)
def test_products(semiring, dtype):
    a, b = operands(dtype, (2, 9, 17), (17, 11))
    expected = tg.matmul(a, b, semiring=semiring, return_argmax=True)
    x, y = cupy.asarray(a), cupy.asarray(b)
    got = tg.matmul(x, y, semiring=semiring, return_argmax=True)
    assert isinstance(got.values, cupy.ndarray)
    assert got.values.dtype == dtype
    oracle.assert_same(got.values.get(), expected.values)
    oracle.assert_same(got.argmax.get(), expected.argmax)
    # Views, with steps of both signs.
    back = tg.matmul(x[..., ::-1], y[::-1], semiring=semiring)
    oracle.assert_same(back.get(), expected.values)
    view = tg.matmul(y.T[::2], x[1, ::-2].T, semiring=semiring)
    oracle.assert_same(view.get(), tg.matmul(b.T[::2], a[1, ::-2].T, semiring=semiring))


def test_gradients_and_out():
    a, b = operands("float32", (20, 30), (30, 10))
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


def busy(stream, milliseconds=50):
    with torch.cuda.stream(torch.cuda.ExternalStream(stream.ptr)):
        spin(milliseconds)


@pytest.fixture(params=["current", "named"])
def on(request):
    """A stream, what makes it current, and the options of a call that shall run on it."""
    side = cupy.cuda.Stream(non_blocking=True)
    return side, (side, {}) if request.param == "current" else (cupy.cuda.Stream.null, {"stream": side})


def test_the_current_stream_is_used(on):
    a, b = operands("float32", (64, 64), (64, 64))
    expected = tg.matmul(a, b, return_argmax=True)
    gradients = tg.matmul_backward(*expected, a, b)
    x, y = cupy.asarray(a), cupy.asarray(b)
    tg.matmul_backward(*tg.matmul(x, y, return_argmax=True), x, y)  # the library is warm
    side, (current, options) = on
    late = cupy.zeros_like(x)
    cupy.cuda.Device().synchronize()
    busy(side)
    with side:
        late[...] = x  # not there yet when the product is enqueued
    with current:
        c = tg.matmul(late, y, return_argmax=True, **options)
        grads = tg.matmul_backward(*c, late, y, **options)
    assert not side.done, "the host waited"
    side.synchronize()
    oracle.assert_same(c.values.get(), expected.values)
    oracle.assert_same(c.argmax.get(), expected.argmax)
    np.testing.assert_array_equal(grads.grad_a.get(), gradients.grad_a)
    np.testing.assert_array_equal(grads.grad_b.get(), gradients.grad_b)


def test_the_default_stream_is_left_alone():
    a, b = operands("float32", (64, 64), (64, 64))
    x, y = cupy.asarray(a), cupy.asarray(b)
    side = cupy.cuda.Stream(non_blocking=True)
    with side:  # the library and the pool are warm
        tg.matmul(x, y)
    cupy.cuda.Device().synchronize()
    spin(300)  # on the default stream: work there, or anything that waits for it, would be late
    with side:
        c = tg.matmul(x, y)
    side.synchronize()
    assert not cupy.cuda.Stream.null.done, "the side stream waited for the default one"
    oracle.assert_same(c.get(), tg.matmul(a, b))


def test_default_streams_by_number():
    a, b = operands("float32", (64, 64), (64, 64))
    x, y = cupy.asarray(a), cupy.asarray(b)
    for number in (1, 2):
        cupy.cuda.Device().synchronize()
        c = tg.matmul(x, y, stream=number)
        cupy.cuda.Device().synchronize()
        oracle.assert_same(c.get(), tg.matmul(a, b))


class Counting:
    """CuPy's pool, with a list of what was asked of it and on which stream."""

    def __init__(self):
        self.pool, self.taken = cupy.cuda.MemoryPool(), []

    def malloc(self, size):
        self.taken.append((size, cupy.cuda.get_current_stream().ptr))
        return self.pool.malloc(size)


def taken_from_the_device():
    """The most that was ever in use of the device's own stream-ordered pool."""
    runtime = cupy.cuda.runtime
    pool = runtime.deviceGetDefaultMemPool(0)
    return runtime.memPoolGetAttribute(pool, runtime.cudaMemPoolAttrUsedMemHigh)


def test_memory_comes_from_cupy_and_goes_back(on):
    side, (current, options) = on
    before = taken_from_the_device()
    workspaces = 0
    for m, k, n in ((64, 64, 64), (301, 515, 263), (2, 5000, 3)):
        a, b = operands("float32", (m, k), (k, n))
        x, y = cupy.asarray(a), cupy.asarray(b)
        counting = Counting()
        cupy.cuda.Device().synchronize()
        with cupy.cuda.using_allocator(counting.malloc), current:
            c = tg.matmul(x, y, return_argmax=True, **options)
            results, *workspace = [size for size, _ in counting.taken[:2]], *counting.taken[2:]
            grads = tg.matmul_backward(*c, x, y, **options)
        assert results == [4 * m * n] * 2
        assert len(workspace) <= 1
        workspaces += len(workspace)
        assert {stream for _, stream in counting.taken} == {side.ptr}
        sizes = [size for size, _ in counting.taken[2 + len(workspace) :]]
        assert sizes[:2] == [4 * m * k, 4 * k * n]
        side.synchronize()
        oracle.assert_same(c.values.get(), tg.matmul(a, b))
        assert counting.pool.used_bytes() >= 2 * 4 * m * n
        del c, grads
        assert counting.pool.used_bytes() == 0
    assert workspaces, "no shape here needs scratch memory"
    assert taken_from_the_device() == before, "memory from elsewhere"


def test_graph():
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

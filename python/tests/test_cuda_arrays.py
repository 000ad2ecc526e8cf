"""Arrays of any DLPack producer on the GPU: in and out without a copy."""

import gc

import numpy as np
import on_fake_cuda
import oracle
import pytest
import tropical_gemm as tg
from cases import Producer as Plain
from gpu import needs_gpu, spin, to_numpy, torch

pytestmark = needs_gpu


def host_operands(dtype, *shapes):
    rng = np.random.default_rng(0)
    return [rng.integers(0, 2 if dtype == "bool" else 50, s).astype(oracle.DTYPES[dtype]) for s in shapes]


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy")


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

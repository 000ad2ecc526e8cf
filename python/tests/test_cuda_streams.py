"""Streams, graphs, threads and devices: work runs where the caller works, and the host never waits."""

import threading
import time

import numpy as np
import oracle
import pytest
import tropical_gemm as tg
from gpu import needs_gpu, needs_two_gpus, spin, to_numpy, torch
from tropical_gemm._streams import Address

pytestmark = needs_gpu


def operands(n=96, dtype=torch.float32, device="cuda"):
    return torch.randn(n, n, device=device).to(dtype), torch.randn(n, n, device=device).to(dtype)


def reference(a, b, semiring="max_plus"):
    return tg.matmul(to_numpy(a), to_numpy(b), semiring=semiring)


def test_the_current_stream_is_used():
    a, b = operands()
    late = torch.zeros_like(a)
    expected = reference(a, b)
    tg.matmul(late, b, return_argmax=True)  # the library is warm
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        spin(50)
        late.copy_(a)  # not there yet when the product is enqueued
        c = tg.matmul(late, b, return_argmax=True)
        done = torch.cuda.Event()
        done.record()
    assert not done.query(), "the host waited"
    torch.cuda.current_stream().wait_stream(side)
    oracle.assert_same(to_numpy(c.values), expected)


@pytest.mark.parametrize("kind", ["torch", "int", "foreign", "cupy"])
def test_a_named_stream_is_used(kind):
    a, b = operands()
    expected = reference(a, b)
    late = torch.zeros_like(a)
    tg.matmul(late, b)  # the library is warm
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    if kind == "cupy":
        cupy = pytest.importorskip("cupy")
        named = cupy.cuda.Stream.from_external(Address(side.cuda_stream))
    else:
        named = {"torch": side, "int": side.cuda_stream, "foreign": Address(side.cuda_stream)}[kind]
    with torch.cuda.stream(side):
        spin(50)
        late.copy_(a)
    before = torch.cuda.current_stream()
    c = tg.matmul(late, b, stream=named)
    assert torch.cuda.current_stream() == before
    assert not side.query(), "the host waited"
    side.synchronize()
    oracle.assert_same(to_numpy(c), expected)


def test_the_default_stream_is_left_alone():
    a, b = operands()
    expected = reference(a, b)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):  # the library and the allocator are warm
        c = tg.matmul(a, b, return_argmax=True)
        tg.matmul_backward(c.values, c.argmax, a, b)
    torch.cuda.synchronize()
    spin(300)  # on the default stream: work there, or anything that waits for it, would be late
    with torch.cuda.stream(side):
        c = tg.matmul(a, b, return_argmax=True)
        grads = tg.matmul_backward(c.values, c.argmax, a, b)
    side.synchronize()
    assert not torch.cuda.default_stream().query(), "the side stream waited for the default one"
    oracle.assert_same(to_numpy(c.values), expected)
    assert grads.grad_a.shape == a.shape


def test_default_streams_by_number():
    a, b = operands()
    oracle.assert_same(to_numpy(tg.matmul(a, b, stream=1)), reference(a, b))
    with pytest.raises(ValueError, match="stream is 2"):
        tg.matmul(a, b, stream=2)
    with pytest.raises(ValueError, match="stream is 0, which is ambiguous"):
        tg.matmul(a, b, stream=0)
    with pytest.raises(TypeError, match="stream is of type str"):
        tg.matmul(a, b, stream="default")


def test_the_host_does_not_wait():
    n = 4096
    a, b = operands(n)
    for _ in range(2):
        tg.matmul(a, b, return_argmax=True)
    torch.cuda.synchronize()
    spin(200)
    begin = time.perf_counter()
    c = tg.matmul(a, b, return_argmax=True)
    tg.matmul_backward(c.values, c.argmax, a, b)
    assert time.perf_counter() - begin < 0.1
    assert not torch.cuda.current_stream().query()
    torch.cuda.synchronize()


FILLS = {
    "uniform": lambda x: x.uniform_(0, 1),
    "normal": lambda x: x.normal_(),
    "infinite": lambda x: x.normal_().masked_fill_(torch.rand_like(x) < 0.1, -torch.inf),
    "nan": lambda x: x.normal_().masked_fill_(torch.rand_like(x) < 0.001, torch.nan),
    "mixed rows": lambda x: x.normal_().mul_(
        torch.sign(torch.randn(x.shape[0], 1, device=x.device)).abs() * 3
    ),
    "integers": lambda x: x.random_(-4, 4),
    "zero": lambda x: x.zero_(),
}


@pytest.mark.parametrize(
    ("dtype", "n", "semiring"),
    [
        (torch.float32, 64, "max_plus"),
        (torch.float32, 515, "min_plus"),
        (torch.float32, 1024, "max_mul"),
        (torch.float16, 300, "max_plus"),
        (torch.float64, 200, "min_plus"),
    ],
)
def test_graphs_replay_with_other_data(dtype, n, semiring):
    a, b = operands(n, dtype)
    g = torch.empty_like(a).random_(-3, 4)
    acc = torch.zeros_like(a)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):  # as torch asks: warm up on a side stream
        tg.matmul(a, b, semiring=semiring, return_argmax=True)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        alone = tg.matmul(a, b, semiring=semiring)
        c = tg.matmul(a, b, semiring=semiring, return_argmax=True)
        grads = tg.matmul_backward(g, c.argmax, a, b, semiring=semiring)
        tg.matmul(a, b, semiring=semiring, out=acc, accumulate=True)
    fills = list(FILLS.values())
    for replay in range(100):
        fills[replay % len(fills)](a)
        fills[(replay // len(fills)) % len(fills)](b)
        acc.copy_(g)
        graph.replay()
        if n > 600 and replay % 10:
            continue
        x, y, z = to_numpy(a), to_numpy(b), to_numpy(g).copy()
        expected = tg.matmul(x, y, semiring=semiring, return_argmax=True)
        oracle.assert_same(to_numpy(alone), expected.values)
        oracle.assert_same(to_numpy(c.values), expected.values)
        oracle.assert_same(to_numpy(c.argmax), expected.argmax, "argmax")
        tg.matmul(x, y, semiring=semiring, out=z, accumulate=True)
        oracle.assert_same(to_numpy(acc), z, "accumulated")
        direct = tg.matmul_backward(g, c.argmax, a, b, semiring=semiring)
        for grad, same in zip(grads, direct, strict=True):
            assert torch.equal(grad.nan_to_num(), same.nan_to_num())


def test_threads():
    results = {}

    def work(i):
        torch.manual_seed(i)
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            a, b = operands(64 + i)
            for _ in range(20):
                c = tg.matmul(a, b, return_argmax=True)
        stream.synchronize()
        results[i] = to_numpy(c.values), to_numpy(a), to_numpy(b)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 8
    for c, a, b in results.values():
        oracle.assert_same(c, tg.matmul(a, b))


@needs_two_gpus
def test_two_devices_at_once():
    failures = []

    def work(device):
        try:
            with torch.cuda.device(1 - device):  # the other one is current
                for _ in range(20):
                    a, b = operands(200, device=f"cuda:{device}")
                    got = tg.matmul(a, b, return_argmax=True)
                    assert got.values.device.index == device
                    assert torch.cuda.current_device() == 1 - device
                    oracle.assert_same(to_numpy(got.values), reference(a, b))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(d,)) for d in (0, 1)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures
    with pytest.raises(ValueError, match="stream is of cuda:1 and a is on cuda:0"):
        tg.matmul(*operands(device="cuda:0"), stream=torch.cuda.Stream(device=1))


def test_memory_comes_from_torch_and_goes_back():
    a, b = operands(512)
    tg.matmul(a, b, return_argmax=True)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    c = tg.matmul(a, b, return_argmax=True)
    assert torch.cuda.memory_allocated() - before == 2 * 512 * 512 * 4
    del c
    assert torch.cuda.memory_allocated() == before
    assert np.isfinite(before)

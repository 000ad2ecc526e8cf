"""max_plus on a GPU beside other ways to it: the broadcast formula, torch.compile of it, plain Triton,
and for batches the time of an ordinary product, torch.bmm. Device times: medians over events, short calls in
a CUDA graph."""

import statistics

import torch
import triton
import triton.language as tl
import tropical_gemm as tg

CALLS, REPEATS = 20, 9
BROADCAST_BYTES = 1 << 30


@triton.jit
def product_kernel(a, b, c, n, k_size, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    best = tl.full((BLOCK_M, BLOCK_N), float("-inf"), tl.float32)
    for k in range(k_size):
        x = tl.load(a + rows * k_size + k)
        y = tl.load(b + k * n + cols)
        best = tl.maximum(best, x[:, None] + y[None, :])
    tl.store(c + rows[:, None] * n + cols[None, :], best)


def by_triton(a, b):
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty((m, n), device=a.device)
    product_kernel[(m // 64, n // 64)](a, b, c, n, k, BLOCK_M=64, BLOCK_N=64)
    return c


def by_broadcast(a, b):
    """The formula, over as much of K at a time as BROADCAST_BYTES hold."""
    step = max(1, BROADCAST_BYTES // (a.shape[-2] * b.shape[-1] * 4 * max(1, a[..., 0, 0].numel())))
    c = None
    for k in range(0, a.shape[-1], step):
        part = (a[..., k : k + step, None] + b[..., None, k : k + step, :]).amax(-2)
        c = part if c is None else torch.maximum(c, part)
    return c


@torch.compile
def by_compile(a, b):
    return (a[..., :, :, None] + b[..., None, :, :]).amax(-2)


def micros(call):
    """Median device time of one call."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    call()
    end.record()
    torch.cuda.synchronize()
    calls, run = 1, call
    if begin.elapsed_time(end) < 1:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(CALLS):
                call()
        calls, run = CALLS, graph.replay
        run()
    times = []
    for _ in range(REPEATS):
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / calls)
    return statistics.median(times)


def row(name, ways, a, b):
    times = {}
    expected = by_broadcast(a, b)
    for way, call in ways.items():
        if way != "torch.bmm":
            got = call(a, b)
            torch.testing.assert_close(got.values if way == "argmax" else got, expected, rtol=0, atol=0)
        times[way] = micros(lambda call=call: call(a, b))
    print(f"| {name} | " + " | ".join(f"{way} {t:.1f} us" for way, t in times.items()) + " |", flush=True)


def main():
    ours = {"values": tg.matmul, "argmax": lambda a, b: tg.matmul(a, b, return_argmax=True)}
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, float32 max_plus, randn, calls by Python"
    )
    for n in (256, 512, 1024, 2048, 4096):
        a, b = (torch.randn(n, n, device="cuda") for _ in range(2))
        others = {"broadcast": by_broadcast, "Triton": by_triton}
        if n <= 2048:
            others["torch.compile"] = by_compile
        row(f"n = {n}", ours | others, a, b)
    for count, n in ((4096, 16), (4096, 32), (1024, 64), (256, 128)):
        a, b = (torch.randn(count, n, n, device="cuda") for _ in range(2))
        row(f"{count} x {n}^3", ours | {"broadcast": by_broadcast, "torch.bmm": torch.bmm}, a, b)


if __name__ == "__main__":
    main()

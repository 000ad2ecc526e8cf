"""Calls in great number, of every front and with refusals among them: memory stays what it was."""

import argparse
import ctypes
import gc
import importlib.util
import sys
import time

import numpy as np
import tropical_gemm as tg
from cases import Producer

# Growth that is no leak: pages that allocators keep at one time and not at another.
ALLOWED = 1 << 20


def refused(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except (TypeError, ValueError):
        return
    raise AssertionError("nothing was raised")


def numpy_calls():
    a, b = np.ones((5, 7), np.float32), np.ones((7, 3), np.float32)
    c, i = np.empty((5, 3), np.float32), np.zeros((5, 3), np.int32)
    square, whole = np.ones((6, 6)), np.ones((6, 6), np.int64)
    emission = np.zeros((2, 5, 6))
    yield "matmul", lambda: tg.matmul(a, b)
    yield "argmax", lambda: tg.matmul(a, b, return_argmax=True)
    yield "out", lambda: tg.matmul(a, b, out=(c, i), accumulate=True)
    yield "backward", lambda: tg.matmul_backward(c, i, a, b)
    yield "DLPack", lambda: tg.matmul(Producer(a), Producer(b))
    yield "wrong shape", lambda: refused(tg.matmul, a, a)
    yield "wrong dtype", lambda: refused(tg.matmul, a, square)
    yield "wrong out", lambda: refused(tg.matmul, a, b, out=square)
    yield "count", lambda: tg.count_matmul(square, square, semiring="min_plus")
    yield "closure", lambda: tg.closure(square, semiring="min_plus")
    yield "paths", lambda: tg.shortest_path(whole, return_predecessors=True)
    yield "viterbi", lambda: tg.viterbi(emission, square)
    yield "einsum", lambda: tg.einsum("ij,jk,kl->li", square, square, square, semiring="max_plus")


def torch_calls():
    import torch
    from tropical_gemm.torch import matmul

    a, b = torch.ones(5, 7), torch.ones(7, 3)
    x = torch.ones(5, 7, requires_grad=True)
    yield "torch", lambda: matmul(a, b)
    yield "torch, both", lambda: matmul(a, b, return_argmax=True)
    yield "torch, gradient", lambda: torch.autograd.grad(matmul(x, b).sum(), x)
    yield "torch, refused", lambda: refused(matmul, a, a)
    if tg.cuda_available():
        on_gpu = a.cuda(), b.cuda()
        yield "cuda", lambda: matmul(*on_gpu)
        yield "cuda, both", lambda: matmul(*on_gpu, return_argmax=True)
        yield "cuda, refused", lambda: refused(matmul, on_gpu[0], b)


def jax_calls():
    import jax
    import jax.numpy as jnp
    from tropical_gemm.jax import matmul

    a, b = jnp.ones((5, 7)), jnp.ones((7, 3))
    compiled = jax.jit(lambda x, y: matmul(x, y, semiring="max_plus"))
    yield "jax", lambda: matmul(a, b, semiring="max_plus").block_until_ready()
    yield "jax, jit", lambda: compiled(a, b).block_until_ready()


def used():
    """Bytes of this process in memory, and of the GPU, after what is free was given back."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * 4096
    if not tg.cuda_available():
        return resident, 0
    import torch

    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    return resident, total - free


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1_000_000)
    total = parser.parse_args().calls
    calls = [*numpy_calls()]
    for library, more in {"torch": torch_calls, "jax": jax_calls}.items():
        if importlib.util.find_spec(library):
            calls += more()
    each = max(1, total // len(calls))
    worst = 0
    for name, call in calls:
        for _ in range(max(200, each // 20)):  # whatever is made once
            call()
        before, on_gpu = used()
        start = time.perf_counter()
        for _ in range(each):
            call()
        took = time.perf_counter() - start
        after, on_gpu_after = used()
        grown = max(after - before, on_gpu_after - on_gpu)
        worst = max(worst, grown)
        print(
            f"{name:16} {each} calls, {took / each * 1e6:7.1f} us each, grown by {grown / 1024:.0f} KiB",
            flush=True,
        )
    if worst > ALLOWED:
        sys.exit(f"memory grew by {worst} bytes, more than {ALLOWED}")


if __name__ == "__main__":
    main()

"""Copies in another order of axes beside a plain copy of the same bytes: random orders of axes of size 2.

python benchmarks/python/permute.py [--rank 25] [--device cpu|cuda] [--dtype float32]
"""

import argparse
import statistics
import time

import numpy as np
import torch
from tropical_gemm import _core


def timed(call, device, repeat=7):
    times = []
    for _ in range(repeat):
        if device == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            call()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) / 1e3)
        else:
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rank", type=int, default=25)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--permutations", type=int, default=9)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    dtype = getattr(torch, arguments.dtype)
    x = torch.ones((2,) * arguments.rank, dtype=dtype, device=arguments.device)
    size = 2 * x.numel() * x.element_size()
    copy = timed(lambda: x.clone(), arguments.device)
    print(f"copy to a new array: {copy * 1e3:.2f} ms, {size / copy / 1e9:.0f} GB/s")
    shares, torch_shares = [], []
    for _ in range(arguments.permutations):
        axes = rng.permutation(arguments.rank).tolist()
        shares.append(copy / timed(lambda axes=axes: _core.permute(x, axes, None, None), arguments.device))
        view = x.permute(axes)
        torch_shares.append(copy / timed(lambda view=view: view.contiguous(), arguments.device, 3))
    for name, values in (("permute", shares), ("torch", torch_shares)):
        print(f"{name}: {min(values):.2f} to {max(values):.2f} of it, median {statistics.median(values):.2f}")


if __name__ == "__main__":
    main()

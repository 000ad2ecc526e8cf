"""Shortest paths and products on one GPU and on all that there are, in one run.

    torchrun --nproc-per-node 2 benchmarks/python/distributed.py [--nodes 32768 65536] [--product 32768]

One GPU is tropical_gemm itself, on the first rank. Weights are whole, so that all results are equal; that is
checked.
"""

import argparse
import json
import os
import statistics
import time

os.environ.setdefault("TORCH_NCCL_HIGH_PRIORITY", "1")

import numpy as np
import torch
import torch.distributed as dist
import tropical_gemm as tg
import tropical_gemm.distributed as tgd
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Shard
from tropical_gemm.distributed._checkpoint import fingerprint
from tropical_gemm.distributed._cyclic import wrapped
from tropical_gemm.distributed._layout import Layout, sharded


def fill(local, rows, columns, n, seed):
    """The same weights from 1 to 1000 in every layout."""
    columns = torch.as_tensor(columns, device=local.device)
    slab = 1024
    for first in range(0, n, slab):
        here = range(*np.searchsorted(rows, (first, first + slab)))
        if len(here):
            generator = torch.Generator(local.device).manual_seed(seed * n + first)
            whole = torch.randint(
                1, 1001, (slab, n), generator=generator, device=local.device, dtype=torch.int16
            )
            which = torch.as_tensor(rows[here[0] : here[-1] + 1] - first, device=local.device)
            local[here[0] : here[-1] + 1] = whole[which][:, columns].to(local.dtype)


def timed(call):
    """Seconds of a call in which all ranks take part."""
    torch.cuda.synchronize()
    dist.barrier()
    begin = time.perf_counter()
    result = call()
    torch.cuda.synchronize()
    dist.barrier()
    return time.perf_counter() - begin, result


class Table:
    def __init__(self):
        self.base = {}

    def add(self, what, n, how, gpus, seconds, check):
        key = (what, n)
        alone = self.base.setdefault(key, (seconds, check))
        if dist.get_rank() == 0:
            same = alone[1] == check
            row = {
                "what": what, "n": n, "how": how, "GPUs": gpus, "seconds": round(seconds, 4),
                "T steps/s": round(n**3 / seconds / 1e12, 2),
                "efficiency": round(alone[0] / seconds / gpus, 3), "equal": same,
            }  # fmt: skip
            print(json.dumps(row), flush=True)


def paths(table, n, tracks, alone, everyone, with_one):
    what = "shortest paths" + (" and predecessors" if tracks else "")
    first = dist.get_rank() == 0

    def seconds_of(mesh, how, gpus):
        held = [tgd.BlockCyclic.empty(n, mesh, torch.float32)] if gpus > 1 or first else []
        for d in held:
            fill(d.local, d.rows, d.columns, n, 1)

        def call():
            if not held:
                return
            (d,) = held
            if how == "tropical_gemm":
                tg.shortest_path(d.local, "FW", return_predecessors=tracks, overwrite=True)
            else:
                tgd.shortest_path(d, return_predecessors=tracks)

        seconds, _ = timed(call)
        check = [fingerprint(held.pop()) for _ in range(len(held))]
        torch.cuda.empty_cache()
        table.add(what, n, how, gpus, seconds, check)

    seconds_of(alone, "tropical_gemm", 1)
    if with_one:
        seconds_of(alone, "distributed", 1)
    seconds_of(everyone, "distributed", dist.get_world_size())


def product(table, n, argmax, everyone, repeats=2):
    what = "product" + (" and argmax" if argmax else "")
    first, size = dist.get_rank() == 0, dist.get_world_size()
    layouts = sharded(everyone, [Shard(0)], (n, n))
    mine = layouts[dist.get_rank()]

    def part(layout, seed):
        local = torch.empty(len(layout.rows), len(layout.columns), device="cuda")
        fill(local, layout.rows, layout.columns, n, seed)
        return local

    def median(call):
        times = [timed(call)[0] for _ in range(repeats + 1)]
        return statistics.median(times[1:])

    total = lambda x: int(x.to(torch.float64).sum()) if x.numel() else 0  # noqa: E731
    results = {}

    def alone():
        if first:
            made = tg.matmul(a, b, semiring="min_plus", return_argmax=argmax)
            results["one"] = made if argmax else (made,)

    if first:
        layout = Layout(np.arange(n), np.arange(n))
        a, b = part(layout, 2), part(layout, 3)
    seconds = median(alone)
    check = [total(x) for x in results["one"]] if first else None
    results.clear()
    if first:
        del a, b
    torch.cuda.empty_cache()
    table.add(what, n, "tropical_gemm", 1, seconds, check)
    x, y = (wrapped(part(mine, seed), everyone, [Shard(0)], (n, n)) for seed in (2, 3))

    def together():
        made = tgd.matmul(x, y, semiring="min_plus", return_argmax=argmax)
        results["all"] = made if argmax else (made,)

    seconds = median(together)
    sums = torch.tensor([total(z.to_local()) for z in results["all"]], device="cuda")
    dist.all_reduce(sums)
    table.add(what, n, "distributed", size, seconds, sums.tolist() if first else None)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--nodes", type=int, nargs="*", default=[32768, 65536])
    arguments.add_argument("--product", type=int, nargs="*", default=[32768])
    arguments.add_argument("--with-one", action="store_true", help="the distributed code on one GPU, too")
    wanted = arguments.parse_args()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    everyone = init_device_mesh("cuda", (dist.get_world_size(),))
    alone = DeviceMesh("cuda", [0])
    table = Table()
    link(device)
    for tracks in (False, True):  # warm-up
        paths(Table(), 4096, tracks, alone, everyone, False)
    for n in wanted.product:
        for argmax in (False, True):
            product(table, n, argmax, everyone)
    for n in wanted.nodes:
        for tracks in (False, True):
            paths(table, n, tracks, alone, everyone, wanted.with_one)
    dist.destroy_process_group()


def link(device):
    """Bandwidth of a broadcast of a panel of 256 MB."""
    x = torch.empty(1 << 28, dtype=torch.uint8, device=device)
    dist.broadcast(x, 0)
    seconds = min(timed(lambda: [dist.broadcast(x, 0) for _ in range(8)])[0] for _ in range(3)) / 8
    if dist.get_rank() == 0:
        print(json.dumps({"broadcast of 256 MB, GB/s": round(x.numel() / seconds / 1e9)}), flush=True)


main()

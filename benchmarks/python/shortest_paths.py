"""All shortest paths beside SciPy's, and where SciPy's Dijkstra is the faster one.

    python benchmarks/python/shortest_paths.py          # the CPU: Floyd-Warshall; the table of n and density
    python benchmarks/python/shortest_paths.py --cuda   # a GPU, beside one product of the same size (torch)
    python benchmarks/python/shortest_paths.py --only table --sizes 500 1000 2000

Calls are timed as users make them, from the matrix to the results. Weights are uniform in [0, 1), float32
unless said; SciPy computes in float64. Of ours the median of seven calls, of SciPy's, which take seconds, the
better of two.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import tropical_gemm as tg


def timed(call, repeats):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return sorted(times)


def against_floyd_warshall(n: int) -> None:
    from scipy.sparse.csgraph import floyd_warshall

    print("| what | ours | SciPy's floyd_warshall | times as fast |\n|---|---|---|---|")
    for dtype in ("float32", "float64"):
        weights = np.random.default_rng(0).random((n, n)).astype(dtype)
        for tracks in (False, True):
            call = lambda: tg.shortest_path(weights, "FW", return_predecessors=tracks)  # noqa: B023, E731
            call()
            ours = timed(call, 7)[3]
            theirs = timed(lambda: floyd_warshall(weights, return_predecessors=tracks), 2)[0]  # noqa: B023
            what = f"n = {n}, {dtype}" + (", predecessors" if tracks else "")
            print(f"| {what} | {ours:.3f} s | {theirs:.2f} s | {theirs / ours:.0f} |", flush=True)


def against_dijkstra(sizes: list[int], densities: list[float]) -> None:
    """Times of all pairs; Dijkstra's from 50 sources, times n / 50."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    head = " | ".join(f"density {density:g}" for density in densities)
    print(f"| n | ours | {head} |\n|---|---|{'---|' * len(densities)}")
    for n in sizes:
        rng = np.random.default_rng(n)
        weights = rng.random((n, n), np.float32)
        call = lambda: tg.shortest_path(weights, "FW")  # noqa: B023, E731
        call()
        ours = timed(call, 3)[0]
        cells = []
        for density in densities:
            count = max(int(density * n * n), n)
            ends = rng.integers(0, n, (2, count))
            graph = csr_array((rng.random(count), (ends[0], ends[1])), shape=(n, n))
            sources = rng.integers(0, n, 50)
            theirs = timed(lambda: dijkstra(graph, indices=sources), 2)[0] * n / 50  # noqa: B023
            cells.append(f"{theirs:.2f} s ({theirs / ours:.2f})")
        print(f"| {n} | {ours:.3f} s | {' | '.join(cells)} |", flush=True)


def on_cuda(sizes: list[int]) -> None:
    import torch

    def best(call):
        times = []
        for _ in range(4):
            torch.cuda.synchronize()
            start = time.perf_counter()
            call()
            torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
        return min(times[1:])

    print(torch.cuda.get_device_name())
    print("| n | product | paths | of it | with predecessors | of it |\n|---|---|---|---|---|---|")
    for n in sizes:
        weights = torch.rand(n, n, device="cuda")
        if n > 20_000:
            torch.cuda.synchronize()
            start = time.perf_counter()
            tg.shortest_path(weights, "FW", overwrite=True)
            torch.cuda.synchronize()
            seconds = time.perf_counter() - start
            peak = torch.cuda.max_memory_allocated() / 1e9
            print(f"| {n} | | {seconds:.2f} s in place, {peak:.1f} GB at most | | | |", flush=True)
            continue
        product = best(lambda: tg.matmul(weights, weights, semiring="min_plus"))  # noqa: B023
        values = best(lambda: tg.shortest_path(weights, "FW"))  # noqa: B023
        both = best(lambda: tg.shortest_path(weights, "FW", return_predecessors=True))  # noqa: B023
        print(
            f"| {n} | {1e3 * product:.2f} ms | {1e3 * values:.2f} ms | {values / product:.2f} | "
            f"{1e3 * both:.2f} ms | {both / product:.2f} |",
            flush=True,
        )
        torch.cuda.reset_peak_memory_stats()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--only", choices=("peer", "table"))
    parser.add_argument("--sizes", type=int, nargs="*")
    arguments = parser.parse_args()
    if arguments.cuda:
        on_cuda(arguments.sizes or [1024, 2048, 4096, 8192, 16384, 46000])
        return
    print(f"{tg.info()['isa']}, {tg.info()['threads']} threads")
    if arguments.only != "table":
        against_floyd_warshall(2000)
    if arguments.only != "peer":
        against_dijkstra(arguments.sizes or [1000, 2000, 4000, 8000], [0.0005, 0.002, 0.01, 0.05, 0.5])


if __name__ == "__main__":
    main()

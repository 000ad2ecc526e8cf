"""What shortest paths over many GPUs would take, from measured rates: the tables of docs/scaling.md.

python benchmarks/python/scaling_model.py
"""

import math

# Steps a second of accumulating products of that K on an H200, in 1e12 (docs/performance.md; 2048 between its
# neighbours, 64 of few rows), with and without argmax; seconds to look up an element's predecessor.
RATES = {64: 6.0, 128: 9.0, 256: 12.0, 512: 13.0, 1024: 14.0, 2048: 14.6, 4096: 15.2}
ARGMAX = {64: 3.8, 128: 4.3, 256: 4.8, 512: 7.0, 1024: 8.8, 2048: 10.2, 4096: 11.6}
LOOK_UP = 13e-12
LAUNCH = 15e-6  # of a small product and the copies beside it, on the GPU
CALL = {False: 1e-4, True: 2e-4}  # and in Python: n = 4096 took 0.12 s for 480 of them with predecessors
ACTUAL = 1.06  # two GPUs at n = 65,536, measured over this model
NVLINK = 350e9  # bytes a second of a broadcast, measured between two H200s
NETWORK = 50e9  # one 400 Gb/s adapter a GPU: assumed
MESSAGE = 30e-6
GPUS_OF_HOST = 8


def grid(gpus):
    rows = max(r for r in range(1, gpus + 1) if gpus % r == 0 and r * r <= gpus)
    return rows, gpus // rows


def seconds(n, gpus, tracks):
    rows, columns = grid(gpus)
    block = min(4096, max(64, n // (8 * max(rows, columns)) // 64 * 64))
    height, width = n / rows, n / columns
    link = NVLINK if gpus <= GPUS_OF_HOST else NETWORK
    item = 8 if tracks else 4

    def product(m, k, w):
        size = 2 ** round(math.log2(k))
        rate = (ARGMAX if tracks else RATES)[min(4096, max(64, size))] * 1e12
        return m * k * w / rate + (LOOK_UP * m * w if tracks else 0)

    def message(size, ranks):
        return 0 if ranks == 1 else size / link + MESSAGE * math.log2(ranks)

    # The rows of a pivot, closed by the ranks that have them.
    close, half = 0.0, block // 2
    while half >= 64:
        close += block / half * (product(half, half, width + block) + LAUNCH)
        half //= 2
    close += block / 64 * 6 * (product(64, 64, width + block) + LAUNCH)
    calls = 8 * block / 64 * CALL[tracks]
    share = product(block, block, width)
    work = product(height, block, width) + max(0.0, close - share) / rows
    path = (
        product(block, block, width) + message(4 * block * block, columns) + max(close, calls)
        + (product(height, block, block) if columns > 1 else 0)
        + message(4 * height * block, columns) + message(item * block * width, rows)
    )  # fmt: skip
    # All that is sent while one pivot is worked on.
    wires = message(4 * height * block, columns) + message(item * block * width, rows)
    bound = max(work, path if rows > 1 else calls, wires)
    return ACTUAL * n / block * bound, block, work, path, wires


def main():
    for tracks in (False, True):
        print("with predecessors" if tracks else "distances")
        print("| n | GPUs | pivot | seconds | efficiency | work | critical path | messages |")
        print("|---|---|---|---|---|---|---|---|")
        for n in (65536, 131072, 262144):
            alone, *_ = seconds(n, 1, tracks)
            for gpus in (1, 2, 8, 64):
                if n * n * (8 if tracks else 4) / gpus > 110e9:
                    continue
                total, block, *parts = seconds(n, gpus, tracks)
                work, path, wires = (f"{1e3 * x:.1f} ms" for x in parts)
                share = f"{alone / total / gpus:.0%}"
                print(f"| {n:,} | {gpus} | {block} | {total:.1f} | {share} | {work} | {path} | {wires} |")


main()

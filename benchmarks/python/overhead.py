"""What one call costs on matrices too small to compute anything: tg.matmul against np.matmul, taking turns.

Times are those of the process's clock, which stands still while other processes have the processor. Prints
Markdown.

    python benchmarks/python/overhead.py [--rounds 7]
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tropical_gemm as tg

SHAPES = ((8, 8), (1, 1), (16, 8, 8))
CALLS = 20_000
TARGET = 3.0


def seconds_per_call(function: Callable[[Any, Any], Any], a: Any, b: Any) -> float:
    start = time.process_time()
    for _ in range(CALLS):
        function(a, b)
    return (time.process_time() - start) / CALLS


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds

    print(f"tropical-gemm {tg.info()['version']}, NumPy {np.__version__}; float32, medians of {rounds}.\n")
    print("| shape of A and B | tg.matmul | np.matmul | ratio | target |")
    print("|---|---|---|---|---|")
    rng = np.random.default_rng(1)
    for shape in SHAPES:
        a, b = (rng.uniform(-1, 1, shape).astype(np.float32) for _ in range(2))
        pairs = [
            (seconds_per_call(tg.matmul, a, b), seconds_per_call(np.matmul, a, b)) for _ in range(rounds)
        ]
        ratio = statistics.median(ours / numpy for ours, numpy in pairs)
        ours, numpy = (statistics.median(times) for times in zip(*pairs, strict=True))
        verdict = "met" if ratio <= TARGET else "**missed**"
        times = f"{ours * 1e9:.0f} ns | {numpy * 1e9:.0f} ns"
        print(f"| {shape} | {times} | {ratio:.2f} | <= {TARGET:.0f}, {verdict} |")


if __name__ == "__main__":
    main()

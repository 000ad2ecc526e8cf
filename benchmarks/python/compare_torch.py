"""A product of tensors and its gradients, forward and backward: this package and the earlier one.

Each runs in a process of its own, with the same torch; they take turns, and the medians are printed. The
gradients are compared first.

    python benchmarks/python/compare_torch.py [--size 512] [--rounds 7] [--peer 0.4.0]
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

SAMPLE_SECONDS = 0.3


def product_of(implementation: str) -> Any:
    if implementation == "ours":
        import tropical_gemm.torch

        return tropical_gemm.torch.matmul
    import tropical_gemm.pytorch

    return tropical_gemm.pytorch.tropical_maxplus_matmul


def answer(implementation: str, n: int) -> None:
    """Print the gradients' sums over rows, then the seconds of a step for each line that comes."""
    product = product_of(implementation)
    torch.manual_seed(0)
    a, b = (torch.rand(n, n, requires_grad=True) for _ in range(2))
    weight = torch.randint(-3, 4, (n, n)).float()  # sums of these are exact

    def step() -> None:
        a.grad = b.grad = None
        product(a, b).backward(weight)

    step()
    print(json.dumps([grad.sum(0).tolist() for grad in (a.grad, b.grad)]), flush=True)
    for _ in sys.stdin:
        calls, start = 0, time.perf_counter()
        while time.perf_counter() - start < SAMPLE_SECONDS:
            step()
            calls += 1
        print(json.dumps((time.perf_counter() - start) / calls), flush=True)


class Process:
    def __init__(self, python: Path, implementation: str, n: int) -> None:
        # The earlier package must not meet this one on a search path of the environment.
        isolated = ["-I"] if implementation == "peer" else []
        self.running = subprocess.Popen(
            [python, *isolated, __file__, "--answer", implementation, "--size", str(n)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.gradients = self.read()

    def read(self) -> Any:
        assert self.running.stdout is not None
        return json.loads(self.running.stdout.readline())

    def seconds(self) -> float:
        assert self.running.stdin is not None
        self.running.stdin.write("\n")
        self.running.stdin.flush()
        return float(self.read())

    def close(self) -> None:
        assert self.running.stdin is not None
        self.running.stdin.close()
        self.running.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--peer", default="0.4.0", metavar="VERSION", help="of the earlier package, from PyPI"
    )
    parser.add_argument("--answer", choices=("ours", "peer"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answer:
        answer(options.answer, options.size)
        return

    from compare import peer_python

    pythons = {
        "ours": Path(sys.executable),
        "peer": peer_python(options.peer, f"torch=={torch.__version__.partition('+')[0]}"),
    }
    processes = {name: Process(python, name, options.size) for name, python in pythons.items()}
    assert processes["ours"].gradients == processes["peer"].gradients, "the gradients differ"
    samples: dict[str, list[float]] = {name: [] for name in processes}
    for _ in range(options.rounds):
        for name, process in processes.items():
            samples[name].append(process.seconds())
    for process in processes.values():
        process.close()
    ours, peer = (statistics.median(samples[name]) for name in ("ours", "peer"))
    print(
        f"forward + backward, float32 max_plus, n = {options.size}, torch {torch.__version__}: "
        f"ours {ours * 1e3:.2f} ms, earlier {options.peer} {peer * 1e3:.2f} ms, {peer / ours:.1f}x"
    )


if __name__ == "__main__":
    main()

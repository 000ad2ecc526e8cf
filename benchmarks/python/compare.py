"""This package against NumPy's formula and the earlier package of this import name, on the same inputs.

Every implementation runs in a process of its own; they take turns, and the table shows medians. Prints
Markdown.

    python benchmarks/python/compare.py [--sizes 128 256] [--rounds 7] [--peer 0.4.0]
"""

import argparse
import contextlib
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tropical_gemm as tg

HERE = Path(__file__).resolve().parent
WORKER = HERE / "worker.py"
VENVS = HERE.parents[1] / "build"
PEER_VERSION = "0.4.0"
NAMES = ("ours", "numpy", "peer")
OPERATIONS = ("values", "argmax")
TARGETS = {(1024, "values", "all"): 10.0, (1024, "argmax", "all"): 30.0}  # over the earlier package
ONE_THREAD = {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}


def peer_python(version: str, *more: str) -> Path:
    """The interpreter of an environment with the earlier package and ``more``, made at the first use."""
    directory = VENVS / "-".join(("peer", version, *(package.partition("=")[0] for package in more)))
    python = directory / "bin" / "python"
    ready = directory / ".ready"
    if not ready.exists():
        venv.create(directory, with_pip=True, clear=True)
        packages = [f"tropical-gemm=={version}", "numpy", *more]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        ready.touch()
    return python


class Worker:
    def __init__(self, python: Path, implementation: str, directory: Path, cores: str) -> None:
        one = cores == "one"
        # The earlier package must not meet this one on a search path of the environment.
        isolated = ["-I"] if implementation == "peer" else []
        command = [str(python), *isolated, str(WORKER), implementation, str(directory)]
        self.process = subprocess.Popen(
            # The affinity is set before the interpreter starts, so that every thread pool sees it.
            ["taskset", "-c", str(min(os.sched_getaffinity(0))), *command] if one else command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(ONE_THREAD if one else {})},
        )

    def seconds(self, n: int, operation: str, save: str | None = None) -> float:
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps({"n": n, "operation": operation, "save": save}) + "\n")
        stdin.flush()
        answer = stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.process.args!r} ended with code {self.process.wait()}")
        return float(json.loads(answer)["seconds"])

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@contextlib.contextmanager
def workers(pythons: dict[str, Path], directory: Path, cores: str) -> Iterator[dict[str, Worker]]:
    running = {name: Worker(python, name, directory, cores) for name, python in pythons.items()}
    try:
        yield running
    finally:
        for worker in running.values():
            worker.close()


def make_inputs(directory: Path, sizes: list[int]) -> None:
    rng = np.random.default_rng(1)
    for n in sizes:
        for name in "ab":
            np.save(directory / f"{name}_{n}.npy", rng.uniform(-1, 1, (n, n)).astype(np.float32))


def check(directory: Path, n: int, operation: str) -> None:
    """Values are equal everywhere. Indices equal NumPy's; the earlier package's may be others that tie."""
    a, b = (np.load(directory / f"{name}_{n}.npy") for name in "ab")
    values = {name: np.load(directory / f"{name}_values.npy") for name in NAMES}
    for name in NAMES:
        if not np.array_equal(values[name], values["ours"]):
            raise AssertionError(f"values of {name} differ from ours, n = {n}")
    if operation == "values":
        return
    indices = {name: np.load(directory / f"{name}_argmax.npy") for name in NAMES}
    for name, k in indices.items():
        chosen = np.take_along_axis(a, k, axis=1) + np.take_along_axis(b, k, axis=0)
        if not np.array_equal(chosen, values["ours"]):
            raise AssertionError(f"indices of {name} do not select the values, n = {n}")
    if not np.array_equal(indices["numpy"], indices["ours"]):
        raise AssertionError(f"indices differ from NumPy's, n = {n}")


@dataclasses.dataclass
class Row:
    n: int
    operation: str
    cores: str
    seconds: dict[str, float]

    def markdown(self) -> str:
        ours, numpy, peer = (self.seconds[name] for name in NAMES)
        target = TARGETS.get((self.n, self.operation, self.cores))
        verdict = (
            "" if target is None else f">= {target:.0f}x, {'met' if peer / ours >= target else '**missed**'}"
        )
        times = f"{ours * 1e3:.3f} ms | {numpy * 1e3:.2f} ms | {numpy / ours:.1f}x | {peer * 1e3:.2f} ms"
        return f"| {self.n} | {self.operation} | {self.cores} | {times} | {peer / ours:.1f}x | {verdict} |"


def measure(
    running: dict[str, Worker], directory: Path, n: int, operation: str, rounds: int
) -> dict[str, float]:
    for name, worker in running.items():
        worker.seconds(n, operation, save=name)
    check(directory, n, operation)
    samples: dict[str, list[float]] = {name: [] for name in running}
    for _ in range(rounds):
        for name, worker in running.items():
            samples[name].append(worker.seconds(n, operation))
    return {name: statistics.median(times) for name, times in samples.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[128, 256, 512, 1024])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--peer", default=PEER_VERSION, metavar="VERSION", help="of the earlier package, from PyPI"
    )
    options = parser.parse_args()

    info = tg.info()
    ours = Path(sys.executable)
    pythons = {"ours": ours, "numpy": ours, "peer": peer_python(options.peer)}
    print(
        f"tropical-gemm {info['version']}, {info['isa']}, {info['threads']} threads; NumPy {np.__version__}; "
        f"float32 max_plus, n x n, medians of {options.rounds}.\n"
    )
    print(f"| n | result | cores | ours | NumPy | speed-up | earlier {options.peer} | speed-up | target |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        make_inputs(directory, options.sizes)
        for cores in ("all", "one"):
            with workers(pythons, directory, cores) as running:
                for n in options.sizes:
                    for operation in OPERATIONS:
                        seconds = measure(running, directory, n, operation, options.rounds)
                        print(Row(n, operation, cores, seconds).markdown(), flush=True)


if __name__ == "__main__":
    main()

"""One implementation in a process of its own: answers lines of JSON with times and results.

The earlier package has the same import name, so it cannot share a process with this one. compare.py starts
this file with the interpreter that has the package wanted:

    python worker.py IMPLEMENTATION DIRECTORY

A request is {"n": 1024, "operation": "values", "save": "name or null"}, the answer {"seconds": ...} of one
call. The inputs are DIRECTORY/a_1024.npy and b_1024.npy. A saved result goes to DIRECTORY/name_values.npy,
and with indices to name_argmax.npy too.
"""

import importlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SAMPLE_SECONDS = 0.05

Function = Callable[[Any, Any], Any]


def numpy_values(a: Any, b: Any) -> Any:
    return np.stack([np.max(row[:, None] + b, axis=0) for row in a])


def numpy_argmax(a: Any, b: Any) -> Any:
    columns = np.arange(b.shape[1])
    values = np.empty((a.shape[0], b.shape[1]), a.dtype)
    indices = np.empty(values.shape, np.int32)
    for i, row in enumerate(a):
        candidates = row[:, None] + b
        indices[i] = candidates.argmax(axis=0)
        values[i] = candidates[indices[i], columns]
    return values, indices


def functions_of(implementation: str) -> dict[str, Function]:
    """The calls to time, by operation."""
    if implementation == "numpy":
        return {"values": numpy_values, "argmax": numpy_argmax}
    package = importlib.import_module("tropical_gemm")
    if implementation == "ours":
        return {"values": package.matmul, "argmax": lambda a, b: package.matmul(a, b, return_argmax=True)}
    return {"values": package.maxplus_matmul_2d, "argmax": package.maxplus_matmul_with_argmax}


class Timer:
    """Times calls; a sample holds as many as SAMPLE_SECONDS asks for, found at the first one."""

    def __init__(self, function: Function, a: Any, b: Any) -> None:
        self.function, self.a, self.b = function, a, b
        self.sample(1)  # warm
        self.calls = max(1, round(SAMPLE_SECONDS / self.sample(1)))

    def sample(self, calls: int | None = None) -> float:
        count = self.calls if calls is None else calls
        start = time.perf_counter()
        for _ in range(count):
            self.function(self.a, self.b)
        return (time.perf_counter() - start) / count


def save(directory: Path, name: str, result: Any, shape: tuple[int, int]) -> None:
    parts = result if isinstance(result, tuple) else (result,)
    for part_name, part in zip(("values", "argmax"), parts, strict=False):
        # The earlier package returns flat arrays.
        np.save(directory / f"{name}_{part_name}.npy", np.asarray(part).reshape(shape))


def main() -> None:
    functions = functions_of(sys.argv[1])
    directory = Path(sys.argv[2])
    timers: dict[tuple[int, str], Timer] = {}
    for line in sys.stdin:
        request = json.loads(line)
        n, operation = request["n"], request["operation"]
        if (n, operation) not in timers:
            a, b = (np.load(directory / f"{name}_{n}.npy") for name in "ab")
            timers[n, operation] = Timer(functions[operation], a, b)
        timer = timers[n, operation]
        if request["save"]:
            save(directory, request["save"], timer.function(timer.a, timer.b), (n, n))
        print(json.dumps({"seconds": timer.sample()}), flush=True)


if __name__ == "__main__":
    main()

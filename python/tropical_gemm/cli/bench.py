"""Times on this machine, for the command ``bench``."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tropical_gemm as tg


def measure(n: int, semiring: str, dtype: str, threads: "int | None") -> list[dict[str, Any]]:
    known = tg.info()["dtypes"]
    if dtype not in known or dtype == "bfloat16":
        expected = ", ".join(name for name in known if name != "bfloat16")
        raise ValueError(f"dtype is {dtype!r}, expected one of {expected}")
    random = np.random.default_rng(0)
    x = random.integers(0, 2 if dtype == "bool" else 100, (n, n)).astype(dtype)
    rows = [
        _row(f"matmul {semiring}", n, lambda: tg.matmul(x, x, semiring=semiring, threads=threads)),
        _row(
            f"matmul {semiring} with argmax",
            n,
            lambda: tg.matmul(x, x, semiring=semiring, return_argmax=True, threads=threads),
        ),
    ]
    if dtype in ("float32", "float64", "int32", "int64"):
        rows.append(_row("shortest_path", n, lambda: tg.shortest_path(x, method="FW", threads=threads)))
    return rows


def _row(what: str, n: int, call: Callable[[], object]) -> dict[str, Any]:
    """The best of calls that take about a second in all."""
    call()
    times: list[float] = []
    while not times or (sum(times) < 1 and len(times) < 20):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return {"what": what, "n": n, "seconds": min(times), "rate": n**3 / min(times) / 1e9}

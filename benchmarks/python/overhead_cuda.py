"""Host time of one small call on a GPU, and of torch.mm: medians of short batches of calls."""

import statistics
import time

import torch
import tropical_gemm as tg
from tropical_gemm.torch import matmul

BATCH, ROUNDS = 200, 60


def host_time(call):
    """Microseconds a call."""
    times = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(BATCH):
            call()
        times.append((time.perf_counter() - begin) / BATCH * 1e6)
    return statistics.median(times[ROUNDS // 6 :])


def main():
    a, b = (torch.randn(64, 64, device="cuda") for _ in range(2))
    x, y, out = a.int(), b.int(), torch.empty_like(a)
    p, q = (v.clone().requires_grad_() for v in (a, b))
    calls = {
        "torch.mm": lambda: torch.mm(a, b),
        "torch.mm, out": lambda: torch.mm(a, b, out=out),
        "torch.empty": lambda: torch.empty((64, 64), dtype=torch.float32, device=a.device),
        "torch.mm, gradient": lambda: torch.mm(p, q),
        "tg.torch.matmul": lambda: matmul(a, b),
        "tg.torch.matmul, gradient": lambda: matmul(p, q),
        "the same, max_mul": lambda: matmul(p, q, semiring="max_mul"),
        "tg.matmul": lambda: tg.matmul(a, b),
        "tg.matmul, gradient": lambda: tg.matmul(p, q),
        "tg.matmul, argmax": lambda: tg.matmul(a, b, return_argmax=True),
        "tg.matmul, out": lambda: tg.matmul(a, b, out=out),
        "tg.matmul, int32": lambda: tg.matmul(x, y),
    }
    measured = {name: host_time(call) for name, call in calls.items()}
    for name, micros in measured.items():
        print(f"{name:26} {micros:8.2f} us  {micros / measured['torch.mm']:5.2f} x torch.mm")


if __name__ == "__main__":
    main()

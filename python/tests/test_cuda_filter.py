"""Float64 products through bounds on the GPU are the plain ones in every bit."""

import os
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

# A process of its own: the variable is read by the library.
PROGRAM = """
import sys, hashlib, numpy as np, torch, tropical_gemm as tg
from tropical_gemm import debug
size, semiring = int(sys.argv[1]), sys.argv[2]
rng = np.random.default_rng(5)
kinds = [rng.standard_normal, rng.random, lambda s: rng.integers(0, 1000, s).astype(float),
         lambda s: np.where(rng.random(s) < .7, -np.inf, rng.random(s)),
         lambda s: np.where(rng.random(s) < 1e-4, np.nan, rng.random(s)),
         lambda s: rng.integers(0, 64, s) / 64 + rng.random(s) * 2.0**-30,
         lambda s: 1e200 * rng.standard_normal(s)]
for kind in kinds:
    a, b = (torch.from_numpy(kind(s)).cuda() for s in ((size, size + 5), (size + 5, size + 9)))
    if semiring == "min_plus":
        a, b = -a, -b
    with debug.recorded():
        c, arg = tg.matmul(a, b, semiring=semiring, return_argmax=True)
    path, unproven = debug.last_path()
    assert 0 <= unproven <= 1
    print(path)
    d = tg.matmul(a.T.contiguous().T, b, semiring=semiring)
    assert d.cpu().numpy().tobytes() == c.cpu().numpy().tobytes()
    print(hashlib.sha1(c.cpu().numpy().tobytes() + arg.cpu().numpy().tobytes()).hexdigest())
"""


def digests(filtering: str, size: int, semiring: str) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(size), semiring],
        env={**os.environ, "TROPICAL_GEMM_FILTER": filtering},
        capture_output=True,
        text=True,
        check=True,
    )
    words = run.stdout.split()
    paths, made = words[::2], words[1::2]
    assert ("filtered" in paths) == (filtering == "always" or (filtering == "auto" and size >= 1024))
    assert filtering != "auto" or "plain" in paths  # the last kinds are not worth it
    return made


@pytest.mark.parametrize("semiring", ["max_plus", "min_plus"])
@pytest.mark.parametrize("size", [70, 1024])
def test_every_way_gives_the_same_bits(size: int, semiring: str) -> None:
    plain = digests("never", size, semiring)
    assert len(set(plain)) == 7
    assert digests("always", size, semiring) == plain
    assert digests("auto", size, semiring) == plain


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_closures_are_the_same_when_recorded(dtype: torch.dtype) -> None:
    import tropical_gemm as tg
    from tropical_gemm import debug

    generator = torch.Generator("cuda").manual_seed(4)
    weights = 0.1 + torch.rand((1300, 1300), device="cuda", dtype=dtype, generator=generator)
    distances, before = tg.shortest_path(weights, return_predecessors=True)
    closed = tg.closure(weights, semiring="min_plus")
    with debug.recorded():
        again, before_again = tg.shortest_path(weights, return_predecessors=True)
        with debug.recorded():
            pass
        closed_again = tg.closure(weights, semiring="min_plus")
    assert torch.equal(distances, again)
    assert torch.equal(before, before_again)
    assert torch.equal(closed, closed_again)


def test_against_numpy() -> None:
    import tropical_gemm as tg

    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((1024, 1100)), rng.standard_normal((1100, 1030))
    c, arg = tg.matmul(torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda(), return_argmax=True)
    for i in range(0, 1024, 37):
        candidates = a[i][:, None] + b
        assert np.array_equal(c[i].cpu().numpy(), candidates.max(axis=0))
        assert np.array_equal(arg[i].cpu().numpy(), candidates.argmax(axis=0))


@pytest.mark.parametrize("argmax", [False, True])
def test_parts_of_a_large_product(argmax: bool) -> None:
    # Bounds for the whole would take more of the memory than they may; those of its parts do not.
    import tropical_gemm as tg
    from tropical_gemm import debug

    n = 16384
    generator = torch.Generator("cuda").manual_seed(3)
    a, b = (torch.rand((n, n), device="cuda", generator=generator) for _ in range(2))
    with debug.recorded():
        whole = tg.matmul(a, b, semiring="min_plus", return_argmax=argmax)
    assert debug.last_path().path == ("filtered" if torch.cuda.get_device_capability() >= (9, 0) else "plain")
    for first in range(0, n, 4096):
        part = tg.matmul(a[first : first + 4096], b, semiring="min_plus", return_argmax=argmax)
        for x, y in zip(whole, part, strict=True) if argmax else [(whole, part)]:
            assert torch.equal(x[first : first + 4096], y)

"""The Rust package's functions for the GPU: its shapes and types, and right where that one was wrong."""

import numpy as np
import oracle
import pytest
import tropical_gemm as tg
from gpu import needs_gpu, spin, to_numpy, torch

pytestmark = needs_gpu

SEMIRINGS = {"maxplus": "max_plus", "minplus": "min_plus", "maxmul": "max_mul"}


def operands(*shapes):
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype(np.float32) - 1 for shape in shapes]


@pytest.mark.parametrize("prefix", SEMIRINGS)
@pytest.mark.parametrize("shape", [(5, 7, 4), (64, 64, 64), (100, 1, 3)])
def test_numpy_in_and_out(prefix, shape):
    m, k, n = shape
    a, b = operands((m, k), (k, n))
    values, argmax = tg.matmul(a, b, semiring=SEMIRINGS[prefix], return_argmax=True)
    for x, y in ((a, b), (np.asfortranarray(a), b[::-1][::-1])):
        oracle.assert_same(getattr(tg, f"{prefix}_matmul_gpu")(x, y), values.ravel())
        got = getattr(tg, f"{prefix}_matmul_gpu_with_argmax")(x, y)
        oracle.assert_same(got[0], values.ravel())
        oracle.assert_same(got[1], argmax.ravel(), "argmax")


@pytest.mark.parametrize("prefix", SEMIRINGS)
def test_capsules(prefix):
    a, b = operands((3, 5, 7), (3, 7, 4))
    values, argmax = tg.matmul(a, b, semiring=SEMIRINGS[prefix], return_argmax=True)
    x, y = torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda()
    matrix, batched = (getattr(tg, f"{prefix}_matmul{s}") for s in ("_dlpack", "_batched_dlpack"))
    to_capsule = torch.utils.dlpack.to_dlpack
    for u, v in ((x[0], y[0]), (to_capsule(x[0]), to_capsule(y[0])), (x[0].T.clone().T, y[0])):
        got = [torch.from_dlpack(capsule) for capsule in matrix(u, v)]
        oracle.assert_same(to_numpy(got[0]), values[0])
        oracle.assert_same(to_numpy(got[1]), argmax[0], "argmax")
    got = [torch.from_dlpack(capsule) for capsule in batched(x, y)]
    oracle.assert_same(to_numpy(got[0]), values)
    oracle.assert_same(to_numpy(got[1]), argmax, "argmax")
    # One batch, one row, one k; nothing at all.
    for rows, depth in ((1, 7), (5, 1), (0, 7)):
        u, v = x[:1, :rows, :depth], y[:1, :depth]
        got = torch.from_dlpack(batched(u, v)[0])
        oracle.assert_same(
            to_numpy(got), tg.matmul(a[:1, :rows, :depth], b[:1, :depth], semiring=SEMIRINGS[prefix])
        )


def test_the_callers_stream():
    a, b = operands((64, 64), (64, 64))
    x, y = torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda()
    late = torch.zeros_like(x)
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        spin(50)
        late.copy_(x)
        got = torch.from_dlpack(tg.maxplus_matmul_dlpack(late, y)[0])
        torch.cuda.current_stream().synchronize()
    oracle.assert_same(to_numpy(got), tg.matmul(a, b))


def test_refusals():
    x = torch.ones(3, 3, device="cuda:0")
    with pytest.raises(ValueError, match="a is on cuda:0 and b is on the CPU"):
        tg.maxplus_matmul_dlpack(x, x.cpu())
    with pytest.raises(ValueError, match="2 dimensions, expected 3"):
        tg.maxplus_matmul_batched_dlpack(x, x)
    with pytest.raises(ValueError, match="Batch size mismatch"):
        tg.maxplus_matmul_batched_dlpack(x.expand(2, 3, 3), x.expand(4, 3, 3))

"""Counting, permutations and contractions on a GPU against the CPU: equal bits."""

import numpy as np
import oracle
import pytest
import tropical_gemm as tg
from gpu import needs_gpu, to_gpu, to_numpy

torch = pytest.importorskip("torch")
pytestmark = needs_gpu

# Tiles, lines of few columns, both sides, batches.
SHAPES = [
    ((3, 4), (4, 5)),
    ((70, 33), (33, 65)),
    ((500, 2), (2, 2)),
    ((2, 2), (2, 500)),
    ((7, 300, 16), (16, 8)),
    ((5, 1, 3, 17), (4, 17, 2)),
    ((6, 2, 0), (0, 3)),
    ((0, 2), (2, 3)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("semiring", ["max_plus", "min_plus"])
@pytest.mark.parametrize("counted", [None, "float64", "int64"])
def test_count_matmul(dtype, semiring, counted):
    rng = np.random.default_rng(0)
    for shapes in SHAPES:
        values = [rng.integers(-2, 3, s).astype(dtype) for s in shapes]
        for x in values:
            x[rng.random(x.shape) < 0.2] = oracle.zero(semiring, x.dtype)
            if "float" in dtype:
                x[rng.random(x.shape) < 0.02] = np.nan
        counts = [None if counted is None else rng.integers(0, 9, s).astype(counted) for s in shapes]
        operands = [x if c is None else (x, c) for x, c in zip(values, counts, strict=True)]
        there = [
            to_gpu(x) if c is None else (to_gpu(x), to_gpu(c)) for x, c in zip(values, counts, strict=True)
        ]
        expected = tg.count_matmul(*operands, semiring=semiring)
        got = tg.count_matmul(*there, semiring=semiring)
        oracle.assert_same(to_numpy(got.values), expected.values)
        np.testing.assert_array_equal(to_numpy(got.counts), expected.counts)


def test_any_strides():
    rng = np.random.default_rng(1)
    x = rng.integers(-2, 3, (2, 40, 2, 9)).astype(np.float32)
    b = rng.integers(-2, 3, (2, 2)).astype(np.float32)
    for axes in ((0, 1, 3, 2), (1, 3, 0, 2), (3, 0, 1, 2)):
        expected = tg.count_matmul(x.transpose(axes), b, semiring="max_plus")
        got = tg.count_matmul(to_gpu(x).permute(axes), to_gpu(b), semiring="max_plus")
        np.testing.assert_array_equal(to_numpy(got.values), expected.values)
        np.testing.assert_array_equal(to_numpy(got.counts), expected.counts)


def test_overflow():
    for m in (2, 200):
        a = torch.full((m, 1), 2**30, dtype=torch.int32, device="cuda")
        b = torch.full((1, 2), 2**30, dtype=torch.int32, device="cuda")
        with pytest.raises(OverflowError, match="a value of the result does not fit"):
            tg.count_matmul(a, b, semiring="max_plus")
        zeros = torch.zeros(m, 2, device="cuda")
        many = torch.full((m, 2), 2**62, dtype=torch.int64, device="cuda")
        with pytest.raises(OverflowError, match="a count of the result does not fit int64"):
            tg.count_matmul((zeros, many), torch.zeros(2, 2, device="cuda"), semiring="max_plus")


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_einsum(dtype):
    rng = np.random.default_rng(3)
    for equation in ("ab,bc,cd,da->", "nab,nbc,nca->n", "abcdef,ce->adfb", "abc,bd,dc->ad", "aab,b->a"):
        operands = [
            rng.integers(-9, 9, [3 + ord(y) % 3 for y in t]).astype(dtype)
            for t in equation[: equation.index("-")].split(",")
        ]
        for semiring in ("max_plus", "count_min_plus"):
            expected = tg.einsum(equation, *operands, semiring=semiring)
            got = tg.einsum(equation, *map(to_gpu, operands), semiring=semiring)
            pairs = zip(got, expected, strict=True) if isinstance(got, tuple) else [(got, expected)]
            for x, y in pairs:
                assert x.device.type == "cuda"
                np.testing.assert_array_equal(to_numpy(x), y)


def test_assignment_and_overflow():
    x = torch.tensor([[0.0, 1.0], [2.0, 0.0]], device="cuda")
    value, found = tg.einsum("ij,jk->", x, x, semiring="max_plus", return_assignment=True)
    assert (float(value), found) == (3, {"i": 1, "j": 0, "k": 1})
    big = torch.tensor([2**30], dtype=torch.int32, device="cuda")
    with pytest.raises(OverflowError, match="does not fit int32"):
        tg.einsum("i,i->", big, big, semiring="max_plus")


def test_gradients():
    rng = np.random.default_rng(4)
    operands = [rng.normal(size=s).astype(np.float32) for s in ((3, 4), (4, 5), (5, 3))]
    grads = []
    for device in ("cpu", "cuda"):
        there = [torch.tensor(x, device=device, requires_grad=True) for x in operands]
        tg.einsum("ij,jk,ki->i", *there, semiring="max_plus").sum().backward()
        grads.append([x.grad.cpu() for x in there])
    for x, y in zip(*grads, strict=True):
        assert torch.equal(x, y)

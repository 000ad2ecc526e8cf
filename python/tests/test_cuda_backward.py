"""Gradients on the GPU: the CPU's up to rounding, or exactly where sums are exact; the same in every run."""

import cases
import numpy as np
import oracle
import pytest
import tropical_gemm as tg
from gpu import needs_gpu, to_gpu, to_numpy, torch

pytestmark = needs_gpu

SHAPES = (
    ((), (), 5, 7, 4),
    ((), (), 130, 65, 70),
    ((), (), 1, 600, 1),
    ((3,), (3,), 17, 9, 33),
    ((2,), (), 40, 20, 30),
    ((), (4,), 8, 8, 8),
    ((2, 1), (1, 3), 9, 5, 6),
    ((), (), 4, 0, 3),
    ((0,), (1,), 4, 2, 3),
)


def problem(semiring, dtype, shape, exact, fill="uniform"):
    batch_a, batch_b, m, k, n = shape
    rng = np.random.default_rng(0)
    a = cases.values(rng, fill, semiring, dtype, (*batch_a, m, k))
    b = cases.values(rng, fill, semiring, dtype, (*batch_b, k, n))
    argmax = tg.matmul(a, b, semiring=semiring, return_argmax=True).argmax
    g = rng.integers(-3, 4, argmax.shape) if exact else rng.normal(size=argmax.shape)
    return g.astype(oracle.DTYPES[dtype]), argmax, a, b


@pytest.mark.parametrize(("semiring", "dtype"), oracle.FLOAT_PAIRS)
def test_gradients(semiring, dtype):
    for shape in SHAPES:
        exact = semiring.endswith("plus")
        arrays = problem(semiring, dtype, shape, exact=exact, fill="few" if exact else "uniform")
        expected = tg.matmul_backward(*arrays, semiring=semiring)
        g, argmax, x, y = (to_gpu(v) for v in arrays)
        for indices in (argmax, argmax.long()):
            got = tg.matmul_backward(g, indices, x, y, semiring=semiring)
            again = tg.matmul_backward(g, indices, x, y, semiring=semiring)
            for grad, same, cpu in zip(got, again, expected, strict=True):
                assert torch.equal(grad.nan_to_num(), same.nan_to_num()), "runs differ"
                compare(to_numpy(grad), cpu, exact=exact and dtype in ("float32", "float64"))


def compare(got, expected, exact):
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    if exact:
        np.testing.assert_array_equal(got, expected)
        return
    wide = np.float64
    eps = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-5, "float64": 1e-13}[expected.dtype.name]
    scale = np.abs(expected.astype(wide)).max(initial=1)
    np.testing.assert_allclose(got.astype(wide), expected.astype(wide), rtol=eps, atol=eps * scale)


@pytest.mark.parametrize("needs", [(True, False), (False, True), (False, False)])
def test_only_what_is_needed(needs):
    arrays = [to_gpu(v) for v in problem("max_plus", "float32", SHAPES[1], exact=True)]
    both = tg.matmul_backward(*arrays)
    some = tg.matmul_backward(*arrays, needs=needs)
    for grad, full, needed in zip(some, both, needs, strict=True):
        assert grad is None if not needed else torch.equal(grad, full)


def test_masked_rows_train_nothing():
    a = torch.randn(6, 5, device="cuda")
    b = torch.randn(5, 7, device="cuda")
    a[2] = -torch.inf
    c, argmax = tg.matmul(a, b, return_argmax=True)
    assert (argmax[2] == -1).all()
    grads = tg.matmul_backward(torch.ones_like(c), argmax, a, b)
    assert (grads.grad_a[2] == 0).all()
    assert grads.grad_b.sum() == 5 * 7


def test_indices_outside_are_ignored():
    a, b = torch.ones(3, 4, device="cuda"), torch.ones(4, 5, device="cuda")
    argmax = torch.tensor([[-1, 4, 2**31 - 1, -(2**31), 2]] * 3, dtype=torch.int32, device="cuda")
    grads = tg.matmul_backward(torch.ones(3, 5, device="cuda"), argmax, a, b)
    assert grads.grad_a.sum() == 3
    assert (grads.grad_a[:, 2] == 1).all()
    wide = torch.full((3, 5), 2**40 + 2, dtype=torch.int64, device="cuda")
    assert tg.matmul_backward(torch.ones(3, 5, device="cuda"), wide, a, b).grad_a.sum() == 0


def test_strided_gradients():
    g, argmax, a, b = problem("max_mul", "float64", SHAPES[1], exact=True)
    expected = tg.matmul_backward(g, argmax, a, b, semiring="max_mul")
    strided = (np.asfortranarray(v) for v in (g, argmax, a, b))
    got = tg.matmul_backward(*(to_gpu(v) for v in strided), semiring="max_mul")
    for grad, cpu in zip(got, expected, strict=True):
        compare(to_numpy(grad), cpu, exact=False)


@pytest.mark.parametrize("semiring", ["max_plus", "or_and"])
def test_no_gradient_for_integers(semiring):
    dtype = torch.bool if semiring == "or_and" else torch.int32
    a = torch.ones(3, 3, device="cuda").to(dtype)
    with pytest.raises(TypeError, match="gradients exist for"):
        tg.matmul_backward(a, torch.zeros(3, 3, dtype=torch.int32, device="cuda"), a, a, semiring=semiring)

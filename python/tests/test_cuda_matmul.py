"""Products on the GPU against the CPU backend: equal bits for every semiring, dtype, layout and edge."""

import cases
import numpy as np
import oracle
import pytest
import tropical_gemm as tg
from gpu import check, needs_gpu, needs_two_gpus, to_gpu, to_numpy, torch
from hypothesis import given
from hypothesis import strategies as st

pytestmark = needs_gpu

LAYOUTS = ("C", "F", "step", "offset", "broadcast")
# (m, k, n): one element, vectors, nothing at all, tails of tiles of 8 to 128, K long and short.
SHAPES = (
    (1, 1, 1),
    (1, 300, 1),
    (3, 0, 4),
    (0, 5, 3),
    (4, 7, 0),
    (17, 33, 9),
    (64, 64, 64),
    (65, 31, 129),
    (127, 257, 63),
    (130, 1, 200),
    (2, 2050, 3),
)


@pytest.mark.parametrize("fill", cases.FILLS)
@pytest.mark.parametrize(("semiring", "dtype"), oracle.PAIRS)
def test_shapes(semiring, dtype, fill):
    rng = np.random.default_rng(0)
    for m, k, n in SHAPES:
        a, b = (cases.values(rng, fill, semiring, dtype, s) for s in ((m, k), (k, n)))
        check(semiring, a, b)


@pytest.mark.parametrize("layout_b", LAYOUTS)
@pytest.mark.parametrize("layout_a", LAYOUTS)
@pytest.mark.parametrize(("semiring", "dtype"), [p for p in oracle.PAIRS if p[0] in ("max_plus", "or_and")])
def test_layouts(semiring, dtype, layout_a, layout_b):
    rng = np.random.default_rng(1)
    for batch, m, k, n in (((), 70, 45, 33), ((2,), 19, 130, 66)):
        a, b = (cases.values(rng, "few", semiring, dtype, (*batch, *s)) for s in ((m, k), (k, n)))
        check(semiring, cases.laid_out(a, layout_a), cases.laid_out(b, layout_b))


@given(cases.products(), st.randoms(use_true_random=False))
def test_any_product(product, random):
    semiring, a, b, _ = product
    check(semiring, a, b)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "float64"])
def test_larger(dtype):
    rng = np.random.default_rng(2)
    for fill in ("uniform", "masked", "outlier"):
        a, b = (cases.values(rng, fill, "min_plus", dtype, s) for s in ((300, 513), (513, 260)))
        check("min_plus", a, b)


def test_vectors_and_broadcasting():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 1, 5, 7)).astype(np.float32), rng.normal(size=(3, 7, 4)).astype(np.float32)
    check("max_plus", a, b)
    check("max_plus", a[0, 0, 0], b)
    check("max_plus", a, b[0, :, 0])
    check("max_plus", a[0, 0, 0], b[0, :, 0])
    x = to_gpu(a)
    assert tg.matmul(x[0, 0, 0], x[0, 0, 1]).shape == ()


def test_lazily_negated_views():
    x = torch.randn(8, 8, dtype=torch.complex64, device="cuda")
    a = torch.conj(x).imag
    assert a.is_neg()
    expected = tg.matmul(a.cpu().clone().numpy(), a.cpu().clone().numpy())
    oracle.assert_same(to_numpy(tg.matmul(a, a)), expected)


@pytest.mark.parametrize("batches", [65_536, 1_000_000])
def test_many_small_products(batches):
    a, b = (torch.randn(batches, 8, 8, device="cuda") for _ in range(2))
    got = tg.matmul(a, b, return_argmax=True)
    values, argmax = (a[..., None] + b[:, None]).max(dim=2)
    assert torch.equal(got.values, values)
    assert torch.equal(
        torch.take_along_dim(a[..., None] + b[:, None], got.argmax.long()[:, :, None], 2)[:, :, 0], values
    )
    del values, argmax
    broadcast = tg.matmul(a, b[:1].expand(batches, 8, 8))
    assert torch.equal(broadcast, (a[..., None] + b[0]).max(dim=2).values)


def test_offsets_beyond_32_bits():
    # 3 matrices that lie 2^30 elements and more apart, in one allocation of 2^31 + elements.
    apart = 2**30 + 7
    memory = torch.empty(2 * apart + 64, dtype=torch.int16, device="cuda")
    a = memory.as_strided((3, 8, 8), (apart, 8, 1))
    a.copy_(torch.arange(3 * 64, dtype=torch.int16, device="cuda").view(3, 8, 8))
    expected = tg.matmul(a.cpu().contiguous().numpy(), a.cpu().contiguous().numpy())
    oracle.assert_same(to_numpy(tg.matmul(a, a)), expected)
    out = memory.as_strided((3, 8, 8), (apart, 8, 1), 0)
    assert tg.matmul(a.clone(), a.clone(), out=out) is out
    oracle.assert_same(to_numpy(out.contiguous()), expected)


def test_the_host_has_the_same_rules_for_pinned_memory():
    a = torch.randn(9, 9).pin_memory()
    got = tg.matmul(a, a)
    assert got.device.type == "cpu"
    oracle.assert_same(got.numpy(), tg.matmul(a.numpy(), a.numpy()))


@needs_two_gpus
def test_the_tensors_device_decides():
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(50, 60)), rng.normal(size=(60, 40))
    with torch.cuda.device(0):
        check("max_plus", a, b, device="cuda:1")
        assert torch.cuda.current_device() == 0
    with pytest.raises(ValueError, match="a is on cuda:0 and b is on cuda:1"):
        tg.matmul(to_gpu(a, "cuda:0"), to_gpu(b, "cuda:1"))

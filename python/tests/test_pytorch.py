"""The earlier package's module for PyTorch: every name, its shapes, checks and gradients."""

import subprocess
import sys

import pytest
import tropical_gemm as tg
import tropical_gemm.pytorch as old
from gpu import needs_gpu, torch
from torch_cases import DEVICES, formula, normal, same

SEMIRINGS = {"maxplus": "max_plus", "minplus": "min_plus", "maxmul": "max_mul"}
CAMEL = {"maxplus": "MaxPlus", "minplus": "MinPlus", "maxmul": "MaxMul"}


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def pair(prefix, form):
    """A function and the class of like name."""
    suffix = {"": "", "_gpu": "GPU", "_batched": "Batched"}[form]
    return (
        getattr(old, f"tropical_{prefix}_matmul{form}"),
        getattr(old, f"Tropical{CAMEL[prefix]}Matmul{suffix}").apply,
    )


def test_every_name():
    for prefix in SEMIRINGS:
        for form in ("", "_gpu", "_batched"):
            for product in pair(prefix, form):
                assert callable(product)
            assert f"tropical_{prefix}_matmul{form}" in old.__all__
    assert issubclass(old.TropicalMaxPlusMatmulBatched, torch.autograd.Function)
    namespace = {}
    exec("from tropical_gemm.pytorch import *", namespace)
    assert set(old.__all__) <= set(namespace)
    assert old.matmul is tg.torch.matmul
    assert old.GPU_AVAILABLE == old._DLPACK_AVAILABLE == old._BATCHED_DLPACK_AVAILABLE == tg.cuda_available()
    with pytest.raises(AttributeError, match="no attribute 'tropical_andor_matmul'"):
        _ = old.tropical_andor_matmul


@pytest.mark.parametrize("prefix", SEMIRINGS)
@pytest.mark.parametrize("form", ["", "_batched", pytest.param("_gpu", marks=needs_gpu)])
def test_products_and_gradients(device, prefix, form):
    if form == "_gpu" and device == "cpu":
        pytest.skip("for tensors on a GPU")
    lead = (3,) if form == "_batched" else ()
    semiring = SEMIRINGS[prefix]
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        a, b = (normal(*lead, *s, device=device, dtype=dtype, grad=True) for s in ((4, 5), (5, 3)))
        expected = formula(semiring)(a, b)
        for product in pair(prefix, form):
            c = product(a, b.mT.contiguous().mT)
            assert (c.dtype, c.device, c.shape) == (dtype, a.device, (*lead, 4, 3))
            same(c, expected)
            same(
                torch.autograd.grad(c.sum(), (a, b)),
                torch.autograd.grad(expected.sum(), (a, b), retain_graph=True),
            )
            assert not product(a.detach(), b.detach()).requires_grad
    integers = a.detach().mul(9).int(), b.detach().mul(9).int()
    for product in pair(prefix, form):
        assert product(*integers).dtype == torch.int32


@pytest.mark.parametrize("prefix", SEMIRINGS)
@pytest.mark.parametrize("form", ["", "_batched"])
def test_second_derivatives(prefix, form):
    lead = (2,) if form == "_batched" else ()
    operands = tuple(normal(*lead, *s, grad=True) for s in ((4, 5), (5, 3)))
    for product in pair(prefix, form):
        assert torch.autograd.gradcheck(product, operands)
        assert torch.autograd.gradgradcheck(product, operands)
        torch._dynamo.reset()
        fast = torch.compile(product, fullgraph=True, backend="aot_eager")
        same(*(torch.autograd.grad(p(*operands).sum(), operands) for p in (fast, product)))


def test_changed_operands_are_noticed():
    for product in pair("maxmul", ""):
        a, b = normal(4, 5, grad=True).clone(), normal(5, 3, grad=True)
        c = product(a, b)
        a.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            c.sum().backward()


def test_refusals():
    a, b = normal(4, 5), normal(5, 3)
    for product in pair("maxplus", ""):
        with pytest.raises(ValueError, match="a has 3 dimensions, expected 2"):
            product(a[None], b)
        with pytest.raises(ValueError, match=r"\(4, 5\)"):
            product(a, a)
        with pytest.raises(TypeError, match="b has dtype float32, expected float64"):
            product(a, b.float())
        with pytest.raises(TypeError, match="b is of type ndarray"):
            product(a, b.numpy())
    for product in pair("maxplus", "_batched"):
        with pytest.raises(ValueError, match="b has 2 dimensions, expected 3"):
            product(a[None], b)
        with pytest.raises(ValueError, match="Batch size mismatch: A has batch 1, B has batch 2"):
            product(a[None], b.expand(2, 5, 3))
        with pytest.raises(
            RuntimeError, match="Tensors must be on the same device: a is on cpu, b is on meta"
        ):
            product(a[None], b[None].to("meta"))
    for product in pair("maxplus", "_gpu"):
        with pytest.raises(RuntimeError, match="a is on cpu, expected a CUDA device"):
            product(a, b)


@needs_gpu
def test_refusals_on_a_gpu():
    a, b = normal(4, 5, device="cuda:0"), normal(5, 3)
    with pytest.raises(ValueError, match="a is on cuda:0 and b is on the CPU"):
        old.tropical_maxplus_matmul_gpu(a, b)
    with pytest.raises(RuntimeError, match="Tensors must be on the same device: a is on cuda:0, b is on cpu"):
        old.tropical_maxplus_matmul_batched(a[None], b[None])


PRETEND = """
import sys, types
torch = types.ModuleType("torch")
torch.__version__ = "2.6.1+cpu"
sys.modules["torch"] = {}
import numpy as np, tropical_gemm as tg
assert tg.matmul(np.eye(2), np.eye(2)).tolist() == [[2, 1], [1, 2]]
try:
    import tropical_gemm.pytorch
except ImportError as error:
    print(error)
"""


def test_without_torch_and_with_an_old_one():
    for module, says in (
        ("None", "pip install torch"),
        ("torch", "torch 2.7 or newer, this is torch 2.6.1+cpu"),
    ):
        got = subprocess.run(
            [sys.executable, "-c", PRETEND.format(module)],
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert says in got.stdout


def test_importing_the_package_imports_no_torch():
    program = "import sys, tropical_gemm; assert 'torch' not in sys.modules; dir(tropical_gemm)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)

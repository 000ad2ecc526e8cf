"""Products computed by another implementation, where its files lie beside the repository."""

import importlib
import json
from pathlib import Path

import numpy as np
import oracle
import pytest
import tropical_gemm as tg

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "fixtures"
ALGEBRAS = {"maxplus": "max_plus", "minplus": "min_plus", "maxmul": "max_mul", "andor": "or_and"}
FILES = sorted(f for f in FOLDER.glob("*/*.json") if f.parent.name.split("_")[0] in ALGEBRAS)

pytestmark = [
    pytest.mark.skipif(not FILES, reason="no fixtures beside the repository"),
    pytest.mark.parametrize("file", FILES, ids=lambda f: f"{f.parent.name}-{f.stem}"),
]


def case(file):
    """``(semiring, a, b, values, argmax)``."""
    data = json.loads(file.read_text())
    dtype = {"f32": np.float32, "f64": np.float64, "bool": bool}[data["scalar"]]
    a, b, c = (np.array(data[name], dtype) for name in ("a", "b", "c_expected"))
    return ALGEBRAS[data["algebra"]], a, b, oracle.canonical(c), np.array(data["argmax_expected"], np.int32)


def test_numpy(isa, file):
    semiring, a, b, values, argmax = case(file)
    got = tg.matmul(a, b, semiring=semiring, return_argmax=True)
    oracle.assert_same(got.values, values)
    oracle.assert_same(got.argmax, argmax, "argmax")
    oracle.assert_same(tg.matmul(a, b, semiring=semiring), values)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_torch(file, device):
    torch = pytest.importorskip("torch")
    tgt = importlib.import_module("tropical_gemm.torch")
    if device == "cuda" and not (tg.cuda_available() and torch.cuda.is_available()):
        pytest.skip("no GPU")
    semiring, a, b, values, argmax = case(file)
    x, y = (torch.from_numpy(v).to(device) for v in (a, b))
    with_gradient = [v.clone().requires_grad_(semiring != "or_and") for v in (x, y)]
    for operands in ((x, y), with_gradient):
        got = tgt.matmul(*operands, semiring=semiring, return_argmax=True)
        oracle.assert_same(got.values.detach().cpu().numpy(), values)
        oracle.assert_same(got.argmax.cpu().numpy(), argmax, "argmax")
        plain = tg.matmul(*operands, semiring=semiring)
        oracle.assert_same(plain.detach().cpu().numpy(), values)
    if semiring != "or_and":
        plain.sum().backward()
        expected = oracle.gradients(semiring, np.ones_like(values), argmax, a, b)
        for operand, gradient in zip(with_gradient, expected, strict=True):
            np.testing.assert_allclose(operand.grad.cpu().numpy(), gradient, rtol=1e-5)

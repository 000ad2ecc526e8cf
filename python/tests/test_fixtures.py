"""Products computed by another implementation, where its files lie beside the repository."""

import json
from pathlib import Path

import numpy as np
import oracle
import pytest
import tropical_gemm as tg

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "fixtures"
ALGEBRAS = {"maxplus": "max_plus", "minplus": "min_plus", "maxmul": "max_mul", "andor": "or_and"}
FILES = sorted(f for f in FOLDER.glob("*/*.json") if f.parent.name.split("_")[0] in ALGEBRAS)


@pytest.mark.skipif(not FILES, reason="no fixtures beside the repository")
@pytest.mark.parametrize("file", FILES, ids=lambda f: f"{f.parent.name}-{f.stem}")
def test_fixture(isa, file):
    data = json.loads(file.read_text())
    dtype = {"f32": np.float32, "f64": np.float64, "bool": bool}[data["scalar"]]
    a, b, c = (np.array(data[name], dtype) for name in ("a", "b", "c_expected"))
    got = tg.matmul(a, b, semiring=ALGEBRAS[data["algebra"]], return_argmax=True)
    oracle.assert_same(got.values, oracle.canonical(c))
    oracle.assert_same(got.argmax, np.array(data["argmax_expected"], np.int32), "argmax")

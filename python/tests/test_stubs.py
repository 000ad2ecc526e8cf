"""The committed stub is what the extension says of itself.

Refresh it with: python -m nanobind.stubgen -m tropical_gemm._core -o python/tropical_gemm/_core.pyi
"""

from pathlib import Path

import pytest
import tropical_gemm._core

stubgen = pytest.importorskip("nanobind.stubgen")


def test_stub_is_current():
    generator = stubgen.StubGen(tropical_gemm._core)
    generator.put(tropical_gemm._core)
    committed = Path(__file__).parent.parent / "tropical_gemm" / "_core.pyi"
    assert generator.get() == committed.read_text()

"""The examples in the docstrings are right."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    ("module", "least"),
    [("", 1), ("._info", 2), ("._ops", 2), (".torch", 2), (".torch._matmul", 4), (".torch._linear", 4)],
)
def test_examples(module, least):
    if "torch" in module:
        pytest.importorskip("torch")
    result = doctest.testmod(importlib.import_module("tropical_gemm" + module))
    assert result.failed == 0
    assert result.attempted >= least

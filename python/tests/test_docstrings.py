"""The examples in the docstrings are right."""

import doctest
import importlib
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "least"),
    [
        ("", 1),
        ("._info", 2),
        ("._ops", 2),
        (".algorithms.align", 2),
        (".algorithms.closure", 3),
        (".algorithms.einsum._contract", 4),
        (".algorithms.paths", 4),
        (".algorithms.shortest_path", 3),
        (".algorithms.viterbi", 4),
        (".torch", 2),
        (".torch._matmul", 4),
        (".torch._linear", 4),
        (".jax", 3),
        (".jax._matmul", 4),
    ],
)
def test_examples(module, least):
    for library in ("torch", "jax"):
        if library in module:
            pytest.importorskip(library)
    name = "tropical_gemm" + module
    importlib.import_module(name)
    result = doctest.testmod(sys.modules[name])  # a function of the same name may stand in its place
    assert result.failed == 0
    assert result.attempted >= least

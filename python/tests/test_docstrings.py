"""The examples in the docstrings are right."""

import doctest
import sys

import pytest
import tropical_gemm._info
import tropical_gemm._ops
import tropical_gemm.algorithms


@pytest.mark.parametrize(
    ("module", "least"),
    [
        (tropical_gemm, 1),
        (tropical_gemm._info, 2),
        (tropical_gemm._ops, 2),
        ("closure", 3),
        ("paths", 4),
        ("shortest_path", 3),
    ],
)
def test_examples(module, least):
    if isinstance(module, str):
        module = sys.modules[f"tropical_gemm.algorithms.{module}"]
    result = doctest.testmod(module)
    assert result.failed == 0
    assert result.attempted >= least

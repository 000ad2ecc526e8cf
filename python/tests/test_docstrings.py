"""The examples in the docstrings are right."""

import doctest

import pytest
import tropical_gemm._info
import tropical_gemm._ops


@pytest.mark.parametrize(
    ("module", "least"), [(tropical_gemm, 1), (tropical_gemm._info, 2), (tropical_gemm._ops, 2)]
)
def test_examples(module, least):
    result = doctest.testmod(module)
    assert result.failed == 0
    assert result.attempted >= least

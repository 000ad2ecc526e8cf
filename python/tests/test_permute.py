"""The private copy in another order of axes equals numpy.transpose, on every kind of array."""

import numpy as np
import oracle
import pytest
from cases import Producer, laid_out
from hypothesis import given
from hypothesis import strategies as st
from tropical_gemm import _core


@st.composite
def arrays(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.lists(st.sampled_from((0, 1, 2, 3, 5, 33)), max_size=5))
    x = rng.integers(0, 2, shape).astype(oracle.DTYPES[draw(st.sampled_from(sorted(oracle.DTYPES)))])
    if len(shape) >= 2:
        x = laid_out(x, draw(st.sampled_from(("C", "F", "step", "reversed", "read_only", "broadcast"))))
    return x, draw(st.permutations(range(len(shape))))


@given(arrays(), st.sampled_from((None, 1, 3)))
def test_meaning(given_, threads):
    x, axes = given_
    got = _core.permute(x, axes, threads, None)
    assert np.asarray(got).dtype == x.dtype
    np.testing.assert_array_equal(got, x.transpose(axes))


@pytest.mark.parametrize("dtype", ["bool", "float16", "int32", "float64"])
def test_many_axes(dtype):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (2,) * 18).astype(dtype)
    for _ in range(5):
        axes = rng.permutation(18).tolist()
        got = _core.permute(x, axes, None, None)
        assert got.flags.c_contiguous
        np.testing.assert_array_equal(got, x.transpose(axes))


def test_other_kinds():
    x = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(_core.permute(Producer(x), [2, 0, 1], None, None), x.transpose(2, 0, 1))
    torch = pytest.importorskip("torch")
    t = torch.from_numpy(x)[:, 1:]
    got = _core.permute(t, [2, 0, 1], None, None)
    assert got.is_contiguous()
    assert torch.equal(got, t.permute(2, 0, 1))


def test_bad_input():
    x = np.zeros((2, 3))
    for axes, text in (
        ([0], "axes has 1 elements, expected 2"),
        ([0, 0], "axes holds 0"),
        ([0, 5], "axes holds 5"),
    ):
        with pytest.raises(ValueError, match=text):
            _core.permute(x, axes, None, None)

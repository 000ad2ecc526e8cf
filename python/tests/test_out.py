"""Writing into the caller's arrays: out, accumulate, argmax_offset."""

import itertools

import cases
import numpy as np
import oracle
import pytest
import tropical_gemm as tg
from hypothesis import given, settings
from hypothesis import strategies as st


@st.composite
def outputs(draw):
    """A product with arrays of its shape: values of the same kind, and indices."""
    semiring, a, b, rng = draw(cases.products())
    shape = np.shape(oracle.product(semiring, a, b)[0])
    fill = draw(st.sampled_from(cases.FILLS))
    c = cases.laid_out(
        cases.values(rng, fill, semiring, a.dtype, shape), draw(st.sampled_from(cases.OUT_LAYOUTS))
    )
    indices = rng.integers(-1, 50, shape).astype(np.int32)
    argmax = cases.laid_out(np.asarray(indices), draw(st.sampled_from(cases.OUT_LAYOUTS)))
    return semiring, a, b, c, argmax


@settings(max_examples=600)
@given(case=outputs(), threads=st.sampled_from((1, 2, 5)), offset=st.sampled_from((0, 0, 1000)))
def test_out(isa, case, threads, offset):
    semiring, a, b, c, argmax = case
    values, indices = oracle.product(semiring, a, b, offset)
    got = tg.matmul(a, b, semiring=semiring, out=(c, argmax), argmax_offset=offset, threads=threads)
    assert got.values is c
    assert got.argmax is argmax
    oracle.assert_same(c, values)
    oracle.assert_same(argmax, indices, "argmax")
    c[...] = 0
    assert tg.matmul(a, b, semiring=semiring, out=c, threads=threads) is c
    oracle.assert_same(c, values)


@settings(max_examples=600)
@given(case=outputs(), threads=st.sampled_from((1, 2, 5)), offset=st.sampled_from((0, 0, 1000)))
def test_accumulate(isa, case, threads, offset):
    semiring, a, b, c, argmax = case
    values, indices = oracle.accumulated(semiring, c, argmax, a, b, offset)
    alone = c.copy()
    tg.matmul(a, b, semiring=semiring, out=alone, accumulate=True, threads=threads)
    oracle.assert_same(alone, values)
    got = tg.matmul(
        a, b, semiring=semiring, out=(c, argmax), accumulate=True, argmax_offset=offset, threads=threads
    )
    assert got.values is c
    oracle.assert_same(c, values)
    oracle.assert_same(argmax, indices, "argmax")


@settings(max_examples=300)
@given(case=cases.products(depths=(2, 7, 33, 65)), data=st.data())
def test_pieces_of_k_equal_the_whole(case, data):
    semiring, a, b, _ = case
    depth = a.shape[-1]
    whole = tg.matmul(a, b, semiring=semiring, return_argmax=True)
    cuts = sorted({0, depth, *data.draw(st.lists(st.integers(0, depth), max_size=3))})
    c, argmax = np.empty_like(whole.values), np.empty_like(whole.argmax)
    if c.ndim == 0:
        c, argmax = np.empty((), c.dtype), np.empty((), np.int32)
    for start, stop in itertools.pairwise(cuts):
        part_b = b[start:stop] if b.ndim == 1 else b[..., start:stop, :]
        tg.matmul(
            a[..., start:stop],
            part_b,
            semiring=semiring,
            out=(c, argmax),
            accumulate=start > 0,
            argmax_offset=start,
        )
    oracle.assert_same(c, whole.values)
    oracle.assert_same(argmax, whole.argmax, "argmax")


def test_memory_between_the_elements_is_left_alone():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(7, 5)), rng.normal(size=(5, 9))
    base = np.full((14, 27), 77.0)
    tg.matmul(a, b, out=base[::2, 1::3])
    oracle.assert_same(base[::2, 1::3], oracle.product("max_plus", a, b)[0])
    base[::2, 1::3] = 77
    assert (base == 77).all()


def test_disjoint_blocks_of_one_array():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(12, 30))
    a, b, c = x[:, :10], x[:10, 10:20], x[:, 20:]
    expected = oracle.product("max_plus", a, b)[0]
    tg.matmul(a, b, out=c)
    oracle.assert_same(c, expected)
    # Interleaved rows and columns share an extent but no element.
    y = rng.normal(size=(20, 20))
    expected = oracle.product("max_plus", y[::2, ::2], y[::2, ::2])[0]
    tg.matmul(y[::2, ::2], y[::2, ::2], out=y[1::2, 1::2])
    oracle.assert_same(y[1::2, 1::2], expected)


def _good():
    return {
        "a": np.ones((3, 4)),
        "b": np.ones((4, 5)),
        "c": np.full((3, 5), 7.0),
        "i": np.full((3, 5), 7, np.int32),
    }


def _read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


BAD_OUT = {
    "shape": (lambda g: np.zeros((5, 3)), ValueError, ["out", "(5, 3)", "(3, 5)"]),
    "rank": (lambda g: np.zeros((1, 3, 5)), ValueError, ["out", "(1, 3, 5)", "(3, 5)"]),
    "dtype": (lambda g: np.zeros((3, 5), np.float32), TypeError, ["out", "float32", "float64"]),
    "read-only": (lambda g: _read_only(g["c"]), ValueError, ["out", "read-only"]),
    "stride 0": (
        lambda g: np.lib.stride_tricks.as_strided(g["c"], (3, 5), (0, 8)),
        ValueError,
        ["out", "stride 0"],
    ),
    "overlaps itself": (
        lambda g: np.lib.stride_tricks.as_strided(g["c"], (3, 5), (8, 8)),
        ValueError,
        ["out", "overlaps itself"],
    ),
    "list": (lambda g: g["c"].tolist(), TypeError, ["out", "list", "numpy.asarray"]),
    "three arrays": (lambda g: (g["c"], g["i"], g["c"]), ValueError, ["out", "3"]),
    "argmax shape": (
        lambda g: (g["c"], np.zeros((3, 4), np.int32)),
        ValueError,
        ["argmax", "(3, 4)", "(3, 5)"],
    ),
    "argmax dtype": (lambda g: (g["c"], np.zeros((3, 5), np.int64)), TypeError, ["argmax", "int64", "int32"]),
    "argmax read-only": (lambda g: (g["c"], _read_only(g["i"])), ValueError, ["argmax", "read-only"]),
    "argmax stride 0": (
        lambda g: (g["c"], np.lib.stride_tricks.as_strided(g["i"], (3, 5), (20, 0))),
        ValueError,
        ["argmax", "stride 0"],
    ),
    "argmax in out": (
        lambda g: (g["c"], g["c"].reshape(-1).view(np.int32)[:15].reshape(3, 5)),
        ValueError,
        ["argmax", "out", "overlap"],
    ),
}


@pytest.mark.parametrize("name", BAD_OUT)
def test_bad_out(name):
    make, error, says = BAD_OUT[name]
    good = _good()
    out = make(good)
    before = [np.array(x) for x in (out if isinstance(out, tuple) else (out,))]
    with pytest.raises(error) as caught:
        tg.matmul(good["a"], good["b"], out=out)
    for part in says:
        assert part in str(caught.value)
    for x, y in zip(out if isinstance(out, tuple) else (out,), before, strict=True):
        np.testing.assert_array_equal(np.array(x), y)


def test_out_over_an_input():
    x = np.arange(16.0).reshape(4, 4)
    before = x.copy()
    for a, b, who in [(x, np.ones((4, 4)), "a"), (np.ones((4, 4)), x, "b"), (x.T, np.ones((4, 4)), "a")]:
        with pytest.raises(ValueError, match=f"out overlaps {who}"):
            tg.matmul(a, b, out=x)
    y = np.arange(40.0)
    with pytest.raises(ValueError, match="out overlaps b"):
        tg.matmul(np.ones((4, 4)), y[:16].reshape(4, 4), out=y[15:31].reshape(4, 4))
    indices = np.zeros((4, 4), np.int32)
    i = np.zeros((4, 4), np.int32)
    with pytest.raises(ValueError, match="argmax overlaps a"):
        tg.matmul(i, np.ones((4, 4), np.int32), out=(indices, i))
    oracle.assert_same(x, before)


def test_options_that_do_not_fit():
    good = _good()
    a, b, c, i = good.values()
    with pytest.raises(ValueError, match="accumulate needs out"):
        tg.matmul(a, b, accumulate=True)
    with pytest.raises(ValueError, match=r"accumulate.*out"):
        tg.matmul(a, b, accumulate=True, return_argmax=True)
    with pytest.raises(ValueError, match="argmax_offset is -1"):
        tg.matmul(a, b, out=(c, i), argmax_offset=-1)
    with pytest.raises(ValueError, match="argmax_offset"):
        tg.matmul(a, b, out=(c, i), argmax_offset=2**31 - 4)
    with pytest.raises(ValueError, match="argmax_offset"):
        tg.matmul(a, b, out=(c, i), argmax_offset=2**70)
    with pytest.raises(ValueError, match="argmax_offset is 5"):
        tg.matmul(a, b, argmax_offset=5)
    assert (c == 7).all()
    assert (i == 7).all()
    tg.matmul(a, b, out=(c, i), argmax_offset=2**31 - 5)
    assert (i == 2**31 - 5).all()

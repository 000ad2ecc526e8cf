"""Certified filtering from Python: the oracle's values and indices, whichever path computed them."""

import os
import subprocess
import sys

import numpy as np
import oracle
import pytest
import tropical_gemm as tg
from tropical_gemm import _core, debug

M, K, N = 30, 100, 70


@pytest.fixture(params=("always", "auto", "never"))
def mode(request):
    _core.set_filter(request.param)
    yield request.param
    _core.set_filter("")


def sparse(rng, values, special, share):
    return np.where(rng.random(values.shape) < share, rng.choice(special, values.shape), values)


def two_hops(rng, shape):
    """Distances to points on one line: the best midpoints nearly tie."""
    x, y = np.sort(rng.random(shape[0])), np.sort(rng.random(shape[1]))
    return -np.hypot(x[:, None] - y, 1e-6 * rng.random(shape))


KINDS = {
    "uniform": lambda rng, s: rng.random(s),
    "normal": lambda rng, s: rng.standard_normal(s),
    "all negative": lambda rng, s: -1 - rng.random(s),
    "log probabilities": lambda rng, s: np.log(rng.random(s)),
    "integers": lambda rng, s: rng.integers(0, 1000, s),
    "noise below the resolution": lambda rng, s: (
        rng.integers(0, 100, s) / 64 + rng.integers(0, 3, s) * 2.0**-30
    ),
    "cents": lambda rng, s: rng.integers(0, 1000, s) / 100,
    "1e12 + u": lambda rng, s: 1e12 + rng.random(s),
    "pseudo-infinities": lambda rng, s: sparse(rng, rng.random(s), [-1e30, 1e30], 0.5),
    "denormal": lambda rng, s: 1e-310 * rng.random(s),
    "huge": lambda rng, s: 1.7e308 * rng.uniform(-1, 1, s),
    "sparse NaN": lambda rng, s: sparse(rng, rng.random(s), [np.nan], 0.003),
    "sparse infinities": lambda rng, s: sparse(rng, rng.random(s), [np.inf, -np.inf], 0.01),
    "70 % -inf": lambda rng, s: sparse(rng, rng.random(s), [-np.inf], 0.7),
    "70 % +inf": lambda rng, s: sparse(rng, rng.random(s), [np.inf], 0.7),
    "99 % -inf": lambda rng, s: sparse(rng, rng.random(s), [-np.inf], 0.99),
    "constant": lambda rng, s: np.full(s, 3.25),
    "signed zeros": lambda rng, s: rng.choice([0.0, -0.0], s),
    "near-ties along lines": two_hops,
    "wide scales": lambda rng, s: np.exp(10 * rng.standard_normal(s)),
    "scales of rows": lambda rng, s: rng.standard_normal(s) * 10.0 ** (np.arange(s[0])[:, None] % 40),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("semiring", ["max_plus", "min_plus"])
def test_is_the_oracle(mode, semiring, dtype, kind):
    rng = np.random.default_rng(1)
    with np.errstate(over="ignore"):
        a, b = (KINDS[kind](rng, s).astype(dtype) for s in ((M, K), (K, N)))
    values, argmax = oracle.product(semiring, a, b)
    np.testing.assert_array_equal(oracle.bits(tg.matmul(a, b, semiring=semiring)), oracle.bits(values))
    c = tg.matmul(a, b, semiring=semiring, return_argmax=True)
    np.testing.assert_array_equal(oracle.bits(c.values), oracle.bits(values))
    np.testing.assert_array_equal(c.argmax, argmax)


def test_equal_sums_take_the_first_k():
    """Different k that round to one sum: no bound tells them apart."""
    _core.set_filter("always")
    a, b = np.full((3, 200), 1e16), np.zeros((200, 5))
    b[7:] = np.linspace(0, 0.9, 193)[:, None]  # half a unit of 1e16 is 1
    try:
        c = tg.matmul(a, b, return_argmax=True)
    finally:
        _core.set_filter("")
    np.testing.assert_array_equal(c.values, 1e16)
    np.testing.assert_array_equal(c.argmax, 0)


def test_says_which_path_it_took(mode, isa):
    rng = np.random.default_rng(2)
    a, b = rng.random((700, 400)), rng.random((400, 300))
    tg.matmul(a, b)
    filters = mode != "never" and "float64" in tg.info()["filter"]["dtypes"]
    assert debug.last_path().path == ("filtered" if filters else "plain")
    assert debug.last_path().unproven < 0.1
    tg.matmul(a[:2, :2], b[:2, :2])
    assert debug.last_path().path == ("filtered" if filters and mode == "always" else "plain")


def test_a_watched_product_reports_too(mode):
    a = np.random.default_rng(3).random((1100, 1100))
    tg.matmul(a, a)
    assert (debug.last_path().path == "plain") == (mode == "never" or not tg.info()["filter"]["dtypes"])


def test_data_that_cannot_be_filtered_is_given_up():
    _core.set_filter("auto")
    a = np.full((500, 500), 3.25)
    np.testing.assert_array_equal(tg.matmul(a, a), 6.5)
    assert debug.last_path().path != "filtered"
    _core.set_filter("")


def test_the_environment_chooses():
    def run(value):
        program = "import tropical_gemm as tg; print(tg.info()['filter']['mode'])"
        return subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "TROPICAL_GEMM_FILTER": value},
            capture_output=True,
            text=True,
        )

    assert run("always").stdout.split() == ["always"]
    assert run("").stdout.split() == ["auto"]
    assert "sometimes" in run("sometimes").stderr


def test_unknown_mode():
    with pytest.raises(ValueError, match="sometimes"):
        _core.set_filter("sometimes")

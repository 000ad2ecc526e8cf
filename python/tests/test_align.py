import itertools

import numpy as np
import oracle
import pytest
import trellis
import tropical_gemm as tg
from cases import laid_out
from hypothesis import given
from hypothesis import strategies as st


@given(st.data())
def test_meaning(data):
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = oracle.DTYPES[draw(st.sampled_from(("float32", "float64", "float16", "bfloat16")))]
    steps, classes, most = draw(st.integers(0, 12)), draw(st.integers(2, 5)), draw(st.integers(0, 6))
    batch, blank = draw(st.integers(0, 3)), draw(st.integers(0, 1))
    x = rng.normal(size=(batch, steps, classes))
    if draw(st.booleans()):
        x = rng.integers(-2, 1, x.shape).astype(float)
    if draw(st.booleans()):
        x[rng.random(x.shape) < 0.2] = -np.inf
    if draw(st.booleans()):
        x[rng.random(x.shape) < 0.1] = rng.choice([np.nan, np.inf])
    x = laid_out(x.astype(dtype), draw(st.sampled_from(("C", "F", "step", "reversed"))))
    targets = rng.choice([c for c in range(classes) if c != blank], (batch, most))
    inputs, lengths = rng.integers(0, steps + 1, batch), rng.integers(0, most + 1, batch)
    got = tg.forced_align(x, targets, inputs, lengths, blank)
    assert got.labels.dtype == targets.dtype
    assert got.scores.dtype == dtype
    for b in range(batch):
        labels, scores = trellis.alignment(x[b, : inputs[b]], targets[b, : lengths[b]], blank)
        impossible = -1 in labels or (inputs[b] == 0 and lengths[b] > 0)
        np.testing.assert_array_equal(got.labels[b, : inputs[b]], labels)
        oracle.assert_same(got.scores[b, : inputs[b]], oracle.canonical(scores), "scores")
        assert (got.labels[b, inputs[b] :] == -1).all()
        assert (got.scores[b, inputs[b] :] == (-np.inf if impossible else 0)).all()
        if not impossible:
            assert (
                trellis.collapsed(got.labels[b, : inputs[b]].tolist(), blank)
                == targets[b, : lengths[b]].tolist()
            )


@pytest.mark.parametrize("seed", range(8))
def test_best_of_all(seed):
    # Every alignment there is, scores that tie.
    rng = np.random.default_rng(seed)
    x = rng.integers(-2, 1, (6, 3)).astype(np.float64)
    for targets in ([], [1], [1, 1], [1, 2], [2, 1, 2], [1, 1, 2]):
        every = [s for s in itertools.product(range(3), repeat=6) if trellis.collapsed(s) == targets]
        best = max(sum(x[t, c] for t, c in enumerate(s)) for s in every)
        got = tg.forced_align(x, np.array(targets, np.int64))
        assert got.scores.sum() == best
        assert tuple(got.labels) in every


def test_ties_stay_optimal():
    # From the last blank the second target and the blank before it are equally good, and both better than
    # staying: a rule that stays unless one of them alone is the best ends with -7 instead of -2.
    x = np.full((4, 3), -9.0)
    x[0, 1] = x[1, 0] = x[1, 2] = 0
    x[2, 2] = x[2, 0] = x[3, 0] = -1
    x[3, 2] = -6
    got = tg.forced_align(x, np.array([1, 2]))
    every = [s for s in itertools.product(range(3), repeat=4) if trellis.collapsed(s) == [1, 2]]
    assert got.scores.sum() == max(sum(x[t, c] for t, c in enumerate(s)) for s in every) == -2


@pytest.mark.parametrize("strange", [np.nan, np.inf])
def test_strange_scores_do_not_open_ways(strange):
    for steps in (1, 2, 3, 200):
        got = tg.forced_align(np.full((steps, 3), strange), np.ones(max(steps - 1, 0), np.int64))
        fits = 2 * (steps - 1) - 1 <= steps  # equal targets are a blank apart
        assert (got.labels[0] >= 0) == fits
    rows = np.array([[strange, 0.0], [0.0, strange]])
    assert tg.forced_align(rows, np.array([1, 1])).labels.tolist() == [-1, -1]


def test_too_many_targets():
    x = np.zeros((3, 4, 3), np.float32)
    targets = np.array([[1, 2, 1, 2, 1], [1, 1, 1, 0, 0], [1, 2, 1, 2, 0]], np.int32)
    got = tg.forced_align(x, targets, None, np.array([5, 3, 4]))
    assert (got.labels[:2] == -1).all()
    assert (got.scores[:2] == -np.inf).all()
    assert got.labels[2].tolist() == [1, 2, 1, 2]
    assert (got.scores[2] == 0).all()


def test_kinds():
    torch = pytest.importorskip("torch")
    x = torch.randn(2, 5, 3).log_softmax(-1)
    got = tg.forced_align(x, torch.tensor([[1, 2], [2, 2]], dtype=torch.int32))
    assert got.labels.dtype == torch.int32
    assert got.scores.shape == (2, 5)
    assert tg.forced_align(x[0], torch.tensor([1, 2])).labels.shape == (5,)


X, Y = np.zeros((4, 3)), np.array([1, 2])


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((X[0], Y), ValueError, r"log_probs has shape \(3,\), expected \(..., steps, classes\)"),
        ((X, np.array(1)), ValueError, r"targets has shape \(\)"),
        (
            (X, np.array([1, 0])),
            ValueError,
            r"targets holds 0, expected classes in \[0, 3\) other than blank=0",
        ),
        ((X, np.array([3])), ValueError, "targets holds 3"),
        ((X, np.array([1.0])), TypeError, "targets has dtype float64, expected int32 or int64"),
        ((X, [1]), TypeError, "targets is of type list"),
        ((X.astype(int), Y), TypeError, "log_probs has dtype int64, expected one of float32"),
        ((X, Y, 5), ValueError, r"input_lengths holds 5, expected values in \[0, 4\]"),
        ((X, Y, None, 3), ValueError, r"target_lengths holds 3, expected values in \[0, 2\]"),
        ((X, Y, None, None, 3), ValueError, r"blank is 3, expected a class in \[0, 3\)"),
        ((X, Y, None, None, "x"), TypeError, "blank is of type str, expected an int"),
        ((X[None].repeat(2, 0), np.ones((3, 1), int)), ValueError, "leading axes do not broadcast"),
    ],
)
def test_bad_input(arguments, error, text):
    with pytest.raises(error, match=text):
        tg.forced_align(*arguments)

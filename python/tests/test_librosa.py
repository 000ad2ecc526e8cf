"""The functions of librosa.sequence: its documented examples, and the formula of its documentation."""

import numpy as np
import pytest
import trellis
from tropical_gemm.compat import librosa

# https://en.wikipedia.org/wiki/Viterbi_algorithm, which its documentation uses.
INITIAL = np.array([0.6, 0.4])
SEEN = np.array([[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]])
TRANSITION = np.array([[0.7, 0.3], [0.4, 0.6]])


def test_documented_example():
    states, logp = librosa.viterbi(SEEN, TRANSITION, p_init=INITIAL, return_logp=True)
    assert states.tolist() == [0, 0, 1]
    assert states.dtype == np.uint16
    assert logp.shape == (1,)  # as in librosa 0.11, where that of the discriminative one is a number
    assert logp[0] == pytest.approx(-4.19173690823075, rel=1e-14)
    assert librosa.viterbi(SEEN, TRANSITION, p_init=INITIAL).tolist() == [0, 0, 1]


def test_documented_frames():
    # Few frames of one of two states, with a transition that holds on: as in the example of voiced frames.
    voiced = np.array([0.1, 0.2, 0.9, 0.8, 0.4, 0.9, 0.9, 0.1, 0.1])
    full = np.stack([1 - voiced, voiced])
    holds = np.array([[0.9, 0.1], [0.1, 0.9]])
    states, logp = librosa.viterbi_discriminative(full, holds, return_logp=True)
    assert states.tolist() == [0, 0, 1, 1, 1, 1, 1, 0, 0]
    assert np.ndim(logp) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_formula(dtype):
    rng = np.random.default_rng(1)
    tiny = np.finfo(dtype).tiny
    prob = rng.random((2, 3, 7, 20)).astype(dtype)
    prob[rng.random(prob.shape) < 0.3] = 0
    transition = rng.random((7, 7)) * (rng.random((7, 7)) < 0.6) + np.eye(7)
    transition /= transition.sum(1, keepdims=True)
    start, overall = rng.dirichlet(np.ones(7)), rng.dirichlet(np.ones(7))
    states, logp = librosa.viterbi(prob, transition, p_init=start, return_logp=True)
    double = lambda *arrays: (x.astype(np.float64) for x in arrays)  # noqa: E731
    expected = trellis.batched(
        *double(np.log(prob + tiny).swapaxes(-1, -2), np.log(transition + tiny), np.log(start + tiny))
    )
    np.testing.assert_array_equal(states, expected[0])
    np.testing.assert_array_equal(logp, expected[1])
    prob += tiny
    prob /= prob.sum(-2, keepdims=True)
    states = librosa.viterbi_discriminative(prob, transition, p_state=overall)
    likelihood = np.log(prob + tiny) - np.log(overall + tiny)[:, None]
    uniform = np.full(7, np.log(1 / 7 + tiny))
    expected = trellis.batched(*double(likelihood.swapaxes(-1, -2), np.log(transition + tiny), uniform))
    np.testing.assert_array_equal(states, expected[0])


def test_least_transition():
    # Staying is the only transition left.
    p = np.array([[0.9, 0.2, 0.2], [0.1, 0.8, 0.8]])
    rare = np.array([[0.99, 0.01], [0.01, 0.99]])
    assert librosa.viterbi(p, np.full((2, 2), 0.5)).tolist() == [0, 1, 1]
    assert librosa.viterbi(p, rare, transition_min_prob=0.1).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match=r"transition_min_prob is 2, which leaves no path"):
        librosa.viterbi(p, rare, transition_min_prob=2)


@pytest.mark.parametrize(
    ("prob", "transition", "options", "text"),
    [
        (SEEN[0], TRANSITION, {}, r"prob has shape \(3,\), expected \(..., n_states, n_steps\)"),
        (-SEEN, TRANSITION, {}, "prob holds -0.5, expected values of at least 0"),
        (SEEN, TRANSITION[:1], {}, r"transition has shape \(1, 2\), expected \(2, 2\)"),
        (SEEN, 2 * TRANSITION, {}, "transition has a row that is no distribution"),
        (SEEN, TRANSITION, {"p_init": np.ones(3)}, r"p_init has shape \(3,\), expected \(2,\)"),
        (SEEN, TRANSITION, {"p_init": np.ones(2)}, "p_init is no distribution"),
    ],
)
def test_bad_input(prob, transition, options, text):
    with pytest.raises(ValueError, match=text):
        librosa.viterbi(prob, transition, **options)


def test_columns_sum_to_one():
    with pytest.raises(ValueError, match="prob has columns that do not sum to 1"):
        librosa.viterbi_discriminative(SEEN, TRANSITION)

"""Functions with the arguments, shapes and results of ``librosa.sequence``, on NumPy arrays."""

from typing import Any

import numpy as np

from ..algorithms.viterbi import viterbi as _viterbi

__all__ = ["viterbi", "viterbi_discriminative"]


def viterbi(
    prob: Any,
    transition: Any,
    *,
    p_init: Any = None,
    return_logp: bool = False,
    transition_min_prob: float | None = None,
) -> Any:
    """The most likely sequence of states, as ``librosa.sequence.viterbi`` returns it.

    Parameters
    ----------
    prob
        ``(..., n_states, n_steps)``: the likelihood of what was seen at a step, given the state. At least 0.
    transition
        ``(n_states, n_states)``: the probability of going from the state of the row to that of the column;
        rows sum to 1.
    p_init
        ``(n_states,)``: the probability of starting in a state; None for a uniform one.
    return_logp
        Return ``(states, logp)``.
    transition_min_prob
        Transitions that are less probable than this are not taken; None to take them all. librosa 0.11 has
        no such argument.

    Returns
    -------
    ndarray or tuple
        ``states``, ``(..., n_steps)``, uint16 (int32 for more than 65,536 states): the lowest state on ties.
        ``logp``, ``(...)``: the logarithm of the probability of the path; ``(1,)`` without leading axes.

    Notes
    -----
    As there, the smallest normal number of the dtype is added to every probability before its logarithm is
    taken, so that no sequence is impossible, and the logarithms are added in float64.

    Raises
    ------
    ValueError
        For shapes that do not fit, negative probabilities, and rows that do not sum to 1.
    """
    prob, tiny = _probabilities(prob)
    states, logp = _decode(np.log(prob + tiny), transition, p_init, transition_min_prob, tiny)
    return (states, np.atleast_1d(logp)) if return_logp else states


def viterbi_discriminative(
    prob: Any,
    transition: Any,
    *,
    p_state: Any = None,
    p_init: Any = None,
    return_logp: bool = False,
    transition_min_prob: float | None = None,
) -> Any:
    """The most likely sequence of states from their probabilities given what was seen.

    As ``librosa.sequence.viterbi_discriminative``: ``prob / p_state`` takes the place of the likelihoods.

    Parameters
    ----------
    prob
        ``(..., n_states, n_steps)``: the probability of a state given what was seen at a step; columns sum to
        1.
    p_state
        ``(n_states,)``: the probability of each state overall; None for a uniform one.
    transition, p_init, return_logp, transition_min_prob
        As for :func:`viterbi`.

    Returns
    -------
    ndarray or tuple
        As :func:`viterbi` does; ``logp`` is not normalised, and a number without leading axes.

    Raises
    ------
    ValueError
        As :func:`viterbi` does, and for columns that do not sum to 1.
    """
    prob, tiny = _probabilities(prob)
    if not np.allclose(prob.sum(axis=-2), 1):
        raise ValueError(
            "prob has columns that do not sum to 1, expected the probabilities of the states at each step"
        )
    marginal = _distribution(p_state, "p_state", prob.shape[-2])
    log_likelihood = np.log(prob + tiny) - np.log(marginal + tiny)[:, None]
    states, logp = _decode(log_likelihood, transition, p_init, transition_min_prob, tiny)
    return (states, logp) if return_logp else states


def _probabilities(prob: Any) -> tuple[Any, Any]:
    prob = np.asarray(prob)
    if prob.dtype not in (np.float32, np.float64):
        prob = prob.astype(np.float64)
    if prob.ndim < 2 or prob.shape[-2] == 0:
        raise ValueError(
            f"prob has shape {prob.shape}, expected (..., n_states, n_steps) with at least one state"
        )
    if (prob < 0).any():
        raise ValueError(f"prob holds {prob[prob < 0][0]}, expected values of at least 0")
    return prob, np.finfo(prob.dtype).tiny


def _distribution(p: Any, name: str, states: int) -> Any:
    if p is None:
        return np.full(states, 1 / states)
    p = np.asarray(p)
    if p.shape != (states,):
        raise ValueError(f"{name} has shape {p.shape}, expected ({states},)")
    if (p < 0).any() or not np.allclose(p.sum(), 1):
        raise ValueError(f"{name} is no distribution: its values must be at least 0 and sum to 1")
    return p


def _decode(log_likelihood: Any, transition: Any, p_init: Any, least: Any, tiny: Any) -> tuple[Any, Any]:
    states = log_likelihood.shape[-2]
    transition = np.asarray(transition)
    if transition.shape != (states, states):
        raise ValueError(f"transition has shape {transition.shape}, expected ({states}, {states}) like prob")
    if (transition < 0).any() or not np.allclose(transition.sum(axis=1), 1):
        raise ValueError(
            "transition has a row that is no distribution: values must be at least 0 and sum to 1"
        )
    log_transition = np.log(transition + tiny)
    if least is not None:
        log_transition = np.where(transition < least, -np.inf, log_transition)
    log_initial = np.log(_distribution(p_init, "p_init", states) + tiny)
    emission, between, start = (
        x.astype(np.float64) for x in (np.swapaxes(log_likelihood, -1, -2), log_transition, log_initial)
    )
    paths, scores = _viterbi(emission, between, start)
    if (np.asarray(scores) == -np.inf).any():
        raise ValueError(f"transition_min_prob is {least!r}, which leaves no path through prob")
    paths = paths.astype(np.uint16 if states <= 1 << 16 else np.int32)
    return paths, scores

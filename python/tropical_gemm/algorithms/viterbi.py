"""The best path through a trellis of states."""

import warnings
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._arrays import Kind, common_kind, placed, torch_kind
from ._batches import common_batch, flat, lengths_of
from .checks import shape_of


class ViterbiResult(NamedTuple):
    """What :func:`viterbi` returns."""

    paths: Any
    scores: Any


_METHODS = ("sequential", "scan")
_PROBABLE = 1e-3  # how far from 1 a row of probabilities may sum


def viterbi(
    log_emission: Any,
    log_transition: Any,
    log_initial: Any = None,
    log_final: Any = None,
    *,
    lengths: Any = None,
    method: str = "sequential",
    stream: Any = None,
    threads: int | None = None,
) -> ViterbiResult:
    """The path of states with the largest sum of scores, and that sum, for each sequence of a batch.

    The recurrence, in this order of additions, is ``v[0, j] = log_initial[j] + log_emission[0, j]`` and
    ``v[t, j] = max_i(v[t-1, i] + log_transition[i, j]) + log_emission[t, j]``; the score is ``max_j(v[T-1, j]
    + log_final[j])``. The lowest state is taken on ties, the first NaN where there is one.

    Parameters
    ----------
    log_emission
        ``(..., T, S)``: the score of each of S states at each of T steps, float32, float64, float16 or
        bfloat16. Leading axes are a batch and broadcast with those of the other arrays.
    log_transition
        ``(S, S)``, from the state of the row to that of the column, or ``(..., T - 1, S, S)``, where ``[t, i,
        j]`` leads from step t to step t + 1 (size 1 in that axis serves all steps).
    log_initial, log_final
        ``(..., S)``, or None for zeros: what a path's first and last state add.
    lengths
        Integers ``(...)``, or None: how many steps of each sequence count. What comes after is not looked at.
        Integers in host memory must lie in ``[0, T]``; on a CUDA device they are not inspected and count as
        clamped.
    method
        ``"sequential"``: step by step. ``"scan"``: by products of matrices in log2(T) rounds, for long
        sequences of few states; it does S times the work, takes memory of ``2 * T * S * S`` a sequence, and
        adds in another order, so that the scores of floats may differ by rounding.
    stream, threads
        As for :func:`tropical_gemm.matmul`.

    Returns
    -------
    ViterbiResult
        ``paths``, ``(..., T)``: the states, int64 for torch and int32 otherwise; -1 from a sequence's length
        on, and everywhere in a sequence that is impossible, which is one whose score is -inf. ``scores``,
        ``(...)``: float64 for float64, otherwise float32, in which half types are computed; 0 for length 0.
        A NaN score keeps the path through the first NaN.

    Notes
    -----
    No backpointers are stored: the values ``v`` are (of the size of ``log_emission``), and each path is
    traced back by the same sums. On a CUDA device the host does not wait.

    Source: A. Viterbi, IEEE Trans. Inf. Theory 13 (1967) 260; L. Rabiner, Proc. IEEE 77 (1989) 257, III.B;
    the scan: G. Blelloch, Prefix sums and their applications (1990).

    Raises
    ------
    TypeError, ValueError, RuntimeError
        As :func:`tropical_gemm.matmul` does; ValueError for lengths outside ``[0, T]`` too.

    Warns
    -----
    UserWarning
        Where ``log_transition`` lies in host memory and looks like probabilities: all in [0, 1], rows that
        sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> import tropical_gemm as tg
    >>> stay = np.log([[0.8, 0.2], [0.2, 0.8]])
    >>> seen = np.log([[0.9, 0.1], [0.4, 0.6], [0.1, 0.9]])
    >>> paths, scores = tg.viterbi(seen, stay)
    >>> paths
    array([0, 1, 1], dtype=int32)
    """
    if method not in _METHODS:
        raise ValueError(f"method is {method!r}, expected one of {', '.join(map(repr, _METHODS))}")
    arrays = {"log_emission": log_emission, "log_transition": log_transition}
    arrays |= {
        name: x for name, x in (("log_initial", log_initial), ("log_final", log_final)) if x is not None
    }
    kind = common_kind(**arrays)
    arrays = {name: kind.operand(x, name) for name, x in arrays.items()}
    emission, transition = arrays["log_emission"], arrays["log_transition"]
    _check_shapes(arrays)
    if kind is torch_kind:
        from ..torch._viterbi import viterbi as on_tensors

        return on_tensors(arrays, lengths, method == "scan", stream, threads)
    warn_of_probabilities(kind, transition, 3)
    ends = None if lengths is None else checked_lengths(kind, lengths, emission)
    return decode(kind, arrays, ends, method == "scan", stream, threads)


def decode(
    kind: Kind, arrays: dict[str, Any], ends: Any, scan: bool, stream: Any, threads: int | None
) -> ViterbiResult:
    """The recurrence on arrays that fit together; ``ends`` are the lengths, or None."""
    emission, transition = arrays["log_emission"], arrays["log_transition"]
    leads = {name: lead_of(name, x) for name, x in arrays.items()}
    if ends is not None:
        leads["lengths"] = tuple(ends.shape)
    batch = common_batch(leads)

    def shared(name: str) -> Any:
        if name not in arrays:
            return None
        return flat(kind, arrays[name], leads[name], batch, one_serves_all=True)

    e = flat(kind, emission, leads["log_emission"], batch)
    a = transition if transition.ndim == 2 else shared("log_transition")
    until = None if ends is None else flat(kind, ends, leads["lengths"], batch)
    with placed(kind, emission, stream) as queue:
        made = _core.viterbi(
            *(e, a, shared("log_initial"), shared("log_final"), until),
            kind is torch_kind, scan, threads, queue,
        )  # fmt: skip
    paths, scores = (kind.result(x) for x in made)
    paths, scores = paths.reshape((*batch, emission.shape[-2])), scores.reshape(batch)
    return ViterbiResult(paths, scores[()] if isinstance(scores, np.ndarray) else scores)


def checked_lengths(kind: Kind, lengths: Any, emission: Any) -> Any:
    return lengths_of(kind, lengths, "lengths", "log_emission", emission, emission.shape[-2])


def warn_of_probabilities(kind: Kind, transition: Any, stacklevel: int) -> None:
    if kind.device(transition) is None and _looks_probable(transition):
        warnings.warn(
            "log_transition looks like probabilities (all in [0, 1], rows sum to 1); pass their logarithms",
            stacklevel=stacklevel,
        )


def lead_of(name: str, x: Any) -> tuple[int, ...]:
    """The batch axes of an array."""
    own = {"log_emission": 2, "log_transition": 3}.get(name, 1)
    return tuple(x.shape[: max(x.ndim - own, 0)])


def _check_shapes(arrays: dict[str, Any]) -> None:
    for name, x in arrays.items():
        shape_of(x, name)
    emission, transition = arrays["log_emission"], arrays["log_transition"]
    if emission.ndim < 2 or emission.shape[-1] == 0:
        raise ValueError(
            f"log_emission has shape {tuple(emission.shape)}, expected (..., steps, states), not empty"
        )
    steps, states = emission.shape[-2:]
    between = max(steps - 1, 0)
    shape = tuple(transition.shape)
    square = shape[-2:] == (states, states)
    if not square or (len(shape) > 2 and shape[-3] not in (1, between)):
        raise ValueError(
            f"log_transition has shape {shape}, expected ({states}, {states}) or "
            f"(..., {between}, {states}, {states}) for log_emission of shape {tuple(emission.shape)}"
        )
    for name in ("log_initial", "log_final"):
        x = arrays.get(name)
        if x is not None and tuple(x.shape[-1:]) != (states,):
            raise ValueError(f"{name} has shape {tuple(x.shape)}, expected (..., {states})")


def _looks_probable(transition: Any) -> bool:
    if transition.ndim > 2:
        if 0 in transition.shape:
            return False
        transition = transition[(0,) * (transition.ndim - 2)]
    with np.errstate(invalid="ignore"):  # NaN
        if not (float(transition.min()) >= 0 and float(transition.max()) <= 1):
            return False
        return bool(abs(transition.sum(-1) - 1).max() < _PROBABLE)

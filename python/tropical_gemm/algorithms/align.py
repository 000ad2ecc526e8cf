"""Forced alignment of labels to steps."""

import operator
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._arrays import Kind, common_kind, placed, torch_kind
from ._batches import common_batch, flat, lengths_of
from .checks import shape_of


class AlignResult(NamedTuple):
    """What :func:`forced_align` returns."""

    labels: Any
    scores: Any


LENGTHS = ("input_lengths", "target_lengths")


def forced_align(
    log_probs: Any,
    targets: Any,
    input_lengths: Any = None,
    target_lengths: Any = None,
    blank: int = 0,
    *,
    stream: Any = None,
    threads: int | None = None,
) -> AlignResult:
    """The best alignment of given labels to the steps of a sequence (CTC), for each sequence of a batch.

    Every step gets one label, ``blank`` or a target. The targets come in order; each lasts for one step or
    more, blanks may lie between them, and two equal targets in a row are a blank apart. Of all such
    alignments the one with the largest sum of ``log_probs`` is taken, added from the first step to the
    last; on ties, at every step the one that is behind.

    Parameters
    ----------
    log_probs
        ``(..., T, C)``: the score of each of C classes at each of T steps, float32, float64, float16 or
        bfloat16. Half types are added in float32. Leading axes are a batch and broadcast with those of the
        other arrays.
    targets
        ``(..., L)``, int32 or int64: the labels to align, classes other than ``blank``.
    input_lengths, target_lengths
        Integers ``(...)``, or None: how many steps, and how many targets, of each sequence count. What comes
        after is not looked at.
    blank
        The class that stands for no label.
    stream, threads
        As for :func:`tropical_gemm.matmul`.

    Returns
    -------
    AlignResult
        ``labels``, ``(..., T)`` in the dtype of ``targets``: the label of each step, -1 from the input's
        length on. ``scores``, ``(..., T)`` in the dtype of ``log_probs``: its element at that label, 0 from
        the input's length on. A sequence whose targets do not fit (or fit with a sum of -inf only) has labels
        -1 and scores -inf throughout. A NaN sum keeps the alignment through the first NaN; a
        sum that has come to -inf stays there, whatever follows.

    Notes
    -----
    On torch tensors the scores are differentiable: each is an element of ``log_probs``.

    On a CUDA device the host does not wait: lengths there are not inspected and count as clamped, and a
    target that is ``blank`` or no class makes its sequence one that does not fit.

    Source: the trellis of A. Graves et al., ICML 2006, 369, section 4.1, with max in the place of the sum.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        As :func:`tropical_gemm.matmul` does; ValueError for lengths outside ``[0, T]`` and ``[0, L]`` and for
        targets that are ``blank`` or no class, where they lie in host memory.

    Examples
    --------
    >>> import numpy as np
    >>> import tropical_gemm as tg
    >>> probs = np.array([[0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.7, 0.1, 0.2], [0.2, 0.1, 0.7]])
    >>> tg.forced_align(np.log(probs), np.array([1, 2])).labels
    array([0, 1, 0, 2])
    """
    kind = common_kind(log_probs=log_probs, targets=targets)
    probs, wanted = kind.operand(log_probs, "log_probs"), kind.operand(targets, "targets")
    arrays = {"log_probs": probs, "targets": wanted}
    for name, x in arrays.items():
        shape_of(x, name)
    if probs.ndim < 2 or probs.shape[-1] == 0:
        raise ValueError(
            f"log_probs has shape {tuple(probs.shape)}, expected (..., steps, classes), one class at least"
        )
    if wanted.ndim < 1:
        raise ValueError("targets has shape (), expected (..., the most targets of a sequence)")
    given = {
        name: x for name, x in zip(LENGTHS, (input_lengths, target_lengths), strict=True) if x is not None
    }
    if kind is torch_kind:
        from ..torch._align import forced_align as on_tensors

        return on_tensors(arrays, given, blank, stream, threads)
    return align(kind, arrays, given, blank, stream, threads)


def align(
    kind: Kind, arrays: dict[str, Any], lengths: dict[str, Any], blank: int, stream: Any, threads: int | None
) -> AlignResult:
    """The alignment of arrays that fit together; ``lengths`` are those given."""
    probs, wanted = arrays["log_probs"], arrays["targets"]
    largest = dict(zip(LENGTHS, (probs.shape[-2], wanted.shape[-1]), strict=True))
    leads = {"log_probs": tuple(probs.shape[:-2]), "targets": tuple(wanted.shape[:-1])}
    every = dict(arrays)
    for name, x in lengths.items():
        every[name] = lengths_of(kind, x, name, "log_probs", probs, largest[name])
        leads[name] = tuple(every[name].shape)
    batch = common_batch(leads)
    one = {name: flat(kind, x, leads[name], batch) for name, x in every.items()}
    if kind.device(probs) is None:
        _check_targets(np.asarray(one["targets"]), one.get("target_lengths"), probs.shape[-1], blank)
    with placed(kind, probs, stream) as queue:
        made = _core.forced_align(
            one["log_probs"],
            one["targets"],
            one.get("input_lengths"),
            one.get("target_lengths"),
            blank,
            threads,
            queue,
        )
    return AlignResult._make(kind.result(x).reshape((*batch, probs.shape[-2])) for x in made)


def _check_targets(targets: np.ndarray[Any, Any], lengths: Any, classes: int, blank: Any) -> None:
    if targets.dtype.kind not in "iu" or not hasattr(blank, "__index__"):
        return  # the core says so
    wrong = (targets < 0) | (targets >= classes) | (targets == operator.index(blank))
    if lengths is not None:
        wrong &= np.arange(targets.shape[1]) < lengths[:, None]
    if wrong.any():
        raise ValueError(
            f"targets holds {targets[wrong][0]}, expected classes in [0, {classes}) other than blank={blank}"
        )

"""Alignment of tensors: an operator for labels and scores; gradients flow to the scores that are returned."""

from typing import Any

import torch

from .._arrays import placed, torch_kind
from ..algorithms import align as _plain
from . import _autograd, _batching, _operators
from ._operators import Threads

_OWN_AXES = (2, 1, 0, 0)  # of log_probs, targets and the lengths; leading axes are the batch


def forced_align(
    arrays: dict[str, Any], lengths: dict[str, Any], blank: int, stream: Any, threads: Threads
) -> _plain.AlignResult:
    """:func:`tropical_gemm.forced_align` on tensors; ``lengths`` are those given, as they were given."""
    if stream is not None:
        with placed(torch_kind, arrays["log_probs"], stream):
            return forced_align(arrays, lengths, blank, None, threads)
    probs, targets = arrays["log_probs"], arrays["targets"]
    plain = _operators.is_plain(probs, targets, *(x for x in lengths.values() if isinstance(x, torch.Tensor)))
    if plain:
        constant = arrays | {"log_probs": probs.detach()}
        labels, scores = _plain.align(torch_kind, constant, lengths, blank, None, threads)
        if not _autograd.records(probs):
            return _plain.AlignResult(labels, scores)
    else:
        ends = (torch.as_tensor(lengths[name]) if name in lengths else None for name in _plain.LENGTHS)
        labels, scores = torch.ops.tropical_gemm.forced_align(probs.detach(), targets, *ends, blank, threads)
    # The scores themselves, with the gradient of the elements that they are.
    index = labels.clamp(min=0).to(torch.int64)[..., None]
    taken = probs.expand((*labels.shape, probs.shape[-1])).gather(-1, index)[..., 0]
    return _plain.AlignResult(labels, torch.where(labels >= 0, taken, scores))


def _kernel(
    probs: Any, targets: Any, inputs: Any, wanted: Any, blank: int, threads: Threads
) -> tuple[Any, Any]:
    ends = {name: x for name, x in zip(_plain.LENGTHS, (inputs, wanted), strict=True) if x is not None}
    made = _plain.align(torch_kind, {"log_probs": probs, "targets": targets}, ends, blank, None, threads)
    return made.labels, made.scores


def _fake(
    probs: Any, targets: Any, inputs: Any, wanted: Any, blank: int, threads: Threads
) -> tuple[Any, Any]:
    leads = [
        x.shape[: x.dim() - own]
        for x, own in zip((probs, targets, inputs, wanted), _OWN_AXES, strict=True)
        if x is not None
    ]
    shape = (*torch.broadcast_shapes(*leads), probs.shape[-2])  # type: ignore[no-untyped-call]
    return targets.new_empty(shape), probs.new_empty(shape)


def _vmap(
    info: Any, dims: Any, probs: Any, targets: Any, inputs: Any, wanted: Any, *rest: Any
) -> tuple[tuple[Any, Any], tuple[int, int]]:
    aligned = _batching.leading(dims[:4], (probs, targets, inputs, wanted), _OWN_AXES)
    return torch.ops.tropical_gemm.forced_align(*aligned, *rest), (0, 0)


_operators.register(
    "forced_align",
    _operators.Operator(
        "(Tensor log_probs, Tensor targets, Tensor? input_lengths, Tensor? target_lengths, int blank, "
        "int? threads) -> (Tensor, Tensor)",
        _kernel,
        _fake,
        _vmap,
    ),
)

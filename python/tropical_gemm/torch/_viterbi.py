"""Viterbi on tensors: an operator for paths and scores; gradients flow through the sum along a path."""

from typing import Any

import torch

from .._arrays import placed, torch_kind
from ..algorithms import viterbi as _plain
from . import _autograd, _batching, _operators
from ._operators import Threads

_NAMES = ("log_emission", "log_transition", "log_initial", "log_final")
_OWN_AXES = (2, 3, 1, 1, 0)  # of each, and of the lengths; leading axes are the batch


def viterbi(
    arrays: dict[str, Any], lengths: Any, scan: bool, stream: Any, threads: Threads
) -> _plain.ViterbiResult:
    """:func:`tropical_gemm.viterbi` on tensors that fit together."""
    if stream is not None:
        with placed(torch_kind, arrays["log_emission"], stream):
            return viterbi(arrays, lengths, scan, None, threads)
    tensors = list(arrays.values())
    plain = _operators.is_plain(*tensors, *((lengths,) if isinstance(lengths, torch.Tensor) else ()))
    ends = lengths
    if plain:
        _plain.warn_of_probabilities(torch_kind, arrays["log_transition"].detach(), 4)
        if lengths is not None:
            ends = _plain.checked_lengths(torch_kind, lengths, tensors[0])
        if not _autograd.records(*tensors):
            return _plain.decode(torch_kind, arrays, ends, scan, None, threads)

    # The paths follow no gradient; what they select does.
    constant = {name: x.detach() for name, x in arrays.items()}
    if plain:
        paths, scores = _plain.decode(torch_kind, constant, ends, scan, None, threads)
    else:
        ends = torch.as_tensor(ends) if ends is not None else None
        paths, scores = torch.ops.tropical_gemm.viterbi(
            *(constant.get(x) for x in _NAMES), ends, scan, threads
        )
    along = _along(arrays, paths, scores.dtype)
    # The score itself, to the bit, with the gradient of the sum; an infinite score has none.
    return _plain.ViterbiResult(paths, scores + torch.where(scores.isfinite(), along - along.detach(), 0))


def _along(arrays: dict[str, Any], paths: Any, dtype: Any) -> Any:
    """The sum of all that a path passes, in no fixed order; 0 where there is none."""
    emission, transition = arrays["log_emission"], arrays["log_transition"]
    steps, states = emission.shape[-2:]
    if steps == 0:  # a sum over nothing of each array, so that each has a gradient, of zeros
        nothing = [x.reshape(-1)[:0].sum().to(dtype) for x in arrays.values()]
        return paths.new_zeros(paths.shape[:-1], dtype=dtype) + torch.stack(nothing).sum()
    on, at = paths >= 0, paths.clamp(min=0)

    def taken(x: Any, index: Any, where: Any) -> Any:
        """``x[..., index]``, 0 where the path does not go; gradients of what all share have its own size."""
        if x.dim() == 1:
            picked = x[index]
        else:
            picked = x.expand((*index.shape, x.shape[-1])).gather(-1, index[..., None])[..., 0]
        return torch.where(where, picked.to(dtype), 0)

    total = taken(emission, at, on).sum(-1)
    between = at[..., :-1] * states + at[..., 1:]
    total = total + taken(transition.flatten(-2), between, on[..., 1:]).sum(-1)
    if "log_initial" in arrays:
        total = total + taken(arrays["log_initial"], at[..., 0], on[..., 0])
    if "log_final" in arrays:
        last = at.gather(-1, (on.sum(-1, keepdim=True) - 1).clamp(min=0))[..., 0]
        total = total + taken(arrays["log_final"], last, on[..., 0])
    return total


def _kernel(
    emission: Any, transition: Any, initial: Any, final: Any, lengths: Any, scan: bool, threads: Threads
) -> tuple[Any, Any]:
    arrays = dict(zip(_NAMES, (emission, transition, initial, final), strict=True))
    given = {name: x for name, x in arrays.items() if x is not None}
    ends = None if lengths is None else _plain.checked_lengths(torch_kind, lengths, emission)
    made = _plain.decode(torch_kind, given, ends, scan, None, threads)
    return made.paths, made.scores


def _fake(
    emission: Any, transition: Any, initial: Any, final: Any, lengths: Any, scan: bool, threads: Threads
) -> tuple[Any, Any]:
    leads = [
        x.shape[: max(x.dim() - own, 0)]
        for x, own in zip((emission, transition, initial, final, lengths), _OWN_AXES, strict=True)
        if x is not None
    ]
    batch = torch.broadcast_shapes(*leads)  # type: ignore[no-untyped-call]
    dtype = torch.float64 if emission.dtype == torch.float64 else torch.float32
    paths = emission.new_empty((*batch, emission.shape[-2]), dtype=torch.int64)
    return paths, emission.new_empty(batch, dtype=dtype)


def _vmap(
    info: Any, dims: Any, emission: Any, transition: Any, initial: Any, final: Any, lengths: Any, *rest: Any
) -> tuple[tuple[Any, Any], tuple[int, int]]:
    arrays = [emission, transition, initial, final, lengths]
    if dims[1] is not None and transition.dim() == 3:
        arrays[1] = transition.movedim(dims[1], 0).unsqueeze(1)  # one matrix for all steps of a sample
        dims = (dims[0], 0, *dims[2:])
    aligned = _batching.leading(dims[:5], tuple(arrays), _OWN_AXES)
    return torch.ops.tropical_gemm.viterbi(*aligned, *rest), (0, 0)


_operators.register(
    "viterbi",
    _operators.Operator(
        "(Tensor log_emission, Tensor log_transition, Tensor? log_initial, Tensor? log_final, "
        "Tensor? lengths, bool scan, int? threads) -> (Tensor, Tensor)",
        _kernel,
        _fake,
        _vmap,
    ),
)

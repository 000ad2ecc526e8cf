"""Checks in which all ranks take part, so that all of them raise, and raise the same."""

import json
from typing import Any

import torch
import torch.distributed as dist

_BYTES = 8192
_ERRORS: dict[str, type[Exception]] = {
    kind.__name__: kind for kind in (TypeError, ValueError, RuntimeError, MemoryError, OverflowError, OSError)
}


def agree(group: Any, device: Any, facts: dict[str, Any], error: "Exception | None" = None) -> None:
    """Raises on every rank of ``group`` what went wrong on one, or which of the facts differ between them.

    One exchange of a few kilobytes. ``group`` may be None: a rank alone.
    """
    said = [_packed(facts, error)]
    if group is not None:
        own = torch.tensor(list(said[0].ljust(_BYTES)), dtype=torch.uint8, device=device)
        all_of = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
        dist.all_gather(all_of, own, group=group)
        said = [bytes(x.tolist()) for x in torch.stack(all_of).cpu()]
    heard = [json.loads(text) for text in said]
    errors = [(rank, *of["error"]) for rank, of in enumerate(heard) if of["error"]]
    if errors:
        rank, kind, text = errors[0]
        everywhere = len(errors) == len(heard) and all(other[1:] == (kind, text) for other in errors)
        raise _ERRORS[kind](text if everywhere else f"on rank {rank}: {text}")
    for name in dict.fromkeys(name for of in heard for name in of["facts"]):
        values = [of["facts"].get(name) for of in heard]
        if any(value != values[0] for value in values):
            ranks = {str(value): [r for r, v in enumerate(values) if v == value] for value in values}
            listed = "; ".join(
                f"{value} on rank{'s' * (len(of) > 1)} {', '.join(map(str, of))}"
                for value, of in ranks.items()
            )
            raise ValueError(f"{name} differs between the ranks: {listed}")


def _packed(facts: dict[str, Any], error: "Exception | None") -> bytes:
    kind = next((name for name, of in _ERRORS.items() if isinstance(error, of)), "RuntimeError")
    text = None if error is None else (kind, str(error)[:512])
    facts = {name: str(value)[:200] for name, value in facts.items()}
    packed = json.dumps({"facts": {} if error else facts, "error": text}, ensure_ascii=False).encode(
        errors="replace"
    )
    assert len(packed) <= _BYTES
    return packed


def as_bytes(x: torch.Tensor) -> torch.Tensor:
    """The memory of a contiguous tensor, which every backend can send, whatever the dtype is."""
    return x.view(-1).view(torch.uint8)


def broadcast(x: torch.Tensor, root: int, group: Any) -> Any:
    """Starts to send a contiguous tensor from the ``root``-th rank of ``group``; None where there is nobody
    else."""
    if group is None or x.numel() == 0:
        return None
    return dist.broadcast(as_bytes(x), group=group, group_src=root, async_op=True)


def reduced(value: Any, op: Any, group: Any, like: torch.Tensor, dtype: torch.dtype = torch.int64) -> Any:
    """A number of each rank, reduced to one that all have."""
    if group is None:
        return value
    x = torch.tensor([value], dtype=dtype, device=like.device)
    dist.all_reduce(x, op, group=group)
    return x.item()

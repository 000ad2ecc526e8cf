"""Leading axes: any number of them for the caller, one for the core."""

import math
from typing import Any

import numpy as np

from .._arrays import Kind, common_kind, device_of


def common_batch(leads: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that the leading axes of the named arrays broadcast to."""
    try:
        return np.broadcast_shapes(*leads.values())
    except ValueError:
        raise ValueError(
            "the leading axes do not broadcast: "
            + ", ".join(f"{name} has {lead}" for name, lead in leads.items())
        ) from None


def flat(
    kind: Kind, x: Any, lead: tuple[int, ...], batch: tuple[int, ...], *, one_serves_all: bool = False
) -> Any:
    """``x`` with one axis in the place of its leading ones; of size 1 where that is enough."""
    own = tuple(x.shape[len(lead) :])
    if one_serves_all and math.prod(lead) == 1:
        return x.reshape((1, *own))
    if lead != batch:
        x = (
            np.broadcast_to(x, (*batch, *own))
            if isinstance(x, np.ndarray)
            else kind.broadcast(x, (*batch, *own))
        )
    return x.reshape((math.prod(batch), *own))


def lengths_of(kind: Kind, lengths: Any, name: str, like_name: str, like: Any, largest: int) -> Any:
    """The lengths where ``like`` is; those in host memory are checked and become a NumPy array."""
    if device_of(lengths, name) is not None:
        common_kind(**{like_name: like, name: lengths})
        return kind.operand(lengths, name)
    host = np.asarray(lengths)
    if host.dtype.kind not in "iu":
        raise TypeError(f"{name} is of dtype {host.dtype}, expected integers")
    if host.size and (host.min() < 0 or host.max() > largest):
        wrong = host[(host < 0) | (host > largest)].flat[0]
        raise ValueError(f"{name} holds {wrong}, expected values in [0, {largest}]")
    host = host.astype(np.int32)
    return host if kind.device(like) is None else kind.from_host(host, like)

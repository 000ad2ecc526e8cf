"""Reading a matrix as edges, as ``load_graph`` of the core does on one device: facts of all ranks, in
place."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from ..algorithms.dense import Facts
from ._agree import reduced
from ._cyclic import BlockCyclic
from ._pivots import NONE, constants

_CHUNK = 1 << 26
_NOWHERE = 2**62
_GROWING = ("plus", "mul")  # semirings whose product makes new values


@dataclass
class Reading:
    """How elements are read as edges."""

    semiring: str
    no_edge: Any = None
    undirected: bool = False
    unweighted: bool = False
    reflexive: bool = True


def load(d: BlockCyclic, reading: Reading) -> Facts:
    """Turns a matrix into what a closure starts from, and tells what all ranks found; NaN becomes "no
    edge"."""
    if reading.undirected:
        # Each direction is read as such first: what is NaN or an infinity in one of them is reported.
        facts = _read(d, reading)
        other = d.transpose().local
        if reading.semiring.startswith("min"):
            torch.minimum(d.local, other, out=d.local)
        else:
            torch.maximum(d.local, other, out=d.local)
        return facts
    return _read(d, reading)


def _read(d: BlockCyclic, reading: Reading) -> Facts:
    zero, one = constants(reading.semiring, d.local)
    least = reading.semiring.startswith("min")
    worst_weight = _beyond(reading.semiring, d.local.dtype)
    columns = torch.from_numpy(d.columns).to(d.local.device)
    nan_at = infinite_at = negative_at = _NOWHERE
    zeros = absent = 0
    magnitude = 0.0
    for x, rows in _slabs(d):
        diagonal = rows[:, None] == columns[None, :]
        nan = x.isnan() if x.is_floating_point() else None
        missing = x == zero
        if reading.no_edge is not None:
            named = nan if reading.no_edge != reading.no_edge else x == reading.no_edge
            missing = missing if named is None else missing | named
        if nan is not None:
            nan_at = min(nan_at, _first(nan & ~missing, rows, columns, d.n))
            missing |= nan
        absent += int((missing & ~diagonal).sum())
        x.masked_fill_(missing, zero)
        if reading.unweighted:
            x.masked_fill_(~missing, 1)
            magnitude = 1.0
        elif x.dtype != torch.bool:
            strange = x == worst_weight if worst_weight is not None else None
            if strange is not None:
                infinite_at = min(infinite_at, _first(strange, rows, columns, d.n))
                missing |= strange
            negative_at = min(negative_at, _first((x < 0) & ~missing, rows, columns, d.n))
            zeros += int(((x == 0) & ~missing & ~diagonal).sum())
            magnitude = max(magnitude, _magnitude(x, missing))
            if x.is_floating_point():
                x.add_(0.0)  # -0 becomes +0
        if reading.reflexive:
            stays = diagonal & ((x >= one) if least else (x <= one))
            x.masked_fill_(stays, one)
    group, like = d.grid.everyone, d.local
    places = [
        _place(reduced(at, dist.ReduceOp.MIN, group, like), d.n) for at in (nan_at, infinite_at, negative_at)
    ]
    counts = [int(reduced(count, dist.ReduceOp.SUM, group, like)) for count in (zeros, absent)]
    largest = float(reduced(magnitude, dist.ReduceOp.MAX, group, like, torch.float64))
    return Facts(places[0], places[1], places[2], counts[0], counts[1], largest)


def _slabs(d: BlockCyclic) -> Any:
    """Some rows at a time, and which they are."""
    rows = torch.from_numpy(d.rows).to(d.local.device)
    high = max(1, _CHUNK // max(d.local.shape[1], 1))
    for first in range(0, d.local.shape[0], high):
        yield d.local[first : first + high], rows[first : first + high]


def _beyond(semiring: str, dtype: torch.dtype) -> Any:
    """The infinity that is better than every weight; None where there is none."""
    if not semiring.endswith(_GROWING) or dtype == torch.bool:
        return None
    if dtype.is_floating_point:
        return -np.inf if semiring.startswith("min") else np.inf
    info = torch.iinfo(dtype)
    return info.min if semiring.startswith("min") else info.max


def _first(where: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, n: int) -> int:
    """The first element of the whole matrix, row by row, among those that are true."""
    if not where.numel() or not bool(where.any()):
        return _NOWHERE
    at = int(where.reshape(-1).to(torch.uint8).argmax())
    return int(rows[at // len(columns)]) * n + int(columns[at % len(columns)])


def _place(at: int, n: int) -> "tuple[int, int] | None":
    return None if at == _NOWHERE else (int(at) // n, int(at) % n)


def _magnitude(x: torch.Tensor, missing: torch.Tensor) -> float:
    """The largest finite size of a weight."""
    counted = x.masked_fill(missing, 0)
    if x.is_floating_point():
        counted.masked_fill_(counted.isinf(), 0)
    if not counted.numel():
        return 0.0
    low, high = counted.aminmax()
    return max(-float(low), float(high))  # of integers, too: -float does not wrap


def predecessors(d: BlockCyclic) -> torch.Tensor:
    """What they are before any pivot: i for the edges of row i."""
    pred = torch.empty(d.local.shape, dtype=torch.int32, device=d.local.device)
    columns = torch.from_numpy(d.columns).to(d.local.device)
    zero, _ = constants("min_plus", d.local)
    at = 0
    for x, rows in _slabs(d):
        none = (x == zero) | (rows[:, None] == columns[None, :])
        here = pred[at : at + len(rows)]
        here.copy_(rows[:, None].to(torch.int32).expand_as(here))
        here.masked_fill_(none, NONE)
        at += len(rows)
    return pred


def first_beyond(d: BlockCyclic, reach: torch.Tensor) -> "tuple[int, int] | None":
    """The first pair that a path joins and whose value is no number, or one that the dtype cannot tell from
    none."""
    dtype = d.local.dtype
    low, high = (
        (-np.inf, np.inf) if dtype.is_floating_point else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    )
    columns = torch.from_numpy(d.columns).to(d.local.device)
    found, at = _NOWHERE, 0
    for x, rows in _slabs(d):
        beyond = (x == low) | (x == high) | (x != x)
        found = min(found, _first(beyond & reach[at : at + len(rows)], rows, columns, d.n))
        at += len(rows)
    return _place(int(reduced(found, dist.ReduceOp.MIN, d.grid.everyone, d.local)), d.n)

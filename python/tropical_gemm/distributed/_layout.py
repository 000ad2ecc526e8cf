"""Which rank holds which rows and columns of a matrix, and moving it from one such layout to another."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Replicate, Shard

from ._agree import as_bytes
from ._grid import Axis, Grid

SLAB = 1 << 28
"""Bytes that a rank sends, reads or writes at a time."""

Indices = Any  # np.ndarray of int64, ascending


@dataclass
class Layout:
    """The rows and columns of the whole matrix that one rank holds."""

    rows: Indices
    columns: Indices

    @property
    def transposed(self) -> "Layout":
        return Layout(self.columns, self.rows)


def sharded(mesh: DeviceMesh, placements: Any, shape: tuple[int, int]) -> list[Layout]:
    """The layouts of a DTensor, in the order of the ranks in its mesh."""
    layouts = []
    for place in np.ndindex(*mesh.mesh.shape):
        axes = [np.arange(shape[0]), np.arange(shape[1])]
        for i, placement in zip(place, range(mesh.ndim), strict=True):
            of = placements[placement]
            if isinstance(of, Shard):
                each = -(-len(axes[of.dim]) // mesh.size(placement))
                axes[of.dim] = axes[of.dim][i * each : (i + 1) * each]
        layouts.append(Layout(*axes))
    return layouts


def check_placements(placements: Any, argument: str) -> None:
    for placement in placements:
        if type(placement) not in (Shard, Replicate):
            raise ValueError(
                f"{argument} is placed as {placement}, expected Shard(0), Shard(1) or Replicate()"
            )


def cyclic(grid: Grid, shape: tuple[int, int], block: int) -> list[Layout]:
    """The layouts of blocks that go round the rows and columns of a grid."""
    return [
        Layout(
            Axis(shape[0], block, grid.rows, row).indices, Axis(shape[1], block, grid.columns, column).indices
        )
        for row in range(grid.rows)
        for column in range(grid.columns)
    ]


def nowhere() -> Layout:
    return Layout(np.arange(0), np.arange(0))


def move(
    x: torch.Tensor, held: list[Layout], wanted: list[Layout], to: torch.Tensor, me: int, group: Any
) -> None:
    """Sends the parts ``x`` of a matrix that ranks hold to where they are wanted, into ``to``.

    Layouts that hold an element twice are equal; of equal ones each receiver is served by one, by itself if
    it can.
    """
    if group is None:
        _put(
            to,
            wanted[0],
            wanted[0].rows,
            wanted[0].columns,
            _part(x, held[0], wanted[0].rows, wanted[0].columns),
        )
        return
    item = x.element_size()
    most = max((len(of.columns) for of in held), default=1)
    high = max(1, SLAB // max(most * item, 1))
    rounds = -(-max(len(of.rows) for of in held) // high)
    routes = _routes(held, wanted)
    out = [d for d in range(len(wanted)) if routes[d][me]]
    into = [s for s in range(len(held)) if routes[me][s]]
    columns_out = {d: np.intersect1d(held[me].columns, wanted[d].columns, True) for d in out}
    columns_in = {s: np.intersect1d(held[s].columns, wanted[me].columns, True) for s in into}
    for r in range(rounds):
        slab = slice(r * high, (r + 1) * high)
        rows_out = {d: np.intersect1d(held[me].rows[slab], wanted[d].rows, True) for d in out}
        rows_in = {s: np.intersect1d(held[s].rows[slab], wanted[me].rows, True) for s in into}
        parts = [_part(x, held[me], rows_out[d], columns_out[d]).reshape(-1) for d in out]
        sent = torch.cat(parts) if parts else x.new_empty(0)
        counts_out = [
            item * len(rows_out[d]) * len(columns_out[d]) if d in columns_out else 0
            for d in range(len(wanted))
        ]
        counts_in = [
            item * len(rows_in[s]) * len(columns_in[s]) if s in columns_in else 0 for s in range(len(held))
        ]
        got = x.new_empty(sum(counts_in) // item)
        dist.all_to_all_single(as_bytes(got), as_bytes(sent), counts_in, counts_out, group=group)
        at = 0
        for s in into:
            size = counts_in[s] // item
            _put(to, wanted[me], rows_in[s], columns_in[s], got[at : at + size])
            at += size


def _routes(held: list[Layout], wanted: list[Layout]) -> list[list[bool]]:
    """[receiver][sender]: whether that sender serves it."""
    alike: dict[Any, list[int]] = {}
    for s, of in enumerate(held):
        alike.setdefault((of.rows.tobytes(), of.columns.tobytes()), []).append(s)
    routes = [[False] * len(held) for _ in wanted]
    for d in range(len(wanted)):
        for senders in alike.values():
            routes[d][d if d in senders else senders[d % len(senders)]] = True
    return routes


def _places(of: Indices, some: Indices, like: torch.Tensor) -> Any:
    """Where ``some`` are in ``of``: a slice where they lie together."""
    at: Any = np.searchsorted(of, some)
    if len(at) and at[-1] - at[0] == len(at) - 1:
        return slice(int(at[0]), int(at[-1]) + 1)
    return torch.from_numpy(at).to(like.device)


def _part(x: torch.Tensor, layout: Layout, rows: Indices, columns: Indices) -> torch.Tensor:
    return x[_places(layout.rows, rows, x)][:, _places(layout.columns, columns, x)]


def _put(to: torch.Tensor, layout: Layout, rows: Indices, columns: Indices, part: torch.Tensor) -> None:
    if len(rows) == 0 or len(columns) == 0:
        return
    i, j = _places(layout.rows, rows, to), _places(layout.columns, columns, to)
    part = part.view(len(rows), len(columns))
    if isinstance(i, slice):
        to[i][:, j] = part
    elif isinstance(j, slice):
        to[:, j][i] = part
    else:
        to[i[:, None], j[None, :]] = part

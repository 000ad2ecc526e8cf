"""Ranks in rows and columns, and the blocks that each holds."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d
from torch.distributed.device_mesh import DeviceMesh

Group = Any  # torch.distributed.ProcessGroup; None for a rank alone


@dataclass(frozen=True)
class Grid:
    """The ranks of a mesh as ``rows`` x ``columns``, row by row, and where this one stands.

    ``down`` joins the ranks of a column, ``across`` those of a row, ``everyone`` all of them; each is None
    where it would hold one rank alone. Groups are kept by name: one that outlives the process group crashes
    when Python ends.
    """

    mesh: DeviceMesh
    rows: int
    columns: int
    row: int
    column: int
    names: "tuple[str | None, str | None, str | None]"

    @property
    def size(self) -> int:
        return self.rows * self.columns

    @property
    def me(self) -> int:
        return self.row * self.columns + self.column

    @property
    def down(self) -> Group:
        return _named(self.names[0])

    @property
    def across(self) -> Group:
        return _named(self.names[1])

    @property
    def everyone(self) -> Group:
        return _named(self.names[2])


def _named(name: "str | None") -> Group:
    c10d: Any = distributed_c10d
    return None if name is None else c10d._resolve_process_group(name)


def grid_of(mesh: DeviceMesh) -> Grid:
    """A mesh of two axes as it is; one of one axis as near to a square as can be, not higher than wide."""
    size = mesh.size()
    if mesh.ndim == 1:
        return make_grid(mesh, max(r for r in range(1, size + 1) if size % r == 0 and r * r <= size))
    return make_grid(mesh, mesh.size(0))


def make_grid(mesh: DeviceMesh, rows: int) -> Grid:
    """The ranks of a mesh in so many rows. Every rank of the mesh calls this."""
    ranks = mesh.mesh.reshape(rows, -1)
    columns = ranks.shape[1]
    row, column = (int(i) for i in (ranks == dist.get_rank()).nonzero()[0])
    down = across = None
    if mesh.ndim == 2:
        down, across = mesh.get_group(0), mesh.get_group(1)
    elif rows == 1:
        across = mesh.get_group()
    elif columns == 1:
        down = mesh.get_group()
    else:
        down, across = _group(mesh, ranks[:, column]), _group(mesh, ranks[row])
    groups = (down if rows > 1 else None, across if columns > 1 else None, everyone_of(mesh))
    names = [None if group is None else str(group.group_name) for group in groups]
    return Grid(mesh, rows, columns, row, column, (names[0], names[1], names[2]))


def everyone_of(mesh: DeviceMesh) -> Group:
    """The group of all ranks of a mesh; None for one rank.

    Where these are all ranks there are, it is one that a rank without the mesh finds too.
    """
    if mesh.size() == 1:
        return None
    if mesh.size() == dist.get_world_size():
        return dist.group.WORLD
    if mesh.ndim == 1:
        return mesh.get_group()
    return _group(mesh, mesh.mesh.flatten())


def _timeout(mesh: DeviceMesh) -> Any:
    """That of the process group, which a group of some of its ranks would not take over by itself."""
    everyone: Any = dist.group.WORLD
    options = getattr(everyone._get_backend(torch.device(mesh.device_type)), "options", None)
    return getattr(options, "_timeout", None)


def _group(mesh: DeviceMesh, ranks: torch.Tensor) -> Group:
    """A group of some ranks of a mesh, which is made once for it."""
    known: dict[Any, str] = mesh.__dict__.setdefault("_tropical_gemm_groups", {})
    key = tuple(ranks.tolist())
    if key not in known:
        made: Any = dist.new_group(list(key), timeout=_timeout(mesh), use_local_synchronization=True)
        known[key] = str(made.group_name)
    return _named(known[key])


@dataclass(frozen=True)
class Axis:
    """One axis of a matrix in blocks that go round the ``parts``; this is the share of ``part``."""

    n: int
    block: int
    parts: int
    part: int

    @property
    def blocks(self) -> int:
        return -(-self.n // self.block)

    def owner(self, b: int) -> int:
        return b % self.parts

    def extent(self, b: int) -> int:
        return min(self.block, self.n - b * self.block)

    def span(self, b: int) -> "tuple[int, int] | None":
        """Where block ``b`` begins and ends in this share, if it is there."""
        if self.owner(b) != self.part:
            return None
        first = b // self.parts * self.block  # only the last block of all is shorter
        return first, first + self.extent(b)

    @property
    def indices(self) -> Any:
        """The rows or columns of the whole matrix that are in this share, in order."""
        i = np.arange(self.n)
        return i[i // self.block % self.parts == self.part]

    @property
    def size(self) -> int:
        return sum(self.extent(b) for b in range(self.part, self.blocks, self.parts))


def default_block(n: int, grid: Grid) -> int:
    """Eight blocks for each row and column of ranks, of whole tiles of the kernels, 4096 at most.

    Large pivots write a result and look for predecessors least often; many let the ranks take turns in what
    only the owners of a pivot do.
    """
    return min(4096, max(64, n // (8 * max(grid.rows, grid.columns)) // 64 * 64))

"""Square matrices in blocks that go round the ranks."""

from dataclasses import dataclass
from operator import index
from typing import Any

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from ._grid import Axis, Grid, default_block, grid_of
from ._layout import Layout, check_placements, cyclic, move, sharded


@dataclass
class BlockCyclic:
    """A square matrix in blocks that go round the rows and columns of a grid of ranks, as in ScaLAPACK.

    Block (i, j) of ``block`` x ``block`` elements (those of the last row and column may be smaller) is held
    by the rank in row i mod R and column j mod C of the grid. A rank holds its blocks in one matrix,
    ``local``, in their order. A mesh of two axes is the grid; the ranks of a mesh of one axis stand in as
    near to a square as they can.
    """

    local: torch.Tensor
    n: int
    block: int
    grid: Grid

    @property
    def row_axis(self) -> Axis:
        return Axis(self.n, self.block, self.grid.rows, self.grid.row)

    @property
    def column_axis(self) -> Axis:
        return Axis(self.n, self.block, self.grid.columns, self.grid.column)

    @property
    def rows(self) -> Any:
        """The rows of the whole matrix that ``local`` holds, as a NumPy array."""
        return self.row_axis.indices

    @property
    def columns(self) -> Any:
        """Its columns."""
        return self.column_axis.indices

    @property
    def layouts(self) -> list[Layout]:
        return cyclic(self.grid, (self.n, self.n), self.block)

    def like(self, local: torch.Tensor) -> "BlockCyclic":
        """Another matrix in the same blocks."""
        return BlockCyclic(local, self.n, self.block, self.grid)

    @classmethod
    def empty(
        cls, n: int, mesh: DeviceMesh, dtype: torch.dtype, *, block: int | None = None, device: Any = None
    ) -> "BlockCyclic":
        """A matrix (n, n) that is to be filled: ``x.local[i, j]`` is element ``[x.rows[i], x.columns[j]]``.

        Every rank of ``mesh`` calls this. ``device`` is the current one of the mesh's type where None.
        """
        if index(n) < 0:
            raise ValueError(f"n is {n}, expected 0 at least")
        check_block(block)
        grid = grid_of(mesh)
        block = default_block(n, grid) if block is None else block
        made = cls(torch.empty(0, dtype=dtype), n, block, grid)
        size = made.row_axis.size, made.column_axis.size
        made.local = torch.empty(size, dtype=dtype, device=device or mesh.device_type)
        return made

    @classmethod
    def from_dtensor(cls, x: DTensor, *, block: int | None = None) -> "BlockCyclic":
        """A copy of a square DTensor. Every rank of its mesh calls this."""
        check_placements(x.placements, "x")
        if x.ndim != 2 or x.shape[0] != x.shape[1]:
            raise ValueError(f"x has shape {tuple(x.shape)}, expected a square matrix (n, n)")
        shape = (int(x.shape[0]), int(x.shape[1]))
        local = x.to_local().detach()
        made = cls.empty(shape[0], x.device_mesh, x.dtype, block=block, device=local.device)
        held = sharded(x.device_mesh, x.placements, shape)
        move(local, held, made.layouts, made.local, made.grid.me, made.grid.everyone)
        return made

    def transpose(self) -> "BlockCyclic":
        """A copy of the transposed matrix, in the same blocks."""
        made = self.like(torch.empty_like(self.local))
        held = [of.transposed for of in self.layouts]
        move(self.local.t(), held, self.layouts, made.local, self.grid.me, self.grid.everyone)
        return made

    def to_dtensor(self, placements: Any) -> DTensor:
        """A copy as a DTensor on the same mesh."""
        mesh = self.grid.mesh
        check_placements(placements, "placements")
        wanted = sharded(mesh, placements, (self.n, self.n))
        mine = wanted[self.grid.me]
        local = self.local.new_empty(len(mine.rows), len(mine.columns))
        move(self.local, self.layouts, wanted, local, self.grid.me, self.grid.everyone)
        return wrapped(local, mesh, placements, (self.n, self.n))


def check_block(block: Any) -> None:
    if block is not None and index(block) < 1:
        raise ValueError(f"block is {block}, expected 1 at least")


def wrapped(local: torch.Tensor, mesh: DeviceMesh, placements: Any, shape: tuple[int, int]) -> DTensor:
    """A DTensor of parts that are known to fit."""
    stride = (max(shape[1], 1), 1)
    return DTensor.from_local(
        local, mesh, placements, run_check=False, shape=torch.Size(shape), stride=stride
    )

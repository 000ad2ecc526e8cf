"""Products of matrices that are spread over processes."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Placement, Replicate, Shard

from .. import _core
from .._ops import MatmulResult
from ..algorithms.checks import check_threads, flag
from ._agree import broadcast
from ._cyclic import BlockCyclic, wrapped
from ._grid import Grid, everyone_of, make_grid
from ._layout import move, sharded
from ._operands import Matrix, collective, dtype_of
from ._pivots import constants

_PANEL, _PANEL_BYTES = 16384, 1 << 31
"""Steps of k that are sent at a time, and their memory, at most; each time all of C is read and written."""
_AHEAD = 2
"""Panels that are on their way while one is multiplied: a GPU that is full of blocks of one product lets the
message for the next one in only at its end."""


def matmul(
    a: Any,
    b: Any,
    *,
    semiring: str = "max_plus",
    return_argmax: bool = False,
    threads: int | None = None,
) -> Any:
    """Product of two matrices over a semiring, spread over processes; :func:`tropical_gemm.matmul` has the
    meaning.

    Every rank of their mesh calls this with the same arguments.

    Parameters
    ----------
    a, b
        DTensors (M, K) and (K, N) of one dtype on one mesh of one or two axes, placed as Shard(0), Shard(1)
        or Replicate() along each.
    semiring, return_argmax, threads
        As for :func:`tropical_gemm.matmul`.

    Returns
    -------
    DTensor, or MatmulResult of two
        Equal to the product on one device in every bit, the argmax too: the best of sums or products, and the
        lowest k of the best, do not depend on an order. Where no rank lacks a part of K, nothing is sent, and
        the rows and columns stay where they are. Otherwise A and B are brought to, and C is placed as,
        [Shard(0), Shard(1)] on a mesh of two axes; on one axis all are Shard(1) where A is and B is not
        Shard(0), else Shard(0). Then panels of K go round, while the one before is multiplied.

    Raises
    ------
    TypeError, ValueError
        As :func:`tropical_gemm.matmul` does, and for shapes, dtypes and arguments that differ between ranks,
        or other placements. Every rank raises the same, or hears that it was on another rank.
    RuntimeError
        For operands that require grad, and where another process is gone.
    """

    def check(matrices: dict[str, Matrix]) -> dict[str, Any]:
        x, y = matrices["a"], matrices["b"]
        name = _core.semiring_name(semiring)
        for argument, given in (("a", a), ("b", b)):
            if isinstance(given, BlockCyclic):
                raise TypeError(f"{argument} is a BlockCyclic, expected a torch.distributed.tensor.DTensor")
        for argument, z in matrices.items():
            if len(z.shape) != 2:
                raise ValueError(f"{argument} has shape {z.shape}, expected a matrix")
        if x.shape[1] != y.shape[0]:
            raise ValueError(
                f"a has shape {x.shape} and b has shape {y.shape}: {x.shape[1]} is not {y.shape[0]}"
            )
        if x.local.dtype != y.local.dtype:
            raise TypeError(
                f"a has dtype {dtype_of(x.local)} and b has dtype {dtype_of(y.local)}, expected the same"
            )
        if x.mesh != y.mesh:
            raise ValueError(f"a is on {x.mesh} and b is on {y.mesh}, expected the same mesh")
        constants(name, x.local)
        check_threads(threads)
        return {"semiring": name, "return_argmax": flag(return_argmax, "return_argmax")}

    matrices = collective({"a": a, "b": b}, check)
    x, y = matrices["a"], matrices["b"]
    shape = x.shape[0], y.shape[1]
    how = _How(_core.semiring_name(semiring), bool(return_argmax), threads)
    placements = _placed_in_place(a.placements, b.placements)
    if placements is not None:
        made = how.multiply(x.local, y.local, None, 0)
    else:
        grid, placements = _grid_for(x.mesh, a.placements, b.placements)
        rows = _brought(x, a.placements, placements)
        columns = _brought(y, b.placements, placements)
        made = _by_panels(grid, rows, columns, x.shape[1], how)
    results = [wrapped(z, x.mesh, placements, shape) for z in made if z is not None]
    return MatmulResult(*results) if how.argmax else results[0]


@dataclass
class _How:
    semiring: str
    argmax: bool
    threads: "int | None"

    def multiply(self, a: Any, b: Any, c: Any, offset: int) -> tuple[Any, Any]:
        """A new product, or one into ``c``, a pair of values and argmax, for the k from ``offset`` on."""
        if c is None:
            made = _core.matmul(a, b, (True, self.argmax), self.semiring, False, 0, self.threads, None)
            return made if self.argmax else (made, None)
        outputs = (c[0], c[1] if self.argmax else False)
        _core.matmul(a, b, outputs, self.semiring, True, offset if self.argmax else 0, self.threads, None)
        return c  # type: ignore[no-any-return]


def _placed_in_place(a: Any, b: Any) -> "list[Placement] | None":
    """Where C is if every rank multiplies what it has; None where that would lack something."""
    placements: list[Placement] = []
    for of_a, of_b in zip(a, b, strict=True):
        splits = [of_a == Shard(0), of_b == Shard(1)]
        if of_a == Shard(1) or of_b == Shard(0) or all(splits):
            return None
        placements.append(Shard(0) if splits[0] else Shard(1) if splits[1] else Replicate())
    return placements


def _grid_for(mesh: DeviceMesh, a: Any, b: Any) -> tuple[Grid, list[Placement]]:
    """The ranks in rows and columns, and where A, B and C are on them."""
    if mesh.ndim == 2:
        return make_grid(mesh, mesh.size(0)), [Shard(0), Shard(1)]
    wide = a[0] == Shard(1) and b[0] != Shard(0)
    return make_grid(mesh, 1 if wide else mesh.size()), [Shard(1 if wide else 0)]


def _brought(x: Matrix, held: Any, wanted: Any) -> torch.Tensor:
    """The part of a matrix that a rank has under other placements."""
    if tuple(held) == tuple(wanted):
        return x.local.detach()
    shape = (x.shape[0], x.shape[1])
    layouts = sharded(x.mesh, wanted, shape)
    me = x.mesh.mesh.flatten().tolist().index(torch.distributed.get_rank())
    local = x.local.new_empty(len(layouts[me].rows), len(layouts[me].columns))
    move(x.local.detach(), sharded(x.mesh, held, shape), layouts, local, me, everyone_of(x.mesh))
    return local


def _by_panels(grid: Grid, a: torch.Tensor, b: torch.Tensor, k: int, how: _How) -> tuple[Any, Any]:
    """SUMMA: C is made where it stays; panels of A go across, of B down. One row or column of ranks sends one
    of them."""
    each = (-(-k // grid.columns), -(-k // grid.rows))
    line = max(a.shape[0] if grid.columns > 1 else 0, b.shape[1] if grid.rows > 1 else 0) * a.element_size()
    most = max(64, min(_PANEL, _PANEL_BYTES // max(line, 1)) // 64 * 64)
    panels = list(_cuts(k, most, *each))
    slots: list[dict[str, torch.Tensor]] = [{} for _ in range(_AHEAD + 1)]

    def sent(s: int) -> tuple[torch.Tensor, torch.Tensor, list[Any]]:
        """Starts panel ``s``: its parts of A and B, and what is to be waited for."""
        first, last = panels[s]
        column, row = first // max(each[0], 1), first // max(each[1], 1)
        x, y, slot = a, b, slots[s % len(slots)]
        messages = []
        if grid.columns > 1:
            x = _buffer(slot, "a", a, (a.shape[0], last - first))
            if column == grid.column:
                x.copy_(a[:, first - column * each[0] : last - column * each[0]])
            messages.append(broadcast(x, column, grid.across))
        else:
            x = a[:, first:last]
        if grid.rows > 1:
            if row == grid.row:
                y = b[first - row * each[1] : last - row * each[1]].contiguous()
            else:
                y = _buffer(slot, "b", b, (last - first, b.shape[1]))
            messages.append(broadcast(y, row, grid.down))
        else:
            y = b[first:last]
        return x, y, [message for message in messages if message is not None]

    c = None
    coming = [sent(s) for s in range(min(_AHEAD, len(panels)))]
    for s in range(len(panels)):
        if s + _AHEAD < len(panels):
            coming.append(sent(s + _AHEAD))
        x, y, messages = coming.pop(0)
        for message in messages:
            message.wait()
        c = how.multiply(x, y, c, panels[s][0])
    assert c is not None
    return c


def _buffer(
    slot: dict[str, torch.Tensor], name: str, like: torch.Tensor, shape: tuple[int, int]
) -> torch.Tensor:
    """Memory that a panel in the same slot used before: the first panels are as large as any."""
    size = shape[0] * shape[1]
    if name not in slot or slot[name].numel() < size:
        slot[name] = like.new_empty(size)
    return slot[name][:size].view(shape)


def _cuts(k: int, most: int, *each: int) -> Iterator[tuple[int, int]]:
    """The panels of K: each no longer than ``most``, and in one rank's part of A and one's of B."""
    cuts = {0, k} | {cut for size in each if size for cut in range(size, k, size)}
    if len(cuts) == 1:
        yield 0, 0
    for first, last in pairwise(sorted(cuts)):
        for at in range(first, last, most):
            yield at, min(at + most, last)

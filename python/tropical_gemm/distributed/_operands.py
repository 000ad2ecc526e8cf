"""What comes in: the same on every rank, or the same error on every rank."""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from ._agree import agree
from ._cyclic import BlockCyclic
from ._grid import everyone_of
from ._layout import check_placements, sharded


def dtype_of(x: torch.Tensor) -> str:
    return str(x.dtype).removeprefix("torch.")


class Matrix:
    """A DTensor or a :class:`BlockCyclic`, and what is to be known of it before anything is sent."""

    def __init__(self, x: Any, argument: str) -> None:
        if isinstance(x, BlockCyclic):
            self.shape: tuple[int, ...] = (x.n, x.n)
            self.mesh, self.local, self.placed = x.grid.mesh, x.local, f"blocks of {x.block}"
            size: tuple[int, ...] = (x.row_axis.size, x.column_axis.size)
            if not x.local.is_contiguous():
                raise ValueError(f"{argument}.local is not contiguous, expected a row-major matrix")
        elif isinstance(x, DTensor):
            check_placements(x.placements, argument)
            self.shape = tuple(int(s) for s in x.shape)
            self.mesh, self.local, self.placed = x.device_mesh, x.to_local(), str(x.placements)
            size = tuple(self.local.shape)
            if x.device_mesh.ndim not in (1, 2):
                raise ValueError(
                    f"{argument} is on a mesh of {x.device_mesh.ndim} axes, expected one or two of them"
                )
            if len(self.shape) == 2:
                ranks = self.mesh.mesh.flatten().tolist()
                if ranks != sorted(ranks):
                    raise ValueError(f"{argument} is on a mesh of the ranks {ranks}, expected ascending ones")
                of = sharded(self.mesh, x.placements, (self.shape[0], self.shape[1]))
                mine = of[ranks.index(dist.get_rank())]
                size = (len(mine.rows), len(mine.columns))
        else:
            raise TypeError(
                f"{argument} is of type {type(x).__module__}.{type(x).__qualname__}, expected a "
                "torch.distributed.tensor.DTensor, or a BlockCyclic where one is taken"
            )
        if tuple(self.local.shape) != size:
            raise ValueError(
                f"{argument} has a local part of shape {tuple(self.local.shape)}, expected {size} for "
                f"{self.shape} placed as {self.placed}"
            )
        if self.local.requires_grad and torch.is_grad_enabled():
            raise RuntimeError(f"{argument} requires grad, but no gradient is recorded here; detach it")


def collective(
    arguments: dict[str, Any], check: Callable[[dict[str, Matrix]], dict[str, Any]]
) -> dict[str, Matrix]:
    """The matrices, once every rank has found the arguments good and the same; ``check`` gives further
    facts."""
    matrices: dict[str, Matrix] = {}
    facts: dict[str, Any] = {}
    error: Exception | None = None
    try:
        for name, x in arguments.items():
            of = matrices[name] = Matrix(x, name)
            facts[f"the shape of {name}"] = of.shape
            facts[f"the dtype of {name}"] = dtype_of(of.local)
            facts[f"the placement of {name}"] = of.placed
            facts[f"the mesh of {name}"] = (of.mesh.mesh.tolist(), of.mesh.device_type)
        facts.update(check(matrices))
    except Exception as e:
        error = e
    mesh = _mesh(arguments)
    if mesh is None:  # no rank of the others knows of it otherwise
        group = dist.group.WORLD if dist.is_initialized() and dist.get_world_size() > 1 else None
    else:
        group = everyone_of(mesh)
    # The same choice on a rank that has no mesh.
    host = group is None or "gloo" in str(dist.get_backend_config(group))
    agree(group, torch.device("cpu" if host else "cuda"), facts, error)
    if error is not None:
        raise error
    return matrices


def _mesh(arguments: dict[str, Any]) -> "DeviceMesh | None":
    for x in arguments.values():
        if isinstance(x, DTensor):
            return x.device_mesh
        if isinstance(x, BlockCyclic):
            return x.grid.mesh
    return None

"""Negative floats: weights shifted by potentials, after Johnson, so that none is negative.

Floyd-Warshall on them would round a cycle of length about 0 to a negative one, and each pivot could double
the error. One set of potentials for the whole graph, in float64.
"""

from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from .. import _core
from ..algorithms.dense import rounding
from ..algorithms.errors import NegativeCycleError
from ..algorithms.potentials import NEGATIVE_CYCLE
from ._agree import reduced
from ._cyclic import BlockCyclic

_LOOKS = (16, 64, 256, 1024, 4096, 16384)
_NOBODY = 2**62


class Potentials:
    """h[v] is the length of a shortest path to v from anywhere; the weights become w[u, v] + h[u] - h[v].

    ``d`` is of float64 and came as ``dtype``. Raises NegativeCycleError on every rank: potentials come to
    rest within n rounds, or an edge of some cycle keeps lowering them by more than rounding does: 4 eps of
    the largest weight or potential.
    """

    def __init__(self, d: BlockCyclic, dtype: str, magnitude: float, threads: "int | None") -> None:
        self.d, self.threads = d, threads
        self.rows = torch.from_numpy(d.rows).to(d.local.device)
        self.columns = torch.from_numpy(d.columns).to(d.local.device)
        self.h = d.local.new_zeros(d.n)
        self.before = torch.full((d.n,), -1, dtype=torch.int64, device=d.local.device)
        looks = {r for r in _LOOKS if r <= d.n} | {d.n + 1}
        for done in range(1, d.n + 2):
            if not self._round() or (done in looks and self._rests(magnitude, dtype)):
                break
        else:
            node = self._node_on_cycle()
            raise NegativeCycleError(NEGATIVE_CYCLE, node)
        d.local += self.h[self.rows][:, None]
        d.local -= self.h[self.columns][None, :]
        d.local.clamp_(min=0)

    def undo(self) -> None:
        """The lengths of paths as they were."""
        self.d.local -= self.h[self.rows][:, None]
        self.d.local += self.h[self.columns][None, :]

    def _round(self) -> bool:
        """One product of h with the matrix; whether anything changed."""
        d, group = self.d, self.d.grid.everyone
        best, k = self.h.clone(), torch.full_like(self.before, _NOBODY)
        if d.local.numel():
            value, row = _core.matmul(
                self.h[self.rows][None], d.local, (True, True), "min_plus", False, 0, self.threads, None
            )
            best[self.columns] = torch.minimum(best[self.columns], value[0])
        if group is not None:
            dist.all_reduce(best, dist.ReduceOp.MIN, group=group)
        better = best < self.h
        if not bool(better.any()):
            return False
        if d.local.numel():
            mine = (value[0] == best[self.columns]) & (row[0] >= 0)
            k[self.columns] = torch.where(mine, self.rows[row[0].clamp(min=0).long()], _NOBODY)
        if group is not None:
            dist.all_reduce(k, dist.ReduceOp.MIN, group=group)
        self.h, self.before = best, torch.where(better, k, self.before)
        return True

    def _rests(self, magnitude: float, dtype: str) -> bool:
        """Whether no edge lowers h by more than rounding does."""
        allowed = 4 * rounding(dtype, 1) * max(magnitude, float(self.h.abs().max()))
        least = np.inf
        for i in range(0, len(self.rows), 1024):
            reduced_weights = self.d.local[i : i + 1024] + self.h[self.rows[i : i + 1024]][:, None]
            reduced_weights -= self.h[self.columns][None, :]
            if reduced_weights.numel():
                least = min(least, float(reduced_weights.min()))
        like = self.d.local
        return bool(reduced(least, dist.ReduceOp.MIN, self.d.grid.everyone, like, torch.float64) >= -allowed)

    def _node_on_cycle(self) -> int:
        """A node on the cycle of least length that the predecessors form."""
        d = self.d
        edges = torch.zeros_like(self.h)
        at = torch.from_numpy(np.searchsorted(d.rows, self.before.cpu().numpy()[d.columns])).to(edges.device)
        if d.local.numel():
            here = at.clamp(max=len(self.rows) - 1)
            mine = self.rows[here] == self.before[self.columns]
            edges[self.columns] = torch.where(
                mine, d.local[here, torch.arange(len(self.columns), device=edges.device)], 0
            )
        if d.grid.everyone is not None:
            dist.all_reduce(edges, group=d.grid.everyone)
        return least_cycle(self.before.cpu().numpy(), edges.double().cpu().numpy())


def least_cycle(before: Any, edges: Any) -> int:
    """A node on the cycle of least length; ``edges[v]`` is that of the edge from ``before[v]`` to v."""
    n = len(before)
    best, node = np.inf, 0
    color = np.zeros(n, np.int64)
    for first in range(n):
        v = first
        while v >= 0 and color[v] == 0:
            color[v] = first + 1
            v = int(before[v])
        if v < 0 or color[v] != first + 1:
            continue
        length, u = 0.0, v
        while True:
            length += float(edges[u])
            u = int(before[u])
            if u == v:
                break
        if length < best:
            best, node = length, v
    return node

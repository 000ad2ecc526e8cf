"""Closures and shortest paths over several processes."""

import operator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.tensor import DTensor

from .. import _core
from ..algorithms import ranges
from ..algorithms.checks import check_threads, flag, no_edge_bytes
from ..algorithms.closure import _refuse as refuse_weights
from ..algorithms.dense import Facts, refuse_strange, rounding
from ..algorithms.errors import DivergenceError, NegativeCycleError, PathOverflowError
from ..algorithms.potentials import NEGATIVE_CYCLE
from ..algorithms.progress import check_progress, reporting
from ._checkpoint import Checkpoint
from ._cyclic import BlockCyclic, check_block
from ._operands import Matrix, collective, dtype_of
from ._pivots import Diverged, Pivots, constants
from ._potentials import Potentials
from ._weights import Reading, first_beyond, load, predecessors

_EXPECTED = "weights above -infinity, and inf (or the highest integer, or no_edge) where there is no edge"
_GRAPH_DTYPES = ("float32", "float64", "int32", "int64")


def closure(
    d: Any,
    *,
    semiring: str,
    reflexive: bool = True,
    block: int | None = None,
    progress: Any = False,
    checkpoint: Any = None,
    checkpoint_every: int = 8,
    threads: int | None = None,
) -> Any:
    """Closure of a square matrix that is spread over processes; :func:`tropical_gemm.closure` has the
    meaning.

    Every rank of the matrix's mesh calls this with the same arguments.

    Parameters
    ----------
    d
        A DTensor (n, n) on a mesh of one or two axes, placed as Shard(0), Shard(1) or Replicate(), of any
        dtype that the semiring has; it is not changed. Or a :class:`BlockCyclic`, in which the result is
        made.
    semiring, reflexive, threads
        As for :func:`tropical_gemm.closure`.
    block
        The nodes of a pivot, and the side of the blocks that go round the ranks; None for a choice by n and
        the grid of ranks. That of ``d`` where it is a :class:`BlockCyclic`.
    progress
        On the first rank: True draws a bar on stderr, a function is called with (pivots done, of how many).
    checkpoint
        None, or a directory that all ranks share. Each ``checkpoint_every`` pivots all that has been done is
        written there, whole or not at all; a call with the same matrix on as many ranks goes on from there.
        The last one stays when the call has ended.

    Returns
    -------
    DTensor or BlockCyclic
        As ``d`` came, in the same dtype and placements. It depends on ``block``, not on the number or the
        arrangement of the ranks. Equal to :func:`tropical_gemm.closure` in every bit for integers, bool and
        the semirings that only select (max_min, min_max, or_and), and wherever sums or products do not round;
        other floats are within n roundings of the value of a best path.

    Raises
    ------
    TypeError, ValueError, DivergenceError, OverflowError
        As :func:`tropical_gemm.closure` does; and ValueError for shapes, dtypes and arguments that differ
        between ranks, for other placements, and for a checkpoint of another run. Every rank raises the same,
        or hears that it was on another rank.
    RuntimeError
        Where another process is gone; see docs/distributed.md for how soon.
    """

    def check() -> dict[str, Any]:
        if not isinstance(semiring, str):
            raise TypeError(
                f"semiring is of type {type(semiring).__name__}, expected a str such as 'min_plus'"
            )
        name = _core.semiring_name(semiring)
        constants(name, Matrix(d, "d").local)
        _check_how(progress, threads)
        return {"semiring": name, "reflexive": flag(reflexive, "reflexive")}

    job = _begin(d, "d", block, checkpoint, checkpoint_every, check)
    name = _core.semiring_name(semiring)
    facts = load(job.matrix, Reading(name, reflexive=reflexive))
    refuse_weights(facts, name)
    dtype = dtype_of(job.matrix.local)
    scale = facts.magnitude if name.endswith("plus") else 1.0
    kept = _before_overflow(job.matrix, name, facts)
    try:
        tolerance = rounding(dtype, job.matrix.n) * scale
        _run(job, job.matrix, name, None, _watches(name, facts), tolerance, progress, threads, "closure")
    except Diverged as walk:
        raise DivergenceError(
            "d has a closed walk through node {} that gets better each time round, so that it has no "
            f"{name} closure",
            walk.node,
        ) from None
    _check_overflow(job.matrix, kept, threads)
    return job.result(job.matrix)


def shortest_path(
    csgraph: Any,
    directed: bool = True,
    return_predecessors: bool = False,
    unweighted: bool = False,
    *,
    no_edge: Any = None,
    block: int | None = None,
    progress: Any = False,
    checkpoint: Any = None,
    checkpoint_every: int = 8,
    threads: int | None = None,
) -> Any:
    """Lengths of the shortest paths between all nodes of a graph that is spread over processes.

    By blocked Floyd-Warshall. Every rank of the matrix's mesh calls this with the same arguments.

    Parameters
    ----------
    csgraph
        The lengths of the edges: a DTensor (n, n) of float32, float64, int32 or int64 on a mesh of one or two
        axes, placed as Shard(0), Shard(1) or Replicate(); it is not changed. Or a :class:`BlockCyclic`, in
        which the distances are made.
    directed, return_predecessors, unweighted, no_edge, threads
        As for :func:`tropical_gemm.shortest_path`.
    block, progress, checkpoint, checkpoint_every
        As for :func:`closure`.

    Returns
    -------
    distances
        As ``csgraph`` came, in the same dtype and placements. It depends on ``block``, not on the number or
        the arrangement of the ranks. Integers, and floats whose sums do not round, are equal to those of
        :func:`tropical_gemm.shortest_path` in every bit; other floats are within n roundings of the
        length of a shortest path. Where weights are negative, all is computed in float64, and within n
        roundings of the largest potential that they are shifted by.
    predecessors
        int32, likewise. They always lead back, as those of :func:`tropical_gemm.shortest_path` do; among
        paths of one length they may be others.

    Raises
    ------
    TypeError, ValueError, NegativeCycleError, OverflowError
        As :func:`tropical_gemm.shortest_path` does, and as :func:`closure`.
    RuntimeError
        Where another process is gone.
    """

    def check() -> dict[str, Any]:
        dtype = dtype_of(Matrix(csgraph, "csgraph").local)
        if dtype not in _GRAPH_DTYPES:
            raise TypeError(f"csgraph has dtype {dtype}, expected one of {', '.join(_GRAPH_DTYPES)}")
        no_edge_bytes(no_edge, dtype)
        _check_how(progress, threads)
        return {
            "directed": flag(directed, "directed"),
            "return_predecessors": flag(return_predecessors, "return_predecessors"),
            "unweighted": flag(unweighted, "unweighted"),
            "no_edge": no_edge,
        }

    job = _begin(csgraph, "csgraph", block, checkpoint, checkpoint_every, check)
    d = job.matrix
    if no_edge is not None and d.local.is_floating_point():
        no_edge = float(no_edge)  # integers of any size
    facts = load(d, Reading("min_plus", no_edge, not directed, unweighted))
    refuse_strange(facts, "csgraph", _EXPECTED)
    kept = _before_overflow(d, "min_plus", facts)
    wide, potentials = d, None
    if facts.negative_at is not None and d.local.is_floating_point():
        wide = d.like(d.local.double())
        potentials = Potentials(wide, dtype_of(d.local), facts.magnitude, threads)
    pred = predecessors(wide) if return_predecessors else None
    try:
        watches = potentials is None and facts.negative_at is not None
        _run(job, wide, "min_plus", pred, watches, 0.0, progress, threads, "shortest paths")
    except Diverged as walk:
        raise NegativeCycleError(NEGATIVE_CYCLE, walk.node) from None
    if potentials is not None:
        potentials.undo()
        d.local.copy_(wide.local)
    _check_overflow(d, kept, threads)
    return (job.result(d), job.result(d.like(pred))) if pred is not None else job.result(d)


@dataclass
class _Job:
    matrix: BlockCyclic
    placements: Any  # of the result; None where the matrix came in blocks
    checkpoint: Any
    every: int

    def result(self, x: BlockCyclic) -> Any:
        return x if self.placements is None else x.to_dtensor(self.placements)


def _check_how(progress: Any, threads: Any) -> None:
    check_progress(progress)
    check_threads(threads)


def _begin(x: Any, argument: str, block: Any, checkpoint: Any, every: Any, check: Any) -> _Job:
    """The checks in which all ranks take part, and the matrix in blocks, to be written."""

    def checks(matrix: Matrix) -> dict[str, Any]:
        shape = matrix.shape
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(f"{argument} has shape {shape}, expected a square matrix (n, n)")
        check_block(block)
        if operator.index(every) < 1:
            raise ValueError(f"checkpoint_every is {every}, expected 1 at least")
        if isinstance(x, BlockCyclic) and block not in (None, x.block):
            raise ValueError(f"block is {block} and that of {argument} is {x.block}, expected the same")
        return {**check(), "block": block, "checkpoint": checkpoint, "checkpoint_every": every}

    collective({argument: x}, lambda matrices: checks(matrices[argument]))
    if isinstance(x, DTensor):
        made = BlockCyclic.from_dtensor(x, block=block)
        return _Job(made, x.placements, checkpoint, every)
    return _Job(x, None, checkpoint, every)


def _run(
    job: _Job,
    d: BlockCyclic,
    semiring: str,
    pred: "torch.Tensor | None",
    watches: bool,
    tolerance: float,
    progress: Any,
    threads: "int | None",
    what: str,
) -> None:
    if d.n == 0:
        return
    first, saved = 0, None
    if job.checkpoint is not None:
        saved = Checkpoint(job.checkpoint, job.every, d, pred, {"semiring": semiring, "tolerance": tolerance})
        first = saved.resume()
    pivots = Pivots(d, pred, semiring, watches=watches, tolerance=tolerance, threads=threads)
    with ExitStack() as stack:
        report = stack.enter_context(reporting(progress if d.grid.me == 0 else None, what))
        if saved is None:
            pivots.run(first, report)
        else:
            pivots.run(first, report, saved.save, saved.due)


def _watches(semiring: str, facts: Facts) -> bool:
    """Whether a closed walk could be better than staying."""
    if semiring == "min_plus":
        return facts.negative_at is not None
    if semiring == "max_mul":
        return facts.magnitude > 1
    return semiring in ("max_plus", "min_mul")


def _before_overflow(d: BlockCyclic, semiring: str, facts: Facts) -> "torch.Tensor | None":
    """Where there are edges, if values could leave the range of the dtype on some path; else None."""
    if ranges.is_safe(semiring, dtype_of(d.local), facts.magnitude, d.n):
        return None
    zero, _ = constants(semiring, d.local)
    return torch.ne(d.local, zero)


def _check_overflow(d: BlockCyclic, edges: "torch.Tensor | None", threads: "int | None") -> None:
    """Raises OverflowError where a pair that a path joins has no finite value."""
    if edges is None:
        return
    reach = d.like(edges)
    Pivots(reach, None, "or_and", watches=False, threads=threads).run()
    at = first_beyond(d, reach.local)
    if at is not None:
        raise PathOverflowError(
            f"the best path from node {{}} to node {{}} has a value that {dtype_of(d.local)} cannot hold; "
            "scale the weights or use a wider dtype",
            *at,
        )

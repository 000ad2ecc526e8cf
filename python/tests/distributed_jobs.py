"""What each rank does in the tests of tropical_gemm.distributed."""

import os
import signal
import time

import numpy as np
import oracle
import pytest
import torch
import tropical_gemm as tg
import tropical_gemm.distributed as tgd
from graphs import check_paths, none, random_graph
from torch import distributed
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from tropical_gemm.distributed import _pivots
from tropical_gemm.distributed._cyclic import wrapped
from tropical_gemm.distributed._layout import sharded

PLACEMENTS = {"0": Shard(0), "1": Shard(1), "r": Replicate()}


def mesh_of(shape):
    return init_device_mesh("cuda" if distributed.get_backend() == "nccl" else "cpu", tuple(shape))


def placed(names):
    """ "0r" is [Shard(0), Replicate()]."""
    return [PLACEMENTS[name] for name in names]


def mine(mesh, names, shape):
    """The rows and columns that this rank has."""
    me = mesh.mesh.flatten().tolist().index(distributed.get_rank())
    layout = sharded(mesh, placed(names), shape)[me]
    return np.ix_(layout.rows, layout.columns)


def spread(x, mesh, names):
    """A NumPy matrix as a DTensor, without a message."""
    part = np.ascontiguousarray(x[mine(mesh, names, x.shape)])
    local = (
        torch.from_numpy(part.view(np.int16)).view(torch.bfloat16)
        if x.dtype.name == "bfloat16"
        else torch.from_numpy(part)
    )
    return wrapped(local.to(mesh.device_type), mesh, placed(names), x.shape)


def check_part(x, expected, mesh, names, what="result"):
    """The part of this rank has the bits of that of ``expected``."""
    expected = np.asarray(expected)
    assert tuple(x.shape) == expected.shape
    local = x.to_local().cpu()
    got = (
        local.view(torch.int16).numpy().view(expected.dtype)
        if local.dtype == torch.bfloat16
        else local.numpy()
    )
    oracle.assert_same(got, np.ascontiguousarray(expected[mine(mesh, names, expected.shape)]), what)


def operands(rng, semiring, dtype, m, k, n):
    if dtype == "bool":
        return rng.random((m, k)) < 0.1, rng.random((k, n)) < 0.1
    a, b = rng.integers(-5, 6, (m, k)), rng.integers(-5, 6, (k, n))
    return (x.astype(oracle.DTYPES[dtype]) for x in (a, b))


def product(mesh, a, b, c, shape, semiring="max_plus", dtype="float32", seed=0):
    """A product of few values, so that ties are many, with ``a``, ``b`` and ``c`` placed so."""
    mesh = mesh_of(mesh)
    x, y = operands(np.random.default_rng(seed), semiring, dtype, *shape)
    expected = tg.matmul(x, y, semiring=semiring, return_argmax=True)
    made = tgd.matmul(spread(x, mesh, a), spread(y, mesh, b), semiring=semiring, return_argmax=True)
    assert list(made.values.placements) == placed(c)
    check_part(made.values, expected.values, mesh, c, "values")
    check_part(made.argmax, expected.argmax, mesh, c, "argmax")
    check_part(
        tgd.matmul(spread(x, mesh, a), spread(y, mesh, b), semiring=semiring), expected.values, mesh, c
    )


def special_product(mesh, names):
    """NaN, infinities and zeros of both signs, of which the first or the lowest k counts."""
    mesh = mesh_of(mesh)
    rng = np.random.default_rng(5)
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], np.float32)
    for semiring in ("max_plus", "min_plus", "max_mul", "min_mul", "max_min"):
        x = rng.choice(values, (9, 14), p=[0.02, 0.2, 0.2, 0.2, 0.2, 0.18])
        y = rng.choice(values, (14, 8), p=[0.02, 0.2, 0.2, 0.2, 0.2, 0.18])
        expected = tg.matmul(x, y, semiring=semiring, return_argmax=True)
        made = tgd.matmul(
            spread(x, mesh, names), spread(y, mesh, names), semiring=semiring, return_argmax=True
        )
        check_part(made.values, expected.values, mesh, names, semiring)
        check_part(made.argmax, expected.argmax, mesh, names, semiring)


def graph(seed, n, dtype, density=0.3, high=6, lowest=0):
    rng = np.random.default_rng(seed)
    weights = random_graph(rng, n, dtype, density, high)
    return np.where(weights == none(dtype), weights, weights + np.asarray(lowest, dtype)).astype(dtype)


def in_a_part_of_the_world():
    """Two meshes of two ranks each, of one axis and of two, at the same time."""
    whole = init_device_mesh("cpu", (2, 2, 1), mesh_dim_names=("x", "y", "z"))
    weights = graph(9, 40, "int32")
    expected = tg.shortest_path(weights)
    for axes, names in ((("x",), "0"), (("y",), "1"), (("y", "z"), "01")):
        mesh = whole[axes]
        check_part(tgd.shortest_path(spread(weights, mesh, names), block=9), expected, mesh, names)
        made = tgd.matmul(spread(weights, mesh, names), spread(weights, mesh, names))
        check_part(made, tg.matmul(weights, weights), mesh, names)


def paths(mesh, names, n, block, dtype="int32", seed=0, density=0.3, high=6, directed=True):
    """Distances as on one device, predecessors that lead back; every rank returns both."""
    mesh = mesh_of(mesh)
    weights = graph(seed, n, dtype, density, high)
    before = spread(weights, mesh, names)
    kept = before.to_local().clone()
    expected = tg.shortest_path(weights, "FW", directed=directed)
    d, p = tgd.shortest_path(before, directed, return_predecessors=True, block=block)
    check_part(d, expected, mesh, names)
    check_part(tgd.shortest_path(before, directed, block=block), expected, mesh, names)
    assert torch.equal(before.to_local(), kept)
    return collected(d, p, weights if directed else np.minimum(weights, weights.T))


def collected(d, p, weights, tolerance=0.0):
    """The whole results, on every rank; the first one walks all paths."""
    whole = [whole_of(x) for x in (d, p)]
    if distributed.get_rank() == 0:
        check_paths(weights, *whole, tolerance=tolerance)
    return [x.tobytes() for x in whole]


def whole_of(x):
    if isinstance(x, DTensor):
        x = tgd.BlockCyclic.from_dtensor(x, block=7)
    return x.to_dtensor([Replicate()] * x.grid.mesh.ndim).to_local().cpu().numpy()


def rounded_paths(mesh, names, n, block, negative):
    """Weights of very different sizes. Any arrangement of the ranks gives the same bits."""
    mesh = mesh_of(mesh)
    rng = np.random.default_rng(8)
    weights = (10.0 ** rng.uniform(-5, 5, (n, n))).astype(np.float32)
    weights[rng.random((n, n)) < 0.7] = np.inf
    if negative:
        h = rng.uniform(0, 1000, n).astype(np.float32)
        weights = weights + h[:, None] - h[None, :]
    expected = tg.shortest_path(weights, "FW")
    d, p = tgd.shortest_path(spread(weights, mesh, names), return_predecessors=True, block=block)
    finite = expected[np.isfinite(expected)]
    bound = n * np.finfo(np.float32).eps * max(np.abs(finite).max(), 1000)
    whole = whole_of(d)
    assert (np.isfinite(whole) == np.isfinite(expected)).all()
    assert np.abs(whole[np.isfinite(expected)] - finite).max() <= bound
    return collected(d, p, weights, bound)


def closures(mesh, names, n, block):
    """Every semiring and dtype, as on one device."""
    mesh = mesh_of(mesh)
    rng = np.random.default_rng(3)
    for semiring, dtypes in tg.info()["semirings"].items():
        for dtype in dtypes:
            if dtype == "bool":
                x = rng.random((n, n)) < 0.05
            else:
                low, high = {"max_plus": (-9, 1), "min_mul": (1, 2), "max_mul": (0, 2)}.get(semiring, (0, 9))
                x = rng.integers(low, high, (n, n)).astype(oracle.DTYPES[dtype])
            for reflexive in (True, False):
                expected = tg.closure(x, semiring=semiring, reflexive=reflexive)
                made = tgd.closure(
                    spread(x, mesh, names), semiring=semiring, reflexive=reflexive, block=block
                )
                check_part(made, expected, mesh, names, f"{semiring} {dtype} {reflexive}")


def rounded_closure(mesh, names):
    """Cycles of length 0 that rounding makes better than staying."""
    mesh = mesh_of(mesh)
    n = 40
    h = np.random.default_rng(4).uniform(-1, 1, n).astype(np.float32)
    x = np.full((n, n), -3, np.float32)
    around = np.arange(n), np.roll(np.arange(n), 1)
    x[around] = (h[:, None] - h[None, :])[around]
    expected = tg.closure(x, semiring="max_plus")
    made = whole_of(tgd.closure(spread(x, mesh, names), semiring="max_plus", block=9))
    assert (np.diag(made) == 0).all()
    assert np.abs(made - expected).max() <= 2 * n * np.finfo(np.float32).eps * np.abs(x).max()


def options(mesh, names):
    """unweighted, no_edge, several types, and blocks in place."""
    mesh = mesh_of(mesh)
    weights = graph(1, 23, "float64", 0.2)
    holes = np.where(np.isinf(weights), -1, weights)
    for how in ({"no_edge": -1}, {"no_edge": -1, "unweighted": True}, {"no_edge": -1, "directed": False}):
        made = tgd.shortest_path(spread(holes, mesh, names), block=5, **how)
        check_part(made, tg.shortest_path(holes, "FW", **how), mesh, names, str(how))
    nan = np.where(np.isinf(weights), np.nan, weights)
    made = tgd.shortest_path(spread(nan, mesh, names), no_edge=np.nan)
    check_part(made, tg.shortest_path(weights, "FW"), mesh, names)
    made = tgd.shortest_path(spread(weights, mesh, names), no_edge=2**70)
    check_part(made, tg.shortest_path(weights, "FW"), mesh, names)
    for n, block, text in ((-1, None, "n is -1"), (5, 0, "block is 0"), (5, -2, "block is -2")):
        with pytest.raises(ValueError, match=text):
            tgd.BlockCyclic.empty(n, mesh, torch.float32, block=block)
    blocks = tgd.BlockCyclic.from_dtensor(spread(weights, mesh, names), block=4)
    assert np.array_equal(blocks.local.cpu().numpy(), weights[np.ix_(blocks.rows, blocks.columns)])
    made, before = tgd.shortest_path(blocks, return_predecessors=True)
    assert made.local is blocks.local
    assert before.local.dtype == torch.int32
    check_part(made.to_dtensor(placed(names)), tg.shortest_path(weights, "FW"), mesh, names)


def weights_like(mesh, names, what):
    """A graph in which something is wrong, to be refused by every rank."""
    mesh = mesh_of(mesh)
    x = graph(2, 30, "int32" if what.startswith("int") else "float32", 0.3)
    if what == "nan":
        x[20, 4] = x[21, 0] = np.nan
    elif what == "infinity":
        x[7, 9] = -np.inf
    elif what.endswith("cycle"):
        x[3, 17] = x[17, 3] = -1
    elif what == "int overflow":
        x[:] = none("int32")
        x[np.arange(29), np.arange(1, 30)] = 2**28
    tgd.shortest_path(spread(x, mesh, names), block=8)


def wrong(mesh, what, rank):
    """One rank passes something else than the others do."""
    mesh = DeviceMesh("cpu", [1, 0]) if what == "order" else mesh_of(mesh)
    odd = distributed.get_rank() == rank
    n = mesh.size() * 3
    shape = (4 if (odd and what == "shape") or what == "long" else 3, n)
    dtype = torch.float64 if odd and what == "dtype" else torch.float32
    local = torch.zeros(shape, dtype=dtype, device=mesh.device_type)
    x = DTensor.from_local(local, mesh, [Shard(0)], run_check=False)
    if odd and what == "kind":
        x = local
    semiring = "min_max" if odd and what == "semiring" else "nothing" if what == "unknown" else "max_min"
    if odd and what == "no semiring":
        semiring = "\N{PALM TREE}" * 600
    block = -1 if odd and what == "block" else None
    if what in ("placed", "long", "blocks"):
        cyclic = tgd.BlockCyclic.from_dtensor(x)
        return tgd.matmul(cyclic, x) if what == "blocks" else cyclic.to_dtensor([Partial()])
    if what.startswith("product"):
        return tgd.matmul(
            x, DTensor.from_local(local[:, :2] if odd else local, mesh, [Shard(0)], run_check=False)
        )
    return tgd.closure(
        x,
        semiring=semiring,
        block=block,
        threads="two" if odd and what == "threads" else None,
        progress="bar" if what == "progress" else False,
    )


def progress(mesh, names):
    calls = []
    tgd.shortest_path(
        spread(graph(0, 40, "int32"), mesh_of(mesh), names),
        block=16,
        progress=lambda *done: calls.append(done),
    )
    return calls


def checkpointed(mesh, names, place, die_after=None):
    """A run that may kill itself on the way; the pivots that were computed, and the results."""
    mesh = mesh_of(mesh)
    weights = graph(6, 64, "float32", 0.1, 1000)
    steps = []
    advance = _pivots.Pivots._update

    def counted(self, panels, following):
        steps.append(panels.pivot)
        if die_after is not None and distributed.get_rank() == 0 and len(steps) > die_after:
            os.kill(os.getpid(), signal.SIGKILL)
        advance(self, panels, following)

    _pivots.Pivots._update = counted
    try:
        d, p = tgd.shortest_path(
            spread(weights, mesh, names),
            return_predecessors=True,
            block=8,
            checkpoint=place,
            checkpoint_every=2,
        )
    finally:
        _pivots.Pivots._update = advance
    return steps, collected(d, p, weights)


def other_checkpoint(mesh, names, place, seed):
    weights = graph(seed, 64, "float32", 0.1, 1000)
    tgd.shortest_path(
        spread(weights, mesh_of(mesh), names),
        return_predecessors=True,
        block=8,
        checkpoint=place,
        checkpoint_every=2,
    )


def dies(mesh, names, rank, silent=False):
    """One rank is killed in the middle, or says nothing more; the time that the others need to notice."""
    x = spread(graph(0, 200, "int32"), mesh_of(mesh), names)
    distributed.barrier()
    begin = time.perf_counter()

    advance = _pivots.Pivots._update

    def watched(self, panels, following):
        if distributed.get_rank() == rank and panels.pivot == 3:
            if silent:
                time.sleep(60)
            os.kill(os.getpid(), signal.SIGKILL)
        advance(self, panels, following)

    _pivots.Pivots._update = watched
    try:
        tgd.shortest_path(x, block=8)
    except Exception as error:
        return type(error).__name__, time.perf_counter() - begin
    return None

"""tropical_gemm.distributed on NCCL: a process for each of two GPUs."""

import itertools
import os

import pytest
import tropical_gemm as tg
from gpu import needs_two_gpus, torch

if not (torch.distributed.is_available() and torch.distributed.is_nccl_available()):
    pytest.skip("torch without torch.distributed and NCCL", allow_module_level=True)

import distributed_jobs as jobs
from team import Team
from test_distributed import product_placement

pytestmark = needs_two_gpus


@pytest.fixture(scope="module")
def team():
    made = Team(2, "nccl")
    yield made
    made.close()


def test_products(team):
    for i, (a, b) in enumerate(itertools.product("01r", repeat=2)):
        team.run(jobs.product, mesh=(2,), a=a, b=b, c=product_placement(a, b), shape=(33, 31, 29), seed=i)
    for semiring, dtypes in tg.info()["semirings"].items():
        for dtype in dtypes:
            team.run(
                jobs.product, mesh=(2, 1), a="01", b="01", c="01", shape=(40, 50, 30), semiring=semiring,
                dtype=dtype,
            )  # fmt: skip
    team.run(jobs.product, mesh=(2,), a="0", b="0", c="0", shape=(300, 9000, 200))
    team.run(jobs.special_product, mesh=(2,), names="1")


@pytest.mark.parametrize("mesh", [(2,), (2, 1)])
def test_paths(team, mesh):
    names = "0" * len(mesh)
    for n, block in ((0, 4), (37, 5), (300, 70), (700, 128)):
        got = team.run(jobs.paths, mesh=mesh, names=names, n=n, block=block, density=0.1, high=2)
        assert got[0] == got[1]
    for negative in (False, True):
        team.run(jobs.rounded_paths, mesh=mesh, names=names, n=90, block=20, negative=negative)
    team.run(jobs.options, mesh=mesh, names=names)
    team.run(jobs.closures, mesh=mesh, names=names, n=21, block=8)


def test_all_ranks_refuse(team):
    for what in ("nan", "int cycle", "int overflow"):
        assert len(set(team.ask(jobs.weights_like, mesh=(2,), names="0", what=what))) == 1
    for what in ("shape", "dtype", "kind"):
        answers = team.ask(jobs.wrong, mesh=(2,), what=what, rank=1)
        assert len(set(answers)) == 1
        assert answers[0][0] != "done"


def test_a_rank_that_dies(monkeypatch):
    """Where waiting blocks, the others raise within the timeout."""
    monkeypatch.setitem(os.environ, "TORCH_NCCL_BLOCKING_WAIT", "1")
    team = Team(2, "nccl", seconds=10)
    for pipe in team.pipes:
        pipe.send((jobs.__name__, "dies", {"mesh": (2,), "names": "0", "rank": 1}))
    assert team.pipes[0].poll(60)
    kind, value = team.pipes[0].recv()
    assert kind == "done"
    assert value is not None
    for process in team.processes:
        process.kill()

"""tropical_gemm.distributed on gloo: processes of one machine."""

import itertools

import numpy as np
import pytest
import tropical_gemm as tg

torch = pytest.importorskip("torch")
if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
    pytest.skip("torch without torch.distributed and gloo", allow_module_level=True)

import distributed_jobs as jobs  # noqa: E402
from team import Team  # noqa: E402

MESHES = {1: [(1,)], 2: [(2,), (2, 1)], 3: [(3,), (3, 1)], 4: [(4,), (2, 2)]}


@pytest.fixture(scope="module", params=MESHES)
def team(request):
    made = Team(request.param)
    made.size = request.param
    yield made
    made.close()


@pytest.fixture(scope="module")
def two():
    made = Team(2)
    yield made
    made.close()


def meshes(team):
    return MESHES[team.size]


def product_placement(a, b):
    """Where C is, by the rules in the docstring."""
    if all(x != "1" and y != "0" and (x, y) != ("0", "1") for x, y in zip(a, b, strict=True)):
        return "".join("0" if x == "0" else "1" if y == "1" else "r" for x, y in zip(a, b, strict=True))
    if len(a) == 2:
        return "01"
    return "1" if a == "1" and b != "0" else "0"


def test_products_of_every_placement(team):
    for mesh in meshes(team):
        names = ["".join(x) for x in itertools.product("01r", repeat=len(mesh))]
        for i, (a, b) in enumerate(itertools.product(names, repeat=2)):
            team.run(jobs.product, mesh=mesh, a=a, b=b, c=product_placement(a, b), shape=(13, 11, 9), seed=i)


@pytest.mark.parametrize("shape", [(0, 5, 4), (5, 0, 4), (5, 4, 0), (1, 1, 1), (2, 3, 1), (70, 130, 65)])
def test_products_of_uneven_parts(team, shape):
    for mesh in meshes(team):
        names = "0" if len(mesh) == 1 else "01"
        team.run(jobs.product, mesh=mesh, a=names, b=names, c=names, shape=shape)


def test_products_of_every_type(team):
    for mesh in meshes(team):
        names = "1" if len(mesh) == 1 else "01"
        for semiring, dtypes in tg.info()["semirings"].items():
            for dtype in dtypes:
                team.run(
                    jobs.product, mesh=mesh, a=names, b=names, c=names, shape=(10, 12, 7), semiring=semiring,
                    dtype=dtype,
                )  # fmt: skip


def test_products_with_nan_and_infinities(team):
    for mesh in meshes(team):
        team.run(jobs.special_product, mesh=mesh, names="1" if len(mesh) == 1 else "01")


@pytest.mark.parametrize(("n", "block"), [(0, 4), (1, 1), (37, 8), (37, 5), (20, 64), (150, 70), (130, None)])
def test_paths_are_those_of_one_device(team, n, block):
    """Ties, zeros and cycles of length 0. Neither the ranks nor their arrangement change a bit."""
    results = []
    for mesh in meshes(team):
        for names in {"0" * len(mesh), "1" + "0" * (len(mesh) - 1)}:
            for high in (1, 2, 6):
                got = team.run(jobs.paths, mesh=mesh, names=names, n=n, block=block, high=high, seed=n)
                results.append((high, got))
    if block is not None:
        alone = {high: got[0] for high, got in results}
        assert all(x == alone[high] for high, got in results for x in got)


def test_meshes_of_some_ranks(team):
    if team.size == 4:
        team.run(jobs.in_a_part_of_the_world)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_paths_of_every_type(team, dtype):
    for mesh in meshes(team):
        team.run(
            jobs.paths,
            mesh=mesh,
            names="r" * len(mesh),
            n=30,
            block=7,
            dtype=dtype,
            directed=False,
            density=0.1,
        )


_BITS = {}


@pytest.mark.parametrize("negative", [False, True])
def test_rounded_paths_lead_back(team, negative):
    for mesh in meshes(team):
        got = team.run(
            jobs.rounded_paths, mesh=mesh, names="0" * len(mesh), n=90, block=20, negative=negative
        )
        assert all(x == _BITS.setdefault(negative, got[0]) for x in got)


def test_closures(team):
    for mesh in meshes(team):
        team.run(jobs.closures, mesh=mesh, names="0" * len(mesh), n=21, block=8)
        team.run(jobs.rounded_closure, mesh=mesh, names="0" * len(mesh))


def test_options(team):
    for mesh in meshes(team):
        team.run(jobs.options, mesh=mesh, names="1" + "0" * (len(mesh) - 1))


@pytest.mark.parametrize(
    ("what", "kind", "text"),
    [
        ("nan", "EdgeError", "csgraph is NaN at (20, 4)"),
        ("infinity", "EdgeError", "csgraph at (7, 9) is the infinity"),
        ("cycle", "NegativeCycleError", "csgraph has a cycle of negative length through node"),
        ("int cycle", "NegativeCycleError", "csgraph has a cycle of negative length through node"),
        ("int overflow", "PathOverflowError", "the best path from node 0 to node 8 has a value"),
    ],
)
def test_all_ranks_refuse_a_graph(team, what, kind, text):
    for mesh in meshes(team):
        answers = team.ask(jobs.weights_like, mesh=mesh, names="0" * len(mesh), what=what)
        assert len(set(answers)) == 1
        assert answers[0][0] == kind
        assert text in answers[0][1]


@pytest.mark.parametrize(
    ("what", "kind", "text"),
    [
        (
            "shape",
            "ValueError",
            "on rank 1: d has shape (8, 6), expected a square matrix (n, n)",
        ),
        (
            "dtype",
            "ValueError",
            "the dtype of d differs between the ranks: float32 on rank 0; float64 on rank 1",
        ),
        (
            "kind",
            "TypeError",
            "on rank 1: d is of type torch.Tensor, expected a torch.distributed.tensor.DTensor",
        ),
        (
            "semiring",
            "ValueError",
            "semiring differs between the ranks: max_min on rank 0; min_max on rank 1",
        ),
        ("block", "ValueError", "on rank 1: block is -1, expected 1 at least"),
        ("no semiring", "ValueError", "on rank 1: semiring is '"),
        ("threads", "TypeError", "on rank 1: "),
        ("progress", "TypeError", "progress is of type str, expected a bool or a function"),
        ("placed", "ValueError", "expected Shard(0), Shard(1) or Replicate()"),
        ("long", "ValueError", "x has shape (8, 6), expected a square matrix (n, n)"),
        ("blocks", "TypeError", "a is a BlockCyclic, expected a torch.distributed.tensor.DTensor"),
        ("unknown", "ValueError", "nothing"),
        ("order", "ValueError", "d is on a mesh of the ranks [1, 0], expected ascending ones"),
        (
            "product",
            "ValueError",
            "the shape of b differs between the ranks: (6, 6) on rank 0; (6, 2) on rank 1",
        ),
    ],
)
def test_all_ranks_refuse_what_is_wrong_on_one(two, what, kind, text):
    """(A wrong shape of one part shows first where it does not fit the whole.)"""
    answers = two.ask(jobs.wrong, mesh=(2,), what=what, rank=1)
    assert len(set(answers)) == 1, answers
    assert answers[0][0] == kind
    assert text in answers[0][1]
    # The team is as able as before.
    two.run(jobs.product, mesh=(2,), a="0", b="0", c="0", shape=(4, 4, 4))


def test_progress_is_told_on_the_first_rank(two):
    assert two.run(jobs.progress, mesh=(2,), names="0") == [[(1, 3), (2, 3), (3, 3)], []]


@pytest.mark.parametrize(("size", "silent"), [(2, False), (4, False), (4, True)])
def test_a_rank_that_dies(size, silent):
    """The others raise, within the timeout, which is that of rows and columns of ranks too."""
    team = Team(size, seconds=20)
    team.run(jobs.progress, mesh=(size,), names="0")  # all have started
    for pipe in team.pipes:
        pipe.send((jobs.__name__, "dies", {"mesh": (size,), "names": "0", "rank": 1, "silent": silent}))
    for rank in set(range(size)) - {1}:
        assert team.pipes[rank].poll(60), f"rank {rank} hangs"
        kind, value = team.pipes[rank].recv()
        assert kind == "done"
        assert value is not None, f"rank {rank} noticed nothing"
        assert value[1] < 40
    if not silent:
        team.processes[1].join(10)
        assert team.processes[1].exitcode == -9
    for process in team.processes:
        process.kill()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
def test_a_fingerprint_tells_matrices_apart(dtype):
    from tropical_gemm.distributed._checkpoint import fingerprint
    from tropical_gemm.distributed._cyclic import BlockCyclic
    from tropical_gemm.distributed._grid import Grid

    alone = Grid(None, 1, 1, 0, 0, (None, None, None))
    weights = torch.arange(1, 65).reshape(8, 8).to(getattr(torch, dtype))
    others = [weights, weights.t().contiguous(), ~weights if dtype == "bool" else -weights]
    for i in range(64):
        changed = weights.clone().flatten()
        changed[i] = ~changed[i] if dtype == "bool" else -changed[i]
        others.append(changed.view(8, 8))
    expected = len({x.numpy().tobytes() for x in others})
    assert len({fingerprint(BlockCyclic(x, 8, 8, alone)) for x in others}) == expected


def test_a_killed_run_resumes(tmp_path):
    """Every second pivot of 8 is on disk: the fourth is the last that a run which dies in the sixth left."""
    place = tmp_path / "run"
    team = Team(2, seconds=20)
    ((steps, expected), _) = team.run(jobs.checkpointed, mesh=(2,), names="0", place=str(tmp_path / "other"))
    assert steps == list(range(8))
    for pipe in team.pipes:
        pipe.send(
            (jobs.__name__, "checkpointed", {"mesh": (2,), "names": "0", "place": str(place), "die_after": 5})
        )
    team.processes[0].join(60)
    assert team.processes[0].exitcode == -9
    for process in team.processes:
        process.kill()
    assert sorted(p.name for p in place.iterdir()) == ["pivots-4"]
    # What a run that was killed while it wrote leaves is not read.
    (place / ".pivots-6.part").mkdir()
    team = Team(2)
    for steps, got in team.run(jobs.checkpointed, mesh=(2,), names="0", place=str(place)):
        assert steps == [4, 5, 6, 7]
        assert got == expected
    assert sorted(p.name for p in place.iterdir()) == ["pivots-8"]
    assert team.run(jobs.checkpointed, mesh=(2,), names="0", place=str(place)) == [([], expected)] * 2
    answers = team.ask(jobs.other_checkpoint, mesh=(2,), names="0", place=str(place), seed=7)
    assert len(set(answers)) == 1
    assert answers[0][0] == "ValueError"
    assert "is of a run with weights = " in answers[0][1]
    file = place / "pivots-8" / "distances-1.bin"
    file.write_bytes(file.read_bytes()[:-1])
    answers = team.ask(jobs.checkpointed, mesh=(2,), names="0", place=str(place))
    assert len(set(answers)) == 1
    assert "distances-1.bin has 8191 bytes, expected 8192" in answers[0][1]
    team.close()


def test_without_a_process_group_a_tensor_is_refused():
    import tropical_gemm.distributed as tgd

    with pytest.raises(TypeError, match=r"a is of type numpy\.ndarray, expected a torch\.distributed"):
        tgd.matmul(np.zeros((2, 2)), np.zeros((2, 2)))

"""``python -m tropical_gemm.distributed``, alone and by torchrun."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tropical_gemm as tg
from graphs import DATA, check_paths, needs_data, none, random_graph

torch = pytest.importorskip("torch")
pytest.importorskip("typer")
if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
    pytest.skip("torch without torch.distributed and gloo", allow_module_level=True)


def command(*arguments, ranks=1):
    torchrun = (
        ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks > 1 else []
    )
    call = [
        sys.executable,
        *torchrun,
        "-m",
        "tropical_gemm.distributed",
        "shortest-paths",
        *map(str, arguments),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(call, capture_output=True, text=True, timeout=300, env=environment, check=False)


def write_graph(path, weights):
    """As DIMACS has it: nodes from 1."""
    rows, columns = np.nonzero(weights != none(weights.dtype))
    lines = [f"p sp {len(weights)} {len(rows)}"]
    lines += [f"a {i + 1} {j + 1} {weights[i, j]}" for i, j in zip(rows, columns, strict=True)]
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_graph(tmp_path, ranks):
    weights = random_graph(np.random.default_rng(0), 50, "int32", 0.1, 9)
    write_graph(tmp_path / "graph.gr", weights)
    before = tmp_path / "before.npy"
    done = command(
        tmp_path / "graph.gr", "-o", tmp_path / "out", "--predecessors", before, "--block", 8, "--json",
        "--checkpoint", tmp_path / "saved", "--checkpoint-every", 2, ranks=ranks,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["nodes"] == 50
    assert report["ranks"] == f"1 x {ranks}"
    distances = np.load(tmp_path / "out.npy")
    np.testing.assert_array_equal(distances, tg.shortest_path(weights))
    assert distances.dtype == np.int32
    check_paths(weights, distances, np.load(before))
    np.testing.assert_array_equal(np.load(tmp_path / "out.nodes.npy"), np.arange(1, 51))
    assert {p.name for p in tmp_path.iterdir()} == {"graph.gr", "out.npy", "before.npy", "out.nodes.npy"}


def test_a_matrix_and_undirected_edges(tmp_path):
    rng = np.random.default_rng(1)
    np.save(tmp_path / "matrix.npy", np.where(rng.random((20, 20)) < 0.3, rng.random((20, 20)), 0))
    done = command(tmp_path / "matrix.npy", "-o", tmp_path / "d.npy", "--no-edge", 0, "--undirected", ranks=2)
    assert done.returncode == 0, done.stderr
    expected = tg.shortest_path(np.load(tmp_path / "matrix.npy"), directed=False, no_edge=0)
    np.testing.assert_allclose(np.load(tmp_path / "d.npy"), expected, rtol=1e-14)
    np.save(tmp_path / "bools.npy", rng.random((20, 20)) < 0.1)
    done = command(tmp_path / "bools.npy", "-o", tmp_path / "d.npy", "--unweighted")
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(
        np.load(tmp_path / "d.npy"), tg.shortest_path(np.load(tmp_path / "bools.npy"))
    )


@needs_data
def test_rome(tmp_path):
    done = command(DATA / "rome99.gr", "-o", tmp_path / "d.npy", "--device", "cpu", ranks=2)
    assert done.returncode == 0, done.stderr
    alone = subprocess.run(
        [sys.executable, "-c", "from tropical_gemm.cli import main; main()", "shortest-paths",
         str(DATA / "rome99.gr"), "-o", str(tmp_path / "alone.npy")],
        check=True, timeout=300,
    )  # fmt: skip
    assert alone.returncode == 0
    assert (tmp_path / "d.npy").read_bytes() == (tmp_path / "alone.npy").read_bytes()


@pytest.mark.parametrize(
    ("graph", "arguments", "code", "text"),
    [
        (None, ["-o", "out"], 3, "No such file"),
        ("p sp 2 1\na 1 3 1\n", ["-o", "out"], 3, "graph.gr:2: 'a 1 3 1', expected nodes from 1 to 2"),
        (
            "p sp 2 2\na 1 2 1\na 2 1 -2\n",
            ["-o", "out"],
            4,
            "graph.gr: the graph has a cycle of negative length through node 1",
        ),
        ("p sp 2 1\na 1 2 1\n", ["-o", "out", "--no-edge", "0"], 2, "--no-edge is for dense matrices"),
        ("p sp 2 1\na 1 2 1\n", ["-o", "nowhere/out"], 3, "there is no directory"),
        ("p sp 2 1\na 1 2 1\n", ["-o", "out.txt"], 2, "expected a name that ends with .npy"),
        ("p sp 2 1\na 1 2 1\n", ["-o", "out", "--device", "abacus"], 2, "expected auto, cpu or cuda"),
        ("p sp 2 1\na 1 2 1\n", ["-o", "out", "--timeout", "nan"], 2, "--timeout is nan"),
    ],
)
def test_what_goes_wrong(tmp_path, monkeypatch, graph, arguments, code, text):
    monkeypatch.chdir(tmp_path)
    if graph is not None:
        (tmp_path / "graph.gr").write_text(graph)
    done = command("graph.gr", *arguments)
    assert done.returncode == code, done.stderr
    assert text in done.stderr
    assert not list(tmp_path.glob("*.npy"))


def test_one_process_that_fails_alone_is_heard(tmp_path):
    write_graph(tmp_path / "graph.gr", np.array([[9, 1], [1, 9]], np.int32))
    (tmp_path / "wrapped.py").write_text("""
import os
import tropical_gemm.distributed._command as command

def fails(*_, **__):
    raise MemoryError("no room for it")

if os.environ["RANK"] == "1":
    command.shortest_path = fails
command.app()
""")
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
         tmp_path / "wrapped.py", "shortest-paths", tmp_path / "graph.gr", "-o", tmp_path / "out",
         "--device", "cpu", "--timeout", "20"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "process 1: tropical-gemm: no room for it" in done.stderr


def test_all_ranks_fail_with_one_message(tmp_path):
    write_graph(tmp_path / "graph.gr", np.array([[9, -1], [-1, 9]], np.int32))
    done = command(tmp_path / "graph.gr", "-o", tmp_path / "out", ranks=2)
    assert done.returncode != 0
    assert done.stderr.count("graph.gr: the graph has a cycle of negative length through node") == 1
    assert not list(tmp_path.glob("*.npy"))

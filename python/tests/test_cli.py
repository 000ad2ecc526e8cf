"""The command: readers, results, refusals, exit codes."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import tropical_gemm as tg
from graphs import DATA, needs_data
from scipy.sparse import coo_array, save_npz

pytest.importorskip("typer")
from tropical_gemm.algorithms import checks
from tropical_gemm.cli import app as cli
from typer.testing import CliRunner


def run(*arguments):
    result = CliRunner().invoke(cli.app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def write(path, text):
    path.write_text(text)
    return path


GR = "c a comment\np sp 4 5\na 1 2 7\na 1 2 5\na 2 3 0\na 3 1 2\na 3 4 1\n"
MTX = "%%MatrixMarket matrix coordinate integer general\n% note\n4 4 5\n1 2 7\n1 2 5\n2 3 0\n3 1 2\n3 4 1\n"
EDGES = "# FromNodeId ToNodeId\n10\t20 5\n20 30 0\n30 10 2\n30 40 1\n10 20 7\n"
NONE = np.iinfo("int32").max
EXPECTED = [[0, 5, 5, 6], [2, 0, 0, 1], [2, 7, 0, 1], [NONE, NONE, NONE, 0]]


@pytest.mark.parametrize(("name", "text", "labels"), [
    ("g.gr", "\ufeff" + GR, [1, 2, 3, 4]), ("g.mtx", MTX, [1, 2, 3, 4]), ("g.txt", EDGES, [10, 20, 30, 40]),
])  # fmt: skip
def test_formats(tmp_path, name, text, labels):
    """Parallel edges take the minimum, edges of weight 0 are edges, nodes keep their names."""
    graph, out, before = write(tmp_path / name, text), tmp_path / "d.npy", tmp_path / "p.npy"
    result = run("shortest-paths", graph, "-o", out, "--predecessors", before, "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["nodes"] == 4
    assert report["edges"] == 4
    assert report["dtype"] == "int32"
    assert np.load(out).tolist() == EXPECTED
    assert np.load(tmp_path / "d.nodes.npy").tolist() == labels
    assert report["files"]["nodes"] == str(tmp_path / "d.nodes.npy")
    assert tg.reconstruct_path(0, 3, np.load(before)) == [0, 1, 2, 3]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, "d.npy", "d.nodes.npy", "p.npy"])

    result = run("shortest-paths", graph, "--from", labels[0], "--to", labels[3], "--json")
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["length"] == 6
    assert report["path"] == labels
    result = run("shortest-paths", graph, "--from", labels[3], "--to", labels[0])
    assert result.exit_code == 5
    assert "no path" in result.stderr
    result = run(
        "shortest-paths", graph, "--from", labels[3], "--to", labels[0], "--undirected", "--unweighted"
    )
    assert result.exit_code == 0
    assert "length: 2" in result.stdout
    result = run("shortest-paths", graph, "-o", out, "--from", labels[1])
    assert np.load(out).tolist() == EXPECTED[1]


def test_plain_names_need_no_map(tmp_path):
    graph, out = write(tmp_path / "g.edges", "0 1\n1 2\n"), tmp_path / "d.npy"
    assert run("shortest-paths", graph, "-o", out).exit_code == 0
    assert np.load(out)[0].tolist() == [0, 1, 2]
    assert not (tmp_path / "d.nodes.npy").exists()


def test_symmetric_real_and_pattern(tmp_path):
    head = "%%MatrixMarket matrix coordinate "
    out = tmp_path / "d.npy"
    run(
        "shortest-paths",
        write(tmp_path / "s.mtx", head + "real symmetric\n3 3 2\n2 1 0.5\n3 2 1\n"),
        "-o",
        out,
    )
    assert np.load(out).tolist() == [[0, 0.5, 1.5], [0.5, 0, 1], [1.5, 1, 0]]
    run("shortest-paths", write(tmp_path / "p.mtx", head + "pattern general\n2 2 1\n1 2\n"), "-o", out)
    assert np.load(out).tolist() == [[0, 1], [NONE, 0]]


def test_arrays(tmp_path):
    matrix, out = np.array([[0, 3.0], [np.inf, 0]]), tmp_path / "d.npy"
    np.save(tmp_path / "m.npy", matrix)
    np.savez(tmp_path / "m.npz", graph=matrix)
    save_npz(tmp_path / "s.npz", coo_array(([3.0], ([0], [1])), shape=(2, 2)).tocsr())
    for name in ("m.npy", "m.npz", "s.npz"):
        assert run("shortest-paths", tmp_path / name, "-o", out).exit_code == 0
        assert np.load(out).tolist() == [[0, 3], [np.inf, 0]]
    np.save(tmp_path / "z.npy", np.array([[0.0, 2], [0, 0]]))
    run("shortest-paths", tmp_path / "z.npy", "-o", out, "--no-edge", 0)
    assert np.load(out).tolist() == [[0, 2], [np.inf, 0]]


@pytest.mark.parametrize(("name", "text", "line", "expected"), [
    ("g.gr", "p sp 2 1\na 1 2\n", 2, "expected 'a FROM TO WEIGHT'"),
    ("g.gr", "p sp 2 1\na 1 2 x\n", 2, "expected 'a FROM TO WEIGHT'"),
    ("g.gr", "p sp 2 1\na 1 2 nan\n", 2, "expected 'a FROM TO WEIGHT'"),
    ("g.gr", "p sp 2 1\na 1 3 4\n", 2, "expected nodes from 1 to 2"),
    ("g.gr", "a 1 2 3\n", 1, "before the 'p sp"),
    ("g.gr", "p sp 2\n", 1, "expected 'p sp NODES ARCS'"),
    ("g.gr", "p sp 2 0\np sp 2 0\n", 2, "second 'p' line"),
    ("g.gr", "p sp 2 2\na 1 2 3\n", 2, "after 1 arcs, expected 2"),
    ("g.gr", "hello\n", 1, "'c', 'p' or 'a'"),
    ("g.gr", "", 1, "expected a line 'p sp"),
    ("g.mtx", "1 2 3\n", 1, "%%MatrixMarket"),
    ("g.mtx", "%%MatrixMarket matrix array real general\n", 1, "coordinate"),
    ("g.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 1\n", 2, "expected a square one"),
    ("g.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 1\n", 3, "indices from 1 to 2"),
    ("g.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 1\n", 3, "after 1 entries"),
    ("g.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1\n2 1 1\n", 4, "more than"),
    ("g.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2 1\n", 3, "'ROW COLUMN'"),
    ("g.txt", "0 1\n0 x\n", 2, "whole numbers"),
    ("g.txt", "0 1\n0 1 2\n", 2, "2 columns as in the lines before"),
    ("g.txt", "0 -1\n", 1, "from 0"),
    ("g.txt", "0\n", 1, "'FROM TO' or 'FROM TO WEIGHT'"),
    ("g.txt", "0 1 1_0\n", 1, "'FROM TO WEIGHT'"),
    ("g.txt", "0 1_0\n", 1, "whole numbers"),
    ("g.gr", "p sp 2 1\na 1 2 1_0\n", 2, "expected 'a FROM TO WEIGHT'"),
    ("g.gr", "p sp 1_0 1\n", 1, "expected 'p sp NODES ARCS'"),
    ("g.gr", "p sp 2 1\na 1 2 \u0663\n", 2, "expected 'a FROM TO WEIGHT'"),
    ("g.mtx", "%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 2 1.5\n", 3, "WEIGHT"),
])  # fmt: skip
def test_malformed_files(tmp_path, name, text, line, expected):
    graph, out = write(tmp_path / name, text), tmp_path / "d.npy"
    out.write_bytes(b"as before")
    result = run("shortest-paths", graph, "-o", out)
    assert result.exit_code == 3
    assert f"{graph}:{line}: " in result.stderr
    assert expected in result.stderr
    assert out.read_bytes() == b"as before"


def test_malformed_arrays_and_missing_files(tmp_path):
    for name, text in (("a.npy", "no array"), ("a.npz", "no archive")):
        result = run("shortest-paths", write(tmp_path / name, text), "-o", tmp_path / "d.npy")
        assert result.exit_code == 3
        assert f"{tmp_path / name}: " in result.stderr
    np.save(tmp_path / "wide.npy", np.ones((2, 3)))
    result = run("shortest-paths", tmp_path / "wide.npy", "-o", tmp_path / "d.npy")
    assert result.exit_code == 3
    assert "square" in result.stderr
    assert run("shortest-paths", tmp_path / "gone.gr", "-o", tmp_path / "d.npy").exit_code == 3
    graph = write(tmp_path / "g.txt", "0 1\n")
    assert run("shortest-paths", graph, "-o", tmp_path / "nowhere" / "d.npy").exit_code == 3


def test_usage(tmp_path):
    graph = write(tmp_path / "g.txt", "0 1\n1 0\n")
    for arguments, text in (
        ((), "-o OUT.npy"),
        (("--to", 1), "--to needs --from"),
        (("--from", 5, "--to", 1), "no node 5"),
        (("-o", tmp_path / "d.txt"), ".npy"),
        (("--from", 0, "--to", 1, "--predecessors", tmp_path / "p.npy"), "--predecessors needs -o"),
        (("-o", tmp_path / "d.npy", "--predecessors", tmp_path / "d.npy"), "of its own"),
        (("-o", tmp_path / "d.npy", "--method", "X"), "method is 'X'"),
    ):
        result = run("shortest-paths", graph, *arguments)
        assert result.exit_code == 2, arguments
        assert text in result.stderr
    assert run("shortest-paths").exit_code == 2


def test_no_shortest_paths(tmp_path):
    out = tmp_path / "d.npy"
    graph = write(tmp_path / "g.txt", "0 1 1\n1 0 -2\n2 2 1\n")
    result = run("shortest-paths", graph, "-o", out)
    assert result.exit_code == 4
    assert "negative" in result.stderr
    assert not out.exists()
    assert run("shortest-paths", graph, "-o", out, "--negative-cycles", "ignore").exit_code == 0
    assert np.load(out)[2].tolist() == [NONE, NONE, 0]
    far = write(tmp_path / "far.txt", f"0 1 {2**62}\n1 2 {2**62}\n")
    assert run("shortest-paths", far, "-o", out).exit_code == 4


@pytest.fixture
def earlier(tmp_path):
    """Outputs of an earlier run, which named its nodes."""
    places = [tmp_path / name for name in ("d.npy", "p.npy", "d.nodes.npy")]
    for place in places:
        place.write_bytes(place.name.encode())
    return places


def held(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


@pytest.mark.parametrize("labels", ["0 1\n", "7 9\n"])
@pytest.mark.parametrize("fails_at", ["save", "fsync", "replace"])
@pytest.mark.parametrize("existing", [True, False])
def test_outputs_are_written_whole_or_not_at_all(tmp_path, monkeypatch, earlier, labels, fails_at, existing):
    """As a set: whichever step fails, at each of its calls, what was there remains, and nothing else."""
    graph, (out, before, _) = write(tmp_path / "g.txt", labels), earlier
    if not existing:
        for place in earlier:
            place.unlink()
    there = held(tmp_path)
    module = np if fails_at == "save" else os
    works = getattr(module, fails_at)
    for count in (1, 2, 3) if labels == "7 9\n" else (1, 2):
        calls = []

        def failing(*arguments, calls=calls, count=count, **options):
            calls.append(1)
            if len(calls) == count:
                raise OSError(28, "No space left on device")
            return works(*arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(module, fails_at, failing)
            result = run("shortest-paths", graph, "-o", out, "--predecessors", before)
        assert result.exit_code == 3
        assert "No space left" in result.stderr
        assert held(tmp_path) == there


def test_no_map_of_an_earlier_run_stays(tmp_path, earlier):
    graph, (out, _, nodes) = write(tmp_path / "g.txt", "0 1\n"), earlier
    result = run("shortest-paths", graph, "-o", out, "--json")
    assert json.loads(result.stdout)["files"] == {"distances": str(out)}
    assert not nodes.exists()
    assert np.load(out).tolist() == [[0, 1], [NONE, 0]]


def test_outputs_that_cannot_be_written(tmp_path):
    graph, out = write(tmp_path / "g.txt", "5 6\n"), tmp_path / "d.npy"
    np.save(tmp_path / "a.npy", np.ones((2, 2)))
    for name in ("p.npy", "d.nodes.npy"):
        (tmp_path / name).mkdir()
        result = run("shortest-paths", graph, "-o", out, "--predecessors", tmp_path / "p.npy")
        assert result.exit_code == 3
        assert "which is a directory" in result.stderr
        assert not out.exists()
    a = tmp_path / "a.npy"
    for place in (tmp_path / "nowhere" / "c.npy", tmp_path / "p.npy"):
        result = run("matmul", a, a, "-o", place)
        assert result.exit_code == 3
        assert str(place.parent) in result.stderr
        assert ".part" not in result.stderr


def test_links_are_followed(tmp_path):
    graph, out = write(tmp_path / "g.txt", "0 1\n"), tmp_path / "d.npy"
    (tmp_path / "elsewhere").mkdir()
    out.symlink_to(tmp_path / "elsewhere" / "real.npy")
    assert run("shortest-paths", graph, "-o", out).exit_code == 0
    assert out.is_symlink()
    assert [p.name for p in (tmp_path / "elsewhere").iterdir()] == ["real.npy"]


@pytest.mark.parametrize(("text", "options", "code", "expected"), [
    ("100 200 -5\n200 100 3\n", (), 4, r"length through node (1|2)00$"),
    ("100 200 -5\n", ("--method", "D"), 2, r"negative at \(100, 200\)"),
    (f"100 200 {2**62}\n200 300 {2**62}\n", (), 4, "from node 100 to node 300 .* int64"),
    ("100 200 5\n", ("--no-edge", 5), 2, "for dense matrices"),
])  # fmt: skip
def test_failures_name_the_file_and_its_nodes(tmp_path, text, options, code, expected):
    graph, out = write(tmp_path / "g.txt", text), tmp_path / "d.npy"
    result = run("shortest-paths", graph, "-o", out, *options)
    assert result.exit_code == code
    assert str(graph) in result.stderr
    assert re.search(expected, result.stderr.strip())
    assert "csgraph" not in result.stderr
    assert not out.exists()


def test_matrices_that_hold_what_no_graph_has(tmp_path):
    path, out = tmp_path / "m.npy", tmp_path / "d.npy"
    for value, text in ((np.nan, r"NaN at \(0, 1\)"), (-np.inf, r"at \(0, 1\) is the infinity")):
        matrix = np.ones((2, 2))
        matrix[0, 1] = value
        np.save(path, matrix)
        save_npz(tmp_path / "m.npz", coo_array(matrix))
        for file in (path, tmp_path / "m.npz"):
            result = run("shortest-paths", file, "-o", out)
            assert result.exit_code == 3
            assert f"{file}: " in result.stderr
            assert re.search(r"\(0, 1\)" if file.suffix == ".npz" else text, result.stderr)
    np.save(path, np.array([[0, 3], [4, 0]], ">f4"))
    assert run("shortest-paths", path, "-o", out).exit_code == 0
    assert np.load(out).tolist() == [[0, 3], [4, 0]]


def test_too_little_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "host_memory", lambda: (1000, "of memory"))
    graph = write(tmp_path / "g.txt", "".join(f"{i} {i + 1} -1\n" for i in range(100)))
    result = run("shortest-paths", graph, "-o", tmp_path / "d.npy")
    assert result.exit_code == 6
    assert re.search(r"g\.txt: n = 101 nodes need .*--from", result.stderr)
    assert "indices=" not in result.stderr


def test_walks_without_end(tmp_path):
    graph = write(tmp_path / "g.gr", "p sp 3 3\na 1 2 -5\na 2 1 3\na 2 3 1\n")
    floats = tmp_path / "m.npy"
    np.save(floats, np.array([[np.inf, -5, np.inf], [3, np.inf, 1], [np.inf] * 3]))

    def path(file, source, target):
        options = ("--negative-cycles", "ignore", "--from", source, "--to", target, "--json")
        result = run("shortest-paths", file, *options)
        return result, json.loads(result.stdout, parse_constant=pytest.fail)

    for file, nodes in ((graph, (1, 2, 3)), (floats, (0, 1, 2))):
        for target in nodes:
            result, report = path(file, nodes[0], target)
            assert result.exit_code == 4
            assert (report["status"], report["length"], report["path"]) == ("negative cycle", None, None)
            assert f"from {nodes[0]} to {target}: a negative cycle" in result.stderr
        result, report = path(file, nodes[2], nodes[0])
        assert result.exit_code == 5
        assert report["status"] == "no path"
        result, report = path(file, nodes[2], nodes[2])
        assert result.exit_code == 0
        assert (report["status"], report["length"], report["path"]) == ("found", 0, [nodes[2]])


def damaged(path, at=None):
    """A file with a byte changed, or cut short."""
    data = bytearray(path.read_bytes())
    if at is None:
        data = data[: len(data) // 2]
    else:
        data[at] ^= 0xFF
    path.write_bytes(data)


MATRIX = np.array([[0.0, 2, 7], [3, 0, 1], [4, 5, 0]])


@pytest.mark.parametrize(("name", "make"), [
    ("m.npy", lambda path: np.save(path, MATRIX)),
    ("m.npz", lambda path: np.savez(path, graph=MATRIX)),
    ("z.npz", lambda path: np.savez_compressed(path, graph=MATRIX)),
    ("s.npz", lambda path: save_npz(path, coo_array(MATRIX).tocsr())),
])  # fmt: skip
def test_damaged_arrays(tmp_path, name, make):
    """Whatever byte is changed: a result, or one line with the file's name."""
    path = tmp_path / name
    make(path)
    size = path.stat().st_size
    for at in (None, *range(0, size, 1 + size // 100)):
        make(path)
        damaged(path, at)
        for command in (("shortest-paths", path), ("matmul", path, path)):
            result = run(*command, "-o", tmp_path / "out.npy")
            assert result.exit_code in (0, 2, 3, 4, 6), (at, result.stderr)
            if result.exit_code == 3:
                assert f"{path}: " in result.stderr
                assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("arrays", [
    {"graph": np.array([[None]])},
    {"format": np.array(b"csr"), "shape": np.array([2, 2])},
    {"format": np.array(b"csr"), "shape": np.array([2, 2]), "data": MATRIX[0], "indices": np.array([5, 6, 7]),
     "indptr": np.array([0, 1, 3])},
    {"a": MATRIX, "b": MATRIX},
    {},
])  # fmt: skip
def test_archives_of_other_things(tmp_path, arrays):
    path = tmp_path / "a.npz"
    np.savez(path, **arrays)
    result = run("shortest-paths", path, "-o", tmp_path / "out.npy")
    assert result.exit_code == 3
    assert f"{path}: " in result.stderr


def test_sparse_archives_need_scipy(tmp_path, monkeypatch):
    path = tmp_path / "s.npz"
    save_npz(path, coo_array(MATRIX))
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    result = run("shortest-paths", path, "-o", tmp_path / "out.npy")
    assert result.exit_code == 3
    assert "pip install scipy" in result.stderr


def test_matmul_info_and_bench(tmp_path):
    a = np.array([[0.0, 2.0], [1.0, -1.0]])
    np.save(tmp_path / "a.npy", a)
    c, k = tmp_path / "c.npy", tmp_path / "k.npy"
    result = run(
        "matmul",
        tmp_path / "a.npy",
        tmp_path / "a.npy",
        "-o",
        c,
        "--argmax",
        k,
        "--semiring",
        "min_plus",
        "--json",
    )
    assert json.loads(result.stdout)["shape"] == [2, 2]
    expected = tg.matmul(a, a, semiring="min_plus", return_argmax=True)
    assert np.load(c).tolist() == expected.values.tolist()
    assert np.load(k).tolist() == expected.argmax.tolist()
    assert run("matmul", tmp_path / "a.npy", tmp_path / "a.npy", "-o", c, "--semiring", "no").exit_code == 2
    assert run("matmul", tmp_path / "a.npy", tmp_path / "a.npy", "-o", c, "--argmax", c).exit_code == 2
    assert json.loads(run("info", "--json").stdout)["version"] == tg.__version__
    assert "or_and" in run("info").stdout
    rows = json.loads(run("bench", "-n", 32, "--json").stdout)
    assert {row["what"] for row in rows} >= {"matmul min_plus", "shortest_path"}
    assert run("bench", "-n", 16, "--dtype", "float3").exit_code == 2


def test_as_a_program(tmp_path):
    graph = write(tmp_path / "g.txt", "0 1\n")
    program = [sys.executable, "-c", "from tropical_gemm.cli import main; main()"]
    done = subprocess.run(
        [*program, "shortest-paths", graph, "-o", tmp_path / "d.npy"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "nodes: 2" in done.stdout
    assert done.stderr == ""  # no bar where there is no terminal
    block = "import sys; sys.modules['typer'] = None\nfrom tropical_gemm.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", block, "info"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'tropical-gemm-cpp[cli]'" in done.stderr


@needs_data
def test_public_graphs(tmp_path):
    out = tmp_path / "rome.npy"
    result = run("shortest-paths", DATA / "rome99.gr", "-o", out, "--from", 1, "--to", 3353, "--json")
    report = json.loads(result.stdout)
    assert (report["nodes"], report["edges"]) == (3353, 8859)
    assert report["path"][0] == 1
    assert report["path"][-1] == 3353
    assert np.load(out)[3352] == report["length"]
    assert os.path.getsize(tmp_path / "rome.nodes.npy") > 3353 * 8

"""Damaged graph files: some thousand drawn ones, and those that once did harm."""

import itertools

import numpy as np
import pytest

pytest.importorskip("scipy")
pytest.importorskip("matplotlib")  # of the example that reads .uai
pytest.importorskip("typer")
import reader_fuzz
from test_cli import run


def test_drawn(tmp_path):
    well = 0
    for at, (suffix, data) in enumerate(itertools.islice(reader_fuzz.cases(0), 1500)):
        path = tmp_path / f"{at}{suffix}"
        path.write_bytes(data)
        well += reader_fuzz.check(path)
        path.unlink()
    assert 150 < well < 750, "neither all of them good nor all of them bad"


@pytest.mark.parametrize("suffix", reader_fuzz.SEEDS)
def test_seeds_are_good(tmp_path, suffix):
    for data in reader_fuzz.SEEDS[suffix]:
        path = tmp_path / f"graph{suffix}"
        path.write_bytes(data)
        assert reader_fuzz.check(path)


def test_no_objects(tmp_path):
    """Unpickling would run code of the file."""
    path = tmp_path / "objects.npy"
    path.write_bytes(reader_fuzz.OBJECTS)
    assert not reader_fuzz.check(path)
    np.load(path, allow_pickle=True)
    assert reader_fuzz.Touched.times == 1


def csr(**parts):
    good = {"indices": [1, 2], "indptr": [0, 1, 2, 2], "data": [3.0, 4.0], "shape": [3, 3], "format": b"csr"}
    return {name: np.array(value) for name, value in {**good, **parts}.items()}


BSR = {"format": b"bsr", "data": [[[3.0]], [[4.0]]]}


@pytest.mark.parametrize("parts", [
    csr(indices=[1, 100]), csr(indices=[1, -(2**31)]), csr(indptr=[0, 2, 1, 2]),
    csr(indptr=[0, 1, 2, -(2**31)]),
    csr(format=b"csc", indices=[2**31 - 1, 0]), csr(**BSR, indices=[1, 100]),
    csr(**BSR, indptr=[0, 1, 2, -(2**31)]),
    csr(indices=[1 + 1j, 2]),
])  # fmt: skip
def test_indices_of_sparse_matrices(tmp_path, parts):
    """SciPy believes them: it wrote elsewhere, or repeated an element two thousand million times."""
    np.savez(tmp_path / "m.npz", **parts)
    result = run("shortest-paths", tmp_path / "m.npz", "-o", tmp_path / "d.npy")
    assert result.exit_code == 3
    assert f"{tmp_path / 'm.npz'}: expected a matrix as scipy.sparse.save_npz writes it" in result.stderr


_MTX = "%%MatrixMarket matrix coordinate real general\n"


@pytest.mark.parametrize(("name", "text", "code", "expected"), [
    ("g.gr", f"p sp {10**12} 0\n", 3, ":1: 1000000000000 nodes, expected at most 2147483647"),
    ("g.mtx", f"{_MTX}{10**12} {10**12} 0\n", 3, ":2: 1000000000000 rows, expected at most 2147483647"),
    ("g.gr", f"p sp {2**31 - 1} 1\na 1 2 5\n", 6, "n = 2147483647 nodes need"),
    ("g.mtx", f"{_MTX}{2**31 - 1} {2**31 - 1} 1\n1 2 5\n", 6, "n = 2147483647 nodes need"),
    ("g.gr", f"p sp 2 {'9' * 5000}\n", 3, "expected 'p sp NODES ARCS'"),
    ("g.mtx", f"{_MTX}2 2 1\n1 {'9' * 4000} 1\n", 3, "expected indices from 1 to 2"),
])  # fmt: skip
def test_sizes_that_a_header_claims(tmp_path, name, text, code, expected):
    path = tmp_path / name
    path.write_text(text)
    for wish in (("-o", tmp_path / "d.npy"), ("--from", 1, "--to", 2)):
        result = run("shortest-paths", path, *wish)
        assert result.exit_code == code
        assert expected in result.stderr
        assert len(result.stderr) < 1000


@pytest.mark.parametrize(("text", "expected"), [
    ("MARKOV 1 2 1 1 -1 2 .5 .5", "not announced"), ("MARKOV 1 0 1 1 0 0", "a variable without values"),
    ("MARKOV 1 2 1 2 0 0 4 1 1 1 1", "a variable twice"),
    ("MARKOV 1 2 1 1 0 3 .5 .5 .5", "a table of 3 entries"),
    ("MARKOV 1 2 1 1 0 2 .5 -.5", "negative"), ("MARKOV 1 2 1 1 0 2 .5 nan", "no number"),
    ("MARKOV 1 2 1 1 0 2 .5 .5 1", "goes on"), (f"MARKOV {10**30}", "too early"),
    ("MARKOV -1", "no number of"),
])  # fmt: skip
def test_factor_graphs(tmp_path, text, expected):
    path = tmp_path / "m.uai"
    path.write_text(text)
    with pytest.raises(SystemExit, match=f"is no UAI model: .*{expected}"):
        reader_fuzz.MODELS.factor_graph(str(path))

"""Damaged graph files, made from good ones: each is refused with its name, or read as a graph; quickly, and
in little memory.

    python python/tests/reader_fuzz.py [SECONDS] [SEED]    60 seconds; stops at the first that fails
"""

import contextlib
import importlib.util
import io
import random
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array, save_npz
from tropical_gemm.cli.graph_file import MalformedFile
from tropical_gemm.cli.readers import read_graph

SECONDS = 5.0
"""For a file of a few hundred bytes, on a busy machine."""
MEMORY = 4_000_000
"""Bytes, of which Python's and SciPy's imports and buffers are the most."""


def _saved(save, *arguments, **options):
    file = io.BytesIO()
    save(file, *arguments, **options)
    return file.getvalue()


class Touched:
    """Unpickling it leaves a trace."""

    times = 0

    def __reduce__(self):
        return Touched._touch, ()

    @staticmethod
    def _touch():
        Touched.times += 1
        return 0


_HEAD = b"%%MatrixMarket matrix coordinate "
_MATRIX = np.array([[0, 3.5, np.inf], [1, 0, 2], [7, 8, 0]])
_SPARSE = coo_array(([3.0, 4.0], ([0, 1], [1, 2])), shape=(3, 3))
SEEDS = {
    ".gr": [b"c a comment\np sp 4 5\na 1 2 7\na 1 2 5\na 2 3 0\na 3 1 2.5\na 3 4 1\n", b"p sp 0 0\n"],
    ".mtx": [
        _HEAD + b"integer general\n% note\n4 4 3\n1 2 7\n2 3 0\n3 4 1\n",
        _HEAD + b"real symmetric\n3 3 2\n2 1 0.5\n3 2 1\n",
        _HEAD + b"pattern general\n2 2 1\n1 2\n",
    ],
    ".txt": [b"# FromNodeId ToNodeId\n10\t20 5\n20 30 0\n30 10 2\n", b"0 1\n1 2\n"],
    ".npy": [
        _saved(np.save, _MATRIX),
        _saved(np.save, np.asfortranarray(np.arange(9, dtype=">i4").reshape(3, 3))),
    ],
    ".npz": [
        _saved(np.savez, graph=_MATRIX),
        _saved(np.savez_compressed, graph=_MATRIX.astype(np.float32)),
        _saved(save_npz, _SPARSE.tocsr()),
        _saved(save_npz, _SPARSE, compressed=False),
    ],
    ".uai": [
        b"MARKOV\n3\n2 2 3\n2\n2 0 1\n2 1 2\n\n4\n 0.1 0.9\n 0.4 0.6\n6\n 0.2 0.7 0.1\n 0.5 0.25 0.25\n",
        b"BAYES\n1\n2\n1\n1 0\n2 0.5 0.5\n",
    ],
}
OBJECTS = _saved(np.save, np.array([[Touched()]], object), allow_pickle=True)
"""What numpy.load would unpickle if it were allowed to."""

_WORDS = [
    b"", b"0", b"-1", b"1", b"2", b"3.5", b"1e400", b"-1e308", b"nan", b"inf", b"-inf", b"1_0", b"0x10",
    b"+7", b"2147483647",    b"2147483648", b"1000000000000", b"9223372036854775807", b"-9223372036854775808",
    b"9" * 30, b"9" * 5000,
    b"\xd9\xa3", b"\xff\xfe", b"\0", b"'", b"c", b"p", b"a", b"sp", b"#", b"%", b"float16", b"|O", b"<U9",
    b"True", b"(3, 3)", b"(1000000, 1000000)", b"(-1, 3)", b"()", b"pattern", b"symmetric", b"integer",
]  # fmt: skip
_ENDS = b" \t\n,"


def mutated(rng: random.Random, data: bytes) -> bytes:
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        data = rng.choice((_bytes, _word, _line))(rng, data)
    return data


def _span(rng, size):
    start = rng.randrange(size + 1)
    return start, min(size, start + rng.choice((0, 1, 1, 2, 8, 40)))


def _bytes(rng, data):
    start, end = _span(rng, len(data))
    new = rng.choice((b"", rng.randbytes(end - start), rng.randbytes(3), 2 * data[start:end]))
    return data[:start] if rng.random() < 0.1 else data[:start] + new + data[end:]


def _word(rng, data):
    """Another word in the place of one."""
    start = end = rng.randrange(len(data) + 1)
    while start and data[start - 1] not in _ENDS:
        start -= 1
    while end < len(data) and data[end] not in _ENDS:
        end += 1
    return data[:start] + rng.choice(_WORDS) + data[end:]


def _sparse(rng):
    """A matrix of SciPy's in parts, some of them wrong. (Damaged bytes are found by the checksum.)"""
    kind = rng.choice(("csr", "csc", "coo", "bsr", "dia"))
    matrix = _SPARSE.asformat(kind)
    names = {"coo": ("row", "col"), "dia": ("offsets",)}.get(kind, ("indices", "indptr"))
    parts = {name: getattr(matrix, name) for name in names}
    parts.update(data=matrix.data, shape=np.array(matrix.shape), format=np.array(kind.encode()))
    for name in rng.sample(list(parts), rng.choice((1, 1, 2))):
        part = np.array(parts[name])
        if part.dtype.kind == "S":
            part = np.array(rng.choice((b"csr", b"coo", b"lil", b"", b"\xff", 7, "csr")))
        elif part.size and rng.random() < 0.6:
            part.flat[rng.randrange(part.size)] = rng.choice((-1, 2, 5, 100, 2**31 - 1, -(2**31)))
        elif rng.random() < 0.5:
            part = rng.choice((part[:-1], np.repeat(part, 2, 0), part[..., None]))
        else:
            kinds = (np.int64, np.uint8, np.float32, np.complex64, bool, object)
            part = part.astype(rng.choice(kinds))
        parts[name] = part
    return _saved(np.savez, **parts)


def _line(rng, data):
    """A line twice, elsewhere, or gone."""
    lines = data.split(b"\n")
    line = lines[rng.randrange(len(lines))]
    if rng.random() < 0.6:
        lines.remove(line)
    if rng.random() < 0.6:
        lines.insert(rng.randrange(len(lines) + 1), line)
    return b"\n".join(lines)


def check(path: Path) -> bool:
    """Whether the file holds a graph. AssertionError where it was neither refused nor read rightly."""
    before = Touched.times
    tracemalloc.start()
    start = time.perf_counter()
    try:
        well = _check_model(path) if path.suffix == ".uai" else _check_graph(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    took = time.perf_counter() - start
    assert took < SECONDS, f"{took:.1f} s"
    # An archive's arrays are allocated, though not touched, before it shows that the archive is too short.
    assert path.suffix == ".npz" or peak < MEMORY, f"{peak} bytes"
    assert Touched.times == before, "a file's code was run"
    return well


def _check_graph(path):
    refused: Exception | None = None
    try:
        graph = read_graph(path)
    except MalformedFile as error:
        refused = error
    except MemoryError as error:  # a header may ask for it
        assert path.suffix in (".npy", ".npz")
        refused = error
    if refused is not None:
        assert str(refused).startswith(f"{path}:"), refused
        assert len(str(refused)) < len(str(path)) + 1000, refused
        return False
    assert graph.nodes >= 0
    assert graph.labels is None or len(graph.labels) == graph.nodes
    if graph.matrix is not None:
        assert graph.matrix.shape == (graph.nodes, graph.nodes)
        return True
    rows, columns, weights = graph.edges.rows, graph.edges.columns, graph.edges.weights
    assert len(rows) == len(columns) == len(weights)
    for ends in (rows, columns):
        assert ((ends >= 0) & (ends < graph.nodes)).all()
        assert all(graph.node(graph.label(node)) == node for node in ends[:3].tolist())
    assert len(set(zip(rows.tolist(), columns.tolist(), strict=True))) == len(rows)
    assert weights.dtype.kind != "f" or not np.isnan(weights).any()
    return True


def _example(name):
    path = Path(__file__).parents[2] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _check_model(path):
    with contextlib.redirect_stderr(io.StringIO()), np.errstate(invalid="ignore"):
        try:
            model = MODELS.factor_graph(str(path))
        except SystemExit as refused:
            if not str(refused).startswith(f"{path} is no UAI model: "):
                raise AssertionError(refused) from refused
            return False
    for table, scope in model.terms:
        assert table.ndim == len(scope)
        assert not np.isnan(table).any()
    return True


MODELS = _example("ground_states")


def cases(seed: int):
    """Without end: suffix and content."""
    rng = random.Random(seed)
    while True:
        suffix = rng.choice(list(SEEDS))
        if suffix == ".npz" and rng.random() < 0.7:
            yield suffix, _sparse(rng)
        else:
            yield suffix, mutated(rng, rng.choice(SEEDS[suffix]))


def main(seconds=60.0, seed=None):
    seed = int(seed if seed is not None else time.time())
    print(f"damaged files for {seconds} seconds, seed {seed}", flush=True)
    tried, well, end = 0, 0, time.monotonic() + float(seconds)
    with tempfile.TemporaryDirectory() as folder:
        for suffix, data in cases(seed):
            if time.monotonic() > end:
                break
            path = Path(folder, "graph" + suffix)
            path.write_bytes(data)
            try:
                well += check(path)
            except BaseException:
                print(f"case {tried}, {suffix}: {data!r}", flush=True)
                raise
            tried += 1
    print(f"{tried} files, {well} of them graphs")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""MatrixMarket coordinate files (.mtx): real, integer or pattern, general or symmetric; nodes from 1."""

from pathlib import Path

from .graph_file import MOST_NODES, GraphFile, MalformedFile, count, number, of_edges, shown, whole

_HEADER = "%%MatrixMarket matrix coordinate real|integer|pattern general|symmetric"


def read(path: Path) -> GraphFile:
    rows: list[int] = []
    columns: list[int] = []
    weights: list[int | float] = []
    nodes = entries = -1
    at = 0
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        field, symmetric = _header(path, file.readline())
        for at, line in enumerate(file, 2):
            words = line.split()
            if not words or words[0].startswith("%"):
                continue
            if nodes < 0:
                nodes, entries = _sizes(path, at, line)
                continue
            try:
                if len(words) != (2 if field == "pattern" else 3):
                    raise ValueError
                i, j = whole(words[0]), whole(words[1])
                weight = 1 if field == "pattern" else number(words[2])
                if field == "integer" and not isinstance(weight, int):
                    raise ValueError
            except ValueError:
                wanted = "'ROW COLUMN'" if field == "pattern" else "'ROW COLUMN WEIGHT'"
                raise MalformedFile(path, at, f"{shown(line)}, expected {wanted}") from None
            if not (1 <= i <= nodes and 1 <= j <= nodes):
                raise MalformedFile(path, at, f"{shown(line)}, expected indices from 1 to {nodes}")
            if len(weights) == entries * (1 + symmetric):
                raise MalformedFile(path, at, f"an entry more than the {entries} that were announced")
            for a, b in ((i, j), (j, i)) if symmetric else ((i, j),):
                rows.append(a - 1)
                columns.append(b - 1)
                weights.append(weight)
    if nodes < 0:
        raise MalformedFile(path, at or 1, "the file ends here, expected a line 'ROWS COLUMNS ENTRIES'")
    found = len(rows) // (1 + symmetric)
    if found != entries:
        raise MalformedFile(path, at, f"the file ends after {found} entries, expected {entries}")
    if field == "real":
        weights = [float(w) for w in weights]
    return of_edges(nodes, range(1, nodes + 1), rows, columns, weights)


def _header(path: Path, line: str) -> tuple[str, bool]:
    words = line.lower().split()
    if (
        len(words) != 5
        or words[:3] != ["%%matrixmarket", "matrix", "coordinate"]
        or words[3] not in ("real", "integer", "pattern")
        or words[4] not in ("general", "symmetric")
    ):
        raise MalformedFile(path, 1, f"{shown(line)}, expected {_HEADER!r}")
    return words[3], words[4] == "symmetric"


def _sizes(path: Path, at: int, line: str) -> tuple[int, int]:
    try:
        n, m, entries = (count(word) for word in line.split())
    except ValueError:
        raise MalformedFile(path, at, f"{shown(line)}, expected 'ROWS COLUMNS ENTRIES'") from None
    if n != m:
        raise MalformedFile(path, at, f"a matrix of {n} x {m}, expected a square one")
    if n > MOST_NODES:
        raise MalformedFile(path, at, f"{n} rows, expected at most {MOST_NODES}")
    return n, entries

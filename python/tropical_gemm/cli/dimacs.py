"""DIMACS shortest-path files (.gr): ``c`` comments, ``p sp NODES ARCS``, ``a FROM TO WEIGHT``; nodes from
1."""

from pathlib import Path

from .graph_file import MOST_NODES, GraphFile, MalformedFile, count, number, of_edges, shown, whole


def read(path: Path) -> GraphFile:
    nodes = arcs = -1
    rows: list[int] = []
    columns: list[int] = []
    weights: list[int | float] = []
    at = 0
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        for at, line in enumerate(file, 1):
            words = line.split()
            if not words or words[0] == "c":
                continue
            if words[0] == "p":
                if nodes >= 0:
                    raise MalformedFile(path, at, "a second 'p' line, expected one")
                try:
                    _, kind, n, m = words
                    nodes, arcs = count(n), count(m)
                    if kind != "sp":
                        raise ValueError
                except ValueError:
                    raise MalformedFile(path, at, f"{shown(line)}, expected 'p sp NODES ARCS'") from None
                if nodes > MOST_NODES:
                    raise MalformedFile(path, at, f"{nodes} nodes, expected at most {MOST_NODES}")
            elif words[0] == "a":
                if nodes < 0:
                    raise MalformedFile(path, at, "an arc before the 'p sp NODES ARCS' line")
                try:
                    _, u, v, w = words
                    i, j, weight = whole(u), whole(v), number(w)
                except ValueError:
                    raise MalformedFile(path, at, f"{shown(line)}, expected 'a FROM TO WEIGHT'") from None
                if not (1 <= i <= nodes and 1 <= j <= nodes):
                    raise MalformedFile(path, at, f"{shown(line)}, expected nodes from 1 to {nodes}")
                rows.append(i - 1)
                columns.append(j - 1)
                weights.append(weight)
            else:
                raise MalformedFile(path, at, f"{shown(line)}, expected a line of 'c', 'p' or 'a'")
    if nodes < 0:
        raise MalformedFile(path, at or 1, "the file ends here, expected a line 'p sp NODES ARCS'")
    if len(rows) != arcs:
        raise MalformedFile(path, at, f"the file ends after {len(rows)} arcs, expected {arcs}")
    return of_edges(nodes, range(1, nodes + 1), rows, columns, weights)

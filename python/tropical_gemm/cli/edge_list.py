"""Edge lists, as SNAP has them: ``FROM TO`` or ``FROM TO WEIGHT`` a line, ``#`` or ``%`` comments, any node
numbers."""

from pathlib import Path

import numpy as np

from .graph_file import GraphFile, MalformedFile, count, number, of_edges, shown


def read(path: Path) -> GraphFile:
    ends: list[tuple[int, int]] = []
    weights: list[int | float] = []
    width = 0
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        for at, line in enumerate(file, 1):
            words = line.split()
            if not words or words[0][0] in "#%":
                continue
            width = width or len(words)
            wanted = (
                "'FROM TO' or 'FROM TO WEIGHT'" if not ends else f"{width} columns as in the lines before"
            )
            try:
                if len(words) not in (2, 3) or len(words) != width:
                    raise ValueError
                i, j = count(words[0]), count(words[1])
                weight = number(words[2]) if width == 3 else 1
            except ValueError:
                text = f"{shown(line)}, expected {wanted}, nodes as whole numbers from 0"
                raise MalformedFile(path, at, text) from None
            ends.append((i, j))
            weights.append(weight)
    labels, places = np.unique(np.asarray(ends, np.int64).reshape(-1, 2), return_inverse=True)
    nodes = len(labels)
    places = places.reshape(-1, 2)
    plain = nodes == 0 or (labels[0] == 0 and labels[-1] == nodes - 1)
    return of_edges(nodes, None if plain else labels, places[:, 0].tolist(), places[:, 1].tolist(), weights)

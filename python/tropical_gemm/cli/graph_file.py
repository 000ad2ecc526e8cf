"""What a file of a graph holds, whatever its format, and what is said of a malformed one."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..algorithms.sparse import Edges, dense, merged


class MalformedFile(ValueError):
    """A file that cannot be read: its name, the line where there is one, what was expected."""

    def __init__(self, path: Path, line: "int | None", expected: str) -> None:
        super().__init__(f"{path}:{line}: {expected}" if line else f"{path}: {expected}")


MOST_NODES = 2**31 - 1
"""A predecessor is an int32."""


@dataclass
class GraphFile:
    """A graph, and the names of its nodes in the file: None where they are 0 to n - 1, a range, or an array.

    A file may announce more nodes than fit in memory: nothing of their number is made here.
    """

    nodes: int
    labels: Any
    edges: "Edges | None" = None
    matrix: Any = None

    def node(self, label: int) -> int:
        """The node that the file calls so."""
        names = self._names()
        if isinstance(names, range):
            if label in names:
                return names.index(label)
        else:
            at = int(np.searchsorted(names, label))
            if at < self.nodes and names[at] == label:
                return at
        raise ValueError(f"the graph has no node {label}; {self._known()}")

    def label(self, node: int) -> int:
        return int(self._names()[node])

    def _names(self) -> Any:
        return range(self.nodes) if self.labels is None else self.labels

    def _known(self) -> str:
        if not self.nodes:
            return "it has none"
        names = self._names()
        return f"its {self.nodes} nodes are from {names[0]} to {names[-1]}"

    @property
    def edge_count(self) -> "int | None":
        return None if self.edges is None else len(self.edges.rows)

    def csgraph(self) -> Any:
        """What shortest_path takes: a sparse matrix where SciPy is there, else a dense one."""
        if self.edges is None:
            return self.matrix
        try:
            from scipy.sparse import coo_array
        except ImportError:
            return dense(self.edges)
        shape = (self.nodes, self.nodes)
        return coo_array((self.edges.weights, (self.edges.rows, self.edges.columns)), shape=shape)


def of_edges(nodes: int, labels: Any, rows: list[int], columns: list[int], weights: list[Any]) -> GraphFile:
    """Of parallel edges the lightest counts. Whole weights become int32 where every path fits, else int64."""
    values = np.asarray(weights, np.float64 if any(isinstance(w, float) for w in weights) else np.int64)
    if values.dtype == np.int64:
        largest = int(np.abs(values).max(initial=0))
        values = values.astype(np.int32) if largest * max(nodes, 1) < 2**31 - 1 else values
    places = (np.asarray(rows, np.int64), np.asarray(columns, np.int64))
    return GraphFile(nodes, labels, merged(nodes, *places, values))


def number(text: str) -> "int | float":
    """A weight; ValueError for what is none, NaN and infinities."""
    try:
        value: int | float = whole(text)
    except ValueError:
        if not _plain(text):
            raise
        value = float(text)
    if abs(value) > 1.7e308 or value != value or (isinstance(value, int) and abs(value) >= 2**63 - 1):
        raise ValueError(text)
    return value


def whole(text: str) -> int:
    """A whole number in decimal digits."""
    if not _plain(text):
        raise ValueError(text)
    return int(text)


def count(text: str) -> int:
    """How many, or a node's number: from 0, and below 2^63."""
    value = whole(text)
    if not 0 <= value < 2**63:
        raise ValueError(text)
    return value


def shown(line: str) -> str:
    """The beginning of a line, for a message about it."""
    return repr(line.strip()[:60])


def _plain(text: str) -> bool:
    """Python takes 1_000 and the digits of every script for numbers, other programs do not."""
    return text.isascii() and "_" not in text

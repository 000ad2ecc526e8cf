"""Which reader takes which file."""

from pathlib import Path

from . import arrays, dimacs, edge_list, matrix_market
from .graph_file import GraphFile

READERS = {".gr": dimacs.read, ".mtx": matrix_market.read, ".npy": arrays.read, ".npz": arrays.read}


def read_graph(path: Path) -> GraphFile:
    """By the suffix; anything else is an edge list."""
    return READERS.get(path.suffix.lower(), edge_list.read)(path)

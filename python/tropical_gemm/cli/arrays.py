"""NumPy's files: dense matrices (.npy, or .npz with one array), and SciPy's sparse ones (.npz)."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from ..algorithms.checks import GRAPH_DTYPES
from ..algorithms.sparse import edges_of
from .graph_file import GraphFile, MalformedFile


def load(path: Path) -> Any:
    """One array."""
    try:
        loaded = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise MalformedFile(path, None, f"expected an array as numpy.save writes it ({error})") from None
    if isinstance(loaded, np.ndarray):
        return loaded
    names = loaded.files
    if len(names) != 1:
        raise MalformedFile(path, None, f"holds the arrays {', '.join(names) or 'none'}, expected one")
    return loaded[names[0]]


def read(path: Path) -> GraphFile:
    if path.suffix == ".npz" and zipfile.is_zipfile(path):
        with np.load(path, allow_pickle=False) as names:
            sparse = "format" in names.files and "shape" in names.files
        if sparse:
            from scipy.sparse import load_npz

            matrix = load_npz(path)
            _check(path, matrix)
            return GraphFile(matrix.shape[0], None, edges_of(matrix, None, False))
    matrix = load(path)
    _check(path, matrix)
    return GraphFile(matrix.shape[0], None, matrix=matrix)


def _check(path: Path, matrix: Any) -> None:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise MalformedFile(path, None, f"an array of shape {tuple(matrix.shape)}, expected a square matrix")
    if matrix.dtype.name not in GRAPH_DTYPES:
        raise MalformedFile(
            path, None, f"an array of dtype {matrix.dtype}, expected one of {', '.join(GRAPH_DTYPES)}"
        )

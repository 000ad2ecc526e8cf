"""NumPy's files: dense matrices (.npy, or .npz with one array), and SciPy's sparse ones (.npz)."""

import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..algorithms.checks import GRAPH_DTYPES
from ..algorithms.sparse import edges_of
from .graph_file import GraphFile, MalformedFile


@contextmanager
def _opened(path: Path, expected: str) -> Iterator[BinaryIO]:
    """The file; NumPy, SciPy and the readers of archives raise all kinds of exceptions for a damaged one."""
    with path.open("rb") as file:
        try:
            yield file
        except (MalformedFile, KeyboardInterrupt):
            raise
        except MemoryError as error:
            raise MemoryError(f"{path}: {error}") from None
        except Exception as error:
            reason = str(error).partition("\n")[0][:200] or type(error).__name__
            raise MalformedFile(path, None, f"expected {expected} ({reason})") from None


def load(path: Path) -> Any:
    """One array, in this machine's order of bytes."""
    with _opened(path, "an array as numpy.save writes it") as file:
        loaded = np.load(file, allow_pickle=False)
        if not isinstance(loaded, np.ndarray):
            names = loaded.files
            if len(names) != 1:
                text = f"holds the arrays {', '.join(names) or 'none'}, expected one"
                raise MalformedFile(path, None, text)
            loaded = loaded[names[0]]
        return loaded.astype(loaded.dtype.newbyteorder("="), copy=False)


def read(path: Path) -> GraphFile:
    if _is_sparse(path):
        with _opened(path, "a matrix as scipy.sparse.save_npz writes it") as file:
            matrix = _loaded(_scipy_sparse(path), file)
            _check(path, matrix)
            matrix.data = matrix.data.astype(matrix.dtype.newbyteorder("="), copy=False)
            return GraphFile(matrix.shape[0], None, edges_of(matrix, None, False))
    matrix = load(path)
    _check(path, matrix)
    return GraphFile(matrix.shape[0], None, matrix=matrix)


def _is_sparse(path: Path) -> bool:
    if path.suffix.lower() != ".npz" or not zipfile.is_zipfile(path):
        return False
    with _opened(path, "arrays as numpy.savez writes them") as file, zipfile.ZipFile(file) as archive:
        return {"format.npy", "shape.npy"} <= set(archive.namelist())


def _scipy_sparse(path: Path) -> Any:
    try:
        import scipy.sparse
    except ImportError:
        text = "a sparse matrix of SciPy's, which is not installed; install it with: pip install scipy"
        raise MalformedFile(path, None, text) from None
    return scipy.sparse


def _loaded(sparse: Any, file: BinaryIO) -> Any:
    """SciPy trusts the indices of a file, and would write where they say."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # indices of another kind than integers
        matrix = sparse.load_npz(file)
        if matrix.format in ("csr", "csc", "bsr"):
            # What follows looks at nothing where the last one is not above zero.
            if (matrix.indptr[1:] < matrix.indptr[:-1]).any():
                raise ValueError("index pointers must not decrease")
            matrix.check_format(full_check=True)
    return matrix


def _check(path: Path, matrix: Any) -> None:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise MalformedFile(path, None, f"an array of shape {tuple(matrix.shape)}, expected a square matrix")
    if matrix.dtype.name not in GRAPH_DTYPES:
        raise MalformedFile(
            path, None, f"an array of dtype {matrix.dtype}, expected one of {', '.join(GRAPH_DTYPES)}"
        )

"""Random graphs, their paths by plain Floyd-Warshall, and the public graphs where they are."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import tropical_gemm as tg

DATA = Path(__file__).parents[3] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the public graphs are not here")

DTYPES = ("float32", "float64", "int32", "int64")


def none(dtype):
    """What stands for "no edge" and "unreachable"."""
    return np.inf if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max


def random_graph(rng, n, dtype, density=0.5, high=6):
    """Whole weights from 0 on, so that sums are exact and ties are many."""
    weights = rng.integers(0, high, (n, n)).astype(dtype)
    weights[rng.random((n, n)) >= density] = none(dtype)
    return weights


def as_float(x):
    """With inf for "no edge", exact for what these tests hold."""
    x = np.asarray(x)
    return np.where(x == none(x.dtype), np.inf, x.astype(np.float64))


def floyd_warshall(weights):
    d = as_float(weights).copy()
    np.fill_diagonal(d, np.minimum(np.diag(d), 0))
    for k in range(len(d)):
        np.minimum(d, d[:, k : k + 1] + d[k : k + 1], out=d)
    return d


def check_paths(weights, distances, predecessors, sources=None, tolerance=0.0):
    """Every path ends at its source after fewer than n steps, and its edges sum up to the distance."""
    w, d = as_float(weights), as_float(distances)
    n = d.shape[1]
    assert predecessors.dtype == np.int32
    for row, source in enumerate(range(n) if sources is None else sources):
        unreached = np.isinf(d[row]) | (np.arange(n) == source)
        assert ((predecessors[row] == -9999) == unreached).all()
        for target in np.flatnonzero(~unreached):
            path = tg.reconstruct_path(source, int(target), predecessors[row])
            assert path[0] == source
            assert path[-1] == target
            assert len(set(path)) == len(path) <= n
            length = sum(w[i, j] for i, j in itertools.pairwise(path))
            assert abs(length - d[row, target]) <= tolerance

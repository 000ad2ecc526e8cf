"""SciPy's sparse matrices as graphs, and SciPy's Dijkstra for them."""

import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import ranges
from .errors import EdgeError


def is_sparse(x: Any) -> bool:
    """Whether it is a sparse matrix or array of SciPy's, which is then imported already."""
    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(x))


def have_dijkstra() -> bool:
    try:
        import scipy.sparse.csgraph  # noqa: F401
    except ImportError:
        return False
    return True


@dataclass
class Edges:
    """Edges in host memory, sorted by (row, column), each pair once."""

    nodes: int
    rows: Any
    columns: Any
    weights: Any

    @property
    def negative(self) -> bool:
        return bool(len(self.weights)) and bool(self.weights.min() < 0)


def merged(nodes: int, rows: Any, columns: Any, weights: Any) -> Edges:
    """Of parallel edges the lightest remains."""
    keys = rows.astype(np.int64) * nodes + columns
    order = np.lexsort((weights, keys))
    keys = keys[order]
    first = np.ones(len(keys), bool)
    first[1:] = keys[1:] != keys[:-1]
    order = order[first]
    return Edges(nodes, rows[order], columns[order], weights[order])


def edges_of(csgraph: Any, no_edge: Any, unweighted: bool) -> Edges:
    """The stored elements, explicit zeros too, but those that stand for a missing edge. NaN is refused."""
    if csgraph.ndim != 2 or csgraph.shape[0] != csgraph.shape[1]:
        raise ValueError(f"csgraph has shape {tuple(csgraph.shape)}, expected a square matrix (n, n)")
    coo = csgraph.tocoo()
    weights = coo.data
    kept = np.ones(len(weights), bool)
    if no_edge is not None:
        kept &= ~np.isnan(weights) if no_edge != no_edge else weights != no_edge
    if weights.dtype == bool:
        kept &= weights
        weights = weights.astype(np.float32)
    _, top = ranges.extremes(weights.dtype.name)
    kept &= weights != top
    rows, columns, weights = coo.row[kept], coo.col[kept], weights[kept]
    bad = np.flatnonzero(np.isnan(weights) | (weights == ranges.extremes(weights.dtype.name)[0]))
    if len(bad):
        raise EdgeError(
            f"csgraph is {weights[bad[0]]} at ({{}}, {{}}), expected numbers, and inf where there is no edge",
            int(rows[bad[0]]),
            int(columns[bad[0]]),
        )
    if unweighted:
        weights = np.ones_like(weights)
    return merged(int(csgraph.shape[0]), rows, columns, weights)


def edges_of_dense(matrix: Any) -> Edges:
    """Of a matrix in host memory that has inf, or the highest integer, where there is no edge."""
    present = matrix != ranges.extremes(matrix.dtype.name)[1]
    n = len(matrix)
    rows = np.repeat(np.arange(n, dtype=np.int32), np.count_nonzero(present, axis=1))
    columns = np.broadcast_to(np.arange(n, dtype=np.int32), present.shape)[present]
    return Edges(n, rows, columns, matrix[present])


def dense(edges: Edges) -> Any:
    matrix = np.full(
        (edges.nodes, edges.nodes), ranges.extremes(edges.weights.dtype.name)[1], edges.weights.dtype
    )
    matrix[edges.rows, edges.columns] = edges.weights
    return matrix


def reached(edges: Edges) -> "float | None":
    """How many nodes a source can reach at most, on average: its weak component. None without SciPy."""
    if not have_dijkstra():
        return None
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(edges.rows), np.int8)
    graph = csr_array((ones, (edges.rows, edges.columns)), shape=(edges.nodes, edges.nodes))
    _, labels = connected_components(graph, directed=False)
    sizes = np.bincount(labels).astype(np.float64)
    return float((sizes**2).sum()) / max(edges.nodes, 1)


def exact_in_double(edges: Edges) -> bool:
    """Whether sums along paths, which SciPy makes in float64, are those of the dtype."""
    if edges.weights.dtype.kind == "f" or len(edges.weights) == 0:
        return True
    return float(np.abs(edges.weights.astype(np.float64)).max()) * edges.nodes < 2.0**53


_SECONDS = 0.2
"""That long SciPy may run for some sources. In between, Python looks for Ctrl-C, and progress is told."""
_MOST_SOURCES = 256


def dijkstra(
    edges: Edges, directed: bool, sources: "list[int] | None", tracks: bool, report: Any
) -> tuple[Any, Any]:
    """Distances and predecessors by SciPy, in the dtype of the weights. The weights are not negative."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra as run

    dtype = edges.weights.dtype
    graph = csr_array(
        (edges.weights.astype(np.float64), (edges.rows, edges.columns)), shape=(edges.nodes, edges.nodes)
    )
    nodes = np.arange(edges.nodes) if sources is None else np.asarray(sources, np.intp)
    distances = np.empty((len(nodes), edges.nodes), dtype)
    before = np.empty(distances.shape, np.int32) if tracks else None
    done, size = 0, 1
    while done < len(nodes):
        some = slice(done, done + size)
        start = time.perf_counter()
        found = run(graph, directed=directed, indices=nodes[some], return_predecessors=tracks)
        spent = time.perf_counter() - start
        if before is not None:
            found, before[some] = found
        distances[some] = _narrowed(found, dtype)
        done = min(done + size, len(nodes))
        size = max(1, min(4 * size, int(size * _SECONDS / max(spent, 1e-9)), _MOST_SOURCES))
        if report is not None:
            report(done, len(nodes))
    return distances, before


def _narrowed(distances: Any, dtype: Any) -> Any:
    none = np.isinf(distances)
    if (distances[~none] > ranges.largest(dtype.name)).any():
        raise OverflowError(f"a path is longer than {dtype} can hold; scale the weights or use a wider dtype")
    if dtype.kind == "f":
        return distances
    result = np.where(none, 0, distances).astype(dtype)
    result[none] = np.iinfo(dtype).max
    return result

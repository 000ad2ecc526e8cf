"""SciPy's sparse matrices as graphs, and SciPy's Dijkstra for them."""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import ranges


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
        at = int(rows[bad[0]]), int(columns[bad[0]])
        raise ValueError(
            f"csgraph is {weights[bad[0]]} at {at}, expected numbers, and inf where there is no edge"
        )
    if unweighted:
        weights = np.ones_like(weights)
    return merged(int(csgraph.shape[0]), rows, columns, weights)


def edges_of_dense(matrix: Any) -> Edges:
    """Of a matrix in host memory that has inf, or the highest integer, where there is no edge."""
    rows, columns = np.nonzero(matrix != ranges.extremes(matrix.dtype.name)[1])
    return Edges(len(matrix), rows, columns, matrix[rows, columns])


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


def dijkstra(edges: Edges, directed: bool, sources: "list[int] | None") -> tuple[Any, Any]:
    """Distances and predecessors by SciPy, in the dtype of the weights. The weights are not negative."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra as run

    graph = csr_array(
        (edges.weights.astype(np.float64), (edges.rows, edges.columns)), shape=(edges.nodes, edges.nodes)
    )
    distances, before = run(graph, directed=directed, indices=sources, return_predecessors=True)
    dtype = edges.weights.dtype
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            result = distances.astype(dtype, copy=False)
    else:
        none = np.isinf(distances)
        if (distances[~none] > ranges.largest(dtype.name)).any():
            raise OverflowError(f"a path is longer than {dtype} can hold; scale the weights or use int64")
        result = np.where(none, 0, distances).astype(dtype)
        result[none] = np.iinfo(dtype).max
    return result, before.astype(np.int32, copy=False)

"""Paths from predecessors."""

from typing import Any

import numpy as np

from .._arrays import common_kind
from .checks import shape_of
from .host import to_numpy


def reconstruct_path(source: int, target: int, predecessors: Any) -> list[int]:
    """The nodes of a shortest path from ``source`` to ``target``, both included.

    Parameters
    ----------
    source, target
        Nodes, from 0 to n - 1.
    predecessors
        From :func:`shortest_path`: the matrix (n, n), or the row (n,) of that source.

    Returns
    -------
    list of int
        Empty where there is no path; ``[source]`` where the two are the same.

    Raises
    ------
    TypeError
        For nodes that are no ints and predecessors that are no integer array.
    ValueError
        For nodes that do not exist, and for predecessors that lead round in a cycle.

    Examples
    --------
    >>> import numpy as np
    >>> import tropical_gemm as tg
    >>> lengths = np.array([[0.0, 1.0, 5.0], [np.inf, 0.0, 1.0], [np.inf, np.inf, 0.0]])
    >>> distances, predecessors = tg.shortest_path(lengths, return_predecessors=True)
    >>> tg.reconstruct_path(0, 2, predecessors)
    [0, 1, 2]
    >>> tg.reconstruct_path(2, 0, predecessors)
    []
    """
    kind = common_kind(predecessors=predecessors)
    shape = tuple(map(int, shape_of(predecessors, "predecessors")))
    n = shape[-1] if shape else 0
    if len(shape) not in (1, 2) or (len(shape) == 2 and shape[0] != n):
        raise ValueError(f"predecessors has shape {shape}, expected (n, n), or (n,) for one source")
    for node, argument in ((source, "source"), (target, "target")):
        if isinstance(node, (bool, np.bool_)) or not isinstance(node, (int, np.integer)):
            raise TypeError(f"{argument} is of type {type(node).__name__}, expected an int")
        if not 0 <= node < n:
            raise ValueError(f"{argument} is {node}, expected a node from 0 to {n - 1}")
    before = to_numpy(kind, predecessors[int(source)] if len(shape) == 2 else predecessors)
    if before.dtype.kind not in "iu":
        raise TypeError(f"predecessors has dtype {before.dtype}, expected integers")
    path = [int(target)]
    while path[-1] != source:
        node = int(before[path[-1]])
        if node < 0:
            return []
        if len(path) > n or node >= n:
            raise ValueError(
                f"predecessors leads from {target} to {node} and not to {source}; "
                "it is not of shortest paths from that source"
            )
        path.append(node)
    return path[::-1]

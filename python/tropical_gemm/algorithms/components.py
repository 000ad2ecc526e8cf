"""Strongly connected components of a graph in host memory."""

from typing import Any

import numpy as np


def strong(adjacency: Any) -> Any:
    """The component of each node, numbered from 0, of a bool matrix (n, n).

    Kosaraju's two searches; each step looks at a whole row, so that all of it reads the matrix three times.
    """
    n = len(adjacency)
    unseen = np.ones(n, bool)
    finished: list[int] = []
    for root in range(n):
        path = [root] if unseen[root] else []
        unseen[root] = False
        while path:
            ahead = adjacency[path[-1]] & unseen
            node = int(ahead.argmax())
            if ahead[node]:
                unseen[node] = False
                path.append(node)
            else:
                finished.append(path.pop())
    backward = np.ascontiguousarray(adjacency.T)
    labels = np.full(n, -1)
    count = 0
    for root in reversed(finished):
        if labels[root] >= 0:
            continue
        found = np.array([root])
        while len(found):
            labels[found] = count
            found = np.flatnonzero(backward[found].any(axis=0) & (labels < 0))
        count += 1
    return labels


def with_negative_edges(labels: Any, negative: Any) -> list[Any]:
    """The nodes of each component that has a negative edge within: only there can cycles be negative.

    ``negative`` (n, n, bool) tells the edges.
    """
    rows = zip(negative, labels.tolist(), strict=True)
    found = {label for row, label in rows if (row & (labels == label)).any()}
    return [np.flatnonzero(labels == label) for label in sorted(found)]

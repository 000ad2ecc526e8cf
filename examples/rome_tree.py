"""The shortest-path tree of Rome's roads, laid out by the roads' own distances.

Takes rome99.gr of the 9th DIMACS implementation challenge, or any other DIMACS graph. All distances between
its nodes are computed, in integers; classical scaling turns them into places on a map, which nobody gave; and
the predecessors of one node are drawn as the tree of its shortest paths.

    python examples/rome_tree.py rome99.gr --output rome_tree.png
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import tropical_gemm as tg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from scipy.linalg import eigh
from tropical_gemm.cli.readers import read_graph


def places(distances: np.ndarray) -> np.ndarray:
    """The plane in which the distances are kept best (classical multidimensional scaling)."""
    n = len(distances)
    gram = -0.5 * distances.astype(np.float64) ** 2
    gram += gram.mean() - gram.mean(axis=0) - gram.mean(axis=1, keepdims=True)
    values, vectors = eigh(gram, subset_by_index=(n - 2, n - 1))
    return vectors[:, ::-1] * np.sqrt(values[::-1])


def draw(points: np.ndarray, tree: np.ndarray, lengths: np.ndarray, title: str, path: str) -> None:
    nodes = np.flatnonzero(tree >= 0)
    nodes = nodes[np.argsort(-lengths[nodes])]  # the near ones on top
    figure = Figure(figsize=(8, 7), layout="constrained")
    axes = figure.subplots()
    edges = LineCollection(
        np.stack([points[nodes], points[tree[nodes]]], axis=1),
        array=lengths[nodes] / 1000,
        cmap="viridis",
        lw=0.8,
    )
    axes.add_collection(edges)
    axes.autoscale()
    axes.plot(*points[tree < 0].T, "o", color="crimson", ms=6)
    axes.set(title=title, aspect="equal", xticks=[], yticks=[])
    figure.colorbar(edges, label="kilometres from the root", shrink=0.7)
    figure.savefig(path, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph", type=Path)
    parser.add_argument("--output", default="rome_tree.png")
    arguments = parser.parse_args()

    graph = read_graph(arguments.graph)
    start = time.perf_counter()
    distances, predecessors = tg.shortest_path(graph.csgraph(), directed=False, return_predecessors=True)
    seconds = time.perf_counter() - start
    print(f"{graph.nodes} nodes, {graph.edge_count} arcs: all distances and predecessors in {seconds:.2f} s")
    if (distances == np.iinfo(distances.dtype).max).any():
        raise SystemExit("the graph falls into pieces, which have no distances to lay them out by")

    root = int(distances.max(axis=1).argmin())  # the centre: nobody is far from it
    farthest = int(distances[root].argmax())
    path = tg.reconstruct_path(root, farthest, predecessors)
    print(f"from the centre, node {graph.label(root)}, the farthest is node {graph.label(farthest)}:")
    print(f"{distances[root, farthest]} m over {len(path) - 1} roads")
    title = f"Shortest paths from the centre of {arguments.graph.stem}: {graph.nodes} junctions"
    draw(places(distances), predecessors[root], distances[root], title, arguments.output)
    print(f"map: {arguments.output}")


if __name__ == "__main__":
    main()

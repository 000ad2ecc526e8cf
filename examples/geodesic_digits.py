"""Geodesic distances over handwritten digits, and a map of the digits drawn from them (Isomap).

Each image is joined to its nearest neighbours; the length of the shortest path through that graph is the
distance along the cloud of images.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import tropical_gemm as tg
from matplotlib.figure import Figure
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components, shortest_path
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph


def neighbour_graph(images: np.ndarray, neighbours: int):
    """Sparse symmetric matrix of the Euclidean distances between each image and its nearest neighbours."""
    graph = kneighbors_graph(images, neighbours, mode="distance")
    graph = graph.maximum(graph.T)
    pieces, _ = connected_components(graph, directed=False)
    if pieces > 1:
        raise SystemExit(f"with {neighbours} neighbours the graph falls into {pieces} pieces; use more")
    return graph


def edge_lengths(graph) -> np.ndarray:
    """Dense matrix of the edges: 0 on the diagonal, infinity where there is none."""
    lengths = np.full(graph.shape, np.inf)
    edges = graph.tocoo()
    lengths[edges.row, edges.col] = edges.data
    np.fill_diagonal(lengths, 0.0)
    return lengths


def embed(distances: np.ndarray) -> np.ndarray:
    """Classical multidimensional scaling: the plane in which the distances are kept best."""
    n = len(distances)
    gram = -0.5 * distances**2
    gram = gram - gram.mean(axis=0) - gram.mean(axis=1, keepdims=True) + gram.mean()
    values, vectors = eigh(gram, subset_by_index=(n - 2, n - 1))
    return vectors[:, ::-1] * np.sqrt(values[::-1])


def draw(points: np.ndarray, digits: np.ndarray, title: str, path: str) -> None:
    figure = Figure(figsize=(9, 7.5), layout="constrained")
    axes = figure.subplots()
    for digit in range(10):
        of_digit = points[digits == digit]
        axes.scatter(*of_digit.T, color=f"C{digit}", s=12, alpha=0.7, linewidths=0, label=str(digit))
        axes.text(
            *np.median(of_digit, axis=0), str(digit), size=18, weight="bold", ha="center", va="center",
            bbox={"boxstyle": "circle,pad=0.15", "facecolor": "white", "edgecolor": f"C{digit}"},
        )  # fmt: skip
    axes.legend(title="digit", markerscale=2, loc="upper left", bbox_to_anchor=(1, 1))
    axes.set(title=title, xlabel="first coordinate", ylabel="second coordinate", aspect="equal")
    figure.savefig(path, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--neighbours", type=int, default=10)
    parser.add_argument("--output", default="geodesic_digits.png")
    arguments = parser.parse_args()

    images, digits = load_digits(return_X_y=True)
    graph = neighbour_graph(images, arguments.neighbours)
    n = len(images)
    print(f"{n} images, {arguments.neighbours} nearest neighbours each: {graph.nnz // 2} edges, connected")

    lengths = edge_lengths(graph)
    for method, name in (("FW", "blocked Floyd-Warshall"), ("auto", "the method it chooses")):
        start = time.perf_counter()
        distances = tg.shortest_path(lengths, method)
        print(f"tropical_gemm: {time.perf_counter() - start:6.2f} s (shortest_path, {name})")

    for method, name in (("FW", "Floyd-Warshall"), ("D", "Dijkstra")):
        start = time.perf_counter()
        expected = shortest_path(graph, method=method, directed=False)
        print(f"scipy:         {time.perf_counter() - start:6.2f} s (shortest_path, {name})")

    print(
        f"Dijkstra walks along the {graph.nnz // n} edges of each image; Floyd-Warshall looks at all {n}\n"
        "entries of every row, edge or not, and gains on dense graphs."
    )

    # A path has fewer than n edges, so no length is off by more than this.
    bound = n * np.finfo(np.float64).eps * expected.max()
    difference = np.abs(distances - expected).max()
    print(
        f"largest difference: {difference:.1e} in lengths up to {expected.max():.0f} (rounding: {bound:.1e})"
    )
    if not difference <= bound:
        raise SystemExit("the distances differ by more than rounding")

    title = (
        f"Isomap of {n} handwritten digits: classical scaling of the geodesic distances\n"
        f"through the graph of {arguments.neighbours} nearest neighbours"
    )
    draw(embed(distances), digits, title, arguments.output)
    print(f"map of the digits: {arguments.output}")


if __name__ == "__main__":
    main()

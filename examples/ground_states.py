"""Ground states by tensor networks: spin glasses, maximum independent sets, most probable explanations.

A model is a sum of terms, each on a few variables; every term becomes a tensor, every variable a label.
Contracted over (min, +) the network gives the lowest energy, over (max, +) the best score, and with it one
configuration that has it.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import tropical_gemm as tg
from matplotlib.figure import Figure

Edge = tuple[int, int]


class Model(NamedTuple):
    """Terms ``(tensor, variables)`` whose sum is the energy (min_plus) or the score (max_plus)."""

    terms: list[tuple[np.ndarray, tuple[int, ...]]]
    semiring: str

    def solve(self, **options) -> tuple[float, dict[int, int]]:
        """The best value and one configuration that has it."""
        arguments = itertools.chain.from_iterable((x, list(variables)) for x, variables in self.terms)
        value, found = tg.einsum(*arguments, [], semiring=self.semiring, return_assignment=True, **options)
        return float(value), found

    def count(self, **options) -> tuple[float, float]:
        """The best value and how many configurations have it; for terms that are integers."""
        arguments = itertools.chain.from_iterable((x, list(variables)) for x, variables in self.terms)
        value, count = tg.einsum(*arguments, [], semiring=f"count_{self.semiring}", **options)
        return float(value), float(count)

    def value(self, configuration: dict[int, int]) -> float:
        return float(sum(x[tuple(configuration[v] for v in variables)] for x, variables in self.terms))


def square_lattice(rows: int, cols: int, periodic: bool = False) -> list[Edge]:
    def number(r: int, c: int) -> int:
        return r % rows * cols + c % cols

    open_end = 0 if periodic else 1
    right = [(number(r, c), number(r, c + 1)) for r in range(rows) for c in range(cols - open_end)]
    down = [(number(r, c), number(r + 1, c)) for r in range(rows - open_end) for c in range(cols)]
    return right + down


def regular_graph(degree: int, nodes: int, seed: int) -> list[Edge]:
    """A random graph of ``degree`` neighbours each: pairs of half-edges, drawn until none repeats."""
    rng = np.random.default_rng(seed)
    while True:
        pairs = rng.permutation(np.repeat(np.arange(nodes), degree)).reshape(-1, 2)
        edges = {(min(a, b), max(a, b)) for a, b in pairs.tolist()}
        if len(edges) == len(pairs) and all(a != b for a, b in edges):
            return sorted(edges)


def chimera(rows: int, cols: int, half: int = 4) -> list[Edge]:
    """Cells of two sides of ``half`` nodes, joined across; first sides also down, second to the right."""

    def number(r: int, c: int, side: int, i: int) -> int:
        return ((r * cols + c) * 2 + side) * half + i

    edges = []
    for r, c in itertools.product(range(rows), range(cols)):
        edges += [(number(r, c, 0, i), number(r, c, 1, j)) for i in range(half) for j in range(half)]
        if r + 1 < rows:
            edges += [(number(r, c, 0, i), number(r + 1, c, 0, i)) for i in range(half)]
        if c + 1 < cols:
            edges += [(number(r, c, 1, i), number(r, c + 1, 1, i)) for i in range(half)]
    return edges


def ising(edges: Iterable[Edge], couplings: Iterable[float]) -> Model:
    """``E = -sum J s s'`` for spins +1 (index 0) and -1 (index 1)."""
    spins = np.array([1.0, -1.0])
    terms = [(-j * np.outer(spins, spins), e) for e, j in zip(edges, couplings, strict=True)]
    return Model(terms, "min_plus")


def independent_set(nodes: Iterable[int], edges: Iterable[Edge]) -> Model:
    """The number of chosen nodes, no two of which are neighbours."""
    chosen, apart = np.array([0.0, 1.0]), np.array([[0.0, 0.0], [0.0, -np.inf]])
    return Model([(chosen, (v,)) for v in nodes] + [(apart, e) for e in edges], "max_plus")


def factor_graph(path: str) -> Model:
    """The logarithm of the probability of a model in the UAI format (MARKOV or BAYES)."""
    with open(path, encoding="utf-8", errors="replace") as file:
        words = iter(file.read().split())

    def numbers(count: int, kind: type = int) -> list:
        found = [kind(word) for word in itertools.islice(words, max(0, min(count, sys.maxsize)))]
        if len(found) != count:
            raise ValueError(f"it ends too early, or {count} is no number of entries")
        return found

    def factor(scope: tuple[int, ...]) -> np.ndarray:
        table = np.array(numbers(*numbers(1), float))
        if len(table) != math.prod(sizes[v] for v in scope):
            raise ValueError(f"a table of {len(table)} entries for the variables {scope}")
        if not (table >= 0).all():
            raise ValueError("a probability is negative or no number")
        with np.errstate(divide="ignore"):
            return np.log(table).reshape([sizes[v] for v in scope])

    try:
        first = next(words, "nothing")
        if first not in ("MARKOV", "BAYES"):
            raise ValueError(f"it begins with {first!r}, expected MARKOV or BAYES")
        sizes = numbers(*numbers(1))
        scopes = [tuple(numbers(*numbers(1))) for _ in range(*numbers(1))]
        if min(sizes, default=1) < 1 or any(not set(scope) <= set(range(len(sizes))) for scope in scopes):
            raise ValueError("a variable without values, or one that was not announced")
        if any(len(set(scope)) < len(scope) for scope in scopes):
            raise ValueError("a table names a variable twice")
        terms = [(factor(scope), scope) for scope in scopes]
        if next(words, None) is not None:
            raise ValueError("it goes on after the last table")
    except ValueError as error:
        raise SystemExit(f"{path} is no UAI model: {error}") from None
    return Model(terms, "max_plus")


def show(name: str, model: Model, **options) -> dict[int, int]:
    start = time.perf_counter()
    value, configuration = model.solve(**options)
    if not np.isclose(model.value(configuration), value, rtol=1e-12):
        raise SystemExit(f"{name}: the configuration has another value than the network")
    took = time.perf_counter() - start
    print(f"{name:42} {value:10.6g}   {len(configuration):4} variables, {took * 1e3:7.1f} ms")
    return configuration


def draw(size: int, edges: Sequence[Edge], couplings: Sequence[float], found: dict[int, int], path: str):
    """Spins, and the bonds that they satisfy (thin) and do not (thick, red)."""
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    for (a, b), j in zip(edges, couplings, strict=True):
        broken = j * (1 - 2 * found[a]) * (1 - 2 * found[b]) < 0
        axes.plot([a % size, b % size], [a // size, b // size], color="C3" if broken else "0.7",
                  lw=4 if broken else 1.5, ls="-" if j > 0 else (0, (2, 1.5)), zorder=1)  # fmt: skip
    y, x = np.divmod(np.arange(size * size), size)
    axes.scatter(x, y, s=120, c=[found[v] for v in range(size * size)], cmap="gray", edgecolors="k", zorder=2)
    title = "a ground state of a ±J spin glass\n(dashed: antiferromagnetic)"
    axes.set(xticks=[], yticks=[], aspect="equal", title=title)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=12, help="side of the square lattice")
    parser.add_argument("--uai", help="a factor graph to explain")
    parser.add_argument("--output", default="ground_state.png")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)

    n = arguments.size
    lattice = square_lattice(n, n)
    signs = rng.choice([-1.0, 1.0], len(lattice))
    found = show(f"±J spin glass, square {n} x {n}", ising(lattice, signs))
    show("Gaussian spin glass, the same lattice", ising(lattice, rng.normal(size=len(lattice))))
    cubic = regular_graph(3, 40, seed=1)
    show("±J spin glass, 3-regular, 40 spins", ising(cubic, rng.choice([-1.0, 1.0], len(cubic))))
    cells = chimera(3, 3)
    show("±J spin glass, Chimera 3 x 3 cells", ising(cells, rng.choice([-1.0, 1.0], len(cells))))
    show(f"maximum independent set, grid {n} x {n}", independent_set(range(n * n), lattice))
    petersen = [(i, (i + 1) % 5) for i in range(5)] + [(i, i + 5) for i in range(5)]
    petersen += [(5 + i, 5 + (i + 2) % 5) for i in range(5)]
    show("maximum independent set, Petersen graph", independent_set(range(10), petersen))
    for name, model in (
        (f"±J spin glass, square {n} x {n}", ising(lattice, signs)),
        ("maximum independent sets, Petersen graph", independent_set(range(10), petersen)),
    ):
        value, count = model.count()
        print(f"{name:42} {value:10.6g}   reached by {count:.6g} configurations")
    if arguments.uai:
        show(f"most probable explanation, {arguments.uai}", factor_graph(arguments.uai))

    draw(n, lattice, signs.tolist(), found, arguments.output)
    print(f"picture: {arguments.output}")


if __name__ == "__main__":
    main()

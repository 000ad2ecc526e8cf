"""The models of examples/ground_states.py against brute force and known numbers."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")
_spec = importlib.util.spec_from_file_location(
    "ground_states", Path(__file__).parents[2] / "examples" / "ground_states.py"
)
models = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(models)


def solved(model):
    value, configuration = model.solve(optimize="greedy")
    assert model.value(configuration) == value
    return value


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("size", [2, 3, 4])
def test_spin_glasses(seed, size):
    edges = models.square_lattice(size, size)
    model = models.ising(edges, np.random.default_rng(seed).choice([-1.0, 1.0], len(edges)))
    bits = np.arange(1 << size * size)[:, None] >> np.arange(size * size) & 1
    energies = sum(x[tuple(bits[:, v] for v in variables)] for x, variables in model.terms)
    assert solved(model) == energies.min()
    assert model.count(optimize="greedy") == (energies.min(), (energies == energies.min()).sum())


def test_spin_glasses_of_the_table():
    # By tests/ground_state_table.cpp, which looks at all configurations, 2^25 and 2^36.
    lines = (Path(__file__).parent / "ground_states.csv").read_text().split()
    assert len(lines) == 40
    for size, seed, energy, ways in (map(int, line.split(",")) for line in lines):
        edges = models.square_lattice(size, size)
        model = models.ising(edges, np.random.default_rng(seed).choice([-1, 1], len(edges)))
        assert solved(model) == energy
        assert model.count(optimize="greedy") == (energy, ways)


def test_fully_frustrated_torus():
    # Villain's model: every second column of vertical bonds is antiferromagnetic.
    edges = models.square_lattice(4, 4, periodic=True)
    couplings = [-1.0 if abs(a - b) in (4, 12) and a % 4 % 2 else 1.0 for a, b in edges]
    model = models.ising(edges, couplings)
    assert solved(model) == -16
    assert model.count() == (-16, 272)


@pytest.mark.parametrize("size", range(1, 13))
def test_independent_sets_of_grids(size):
    model = models.independent_set(range(size * size), models.square_lattice(size, size))
    assert solved(model) == (size * size + 1) // 2
    assert model.count(optimize="greedy") == ((size * size + 1) // 2, 1 if size % 2 else 2)


def test_independent_sets_of_known_graphs():
    def petersen(n, k):
        ring = [(i, (i + 1) % n) for i in range(n)]
        return ring + [(i, i + n) for i in range(n)] + [(n + i, n + (i + k) % n) for i in range(n)]

    # Petersen, dodecahedron, Desargues
    for n, k, independent, sets in ((5, 2, 4, 5), (10, 2, 8, 5), (10, 3, 10, 2)):
        model = models.independent_set(range(2 * n), petersen(n, k))
        assert solved(model) == independent
        assert model.count() == (independent, sets)


def test_graphs():
    cubic = models.regular_graph(3, 20, seed=0)
    assert np.bincount(np.array(cubic).ravel()).tolist() == [3] * 20
    assert len(models.chimera(2, 2)) == 4 * 16 + 2 * 4 + 2 * 4
    assert len(models.square_lattice(3, 4)) == 17
    assert len(models.square_lattice(3, 4, periodic=True)) == 24


def test_factor_graph(tmp_path):
    path = tmp_path / "model.uai"
    tables = "4\n 0.1 0.9\n 0.4 0.6\n6\n 0.2 0.7 0.1\n 0.5 0.25 0.25\n"
    path.write_text("MARKOV\n3\n2 2 3\n2\n2 0 1\n2 1 2\n\n" + tables)
    model = models.factor_graph(str(path))
    value, configuration = model.solve()
    assert np.exp(value) == pytest.approx(0.9 * 0.5)
    assert configuration == {0: 0, 1: 1, 2: 0}
    path.write_text("MARKOV\n3\n2 2")
    with pytest.raises(SystemExit, match="is no UAI model: it ends too early, or 3 is no number of entries"):
        models.factor_graph(str(path))
    path.write_text("GRAPH\n")
    with pytest.raises(SystemExit, match="it begins with 'GRAPH', expected MARKOV or BAYES"):
        models.factor_graph(str(path))

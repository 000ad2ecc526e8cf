"""Algorithms on the semiring products."""

from .closure import closure
from .errors import DivergenceError, NegativeCycleError
from .paths import reconstruct_path
from .shortest_path import shortest_path, shortest_paths

__all__ = [
    "DivergenceError",
    "NegativeCycleError",
    "closure",
    "reconstruct_path",
    "shortest_path",
    "shortest_paths",
]

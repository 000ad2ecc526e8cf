"""The core's closure and its reading of graphs, for arrays of every kind."""

from dataclasses import dataclass
from typing import Any

from .. import _core
from .._arrays import Kind, common_kind, placed
from .errors import EdgeError


@dataclass
class Facts:
    """What reading a matrix found; positions are (row, column)."""

    nan_at: "tuple[int, int] | None"
    infinite_at: "tuple[int, int] | None"
    negative_at: "tuple[int, int] | None"
    zeros: int
    absent: int
    magnitude: float


@dataclass
class Reading:
    """How elements are read as edges."""

    semiring: str
    no_edge: "bytes | None" = None
    undirected: bool = False
    unweighted: bool = False
    reflexive: bool = True


@dataclass
class Session:
    """One kind of arrays, where they are, and the caller's wishes. Arrays in and out are as the core makes
    them."""

    kind: Kind
    like: Any
    threads: "int | None" = None
    stream: Any = None

    def placed(self) -> Any:
        """A context in which the library's own operations are in order with the core's."""
        return placed(self.kind, self.like, self.stream)

    def load(
        self, source: Any, reading: Reading, *, to: Any = True, pred: bool = False
    ) -> tuple[Any, Any, Facts]:
        """What a closure starts from, predecessors by edges, and facts; ``to`` may be the source."""
        n = int(source.shape[0])
        options = (reading.no_edge, reading.undirected, reading.unweighted, reading.reflexive)
        with self.placed() as queue:
            made, before, found = _core.load_graph(
                source, (to, pred), reading.semiring, options, self.threads, queue
            )

        def place(at: "int | None") -> "tuple[int, int] | None":
            return None if at is None else divmod(at, n)

        facts = Facts(
            place(found["nan_at"]),
            place(found["infinite_at"]),
            place(found["negative_at"]),
            found["zeros"],
            found["absent"],
            found["magnitude"],
        )
        return made, before, facts

    def close(self, d: Any, pred: Any, semiring: str, tolerance: float, progress: Any) -> "int | None":
        """In place; a node with a closed walk that is too good, or None."""
        with self.placed() as queue:
            return _core.closure(d, pred, semiring, tolerance, progress, self.threads, queue)

    def paths_from(
        self, w: Any, sources: list[int], tracks: bool, limit: int, progress: Any
    ) -> tuple[Any, Any, bool]:
        """Rows of distances by min_plus products; whether they came to rest within ``limit`` of them."""
        with self.placed() as queue:
            return _core.paths_from(w, sources, tracks, "min_plus", limit, progress, self.threads, queue)


def rounding(dtype: str, n: int) -> float:
    """n times the unit of the dtype: what a sum of n terms may be off by, relative to their sizes."""
    units = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
    return n * units.get(dtype, 0.0)


def refuse_strange(facts: Facts, argument: str, expected: str) -> None:
    if facts.nan_at is not None:
        raise EdgeError(f"{argument} is NaN at ({{}}, {{}}), expected {expected}", *facts.nan_at)
    if facts.infinite_at is not None:
        raise EdgeError(
            f"{argument} at ({{}}, {{}}) is the infinity that is better than every weight, "
            f"expected {expected}",
            *facts.infinite_at,
        )


def reachable(adjacency: Any, threads: "int | None" = None, *, reflexive: bool = True) -> Any:
    """Which nodes of a graph in host memory (bool, n x n) reach which; each itself, too, where reflexive."""
    session = Session(common_kind(adjacency=adjacency), adjacency, threads)
    reach, _, _ = session.load(adjacency, Reading("or_and", reflexive=reflexive))
    session.close(reach, None, "or_and", 0.0, None)
    return reach


def contiguous(kind: Kind, x: Any) -> bool:
    """Whether the core may compute in ``x`` itself."""
    if kind.library == "torch":
        return bool(x.is_contiguous()) and not x.requires_grad
    flags: Any = getattr(x, "flags", None)
    return (
        kind.library in ("numpy", "cupy") and bool(flags.c_contiguous) and getattr(flags, "writeable", True)
    )

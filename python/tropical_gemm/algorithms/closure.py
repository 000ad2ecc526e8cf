"""The closure of a matrix: the best over all paths, of any number of steps."""

from typing import Any

from .. import _core
from .._arrays import common_kind
from . import memory, ranges
from .checks import flag, nodes_of
from .dense import Reading, Session, contiguous, reachable, refuse_strange, rounding
from .errors import DivergenceError, EdgeError
from .host import dtype_name, to_numpy
from .progress import reporting

_EXPECTED = {
    "max_plus": "weights below infinity, and -inf (or the lowest integer) for no edge",
    "min_plus": "weights above -infinity, and inf (or the highest integer) for no edge",
    "max_mul": "weights from 0, for no edge, to below infinity",
    "min_mul": "weights above 0, and inf (or the highest integer) for no edge",
}


def closure(
    d: Any,
    *,
    semiring: str,
    reflexive: bool = True,
    overwrite: bool = False,
    progress: Any = False,
    stream: Any = None,
    threads: int | None = None,
) -> Any:
    """Closure of a square matrix over a semiring: ``I add D add D² add D³ add ...``, the Kleene star.

    Entry ``[i, j]`` is the best value of a path from i to j, of any number of steps: the shortest path in
    min_plus, the longest in max_plus (without positive cycles), the widest in max_min, the minimax path in
    min_max, the most reliable one in max_mul, and whether there is one in or_and.

    Parameters
    ----------
    d
        An array (n, n) of any kind and dtype that :func:`matmul` takes for the semiring. The semiring's zero
        is "no edge": -inf (or the lowest integer) for max_plus and max_min, inf (or the highest integer) for
        min_plus, min_mul and min_max, 0 for max_mul, False for or_and.
    semiring
        As for :func:`matmul`.
    reflexive
        Whether the path of no steps counts: the diagonal is then the semiring's one. False gives ``D add D²
        add ...``, the transitive closure.
    overwrite
        The result may be written to ``d`` (it is if ``d`` is a row-major NumPy, CuPy or torch array).
    progress
        True draws a bar on stderr; a function is called with (done, total), from this thread, now and then.
        What it raises ends the call.
    stream, threads
        As for :func:`matmul`.

    Returns
    -------
    array
        Of the shape, dtype and kind of ``d``. By blocked Floyd-Warshall: integers and sums without rounding
        are exact; floats are within n roundings of the value of a best path.

    Raises
    ------
    TypeError
        For dtypes that the semiring lacks and arguments of a wrong type.
    ValueError
        For matrices that are not square, NaN (naming its place), and weights outside the semiring's domain:
        negative ones in max_mul, below or equal to 0 in min_mul, the infinity beyond every weight in the
        plus and mul semirings.
    DivergenceError
        A ValueError. Where a closed walk is better than staying: a positive cycle in max_plus, a negative
        one in min_plus, a product beyond 1 in max_mul. ``node`` lies on one. Floats may be better by n
        roundings of the largest weight (of 1 in the mul semirings) and count as staying.
    OverflowError
        Where a value leaves the range of the dtype.
    MemoryError
        Before anything is computed, where the result and scratch memory do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> import tropical_gemm as tg
    >>> width = np.array([[0, 5, 2], [0, 0, 3], [0, 0, 0]], np.float32)
    >>> tg.closure(width, semiring="max_min", reflexive=False)
    array([[0., 5., 3.],
           [0., 0., 3.],
           [0., 0., 0.]], dtype=float32)
    >>> tg.closure(width > 0, semiring="or_and")
    array([[ True,  True,  True],
           [False,  True,  True],
           [False, False,  True]])
    """
    kind = common_kind(d=d)
    wants_overwrite = flag(overwrite, "overwrite")
    reading = Reading(_canonical(semiring), reflexive=flag(reflexive, "reflexive"))
    n = nodes_of(d, "d")
    with reporting(progress, "closure") as report:
        source = kind.operand(d, "d")
        session = Session(kind, source, threads, stream)
        in_place = wants_overwrite and contiguous(kind, d)
        memory.check_closure(n, dtype_name(d), in_place, kind, source)
        if in_place:  # nothing is written before the matrix is known to be good
            _, _, facts = session.load(source, reading, to=False)
            _refuse(facts, reading.semiring)
        made, _, facts = session.load(source, reading, to=kind.output(d, "d") if in_place else True)
        _refuse(facts, reading.semiring)
        dtype = dtype_name(d)
        safe = ranges.is_safe(reading.semiring, dtype, facts.magnitude, n)
        reach = None if safe else _reach(kind, made, reading, dtype, threads)
        scale = facts.magnitude if reading.semiring.endswith("plus") else 1.0
        node = session.close(made, None, reading.semiring, rounding(dtype, n) * scale, report)
    if node is not None:
        raise DivergenceError(
            "d has a closed walk through node {} that gets better each time round, so that it has no "
            f"{reading.semiring} closure",
            node,
        )
    if in_place:
        kind.written(d)
    result = d if in_place else kind.result(made)
    if reach is not None:
        ranges.check(reading.semiring, dtype, to_numpy(kind, result), reach)
    return result


def _canonical(semiring: Any) -> str:
    if not isinstance(semiring, str):
        raise TypeError(f"semiring is of type {type(semiring).__name__}, expected a str such as 'min_plus'")
    return _core.semiring_name(semiring)


def _refuse(facts: Any, semiring: str) -> None:
    expected = _EXPECTED.get(semiring, "numbers")
    refuse_strange(facts, "d", expected)
    if semiring in ("max_mul", "min_mul") and facts.negative_at is not None:
        raise EdgeError(f"d is negative at ({{}}, {{}}), expected {expected}", *facts.negative_at)
    if semiring == "min_mul" and facts.zeros:
        raise ValueError(f"d holds {facts.zeros} zeros off the diagonal, expected {expected}")


def _reach(kind: Any, made: Any, reading: Reading, dtype: str, threads: "int | None") -> Any:
    """Which pairs are joined by a path, of one step or more."""
    matrix = to_numpy(kind, kind.result(made))
    low, high = ranges.extremes(dtype)
    zero = 0 if reading.semiring == "max_mul" else low if reading.semiring.startswith("max") else high
    return reachable(matrix != zero, threads, reflexive=reading.reflexive)

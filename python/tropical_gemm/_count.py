"""The product of values with multiplicities."""

from typing import Any, NamedTuple

from . import _core
from ._arrays import Jax, Kind, common_kind, is_tensor, placed


class CountResult(NamedTuple):
    """What :func:`count_matmul` returns."""

    values: Any
    counts: Any


def _is_transformed(x: Any) -> bool:
    from .torch import _operators

    return bool(_operators.in_transform() or _operators._is_wrapped(x))


def check_counts(kind: Kind) -> None:
    """Whether arrays of that kind can hold counts."""
    if isinstance(kind, Jax) and not kind.wide():
        raise TypeError(
            "counts are float64 or int64, which JAX has with jax.config.update('jax_enable_x64', True)"
        )


def count_matmul(
    a: Any, b: Any, *, semiring: str, stream: Any = None, threads: int | None = None
) -> CountResult:
    """Matrix product that also counts how many candidates reach each value.

    ``values`` is the product of the values; ``counts[i, j]`` is the sum of ``a_counts[i, k] * b_counts[k,
    j]`` over all k whose candidate equals ``values[i, j]``. Contracted over a model it is the ground-state
    energy and its degeneracy.

    Parameters
    ----------
    a, b
        Pairs ``(values, counts)``, or values alone, which count 1, or 0 where they are the semiring's zero.
        Values are float32, float64, int32 or int64, in shapes as for :func:`tropical_gemm.matmul`; counts
        have the shape of their values and are float64 (exact to 2^53) or int64, of one dtype.
    semiring
        ``"max_plus"`` or ``"min_plus"``.
    stream, threads
        As for :func:`tropical_gemm.matmul`.

    Returns
    -------
    CountResult
        ``(values, counts)`` in the dtype of the values and of the counts (float64 where none came). Where the
        value is the semiring's zero or NaN, the count is 0.

    Notes
    -----
    Ties are exact equality: use integers, or floats that hold integers. There is no argmax and no gradient.
    On a CUDA device the host waits where values or counts are integers, to see whether they fit.

    Raises
    ------
    OverflowError
        For an integer value or an int64 count of the result that does not fit its dtype (the extreme values
        stand for infinities, and do not count as fitting).
    TypeError, ValueError, RuntimeError
        As :func:`tropical_gemm.matmul` does; RuntimeError under the transforms of torch.func.

    Examples
    --------
    >>> import numpy as np
    >>> import tropical_gemm as tg
    >>> spins = np.array([[-1, 1], [1, -1]])  # the energies of a bond
    >>> tg.count_matmul(spins, spins, semiring="min_plus")
    CountResult(values=array([[-2,  0],
           [ 0, -2]]), counts=array([[1., 2.],
           [2., 1.]]))
    """
    arrays: dict[str, Any] = {}
    for name, x in (("a", a), ("b", b)):
        if not isinstance(x, tuple):
            arrays[name] = x
            continue
        if len(x) != 2:
            raise ValueError(f"{name} is a tuple of {len(x)}, expected values or a pair (values, counts)")
        arrays[name], arrays[f"{name}_counts"] = x
    for name, x in arrays.items():
        if is_tensor(x) and _is_transformed(x):
            raise RuntimeError(
                f"{name} is under a transform of torch.func, for which count_matmul has no rule: "
                "give the batch as leading axes"
            )
    kind = common_kind(**arrays)
    check_counts(kind)
    read = {name: kind.operand(x, name) for name, x in arrays.items()}
    with placed(kind, read["a"], stream) as queue:
        made = _core.count_matmul(
            *(read["a"], read.get("a_counts"), read["b"], read.get("b_counts")), semiring, threads, queue
        )
    return CountResult._make(kind.result(x) for x in made)

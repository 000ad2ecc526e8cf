"""The operations, for every kind of array."""

from typing import Any, Literal, NamedTuple, overload

import numpy as np

from . import _core
from ._arrays import common_kind, is_jax, is_tensor, placed


class MatmulResult(NamedTuple):
    """What :func:`matmul` returns where the argmax is wanted."""

    values: Any
    argmax: Any


class MatmulGradients(NamedTuple):
    """What :func:`matmul_backward` returns; None for a gradient that was not wanted."""

    grad_a: Any
    grad_b: Any


# What the core shall make: the values, or the argmax too.
_VALUES = (True, False)
_BOTH = (True, True)

_fronts: dict[str, Any] = {}


def _front_of(x: Any, y: Any) -> Any:
    """The module for torch tensors or for JAX arrays, imported when the first one comes; None for others."""
    # By statements, which torch.compile can follow; and once, since a statement takes half a microsecond.
    if is_tensor(x) or is_tensor(y):
        if "torch" not in _fronts:
            from . import torch

            _fronts["torch"] = torch
        return _fronts["torch"]
    if is_jax(x) or is_jax(y):
        if "jax" not in _fronts:
            from . import jax

            _fronts["jax"] = jax
        return _fronts["jax"]
    return None


@overload
def matmul(
    a: Any,
    b: Any,
    *,
    semiring: str = ...,
    return_argmax: Literal[True],
    out: Any = ...,
    accumulate: bool = ...,
    argmax_offset: int = ...,
    stream: Any = ...,
    threads: int | None = ...,
) -> MatmulResult: ...
@overload
def matmul(
    a: Any,
    b: Any,
    *,
    semiring: str = ...,
    return_argmax: bool = ...,
    out: tuple[Any, Any],
    accumulate: bool = ...,
    argmax_offset: int = ...,
    stream: Any = ...,
    threads: int | None = ...,
) -> MatmulResult: ...
@overload
def matmul(
    a: Any,
    b: Any,
    *,
    semiring: str = ...,
    return_argmax: bool = ...,
    out: Any = ...,
    accumulate: bool = ...,
    argmax_offset: int = ...,
    stream: Any = ...,
    threads: int | None = ...,
) -> Any: ...
def matmul(
    a: Any,
    b: Any,
    *,
    semiring: str = "max_plus",
    return_argmax: bool = False,
    out: Any = None,
    accumulate: bool = False,
    argmax_offset: int = 0,
    stream: Any = None,
    threads: int | None = None,
) -> Any:
    """Matrix product over a semiring: ``C[i, j] = add_k mul(A[i, k], B[k, j])``.

    Parameters
    ----------
    a, b
        Arrays of one library (NumPy, PyTorch, CuPy, JAX, or any that follows the array API standard) and of
        one dtype, all in host memory or all on one CUDA device. Shapes follow :func:`numpy.matmul`: matrices
        ``(..., M, K)`` and ``(..., K, N)`` whose leading axes broadcast, or vectors ``(K,)``. Any strides.
    semiring
        ``"max_plus"``, ``"min_plus"``, ``"max_mul"``, ``"min_mul"``, ``"max_min"``, ``"min_max"`` on float32,
        float64, float16, bfloat16, int16, int32, int64; ``"or_and"`` on bool. ``add`` comes first in the
        name, ``mul`` second. Spelling is free in case, ``-``, ``_`` and blanks.
    return_argmax
        Return ``MatmulResult(values, argmax)``, where ``argmax`` (int32, the shape of the values) is the
        selected ``k``, for min semirings too: the lowest on ties, the first NaN's if there is one, and -1
        where nothing was selected, that is where K is 0 or the value is the semiring's infinite zero (-inf
        for max_plus, +inf for min_plus, the extreme integer).
    out
        An array to write the values to, or a pair ``(values, argmax)``: exactly the result's shape and dtype,
        writable, without overlap with ``a`` and ``b``. It is returned; a pair as a ``MatmulResult``.
    accumulate
        ``out <- add(out, A mul B)``. With a pair, an index is rewritten only where the product is strictly
        better.
    argmax_offset
        Added to each index that is not -1, so that K can be processed in pieces with ``accumulate``.
    stream
        For arrays on a CUDA device, the stream to run on: None for the library's current one (for unknown
        libraries the legacy default stream); an int as in DLPack (1 the legacy default stream, 2 the
        per-thread one, else an address); or a stream of torch, of CuPy, or any object with
        ``__cuda_stream__``. None for arrays in host memory and for those of JAX, whose stream XLA gives.
    threads
        At most that many threads; None for as many as OpenMP would use. Without effect on a GPU.

    Notes
    -----
    For torch tensors this is :func:`tropical_gemm.torch.matmul`, for JAX arrays, traced ones included,
    :func:`tropical_gemm.jax.matmul`; gradients flow through both. They are immutable in JAX: no ``out``.

    On a CUDA device the results come from the library's own allocator. The work is enqueued on the stream
    and the host does not wait for it; it can be captured in a CUDA graph and replayed with other data.

    The values are those of the NumPy formula in the same dtype, for max_plus ``(a[:, :, None] +
    b[None]).max(axis=1)``. NaN propagates. A zero is stored as +0 and a NaN in one fixed form, so that
    results do not depend on the number of threads. Integers saturate instead of wrapping around, and the
    extreme one is the infinity of max_plus and min_plus: ``INT_MIN + 5`` is ``INT_MIN`` in max_plus. K = 0
    gives the semiring's zero.

    Raises
    ------
    TypeError
        For objects that are no arrays, arrays of two libraries, dtypes that differ or that the semiring
        lacks, and other arguments of a wrong type.
    ValueError
        For shapes that do not fit, unknown semirings, outputs that cannot be written, ``accumulate`` without
        ``out``, arrays on two devices, and other arguments of a wrong value. Nothing has been written then.
    RuntimeError
        For arrays on a GPU where there is no CUDA backend (see :func:`cuda_available`), on a GPU that this
        build has no code for, or with a driver that is too old; for failures of CUDA; and for torch tensors
        with ``out`` where one requires grad and gradients are recorded.

    Examples
    --------
    >>> import numpy as np
    >>> import tropical_gemm as tg
    >>> inf = np.inf
    >>> hops = np.array([[0.0, 1.0, inf], [inf, 0.0, 2.0], [inf, inf, 0.0]])
    >>> paths, via = tg.matmul(hops, hops, semiring="min_plus", return_argmax=True)
    >>> paths
    array([[ 0.,  1.,  3.],
           [inf,  0.,  2.],
           [inf, inf,  0.]])
    >>> via
    array([[ 0,  0,  1],
           [-1,  1,  1],
           [-1, -1,  2]], dtype=int32)
    """
    if type(a) is type(b) is np.ndarray and out is None and accumulate is False and stream is None:
        # The short way for small products.
        if return_argmax is False:
            return _core.matmul(a, b, _VALUES, semiring, False, argmax_offset, threads, None)
        if return_argmax is True:
            return MatmulResult._make(
                _core.matmul(a, b, _BOTH, semiring, False, argmax_offset, threads, None)
            )
    if (front := _front_of(a, b)) is not None:
        return front.matmul(
            a, b, semiring=semiring, return_argmax=return_argmax, out=out, accumulate=accumulate,
            argmax_offset=argmax_offset, stream=stream, threads=threads,
        )  # fmt: skip

    want_argmax, accumulates, arrays = wanted(return_argmax, accumulate, out)
    kind = common_kind(a=a, b=b, **arrays)
    x, y = kind.operand(a, "a"), kind.operand(b, "b")
    outputs = {name: kind.output(arrays[name], name) for name in ("out", "argmax") if name in arrays}
    made_or_given = outputs.get("out", True), outputs.get("argmax", want_argmax)
    with placed(kind, x, stream) as queue:
        made = _core.matmul(x, y, made_or_given, semiring, accumulates, argmax_offset, threads, queue)

    def returned(name: str, made: Any) -> Any:
        if name not in outputs:
            return kind.result(made)
        kind.written(arrays[name])
        return arrays[name]

    if not want_argmax:
        return returned("out", made)
    return MatmulResult(returned("out", made[0]), returned("argmax", made[1]))


def matmul_backward(
    grad_c: Any,
    argmax: Any,
    a: Any,
    b: Any,
    *,
    semiring: str = "max_plus",
    needs: tuple[bool, bool] = (True, True),
    stream: Any = None,
    threads: int | None = None,
) -> MatmulGradients:
    """Gradient of ``sum(grad_c * C)`` with respect to ``a`` and ``b``, where ``C = matmul(a, b)``.

    It is the subgradient through the selected indices. With ``k = argmax[i, j]`` and ``g = grad_c[i, j]``,
    max_plus and min_plus add ``g`` to ``grad_a[i, k]`` and to ``grad_b[k, j]``; max_mul and min_mul add ``g *
    b[k, j]`` and ``g * a[i, k]``; max_min and min_max add ``g`` to the operand that the inner operation
    selected, ``a`` on a tie.

    Parameters
    ----------
    grad_c
        The gradient with respect to the product: its shape and the dtype of ``a``, one of float16, bfloat16,
        float32, float64.
    argmax
        The indices from ``matmul(a, b, semiring=semiring, return_argmax=True)``, int32 or int64. -1, as any
        index outside ``[0, K)``, contributes nothing.
    a, b
        The operands of the product.
    semiring
        That of the product; the gradient does not exist for ``"or_and"``.
    needs
        Which of the two gradients to compute.
    stream, threads
        As for :func:`matmul`. The result does not depend on the threads; on a GPU it is the same in every
        run, and equal to that of the CPU up to rounding.

    Returns
    -------
    MatmulGradients
        ``(grad_a, grad_b)`` in the shapes of ``a`` and ``b`` (summed over broadcast axes), None where not
        needed. Sums run in a fixed order, in float32 for float16 and bfloat16. A NaN gradient propagates.
        On torch tensors and JAX arrays they are differentiable themselves, in ``grad_c``, ``a`` and ``b``.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        As :func:`matmul` does, and TypeError for integers and bool.

    Examples
    --------
    >>> import numpy as np
    >>> import tropical_gemm as tg
    >>> a, b = np.array([[1.0, 2.0]]), np.array([[3.0], [0.0]])
    >>> c, argmax = tg.matmul(a, b, return_argmax=True)
    >>> c, argmax
    (array([[4.]]), array([[0]], dtype=int32))
    >>> grad_a, grad_b = tg.matmul_backward(np.ones_like(c), argmax, a, b)
    >>> grad_a
    array([[1., 0.]])
    >>> grad_b
    array([[1.],
           [0.]])
    """
    if (front := _front_of(grad_c, a)) is not None:
        gradients: MatmulGradients = front.matmul_backward(
            grad_c, argmax, a, b, semiring=semiring, needs=needs, stream=stream, threads=threads
        )
        return gradients
    need_a, need_b = needed(needs)
    # The product of two vectors is a scalar in NumPy, and so are its index and its gradient.
    if isinstance(grad_c, np.generic):
        grad_c = np.asarray(grad_c)
    if isinstance(argmax, np.generic):
        argmax = np.asarray(argmax)
    arrays = {"grad_c": grad_c, "argmax": argmax, "a": a, "b": b}
    kind = common_kind(**arrays)
    g, arg, x, y = (kind.operand(array, name) for name, array in arrays.items())
    with placed(kind, x, stream) as queue:
        made = _core.matmul_backward(g, arg, x, y, (need_a, need_b), semiring, threads, queue)
    return MatmulGradients._make(None if grad is None else kind.result(grad) for grad in made)


def wanted(return_argmax: Any, accumulate: Any, out: Any) -> tuple[bool, bool, dict[str, Any]]:
    """Whether the argmax is wanted, whether to accumulate, and the arrays to write by their names."""
    want_argmax = _flag(return_argmax, "return_argmax")
    accumulates = _flag(accumulate, "accumulate")
    arrays = {}
    if isinstance(out, tuple):
        if len(out) != 2:
            raise ValueError(f"out is a tuple of {len(out)}, expected an array or a pair (values, argmax)")
        arrays["out"], arrays["argmax"] = out
        want_argmax = True
    elif isinstance(out, list):
        raise TypeError("out is a list, expected an array (use numpy.asarray) or a tuple (values, argmax)")
    elif out is not None:
        arrays["out"] = out
    if accumulates and out is None:
        raise ValueError("accumulate needs out, the array to accumulate to")
    if accumulates and want_argmax and "argmax" not in arrays:
        raise ValueError("accumulate with return_argmax needs out=(values, argmax), with the indices so far")
    return want_argmax, accumulates, arrays


def needed(needs: Any) -> tuple[bool, bool]:
    if not isinstance(needs, (tuple, list)) or len(needs) != 2:
        raise TypeError(f"needs is {needs!r}, expected a pair of bools")
    return _flag(needs[0], "needs[0]"), _flag(needs[1], "needs[1]")


def _flag(value: Any, argument: str) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{argument} is of type {type(value).__name__}, expected a bool")
    return bool(value)

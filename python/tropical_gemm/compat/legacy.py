"""The functions of the Rust package ``tropical-gemm`` 0.2: names, arguments and return shapes from a table.

They are also attributes of :mod:`tropical_gemm`; those on tensors are made in :mod:`tropical_gemm.pytorch`.
What they return is right where that package was wrong: memory layouts, NaN, products that are all negative,
masked rows (index -1), and the caller's CUDA stream.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _core

Function = Callable[..., Any]

_SEMIRINGS = {"maxplus": "max_plus", "minplus": "min_plus", "maxmul": "max_mul"}
_CAMEL = {"maxplus": "MaxPlus", "minplus": "MinPlus", "maxmul": "MaxMul"}
_FORMS = {"": "", "_gpu": "GPU", "_batched": "Batched"}
_DTYPES = {"": "float32", "_f64": "float64", "_i32": "int32", "_i64": "int64"}
_FLOATS = {"": "float32", "_f64": "float64"}


def _matrix(x: Any, argument: str, dtype: str, ndim: int = 2) -> Any:
    if type(x) is not np.ndarray or x.dtype != dtype or x.ndim != ndim:
        came = (
            f"{x.dtype} of {x.ndim} dimensions"
            if isinstance(x, np.ndarray)
            else f"of type {type(x).__name__}"
        )
        raise TypeError(f"{argument} is {came}, expected a {dtype} numpy.ndarray of {ndim} dimensions")
    return x


def _call(a: Any, b: Any, semiring: str, argmax: bool = False) -> Any:
    return _core.matmul(a, b, (True, argmax), semiring, False, 0, None, None)


def _values(semiring: str, dtype: str, flat: bool) -> Function:
    def product(a: Any, b: Any) -> Any:
        c = _call(_matrix(a, "a", dtype), _matrix(b, "b", dtype), semiring)
        return c.ravel() if flat else c

    return product


def _with_argmax(semiring: str, dtype: str, ndim: int) -> Function:
    def product(a: Any, b: Any) -> Any:
        x, y = _matrix(a, "a", dtype, ndim), _matrix(b, "b", dtype, ndim)
        if x.shape[:-2] != y.shape[:-2]:
            raise ValueError(f"Batch size mismatch: A has batch {x.shape[0]}, B has batch {y.shape[0]}")
        return tuple(part.ravel() for part in _call(x, y, semiring, argmax=True))

    return product


def _gradient(grad_c: Any, argmax: Any, a: Any, b: Any, semiring: str, of_a: bool) -> Any:
    dtype = a.dtype.name
    g, index = _matrix(grad_c, "grad_c", dtype), _matrix(argmax, "argmax", "int32")
    grads = _core.matmul_backward(g, index, a, b, (of_a, not of_a), semiring, None, None)
    return grads[0 if of_a else 1].ravel()


def _absent(dtype: str, *shape: int) -> Any:
    """An operand whose values the gradient does not depend on."""
    return np.broadcast_to(np.zeros((), dtype), shape)


def _backward_plus(dtype: str, of_a: bool) -> Function:
    def backward(grad_c: Any, argmax: Any, k: int) -> Any:
        m, n = _matrix(grad_c, "grad_c", dtype).shape
        if isinstance(k, bool) or not hasattr(k, "__index__") or k < 0:
            raise ValueError(f"k is {k!r}, expected an int of 0 or more")
        return _gradient(grad_c, argmax, _absent(dtype, m, k), _absent(dtype, k, n), "max_plus", of_a)

    return backward


def _backward_mul_a(dtype: str) -> Function:
    def backward(grad_c: Any, argmax: Any, b: Any) -> Any:
        rows = _matrix(grad_c, "grad_c", dtype).shape[0]
        a = _absent(dtype, rows, _matrix(b, "b", dtype).shape[0])
        return _gradient(grad_c, argmax, a, b, "max_mul", of_a=True)

    return backward


def _backward_mul_b(dtype: str) -> Function:
    def backward(grad_c: Any, argmax: Any, a: Any) -> Any:
        columns = _matrix(grad_c, "grad_c", dtype).shape[1]
        b = _absent(dtype, _matrix(a, "a", dtype).shape[1], columns)
        return _gradient(grad_c, argmax, a, b, "max_mul", of_a=False)

    return backward


def _gpu(semiring: str, argmax: bool) -> Function:
    def product(a: Any, b: Any) -> Any:
        x, y = (
            _core.to_device(np.ascontiguousarray(_matrix(v, n, "float32"))) for v, n in ((a, "a"), (b, "b"))
        )
        made = _call(x, y, semiring, argmax)
        if not argmax:
            return _core.to_host(made).ravel()
        return tuple(_core.to_host(part).ravel() for part in made)

    return product


def _is_capsule(x: Any) -> bool:
    return type(x).__name__ == "PyCapsule"


def _dlpack(semiring: str, ndim: int) -> Function:
    def product(a: Any, b: Any) -> Any:
        for x, argument in ((a, "a"), (b, "b")):
            if not _is_capsule(x) and not hasattr(x, "__dlpack__"):
                raise TypeError(
                    f"{argument} is of type {type(x).__name__}, expected an array with __dlpack__"
                )
            if getattr(x, "ndim", ndim) != ndim:
                raise ValueError(f"{argument} has {x.ndim} dimensions, expected {ndim}")
            if ndim == 3 and hasattr(x, "__dlpack_device__"):
                _refuse_host(x, argument)
        if ndim == 3 and hasattr(a, "shape") and hasattr(b, "shape") and a.shape[:1] != b.shape[:1]:
            raise ValueError(f"Batch size mismatch: A has shape {a.shape}, B has shape {b.shape}")
        made = _call(a, b, semiring, argmax=True)
        on_host = int(made[0].__dlpack_device__()[0]) == _CPU
        if ndim == 3:
            _refuse_host(made[0], "a")
        if on_host:
            made = tuple(map(np.from_dlpack, made))
        # Capsules do not say what they hold before they are taken.
        if len(made[0].shape) != ndim:
            raise ValueError(f"the product of a and b has {len(made[0].shape)} dimensions, expected {ndim}")
        if on_host:
            return tuple(part.ravel() for part in made)
        # No more order than a bare capsule can carry: the consumer works on the stream that this call used.
        return tuple(part.__dlpack__(stream=_NO_ORDER) for part in made)

    return product


_CPU = 1
_NO_ORDER = -1


def _refuse_host(x: Any, argument: str) -> None:
    if int(x.__dlpack_device__()[0]) == _CPU:
        raise RuntimeError(f"{argument} is in host memory, expected an array on a CUDA device")


def _table() -> Iterator[tuple[str, str, Function]]:
    """``(name, what it returns, function)``."""
    for prefix, semiring in _SEMIRINGS.items():
        for suffix, dtype in _DTYPES.items():
            yield f"{prefix}_matmul{suffix}", f"{dtype} values, flat", _values(semiring, dtype, flat=True)
            yield (
                f"{prefix}_matmul_2d{suffix}",
                f"{dtype} values (M, N)",
                _values(semiring, dtype, flat=False),
            )
        for suffix, dtype in _FLOATS.items():
            name = f"{prefix}_matmul_with_argmax{suffix}"
            yield name, f"{dtype} values and int32 argmax, both flat", _with_argmax(semiring, dtype, 2)
        name = f"{prefix}_matmul_batched_with_argmax"
        yield (
            name,
            "values and argmax of (B, M, K) by (B, K, N), both flat",
            _with_argmax(semiring, "float32", 3),
        )
        yield (
            f"{prefix}_matmul_gpu",
            "float32 values, flat, computed on the GPU",
            _gpu(semiring, argmax=False),
        )
        name = f"{prefix}_matmul_gpu_with_argmax"
        yield name, "float32 values and int32 argmax, both flat", _gpu(semiring, argmax=True)
        yield f"{prefix}_matmul_dlpack", "two capsules (M, N); NumPy, flat, for the CPU", _dlpack(semiring, 2)
        yield f"{prefix}_matmul_batched_dlpack", "two capsules (B, M, N)", _dlpack(semiring, 3)
    for suffix, dtype in _FLOATS.items():
        yield f"backward_a{suffix}", "the gradient (M, K), flat", _backward_plus(dtype, of_a=True)
        yield f"backward_b{suffix}", "the gradient (K, N), flat", _backward_plus(dtype, of_a=False)
        yield f"maxmul_backward_a{suffix}", "the gradient (M, K), flat", _backward_mul_a(dtype)
        yield f"maxmul_backward_b{suffix}", "the gradient (K, N), flat", _backward_mul_b(dtype)


def _named(name: str, returns: str, function: Function) -> Function:
    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__.partition(".")[0]  # where pickle finds it
    function.__doc__ = f"Of the Rust package's interface; see tropical_gemm.matmul. Returns {returns}."
    return function


functions: dict[str, Function] = {name: _named(name, returns, f) for name, returns, f in _table()}
"""Every function by its name."""

__all__ = list(functions)


def torch_table() -> Iterator[tuple[str, str, str, str]]:
    """``(function, class, semiring, form)`` of the module for PyTorch; forms are "", "_gpu", "_batched"."""
    for prefix, semiring in _SEMIRINGS.items():
        for form, suffix in _FORMS.items():
            function, cls = f"tropical_{prefix}_matmul{form}", f"Tropical{_CAMEL[prefix]}Matmul{suffix}"
            yield function, cls, semiring, form

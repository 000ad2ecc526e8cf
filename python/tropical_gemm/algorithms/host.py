"""Arrays of any kind from and to NumPy, for the steps that are rare or small."""

import sys
from typing import Any

import numpy as np

from .._arrays import Kind


def dtype_name(x: Any) -> str:
    """ "float32" for NumPy's, torch's and everyone's float32."""
    return str(x.dtype).rpartition(".")[2]


def to_numpy(kind: Kind, x: Any) -> Any:
    """The array in host memory; NumPy's own and others in host memory share it."""
    if kind.library == "numpy":
        return x
    if kind.library == "torch":
        x = x.detach().cpu()
        return (x.float() if dtype_name(x) == "bfloat16" else x).numpy()
    if kind.library == "cupy":
        return x.get()
    if kind.library == "jax":
        return np.asarray(x)
    return np.from_dlpack(x)


def from_numpy(kind: Kind, x: Any, like: Any) -> Any:
    """``x`` as an array of that kind, on the device of ``like``."""
    if kind.library == "numpy":
        return x
    if kind.library == "torch":
        return sys.modules["torch"].from_numpy(np.ascontiguousarray(x)).to(like.device)
    if kind.library == "cupy":
        with like.device:
            return sys.modules["cupy"].asarray(x)
    if kind.library == "jax":
        return sys.modules["jax"].device_put(x, next(iter(like.devices())))
    namespace = getattr(like, "__array_namespace__", None)
    return x if namespace is None else namespace().asarray(x)


def rows_of(kind: Kind, x: Any, rows: "list[int] | int") -> Any:
    """Some rows, or one, of a result."""
    if isinstance(rows, int) or kind.library in ("torch", "cupy"):
        return x[rows]
    return x[np.asarray(rows, np.intp)]


def as_dtype(kind: Kind, x: Any, dtype: str) -> Any:
    """``x`` itself where it has that dtype already."""
    if kind.library == "torch":
        return x.to(getattr(sys.modules["torch"], dtype))
    if hasattr(x, "astype"):
        return x if dtype_name(x) == dtype else x.astype(dtype)
    raise TypeError(f"csgraph has dtype {dtype_name(x)}, which {kind.library} cannot convert; pass {dtype}")

"""Arguments, memory and ranges: what is refused, and with which words."""

import os
from typing import Any

import numpy as np

from .. import _core
from .._arrays import Kind
from .errors import TooLargeError

GRAPH_DTYPES = ("float32", "float64", "int32", "int64", "bool")


def flag(value: Any, argument: str) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{argument} is of type {type(value).__name__}, expected a bool")
    return bool(value)


def choice(value: Any, argument: str, known: tuple[str, ...]) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{argument} is of type {type(value).__name__}, expected a str")
    if value not in known:
        raise ValueError(f"{argument} is {value!r}, expected one of {', '.join(map(repr, known))}")
    return value


def shape_of(x: Any, argument: str) -> tuple[int, ...]:
    """For functions that have to know it: objects that speak DLPack alone do not tell."""
    if not all(hasattr(x, name) for name in ("shape", "dtype", "ndim")):
        raise TypeError(
            f"{argument} is of type {type(x).__name__}, which tells no shape and dtype; "
            "expected an array of NumPy, PyTorch, CuPy, JAX or another array library; "
            "use numpy.asarray or from_dlpack"
        )
    return tuple(x.shape)


def nodes_of(x: Any, argument: str) -> int:
    """The side of a square matrix."""
    shape = tuple(map(int, shape_of(x, argument)))
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"{argument} has shape {shape}, expected a square matrix (n, n)")
    return shape[0]


def sources_of(indices: Any, n: int) -> "tuple[list[int], bool] | None":
    """The nodes that ``indices`` names, and whether it is a single one; None for all."""
    if indices is None:
        return None
    nodes = np.asarray(indices)
    if nodes.size == 0:
        nodes = nodes.astype(np.int64)
    if nodes.dtype.kind not in "iu" or nodes.ndim > 1:
        raise TypeError(
            f"indices is an array of dtype {nodes.dtype} and shape {nodes.shape}, "
            "expected an int or a sequence of ints"
        )
    bad = nodes[(nodes < -n) | (nodes >= n)]
    if bad.size:
        raise ValueError(f"indices holds {int(bad[0])}, expected nodes from 0 to {n - 1}")
    return [int(node) % n for node in nodes.ravel()], nodes.ndim == 0


def check_threads(threads: Any) -> None:
    """Raises what the core raises where it is not given a number of threads."""
    one = np.ones((1, 1), np.bool_)
    _core.matmul(one, one, (True, False), "or_and", False, 0, threads, None)


def no_edge_bytes(no_edge: Any, dtype: str) -> "bytes | None":
    """The element that stands for a missing edge, as it lies in memory."""
    if no_edge is None:
        return None
    if isinstance(no_edge, (bool, np.bool_)) or not isinstance(
        no_edge, (int, float, np.integer, np.floating)
    ):
        raise TypeError(f"no_edge is of type {type(no_edge).__name__}, expected None or a number")
    bounds = np.iinfo(dtype) if dtype.startswith("int") else None
    if bounds is not None and (
        no_edge != no_edge or not bounds.min <= no_edge <= bounds.max or int(no_edge) != no_edge
    ):
        raise ValueError(f"no_edge is {no_edge}, expected a value that the dtype {dtype} of csgraph can hold")
    return np.array(no_edge, dtype).tobytes()


def available_memory(kind: Kind, x: Any) -> "tuple[int, str] | None":
    """Bytes that can be had where ``x`` is, and where that is; None if nobody knows."""
    device = kind.device(x) if x is not None else None
    if device is None:
        return host_memory()
    if kind.library == "torch":
        import torch

        reserved = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + reserved, f"on cuda:{device}"
    if kind.library == "cupy":
        import cupy

        with cupy.cuda.Device(device):
            pool = cupy.get_default_memory_pool().free_bytes()
            return int(cupy.cuda.runtime.memGetInfo()[0]) + pool, f"on cuda:{device}"
    return None


def host_memory() -> "tuple[int, str] | None":
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return 1024 * int(line.split()[1]), "of memory"
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), "of memory"
    except (ValueError, OSError, AttributeError):
        return None


def check_memory(n: int, bytes_needed: float, available: "tuple[int, str] | None", alternative: str) -> None:
    if available is not None and bytes_needed > available[0]:
        raise TooLargeError(
            f"n = {n} nodes need {bytes_needed / 1e9:.1f} GB, {available[0] / 1e9:.1f} GB {available[1]} are "
            "available",
            alternative,
        )

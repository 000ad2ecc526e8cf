"""The C interface by ctypes on NumPy arrays; the library beside the tests, or where TG_LIBRARY says."""

import ctypes
import os
from pathlib import Path

import numpy as np
import oracle

_path = Path(__file__).parents[2] / "build" / "python" / "src" / "libtropical_gemm.so"
_path = Path(os.environ.get("TG_LIBRARY", _path))
library = ctypes.CDLL(_path) if _path.exists() else None

SEMIRINGS = (*oracle.NUMERIC, "or_and")
ERRORS = {1: ValueError, 2: TypeError, 3: RuntimeError, 5: MemoryError, 7: OverflowError}
_CODES = {"b": 6, "i": 0, "f": 2, "V": 4, "u": 1}


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Cuda(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("stream", "allocate", "context")]


class MatmulOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint64), ("argmax_offset", ctypes.c_int64), ("accumulate", ctypes.c_int32),
        ("threads", ctypes.c_int32), ("cancel", ctypes.c_void_p), ("cuda", Cuda),
    ]  # fmt: skip


class BackwardOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint64), ("threads", ctypes.c_int32), ("cuda", Cuda)]


def _tensor(x):
    if x is None:
        return None
    axes = ctypes.c_int64 * max(x.ndim, 1)
    code = _CODES["V" if x.dtype.name == "bfloat16" else x.dtype.kind]
    strides = axes(*(stride // x.itemsize for stride in x.strides))
    return ctypes.byref(
        Tensor(x.ctypes.data, 1, 0, x.ndim, code, 8 * x.itemsize, 1, axes(*x.shape), strides, 0)
    )


def _checked(status):
    if status:
        library.tg_last_error.restype = ctypes.c_char_p
        raise ERRORS[status](library.tg_last_error().decode())


def _parsed(semiring):
    found = ctypes.c_int32()
    _checked(library.tg_parse_semiring(semiring.encode(), ctypes.byref(found)))
    return found


def matmul(a, b, *, semiring, return_argmax=False, out=None, accumulate=False, argmax_offset=0, threads=None):
    parsed = _parsed(semiring)
    if out is None:
        ndim, sizes = ctypes.c_int32(), (ctypes.c_int64 * (a.ndim + b.ndim + 2))()
        _checked(library.tg_matmul_shape(_tensor(a), _tensor(b), ctypes.byref(ndim), sizes))
        shape = sizes[: ndim.value]
        out = np.empty(shape, a.dtype)
        out = (out, np.empty(shape, np.int32)) if return_argmax else out
    c, argmax = out if isinstance(out, tuple) else (out, None)
    options = MatmulOptions(
        ctypes.sizeof(MatmulOptions), argmax_offset, accumulate, 0 if threads is None else threads
    )
    _checked(
        library.tg_matmul(parsed, _tensor(a), _tensor(b), _tensor(c), _tensor(argmax), ctypes.byref(options))
    )
    return out


def backward(grad_c, argmax, a, b, *, semiring, needs=(True, True), threads=None):
    grads = [np.empty(x.shape, x.dtype) if need else None for x, need in zip((a, b), needs, strict=True)]
    options = BackwardOptions(ctypes.sizeof(BackwardOptions), 0 if threads is None else threads)
    arrays = [_tensor(x) for x in (grad_c, argmax, a, b, *grads)]
    _checked(library.tg_matmul_backward(_parsed(semiring), *arrays, ctypes.byref(options)))
    return grads

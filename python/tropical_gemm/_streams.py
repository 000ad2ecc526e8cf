"""CUDA streams as callers name them."""

from typing import Any

import numpy as np

LEGACY_DEFAULT = 1
PER_THREAD_DEFAULT = 2


class Address:
    """A stream of which only the address is known, for libraries that take objects."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.value


def address(stream: Any, device: int) -> int:
    """The address of ``stream``, which is to run work on ``device``; the two default streams are 1 and 2."""
    if isinstance(stream, (int, np.integer)) and not isinstance(stream, bool):
        if stream == 0:
            raise ValueError(
                "stream is 0, which is ambiguous; expected 1 (the legacy default stream), 2 (the per-thread "
                "default stream) or the address of a stream"
            )
        if not 0 < stream < 2**63:
            raise ValueError(f"stream is {stream}, expected 1, 2 or the address of a stream")
        return int(stream)
    of = next(
        (i for i in (getattr(stream, n, None) for n in ("device_index", "device_id")) if i is not None), -1
    )
    if isinstance(of, int) and of >= 0 and of != device:
        raise ValueError(
            f"stream is of cuda:{of} and a is on cuda:{device}; pass a stream of the arrays' device"
        )
    return _handle(stream) or LEGACY_DEFAULT


def _handle(stream: Any) -> int:
    """What the object itself says; 0 is the legacy default stream there."""
    if hasattr(stream, "__cuda_stream__"):
        version, handle = stream.__cuda_stream__()
        if version != 0:
            raise ValueError(f"stream speaks version {version} of __cuda_stream__, expected 0")
        return int(handle)
    for attribute in ("cuda_stream", "ptr"):  # torch.cuda.Stream, cupy.cuda.Stream
        if isinstance(handle := getattr(stream, attribute, None), int):
            return handle
    raise TypeError(
        f"stream is of type {type(stream).__name__}, expected None, an int as in DLPack, or a stream: "
        "an object with __cuda_stream__, torch.cuda.Stream, cupy.cuda.Stream"
    )

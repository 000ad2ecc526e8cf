"""The compiled part of tropical_gemm; private."""

from collections.abc import Sequence
from typing import Any


class DeviceArray:
    """A result on a GPU, to be taken by another library."""

    def __dlpack__(self, *, stream: object = None, max_version: object = None, dl_device: object = None, copy: object = None) -> object: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> str: ...

    @property
    def streams_last(self) -> bool:
        """
        Whether the streams that it was made on and handed over to outlive it. Otherwise its memory is
        given back once all work that the device has by then is done.
        """

    @streams_last.setter
    def streams_last(self, arg: bool, /) -> None: ...

def to_device(array: object, /) -> DeviceArray: ...

def to_host(array: DeviceArray, /) -> Any: ...

def matmul(a: object, b: object, outputs: tuple[object, object], semiring: object, accumulate: bool, argmax_offset: object, threads: object, stream: int | None, /) -> Any: ...

def matmul_backward(grad_c: object, argmax: object, a: object, b: object, outputs: tuple[object, object], semiring: object, threads: object, stream: int | None, /) -> tuple[Any, Any]: ...

def matmul_shape(a: Sequence[int], b: Sequence[int], /) -> tuple[int, ...]: ...

def cuda_info() -> dict[str, Any]: ...

def info() -> dict[str, Any]: ...

def set_isa(isa: str, /) -> None: ...

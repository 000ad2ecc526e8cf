"""The kinds of arrays: which library an argument comes from, and how results of that kind are made.

No array library but NumPy is imported here before one of its arrays has come.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import _core, _streams


class Kind:
    """Arrays of one library. The core reads and writes them by buffers, by their attributes or by DLPack."""

    def __init__(self, library: str) -> None:
        self.library = library

    def operand(self, x: Any, argument: str) -> Any:
        """What the core shall read in place of ``x``."""
        return x

    def output(self, x: Any, argument: str) -> Any:
        """What the core shall write in place of ``x``."""
        return x

    def result(self, x: Any) -> Any:
        """An array of this kind from one that the core made."""
        return x

    def written(self, x: Any) -> None:
        """Called for each output after the core has written it, or has enqueued the work that does."""

    def joins(self, other: "Kind") -> bool:
        """Whether arrays of this kind may stand beside those of the other: they were made for it."""
        return False

    def device(self, x: Any) -> int | None:
        """The CUDA device that ``x`` is on; None for host memory."""
        kind, index = x.__dlpack_device__()
        return int(index) if int(kind) in _CUDA else None

    def broadcast(self, x: Any, shape: tuple[int, ...]) -> Any:
        """A view of ``x`` in a larger shape."""
        return x.__array_namespace__().broadcast_to(x, shape)

    def from_host(self, x: np.ndarray[Any, Any], like: Any) -> Any:
        """A copy of ``x`` on the device of ``like``."""
        return like.__array_namespace__().asarray(x, device=like.device)

    def running_on(self, stream: int | None, device: int, x: Any) -> Any:
        """A context in which the library allocates for work on ``stream``, and what the core is told of it.

        Without a stream it is the library's current one, which the core knows where it knows the library.
        """
        return _told(stream)


_CUDA = (2, 13)  # DLPack's numbers: device and managed memory


@contextmanager
def _told(stream: int | None) -> Iterator[int | None]:
    yield stream


class NumPy(Kind):
    def operand(self, x: Any, argument: str) -> Any:
        if type(x) is not np.ndarray and not isinstance(x, np.memmap):
            # A mask, a unit or the algebra of np.matrix would be lost without a word.
            raise TypeError(
                f"{argument} is of type {_name(x)}, a subclass of numpy.ndarray whose own meaning would be "
                f"ignored; pass a plain array such as numpy.asarray({argument})"
            )
        return x

    output = operand

    def joins(self, other: Kind) -> bool:
        return isinstance(other, Producer)

    def device(self, x: Any) -> None:
        return None


class Torch(Kind):
    """Tensors: read and checked by the core, made by torch's allocator."""

    def device(self, x: Any) -> int | None:
        return int(x.get_device()) if x.is_cuda else None

    def broadcast(self, x: Any, shape: tuple[int, ...]) -> Any:
        return x.expand(shape)

    def from_host(self, x: np.ndarray[Any, Any], like: Any) -> Any:
        return sys.modules["torch"].from_numpy(x).to(like.device, non_blocking=True)

    @contextmanager
    def running_on(self, stream: int | None, device: int, x: Any) -> Iterator[None]:
        if stream is None:
            yield None
            return
        if stream == _streams.PER_THREAD_DEFAULT:
            raise ValueError("stream is 2, the per-thread default stream, on which torch does not work")
        cuda = sys.modules["torch"].cuda
        default = stream == _streams.LEGACY_DEFAULT
        # The results belong to that stream, as those of torch's own operations there would.
        with cuda.stream(
            cuda.default_stream(device) if default else cuda.ExternalStream(stream, device=device)
        ):
            yield None

    def written(self, x: Any) -> None:
        # Autograd has to notice that a tensor it saved has changed.
        if not x.is_inference():
            sys.modules["torch"].autograd.graph.increment_version(x)


class CuPy(Kind):
    """Arrays on a GPU: read by the core, made by CuPy's allocator."""

    def device(self, x: Any) -> int:
        return int(x.device.id)

    def broadcast(self, x: Any, shape: tuple[int, ...]) -> Any:
        return sys.modules["cupy"].broadcast_to(x, shape)

    def from_host(self, x: np.ndarray[Any, Any], like: Any) -> Any:
        with like.device:
            return sys.modules["cupy"].asarray(x)

    @contextmanager
    def running_on(self, stream: int | None, device: int, x: Any) -> Iterator[None]:
        if stream is None:
            yield None
            return
        cuda = sys.modules["cupy"].cuda
        named = {_streams.LEGACY_DEFAULT: cuda.Stream.null, _streams.PER_THREAD_DEFAULT: cuda.Stream.ptds}
        with cuda.Device(device), named.get(stream) or self._foreign(cuda, stream, device):
            yield None

    @staticmethod
    def _foreign(cuda: Any, stream: int, device: int) -> Any:
        if hasattr(cuda.Stream, "from_external"):
            return cuda.Stream.from_external(_streams.Address(stream))
        return cuda.ExternalStream(stream, device)  # before CuPy 14


class Jax(Kind):
    @property
    def jax(self) -> Any:
        return sys.modules["jax"]

    def wide(self) -> bool:
        """Whether JAX has 64-bit types now."""
        return bool(self.jax.config.jax_enable_x64)

    def is_traced(self, x: Any) -> bool:
        return isinstance(x, self.jax.core.Tracer)

    def check_alive(self, x: Any, argument: str) -> None:
        if x.is_deleted():
            raise ValueError(f"{argument} is a jax.Array that was deleted or donated; its memory is gone")

    def operand(self, x: Any, argument: str) -> Any:
        if self.is_traced(x):
            raise TypeError(
                f"{argument} is a JAX tracer: inside jit, grad and vmap there are matmul and "
                "matmul_backward, other functions need concrete arrays"
            )
        self.check_alive(x, argument)
        if len(x.devices()) > 1:
            raise ValueError(
                f"{argument} is spread over {len(x.devices())} devices, expected an array on one device"
            )
        # On a GPU the producer orders its work before that on our stream, without waiting.
        return x.block_until_ready() if self.device(x) is None else x

    def output(self, x: Any, argument: str) -> Any:
        raise TypeError(
            f"{argument} is of type {_name(x)}, which cannot be written: JAX arrays are immutable"
        )

    def result(self, x: Any) -> Any:
        if isinstance(x, _core.DeviceArray):
            x.streams_last = True
        return self.jax.dlpack.from_dlpack(x)

    def broadcast(self, x: Any, shape: tuple[int, ...]) -> Any:
        return self.jax.numpy.broadcast_to(x, shape)

    def from_host(self, x: np.ndarray[Any, Any], like: Any) -> Any:
        (device,) = like.devices()
        return self.jax.device_put(x, device)

    def running_on(self, stream: int | None, device: int, x: Any) -> Any:
        # JAX has no current stream, but one for work that is not its own.
        (home,) = x.devices()
        return _told(stream or home.get_stream_for_external_ready_events())


class ArrayApi(Kind):
    """Any other library that follows the array API standard."""

    def __init__(self, namespace: Any) -> None:
        super().__init__(str(getattr(namespace, "__name__", namespace)))
        self.namespace = namespace

    def result(self, x: Any) -> Any:
        return self.namespace.from_dlpack(x)


class Producer(Kind):
    """Anything else that speaks DLPack. Results are NumPy arrays; on a GPU, ``DeviceArray`` objects."""

    def result(self, x: Any) -> Any:
        return x if isinstance(x, (_core.DeviceArray, np.ndarray)) else np.from_dlpack(x)


class Ours(Producer):
    """Results on a GPU that were made for a :class:`Producer`."""

    def joins(self, other: Kind) -> bool:
        return isinstance(other, Producer)


_numpy, torch_kind, _cupy, jax_kind = NumPy("numpy"), Torch("torch"), CuPy("cupy"), Jax("jax")
_ours = Ours("tropical_gemm")


def is_tensor(x: Any) -> bool:
    """Whether ``x`` is a torch tensor; torch is not imported for it."""
    torch = sys.modules.get("torch")
    # While torch is being imported it has no tensors yet.
    return torch is not None and isinstance(x, getattr(torch, "Tensor", ()))


def is_jax(x: Any) -> bool:
    """Whether ``x`` is a JAX array, concrete or traced; JAX is not imported for it."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, getattr(jax, "Array", ()))


def _name(x: Any) -> str:
    return f"{type(x).__module__}.{type(x).__qualname__}".removeprefix("builtins.")


def _kind_of(x: Any, argument: str) -> Kind:
    if isinstance(x, np.ndarray):
        return _numpy
    if isinstance(x, _core.DeviceArray):
        return _ours
    modules = sys.modules
    if is_tensor(x):
        return torch_kind
    if "cupy" in modules and isinstance(x, modules["cupy"].ndarray):
        return _cupy
    if is_jax(x):
        return jax_kind
    if hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__"):
        return ArrayApi(x.__array_namespace__()) if hasattr(x, "__array_namespace__") else Producer(_name(x))
    raise TypeError(f"{argument} is of type {_name(x)}, expected an array; use numpy.asarray({argument})")


def device_of(x: Any, argument: str) -> int | None:
    """The CUDA device that an array is on; None for host memory, where lists and numbers are too."""
    return _kind_of(x, argument).device(x) if hasattr(x, "__dlpack_device__") else None


def common_kind(**arrays: Any) -> Kind:
    """The one kind that the named arguments have."""
    (first, x), *rest = arrays.items()
    kind = _kind_of(x, first)
    for argument, y in rest:
        other = _kind_of(y, argument)
        if other.library == kind.library or other.joins(kind):
            continue
        if not kind.joins(other):
            raise TypeError(
                f"{first} is of type {_name(x)} and {argument} is of type {_name(y)}; "
                "arrays of two libraries are not mixed, convert one of them"
            )
        kind = other
    return kind


def placed(kind: Kind, a: Any, stream: Any) -> Any:
    """The context of a call on arrays like ``a``: what it yields is for the core."""
    device = kind.device(a)
    if device is not None:
        return kind.running_on(None if stream is None else _streams.address(stream, device), device, a)
    no_stream(stream)
    return _told(None)


def no_stream(stream: Any) -> None:
    """Arrays in host memory have none."""
    if stream is not None:
        raise ValueError(f"stream is {stream!r}, expected None for arrays in host memory")

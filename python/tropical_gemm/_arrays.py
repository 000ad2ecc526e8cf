"""The kinds of arrays: which library an argument comes from, and how results of that kind are made.

No array library but NumPy is imported here before one of its arrays has come.
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np


class Kind:
    """Arrays of one library. The core reads and writes them by the buffer protocol or by DLPack."""

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
        """Called for each output after the core has written it."""


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


class Torch(Kind):
    """Tensors. New ones come from torch's allocator; those of the other kinds are made by the core."""

    @property
    def torch(self) -> Any:
        return sys.modules["torch"]

    def operand(self, x: Any, argument: str) -> Any:
        if x.layout != self.torch.strided:
            raise TypeError(f"{argument} is a torch.Tensor of layout {x.layout}, expected torch.strided")
        if x.device.type != "cpu":
            raise RuntimeError(
                f"{argument} is on the device {x.device}, but this build has no CUDA backend "
                "(tropical_gemm.cuda_available() is False); pass tensors in host memory"
            )
        if self._records_gradient(x):
            raise RuntimeError(
                f"{argument} requires grad, but gradients through tropical_gemm on torch tensors are not "
                f"available yet in this version; pass {argument}.detach(), and use "
                "tropical_gemm.matmul_backward for the gradient"
            )
        # A capsule of the old form: Tensor.__dlpack__ takes ten times as long.
        return self.torch.utils.dlpack.to_dlpack(x.detach().resolve_neg())

    def _records_gradient(self, x: Any) -> bool:
        if x.requires_grad and self.torch.is_grad_enabled():
            return True
        return self.torch.autograd.forward_ad.unpack_dual(x).tangent is not None

    def output(self, x: Any, argument: str) -> Any:
        if x.is_neg():
            raise ValueError(f"{argument} is a lazily negated view, expected a plain tensor")
        return self.operand(x, argument)

    def new(self, shape: Sequence[int], dtype: Any) -> Any:
        return self.torch.empty(shape, dtype=getattr(self.torch, dtype) if isinstance(dtype, str) else dtype)

    def written(self, x: Any) -> None:
        # Autograd has to notice that a tensor it saved has changed.
        if not x.is_inference():
            self.torch.autograd.graph.increment_version(x)


class Jax(Kind):
    @property
    def jax(self) -> Any:
        return sys.modules["jax"]

    def operand(self, x: Any, argument: str) -> Any:
        if isinstance(x, self.jax.core.Tracer):
            raise TypeError(
                f"{argument} is a JAX tracer: tropical_gemm works on concrete arrays, "
                "not yet inside jit, grad or vmap"
            )
        return x.block_until_ready()

    def output(self, x: Any, argument: str) -> Any:
        raise TypeError(
            f"{argument} is of type {_name(x)}, which cannot be written: JAX arrays are immutable"
        )

    def result(self, x: Any) -> Any:
        return self.jax.dlpack.from_dlpack(x)


class ArrayApi(Kind):
    """Any other library that follows the array API standard."""

    def __init__(self, namespace: Any) -> None:
        super().__init__(str(getattr(namespace, "__name__", namespace)))
        self.namespace = namespace

    def result(self, x: Any) -> Any:
        return self.namespace.from_dlpack(x)


_numpy, _torch, _jax = NumPy("numpy"), Torch("torch"), Jax("jax")


def _name(x: Any) -> str:
    return f"{type(x).__module__}.{type(x).__qualname__}".removeprefix("builtins.")


def _kind_of(x: Any, argument: str) -> Kind:
    if isinstance(x, np.ndarray):
        return _numpy
    modules = sys.modules
    if "torch" in modules and isinstance(x, modules["torch"].Tensor):
        return _torch
    if "jax" in modules and isinstance(x, modules["jax"].Array):
        return _jax
    if hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__") and hasattr(x, "__array_namespace__"):
        return ArrayApi(x.__array_namespace__())
    raise TypeError(f"{argument} is of type {_name(x)}, expected an array; use numpy.asarray({argument})")


def common_kind(**arrays: Any) -> Kind:
    """The one kind that the named arguments have."""
    (first, x), *rest = arrays.items()
    kind = _kind_of(x, first)
    for argument, y in rest:
        if _kind_of(y, argument).library != kind.library:
            raise TypeError(
                f"{first} is of type {_name(x)} and {argument} is of type {_name(y)}; "
                "arrays of two libraries are not mixed, convert one of them"
            )
    return kind

"""The module for PyTorch of the Rust package ``tropical-gemm`` 0.2, and what :mod:`tropical_gemm.torch` has.

Its functions ``tropical_maxplus_matmul(a, b)``, ``..._gpu`` and ``..._batched`` (also for minplus and maxmul)
and the autograd functions of like names are made from the table in ``compat/legacy.py``. All of them are
:func:`tropical_gemm.torch.matmul` behind the old checks: they run on the device of their tensors and in their
dtype, and gradients are right, second ones too.

``GPU_AVAILABLE`` says whether there is a GPU to run on; so do ``_DLPACK_AVAILABLE`` and
``_BATCHED_DLPACK_AVAILABLE``.
"""

from collections.abc import Callable
from typing import Any

try:
    import torch as _torch
except ImportError as error:
    raise ImportError(
        "tropical_gemm.pytorch works on tensors of PyTorch, which is not installed: pip install torch"
    ) from error

from ._info import cuda_available as _cuda_available
from .compat import legacy as _legacy
from .torch import TropicalLinear, matmul, matmul_backward

_FLAGS = ("GPU_AVAILABLE", "_DLPACK_AVAILABLE", "_BATCHED_DLPACK_AVAILABLE")


def _check(a: Any, b: Any, form: str) -> None:
    ndim = 3 if form == "_batched" else 2
    for name, x in (("a", a), ("b", b)):
        if not isinstance(x, _torch.Tensor):
            raise TypeError(f"{name} is of type {type(x).__name__}, expected a torch.Tensor")
        if x.dim() != ndim:
            raise ValueError(f"{name} has {x.dim()} dimensions, expected {ndim}")
    if form == "_gpu" and not a.is_cuda:
        raise RuntimeError(f"a is on {a.device}, expected a CUDA device")
    if form == "_batched":
        if a.device != b.device:
            raise RuntimeError(f"Tensors must be on the same device: a is on {a.device}, b is on {b.device}")
        if a.shape[0] != b.shape[0]:
            raise ValueError(f"Batch size mismatch: A has batch {a.shape[0]}, B has batch {b.shape[0]}")


def _function(name: str, semiring: str, form: str) -> Callable[[Any, Any], Any]:
    def product(a: Any, b: Any) -> Any:
        _check(a, b, form)
        return matmul(a, b, semiring=semiring)

    shapes = "(B, M, K) by (B, K, N)" if form == "_batched" else "(M, K) by (K, N)"
    product.__name__ = product.__qualname__ = name
    product.__doc__ = (
        f"Of the Rust package's interface: the {semiring} product of {shapes}"
        f"{', on a GPU' if form == '_gpu' else ''}, with gradients; see tropical_gemm.torch.matmul."
    )
    return product


def _class(name: str, semiring: str, form: str) -> type:
    class Product(_torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            _check(a, b, form)
            values, argmax = matmul(a, b, semiring=semiring, return_argmax=True)
            ctx.save_for_backward(argmax, a, b)
            return values

        @staticmethod
        def backward(ctx: Any, grad_c: Any) -> Any:
            argmax, a, b = ctx.saved_tensors
            needs = ctx.needs_input_grad[0], ctx.needs_input_grad[1]
            grads = matmul_backward(grad_c, argmax, a, b, semiring=semiring, needs=needs)
            return grads.grad_a, grads.grad_b

    Product.__name__ = Product.__qualname__ = name
    Product.__doc__ = "Of the Rust package's interface; the function of like name works under torch.func too."
    return Product


GPU_AVAILABLE: bool  # these three: see __getattr__
_DLPACK_AVAILABLE: bool
_BATCHED_DLPACK_AVAILABLE: bool

__all__ = [
    "GPU_AVAILABLE",
    "_BATCHED_DLPACK_AVAILABLE",
    "_DLPACK_AVAILABLE",
    "TropicalLinear",
    "matmul",
    "matmul_backward",
]
for _name, _cls, _semiring, _form in _legacy.torch_table():
    globals()[_name] = _function(_name, _semiring, _form)
    globals()[_cls] = _class(_cls, _semiring, _form)
    __all__ += [_name, _cls]


def __getattr__(name: str) -> Any:
    """The flags, asked for when they are read: importing this module opens no driver."""
    if name in _FLAGS:
        return _cuda_available()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

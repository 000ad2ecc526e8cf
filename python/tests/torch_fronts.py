"""The front ends on tensors: the package's, registered operators, autograd, vmap; CPU and GPUs."""

import importlib.util

import numpy as np
import oracle
import pytest
import tropical_gemm as tg
import tropical_gemm.torch as tgt
from front import LEGACY_PREFIXES, Front
from gpu import needs_gpu, to_gpu, to_numpy, torch
from tropical_gemm import pytorch as legacy

ops = torch.ops.tropical_gemm


def to_tensor(x):
    """In the memory of ``x``, where torch can read it as it is."""
    if not x.flags.writeable or any(stride < 0 for stride in x.strides):
        return to_gpu(x, "cpu")
    if x.dtype.name == "bfloat16":
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(x)


class Torch(Front):
    knows_read_only = False

    def put(self, x):
        return to_tensor(x)

    def get(self, x):
        assert isinstance(x, torch.Tensor)
        return to_numpy(x.detach())

    def matmul(self, a, b, **options):
        return tgt.matmul(a, b, **options)


class Operators(Torch):
    """The operators as other programs of torch's call them; they are for matrices."""

    vectors = False

    def matmul(
        self, a, b, *, semiring, threads, return_argmax=False, out=None, accumulate=False,
        argmax_offset=0,
    ):  # fmt: skip
        if out is not None:
            c, argmax = out if isinstance(out, tuple) else (out, None)
            ops.matmul_into(a, b, c, argmax, semiring, accumulate, argmax_offset, threads)
            return out
        if return_argmax:
            return ops.matmul_argmax(a, b, semiring, argmax_offset, threads)
        return ops.matmul(a, b, semiring, threads)

    def backward(self, grad_c, argmax, a, b, *, semiring, needs, threads):
        made = ops.matmul_backward(grad_c, argmax, a, b, a.shape, b.shape, semiring, *needs, threads)
        return [grad if need else None for grad, need in zip(made, needs, strict=True)]


class Autograd(Torch):
    """Products that are recorded, and gradients by torch's own way back."""

    dtypes = oracle.FLOATS
    writes = own_argmax = refuses = False

    def put(self, x):
        t = super().put(x)
        return t.requires_grad_() if t.is_floating_point() else t

    def backward(self, grad_c, argmax, a, b, *, semiring, needs, threads):
        a, b = (x.detach().requires_grad_(need) for x, need in zip((a, b), needs, strict=True))
        tgt.matmul(a, b, semiring=semiring, threads=threads).backward(grad_c.detach())
        return a.grad, b.grad


class Vmap(Torch):
    """One axis of ``a`` by torch.vmap: a row, or a matrix of a batch."""

    writes = refuses = differentiates = False

    def matmul(self, a, b, **options):
        def product(x, y):
            return tuple(made) if isinstance(made := tg.matmul(x, y, **options), tuple) else made

        if a.dim() == 1 or a.shape[0] == 0:
            return product(a, b)
        if a.dim() == 2:
            return torch.vmap(product, (0, None), -2 if b.dim() > 1 else 0)(a, b)
        if a.dim() > b.dim():
            return torch.vmap(product, (0, None))(a, b)
        if a.shape[0] == b.shape[0] and a.dim() == b.dim():
            return torch.vmap(product, (0, 0))(a, b)
        return torch.vmap(product, (None, 0))(a, b) if a.dim() < b.dim() and b.shape[0] else product(a, b)


class Legacy(Torch):
    """``tropical_gemm.pytorch``, of the Rust package."""

    vectors = batches = False
    dtypes = oracle.FLOATS
    values_only = True
    offsets = writes = refuses = differentiates = False
    pairs = tuple((s, d) for s in LEGACY_PREFIXES for d in oracle.FLOATS)

    def matmul(self, a, b, *, semiring, threads):
        return getattr(legacy, f"tropical_{LEGACY_PREFIXES[semiring]}_matmul")(a, b)


class OnGpu(Torch):
    marks = (needs_gpu,)
    shares_memory = False

    def put(self, x):
        return to_gpu(x)


class CuPy(Front):
    marks = (
        needs_gpu,
        pytest.mark.skipif(not importlib.util.find_spec("cupy"), reason="CuPy is not installed"),
    )
    dtypes = tuple(d for d in oracle.DTYPES if d != "bfloat16")  # which CuPy does not have
    shares_memory = knows_read_only = False

    def put(self, x):
        import cupy

        return cupy.asarray(x)

    def get(self, x):
        return x.get()


FRONTS = {
    "torch": Torch(),
    "torch operators": Operators(),
    "torch autograd": Autograd(),
    "torch vmap": Vmap(),
    "legacy torch": Legacy(),
    "torch cuda": OnGpu(),
    "cupy": CuPy(),
}

"""What the tests on a GPU share. Without torch their modules are skipped, without a GPU each test is."""

import numpy as np
import oracle
import pytest
import tropical_gemm as tg

torch = pytest.importorskip("torch")

AVAILABLE = tg.cuda_available() and torch.cuda.is_available()
needs_gpu = pytest.mark.skipif(not AVAILABLE, reason=tg.info()["cuda"]["problem"] or "torch has no GPU")
needs_two_gpus = pytest.mark.skipif(
    not AVAILABLE or torch.cuda.device_count() < 2, reason="a machine with two GPUs is needed"
)


def to_gpu(x, device="cuda"):
    """A tensor with the strides of ``x``, where torch can have them (it has no negative ones)."""
    x = np.asarray(x)
    if any(s < 0 for s in x.strides):
        x = np.array(x, order="C")
    bf16 = x.dtype.name == "bfloat16"
    item = x.itemsize
    extent = sum((n - 1) * s for n, s in zip(x.shape, x.strides, strict=True)) // item + 1 if x.size else 0
    flat = np.lib.stride_tricks.as_strided(x, (extent,), (item,), writeable=False).copy()
    flat = flat.view(np.int16) if bf16 else flat
    t = torch.from_numpy(flat).to(device)
    t = t.view(torch.bfloat16) if bf16 else t
    return t.as_strided(x.shape, [s // item for s in x.strides]) if x.size else t.reshape(x.shape)


def to_numpy(x):
    x = x.cpu()
    if x.dtype == torch.bfloat16:
        return x.view(torch.int16).numpy().view(oracle.DTYPES["bfloat16"])
    return x.numpy()


def check(semiring, a, b, device="cuda", argmax=True):
    """The product of NumPy arrays on the GPU and on the CPU: equal bits."""
    x, y = to_gpu(a, device), to_gpu(b, device)
    expected = tg.matmul(a, b, semiring=semiring, return_argmax=True)
    values = tg.matmul(x, y, semiring=semiring)
    assert values.device == x.device
    oracle.assert_same(to_numpy(values), np.asarray(expected.values))
    if argmax:
        got = tg.matmul(x, y, semiring=semiring, return_argmax=True)
        oracle.assert_same(to_numpy(got.values), np.asarray(expected.values), "values with argmax")
        oracle.assert_same(to_numpy(got.argmax), np.asarray(expected.argmax), "argmax")


def spin(milliseconds):
    """Keeps the current stream busy for about that long."""
    torch.cuda._sleep(int(milliseconds * 1.5e6))

"""The private copy in another order of axes, on the GPU: equals numpy.transpose, of any strides."""

import numpy as np
import pytest
from gpu import needs_gpu, to_gpu, to_numpy, torch
from tropical_gemm import _core

pytestmark = needs_gpu


@pytest.mark.parametrize("dtype", ["bool", "float16", "int32", "float64"])
def test_shapes(dtype):
    rng = np.random.default_rng(2)
    shapes = [(2,) * 17, (1000, 33), (3, 5, 7, 64), (2, 70000), (70000, 2), (300, 2, 300), (128, 4, 128), ()]
    for shape in shapes:
        x = rng.integers(0, 2, shape).astype(dtype)
        for _ in range(3):
            axes = rng.permutation(len(shape)).tolist()
            got = _core.permute(to_gpu(x), axes, None, None)
            assert got.is_contiguous()
            np.testing.assert_array_equal(to_numpy(got), x.transpose(axes))


DTYPES = ["bool", "int16", "float32", "int64"]
SHAPES = [(70, 130), (6, 9, 33), (2, 300, 2), (129, 4, 65), (3, 2, 5, 2, 7)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_gaps_and_repeats(shape, dtype):
    """Steps and margins leave gaps between the elements, expand repeats them: nothing in between is taken."""
    rng = np.random.default_rng(3)
    for _ in range(4):
        steps, margins = rng.integers(1, 4, len(shape)), rng.integers(0, 3, len(shape))
        memory = rng.integers(0, 2 if dtype == "bool" else 1000, margins + steps * np.array(shape)).astype(
            dtype
        )
        part = tuple(slice(m, m + s * n, s) for m, s, n in zip(margins, steps, shape, strict=True))
        x, view = memory[part], torch.from_numpy(memory).cuda()[part]
        axis = int(rng.integers(len(shape)))
        repeated = np.broadcast_to(x.take([0], axis), shape)
        for host, device in ((x, view), (repeated, view.narrow(axis, 0, 1).expand(shape))):
            axes = rng.permutation(len(shape)).tolist()
            got = _core.permute(device, axes, None, None)
            assert got.is_contiguous()
            np.testing.assert_array_equal(to_numpy(got), host.transpose(axes))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_backwards(shape, dtype):
    """Negative strides, which torch does not have."""
    cupy = pytest.importorskip("cupy")
    rng = np.random.default_rng(4)
    memory = rng.integers(0, 2 if dtype == "bool" else 1000, [2 * n for n in shape]).astype(dtype)
    for _ in range(4):
        part = tuple(slice(None, None, int(s)) for s in rng.choice((-2, -1, 2), len(shape)))
        axes = rng.permutation(len(shape)).tolist()
        got = _core.permute(cupy.asarray(memory)[part], axes, None, None)
        assert got.flags.c_contiguous
        np.testing.assert_array_equal(got.get(), memory[part].transpose(axes))

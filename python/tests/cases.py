"""Shapes, values and memory layouts that the tests share."""

import ml_dtypes
import numpy as np
import oracle
from hypothesis import strategies as st


class Producer:
    """Speaks DLPack and nothing else."""

    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **options):
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


SIZES = (0, 1, 2, 3, 5, 8, 15, 16, 17, 31, 33)
DEPTHS = (0, 1, 2, 3, 7, 16, 33, 65)
BATCHES = (
    ((), ()),
    ((), ()),
    ((2,), (2,)),
    ((3,), ()),
    ((), (2,)),
    ((2, 1), (1, 3)),
    ((1,), (2,)),
    ((0,), (1,)),
)
FILLS = ("uniform", "few", "signed_zeros", "nans", "infinities", "masked", "limits", "outlier", "bits")
LAYOUTS = ("C", "F", "step", "reversed", "offset", "read_only", "broadcast")
OUT_LAYOUTS = LAYOUTS[:5]

_LIMITS = {"int16": 1 << 12, "int32": 1 << 28, "int64": 1 << 60}


def _uniform(rng, dtype, shape):
    if dtype.name == "bool":
        return rng.random(shape) < 0.3
    if oracle.is_float(dtype):
        return rng.uniform(-4, 4, shape).astype(dtype)
    return rng.integers(-1000, 1000, shape).astype(dtype)


def _limits(rng, dtype, shape):
    if oracle.is_float(dtype):
        # Half-way cases of float16 and bfloat16, the largest and the smallest numbers.
        values = [2048, 0.25, 0.5, 0.75, 256, 1, -1, 65504, -65504, 2.0**-24, 3.3e38, -3.3e38, 1e-40]
        info = ml_dtypes.finfo(dtype)
        ends = [info.max, info.max / 2, info.tiny, info.smallest_subnormal]
        values += [float(s * v) for v in ends for s in (1, -1)]
    else:
        edge = _LIMITS[dtype.name]
        near = [edge, edge - 1, edge + 1, 2 * edge, 4 * edge - 1, 4 * edge - 2, 3]
        values = [*near, *(-v for v in near), int(oracle.lowest(dtype)), int(oracle.highest(dtype)), 0]
    with np.errstate(over="ignore"):
        return rng.choice(np.array(values).astype(dtype), shape)


def values(rng, fill, semiring, dtype, shape):
    """An array of one kind of values; see the names."""
    dtype = oracle.DTYPES[dtype] if isinstance(dtype, str) else dtype
    x = _uniform(rng, dtype, shape)
    if dtype.name == "bool":
        return x
    integers = not oracle.is_float(dtype)
    if fill == "few":
        x = rng.integers(-1, 3, shape).astype(dtype)
    elif fill == "signed_zeros":
        x = rng.choice(np.array([-0.0, 0.0, 0.0, -0.0, 1, -1]).astype(dtype), shape)
    elif fill == "nans" and not integers:
        x[rng.random(shape) < 0.05] = np.nan
        if x.ndim and x.shape[0]:
            x[rng.integers(x.shape[0])] = -x.dtype.type(np.nan)
    elif fill in ("infinities", "nans"):
        ends = np.array([oracle.lowest(dtype), oracle.highest(dtype)])
        x = np.where(rng.random(shape) < 0.5, rng.choice(ends, shape), x)
    elif fill == "masked":
        x[rng.random(shape) < 0.5] = oracle.zero(semiring, dtype)
        if x.ndim and x.shape[0]:
            x[rng.integers(x.shape[0])] = oracle.zero(semiring, dtype)
    elif fill == "limits":
        x = _limits(rng, dtype, shape)
    elif fill == "outlier" and x.size:
        x.flat[rng.integers(x.size)] = rng.choice([oracle.lowest(dtype), oracle.highest(dtype)])
    elif fill == "bits":
        x = rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8).view(dtype).reshape(shape)
    return x


def laid_out(x, layout):
    """The same elements behind other strides ("broadcast" repeats the first along one axis)."""
    if layout == "F":
        return np.array(x, order="F")
    # `...` keeps an array of no axes an array.
    if layout == "step":
        second = (..., *(slice(None, None, 2) for _ in x.shape))
        wide = np.zeros(tuple(2 * n for n in x.shape), x.dtype)
        wide[second] = x
        return wide[second]
    if layout == "reversed":
        flip = (..., *(slice(None, None, -1) for _ in x.shape))
        return np.array(x[flip], order="C")[flip]
    if layout == "offset":
        flat = np.zeros(x.size + 3, x.dtype)
        flat[3:] = x.ravel()
        return flat[3:].reshape(x.shape)
    if layout == "read_only":
        x = x.copy()
        x.flags.writeable = False
        return x
    if layout == "broadcast" and x.ndim and x.shape[0]:
        return np.broadcast_to(x[:1], x.shape)
    return np.array(x, order="C")


@st.composite
def products(draw, pairs=oracle.PAIRS, sizes=SIZES, depths=DEPTHS, fills=FILLS):
    """``(semiring, a, b, rng)``."""
    semiring, dtype = draw(st.sampled_from(pairs))
    batch_a, batch_b = draw(st.sampled_from(BATCHES))
    m, n, k = (draw(st.sampled_from(s)) for s in (sizes, sizes, depths))
    if dtype == "int64" and semiring.endswith(("plus", "mul")):
        m, n = min(m, 8), min(n, 8)  # the oracle counts with Python's integers there
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape_a, shape_b = (*batch_a, m, k), (*batch_b, k, n)
    vector = draw(st.sampled_from([""] * 6 + ["a", "b", "ab"]))
    if "a" in vector:
        shape_a = (k,)
    if "b" in vector:
        shape_b = (k,)
    fill = draw(st.sampled_from(fills))
    fill_b = draw(st.sampled_from((fill, fill, fill, *fills)))
    a = laid_out(values(rng, fill, semiring, dtype, shape_a), draw(st.sampled_from(LAYOUTS)))
    b = laid_out(values(rng, fill_b, semiring, dtype, shape_b), draw(st.sampled_from(LAYOUTS)))
    return semiring, a, b, rng


# Of operands of products whose gradients are looked at.
GRADIENT_SHAPES = (
    ((4, 5), (5, 3)),
    ((2, 4, 5), (5, 3)),
    ((4, 5), (2, 5, 3)),
    ((2, 1, 4, 5), (3, 5, 3)),
    ((5,), (5, 3)),
    ((2, 4, 5), (5,)),
    ((5,), (5,)),
    ((3, 0), (0, 2)),
    ((0, 4, 5), (5, 3)),
    ((0, 5), (5, 3)),
)

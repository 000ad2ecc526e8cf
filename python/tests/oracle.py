"""What a result means, written as NumPy formulas on whole arrays: slow, and independent of the library."""

import ml_dtypes
import numpy as np

DTYPES = {
    name: np.dtype(getattr(ml_dtypes, name) if name == "bfloat16" else name)
    for name in ("float16", "bfloat16", "float32", "float64", "int16", "int32", "int64", "bool")
}
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int16", "int32", "int64")
NUMERIC = ("max_plus", "min_plus", "max_mul", "min_mul", "max_min", "min_max")
PAIRS = [(s, d) for s in NUMERIC for d in FLOATS + INTEGERS] + [("or_and", "bool")]
FLOAT_PAIRS = [(s, d) for s in NUMERIC for d in FLOATS]

_CANONICAL_NAN = {"float16": 0x7E00, "bfloat16": 0x7FC0, "float32": 0x7FC00000, "float64": 0x7FF8000000000000}


def is_float(dtype):
    return np.dtype(dtype).name in FLOATS


def lowest(dtype):
    dtype = np.dtype(dtype)
    if dtype.name == "bool":
        return np.False_
    return dtype.type(-np.inf) if is_float(dtype) else dtype.type(np.iinfo(dtype).min)


def highest(dtype):
    dtype = np.dtype(dtype)
    if dtype.name == "bool":
        return np.True_
    return dtype.type(np.inf) if is_float(dtype) else dtype.type(np.iinfo(dtype).max)


def is_max(semiring):
    return semiring.startswith(("max", "or"))


def zero(semiring, dtype):
    """The result for K = 0."""
    if semiring == "max_mul":
        return np.dtype(dtype).type(0)
    return lowest(dtype) if is_max(semiring) else highest(dtype)


def masks(semiring):
    """Whether a result that equals the zero means that nothing was selected."""
    return semiring not in ("max_mul", "or_and")


def bits(x):
    return np.array(x, order="C").view(f"u{x.dtype.itemsize}")


def canonical(x):
    """+0 for a zero, one fixed NaN."""
    x = np.array(x)
    if is_float(x.dtype):
        x[x == 0] = 0
        bits_of = x.view(f"u{x.dtype.itemsize}")
        bits_of[np.isnan(x)] = _CANONICAL_NAN[x.dtype.name]
    return x


def _order(x):
    """A dtype in which NumPy's own reductions follow its rule for NaN (those of bfloat16 need not)."""
    return x.astype(np.float64) if x.dtype.name == "bfloat16" else x


def _clamp(x, dtype):
    return np.clip(x, int(lowest(dtype)), int(highest(dtype))).astype(dtype)


def _integer_mul(semiring, a, b):
    dtype = a.dtype
    wide = object if dtype.itemsize == 8 else np.int64
    x, y = a.astype(wide), b.astype(wide)
    if semiring.endswith("mul"):
        return _clamp(x * y, dtype)
    infinity = zero(semiring, dtype)
    return np.where((a == infinity) | (b == infinity), infinity, _clamp(x + y, dtype))


def mul(semiring, a, b):
    """Every candidate, in the dtype of the operands."""
    with np.errstate(all="ignore"):
        if semiring in ("max_min", "or_and"):
            return np.minimum(_order(a), _order(b)).astype(a.dtype)
        if semiring == "min_max":
            return np.maximum(_order(a), _order(b)).astype(a.dtype)
        if not is_float(a.dtype):
            return _integer_mul(semiring, a, b)
        return a + b if semiring.endswith("plus") else a * b


def _matrices(a, b):
    """1-D operands as matrices, and the axes of the product that they do not have."""
    dropped = ()
    if a.ndim == 1:
        a, dropped = a[None, :], (-2,)
    if b.ndim == 1:
        b, dropped = b[:, None], (*dropped, -1)
    return a, b, dropped


def product(semiring, a, b, offset=0):
    """``(values, argmax)`` of ``a`` times ``b``."""
    a, b, dropped = _matrices(a, b)
    candidates = mul(semiring, a[..., :, :, None], b[..., None, :, :])
    if candidates.shape[-2] == 0:
        shape = candidates.shape[:-2] + candidates.shape[-1:]
        values = np.full(shape, zero(semiring, a.dtype), a.dtype)
        argmax = np.full(shape, -1, np.int32)
    else:
        order = _order(candidates)
        values = (order.max(axis=-2) if is_max(semiring) else order.min(axis=-2)).astype(a.dtype)
        argmax = order.argmax(axis=-2) if is_max(semiring) else order.argmin(axis=-2)
        argmax = (argmax + offset).astype(np.int32)
        if masks(semiring):
            argmax[values == zero(semiring, a.dtype)] = -1
    return canonical(np.squeeze(values, dropped)), np.squeeze(argmax, dropped)


def accumulated(semiring, c, argmax, a, b, offset=0):
    """``(values, argmax)`` after the product was added to ``c`` and ``argmax``."""
    if a.shape[-1] == 0:
        return c.copy(), argmax.copy()
    values, indices = product(semiring, a, b, offset)
    x, y = _order(values), _order(c)
    with np.errstate(invalid="ignore"):
        better = x > y if is_max(semiring) else x < y
    better |= np.isnan(x) & ~np.isnan(y)
    return canonical(np.where(better, values, c)), np.where(better, indices, argmax)


def gradients(semiring, grad_c, argmax, a, b):
    """``(grad_a, grad_b)`` as sums in float64, rounded to the dtype."""
    a2, b2, dropped = _matrices(a, b)
    x, y, g = (v.astype(np.float64) for v in (a2, b2, np.expand_dims(grad_c, dropped)))
    k_of = np.expand_dims(argmax, dropped)
    lead = g.shape[:-2]
    x, y = np.broadcast_to(x, lead + x.shape[-2:]), np.broadcast_to(y, lead + y.shape[-2:])
    grad_x, grad_y = np.zeros(x.shape), np.zeros(y.shape)
    for index in np.ndindex(*g.shape):
        *batch, i, j = index
        k = int(k_of[index])
        if not 0 <= k < x.shape[-1]:
            continue
        at_x, at_y = (*batch, i, k), (*batch, k, j)
        if semiring.endswith("plus"):
            to_x = to_y = g[index]
        elif semiring.endswith("mul"):
            to_x, to_y = g[index] * y[at_y], g[index] * x[at_x]
        else:
            inner_is_b = y[at_y] < x[at_x] if semiring == "max_min" else y[at_y] > x[at_x]
            to_x, to_y = (0.0, g[index]) if inner_is_b else (g[index], 0.0)
        grad_x[at_x] += to_x
        grad_y[at_y] += to_y
    return _reduced(grad_x, a2.shape).reshape(a.shape).astype(a.dtype), _reduced(grad_y, b2.shape).reshape(
        b.shape
    ).astype(b.dtype)


def _reduced(x, shape):
    """Summed over the leading axes that an operand of that shape was broadcast along."""
    x = x.sum(axis=tuple(range(x.ndim - len(shape))))
    stretched = tuple(d for d in range(len(shape)) if shape[d] == 1 and x.shape[d] != 1)
    return x.sum(axis=stretched, keepdims=True)


def assert_same(got, expected, what="values"):
    """Equal shape, dtype and bits."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.dtype == expected.dtype, what
    assert got.shape == expected.shape, what
    different = np.argwhere(bits(got) != bits(expected))
    if len(different):
        at = tuple(different[0])
        raise AssertionError(
            f"{len(different)} {what} differ, first at {at}: got {got[at]!r}, expected {expected[at]!r}"
        )

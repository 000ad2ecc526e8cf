"""Integers whose sums might leave their dtype: contracted in int64, or refused."""

from typing import Any

from ._tensors import Algebra, constants, dtype_text, namespace

_ENDS = {"int16": 1 << 15, "int32": 1 << 31, "int64": 1 << 63}


def widen(arrays: list[Any], algebra: Algebra) -> "Widened | None":
    """None where no value on the way can leave the dtype; else the operands as int64.

    A sum (or product) of one element of each tensor is at most that of their largest magnitudes. The
    semiring's zero is no number where it is an extreme integer. The host looks at the operands.
    """
    dtype = dtype_text(arrays[0])
    mul = algebra.semiring.partition("_")[2]
    if dtype not in _ENDS or mul not in ("plus", "mul"):
        return None
    zero = constants[algebra.semiring, dtype][0]
    zero = zero if abs(zero) >= _ENDS[dtype] - 1 else None
    bound = 0 if mul == "plus" else 1
    for x in arrays:
        most = _magnitude(x, zero)
        bound = bound + most if mul == "plus" else bound * max(most, 1)
    if bound < _ENDS[dtype] - 1:
        return None
    what = f"the largest magnitudes of the operands make {bound}"
    if bound >= _ENDS["int64"] - 1:
        raise OverflowError(f"{what}, and a value on the way may not fit int64; use floats")
    xp = namespace(arrays[0])
    if dtype_text(xp.zeros(1, dtype=xp.int64)) != "int64":  # JAX may not have it
        raise OverflowError(f"{what}, which may not fit {dtype}, and there is no int64 here; use floats")
    return Widened(arrays, algebra, dtype, zero)


class Widened:
    """Operands as int64, and the way back."""

    def __init__(self, arrays: list[Any], algebra: Algebra, dtype: str, zero: int | None) -> None:
        self.dtype, self.zero = arrays[0].dtype, zero
        self.name = dtype
        self.wide_zero = None if zero is None else constants[algebra.semiring, "int64"][0]
        self.arrays = [self._wide(x) for x in arrays]

    def _wide(self, x: Any) -> Any:
        xp = namespace(x)
        wide = x.to(xp.int64) if xp.__name__ == "torch" else x.astype("int64")
        return (
            wide if self.zero is None else xp.where(x == self.zero, xp.full_like(wide, self.wide_zero), wide)
        )

    def narrowed(self, x: Any) -> Any:
        """The result in the dtype of the operands; OverflowError where it does not fit."""
        xp = namespace(x)
        if self.zero is not None:
            absent = x == self.wide_zero
            x = xp.where(absent, xp.zeros_like(x), x)
        most, least = (0, 0) if 0 in x.shape else (int(x.max()), int(x.min()))
        end = _ENDS[self.name]
        if most >= end or least < -end or (self.zero is not None and self.zero in (most, least)):
            raise OverflowError(f"a value of the result does not fit {self.name}; use int64 or floats")
        narrow = x.to(self.dtype) if xp.__name__ == "torch" else x.astype(self.dtype)
        return narrow if self.zero is None else xp.where(absent, xp.full_like(narrow, self.zero), narrow)


def _magnitude(x: Any, zero: int | None) -> int:
    if 0 in x.shape:
        return 0
    if zero is not None:
        xp = namespace(x)
        x = xp.where(x == zero, xp.zeros_like(x), x)
    return max(int(x.max()), -int(x.min()))

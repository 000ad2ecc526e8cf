"""What the last product did inside; for tests and measurements, and free to change."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

from . import _core


class LastPath(NamedTuple):
    """How a product was computed; the result is the same either way."""

    path: Literal["plain", "filtered", "mixed"]
    unproven: float
    """The share of the filtered outputs that were not proven at once and were computed anew."""


def last_path() -> LastPath:
    """The path of the last product that this thread asked for; on a GPU only within :func:`recorded`.

    "filtered" is certified filtering, "mixed" that the plain kernels computed some outputs: it gave up on
    the way, as the data let it rule out too little, or, on a GPU, a few rows or columns beyond whole tiles
    were too small a product for it. A call that was refused changes nothing: the product before it is told.

    >>> import numpy as np
    >>> import tropical_gemm as tg
    >>> from tropical_gemm import debug
    >>> c = tg.matmul(np.eye(2), np.eye(2))
    >>> debug.last_path().path in ("plain", "filtered")
    True
    """
    outputs, filtered, unproven = _core.last_filter()
    path: Literal["plain", "filtered", "mixed"]
    path = "plain" if filtered == 0 else "filtered" if filtered == outputs else "mixed"
    return LastPath(path, unproven / max(filtered, 1))


@contextmanager
def recorded() -> Iterator[None]:
    """Within this, :func:`last_path` tells of products on GPUs too, each of which the host then waits for.

    It may be nested; while any thread is in it, it holds for all.
    """
    _core.record_filter(True)
    try:
        yield
    finally:
        _core.record_filter(False)

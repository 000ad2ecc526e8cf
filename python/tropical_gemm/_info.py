"""Facts of this build and machine."""

from typing import Any

from . import _core

__version__: str = _core.info()["version"]

semirings: tuple[str, ...] = tuple(_core.info()["semirings"])
"""The names that ``semiring=`` takes. Case, ``-``, ``_`` and blanks are free: "MaxPlus" is "max_plus"."""


def info() -> dict[str, Any]:
    """Facts of this build and machine.

    Returns a dict with

    - ``version``: of the library;
    - ``isa``: the instruction set that the CPU kernels use, and ``isas``: those that this machine could use,
      best first. The environment variable ``TROPICAL_GEMM_ISA``, read at start-up, chooses one of them;
    - ``threads``: how many threads a large product uses where ``threads`` is not given;
    - ``dtypes``: the element types, and ``semirings``: for each semiring the element types it is defined on;
    - ``cuda``: ``{"built": False, "available": False}`` in a build without the CUDA backend.

    >>> import tropical_gemm as tg
    >>> tg.info()["semirings"]["or_and"]
    ('bool',)
    """
    return {**_core.info(), "cuda": {"built": False, "available": cuda_available()}}


def cuda_available() -> bool:
    """Whether arrays on an NVIDIA GPU can be multiplied: False, since this build has no CUDA backend.

    >>> import tropical_gemm as tg
    >>> tg.cuda_available()
    False
    """
    return False

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
    - ``filter``: certified filtering on the CPU, which makes large products faster and changes no result:
      its ``mode`` ("auto", "always" or "never"; the environment variable ``TROPICAL_GEMM_FILTER``, read
      at start-up, sets it) and the ``dtypes`` whose max_plus and min_plus it computes with the instruction
      set in use;
    - ``cuda``: whether the CUDA backend is ``built`` in and whether it is ``available``, that is has a device
      to run on; the ``architectures`` that it has code for; the ``devices``, each with its ``name``,
      ``compute_capability``, ``multiprocessors``, ``memory`` in bytes, and whether it is ``supported``; and
      the ``problem``, a text, where there is no backend or no device.

    Asking for the first time opens the CUDA backend and the driver, where there are any.

    >>> import tropical_gemm as tg
    >>> tg.info()["semirings"]["or_and"]
    ('bool',)
    """
    return {**_core.info(), "cuda": _core.cuda_info()}


def cuda_available() -> bool:
    """Whether this machine has a GPU that this build can use, found out at run time.

    :func:`info` says more: ``tg.info()["cuda"]["problem"]`` is why not.

    >>> import tropical_gemm as tg
    >>> tg.cuda_available() in (True, False)
    True
    """
    return bool(_core.cuda_info()["available"])

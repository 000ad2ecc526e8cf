"""Tropical (semiring) matrix multiplication: ``C[i, j] = add_k mul(A[i, k], B[k, j])``.

>>> import numpy as np
>>> import tropical_gemm as tg
>>> a = np.array([[0.0, 2.0], [1.0, -1.0]])
>>> b = np.array([[5.0, 0.0], [1.0, 3.0]])
>>> tg.matmul(a, b)  # max_plus: C[i, j] = max_k (A[i, k] + B[k, j])
array([[5., 5.],
       [6., 2.]])
"""

from . import _install

_install.check()

from typing import Any as _Any  # noqa: E402

from ._count import CountResult, count_matmul  # noqa: E402
from ._info import __version__, cuda_available, info, semirings  # noqa: E402
from ._ops import MatmulGradients, MatmulResult, matmul, matmul_backward  # noqa: E402
from .algorithms import (  # noqa: E402
    DivergenceError,
    NegativeCycleError,
    closure,
    reconstruct_path,
    shortest_path,
    shortest_paths,
)
from .algorithms.align import AlignResult, forced_align  # noqa: E402
from .algorithms.einsum import (  # noqa: E402
    ContractExpression,
    EinsumResult,
    contract_expression,
    einsum,
)
from .algorithms.viterbi import ViterbiResult, viterbi  # noqa: E402
from .compat import legacy as _legacy  # noqa: E402

__all__ = [
    "AlignResult",
    "ContractExpression",
    "CountResult",
    "DivergenceError",
    "EinsumResult",
    "MatmulGradients",
    "MatmulResult",
    "NegativeCycleError",
    "ViterbiResult",
    "__version__",
    "closure",
    "contract_expression",
    "count_matmul",
    "cuda_available",
    "einsum",
    "forced_align",
    "info",
    "matmul",
    "matmul_backward",
    "reconstruct_path",
    "semirings",
    "shortest_path",
    "shortest_paths",
    "viterbi",
]


__all__ += _legacy.__all__  # the functions of the Rust package of the same name


def __getattr__(name: str) -> _Any:
    if name in _legacy.functions:
        return _legacy.functions[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

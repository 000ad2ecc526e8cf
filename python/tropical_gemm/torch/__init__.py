"""The product as a PyTorch operator (gradients, torch.compile, torch.export, torch.func, AMP), and a layer.

>>> import torch
>>> from tropical_gemm.torch import TropicalLinear
>>> layer = TropicalLinear(4, 3)
>>> layer(torch.zeros(2, 4)).shape
torch.Size([2, 3])
"""

try:
    import torch
except ImportError as error:
    raise ImportError(
        "tropical_gemm.torch needs PyTorch, which is not installed; install it with: "
        "pip install 'tropical-gemm-cpp[torch]'"
    ) from error

# What torch.library's register_vmap and the traced autograd functions need as they are used here.
if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 7):
    raise ImportError(
        f"tropical_gemm works on tensors of torch 2.7 or newer, this is torch {torch.__version__}"
    )

from . import _viterbi as _viterbi
from ._linear import TropicalLinear
from ._matmul import matmul, matmul_backward

__all__ = ["TropicalLinear", "matmul", "matmul_backward"]

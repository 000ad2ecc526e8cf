"""Products, closures and shortest paths of matrices that are spread over processes, by torch.distributed.

NCCL carries the messages between GPUs, gloo those between CPUs; nothing of it is ours. docs/distributed.md
has examples.
"""

try:
    import torch.distributed as _dist
except ImportError as error:
    raise ImportError(
        "tropical_gemm.distributed needs PyTorch, which is not installed; install it with: "
        "pip install 'tropical-gemm-cpp[torch]'"
    ) from error

if not _dist.is_available():
    raise ImportError("tropical_gemm.distributed needs torch.distributed, which this build of PyTorch lacks")

from ._cyclic import BlockCyclic
from ._matmul import matmul
from ._paths import closure, shortest_path

__all__ = ["BlockCyclic", "closure", "matmul", "shortest_path"]

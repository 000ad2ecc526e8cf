// One operand of a product as the planner of the fast kernels sees it.
#pragma once
#include "args.h"

namespace tropical::cuda {

struct Side {
  const void* data;
  int64_t line, k;  // strides
  int64_t lines, steps;
  int operand;  // in the batch

  // Whether vectors of `vector` elements along the contiguous axis lie on 16-byte boundaries.
  bool aligned(const Batch<4, kSlimDims>& batch, int64_t other, int64_t size, int vector, int bytes) const {
    if (reinterpret_cast<uintptr_t>(data) % 16 != 0 || size % vector != 0 || bytes * vector != 16) return false;
    if (other % vector != 0) return false;
    for (int d = 0; d < batch.ndim; ++d)
      if (batch.stride[d][operand] % vector != 0) return false;
    return true;
  }
  bool lines_contiguous(const Batch<4, kSlimDims>& batch, int vector, int bytes) const {
    return line == 1 && aligned(batch, k, lines, vector, bytes);
  }
  bool k_contiguous(const Batch<4, kSlimDims>& batch, int vector, int bytes) const {
    return k == 1 && aligned(batch, line, steps, vector, bytes);
  }
};

}  // namespace tropical::cuda

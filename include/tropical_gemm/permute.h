// Copies of arrays with their axes in another order.
#pragma once
#include <atomic>
#include <span>

#include "tropical_gemm/cuda.h"
#include "tropical_gemm/dlpack.h"
#include "tropical_gemm/export.h"

namespace tropical {

struct PermuteOptions {
  // At most this many threads; 0 means as many as OpenMP would use.
  int threads = 0;
  // Polled on the way; once true, the call throws Error(cancelled) and `out` holds unspecified values.
  const std::atomic<bool>* cancel = nullptr;
  // For tensors on a CUDA device.
  CudaOptions cuda = {};
};

// out[i...] = x[...]: axis d of `out` is axis axes[d] of `x`, bit by bit.
//   x     any strides, negative ones and 0 too; elements of 1, 2, 4, 8 or 16 bytes; at most 64 axes
//   axes  each axis of x once
//   out   row-major, of the same dtype, disjoint from x
// Both in host memory or on one CUDA device, where no scratch memory is taken. Throws Error before anything is written,
// except for `cancelled` and `out_of_memory`.
TROPICAL_API void permute(const DLTensor& x, std::span<const int> axes, const DLTensor& out,
                          const PermuteOptions& options = {});

}  // namespace tropical

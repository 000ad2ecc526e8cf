// What kernels are given: plain structs, passed by value.
#pragma once
#include "check.h"
#include "params.h"

namespace tropical::cuda {

// Batch axes after collapsing; strides in elements, 0 where an operand is broadcast.
template <int kOperands>
struct Batch {
  int ndim = 0;
  int64_t count = 1;
  int64_t size[kMaxBatchDims];
  int64_t stride[kOperands][kMaxBatchDims];

  // Element offsets of member `index` in each operand.
  TROPICAL_HD void offsets(int64_t index, int64_t (&offset)[kOperands]) const {
    for (int o = 0; o < kOperands; ++o) offset[o] = 0;
    for (int d = ndim - 1; d >= 0; --d) {
      int64_t i = index;
      if (d > 0) {
        i = index % size[d];
        index /= size[d];
      }
      for (int o = 0; o < kOperands; ++o) offset[o] += i * stride[o][d];
    }
  }
};

// Axes of size 1 vanish, and neighbours that all operands step through evenly become one.
template <int kOperands>
Batch<kOperands> collapse(const BatchShape& shape, const Operand* const (&operands)[kOperands]) {
  Batch<kOperands> b;
  b.count = shape.count();
  for (int d = 0; d < shape.ndim; ++d) {
    if (shape.size[d] == 1) continue;
    bool joins = b.ndim > 0;
    for (int o = 0; o < kOperands && joins; ++o)
      joins = b.stride[o][b.ndim - 1] == operands[o]->batch[d] * shape.size[d];
    if (!joins) b.size[b.ndim++] = 1;
    b.size[b.ndim - 1] *= shape.size[d];
    for (int o = 0; o < kOperands; ++o) b.stride[o][b.ndim - 1] = operands[o]->batch[d];
  }
  return b;
}

// One product (or a batch of them) on device memory; elements as in MatmulParams.
struct ProductArgs {
  const void* a;
  const void* b;
  void* c;
  int32_t* argmax;
  int64_t m, n, k;
  int64_t a_row, a_col, b_row, b_col, c_row, c_col, argmax_row, argmax_col;
  Batch<4> batch;  // a, b, c, argmax
  int32_t argmax_offset;
  bool accumulate;
};

}  // namespace tropical::cuda

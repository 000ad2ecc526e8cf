// What kernels are given: plain structs, passed by value.
#pragma once
#include "check.h"
#include "params.h"

namespace tropical::cuda {

// Batch axes after collapsing; strides in elements, 0 where an operand is broadcast.
template <int kOperands, int kDims = kMaxBatchDims>
struct Batch {
  int ndim = 0;
  int64_t count = 1;
  int64_t size[kDims];
  int64_t stride[kDims][kOperands];  // those of one axis together, since parameters are fetched by the line

  // The same, where the index fits in 32 bits: division is far cheaper.
  TROPICAL_HD void offsets_of(uint32_t index, int64_t (&offset)[kOperands]) const {
    for (int o = 0; o < kOperands; ++o) offset[o] = 0;
    for (int d = ndim - 1; d >= 0; --d) {
      const auto n = static_cast<uint32_t>(size[d]);
      const uint32_t i = d > 0 ? index % n : index;
      index /= n;
      for (int o = 0; o < kOperands; ++o) offset[o] += i * stride[d][o];
    }
  }

  // Element offsets of member `index` in each operand.
  TROPICAL_HD void offsets(int64_t index, int64_t (&offset)[kOperands]) const {
    if (ndim <= 1) {  // without a loop, as short kernels begin with this
      for (int o = 0; o < kOperands; ++o) offset[o] = index * stride[0][o];
      return;
    }
    for (int o = 0; o < kOperands; ++o) offset[o] = 0;
    for (int d = ndim - 1; d >= 0; --d) {
      int64_t i = index;
      if (d > 0) {
        i = index % size[d];
        index /= size[d];
      }
      for (int o = 0; o < kOperands; ++o) offset[o] += i * stride[d][o];
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
      joins = b.stride[b.ndim - 1][o] == operands[o]->batch[d] * shape.size[d];
    if (!joins) b.size[b.ndim++] = 1;
    b.size[b.ndim - 1] *= shape.size[d];
    for (int o = 0; o < kOperands; ++o) b.stride[b.ndim - 1][o] = operands[o]->batch[d];
  }
  return b;
}

// One product (or a batch of them) on device memory; elements as in MatmulParams.
template <int kDims>
struct ProductArgsOf {
  const void* a;
  const void* b;
  void* c;
  int32_t* argmax;
  int64_t m, n, k;
  int64_t a_row, a_col, b_row, b_col, c_row, c_col, argmax_row, argmax_col;
  Batch<4, kDims> batch;  // a, b, c, argmax
  int32_t argmax_offset;
  bool accumulate;
};
using ProductArgs = ProductArgsOf<kMaxBatchDims>;

// Short arguments start faster; few batches keep more than four axes after collapsing.
inline constexpr int kSlimDims = 4;
using SlimArgs = ProductArgsOf<kSlimDims>;
inline SlimArgs slim(const ProductArgs& p) {
  SlimArgs q{p.a,     p.b,     p.c,     p.argmax, p.m,          p.n,          p.k, p.a_row,         p.a_col,
             p.b_row, p.b_col, p.c_row, p.c_col,  p.argmax_row, p.argmax_col, {},  p.argmax_offset, p.accumulate};
  q.batch.ndim = p.batch.ndim;
  q.batch.count = p.batch.count;
  for (int d = 0; d < p.batch.ndim; ++d) {
    q.batch.size[d] = p.batch.size[d];
    for (int o = 0; o < 4; ++o) q.batch.stride[d][o] = p.batch.stride[d][o];
  }
  return q;
}

}  // namespace tropical::cuda

// The Viterbi recurrence as its kernels see it, and how one candidate is taken among many.
#pragma once
#include "core_ops.cuh"
#include "heuristics.h"
#include "trellis.h"

namespace tropical::cuda {

// F is the type of the values. Rows of states are padded to whole vectors; pads hold 0.
template <class In_>
struct Trellis {
  using In = In_;
  using F = wide_t<In>;
  ViterbiParams p;
  int64_t row;        // states, and the pad
  F* history;         // (step, batch, row)
  int64_t step_size;  // elements of one step
  F* matrix;          // (matrix, from, row of to), nullptr where the product reads the source
  F* transposed;      // (matrix, to, row of from), nullptr where steps differ
  bool one_matrix;    // for all sequences

  __device__ static F read(const Strided& x, int64_t at) { return widen(static_cast<const In*>(x.data)[at]); }
  __device__ F* values(int64_t t, int64_t b) const { return history + t * step_size + b * row; }
  __host__ __device__ int64_t transition_at(int64_t b, int64_t t) const {
    return b * p.transition.stride[0] + (t - 1) * p.transition.stride[1];
  }
  __device__ int64_t matrix_at(int64_t b) const { return one_matrix ? 0 : b * p.states * row; }
  __device__ F initial(int64_t b, int64_t j) const {
    return p.initial.data ? read(p.initial, b * p.initial.stride[0] + j * p.initial.stride[1]) : F{0};
  }
  __device__ F emission(int64_t b, int64_t t, int64_t j) const {
    return read(p.emission, b * p.emission.stride[0] + t * p.emission.stride[1] + j * p.emission.stride[2]);
  }
};

__device__ __forceinline__ float larger(float a, float b) { return max_nan(a, b); }
__device__ __forceinline__ double larger(double a, double b) { return a != a || a > b ? a : b; }

// A value as an integer of the same order: -0 and +0 are equal, NaN is the largest.
__device__ inline int order_of(float x) {
  const int bits = __float_as_int(x + 0.0f);
  return x != x ? INT32_MAX : bits ^ (bits >> 31 & INT32_MAX);
}
__device__ inline int64_t order_of(double x) {
  const int64_t bits = __double_as_longlong(x + 0.0);
  return x != x ? INT64_MAX : bits ^ (bits >> 63 & INT64_MAX);
}

// The first of the largest, or the first NaN, among the candidates shown.
template <class F>
struct alignas(8) Taken {
  using Order = decltype(order_of(F{}));
  Order order = std::is_same_v<Order, int> ? INT32_MIN : INT64_MIN;  // below -inf
  int state = INT32_MAX;

  // In ascending order of states.
  __device__ void show(F candidate, int i) {
    const Order x = order_of(candidate);
    if (x > order) order = x, state = i;
  }
  __device__ void merge_lanes() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    constexpr bool kReduce = std::is_same_v<Order, int>;
    if constexpr (kReduce) {
      const int most = __reduce_max_sync(0xffffffffu, order);
      state = __reduce_min_sync(0xffffffffu, order == most ? state : INT32_MAX);
      order = most;
    }
#else
    constexpr bool kReduce = false;
#endif
    for (int lane = kReduce ? 0 : 16; lane > 0; lane /= 2) {
      const Order x = __shfl_xor_sync(0xffffffffu, order, lane);
      const int i = __shfl_xor_sync(0xffffffffu, state, lane);
      if (x > order || (x == order && i < state)) order = x, state = i;
    }
  }
};

}  // namespace tropical::cuda

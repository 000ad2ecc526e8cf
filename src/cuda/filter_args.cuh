// What the filter's kernels share: operands, bounds, and where they leave what they find. F: a scheme of filter_math.h.
#pragma once
#include "elements.cuh"
#include "filter_math.h"

namespace tropical::cuda::filter {

inline constexpr int kThreads = 256, kWarps = kThreads / 32;
inline constexpr int kLineUnit = 128;       // lines are padded to whole tiles
inline constexpr int kProbes = 2048;        // outputs that the probe looks at
inline constexpr uint32_t kProbeUnit = 64;  // what a rescan without candidates counts there
inline constexpr int kIndexBits = 20;       // of an index of k in the list
inline constexpr uint16_t kNear = 0x8000;   // in an id: another chunk is near

// One operand: lines (rows of A, columns of B) by k.
template <class F>
struct Side {
  using Entry = typename F::Entry;
  const typename F::In* data;
  int64_t line, step;  // strides
  int lines, padded;   // padded lines and steps count as -inf
  // Of each line, zero at first: the key of its largest finite entry, and how far from the end its first NaN is.
  unsigned long long* peak;
  int* nan;
  void* by_k;      // bounds, [padded steps][padded lines]: for the loop
  Entry* by_line;  // the same, [padded lines][padded steps]: for the recovery
};

// Zero at first.
struct State {
  int infinite;     // an entry from which NaN or the best value of all may come
  float spread;     // fixed point: how far sampled outputs lie below what their row and column allow
  uint32_t work;    // what rescans of the probed outputs would cost
  uint32_t listed;  // outputs to rescan; beyond the list's room they are only counted
  int done;         // C is complete
};

template <class F>
struct Args {
  SlimArgs p;
  Side<F> a, b;
  int steps;  // of k, padded
  State* state;
  // Of every output, [row][column of b.padded]: the best place on the scale, and the first chunk that has it. By float
  // 32 bits, and the top bit of the id is set where another chunk is near; by fixed point 16, and the second best
  // chunk's.
  void* best;
  uint16_t* second;
  uint16_t* id;
  uint64_t* list;  // place in `best`, then k in kIndexBits
  uint32_t room, limit;
  uint32_t zero;  // 0, unknown to the compiler
  bool argmax;
  bool believe;  // take everything as proved
  FilterCounts* report;

  // Whether the plain kernels are to do it all.
  __device__ bool declined() const { return state->infinite || state->work > limit; }
  __device__ float unit() const {
    if constexpr (std::is_same_v<F, ByFixed>)
      return ByFixed::unit_for(state->spread);
    else
      return 0;
  }
};

// As max_plus sees an entry.
template <class S, class T>
__device__ inline T oriented(T x) {
  return S::kIsMax ? x : -x;
}

// Keys have the order of the numbers; 0 stands for none.
__device__ inline unsigned long long key_of(double x) {
  const auto bits = static_cast<unsigned long long>(__double_as_longlong(x));
  return bits >> 63 ? ~bits : bits | 1ull << 63;
}
template <class F>
__device__ inline typename F::In shift_of(const Side<F>& x, int line) {
  const unsigned long long key = x.peak[line];
  if (key == 0) return 0;
  const unsigned long long bits = key >> 63 ? key & ~(1ull << 63) : ~key;
  return static_cast<typename F::In>(__longlong_as_double(static_cast<long long>(bits)));
}

template <class S, class F>
__device__ inline typename F::In entry_of(const Side<F>& x, int line, int k) {
  return oriented<S>(x.data[line * x.line + k * x.step]);
}
template <class S, class F>
__device__ inline typename F::In candidate(const Args<F>& q, int row, int col, int k) {
  return entry_of<S>(q.a, row, k) + entry_of<S>(q.b, col, k);
}

template <class S, bool kArgmax, class F>
__device__ inline void finish(const Args<F>& q, int row, int col, typename F::In v, int k) {
  using In = typename F::In;
  Output<S, In, In>::template finish<kArgmax>(
      oriented<S>(v), S::template zero<In>(), k, static_cast<In*>(q.p.c) + row * q.p.c_row + col * q.p.c_col,
      kArgmax ? q.p.argmax + row * q.p.argmax_row + col * q.p.argmax_col : nullptr, q.p.accumulate, q.p.argmax_offset);
}

// Neighbouring steps that one load brings, and their places on the scale.
template <class F>
inline constexpr int kAtOnce = 16 / static_cast<int>(sizeof(typename F::Entry));
template <class F>
struct alignas(16) Few {
  typename F::Entry x[kAtOnce<F>];
};
template <class F>
__device__ __forceinline__ Few<F> few_at(const typename F::Entry* from) {
  return *reinterpret_cast<const Few<F>*>(from);
}
template <class F>
__device__ __forceinline__ void sums(const Few<F>& a, const Few<F>& b, uint32_t (&u)[kAtOnce<F>]) {
#pragma unroll
  for (int i = 0; i < kAtOnce<F>; ++i) u[i] = F::sum(a.x[i], b.x[i]);
}

}  // namespace tropical::cuda::filter

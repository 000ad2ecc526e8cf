// What the filter's kernels share: operands, bounds, and where they leave what they find.
#pragma once
#include "elements.cuh"
#include "filter_math.h"

namespace tropical::cuda::filter {

inline constexpr int kChunk = 32;           // steps of k that share an id
inline constexpr int kLineUnit = 128;       // lines are padded to whole tiles
inline constexpr int kProbes = 2048;        // outputs that the probe looks at
inline constexpr uint32_t kProbeUnit = 64;  // what a rescan without candidates counts there

// One operand: lines (rows of A, columns of B) by k.
struct Side {
  const double* data;
  int64_t line, step;  // strides
  int lines, padded;   // padded lines and steps are bounded by -inf
  // Of each line, zero at first: the key of its largest finite entry, and how far from the end its first NaN is.
  unsigned long long* peak;
  int* nan;
  float* by_k;     // bounds, [padded steps][padded lines]: for the loop
  float* by_line;  // the same, [padded lines][padded steps]: for the recovery
};

// Zero at first.
struct State {
  int infinite;     // an entry from which NaN or the best value of all may come
  uint32_t work;    // what rescans of the probed outputs would cost
  uint32_t listed;  // outputs to rescan; beyond the list's room they are only counted
  int done;         // C is complete
};

struct Args {
  SlimArgs p;
  Side a, b;
  int steps;  // of k, padded
  State* state;
  uint32_t* best;  // bits of the largest bound, [row][column of b.padded]
  uint16_t* id;    // its chunk; the top bit: another chunk's is near
  uint64_t* list;  // place in `best`, then k in kIndexBits
  uint32_t room, limit;
  bool believe;  // take everything as proved
  FilterReport* report;
};
inline constexpr int kIndexBits = 20;
inline constexpr uint16_t kNear = 0x8000;

// Whether the plain kernels are to do it all.
__device__ inline bool declined(const Args& q) { return q.state->infinite || q.state->work > q.limit; }

// As max_plus sees an entry.
template <class S>
__device__ inline double oriented(double x) {
  return S::kIsMax ? x : -x;
}

// Keys have the order of the numbers; 0 stands for none.
__device__ inline unsigned long long key_of(double x) {
  const auto bits = static_cast<unsigned long long>(__double_as_longlong(x));
  return bits >> 63 ? ~bits : bits | 1ull << 63;
}
__device__ inline double shift_of(unsigned long long key) {
  if (key == 0) return 0;
  return __longlong_as_double(static_cast<long long>(key >> 63 ? key & ~(1ull << 63) : ~key));
}

template <class S>
__device__ inline double candidate(const Args& q, int row, int col, int k) {
  return oriented<S>(q.a.data[row * q.a.line + k * q.a.step]) + oriented<S>(q.b.data[col * q.b.line + k * q.b.step]);
}

template <class S, bool kArgmax>
__device__ inline void finish(const Args& q, int row, int col, double v, int k) {
  Output<S, double, double>::template finish<kArgmax>(
      oriented<S>(v), S::template zero<double>(), k, static_cast<double*>(q.p.c) + row * q.p.c_row + col * q.p.c_col,
      kArgmax ? q.p.argmax + row * q.p.argmax_row + col * q.p.argmax_col : nullptr, q.p.accumulate, q.p.argmax_offset);
}

}  // namespace tropical::cuda::filter

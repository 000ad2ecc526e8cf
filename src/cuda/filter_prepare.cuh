// Before the filter's loop: the largest entry of every line, bounds on entries relative to it in both layouts, and a
// probe of whether the data are worth it.
#pragma once
#include "filter_args.cuh"

namespace tropical::cuda::filter {

inline constexpr int kPeakLines = 32, kPeakSteps = 256;
inline constexpr int kPackLines = 64;
template <class F>
inline constexpr int kPackSteps = 128 / static_cast<int>(sizeof(typename F::Entry));  // a line of the cache

// Blocks that look at one operand; those of A come first.
template <class F>
int64_t peak_blocks(const Side<F>& x, int64_t k) {
  return int64_t{(x.lines + kPeakLines - 1) / kPeakLines} * ((k + kPeakSteps - 1) / kPeakSteps);
}
template <class F>
int64_t pack_blocks(const Side<F>& x, int steps) {
  return int64_t{x.padded / kPackLines} * (steps / kPackSteps<F>);
}

template <class F>
__device__ inline bool along_k(const Side<F>& x) {
  return (x.step < 0 ? -x.step : x.step) < (x.line < 0 ? -x.line : x.line);
}

template <class S, class F>
__global__ void __launch_bounds__(kThreads) peaks(const __grid_constant__ Args<F> q, unsigned blocks_of_a) {
  using T = typename F::In;
  const bool is_a = blockIdx.x < blocks_of_a;
  const Side<F>& x = is_a ? q.a : q.b;
  const unsigned block = is_a ? blockIdx.x : blockIdx.x - blocks_of_a;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int k_size = static_cast<int>(q.p.k);
  const unsigned across = (x.lines + kPeakLines - 1u) / kPeakLines;
  const int line0 = static_cast<int>(block % across * kPeakLines), k0 = static_cast<int>(block / across * kPeakSteps);
  const int k_end = min(k0 + kPeakSteps, k_size);
  bool infinite = false;
  T peak = lowest<T>();
  int nan = 0;
  const auto meet = [&](T v, int k) {
    infinite |= v == highest<T>();
    nan = v != v ? max(nan, k_size - k) : nan;
    peak = v > peak ? v : peak;
  };
  const auto tell = [&](int line) {
    if (peak > lowest<T>()) atomicMax(x.peak + line, key_of(peak));
    if (nan > 0) atomicMax(x.nan + line, nan);
  };
  if (along_k(x)) {
    for (int line = line0 + warp; line < min(line0 + kPeakLines, x.lines); line += kWarps) {
      peak = lowest<T>(), nan = 0;
#pragma unroll 8
      for (int k = k0 + lane; k < k_end; k += 32) meet(entry_of<S>(x, line, k), k);
#pragma unroll
      for (int d = 16; d > 0; d /= 2) {
        const T other = __shfl_xor_sync(~0u, peak, d);
        peak = other > peak ? other : peak;
        nan = max(nan, __shfl_xor_sync(~0u, nan, d));
      }
      if (lane == 0) tell(line);
    }
  } else {
    __shared__ T peaks_of[kWarps][32];
    __shared__ int nans_of[kWarps][32];
    const int line = min(line0 + lane, x.lines - 1);
#pragma unroll 8
    for (int k = k0 + warp; k < k_end; k += kWarps) meet(entry_of<S>(x, line, k), k);
    peaks_of[warp][lane] = peak, nans_of[warp][lane] = nan;
    __syncthreads();
    if (warp == 0) {
      for (int w = 1; w < kWarps; ++w) {
        peak = peaks_of[w][lane] > peak ? peaks_of[w][lane] : peak;
        nan = max(nan, nans_of[w][lane]);
      }
      tell(line);
    }
  }
  if (infinite) q.state->infinite = 1;
}

// Numbers that look random, the same in every run.
struct Picks {
  unsigned hash;
  __device__ explicit Picks(unsigned seed) : hash((seed + 1) * 2654435761u) {}
  __device__ int below(int64_t size) {
    hash = (hash ^ hash >> 15) * 2246822519u;
    hash = (hash ^ hash >> 13) * 3266489917u;
    return static_cast<int>((uint64_t{hash} * static_cast<uint64_t>(size)) >> 32);
  }
};

// Fixed point: a block looks at 32 outputs of a row, all of K.
template <class S, class F>
__global__ void __launch_bounds__(kThreads) measure(const __grid_constant__ Args<F> q) {
  if (q.state->infinite) return;
  __shared__ float nearest[kWarps][32];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  Picks pick(blockIdx.x);
  const int row = pick.below(q.p.m), col = min(pick.below(q.p.n) / 32 * 32 + lane, static_cast<int>(q.p.n) - 1);
  const float r = shift_of(q.a, row), c = shift_of(q.b, col);
  float distance = highest<float>();
#pragma unroll 8
  for (int k = warp; k < q.p.k; k += kWarps)
    distance = fminf(distance, (r - entry_of<S>(q.a, row, k)) + (c - entry_of<S>(q.b, col, k)));
  nearest[warp][lane] = distance;
  __syncthreads();
  if (warp > 0) return;
  for (int w = 1; w < kWarps; ++w) distance = fminf(distance, nearest[w][lane]);
  if (!(distance < highest<float>())) distance = 0;  // an output of -inf, or NaN
#pragma unroll
  for (int d = 16; d > 0; d /= 2) distance = fmaxf(distance, __shfl_xor_sync(~0u, distance, d));
  if (lane == 0) atomicMax(reinterpret_cast<int*>(&q.state->spread), __float_as_int(distance));
}

template <class S, class F>
__global__ void __launch_bounds__(kThreads) pack_bounds(const __grid_constant__ Args<F> q, unsigned blocks_of_a) {
  if (q.state->infinite) return;
  using Entry = typename F::Entry;
  constexpr int kSteps = kPackSteps<F>, kEach = kPackLines * kSteps / kThreads;
  __shared__ Entry tile[kSteps][kPackLines + 4 / sizeof(Entry)];
  const bool is_a = blockIdx.x < blocks_of_a;
  const Side<F>& x = is_a ? q.a : q.b;
  const unsigned block = is_a ? blockIdx.x : blockIdx.x - blocks_of_a;
  const unsigned across = x.padded / kPackLines;
  const int line0 = static_cast<int>(block % across * kPackLines), k0 = static_cast<int>(block / across * kSteps);
  const int thread = static_cast<int>(threadIdx.x), k_size = static_cast<int>(q.p.k);
  // Neighbouring threads read neighbours in memory.
  const bool by_k = along_k(x);
  const int step = by_k ? thread % kSteps : thread / kPackLines, line = by_k ? thread / kSteps : thread % kPackLines;
  const int more_steps = by_k ? 0 : kThreads / kPackLines, more_lines = by_k ? kThreads / kSteps : 0;
  typename F::In value[kEach], shift[kEach];
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int at = min(line0 + line + e * more_lines, x.lines - 1), k = min(k0 + step + e * more_steps, k_size - 1);
    value[e] = entry_of<S>(x, at, k);
    shift[e] = shift_of(x, at);
  }
  const float unit = q.unit();
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int l = line + e * more_lines, s = step + e * more_steps;
    const bool inside = line0 + l < x.lines && k0 + s < k_size;
    tile[s][l] = inside ? F::entry(value[e], shift[e], q.argmax ? reach(shift[e]) : 0, unit) : F::nothing();
  }
  __syncthreads();
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int l = thread % kPackLines, s = thread / kPackLines + e * (kThreads / kPackLines);
    const int64_t at = int64_t{k0 + s} * x.padded + line0 + l;
    // The loop takes pairs of columns; a row's entry comes twice then.
    if (sizeof(Entry) == 2 && is_a)
      static_cast<uint32_t*>(x.by_k)[at] = 0x10001u * static_cast<uint32_t>(tile[s][l]);
    else
      static_cast<Entry*>(x.by_k)[at] = tile[s][l];
  }
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int s = thread % kSteps, l = thread / kSteps + e * (kThreads / kSteps);
    x.by_line[int64_t{line0 + l} * q.steps + k0 + s] = tile[s][l];
  }
}

// A warp for each of some outputs: all of K, as the loop and the recovery would see it. What is not proved counts, and
// so do the candidates that its rescan would have to add.
template <class S, class F, bool kArgmax>
__global__ void __launch_bounds__(kThreads) probe(const __grid_constant__ Args<F> q) {
  if (q.state->infinite) return;
  constexpr int kFew = kAtOnce<F>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  Picks pick(blockIdx.x * kWarps + threadIdx.x / 32);
  const int row = pick.below(q.p.m), col = pick.below(q.p.n);
  const auto* a = q.a.by_line + int64_t{row} * q.steps;
  const auto* b = q.b.by_line + int64_t{col} * q.steps;
  uint32_t best = ~0u, second = ~0u;
  int index = 0;
#pragma unroll 4
  for (int k = lane * kFew; k < q.steps; k += 32 * kFew) {
    uint32_t u[kFew];
    sums<F>(few_at<F>(a + k), few_at<F>(b + k), u);
#pragma unroll
    for (int i = 0; i < kFew; ++i) {
      second = min(second, max(best, u[i]));
      if (u[i] < best) best = u[i], index = k + i;
    }
  }
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const uint32_t other = __shfl_xor_sync(~0u, best, d), other_second = __shfl_xor_sync(~0u, second, d);
    const int other_index = __shfl_xor_sync(~0u, index, d);
    second = min(min(second, other_second), max(best, other));
    if (other < best || (other == best && other_index < index)) best = other, index = other_index;
  }
  if (q.a.nan[row] || q.b.nan[col]) return;
  const auto r = shift_of(q.a, row), c = shift_of(q.b, col);
  const auto v = candidate<S>(q, row, col, index);
  const float unit = q.unit();
  if constexpr (std::is_same_v<F, ByFloat>) second = F::second(second - best <= F::kSlack, best);
  if (proven<F, kArgmax>(v, r, c, best, second, unit)) return;
  const uint32_t limit = F::limit(v, r, c, unit);
  uint32_t count = 0;
  for (int k = lane * kFew; k < q.steps; k += 32 * kFew) {
    uint32_t u[kFew];
    sums<F>(few_at<F>(a + k), few_at<F>(b + k), u);
#pragma unroll
    for (int i = 0; i < kFew; ++i) count += u[i] <= limit;
  }
#pragma unroll
  for (int d = 1; d < 32; d *= 2) count += __shfl_xor_sync(~0u, count, d);
  // By measurement a candidate costs as much as a dozen other k: its entries lie far apart in memory.
  if (lane == 0)
    atomicAdd(&q.state->work, kProbeUnit + static_cast<uint32_t>(12 * uint64_t{kProbeUnit} * count / q.steps));
}

}  // namespace tropical::cuda::filter

// Before the filter's loop: the largest entry of every line, bounds on entries relative to it in both layouts, and a
// probe of whether the data are worth it.
#pragma once
#include "filter_args.cuh"
#include "stages.cuh"

namespace tropical::cuda::filter {

inline constexpr int kPeakLines = 32, kPeakSteps = 256;
inline constexpr int kPackLines = 64, kPackSteps = 32;
inline constexpr int kThreads = 256, kWarps = kThreads / 32;

// Blocks that look at one operand, then those at the other.
inline int64_t peak_blocks(const Side& x, int64_t k) {
  return int64_t{(x.lines + kPeakLines - 1) / kPeakLines} * ((k + kPeakSteps - 1) / kPeakSteps);
}
inline int64_t pack_blocks(const Side& x, int steps) { return int64_t{x.padded / kPackLines} * (steps / kPackSteps); }

__device__ inline bool along_k(const Side& x) {
  return (x.step < 0 ? -x.step : x.step) < (x.line < 0 ? -x.line : x.line);
}

template <class S>
__global__ void __launch_bounds__(kThreads) peaks(const __grid_constant__ Args q, unsigned blocks_of_a) {
  const bool is_a = blockIdx.x < blocks_of_a;
  const Side& x = is_a ? q.a : q.b;
  const unsigned block = is_a ? blockIdx.x : blockIdx.x - blocks_of_a;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int k_size = static_cast<int>(q.p.k);
  const unsigned across = (x.lines + kPeakLines - 1u) / kPeakLines;
  const int line0 = static_cast<int>(block % across * kPeakLines), k0 = static_cast<int>(block / across * kPeakSteps);
  const int k_end = min(k0 + kPeakSteps, k_size);
  bool infinite = false;
  double peak = lowest<double>();
  int nan = 0;
  const auto meet = [&](double entry, int k) {
    const double v = oriented<S>(entry);
    infinite |= v == highest<double>();
    nan = v != v ? max(nan, k_size - k) : nan;
    peak = v > peak ? v : peak;
  };
  const auto tell = [&](int line) {
    if (peak > lowest<double>()) atomicMax(x.peak + line, key_of(peak));
    if (nan > 0) atomicMax(x.nan + line, nan);
  };
  if (along_k(x)) {
    for (int line = line0 + warp; line < min(line0 + kPeakLines, x.lines); line += kWarps) {
      peak = lowest<double>(), nan = 0;
      const double* from = x.data + line * x.line;
#pragma unroll 8
      for (int k = k0 + lane; k < k_end; k += 32) meet(from[k * x.step], k);
#pragma unroll
      for (int d = 16; d > 0; d /= 2) {
        const double other = __shfl_xor_sync(~0u, peak, d);
        peak = other > peak ? other : peak;
        nan = max(nan, __shfl_xor_sync(~0u, nan, d));
      }
      if (lane == 0) tell(line);
    }
  } else {
    __shared__ double peaks_of[kWarps][32];
    __shared__ int nans_of[kWarps][32];
    const int line = min(line0 + lane, x.lines - 1);
    const double* from = x.data + line * x.line;
#pragma unroll 8
    for (int k = k0 + warp; k < k_end; k += kWarps) meet(from[k * x.step], k);
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

template <class S>
__global__ void __launch_bounds__(kThreads) pack_bounds(const __grid_constant__ Args q, unsigned blocks_of_a) {
  if (q.state->infinite) return;
  constexpr int kEach = kPackLines * kPackSteps / kThreads;
  __shared__ float tile[kPackSteps][kPackLines + 1];
  const bool is_a = blockIdx.x < blocks_of_a;
  const Side& x = is_a ? q.a : q.b;
  const unsigned block = is_a ? blockIdx.x : blockIdx.x - blocks_of_a;
  const unsigned across = x.padded / kPackLines;
  const int line0 = static_cast<int>(block % across * kPackLines), k0 = static_cast<int>(block / across * kPackSteps);
  const int thread = static_cast<int>(threadIdx.x), k_size = static_cast<int>(q.p.k);
  // Neighbouring threads read neighbours in memory.
  const bool by_k = along_k(x);
  const int step = by_k ? thread % kPackSteps : thread / kPackLines;
  const int line = by_k ? thread / kPackSteps : thread % kPackLines;
  const int more_steps = by_k ? 0 : kThreads / kPackLines, more_lines = by_k ? kThreads / kPackSteps : 0;
  double entry[kEach];
  unsigned long long key[kEach];
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int at = min(line0 + line + e * more_lines, x.lines - 1), k = min(k0 + step + e * more_steps, k_size - 1);
    entry[e] = x.data[at * x.line + k * x.step];
    key[e] = x.peak[at];
  }
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int l = line + e * more_lines, s = step + e * more_steps;
    const bool inside = line0 + l < x.lines && k0 + s < k_size;
    tile[s][l] = inside ? bound_of(oriented<S>(entry[e]), shift_of(key[e])) : lowest<float>();
  }
  __syncthreads();
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int l = thread % kPackLines, s = thread / kPackLines + e * (kThreads / kPackLines);
    x.by_k[int64_t{k0 + s} * x.padded + line0 + l] = tile[s][l];
  }
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int s = thread % kPackSteps, l = thread / kPackSteps + e * (kThreads / kPackSteps);
    x.by_line[int64_t{line0 + l} * q.steps + k0 + s] = tile[s][l];
  }
}

// Four neighbouring k of one output: the bits of their bounds.
__device__ __forceinline__ void four_bounds(const float* a, const float* b, uint32_t (&u)[4]) {
  const auto x = *reinterpret_cast<const Vector<float, 4>*>(a);
  const auto y = *reinterpret_cast<const Vector<float, 4>*>(b);
#pragma unroll
  for (int i = 0; i < 4; ++i) u[i] = bits_of(add_up(x.x[i], y.x[i]));
}

// A warp for each of some outputs: all of K, as the loop and the recovery would see it. What is not proved counts, and
// so do the candidates that its rescan would have to add.
template <class S, bool kArgmax>
__global__ void __launch_bounds__(kThreads) probe(const __grid_constant__ Args q) {
  if (q.state->infinite) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const unsigned sample = blockIdx.x * kWarps + threadIdx.x / 32;
  // Spread like random numbers, the same in every run.
  unsigned hash = (sample + 1) * 2654435761u;
  const auto below = [&](int64_t size) {
    hash = (hash ^ hash >> 15) * 2246822519u;
    hash = (hash ^ hash >> 13) * 3266489917u;
    return static_cast<int>((uint64_t{hash} * static_cast<uint64_t>(size)) >> 32);
  };
  const int row = below(q.p.m), col = below(q.p.n);
  const float* a = q.a.by_line + int64_t{row} * q.steps;
  const float* b = q.b.by_line + int64_t{col} * q.steps;
  uint32_t best = ~0u, second = ~0u;
  int index = 0;
#pragma unroll 4
  for (int k = lane * 4; k < q.steps; k += 128) {
    uint32_t u[4];
    four_bounds(a + k, b + k, u);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
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
  const double r = shift_of(q.a.peak[row]), c = shift_of(q.b.peak[col]);
  const double v = candidate<S>(q, row, col, index);
  if (proven<kArgmax>(v, r, c, best, near(second, best))) return;
  const float least = threshold(v, r, c);
  uint32_t count = 0;
  for (int k = lane * 4; k < q.steps; k += 128) {
    uint32_t u[4];
    four_bounds(a + k, b + k, u);
#pragma unroll
    for (int i = 0; i < 4; ++i) count += !(__uint_as_float(u[i]) < least);
  }
#pragma unroll
  for (int d = 1; d < 32; d *= 2) count += __shfl_xor_sync(~0u, count, d);
  // By measurement a candidate costs as much as a dozen other k: its entries lie far apart in memory.
  if (lane == 0)
    atomicAdd(&q.state->work, kProbeUnit + static_cast<uint32_t>(12 * uint64_t{kProbeUnit} * count / q.steps));
}

}  // namespace tropical::cuda::filter

// After the filter's loop: exact sums at the k that the bounds point to, the proof that the best of them is the result,
// and a rescan of what is not proved.
#pragma once
#include "filter_prepare.cuh"

namespace tropical::cuda::filter {

inline constexpr int kPanel = 256;  // columns whose bounds stay in L2 while all rows pass

struct Found {
  uint32_t best, second;
  int chunk;
};
__device__ inline Found found_at(const Args<ByFloat>& q, int64_t at) {
  const uint32_t best = static_cast<const uint32_t*>(q.best)[at], id = q.id[at];
  return {best, ByFloat::second(id & kNear, best), static_cast<int>(id & ~kNear)};
}
__device__ inline Found found_at(const Args<ByFixed>& q, int64_t at) {
  return {static_cast<const uint16_t*>(q.best)[at], q.second[at], q.id[at]};
}

// Eight lanes look at an output's chunk together; a warp has 32 neighbours of a row.
template <class S, class F, bool kArgmax>
__global__ void __launch_bounds__(kThreads) recover(const __grid_constant__ Args<F> q) {
  using T = typename F::In;
  constexpr int kFew = kAtOnce<F>, kLanes = F::kChunk / kFew, kOutputs = 32 / kLanes;
  constexpr int kWords = F::kChunk / 32, kLanesOfWord = kLanes / kWords;  // of a mask of the chunk's steps
  if (q.declined()) return;
  const int lane = static_cast<int>(threadIdx.x) % 32, part = lane % kLanes, slot = lane / kLanes;
  const int m = static_cast<int>(q.p.m), n = static_cast<int>(q.p.n), k_size = static_cast<int>(q.p.k);
  const unsigned down = (m + kWarps - 1u) / kWarps;
  const int row = static_cast<int>(blockIdx.x % down * kWarps + threadIdx.x / 32);
  const int panel = static_cast<int>(blockIdx.x / down * kPanel);
  if (row >= m) return;
  const auto* a = q.a.by_line + int64_t{row} * q.steps + part * kFew;
  const T r = shift_of(q.a, row);
  const int row_nan = q.a.nan[row];
  const float unit = q.unit();
  for (int col0 = panel; col0 < min(panel + kPanel, n); col0 += 32) {
    const int64_t at = int64_t{row} * q.b.padded + col0 + lane;
    const Found found = found_at(q, at);
    Few<F> x[kLanes], y[kLanes];
#pragma unroll
    for (int s = 0; s < kLanes; ++s) {
      const int of = s * kOutputs + slot;
      const int k = __shfl_sync(~0u, found.chunk, of) * F::kChunk;
      x[s] = few_at<F>(a + k);
      y[s] = few_at<F>(q.b.by_line + int64_t{col0 + of} * q.steps + k + part * kFew);
    }
    // Steps to add exactly: each lane's few, put together for the lane that has the output.
    uint32_t steps[kWords];
#pragma unroll
    for (int s = 0; s < kLanes; ++s) {
      const uint32_t most = __shfl_sync(~0u, found.best, s * kOutputs + slot) + F::kSlack;
      uint32_t u[kFew], mask = 0;
      sums<F>(x[s], y[s], u);
#pragma unroll
      for (int i = 0; i < kFew; ++i)
        if (u[i] <= most) mask |= 1u << i;
      mask <<= part % kLanesOfWord * kFew;
#pragma unroll
      for (int d = 1; d < kLanesOfWord; d *= 2) mask |= __shfl_xor_sync(~0u, mask, d);
#pragma unroll
      for (int w = 0; w < kWords; ++w) {
        const uint32_t own = __shfl_sync(~0u, mask, lane % kOutputs * kLanes + w * kLanesOfWord);
        if (lane / kOutputs == s) steps[w] = own;
      }
    }
    const int col = min(col0 + lane, n - 1), first = found.chunk * F::kChunk;
    T v = lowest<T>();
    int k = first;
#pragma unroll
    for (int w = 0; w < kWords; ++w)
      for (uint32_t left = steps[w]; left; left &= left - 1) {
        const int at_k = first + w * 32 + __ffs(static_cast<int>(left)) - 1;
        if (at_k >= k_size) break;
        const T t = candidate<S>(q, row, col, at_k);
        if (t > v) v = t, k = at_k;
      }
    const int nan = max(row_nan, q.b.nan[col]);
    bool listed = false;
    if (nan > 0)
      v = canonical(std::numeric_limits<T>::quiet_NaN()), k = k_size - nan;
    else if (!q.believe)
      listed = !proven<F, kArgmax>(v, r, shift_of(q.b, col), found.best, found.second, unit);
    const bool inside = col0 + lane < n;
    if (inside && !listed) finish<S, kArgmax>(q, row, col, v, k);
    const uint32_t mine = __ballot_sync(~0u, inside && listed);
    if (mine == 0) continue;
    const int leader = __ffs(static_cast<int>(mine)) - 1;
    uint32_t place = 0;
    if (lane == leader) place = atomicAdd(&q.state->listed, static_cast<uint32_t>(__popc(mine)));
    place = __shfl_sync(~0u, place, leader) + __popc(mine & ((1u << lane) - 1));
    if (inside && listed && place < q.room)
      q.list[place] = static_cast<uint64_t>(at) << kIndexBits | static_cast<uint32_t>(k);
  }
}

// A warp for each listed output: all of K, adding only what its bound does not exclude. Then the result is complete,
// unless the list was too short.
template <class S, class F, bool kArgmax>
__global__ void __launch_bounds__(kThreads) rescan(const __grid_constant__ Args<F> q) {
  using T = typename F::In;
  constexpr int kFew = kAtOnce<F>;
  const bool complete = !q.declined() && q.state->listed <= q.room;
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    q.state->done = complete;
    if (q.report) {
      (complete ? q.report->filtered : q.report->plain) += q.p.m * q.p.n;
      if (complete) q.report->unproven += q.state->listed;
    }
  }
  if (!complete) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float unit = q.unit();
  for (unsigned z = blockIdx.x * kWarps + threadIdx.x / 32; z < q.state->listed; z += gridDim.x * kWarps) {
    const uint64_t entry = q.list[z], at = entry >> kIndexBits;
    const int row = static_cast<int>(at / q.b.padded), col = static_cast<int>(at % q.b.padded);
    int index = static_cast<int>(entry & ((1u << kIndexBits) - 1));
    T v = candidate<S>(q, row, col, index);
    const auto* a = q.a.by_line + int64_t{row} * q.steps;
    const auto* b = q.b.by_line + int64_t{col} * q.steps;
    const uint32_t limit = F::limit(v, shift_of(q.a, row), shift_of(q.b, col), unit);
#pragma unroll 4
    for (int k = lane * kFew; k < q.steps; k += 32 * kFew) {
      uint32_t u[kFew];
      sums<F>(few_at<F>(a + k), few_at<F>(b + k), u);
#pragma unroll
      for (int i = 0; i < kFew; ++i) {
        if (u[i] > limit || k + i >= q.p.k) continue;
        const T t = candidate<S>(q, row, col, k + i);
        if (t > v || (t == v && k + i < index)) v = t, index = k + i;
      }
    }
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const T other = __shfl_xor_sync(~0u, v, d);
      const int other_index = __shfl_xor_sync(~0u, index, d);
      if (other > v || (other == v && other_index < index)) v = other, index = other_index;
    }
    if (lane == 0) finish<S, kArgmax>(q, row, col, v, index);
  }
}

}  // namespace tropical::cuda::filter

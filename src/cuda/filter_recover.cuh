// After the filter's loop: the exact sum at the k that the bounds point to, the proof that it is the result, and a
// rescan of what is not proved.
#pragma once
#include "filter_prepare.cuh"

namespace tropical::cuda::filter {

inline constexpr int kPanel = 256;  // columns whose bounds stay in L2 while all rows pass

// Eight lanes look at an output's chunk together, four steps each; a warp has 32 neighbours of a row.
template <class S, bool kArgmax>
__global__ void __launch_bounds__(kThreads) recover(const __grid_constant__ Args q) {
  constexpr int kLanes = kChunk / 4, kAtOnce = 32 / kLanes;
  constexpr uint32_t kLaneMask = (1u << kLanes) - 1;
  if (declined(q)) return;
  const int lane = static_cast<int>(threadIdx.x) % 32, part = lane % kLanes, slot = lane / kLanes;
  const int m = static_cast<int>(q.p.m), n = static_cast<int>(q.p.n), k_size = static_cast<int>(q.p.k);
  const unsigned down = (m + kWarps - 1u) / kWarps;
  const int row = static_cast<int>(blockIdx.x % down * kWarps + threadIdx.x / 32);
  const int panel = static_cast<int>(blockIdx.x / down * kPanel);
  if (row >= m) return;
  const float* a = q.a.by_line + int64_t{row} * q.steps + part * 4;
  const double r = shift_of(q.a.peak[row]);
  const int row_nan = q.a.nan[row];
  for (int col0 = panel; col0 < min(panel + kPanel, n); col0 += 32) {
    const int64_t at = int64_t{row} * q.b.padded + col0 + lane;
    const uint32_t best = q.best[at];
    const int id = q.id[at];
    Vector<float, 4> x[kLanes], y[kLanes];
#pragma unroll
    for (int s = 0; s < kLanes; ++s) {
      const int of = s * kAtOnce + slot;
      const int k = (__shfl_sync(~0u, id, of) & ~kNear) * kChunk;
      x[s] = *reinterpret_cast<const Vector<float, 4>*>(a + k);
      y[s] = *reinterpret_cast<const Vector<float, 4>*>(q.b.by_line + int64_t{col0 + of} * q.steps + k + part * 4);
    }
    int k = 0;
    bool is_near = id & kNear;
#pragma unroll
    for (int s = 0; s < kLanes; ++s) {
      const uint32_t top = __shfl_sync(~0u, best, s * kAtOnce + slot);
      int first = 4, close = 0;
#pragma unroll
      for (int i = 3; i >= 0; --i) {
        const uint32_t u = bits_of(add_up(x[s].x[i], y[s].x[i]));
        if (u == top) first = i;
        close += near(u, top);
      }
      // What the lanes of an output have found, read by the lane that has that output.
      const int own = lane % kAtOnce * kLanes;
      const uint32_t hit = __ballot_sync(~0u, first < 4) >> own & kLaneMask;
      const uint32_t one = __ballot_sync(~0u, close > 0) >> own & kLaneMask;
      const uint32_t two = __ballot_sync(~0u, close > 1) >> own & kLaneMask;
      const int from = max(__ffs(static_cast<int>(hit)) - 1, 0);
      const int within = __shfl_sync(~0u, first, own + from);
      if (lane / kAtOnce == s) {
        k = (id & ~kNear) * kChunk + from * 4 + within;
        is_near |= two != 0 || __popc(one) > 1;
      }
    }
    const int col = min(col0 + lane, n - 1);
    double v = candidate<S>(q, row, col, k);
    const int nan = max(row_nan, q.b.nan[col]);
    bool listed = false;
    if (nan > 0)
      v = __longlong_as_double(0x7ff8000000000000ll), k = k_size - nan;
    else if (!q.believe)
      listed = !proven<kArgmax>(v, r, shift_of(q.b.peak[col]), best, is_near);
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
template <class S, bool kArgmax>
__global__ void __launch_bounds__(kThreads) rescan(const __grid_constant__ Args q) {
  const bool complete = !declined(q) && q.state->listed <= q.room;
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    q.state->done = complete;
    if (q.report) {
      (complete ? q.report->filtered : q.report->plain) += q.p.m * q.p.n;
      if (complete) q.report->rescanned += q.state->listed;
    }
  }
  if (!complete) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (unsigned z = blockIdx.x * kWarps + threadIdx.x / 32; z < q.state->listed; z += gridDim.x * kWarps) {
    const uint64_t entry = q.list[z], at = entry >> kIndexBits;
    const int row = static_cast<int>(at / q.b.padded), col = static_cast<int>(at % q.b.padded);
    int index = static_cast<int>(entry & ((1u << kIndexBits) - 1));
    double v = candidate<S>(q, row, col, index);
    const float* a = q.a.by_line + int64_t{row} * q.steps;
    const float* b = q.b.by_line + int64_t{col} * q.steps;
    const float least = threshold(v, shift_of(q.a.peak[row]), shift_of(q.b.peak[col]));
#pragma unroll 4
    for (int k = lane * 4; k < q.steps; k += 128) {
      uint32_t u[4];
      four_bounds(a + k, b + k, u);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (__uint_as_float(u[i]) < least || k + i >= q.p.k) continue;
        const double t = candidate<S>(q, row, col, k + i);
        if (t > v || (t == v && k + i < index)) v = t, index = k + i;
      }
    }
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const double other = __shfl_xor_sync(~0u, v, d);
      const int other_index = __shfl_xor_sync(~0u, index, d);
      if (other > v || (other == v && other_index < index)) v = other, index = other_index;
    }
    if (lane == 0) finish<S, kArgmax>(q, row, col, v, index);
  }
}

}  // namespace tropical::cuda::filter

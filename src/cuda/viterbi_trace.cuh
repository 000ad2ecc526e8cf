// The path of a sequence, traced back through the stored values: the taken state is found again by the same sums.
#pragma once
#include "stages.cuh"
#include "trellis.cuh"

namespace tropical::cuda {

// What all threads of a block have been shown, together. `turn` must alternate.
template <int kThreads, class F>
__device__ int taken_by_block(Taken<F> best, int turn) {
  best.merge_lanes();
  if constexpr (kThreads > 32) {
    constexpr int kWarps = kThreads / 32;
    __shared__ Taken<F> of_warp[2][kWarps];
    const int lane = threadIdx.x % 32;
    if (lane == 0) of_warp[turn][threadIdx.x / 32] = best;
    __syncthreads();
    best = of_warp[turn][lane % kWarps];
    best.merge_lanes();
  }
  return best.state;
}

// `step(t, state, turn)` finds the state before `state` at step t.
template <int kThreads, class In, class Step>
__device__ void trace_sequence(const Trellis<In>& x, int64_t b, const Step& step) {
  using F = typename Trellis<In>::F;
  const ViterbiParams& p = x.p;
  const int states = static_cast<int>(p.states);
  const int64_t length = length_of(p, b);
  F score = 0;
  int state = -1;
  if (length > 0) {
    const F* v = x.values(length - 1, b);
    const auto at_end = [&](int j) {
      return p.final.data ? v[j] + Trellis<In>::read(p.final, b * p.final.stride[0] + j * p.final.stride[1]) : v[j];
    };
    Taken<F> best;
    for (int j = threadIdx.x; j < states; j += kThreads) best.show(at_end(j), j);
    state = taken_by_block<kThreads>(best, length % 2);
    score = at_end(state);
  }
  if (threadIdx.x == 0) static_cast<F*>(p.scores.data)[b * p.scores.stride[0]] = canonical(score);
  const bool possible = length > 0 && score != lowest<F>();
  for (int64_t t = (possible ? length : 0) + threadIdx.x; t < p.steps; t += kThreads) set_path(p, b, t, -1);
  if (!possible) return;
  // The first 32 threads hold the states of 32 steps, to be written at once.
  int held = 0;
  for (int64_t t = length - 1;; --t) {
    const int place = static_cast<int>(t % 32);
    if (threadIdx.x == place) held = state;
    if (place == 0 && threadIdx.x < 32 && t + threadIdx.x < length) set_path(p, b, t + threadIdx.x, held);
    if (t == 0) break;
    state = step(t, state);
  }
}

// Any transitions, any number of states.
template <class In, int kThreads>
__global__ void __launch_bounds__(kThreads) trace(const __grid_constant__ Trellis<In> x) {
  using F = typename Trellis<In>::F;
  const ViterbiParams& p = x.p;
  for (int64_t b = blockIdx.x; b < p.batch; b += gridDim.x) {
    trace_sequence<kThreads>(x, b, [&](int64_t t, int state) {
      const F* v = x.values(t - 1, b);
      const int64_t at = x.transition_at(b, t) + state * p.transition.stride[3];
      Taken<F> best;
      for (int i = threadIdx.x; i < p.states; i += kThreads)
        best.show(v[i] + Trellis<In>::read(p.transition, at + i * p.transition.stride[2]), i);
      return taken_by_block<kThreads>(best, t % 2);
    });
    __syncthreads();  // what the last step shares is read before the next sequence writes there
  }
}

// One matrix for all steps. A thread has kEach vectors of states; the values of the next steps are on their way, and it
// reads those that it has copied itself.
inline constexpr int kTraceAhead = 6;
template <class In, int kThreads, int kEach>
__global__ void __launch_bounds__(kThreads) trace_ahead(const __grid_constant__ Trellis<In> x) {
  using F = typename Trellis<In>::F;
  constexpr int kVector = 16 / sizeof(F);
  using Values = Vector<F, kVector>;
  extern __shared__ float4 trace_memory[];
  const int vectors = static_cast<int>(x.row) / kVector;
  int at[kEach];  // those beyond the end look at the last one again
#pragma unroll
  for (int q = 0; q < kEach; ++q) at[q] = min(static_cast<int>(threadIdx.x) + q * kThreads, vectors - 1);
  auto* const ring = reinterpret_cast<Values*>(trace_memory) + threadIdx.x;
  const auto following = [](int slot) {
    return slot == (kTraceAhead - 1) * kEach * kThreads ? 0 : slot + kEach * kThreads;
  };
  for (int64_t b = blockIdx.x; b < x.p.batch; b += gridDim.x) {
    int64_t left = length_of(x.p, b) - 1;  // steps whose values are looked at, and not asked for yet
    const F* coming = x.history + (left - 1) * x.step_size + b * x.row;
    int here = 0, next = 0;
    const auto copy = [&] {
#pragma unroll
      for (int q = 0; q < kEach; ++q)
        if (left > 0) copy_async(ring + next + q * kThreads, coming + at[q] * kVector);
      commit_copies();
      coming -= x.step_size;
      --left;
      next = following(next);
    };
    for (int n = 0; n < kTraceAhead - 1; ++n) copy();
    const F* matrix = x.transposed + x.matrix_at(b);
    trace_sequence<kThreads>(x, b, [&](int64_t t, int state) {
      const auto* to_state = reinterpret_cast<const Values*>(matrix + state * x.row);
      Values a[kEach];
#pragma unroll
      for (int q = 0; q < kEach; ++q) a[q] = to_state[at[q]];
      copy();
      wait_copies<kTraceAhead - 1>();
      Taken<F> best;
#pragma unroll
      for (int q = 0; q < kEach; ++q) {
        const Values v = ring[here + q * kThreads];
#pragma unroll
        for (int u = 0; u < kVector; ++u) best.show(v.x[u] + a[q].x[u], at[q] * kVector + u);
      }
      here = following(here);
      return taken_by_block<kThreads>(best, static_cast<int>(t % 2));
    });
    wait_copies<0>();
    __syncthreads();
  }
}

}  // namespace tropical::cuda

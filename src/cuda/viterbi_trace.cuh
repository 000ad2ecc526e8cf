// The paths of sequences, traced back through the stored values: the taken state is found again by the same sums. Paths
// are cut into parts that are traced at once, each but the last from a guess, the best state where it ends: paths meet
// after some steps wherever they begin. Then the parts are joined, and traced again from the end of each until they
// meet what was guessed.
#pragma once
#include "stages.cuh"
#include "trellis.cuh"

namespace tropical::cuda {

// What all threads of a block have been shown, together.
template <class F, int kThreads>
class BlockTaken {
 public:
  __device__ int operator()(Taken<F> best) {
    best.merge_lanes();
    if constexpr (kThreads > 32) {
      constexpr int kWarps = kThreads / 32;
      __shared__ Taken<F> of_warp[2][kWarps];
      const int lane = threadIdx.x % 32;
      turn_ ^= 1;  // what the call before shares may be read still
      if (lane == 0) of_warp[turn_][threadIdx.x / 32] = best;
      __syncthreads();
      best = of_warp[turn_][lane % kWarps];
      best.merge_lanes();
    }
    return best.state;
  }

 private:
  int turn_ = 0;
};

// Finds the state before a state. Any transitions, any number of states.
template <class In_, int kThreads_>
class PlainSteps {
 public:
  using In = In_;
  using F = typename Trellis<In>::F;
  static constexpr int kThreads = kThreads_;
  __device__ PlainSteps(const Trellis<In>& x) : x_(x) {}

  __device__ void of(int64_t b) { b_ = b; }
  // So many steps follow, from step t downwards.
  __device__ void begin(int64_t, int64_t) {}
  __device__ void end() {}
  __device__ int before(int64_t t, int state) {
    const ViterbiParams& p = x_.p;
    const F* v = x_.values(t - 1, b_);
    const int64_t at = x_.transition_at(b_, t) + state * p.transition.stride[3];
    Taken<F> best;
    for (int i = threadIdx.x; i < p.states; i += kThreads)
      best.show(v[i] + Trellis<In>::read(p.transition, at + i * p.transition.stride[2]), i);
    return taken(best);
  }
  BlockTaken<F, kThreads> taken;

 private:
  const Trellis<In>& x_;
  int64_t b_ = 0;
};

// The same where one matrix serves all steps. A thread has kEach vectors of states; the values of the next steps are on
// their way, and it reads those that it has copied itself.
template <class In_, int kThreads_, int kEach>
class StepsAhead {
  static constexpr int kAhead = 6;

 public:
  using In = In_;
  using F = typename Trellis<In>::F;
  static constexpr int kThreads = kThreads_, kVector = 16 / sizeof(F);
  static constexpr size_t kShared = size_t{kAhead} * kThreads * kEach * 16;

  __device__ StepsAhead(const Trellis<In>& x) : x_(x) {
    extern __shared__ float4 trace_memory[];
    ring_ = reinterpret_cast<Values*>(trace_memory) + threadIdx.x;
    const int vectors = static_cast<int>(x.row) / kVector;
#pragma unroll
    for (int q = 0; q < kEach; ++q) at_[q] = min(static_cast<int>(threadIdx.x) + q * kThreads, vectors - 1);
  }

  __device__ void of(int64_t b) {
    values_ = x_.history + b * x_.row;
    matrix_ = x_.transposed + x_.matrix_at(b);
  }
  __device__ void begin(int64_t t, int64_t count) {
    left_ = count;
    coming_ = values_ + (t - 1) * x_.step_size;
    here_ = next_ = 0;
    for (int n = 0; n < kAhead - 1; ++n) copy();
  }
  __device__ void end() { wait_copies<0>(); }
  __device__ int before(int64_t, int state) {
    const auto* to_state = reinterpret_cast<const Values*>(matrix_ + state * x_.row);
    Values a[kEach];
#pragma unroll
    for (int q = 0; q < kEach; ++q) a[q] = to_state[at_[q]];
    copy();
    wait_copies<kAhead - 1>();
    Taken<F> best;
#pragma unroll
    for (int q = 0; q < kEach; ++q) {
      const Values v = ring_[here_ + q * kThreads];
#pragma unroll
      for (int u = 0; u < kVector; ++u) best.show(v.x[u] + a[q].x[u], at_[q] * kVector + u);
    }
    here_ = following(here_);
    return taken(best);
  }
  BlockTaken<F, kThreads> taken;

 private:
  using Values = Vector<F, kVector>;

  __device__ static int following(int slot) {
    return slot == (kAhead - 1) * kEach * kThreads ? 0 : slot + kEach * kThreads;
  }
  __device__ void copy() {
#pragma unroll
    for (int q = 0; q < kEach; ++q)
      if (left_ > 0) copy_async(ring_ + next_ + q * kThreads, coming_ + at_[q] * kVector);
    commit_copies();
    coming_ -= x_.step_size;
    --left_;
    next_ = following(next_);
  }

  const Trellis<In>& x_;
  Values* ring_;
  int at_[kEach];  // those beyond the end look at the last one again
  const F *values_ = nullptr, *matrix_ = nullptr, *coming_ = nullptr;
  int64_t left_ = 0;  // steps whose values are not asked for yet
  int here_ = 0, next_ = 0;
};

// A sequence as its block sees it: how many steps its path has, 0 for an impossible one, and where it ends.
template <class F>
struct PathEnd {
  int64_t length = 0;
  int state = -1;
  F score = 0;
};
template <class Steps, class In>
__device__ PathEnd<typename Steps::F> path_end(Steps& steps, const Trellis<In>& x, int64_t b) {
  using F = typename Steps::F;
  const ViterbiParams& p = x.p;
  const int64_t length = length_of(p, b);
  if (length == 0) return {};
  const F* v = x.values(length - 1, b);
  const auto at_end = [&](int j) {
    return p.final.data ? v[j] + Trellis<In>::read(p.final, b * p.final.stride[0] + j * p.final.stride[1]) : v[j];
  };
  Taken<F> best;
  for (int j = threadIdx.x; j < p.states; j += Steps::kThreads) best.show(at_end(j), j);
  const int state = steps.taken(best);
  const F score = at_end(state);
  return {score == lowest<F>() ? 0 : length, state, score};
}

// Parts have part_steps steps but for the last one. Writes scores too.
template <class Steps>
__global__ void __launch_bounds__(Steps::kThreads)
    trace_parts(const __grid_constant__ Trellis<typename Steps::In> x, int64_t parts, int64_t part_steps) {
  using F = typename Steps::F;
  const ViterbiParams& p = x.p;
  Steps steps(x);
  for (int64_t work = blockIdx.x; work < p.batch * parts; work += gridDim.x) {
    const int64_t b = work / parts, first = work % parts * part_steps, end = min(first + part_steps, p.steps);
    const PathEnd<F> path = path_end(steps, x, b);
    if (first == 0 && threadIdx.x == 0) static_cast<F*>(p.scores.data)[b * p.scores.stride[0]] = canonical(path.score);
    const int64_t last = min(end, path.length) - 1;
    for (int64_t t = max(last + 1, first) + threadIdx.x; t < end; t += Steps::kThreads) set_path(p, b, t, -1);
    if (last < first) continue;
    int state = path.state;
    if (last < path.length - 1) {
      const F* v = x.values(last, b);
      Taken<F> best;
      for (int j = threadIdx.x; j < p.states; j += Steps::kThreads) best.show(v[j], j);
      state = steps.taken(best);
    }
    steps.of(b);
    steps.begin(last, last - first);
    // The first 32 threads hold the states of 32 steps, to be written at once.
    int held = 0;
    for (int64_t t = last;; --t) {
      const int place = static_cast<int>((t - first) % 32);
      if (threadIdx.x == place) held = state;
      if (place == 0 && threadIdx.x < 32 && t + threadIdx.x <= last) set_path(p, b, t + threadIdx.x, held);
      if (t == first) break;
      state = steps.before(t, state);
    }
    steps.end();
  }
}

template <class Steps>
__global__ void __launch_bounds__(Steps::kThreads)
    join_parts(const __grid_constant__ Trellis<typename Steps::In> x, int64_t part_steps) {
  const ViterbiParams& p = x.p;
  Steps steps(x);
  for (int64_t b = blockIdx.x; b < p.batch; b += gridDim.x) {
    const int64_t length = path_end(steps, x, b).length;
    steps.of(b);
    for (int64_t first = (length - 1) / part_steps * part_steps - part_steps; first >= 0; first -= part_steps) {
      int64_t t = first + part_steps;  // of the part behind, which is right
      int state = static_cast<int>(path_at(p, b, t));
      steps.begin(t, part_steps);
      while (t > first) {
        state = steps.before(t--, state);
        if (state == path_at(p, b, t)) break;  // all threads have the state, and nobody writes here before they look
        __syncthreads();
        if (threadIdx.x == 0) set_path(p, b, t, state);
      }
      steps.end();
      __syncthreads();  // the next part begins with a state that was written here
    }
  }
}

}  // namespace tropical::cuda

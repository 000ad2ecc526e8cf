// The Viterbi recurrence on the device: for each step a product of values and a kernel that adds the emission; then
// each path is traced back through the stored values, where the taken state is found again by the same sums.
#include <algorithm>

#include "heuristics.h"
#include "launch.cuh"
#include "product.h"
#include "trellis.h"
#include "trellis_scan.h"

namespace tropical::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTraceThreads = 128;

// The recurrence as the kernels see it, in the type F of its values.
template <class In>
struct Trellis {
  using F = wide_t<In>;
  ViterbiParams p;
  F* history;         // (step, batch, state); a step begins at a multiple of kAlign elements
  int64_t step_size;  // elements of one step
  F* matrix;          // (matrix, from, to), nullptr where the product reads the source
  F* transposed;      // (matrix, to, from), nullptr where steps differ
  bool one_matrix;    // for all sequences

  __device__ static F read(const Strided& x, int64_t at) { return widen(static_cast<const In*>(x.data)[at]); }
  __device__ F* values(int64_t t, int64_t b) const { return history + t * step_size + b * p.states; }
  __host__ __device__ int64_t transition_at(int64_t b, int64_t t) const {
    return b * p.transition.stride[0] + (t - 1) * p.transition.stride[1];
  }
};

// The matrices of step t, widened; their transposes too where they serve all steps.
template <class In>
__global__ void copy_matrices(Trellis<In> x, int64_t count, int64_t t) {
  const int64_t s = x.p.states, total = count * s * s;
  for (int64_t at = blockIdx.x * int64_t{kThreads} + threadIdx.x; at < total; at += int64_t{gridDim.x} * kThreads) {
    const int64_t j = at % s, i = at / s % s, b = at / (s * s);
    const auto value =
        x.read(x.p.transition, x.transition_at(b, t) + i * x.p.transition.stride[2] + j * x.p.transition.stride[3]);
    x.matrix[at] = value;
    if (x.transposed) x.transposed[(b * s + j) * s + i] = value;
  }
}

// v[t,j] = best[j] + emission[t,j], where best lies in v[t,j] already, or is the initial score for t = 0. Values after
// the end of a sequence are never read, but must not slow the product.
template <class In>
__global__ void add_emission(Trellis<In> x, int64_t t) {
  using F = typename Trellis<In>::F;
  const ViterbiParams& p = x.p;
  const int64_t total = p.batch * p.states;
  for (int64_t at = blockIdx.x * int64_t{kThreads} + threadIdx.x; at < total; at += int64_t{gridDim.x} * kThreads) {
    const int64_t b = at / p.states, j = at % p.states;
    F* v = x.values(t, b) + j;
    if (t >= length_of(p, b)) {
      *v = 0;
      continue;
    }
    F best = 0;
    if (t > 0)
      best = *v;
    else if (p.initial.data)
      best = x.read(p.initial, b * p.initial.stride[0] + j * p.initial.stride[1]);
    *v = best + x.read(p.emission, b * p.emission.stride[0] + t * p.emission.stride[1] + j * p.emission.stride[2]);
  }
}

// For a scan: the transitions of all steps with the emissions added, (batch, step - 1, from, to).
template <class In>
__global__ void make_matrices(Trellis<In> x, typename Trellis<In>::F* to) {
  using F = typename Trellis<In>::F;
  const ViterbiParams& p = x.p;
  const int64_t s = p.states, between = p.steps - 1, total = p.batch * between * s * s;
  for (int64_t at = blockIdx.x * int64_t{kThreads} + threadIdx.x; at < total; at += int64_t{gridDim.x} * kThreads) {
    const int64_t j = at % s, i = at / s % s, t = at / (s * s) % between + 1, b = at / (s * s) / between;
    F value = 0;
    if (t < length_of(p, b))
      value = x.read(p.transition, x.transition_at(b, t) + i * p.transition.stride[2] + j * p.transition.stride[3]) +
              x.read(p.emission, b * p.emission.stride[0] + t * p.emission.stride[1] + j * p.emission.stride[2]);
    to[at] = value;
  }
}

template <class F>
struct Taken {
  F value;
  int state;

  // Of two candidates in any order: the better, the first NaN, the lower state.
  __device__ static Taken of(Taken a, Taken b) {
    const Taken first = a.state < b.state ? a : b, second = a.state < b.state ? b : a;
    return takes(second.value, first.value) ? second : first;
  }
};

// The first of the largest, or the first NaN, among candidate(0), ..., candidate(states - 1); all threads get it.
template <class F, class Candidate>
__device__ Taken<F> best_of(int states, Candidate candidate) {
  __shared__ Taken<F> of_warp[kTraceThreads / 32];
  // A thread without candidates repeats the last one.
  int i = min(static_cast<int>(threadIdx.x), states - 1);
  Taken<F> best{candidate(i), i};
  for (i += kTraceThreads; i < states; i += kTraceThreads) best = Taken<F>::of(best, {candidate(i), i});
  for (int lane = 16; lane > 0; lane /= 2)
    best = Taken<F>::of(
        best, {__shfl_xor_sync(0xffffffffu, best.value, lane), __shfl_xor_sync(0xffffffffu, best.state, lane)});
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = best;
  __syncthreads();
  for (int w = 0; w < kTraceThreads / 32; ++w) best = Taken<F>::of(best, of_warp[w]);
  __syncthreads();
  return best;
}

template <class In>
__global__ void __launch_bounds__(kTraceThreads) trace(Trellis<In> x) {
  using F = typename Trellis<In>::F;
  const ViterbiParams& p = x.p;
  const int states = static_cast<int>(p.states);
  for (int64_t b = blockIdx.x; b < p.batch; b += gridDim.x) {
    const int64_t length = length_of(p, b);
    Taken<F> at_end{0, -1};
    if (length > 0) {
      const F* v = x.values(length - 1, b);
      at_end = best_of<F>(states, [&](int j) {
        return p.final.data ? v[j] + x.read(p.final, b * p.final.stride[0] + j * p.final.stride[1]) : v[j];
      });
    }
    if (threadIdx.x == 0) static_cast<F*>(p.scores.data)[b * p.scores.stride[0]] = canonical(at_end.value);
    const bool possible = length > 0 && at_end.value != lowest<F>();
    for (int64_t t = (possible ? length : 0) + threadIdx.x; t < p.steps; t += kTraceThreads) set_path(p, b, t, -1);
    if (!possible) continue;
    int64_t state = at_end.state;
    for (int64_t t = length - 1;; --t) {
      if (threadIdx.x == 0) set_path(p, b, t, state);
      if (t == 0) break;
      const F* v = x.values(t - 1, b);
      if (x.transposed) {
        const F* to_state = x.transposed + ((x.one_matrix ? 0 : b) * p.states + state) * p.states;
        state = best_of<F>(states, [&](int i) { return v[i] + to_state[i]; }).state;
      } else {
        const int64_t at = x.transition_at(b, t) + state * p.transition.stride[3];
        state = best_of<F>(states, [&](int i) {
                  return v[i] + x.read(p.transition, at + i * p.transition.stride[2]);
                }).state;
      }
    }
  }
}

// The values of steps 1, 2, ...
template <class In, class Copy, class Add, class Multiply>
void step_by_step(const Trellis<In>& x, const Call& call, const Copy& copy, const Add& add, const Multiply& multiply) {
  const ViterbiParams& p = x.p;
  const int64_t s = p.states;
  MatmulParams m;
  m.semiring = Semiring::max_plus;
  m.dtype = TypeInfo<wide_t<In>>::kId;
  m.k = m.n = s;
  m.m = x.one_matrix ? p.batch : 1;
  if (!x.one_matrix) m.batch = {1, {p.batch}};
  for (int64_t t = 1; t < p.steps; ++t) {
    if (!x.matrix) {
      const auto* data = static_cast<const In*>(p.transition.data) + x.transition_at(0, t);
      m.b = {const_cast<In*>(data), p.transition.stride[2], p.transition.stride[3], {p.transition.stride[0]}};
    } else {
      if (!steps_share(p)) copy(t);
      m.b = {x.matrix, s, 1, {x.one_matrix ? 0 : s * s}};
    }
    m.a = {x.history + (t - 1) * x.step_size, s, 1, {s}};
    m.c = {x.history + t * x.step_size, s, 1, {s}};
    multiply(m);
    add(t);
    if (call.target.dry && steps_share(p)) break;  // the other steps are like this one
  }
}

}  // namespace

template <class In>
void viterbi(const ViterbiParams& p, Call& call) {
  using F = wide_t<In>;
  if (p.batch == 0) return;
  constexpr int64_t kAlign = 64;
  const int64_t s = p.states, matrices = sequences_share(p) ? 1 : p.batch;
  Trellis<In> x{p, nullptr, ceil_div(p.batch * s, kAlign) * kAlign, nullptr, nullptr, sequences_share(p)};
  x.history = call.scratch.take<F>(p.steps * x.step_size);
  if (is_half_v<In> || steps_share(p)) x.matrix = call.scratch.take<F>(matrices * s * s);
  if (steps_share(p)) x.transposed = call.scratch.take<F>(matrices * s * s);
  const auto copy = [&](int64_t t) {
    launch<&copy_matrices<In>>(call.target, ceil_div(matrices * s * s, kThreads), kThreads, 0, x, matrices, t);
  };
  const auto add = [&](int64_t t) {
    launch<&add_emission<In>>(call.target, ceil_div(p.batch * s, kThreads), kThreads, 0, x, t);
  };
  if (p.steps > 1 && steps_share(p)) copy(1);
  if (p.steps > 0) add(0);

  size_t most = 0;
  const auto multiply = [&](const MatmulParams& m) {
    Call step = call;  // every product may use the same scratch memory
    product<MaxPlus, F>(m, step);
    most = std::max(most, step.scratch.used());
  };
  if (p.scan && p.steps > 1) {
    const int64_t n = p.steps - 1;
    F* matrices = call.scratch.take<F>(p.batch * scan_matrices(n) * s * s);
    launch<&make_matrices<In>>(call.target, ceil_div(p.batch * n * s * s, kThreads), kThreads, 0, x, matrices);
    scan_values(x.history, x.step_size, p.batch, s, n, matrices, multiply);
  } else {
    step_by_step(x, call, copy, add, multiply);
  }
  call.scratch.reach(most);
  launch<&trace<In>>(call.target, p.batch, kTraceThreads, 0, x);
}

template void viterbi<float>(const ViterbiParams&, Call&);
template void viterbi<double>(const ViterbiParams&, Call&);
template void viterbi<float16>(const ViterbiParams&, Call&);
template void viterbi<bfloat16>(const ViterbiParams&, Call&);

}  // namespace tropical::cuda

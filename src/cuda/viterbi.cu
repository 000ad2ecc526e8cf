// The Viterbi recurrence on the device: which kernels compute the values of all steps, one that walks along sequences
// where one matrix serves all steps and fits on the chip, else for each step a product and a kernel that adds the
// emission. Then each path is traced back.
#include <algorithm>

#include "launch.cuh"
#include "product.h"
#include "trellis_scan.h"
#include "viterbi_block.cuh"
#include "viterbi_grid.cuh"
#include "viterbi_trace.cuh"

namespace tropical::cuda {
namespace {

constexpr int kThreads = 256;

// The matrices of step t, widened; their transposes too where they serve all steps.
template <class In>
__global__ void copy_matrices(Trellis<In> x, int64_t count, int64_t t) {
  const int64_t s = x.p.states, total = count * s * x.row;
  for (int64_t at = blockIdx.x * int64_t{kThreads} + threadIdx.x; at < total; at += int64_t{gridDim.x} * kThreads) {
    const int64_t j = at % x.row, i = at / x.row % s, b = at / (x.row * s);
    const auto element = [&](int64_t from, int64_t to) {
      return x.read(x.p.transition,
                    x.transition_at(b, t) + from * x.p.transition.stride[2] + to * x.p.transition.stride[3]);
    };
    x.matrix[at] = j < s ? element(i, j) : 0;
    if (x.transposed) x.transposed[at] = j < s ? element(j, i) : lowest<typename Trellis<In>::F>();
  }
}

// v[t,j] = best[j] + emission[t,j], where best lies in v[t,j] already, or is the initial score for t = 0. Values after
// the end of a sequence are never read, but must not slow the product. Step 0 clears the counters.
template <class In>
__global__ void add_emission(Trellis<In> x, int64_t t, unsigned* counters, int64_t count) {
  using F = typename Trellis<In>::F;
  const ViterbiParams& p = x.p;
  const int64_t total = p.batch * x.row;
  for (int64_t at = blockIdx.x * int64_t{kThreads} + threadIdx.x; at < total; at += int64_t{gridDim.x} * kThreads) {
    const int64_t b = at / x.row, j = at % x.row;
    F* v = x.values(t, b) + j;
    if (at < count) counters[at] = 0;
    if (t >= length_of(p, b) || j >= p.states)
      *v = 0;
    else
      *v = (t > 0 ? *v : x.initial(b, j)) + x.emission(b, t, j);
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
      m.b = {x.matrix, x.row, 1, {x.one_matrix ? 0 : s * x.row}};
    }
    m.a = {x.history + (t - 1) * x.step_size, x.row, 1, {x.row}};
    m.c = {x.history + t * x.step_size, x.row, 1, {x.row}};
    multiply(m);
    add(t);
    if (call.target.dry && steps_share(p)) break;  // the other steps are like this one
  }
}

// The values of all steps by a block for each sequence; false where there are too many states, or so many sequences
// that products are faster.
template <class In>
bool blocks_walk(const Trellis<In>& x, const Target& target) {
  constexpr int64_t kMostSequences = 16;  // on a multiprocessor
  const ViterbiParams& p = x.p;
  if (!steps_share(p) || p.states > BlockWalk::kMostStates ||
      (x.one_matrix && p.batch > kMostSequences * target.facts->multiprocessors))
    return false;
  const auto run = [&]<int kVectors>() {
    launch<&walk_block<In, kVectors>>(target, p.batch, BlockWalk::threads(x.row), 0, x);
  };
  if (p.states <= 32)
    run.template operator()<1>();
  else if (p.states <= 64)
    run.template operator()<2>();
  else
    run.template operator()<4>();
  return true;
}

template <class In>
bool grid_walks(const Trellis<In>& x, const GridWalk& walk, unsigned* arrived, const Target& target) {
  const GridArgs args{x.p, walk, x.row, x.history, x.step_size, x.matrix, arrived};
  const auto run = [&]<int kRows, int kCols>() {
    return launch_together<&walk_grid<kRows, kCols>>(target, walk.groups * walk.blocks, GridWalk::kThreads, walk.shared,
                                                     args);
  };
  const int half = (walk.columns + 1) / 2;
  if (walk.rows == 4) return half <= 6 ? run.template operator()<2, 6>() : run.template operator()<2, 12>();
  if (half <= 4) return run.template operator()<8, 4>();
  if (half <= 8) return run.template operator()<8, 8>();
  if (half <= 11) return run.template operator()<8, 11>();
  return run.template operator()<8, 12>();
}

// In as many parts as the device has room for.
template <class Steps>
void trace_paths(const Trellis<typename Steps::In>& x, size_t shared, const Target& target) {
  constexpr int64_t kResident = std::min(16, 2048 / Steps::kThreads);  // blocks of a multiprocessor
  constexpr int64_t kLeastSteps = 128;
  const ViterbiParams& p = x.p;
  const int64_t room = kResident * target.facts->multiprocessors / p.batch;
  const int64_t wanted = std::max<int64_t>(1, std::min(room, p.steps / kLeastSteps));
  const int64_t part_steps = std::max<int64_t>(1, ceil_div(p.steps, wanted));
  const int64_t parts = std::max<int64_t>(1, ceil_div(p.steps, part_steps));
  launch<&trace_parts<Steps>>(target, p.batch * parts, Steps::kThreads, shared, x, parts, part_steps);
  if (parts > 1) launch<&join_parts<Steps>>(target, p.batch, Steps::kThreads, shared, x, part_steps);
}

template <class In>
void trace_paths(const Trellis<In>& x, const Target& target) {
  const auto vectors = static_cast<int64_t>(static_cast<size_t>(x.row) * sizeof(typename Trellis<In>::F) / 16);
  const auto ahead = [&]<int kThreads, int kEach>() {
    using Steps = StepsAhead<In, kThreads, kEach>;
    constexpr size_t kMore = 1024;
    if (vectors > kThreads * kEach || Steps::kShared + kMore > static_cast<size_t>(target.facts->shared_bytes))
      return false;
    trace_paths<Steps>(x, Steps::kShared, target);
    return true;
  };
  const bool can = x.transposed && target.facts->compute >= 80;
  if (can && (ahead.template operator()<32, 1>() || ahead.template operator()<384, 1>() ||
              ahead.template operator()<512, 3>()))
    return;
  trace_paths<PlainSteps<In, 128>>(x, 0, target);
}

}  // namespace

template <class In>
void viterbi(const ViterbiParams& p, Call& call) {
  using F = wide_t<In>;
  if (p.batch == 0) return;
  constexpr int64_t kAlign = 64;
  const int64_t s = p.states, matrices = sequences_share(p) ? 1 : p.batch;
  std::optional<GridWalk> walk;
  if (std::is_same_v<F, float> && steps_share(p) && sequences_share(p) && !p.scan)
    walk = plan_grid_walk(p.batch, s, *call.target.facts);
  const int64_t whole = walk ? GridWalk::kChunk : 16;
  Trellis<In> x{p, ceil_div(s, whole) * whole, nullptr, 0, nullptr, nullptr, sequences_share(p)};
  x.step_size = ceil_div(p.batch * x.row, kAlign) * kAlign;
  x.history = call.scratch.take<F>(p.steps * x.step_size);
  if (is_half_v<In> || steps_share(p)) x.matrix = call.scratch.take<F>(matrices * s * x.row);
  if (steps_share(p)) x.transposed = call.scratch.take<F>(matrices * s * x.row);
  const int64_t tiles = walk ? ceil_div(p.batch, walk->rows) : 0;
  auto* const arrived = call.scratch.take<unsigned>(tiles);

  const auto copy = [&](int64_t t) {
    launch<&copy_matrices<In>>(call.target, ceil_div(matrices * s * x.row, kThreads), kThreads, 0, x, matrices, t);
  };
  const auto add = [&](int64_t t) {
    launch<&add_emission<In>>(call.target, ceil_div(p.batch * x.row, kThreads), kThreads, 0, x, t, arrived,
                              t == 0 ? tiles : 0);
  };
  size_t most = 0;
  const auto multiply = [&](MatmulParams m) {
    m.filtering = p.filtering;
    Call step = call;  // every product may use the same scratch memory
    product<MaxPlus, F>(m, step);
    most = std::max(most, step.scratch.used());
  };
  if (p.steps > 1 && steps_share(p)) copy(1);
  if (p.scan || p.steps < 2 || !blocks_walk(x, call.target)) {
    // A scan writes no pads.
    if (p.scan && !call.target.dry)
      TG_CUDA_CHECK(
          cudaMemsetAsync(x.history, 0, static_cast<size_t>(p.steps * x.step_size) * sizeof(F), call.target.stream));
    if (p.steps > 0) add(0);
    if (p.scan && p.steps > 1) {
      const int64_t n = p.steps - 1;
      F* to = call.scratch.take<F>(p.batch * scan_matrices(n) * s * s);
      launch<&make_matrices<In>>(call.target, ceil_div(p.batch * n * s * s, kThreads), kThreads, 0, x, to);
      scan_values(x.history, x.step_size, x.row, p.batch, s, n, to, multiply);
    } else if (p.steps > 1) {
      bool walked = false;
      if constexpr (std::is_same_v<F, float>)
        walked = walk && !call.target.dry && grid_walks(x, *walk, arrived, call.target);
      if (!walked) step_by_step(x, call, copy, add, multiply);
    }
  }
  call.scratch.reach(most);
  trace_paths(x, call.target);
}

template void viterbi<float>(const ViterbiParams&, Call&);
template void viterbi<double>(const ViterbiParams&, Call&);
template void viterbi<float16>(const ViterbiParams&, Call&);
template void viterbi<bfloat16>(const ViterbiParams&, Call&);

}  // namespace tropical::cuda

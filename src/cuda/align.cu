// Forced alignment on the device: a block for each sequence, its threads over the states of a step.
#include "launch.cuh"
#include "product.h"
#include "trellis.h"

namespace tropical::cuda {
namespace {

constexpr int kThreads = 256;

// Scratch memory of all sequences, each piece (batch, ...).
template <class F>
struct AlignScratch {
  F* values;         // 2 rows of states
  uint8_t* advance;  // (step, state)
};

template <class T>
__global__ void __launch_bounds__(kThreads) align_sequences(AlignParams p, AlignScratch<wide_t<T>> scratch) {
  using F = wide_t<T>;
  const int64_t most = 2 * p.targets + 1;
  for (int64_t b = blockIdx.x; b < p.batch; b += gridDim.x) {
    const Alignment<T> x(p, b);
    F* before = scratch.values + 2 * b * most;
    F* now = before + most;
    uint8_t* advance = scratch.advance + b * p.steps * most;
    bool classes = true;
    for (int64_t s = threadIdx.x; s < 2 * most; s += kThreads) before[s] = lowest<F>();
    for (int64_t s = threadIdx.x; s < x.states; s += kThreads) classes &= s % 2 == 0 || x.is_class(x.label(s));
    const bool possible = __syncthreads_and(classes);
    for (int64_t t = 0; possible && t < x.steps; ++t) {
      for (int64_t s = x.first_state(t) + threadIdx.x; s < x.end_state(t); s += kThreads) {
        const F best = t == 0 ? F{0} : x.step(before, s, x.may_skip(s), advance[t * x.states + s]);
        now[s] = x.extended(best, x.score(t, x.label(s)));
      }
      __syncthreads();
      F* const other = before;
      before = now;
      now = other;
    }
    int64_t state = 0;
    const bool ends = possible && x.steps > 0 && x.end(before, state);
    const F rest = ends || (x.steps == 0 && x.targets == 0) ? F{0} : lowest<F>();
    for (int64_t t = (ends ? x.steps : 0) + threadIdx.x; t < p.steps; t += kThreads) x.set(t, -1, rest);
    if (ends && threadIdx.x == 0)
      for (int64_t t = x.steps - 1; t >= 0; --t) {
        const int64_t label = x.label(state);
        x.set(t, label, x.score(t, label));
        if (t > 0) state -= advance[t * x.states + state];
      }
    __syncthreads();
  }
}

}  // namespace

template <class In>
void align(const AlignParams& p, Call& call) {
  using F = wide_t<In>;
  const int64_t states = 2 * p.targets + 1;
  AlignScratch<F> scratch{};
  scratch.values = call.scratch.take<F>(2 * p.batch * states);
  scratch.advance = call.scratch.take<uint8_t>(p.batch * p.steps * states);
  launch<&align_sequences<In>>(call.target, p.batch, kThreads, 0, p, scratch);
}

template void align<float>(const AlignParams&, Call&);
template void align<double>(const AlignParams&, Call&);
template void align<float16>(const AlignParams&, Call&);
template void align<bfloat16>(const AlignParams&, Call&);

}  // namespace tropical::cuda

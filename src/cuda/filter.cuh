// The filter on the host: when, in which memory, which launches.
#pragma once
#include "filter.h"
#include "filter_loop.cuh"
#include "filter_recover.cuh"
#include "heuristics.h"
#include "launch.cuh"

namespace tropical::cuda {
namespace filter {

template <class In>
using SchemeFor = std::conditional_t<std::is_same_v<In, double>, ByFloat, ByFixed>;

// By the waves of tiles, each with its share of the rate. (Float on an H200: 51 and 45 MAC a clock.)
template <class F>
bool takes_large_tile(int64_t m, int64_t n, int multiprocessors) {
  const auto clocks = [&]<class Tile>(Tile, int64_t rate) {
    return ceil_div(ceil_div(m, Tile::kM) * ceil_div(n, Tile::kN), multiprocessors) * Tile::kM * Tile::kN / rate;
  };
  return clocks(typename Loop<F>::LargeTile(), 51) <= clocks(typename Loop<F>::SmallTile(), 45);
}

template <class F>
Side<F> side(const void* data, int64_t line, int64_t step, int64_t lines) {
  Side<F> x{};
  x.data = static_cast<const typename F::In*>(data);
  x.line = line, x.step = step;
  x.lines = static_cast<int>(lines);
  x.padded = static_cast<int>(ceil_div(lines, kLineUnit) * kLineUnit);
  return x;
}

// What the bounds of a product take, nearly: of an output 6 bytes and its part of the list, up to half a byte, are 7.
template <class F>
int64_t bytes(const ProductArgs& p) {
  constexpr int64_t kOfA = sizeof(typename F::Entry) + 4, kOfB = Loop<F>::kColumns == 2 ? 4 : kOfA, kOfOutput = 7;
  return (p.m * kOfA + p.n * kOfB) * p.k + p.m * p.n * kOfOutput;
}

}  // namespace filter

template <class In>
bool filter_applies(const ProductArgs& p, Filtering filtering, const Target& target) {
  using F = filter::SchemeFor<In>;
  constexpr bool kDouble = std::is_same_v<In, double>;
  // Pairs of 16 bits are fast from 9.0 on.
  if (filtering == Filtering::never || target.facts->compute < (kDouble ? 80 : 90)) return false;
  // Indices of k in kIndexBits, ids of chunks in 15 bits; counts of blocks in theirs. The f32 products that are smaller
  // have kernels that take no notice of what is done.
  constexpr int64_t kMostSteps = (int64_t{1} << filter::kIndexBits) - F::kChunk, kMostLines = int64_t{1} << 21;
  if (p.k == 0 || p.k > kMostSteps || std::max(p.m, p.n) > kMostLines) return false;
  if (!kDouble && std::max({p.m, p.n, p.k}) <= 32) return false;
  if (filtering != Filtering::automatic) return true;
  // Members of a batch go one after the other: each has to fill the device, as the plain kernels do with all of them.
  const int64_t least = kDouble ? 512 : 2048;
  const int64_t work = int64_t{1} << (kDouble ? (p.batch.count > 1 ? 33 : 27) : p.argmax ? 33 : 35);
  return std::min({p.m, p.n, p.k}) >= least && p.m * p.n * p.k >= work;
}

template <class In>
bool filter_fits(const ProductArgs& p, const Target& target) {
  constexpr int64_t kShareOfMemory = 30;
  return filter::bytes<filter::SchemeFor<In>>(p) <= target.facts->memory / kShareOfMemory;
}

template <class S, class In, bool kArgmax>
const int* filter_product(const ProductArgs& p, Filtering filtering, FilterCounts* report, Call& call, Scratch& rest) {
  using namespace filter;
  using F = SchemeFor<In>;
  constexpr bool kPairs = Loop<F>::kColumns == 2;
  Args<F> q{};
  q.p = slim(p);
  q.a = side<F>(p.a, p.a_row, p.a_col, p.m);
  q.b = side<F>(p.b, p.b_col, p.b_row, p.n);
  q.steps = static_cast<int>(ceil_div(p.k, F::kChunk) * F::kChunk);
  q.report = report;
  q.argmax = kArgmax;
  q.believe = filtering == Filtering::unproven;
  // Beyond one output in sixteen (fixed point gains less: fifty) the plain product is as fast.
  const bool forced = filtering != Filtering::automatic;
  const int64_t outputs = p.m * p.n, share = kPairs ? 50 : 16;
  q.limit = forced ? ~0u : static_cast<uint32_t>(kProbes * kProbeUnit / share);
  q.room = static_cast<uint32_t>(std::min<int64_t>(forced ? outputs : outputs / share, ~0u));

  // What is zero at first, in one piece.
  const int64_t lines = int64_t{q.a.lines} + q.b.lines;
  const size_t head = (sizeof(State) + 15) / 16 * 16;
  const size_t zeroed = head + static_cast<size_t>(lines) * (sizeof(*q.a.peak) + sizeof(*q.a.nan));
  char* const first = call.scratch.template take<char>(static_cast<int64_t>(zeroed));
  q.state = reinterpret_cast<State*>(first);
  q.a.peak = reinterpret_cast<unsigned long long*>(first + head), q.b.peak = q.a.peak + q.a.lines;
  q.a.nan = reinterpret_cast<int*>(q.a.peak + lines), q.b.nan = q.a.nan + q.a.lines;
  rest = call.scratch;
  for (Side<F>* x : {&q.a, &q.b}) {
    const int64_t entries = int64_t{x->padded} * q.steps;
    x->by_k = rest.take<char>(entries * (kPairs && x == &q.b ? 2 : 4));
    x->by_line = rest.take<typename F::Entry>(entries);
  }
  const int64_t padded = int64_t{q.a.padded} * q.b.padded;
  q.best = rest.take<char>(padded * (kPairs ? 2 : 4));
  if (kPairs) q.second = rest.take<uint16_t>(padded);
  q.id = rest.take<uint16_t>(padded);
  q.list = rest.take<uint64_t>(q.room);

  const Target& target = call.target;
  if (!target.dry) TG_CUDA_CHECK(cudaMemsetAsync(first, 0, zeroed, target.stream));
  const auto peaks_of_a = static_cast<unsigned>(peak_blocks(q.a, p.k));
  launch<&peaks<S, F>>(target, peaks_of_a + peak_blocks(q.b, p.k), kThreads, 0, q, peaks_of_a);
  if constexpr (kPairs) launch<&measure<S, F>>(target, target.facts->multiprocessors, kThreads, 0, q);
  const auto packs_of_a = static_cast<unsigned>(pack_blocks(q.a, q.steps));
  launch<&pack_bounds<S, F>>(target, packs_of_a + pack_blocks(q.b, q.steps), kThreads, 0, q, packs_of_a);
  if (!forced) launch<&probe<S, F, kArgmax>>(target, kProbes / kWarps, kThreads, 0, q);
  const auto loop = [&]<class Tile>(Tile) {
    launch<&best_sums<F, Tile>>(target, ceil_div(p.m, Tile::kM) * ceil_div(p.n, Tile::kN * Loop<F>::kColumns),
                                Tile::kThreads, LoopStages<F, Tile>::kBytes, q);
  };
  if (takes_large_tile<F>(p.m, p.n, target.facts->multiprocessors))
    loop(typename Loop<F>::LargeTile());
  else
    loop(typename Loop<F>::SmallTile());
  launch<&recover<S, F, kArgmax>>(target, ceil_div(p.m, kWarps) * ceil_div(p.n, kPanel), kThreads, 0, q);
  launch<&rescan<S, F, kArgmax>>(target, 8 * target.facts->multiprocessors, kThreads, 0, q);
  return &q.state->done;
}

}  // namespace tropical::cuda

// The filter on the host: when, in which memory, which launches.
#include "filter.h"
#include "filter_loop.cuh"
#include "filter_recover.cuh"
#include "heuristics.h"
#include "launch.cuh"

namespace tropical::cuda {
namespace {

// Relative times of the loop: waves of tiles, each with its share of the rate. (H200: 45 and 51 MAC a clock.)
bool takes_large_tile(int64_t m, int64_t n, int multiprocessors) {
  const auto clocks = [&](int64_t edge, int64_t rate) {
    return ceil_div(ceil_div(m, edge) * ceil_div(n, edge), multiprocessors) * edge * edge / rate;
  };
  return clocks(128, 51) <= clocks(64, 45);
}

filter::Side side(const void* data, int64_t line, int64_t step, int64_t lines) {
  filter::Side x{};
  x.data = static_cast<const double*>(data);
  x.line = line, x.step = step;
  x.lines = static_cast<int>(lines);
  x.padded = static_cast<int>(ceil_div(lines, filter::kLineUnit) * filter::kLineUnit);
  return x;
}

}  // namespace

bool filter_applies(const ProductArgs& p, Filtering filtering, const Target& target) {
  if (filtering == Filtering::never || target.facts->compute < 80 || p.k == 0) return false;
  // Indices of k in kIndexBits, ids of chunks in 15 bits; places and counts of blocks in theirs.
  constexpr int64_t kMostSteps = (int64_t{1} << filter::kIndexBits) - filter::kChunk, kMostLines = int64_t{1} << 21;
  if (p.k > kMostSteps || std::max(p.m, p.n) > kMostLines) return false;
  if (filtering != Filtering::automatic) return true;
  constexpr int64_t kLeast = 512, kLeastWork = int64_t{1} << 30;
  return std::min({p.m, p.n, p.k}) >= kLeast && p.m * p.n * p.k >= kLeastWork;
}

template <class S, bool kArgmax>
const int* filter_product(const ProductArgs& p, Filtering filtering, FilterReport* report, Call& call, Scratch& rest) {
  using namespace filter;
  Args q{};
  q.p = slim(p);
  q.a = side(p.a, p.a_row, p.a_col, p.m);
  q.b = side(p.b, p.b_col, p.b_row, p.n);
  q.steps = static_cast<int>(ceil_div(p.k, kChunk) * kChunk);
  q.report = report;
  q.believe = filtering == Filtering::unproven;
  // Beyond one output in sixteen the plain product is as fast.
  const bool forced = filtering != Filtering::automatic;
  const int64_t outputs = p.m * p.n;
  q.limit = forced ? ~0u : kProbes * kProbeUnit / 16;
  q.room = static_cast<uint32_t>(std::min<int64_t>(forced ? outputs : outputs / 16, ~0u));

  // What is zero at first, in one piece.
  const int64_t lines = int64_t{q.a.lines} + q.b.lines;
  const size_t zeroed = sizeof(State) + static_cast<size_t>(lines) * (sizeof(*q.a.peak) + sizeof(*q.a.nan));
  q.state = reinterpret_cast<State*>(call.scratch.template take<char>(static_cast<int64_t>(zeroed)));
  q.a.peak = reinterpret_cast<unsigned long long*>(q.state + 1), q.b.peak = q.a.peak + q.a.lines;
  q.a.nan = reinterpret_cast<int*>(q.a.peak + lines), q.b.nan = q.a.nan + q.a.lines;
  rest = call.scratch;
  for (Side* x : {&q.a, &q.b}) {
    x->by_k = rest.take<float>(int64_t{x->padded} * q.steps);
    x->by_line = rest.take<float>(int64_t{x->padded} * q.steps);
  }
  q.best = rest.take<uint32_t>(int64_t{q.a.padded} * q.b.padded);
  q.id = rest.take<uint16_t>(int64_t{q.a.padded} * q.b.padded);
  q.list = rest.take<uint64_t>(q.room);

  const Target& target = call.target;
  if (!target.dry) TG_CUDA_CHECK(cudaMemsetAsync(q.state, 0, zeroed, target.stream));
  const auto peaks_of_a = static_cast<unsigned>(peak_blocks(q.a, p.k));
  launch<&peaks<S>>(target, peaks_of_a + peak_blocks(q.b, p.k), kThreads, 0, q, peaks_of_a);
  const auto packs_of_a = static_cast<unsigned>(pack_blocks(q.a, q.steps));
  launch<&pack_bounds<S>>(target, packs_of_a + pack_blocks(q.b, q.steps), kThreads, 0, q, packs_of_a);
  if (!forced) launch<&probe<S, kArgmax>>(target, kProbes / kWarps, kThreads, 0, q);
  const auto loop = [&]<class Tile>(Tile) {
    launch<&best_bounds<Tile>>(target, ceil_div(p.m, Tile::kM) * ceil_div(p.n, Tile::kN), Tile::kThreads,
                               LoopStages<Tile>::kBytes, q);
  };
  if (takes_large_tile(p.m, p.n, target.facts->multiprocessors))
    loop(LargeTile());
  else
    loop(SmallTile());
  launch<&recover<S, kArgmax>>(target, ceil_div(p.m, kWarps) * ceil_div(p.n, kPanel), kThreads, 0, q);
  launch<&rescan<S, kArgmax>>(target, 8 * target.facts->multiprocessors, kThreads, 0, q);
  return &q.state->done;
}

template const int* filter_product<MaxPlus, false>(const ProductArgs&, Filtering, FilterReport*, Call&, Scratch&);
template const int* filter_product<MaxPlus, true>(const ProductArgs&, Filtering, FilterReport*, Call&, Scratch&);
template const int* filter_product<MinPlus, false>(const ProductArgs&, Filtering, FilterReport*, Call&, Scratch&);
template const int* filter_product<MinPlus, true>(const ProductArgs&, Filtering, FilterReport*, Call&, Scratch&);

}  // namespace tropical::cuda

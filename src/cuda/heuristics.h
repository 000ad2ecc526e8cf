// Choices made at run time on the host, from shapes and strides alone.
#pragma once
#include <algorithm>

#include "check.h"

namespace tropical::cuda {

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Into how many parts K is cut where there are too few tiles to fill the device.
inline int64_t split_count(int64_t tiles, int64_t k, const DeviceFacts& device) {
  constexpr int64_t kLeast = 256;  // steps of k that are worth a block of their own
  const int64_t wanted = 4 * device.multiprocessors / tiles;
  return std::clamp<int64_t>(std::min(wanted, k / kLeast), 1, 1024);
}

// Times of the fast tiles relative to each other, from measured shares of the peak rate.
enum class TileName { none, huge, large, square, wide, medium, small, kept, batch, tiny };
struct TileCost {
  TileName name;
  int m, n;
  int blocks;         // that run at once on a multiprocessor
  double full, lone;  // share of the peak rate with that many blocks, and with one
  bool packed;        // takes only operands whose lines are contiguous
  int start;          // slots of k that the start and the end of a tile are worth
};
inline constexpr TileCost kTileCosts[] = {
    {TileName::huge, 256, 128, 1, .92, .92, true, 48},    {TileName::large, 128, 128, 2, .90, .60, true, 32},
    {TileName::square, 128, 128, 2, .80, .50, false, 32}, {TileName::wide, 64, 128, 1, .86, .86, false, 64},
    {TileName::medium, 64, 128, 1, .84, .84, false, 64},  {TileName::kept, 32, 64, 1, .50, .50, false, 64},
    {TileName::batch, 64, 64, 4, .72, .25, false, 24},    {TileName::small, 32, 64, 2, .70, .55, false, 32},
    {TileName::tiny, 16, 32, 3, .45, .25, false, 32}};

// In clock cycles of a multiprocessor, for one word per element.
inline double tile_clocks(const TileCost& t, int64_t m, int64_t n, int64_t k, int64_t members, int multiprocessors) {
  const int64_t tiles = ceil_div(m, t.m) * ceil_div(n, t.n) * members;
  const int64_t wave = int64_t{t.blocks} * multiprocessors, rest = tiles % wave;
  const double each = static_cast<double>(t.m) * t.n * static_cast<double>(k + t.start) / 64;
  const int64_t together = ceil_div(rest, multiprocessors);  // blocks on a multiprocessor in the last wave
  const double share =
      t.blocks == 1 ? t.full : t.lone + (t.full - t.lone) * static_cast<double>(together - 1) / (t.blocks - 1);
  const double last = rest == 0 ? 0 : each * static_cast<double>(together) / share;
  return static_cast<double>(tiles / wave) * each * t.blocks / t.full + last;
}

// Clocks that a copy of an operand takes, launch included.
inline double pack_clocks(double elements) { return 3000 + elements * 8 / 1700; }

// How the sums of one side of the gradient are shared out: warps of a block, elements of k that a warp's shared memory
// holds, and parts of the outputs with sums of their own. bytes(warps, bins_stride): shared memory of a block.
struct GradientPlan {
  int warps, bins, bins_stride;
  int64_t splits;
};
template <class Bytes>
GradientPlan plan_gradient(int64_t kept, int64_t lines, int64_t pieces, int64_t k, int item, Bytes bytes,
                           const DeviceFacts& device) {
  constexpr int64_t kWarpsWanted = 16;  // on each multiprocessor
  constexpr int64_t kLeastPieces = 8, kMostPartial = int64_t{1} << 25;
  const int64_t limit = (device.shared_bytes - 1024) / 2;  // two blocks share a multiprocessor
  GradientPlan plan{8, 0, 0, 1};
  while (plan.warps > 1 && bytes(plan.warps, k | 1) > limit) plan.warps /= 2;
  const int64_t room = (limit - bytes(plan.warps, 0)) / (plan.warps * item);
  plan.bins = static_cast<int>(std::min<int64_t>(k, room - 1));
  plan.bins_stride = plan.bins | 1;  // columns of different warps in different banks
  const int64_t warps = kept * ceil_div(lines, plan.warps) * plan.warps * ceil_div(k, plan.bins);
  const int64_t wanted = std::min(kWarpsWanted * device.multiprocessors / warps, pieces / kLeastPieces);
  plan.splits = std::clamp<int64_t>(std::min(wanted, kMostPartial / (kept * lines * k)), 1, 256);
  return plan;
}

}  // namespace tropical::cuda

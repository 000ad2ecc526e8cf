// Which tile a fast product takes, and the kernel that goes with it.
#pragma once
#include "heuristics.h"
#include "mainloop.cuh"

namespace tropical::cuda {

// How an operand lies in memory, as far as the fast kernels can read it in place; neither: a copy is made.
struct Lie {
  bool lines, k;
};

template <class S, class In, bool kArgmax>
struct FastTiles {
  using Core = typename CoreFor<S, In>::type;
  static constexpr bool kPlusFloat = is_plus_v<S> && std::is_same_v<In, float>;
  static constexpr bool kExists = [] {
    if constexpr (std::is_void_v<Core> || (kFewInstances && !std::is_same_v<S, MaxPlus>))
      return false;
    else
      return !kArgmax || kPlusFloat;
  }();

  static constexpr bool exists(TileName name) {
    if (kPlusFloat && kArgmax) return name != TileName::huge && name != TileName::square && name != TileName::wide;
    if (kPlusFloat) return name != TileName::kept;
    if (std::is_same_v<In, double>) return name == TileName::large;
    return name == TileName::huge || name == TileName::large || name == TileName::medium;
  }
  // The two largest take only contiguous lines.
  static constexpr bool takes_k(TileName name) {
    return kPlusFloat && !kFewInstances && name != TileName::huge && name != TileName::large;
  }
  // Tiles that keep all of K in shared memory to find indices there; 0: others.
  static constexpr int64_t most_kept_k(TileName name) {
    const auto most = []<class Tile>(Tile) { return int64_t{Tile::kStages} * Tile::kK; };
    return name == TileName::batch  ? most(TileArgBatch())
           : name == TileName::tiny ? most(TileArgTiny())
           : name == TileName::kept ? most(TileArgKept())
                                    : 0;
  }

  // f.template operator()<core, tile, layout of A, of B, track>(), for a tile that exists.
  template <class F>
  static auto with(TileName name, bool a_k, bool b_k, F f) {
    if constexpr (std::is_same_v<In, double>) {
      return with_layouts<Core, TileDouble, Track::values, false>(a_k, b_k, f);
    } else if constexpr (!kPlusFloat) {
      switch (name) {
        case TileName::huge:
          return with_layouts<Core, TileHuge, Track::values, false>(a_k, b_k, f);
        case TileName::large:
          return with_layouts<Core, TileLarge, Track::values, false>(a_k, b_k, f);
        default:
          return with_layouts<Core, TileMedium, Track::values, false>(a_k, b_k, f);
      }
    } else {
      using Steady = FloatCore<S, false>;  // by value: too few stages to change modes
      constexpr bool kAny = !kFewInstances;
      if constexpr (kArgmax) {
        switch (name) {
          case TileName::large:
            return with_layouts<Core, TileArgLarge, Track::chunks, false>(a_k, b_k, f);
          case TileName::medium:
            return with_layouts<Core, TileArgMedium, Track::chunks, kAny>(a_k, b_k, f);
          case TileName::small:
            return with_layouts<Core, TileArgSmall, Track::chunks, kAny>(a_k, b_k, f);
          case TileName::kept:
            return with_layouts<Steady, TileArgKept, Track::indices, kAny>(a_k, b_k, f);
          case TileName::batch:
            return with_layouts<Steady, TileArgBatch, Track::indices, kAny>(a_k, b_k, f);
          default:
            return with_layouts<Steady, TileArgTiny, Track::indices, kAny>(a_k, b_k, f);
        }
      } else {
        switch (name) {
          case TileName::huge:
            return with_layouts<Core, TileHuge, Track::values, false>(a_k, b_k, f);
          case TileName::large:
            return with_layouts<Core, TileLarge, Track::values, false>(a_k, b_k, f);
          case TileName::wide:
            return with_layouts<Core, TileWide, Track::values, kAny>(a_k, b_k, f);
          case TileName::medium:
            return with_layouts<Core, TileMedium, Track::values, kAny>(a_k, b_k, f);
          case TileName::small:
            return with_layouts<Core, TileSmall, Track::values, kAny>(a_k, b_k, f);
          case TileName::batch:
            return with_layouts<Steady, TileBatch, Track::values, kAny>(a_k, b_k, f);
          case TileName::square:
            return with_layouts<Steady, TileSquare, Track::values, kAny>(a_k, b_k, f);
          default:
            return with_layouts<Steady, TileTiny, Track::values, kAny>(a_k, b_k, f);
        }
      }
    }
  }

  // The tile that is expected to take least time.
  static TileName choose(const SlimArgs& p, Lie a, Lie b, const DeviceFacts& device) {
    TileName best = TileName::none;
    double least = 0;
    // What the generic kernel does instead is far slower, but starts at once.
    if (!kPlusFloat && static_cast<double>(p.m) * p.n * p.k * p.batch.count < 0x1p22) return best;
    if (!kPlusFloat && (p.m < 32 || p.n < 32)) return best;
    if (std::min(p.m, p.n) < 8 || p.k < 8) return best;
    const int64_t slots = ceil_div(p.k, Core::kSteps);
    const double pack_a = pack_clocks(static_cast<double>(p.m) * p.k * members(p, 0));
    const double pack_b = pack_clocks(static_cast<double>(p.n) * p.k * members(p, 1));
    for (const TileCost& cost : kTileCosts) {
      if (!exists(cost.name)) continue;
      const int64_t kept = most_kept_k(cost.name);
      if (kArgmax && (p.k / 16 >= 0xffff || (kept > 0 && p.k > kept))) continue;
      const bool along_k = takes_k(cost.name);
      const size_t bytes = with(cost.name, along_k && a.k, along_k && b.k,
                                [&]<class C, class Tile, Contiguous kA, Contiguous kB, Track kTrack>() {
                                  return Mainloop<C, Tile, kA, kB, kTrack>::shared_bytes(static_cast<int>(slots));
                                });
      if (bytes > static_cast<size_t>(device.shared_bytes)) continue;
      double clocks = tile_clocks(cost, p.m, p.n, p.k / Core::kSteps, p.batch.count, device.multiprocessors);
      if (!(a.lines || (along_k && a.k))) clocks += pack_a;
      if (!(b.lines || (along_k && b.k))) clocks += pack_b;
      // Chunk ids take a pass of their own, which reads a copy of one operand at least.
      if (kArgmax && kept == 0)
        clocks += 9000 + .03 * static_cast<double>(p.m) * p.n * p.batch.count + (a.lines ? pack_a : 0) +
                  (b.lines ? pack_b : 0);
      if (best == TileName::none || clocks < least) best = cost.name, least = clocks;
    }
    return best;
  }

 private:
  template <class C, class Tile, Track kTrack, bool kAny, class F>
  static auto with_layouts([[maybe_unused]] bool a_k, [[maybe_unused]] bool b_k, F f) {
    constexpr auto kLines = Contiguous::lines, kK = Contiguous::k;
    if constexpr (kAny) {
      if (a_k && b_k) return f.template operator()<C, Tile, kK, kK, kTrack>();
      if (a_k) return f.template operator()<C, Tile, kK, kLines, kTrack>();
      if (b_k) return f.template operator()<C, Tile, kLines, kK, kTrack>();
    }
    return f.template operator()<C, Tile, kLines, kLines, kTrack>();
  }

  // Distinct members of an operand's batch.
  static double members(const SlimArgs& p, int operand) {
    double count = 1;
    for (int d = 0; d < p.batch.ndim; ++d)
      if (p.batch.stride[d][operand] != 0) count *= static_cast<double>(p.batch.size[d]);
    return count;
  }
};

}  // namespace tropical::cuda

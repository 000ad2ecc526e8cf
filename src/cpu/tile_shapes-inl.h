// The one table of register-tile shapes per instruction set, and the function tables made from it.
#if defined(TROPICAL_CPU_TILE_SHAPES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROPICAL_CPU_TILE_SHAPES_INL_H_
#undef TROPICAL_CPU_TILE_SHAPES_INL_H_
#else
#define TROPICAL_CPU_TILE_SHAPES_INL_H_
#endif

#include "cpu/microkernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tropical::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <int... kRows>
struct Rows {};

// Shapes by job and width in vectors: rows fall to 1, so that any number of rows is covered exactly.
// 32 registers hold 24 accumulators, a row of B, one broadcast and one candidate; 16 hold 12. Straight argmax keeps
// two registers per output, chunked argmax a second one for the comparison. Wider panels lost 2 % (6 x 4: more of B a
// step), taller tiles a quarter (12 x 2: its rows of A share one set of L1 where they are 4096 bytes apart).
struct NoShapes {
  using Half = Rows<>;
  using V1 = Rows<>;
  using V2 = Rows<>;
  using V3 = Rows<>;
};

#if defined(TG_INSTANCES_FEW)  // sanitizer and lint builds
struct ValuesShapes : NoShapes {
  using V1 = Rows<4, 1>;
  using V2 = Rows<4, 1>;
};
using ChunkedShapes = ValuesShapes;
using StraightShapes = ValuesShapes;
using RareShapes = ValuesShapes;
#elif HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
struct ValuesShapes {
  using Half = Rows<16, 8, 7, 6, 5, 4, 3, 2, 1>;
  using V1 = Rows<16, 12, 8, 6, 4, 3, 2, 1>;
  using V2 = Rows<12, 8, 4, 2, 1>;
  using V3 = Rows<8, 4, 2, 1>;
};
struct ChunkedShapes : NoShapes {
  using V1 = Rows<12, 4, 1>;
  using V2 = Rows<6, 2, 1>;
};
struct StraightShapes : NoShapes {
  using V1 = Rows<12, 4, 1>;
  using V2 = Rows<6, 2, 1>;
};
struct RareShapes : NoShapes {
  using V1 = Rows<4, 1>;
  using V2 = Rows<4, 1>;
};
#else
struct ValuesShapes : NoShapes {
  using V1 = Rows<8, 4, 1>;
  using V2 = Rows<6, 2, 1>;
};
struct ChunkedShapes : NoShapes {
  using V1 = Rows<8, 2, 1>;
  using V2 = Rows<6, 1>;
};
struct StraightShapes : NoShapes {
  using V1 = Rows<5, 1>;
};
struct RareShapes : NoShapes {
  using V1 = Rows<4, 1>;
};
#endif

// The tiles of one width that `Job` makes of these rows.
template <class Job, class D, int kVectors, bool kMasked, int... kRows>
TileWidth MakeWidth(Rows<kRows...>) {
  static_assert(sizeof...(kRows) <= kMaxRowShapes && kVectors <= kMaxVectors);
  static_assert(((kRows <= kMaxTileRows && kRows * kVectors * hn::MaxLanes(D()) <= kMaxTileOutputs) && ...));
  TileWidth w;
  w.lanes = kVectors * static_cast<int>(hn::MaxLanes(D()));
  ((w.rows[w.shapes] = kRows, w.fn[w.shapes++] = Job::template Get<D, kRows, kVectors, kMasked>()), ...);
  return w;
}

template <class Job, class Shapes, class T>
TileFamily MakeFamily() {
  using D = hn::ScalableTag<T>;
  constexpr size_t kLanes = hn::MaxLanes(D());
  using HalfD = hn::CappedTag<T, (kLanes + 1) / 2>;
  TileFamily f;
  f.lanes = static_cast<int>(kLanes);
  f.widths[0] = MakeWidth<Job, HalfD, 1, false>(typename Shapes::Half());
  f.widths[1] = MakeWidth<Job, D, 1, false>(typename Shapes::V1());
  f.widths[2] = MakeWidth<Job, D, 2, false>(typename Shapes::V2());
  f.widths[3] = MakeWidth<Job, D, 3, false>(typename Shapes::V3());
  if constexpr (kMasks && Job::kHasMasked) {
    f.partial[0] = MakeWidth<Job, HalfD, 1, true>(typename Shapes::Half());
    f.partial[1] = MakeWidth<Job, D, 1, true>(typename Shapes::V1());
  }
  while (f.max_vectors < kMaxVectors && f.widths[f.max_vectors + 1].shapes > 0) ++f.max_vectors;
  return f;
}

template <class O>
struct ValuesJob {
  static constexpr bool kHasMasked = true;
  template <class D, int kRows, int kVectors, bool kMasked>
  static TileFn Get() {
    return &ValuesTile<O, D, kRows, kVectors, kMasked>;
  }
};
// Argmax tiles work on packed panels and buffers, which are whole vectors.
template <class O, class R>
struct ChunkedJob {
  static constexpr bool kHasMasked = false;
  template <class D, int kRows, int kVectors, bool>
  static TileFn Get() {
    return &ChunkedTile<O, R, D, kRows, kVectors>;
  }
};
template <class O, class R>
struct StraightJob {
  static constexpr bool kHasMasked = false;
  template <class D, int kRows, int kVectors, bool>
  static TileFn Get() {
    return &StraightTile<O, R, D, kRows, kVectors>;
  }
};

}  // namespace tropical::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

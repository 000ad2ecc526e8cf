// The register tiles. One template per job (values, chunked argmax, straight argmax); shapes come from
// tile_shapes-inl.h.
#if defined(TROPICAL_CPU_MICROKERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROPICAL_CPU_MICROKERNEL_INL_H_
#undef TROPICAL_CPU_MICROKERNEL_INL_H_
#else
#define TROPICAL_CPU_MICROKERNEL_INL_H_
#endif

#include <algorithm>

#include "cpu/kernels.h"
#include "cpu/ops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tropical::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A whole vector, or a partial one where the tile is masked (which is then one vector wide).
template <bool kMasked, class D, class M, class T>
HWY_INLINE hn::Vec<D> LoadVector(D d, [[maybe_unused]] M lanes, const T* p) {
  if constexpr (kMasked)
    return hn::MaskedLoad(lanes, d, p);
  else
    return hn::LoadU(d, p);
}
template <bool kMasked, class D, class M, class T>
HWY_INLINE void StoreVector(D d, [[maybe_unused]] M lanes, hn::Vec<D> v, T* p) {
  if constexpr (kMasked)
    hn::BlendedStore(v, lanes, d, p);
  else
    hn::StoreU(v, d, p);
}

// One element in all lanes, as an integer: on Zen 4 the load of a float broadcast also takes an arithmetic slot.
template <class D>
HWY_INLINE hn::Vec<D> Broadcast(D d, const hn::TFromD<D>* p) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::Set(di, __builtin_bit_cast(hn::TFromD<decltype(di)>, *p)));
}

// One k step: the candidates of every output, handed to `use(i, j, candidate)`.
template <class O, int kRows, int kVectors, bool kMasked, class D, class M, class F>
HWY_INLINE void Step(D d, M lanes, const hn::TFromD<D>* a, int64_t a_row, const hn::TFromD<D>* b, F use) {
  hn::Vec<D> bv[kVectors];
  TG_UNROLL
  for (int j = 0; j < kVectors; ++j)
    bv[j] = LoadVector<kMasked>(d, lanes, b + static_cast<size_t>(j) * hn::MaxLanes(d));
  TG_UNROLL
  for (int i = 0; i < kRows; ++i) {
    const auto av = Broadcast(d, a + i * a_row);
    TG_UNROLL
    for (int j = 0; j < kVectors; ++j) use(i, j, O::Mul(d, av, bv[j]));
  }
}

// C tile = add_k mul, all accumulators in registers; and so on for t.count tiles.
template <class O, class D, int kRows, int kVectors, bool kMasked>
void ValuesTile(const TileCall& t) {
  static_assert(!kMasked || kVectors == 1);
  using T = hn::TFromD<D>;
  const D d;
  constexpr int64_t kLanes = hn::MaxLanes(d);
  const auto lanes = hn::FirstN(d, static_cast<size_t>(t.valid));
  const int64_t a_row = t.a_row, a_k = t.a_k, b_k = t.b_k, c_row = t.c_row;
  const int64_t a_step = t.a_step, b_step = t.b_step, c_step = t.c_step;
  const bool combine = t.combine;
  // Masked stores are slow; where rows follow one another, the next ones overwrite what a whole vector has too much, up
  // to the end of the tile. Tiles of one output never overlap: validation refuses an output that overlaps itself.
  const int64_t dense = c_row == t.valid ? kRows * c_row : lowest<int64_t>();
  const T* a_tile = static_cast<const T*>(t.a);
  const T* b_tile = static_cast<const T*>(t.b);
  T* HWY_RESTRICT c = static_cast<T*>(t.c);
  for (int64_t left = t.count; left > 0; --left, a_tile += a_step, b_tile += b_step, c += c_step) {
    const T* HWY_RESTRICT a = a_tile;
    const T* HWY_RESTRICT b = b_tile;
    hn::Vec<D> acc[kRows][kVectors];
    TG_UNROLL
    for (int i = 0; i < kRows; ++i) {
      TG_UNROLL
      for (int j = 0; j < kVectors; ++j) acc[i][j] = O::Worst(d);
    }
    for (int64_t k = t.k; k > 0; --k) {
      Step<O, kRows, kVectors, kMasked>(
          d, lanes, a, a_row, b, [&](int i, int j, hn::Vec<D> x) HWY_ATTR { acc[i][j] = O::Add(d, x, acc[i][j]); });
      a += a_k;
      b += b_k;
    }
    if (combine) {
      TG_UNROLL
      for (int i = 0; i < kRows; ++i) {
        TG_UNROLL
        for (int j = 0; j < kVectors; ++j)
          acc[i][j] = O::Combine(d, acc[i][j], LoadVector<kMasked>(d, lanes, c + i * c_row + j * kLanes));
      }
    }
    TG_UNROLL
    for (int i = 0; i < kRows; ++i) {
      TG_UNROLL
      for (int j = 0; j < kVectors; ++j) {
        const auto v = O::Canonical(d, acc[i][j]);
        if (kMasked && i * c_row + kLanes > dense)
          StoreVector<true>(d, lanes, v, c + i * c_row);
        else
          StoreVector<false>(d, lanes, v, c + i * c_row + j * kLanes);
      }
    }
  }
}

// Running best and its k in registers: two more operations a step, nothing to recover. For short k.
template <class O, class R, class D, int kRows, int kVectors>
void StraightTile(const TileCall& t) {
  using T = hn::TFromD<D>;
  const D d;
  const hn::RebindToSigned<D> di;
  using I = hn::TFromD<decltype(di)>;
  const auto all = hn::FirstN(d, hn::MaxLanes(d));
  const T* HWY_RESTRICT a = static_cast<const T*>(t.a);
  const T* HWY_RESTRICT b = static_cast<const T*>(t.b);
  T* HWY_RESTRICT c = static_cast<T*>(t.c);
  I* HWY_RESTRICT ids = static_cast<I*>(t.ids);
  hn::Vec<D> acc[kRows][kVectors];
  hn::Vec<decltype(di)> id[kRows][kVectors];
  TG_UNROLL
  for (int i = 0; i < kRows; ++i) TG_UNROLL
  for (int j = 0; j < kVectors; ++j) {
    acc[i][j] = O::Worst(d);
    id[i][j] = hn::Zero(di);
  }
  auto step = hn::Zero(di);
  for (int64_t k = t.k; k > 0; --k) {
    Step<O, kRows, kVectors, false>(d, all, a, t.a_row, b, [&](int i, int j, hn::Vec<D> x) HWY_ATTR {
      x = R::Round(d, x);
      const auto better = O::Better(d, x, acc[i][j]);
      id[i][j] = hn::IfThenElse(hn::RebindMask(di, better), step, id[i][j]);
      acc[i][j] = hn::IfThenElse(better, x, acc[i][j]);
    });
    step = hn::Add(step, hn::Set(di, I{1}));
    a += t.a_k;
    b += t.b_k;
  }
  TG_UNROLL
  for (int i = 0; i < kRows; ++i) TG_UNROLL
  for (int j = 0; j < kVectors; ++j) {
    const size_t at = (static_cast<size_t>(i) * kVectors + static_cast<size_t>(j)) * hn::MaxLanes(d);
    hn::Store(acc[i][j], d, c + at);
    hn::Store(id[i][j], di, ids + at);
  }
}

// A mask of one vector as bits, lane 0 lowest.
template <size_t kLanes>
using MaskWord = std::conditional_t<
    kLanes <= 8, uint8_t,
    std::conditional_t<kLanes == 16, uint16_t, std::conditional_t<kLanes == 32, uint32_t, uint64_t>>>;

template <class D>
HWY_INLINE MaskWord<hn::MaxLanes(D())> MaskBits(D d, hn::Mask<D> mask) {
  MaskWord<hn::MaxLanes(D())> bits = 0;
  hn::StoreMaskBits(d, mask, reinterpret_cast<uint8_t*>(&bits));
  return bits;
}

// The value kernel with a look at its progress after every chunk of k: outputs that have become better note the chunk.
// What they were compared with stays in registers where there are enough, else in the buffer. The last chunk is the
// last kSteps steps, even if it overlaps the one before, whose candidates cannot be better again. Needs
// kSteps <= k <= kMaxChunks * kSteps.
template <class O, class R, class D, int kRows, int kVectors>
void ChunkedTile(const TileCall& t) {
  using T = hn::TFromD<D>;
  const D d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const hn::CappedTag<uint8_t, kLanes> d8;
  constexpr int64_t kSteps = kChunkSteps<T>;
  constexpr bool kInRegisters = 2 * kRows * kVectors + kVectors + 3 <= kRegisters;
  const auto all = hn::FirstN(d, kLanes);
  T* HWY_RESTRICT best = static_cast<T*>(t.c);
  uint8_t* HWY_RESTRICT chunks = static_cast<uint8_t*>(t.chunks);
  const int64_t a_row = t.a_row, a_k = t.a_k, b_k = t.b_k;
  hn::Vec<D> acc[kRows][kVectors], old[kRows][kVectors];
  const auto at = [](int i, int j)
                      HWY_ATTR { return (static_cast<size_t>(i) * kVectors + static_cast<size_t>(j)) * kLanes; };
  TG_UNROLL
  for (int i = 0; i < kRows; ++i) {
    TG_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      acc[i][j] = old[i][j] = O::Worst(d);
      if constexpr (!kInRegisters) hn::Store(acc[i][j], d, best + at(i, j));
      hn::Store(hn::Zero(d8), d8, chunks + at(i, j));
    }
  }
  int chunk = 0;
  for (int64_t k = 0; k < t.k; k += kSteps, ++chunk) {
    const int64_t first = std::min(k, t.k - kSteps);
    const T* HWY_RESTRICT a = static_cast<const T*>(t.a) + first * a_k;
    const T* HWY_RESTRICT b = static_cast<const T*>(t.b) + first * b_k;
    for (int64_t s = 0; s < kSteps; ++s) {
      Step<O, kRows, kVectors, false>(
          d, all, a, a_row, b, [&](int i, int j, hn::Vec<D> x) HWY_ATTR { acc[i][j] = O::Add(d, x, acc[i][j]); });
      a += a_k;
      b += b_k;
    }
#if defined(__GNUC__)
    asm("" : "+r"(chunks));  // else g++ holds the address of every vector in a register across the loop
#endif
    const auto id = hn::Set(d8, static_cast<uint8_t>(chunk));
    TG_UNROLL
    for (int i = 0; i < kRows; ++i) {
      TG_UNROLL
      for (int j = 0; j < kVectors; ++j) {
        const auto x = R::Round(d, acc[i][j]);
        const auto before = kInRegisters ? old[i][j] : hn::Load(d, best + at(i, j));
        const auto bits = MaskBits(d, O::Better(d, x, before));
        // A masked store would take twice as long on Zen 4.
        const auto mask = hn::LoadMaskBits(d8, reinterpret_cast<const uint8_t*>(&bits));
        hn::Store(hn::IfThenElse(mask, id, hn::Load(d8, chunks + at(i, j))), d8, chunks + at(i, j));
        if constexpr (kInRegisters)
          old[i][j] = x;
        else
          hn::Store(x, d, best + at(i, j));
      }
    }
  }
  if constexpr (kInRegisters) {
    TG_UNROLL
    for (int i = 0; i < kRows; ++i) {
      TG_UNROLL
      for (int j = 0; j < kVectors; ++j) hn::Store(old[i][j], d, best + at(i, j));
    }
  }
}

}  // namespace tropical::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

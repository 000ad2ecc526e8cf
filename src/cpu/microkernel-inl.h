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

// C tile = add_k mul, all accumulators in registers.
template <class O, class D, int kRows, int kVectors, bool kMasked>
void ValuesTile(const TileCall& t) {
  static_assert(!kMasked || kVectors == 1);
  using T = hn::TFromD<D>;
  const D d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const auto lanes = hn::FirstN(d, static_cast<size_t>(t.valid));
  const T* HWY_RESTRICT a = static_cast<const T*>(t.a);
  const T* HWY_RESTRICT b = static_cast<const T*>(t.b);
  T* HWY_RESTRICT c = static_cast<T*>(t.c);
  const int64_t a_row = t.a_row, a_k = t.a_k, b_k = t.b_k;
  hn::Vec<D> acc[kRows][kVectors];
  TG_UNROLL
  for (int i = 0; i < kRows; ++i) TG_UNROLL
  for (int j = 0; j < kVectors; ++j) acc[i][j] = O::Worst(d);
  for (int64_t k = t.k; k > 0; --k) {
    Step<O, kRows, kVectors, kMasked>(
        d, lanes, a, a_row, b, [&](int i, int j, hn::Vec<D> x) HWY_ATTR { acc[i][j] = O::Add(d, x, acc[i][j]); });
    a += a_k;
    b += b_k;
  }
  if (t.combine) {
    TG_UNROLL
    for (int i = 0; i < kRows; ++i) TG_UNROLL
    for (int j = 0; j < kVectors; ++j)
      acc[i][j] =
          O::Combine(d, acc[i][j], LoadVector<kMasked>(d, lanes, c + i * t.c_row + static_cast<size_t>(j) * kLanes));
  }
  TG_UNROLL
  for (int i = 0; i < kRows; ++i) TG_UNROLL
  for (int j = 0; j < kVectors; ++j)
    StoreVector<kMasked>(d, lanes, O::Canonical(d, acc[i][j]), c + i * t.c_row + static_cast<size_t>(j) * kLanes);
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

// The value kernel over chunks of kChunk steps; after each, the running best and its chunk are updated in a buffer
// that stays in L1. The last chunk is the last kChunk steps, even if it overlaps the one before: a candidate of the
// overlap cannot be strictly better than what that one left. Needs k >= kChunk.
template <class O, class R, class D, int kRows, int kVectors>
void ChunkedTile(const TileCall& t) {
  using T = hn::TFromD<D>;
  const D d;
  const hn::RebindToSigned<D> di;
  using I = hn::TFromD<decltype(di)>;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const auto all = hn::FirstN(d, kLanes);
  T* HWY_RESTRICT best = static_cast<T*>(t.c);
  I* HWY_RESTRICT ids = static_cast<I*>(t.ids);
  const int64_t a_row = t.a_row, a_k = t.a_k, b_k = t.b_k;
  I chunk = 0;
  for (int64_t k = 0; k < t.k; k += kChunk, ++chunk) {
    const int64_t first = std::min<int64_t>(k, t.k - kChunk);
    const T* HWY_RESTRICT a = static_cast<const T*>(t.a) + first * a_k;
    const T* HWY_RESTRICT b = static_cast<const T*>(t.b) + first * b_k;
    hn::Vec<D> acc[kRows][kVectors];
    Step<O, kRows, kVectors, false>(d, all, a, a_row, b, [&](int i, int j, hn::Vec<D> x) HWY_ATTR { acc[i][j] = x; });
    for (int s = 1; s < kChunk; ++s) {
      a += a_k;
      b += b_k;
      Step<O, kRows, kVectors, false>(
          d, all, a, a_row, b, [&](int i, int j, hn::Vec<D> x) HWY_ATTR { acc[i][j] = O::Add(d, x, acc[i][j]); });
    }
    const auto id = hn::Set(di, chunk);
    TG_UNROLL
    for (int i = 0; i < kRows; ++i) TG_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      const size_t at = (static_cast<size_t>(i) * kVectors + static_cast<size_t>(j)) * kLanes;
      const auto x = R::Round(d, acc[i][j]);
      if (k == 0) {
        hn::Store(x, d, best + at);
        hn::Store(id, di, ids + at);
      } else {
        const auto old = hn::Load(d, best + at);
        const auto better = O::Better(d, x, old);
        hn::Store(hn::IfThenElse(better, x, old), d, best + at);
        hn::Store(hn::IfThenElse(hn::RebindMask(di, better), id, hn::Load(di, ids + at)), di, ids + at);
      }
    }
  }
}

}  // namespace tropical::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

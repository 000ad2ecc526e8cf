// From a tile buffer to C and argmax: rounding, clamping, infinities put back, accumulation, the -1 rule; and the
// recovery of k from the chunk that held the best candidate.
#if defined(TROPICAL_CPU_STORE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROPICAL_CPU_STORE_INL_H_
#undef TROPICAL_CPU_STORE_INL_H_
#else
#define TROPICAL_CPU_STORE_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cstring>

#include "cpu/kernels.h"
#include "cpu/microkernel-inl.h"
#include "cpu/ops-inl.h"
#include "cpu/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tropical::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The element of In that an integer of compute type stands for.
template <class L>
HWY_INLINE typename L::In StoreElement(typename L::T x) {
  using In = typename L::In;
  using T = typename L::T;
  if constexpr (L::kPath == Path::mapped) {
    constexpr T edge = static_cast<T>(2 * kPlusRange<In>);  // finite sums reach this far, infinite ones begin beyond
    if (L::S::kIsMax) return x < -edge ? lowest<In>() : x;
    return x > edge ? highest<In>() : x;
  } else if constexpr (L::kPath == Path::wide) {
    return static_cast<In>(std::min<T>(std::max<T>(x, lowest<In>()), highest<In>()));
  } else {
    return static_cast<In>(x);
  }
}

// Rows of C are combined and compared in Q: the compute type for floats, In for integers, where the infinities of the
// mapped path are back in their places.
template <class L>
using CompareType = std::conditional_t<is_float_v<typename L::In>, typename L::T, typename L::In>;

template <class L>
HWY_INLINE void TileRow(const typename L::T* tile, int n, CompareType<L>* q) {
  using T = typename L::T;
  if constexpr (is_float_v<typename L::In>) {
    const hn::ScalableTag<T> d;
    for (int j = 0; j < n; j += static_cast<int>(hn::MaxLanes(d)))  // the buffers are whole vectors
      hn::Store(Rounding<L>::Round(d, hn::LoadU(d, tile + j)), d, q + j);
  } else {
    for (int j = 0; j < n; ++j) q[j] = StoreElement<L>(tile[j]);
  }
}

template <class L>
HWY_INLINE void LoadRow(const typename L::In* c, int64_t step, int n, CompareType<L>* q) {
  using In = typename L::In;
  if constexpr (is_float_v<In>) {
    FiniteCheck<typename L::T> ignored;
    if (step == 1) return CopyRow<L>(c, n, q, ignored);
    for (int j = 0; j < n; ++j) q[j] = widen(c[j * step]);
  } else {
    for (int j = 0; j < n; ++j) q[j] = read_element(c + j * step);
  }
}

// Writes canonical elements; q holds values that In represents.
template <class L>
HWY_INLINE void WriteRow(const CompareType<L>* q, int n, typename L::In* c, int64_t step) {
  using In = typename L::In;
  int j = 0;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (std::is_same_v<In, float16>) {
    const hn::ScalableTag<float> d;
    const hn::Rebind<hwy::float16_t, decltype(d)> dh;
    constexpr int kLanes = hn::MaxLanes(d);
    if (step == 1)
      for (; j + kLanes <= n; j += kLanes) {
        const auto v = hn::Load(d, q + j);
        // The conversion keeps a NaN's sign and payload: hand it the one that becomes the canonical half.
        const auto w = hn::IfThenElse(hn::IsNaN(v), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), v);
        hn::StoreU(hn::DemoteTo(dh, hn::Add(w, hn::Zero(d))), dh, reinterpret_cast<hwy::float16_t*>(c + j));
      }
  }
#endif
  if constexpr (is_float_v<In>) {
    for (; j < n; ++j) c[j * step] = narrow<In>(canonical(q[j]));
  } else {
    for (; j < n; ++j) c[j * step] = q[j];
  }
}

// x replaces y: strictly better, or the first NaN.
template <class S, class Q>
HWY_INLINE bool Selects(Q x, Q y) {
  if constexpr (std::is_floating_point_v<Q>)
    return (S::kIsMax ? x > y : x < y) || (x != x && y == y);
  else
    return S::kIsMax ? x > y : x < y;
}

template <class L>
void Store(const StoreCall& s) {
  using In = typename L::In;
  using T = typename L::T;
  for (int i = 0; i < s.rows; ++i) {
    const T* tile = static_cast<const T*>(s.tile) + int64_t{i} * s.lanes;
    In* c = static_cast<In*>(s.c) + i * s.c_row;
    if constexpr (L::kBits) {
      for (int j = 0; j < s.cols; ++j) {
        const bool x = (static_cast<uint32_t>(tile[j / L::kColumnsPerLane]) >> (j % L::kColumnsPerLane)) & 1;
        bool& out = c[j * s.c_col];
        out = x || (s.combine && read_element(&out));
      }
    } else {
      using Q = CompareType<L>;
      alignas(64) Q q[kMaxTileLanes];
      TileRow<L>(tile, s.cols, q);
      if (s.combine) {
        alignas(64) Q old[kMaxTileLanes];
        LoadRow<L>(c, s.c_col, s.cols, old);
        for (int j = 0; j < s.cols; ++j) q[j] = Selects<typename L::S>(q[j], old[j]) ? q[j] : old[j];
      }
      WriteRow<L>(q, s.cols, c, s.c_col);
    }
  }
}

// Values and indices of one row where both are contiguous and as T lies in memory, a vector at a time.
template <class L, class O>
HWY_INLINE void StoreArgmaxRow(const StoreCall& s, const typename L::T* tile, const int32_t* ids, typename L::T* c,
                               int32_t* argmax) {
  using T = typename L::T;
  using S = typename L::S;
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  static_assert(sizeof(T) == sizeof(int32_t));
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(d));
  const auto offset = hn::Set(di, static_cast<int32_t>(s.index_offset));
  for (int j = 0; j < s.cols; j += kLanes) {
    const size_t valid = static_cast<size_t>(std::min(kLanes, s.cols - j));
    const bool whole = valid == kLanes;
    auto x = hn::Load(d, tile + j);
    auto id = hn::Add(hn::Load(di, ids + j), offset);
    if constexpr (S::kMasks) {
      const auto none = hn::Eq(x, hn::Set(d, S::template zero<T>()));
      id = hn::IfThenElse(hn::RebindMask(di, none), hn::Set(di, -1), id);
    }
    if (s.combine) {
      alignas(64) T old_c[kLanes] = {};
      alignas(64) int32_t old_id[kLanes] = {};
      std::memcpy(old_c, c + j, valid * sizeof(T));
      std::memcpy(old_id, argmax + j, valid * sizeof(int32_t));
      const auto y = hn::Load(d, old_c);
      auto selected = S::kIsMax ? hn::Gt(x, y) : hn::Lt(x, y);
      if constexpr (std::is_floating_point_v<T>)
        selected = hn::Or(selected, hn::And(hn::IsNaN(x), hn::Not(hn::IsNaN(y))));
      x = hn::IfThenElse(selected, x, y);
      id = hn::IfThenElse(hn::RebindMask(di, selected), id, hn::Load(di, old_id));
    }
    if constexpr (std::is_floating_point_v<T>) {
      x = hn::Add(x, hn::Zero(d));  // +0
      x = hn::IfThenElse(hn::IsNaN(x), O::CanonicalNaN(d), x);
    }
    if (whole) {
      hn::StoreU(x, d, c + j);
      hn::StoreU(id, di, argmax + j);
    } else {
      alignas(64) T new_c[kLanes];
      alignas(64) int32_t new_id[kLanes];
      hn::Store(x, d, new_c);
      hn::Store(id, di, new_id);
      std::memcpy(c + j, new_c, valid * sizeof(T));
      std::memcpy(argmax + j, new_id, valid * sizeof(int32_t));
    }
  }
}

template <class L, class O>
void StoreArgmax(const StoreCall& s) {
  using In = typename L::In;
  using T = typename L::T;
  using S = typename L::S;
  using Q = CompareType<L>;
  using Id = hwy::MakeSigned<T>;
  const Q zero = is_float_v<In> ? static_cast<Q>(S::template zero<T>()) : static_cast<Q>(S::template zero<Q>());
  const int32_t offset = static_cast<int32_t>(s.index_offset);
  for (int i = 0; i < s.rows; ++i) {
    In* c = static_cast<In*>(s.c) + i * s.c_row;
    int32_t* argmax = s.argmax + i * s.argmax_row;
    const Id* ids = static_cast<const Id*>(s.ids) + int64_t{i} * s.lanes;
    if constexpr (L::kNative && sizeof(T) == 4 && HWY_TARGET != HWY_SCALAR) {
      if (s.c_col == 1 && s.argmax_col == 1) {
        StoreArgmaxRow<L, O>(s, static_cast<const T*>(s.tile) + int64_t{i} * s.lanes, ids, c, argmax);
        continue;
      }
    }
    alignas(64) Q q[kMaxTileLanes];
    alignas(64) int32_t index[kMaxTileLanes];
    TileRow<L>(static_cast<const T*>(s.tile) + int64_t{i} * s.lanes, s.cols, q);
    for (int j = 0; j < s.cols; ++j) index[j] = S::kMasks && q[j] == zero ? -1 : static_cast<int32_t>(ids[j]) + offset;
    if (s.combine) {
      alignas(64) Q old[kMaxTileLanes];
      LoadRow<L>(c, s.c_col, s.cols, old);
      for (int j = 0; j < s.cols; ++j) {
        const bool selected = Selects<S>(q[j], old[j]);
        q[j] = selected ? q[j] : old[j];
        index[j] = selected ? index[j] : argmax[j * s.argmax_col];
      }
    }
    WriteRow<L>(q, s.cols, c, s.c_col);
    if (s.argmax_col == 1)
      std::copy(index, index + s.cols, argmax);
    else
      for (int j = 0; j < s.cols; ++j) argmax[j * s.argmax_col] = index[j];
  }
}

// One line of candidates per output, along k. No branch depends on the data, so that many outputs are in flight.
template <class L, class O>
void Recover(const RecoverCall& r) {
  using T = typename L::T;
  using Id = hwy::MakeSigned<T>;
  constexpr int64_t kSteps = kChunkSteps<T>;
  constexpr size_t kOutputs = hn::MaxLanes(hn::ScalableTag<T>());
  const hn::CappedTag<T, static_cast<size_t>(kSteps)> d;
  constexpr int64_t kLanes = hn::MaxLanes(d);
  const int64_t vectors = r.lanes / static_cast<int64_t>(kOutputs);
  for (int i = 0; i < r.rows; ++i) {
    const T* HWY_RESTRICT a = static_cast<const T*>(r.a) + i * r.a_row;
    for (int64_t v = 0; v * static_cast<int64_t>(kOutputs) < r.cols; ++v) {
      const uint8_t* HWY_RESTRICT chunks =
          static_cast<const uint8_t*>(r.chunks) + (i * vectors + v) * static_cast<int64_t>(kOutputs);
      const T* HWY_RESTRICT best = static_cast<const T*>(r.best) + (i * vectors + v) * static_cast<int64_t>(kOutputs);
      Id* HWY_RESTRICT ids = static_cast<Id*>(r.ids) + (i * vectors + v) * static_cast<int64_t>(kOutputs);
      const T* HWY_RESTRICT bt = static_cast<const T*>(r.bt) + v * static_cast<int64_t>(kOutputs) * r.bt_row;
      if (r.c && (v + 1) * static_cast<int64_t>(kOutputs) <= r.cols) {
        // In a closure most products improve little.
        const hn::ScalableTag<T> dc;
        const auto x = hn::LoadU(dc, best);
        const auto y = hn::LoadU(dc, static_cast<const T*>(r.c) + i * r.c_row + v * static_cast<int64_t>(kOutputs));
        auto selected = Ops<typename L::S, T, false>::Better(dc, x, y);
        if constexpr (std::is_floating_point_v<T>) selected = hn::Or(selected, hn::IsNaN(x));
        if (hn::AllFalse(dc, selected)) continue;
      }
      TG_UNROLL
      for (size_t lane = 0; lane < kOutputs; ++lane) {
        const int64_t first = std::min(chunks[lane] * kSteps, r.k - kSteps);
        const auto value = Broadcast(d, best + lane);
        uint64_t matches = 0;
        TG_UNROLL
        for (int64_t t = 0; t < kSteps; t += kLanes) {
          const auto x = Rounding<L>::Round(d, O::Mul(d, hn::LoadU(d, a + first + t), hn::LoadU(d, bt + first + t)));
          auto match = hn::Eq(x, value);
          if constexpr (O::kPropagates) match = hn::Or(match, hn::IsNaN(x));
          matches |= uint64_t{MaskBits(d, match)} << t;
        }
        // Nothing matches a NaN met on the plain path; its index is set afterwards.
        ids[lane] = static_cast<Id>(first + std::countr_zero(matches) % kSteps);
        bt += r.bt_row;
      }
    }
  }
}

}  // namespace tropical::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

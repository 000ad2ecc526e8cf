// Certified filtering for one instruction set: bounds and proof. The names are those of docs/certified-filtering.md: U
// is a bound, S the threshold of candidates.
#if defined(TROPICAL_CPU_FILTER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROPICAL_CPU_FILTER_INL_H_
#undef TROPICAL_CPU_FILTER_INL_H_
#else
#define TROPICAL_CPU_FILTER_INL_H_
#endif

#include <hwy/cache_control.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "cpu/filter_kernels.h"
#include "cpu/filter_prepare-inl.h"
#include "cpu/microkernel-inl.h"
#include "visit.h"

HWY_BEFORE_NAMESPACE();
namespace tropical::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

// ---- bounds ----

// acc = max(x, acc), in the register that acc is in: g++ 12 puts the result elsewhere and spills ten of 24
// accumulators.
HWY_INLINE void Raise(hn::Vec<Low> x, hn::Vec<Low>* acc) {
#if defined(__GNUC__) && !defined(__clang__) && HWY_ARCH_X86
  asm volatile("vpmaxsw %1, %0, %0" : "+v"(acc->raw) : "v"(x.raw));
#else
  *acc = hn::Max(x, *acc);
#endif
}

// One chunk: per output its best bound, beside those of earlier chunks. A function of its own, so that nothing around
// it takes registers from the loop.
template <int kRows>
HWY_NOINLINE void FilterChunk(const FilterTileCall& t, const int16_t* HWY_RESTRICT a, const int16_t* HWY_RESTRICT b,
                              int16_t number) {
  using O = Ops<MaxPlus, int16_t, false>;
  const Low d;
  const auto all = hn::FirstN(d, kLowLanes);
  const int64_t a_row = t.a_row;
  hn::Vec<Low> acc[kRows][kFilterVectors];
  Step<O, kRows, kFilterVectors, false>(d, all, a, a_row, b,
                                        [&](int i, int j, hn::Vec<Low> x) HWY_ATTR { acc[i][j] = x; });
  for (int s = 1; s < kFilterChunk; ++s) {
    a += 1;
    b += kFilterColumns;
    Step<O, kRows, kFilterVectors, false>(d, all, a, a_row, b,
                                          [&](int i, int j, hn::Vec<Low> x) HWY_ATTR { Raise(x, &acc[i][j]); });
  }
  int16_t* HWY_RESTRICT best = t.best;
  int16_t* HWY_RESTRICT second = t.second;
  int16_t* HWY_RESTRICT ids = t.ids;
  const auto id = hn::Set(d, number);
  TG_UNROLL
  for (int i = 0; i < kRows; ++i) {
    TG_UNROLL
    for (int j = 0; j < kFilterVectors; ++j) {
      const int at = (i * kFilterVectors + j) * kLowLanes;
      const auto x = acc[i][j], old = hn::Load(d, best + at);
      const auto better = hn::Gt(x, old);
      hn::Store(hn::Max(x, old), d, best + at);
      hn::Store(hn::Max(hn::Load(d, second + at), hn::Min(x, old)), d, second + at);
      hn::Store(hn::IfThenElse(better, id, hn::Load(d, ids + at)), d, ids + at);
    }
  }
}

// Per output the best bound of a chunk, the first chunk that has it, and the best bound of all other chunks.
template <int kRows>
void FilterTile(const FilterTileCall& t) {
  const Low d;
  const auto floor = hn::Set(d, int16_t{2 * kFilterFloor});
  for (int i = 0; i < kRows * kFilterVectors; ++i) {
    hn::Store(floor, d, t.best + i * kLowLanes);
    hn::Store(floor, d, t.second + i * kLowLanes);
    hn::Store(hn::Zero(d), d, t.ids + i * kLowLanes);
  }
  for (int64_t chunk = 0; chunk < t.chunks; ++chunk)
    FilterChunk<kRows>(t, t.a + chunk * kFilterChunk, t.b + chunk * kFilterChunk * kFilterColumns,
                       static_cast<int16_t>(chunk));
}

// ---- results and their proof ----

// Which k of a chunk have a bound of at least `threshold`.
HWY_INLINE uint32_t AtLeast(const int16_t* a, const int16_t* b, hn::Vec<Low> threshold) {
  const Low d;
  uint32_t below = 0;
  TG_UNROLL
  for (int t = 0; t < kFilterChunk; t += kLowLanes)
    below |= uint32_t{MaskBits(d, hn::Lt(hn::Add(hn::LoadU(d, a + t), hn::LoadU(d, b + t)), threshold))} << t;
  return ~below;
}

// Rounds as a sum of two T does.
template <class T>
HWY_INLINE WideV RoundTo(WideV x) {
  if constexpr (sizeof(T) == sizeof(double)) {
    return x;
  } else {
    const hn::Rebind<T, Wide> d;
    return hn::PromoteTo(Wide(), hn::DemoteTo(d, x));
  }
}

// The largest T that a candidate with a bound of U = threshold can round to.
template <class T>
HWY_INLINE WideV Ceiling(WideV sum, WideV error, WideV threshold, WideV unit) {
  const auto rest = AddUp(error, hn::Mul(threshold, unit));
  if constexpr (sizeof(T) == sizeof(double))
    return hn::Add(sum, rest);
  else
    return RoundTo<T>(AddUp(sum, rest));
}

template <class S, class T>
uint64_t Settle(const FilterRow& f, int64_t* work) {
  using Id = hwy::MakeSigned<T>;
  const Low low;
  const Wide d;
  const T* HWY_RESTRICT a = static_cast<const T*>(f.a);
  const T* HWY_RESTRICT b = static_cast<const T*>(f.b);
  T* HWY_RESTRICT values = static_cast<T*>(f.values);
  Id* HWY_RESTRICT index = static_cast<Id*>(f.index);
  alignas(64) int16_t threshold[kFilterColumns];
  alignas(64) int32_t first[kFilterColumns];
  alignas(64) uint32_t others[kFilterColumns];
  // S: what lies more than two units below the best bound cannot win; the floor is no candidate at all.
  for (int j = 0; j < kFilterColumns; j += kLowLanes) {
    const auto t = hn::Max(hn::Load(low, f.second + j), hn::SaturatedSub(hn::Load(low, f.best + j), hn::Set(low, 2)));
    hn::Store(hn::Max(t, hn::Set(low, int16_t{2 * kFilterFloor + 1})), low, threshold + j);
  }
  for (int j = 0; j < f.columns; ++j) {
    const int64_t chunk = f.ids[j];
    const uint32_t found = AtLeast(f.a_low + chunk * kFilterChunk,
                                   f.b_low + (chunk * kFilterColumns + j) * kFilterChunk, hn::Set(low, threshold[j]));
    const int64_t k = chunk * kFilterChunk + std::countr_zero(found) % kFilterChunk;
    first[j] = static_cast<int32_t>(k);
    others[j] = found & (found - 1);
    hwy::Prefetch(a + k * f.a_k);
    hwy::Prefetch(b + k * kFilterColumns + j);
  }
  int64_t ties = 0;
  for (int j = 0; j < f.columns; ++j) {
    int64_t k = first[j];
    T v = a[k * f.a_k] + b[k * kFilterColumns + j];
    for (uint32_t left = others[j]; HWY_UNLIKELY(left != 0); left &= left - 1) {
      const int64_t next = int64_t{f.ids[j]} * kFilterChunk + std::countr_zero(left);
      const T x = a[next * f.a_k] + b[next * kFilterColumns + j];
      if (S::kIsMax ? x > v : x < v) v = x, k = next;
      ++ties;
    }
    values[j] = v + T{0};  // +0 for a zero
    index[j] = static_cast<Id>(k);
  }
  *work += 6 * ties;
  if (!f.proves) return 0;
  uint64_t unproven = 0;
  const hn::Rebind<int16_t, Wide> few;
  const hn::Rebind<int32_t, Wide> half;
  const auto unit = hn::Set(d, f.unit), row = hn::Set(d, f.row_best);
  const auto never = hn::Set(d, lowest<double>());
  for (int j = 0; j < f.columns; j += kWideLanes) {
    const auto wide = [&](const int16_t* p)
                          HWY_ATTR { return hn::PromoteTo(d, hn::PromoteTo(half, hn::LoadU(few, p))); };
    const auto v = LoadOrdered<S>(values + j);
    auto error = hn::Zero(d);
    const auto sum = TwoSum(row, hn::LoadU(d, f.column_bests + j), &error);
    const auto t = wide(threshold + j);
    auto proven = hn::Ge(v, Ceiling<T>(sum, error, t, unit));
    if (f.argmax) {
      // A chunk before the best one has a smaller bound than it; one behind it loses a tie of values.
      const auto tie = hn::Eq(t, wide(f.best + j));
      const auto earlier = hn::IfThenElse(tie, hn::Sub(t, hn::Set(d, 1.0)), t);
      proven = hn::And(proven, hn::Gt(v, Ceiling<T>(sum, error, earlier, unit)));
    }
    // A row or column of infinities alone.
    proven = hn::Or(proven, hn::Eq(sum, never));
    unproven |= (~uint64_t{MaskBits(d, proven)} & ((uint64_t{1} << kWideLanes) - 1)) << j;
  }
  return f.columns < 64 ? unproven & ((uint64_t{1} << f.columns) - 1) : unproven;
}

template <class S, class T>
int64_t Rescan(const FilterRow& f, int j) {
  const Low low;
  const T* a = static_cast<const T*>(f.a);
  const T* b = static_cast<const T*>(f.b) + j;
  T& value = static_cast<T*>(f.values)[j];
  // What is below this bound rounds to less than the value in hand; eight times what rounding could take, and a unit.
  constexpr double kMargin = 8 * static_cast<double>(std::numeric_limits<T>::epsilon());
  const double r = f.row_best, c = f.column_bests[j], v = S::kIsMax ? value : -value;
  const double margin = (std::abs(v) + std::abs(r) + std::abs(c)) * kMargin;
  const double bound = std::floor((v - (r + c) - margin) / f.unit) - 1;
  // An infinite v leaves every k. The comparison is false for NaN.
  const bool bounded = bound > 2.0 * kFilterFloor;
  const auto threshold = hn::Set(low, bounded ? static_cast<int16_t>(std::min(bound, 0.0)) : int16_t{2 * kFilterFloor});
  bool none = true;
  int64_t at = 0, work = 0;
  T best = value;
  for (int64_t first = 0; first < f.k; first += kFilterChunk) {
    uint32_t found = AtLeast(f.a_low + first, f.b_low + first * kFilterColumns + j * kFilterChunk, threshold);
    if (f.k - first < kFilterChunk) found &= (uint32_t{1} << (f.k - first)) - 1;
    work += 12 + 4 * std::popcount(found);
    for (; found != 0; found &= found - 1) {
      const int64_t k = first + std::countr_zero(found);
      const T x = a[k * f.a_k] + b[k * kFilterColumns];
      if (none || (S::kIsMax ? x > best : x < best)) best = x, at = k, none = false;
    }
  }
  value = best + T{0};
  static_cast<hwy::MakeSigned<T>*>(f.index)[j] = static_cast<hwy::MakeSigned<T>>(at);
  return work;
}

// ---- the table ----

template <int... kRows>
void SetTiles(FilterKernels& k) {
  static_assert(sizeof...(kRows) <= kFilterShapes && ((kRows <= kFilterMaxRows) && ...));
  int shape = 0;
  ((k.rows[shape] = kRows, k.tile[shape++] = &FilterTile<kRows>), ...);
}

template <class S, class T>
FilterKernels MakeFilter() {
  FilterKernels k;
  // By measurement on Zen 4 (docs/performance.md), where AVX-512 adds in half the time that AVX2 takes.
  constexpr bool kDouble = sizeof(T) == sizeof(double);
  k.least_values = kMasks ? (kDouble ? 256 : 1536) : (kDouble ? 192 : 448);
  k.least_argmax = kMasks ? (kDouble ? 192 : 640) : (kDouble ? 192 : 256);
  k.columns = kFilterColumns;
#if defined(TG_INSTANCES_FEW)
  SetTiles<4, 1>(k);
#else
  if constexpr (kMasks)
    SetTiles<12, 8, 4, 2, 1>(k);
  else
    SetTiles<6, 4, 2, 1>(k);
#endif
  k.best_of_line = &BestOfLine<S, T>;
  k.best_of_columns = &BestOfColumns<S, T>;
  k.lower_line = &LowerLine<S, T>;
  k.lower_panel = &LowerPanel<S, T>;
  k.sample = &Sample<S, T>;
  k.settle = &Settle<S, T>;
  k.rescan = &Rescan<S, T>;
  return k;
}

#endif  // HWY_TARGET != HWY_SCALAR

const FilterKernels* FindFilter([[maybe_unused]] Semiring semiring, [[maybe_unused]] DType dtype) {
  const FilterKernels* found = nullptr;
#if HWY_TARGET != HWY_SCALAR
  visit(semiring, dtype, [&]<class S, class T>() {
    if constexpr (is_plus_v<S> && (std::is_same_v<T, float> || std::is_same_v<T, double>)) {
      static const FilterKernels table = MakeFilter<S, T>();
      found = &table;
    }
  });
#endif
  return found;
}

}  // namespace tropical::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

// Certified filtering, before its bounds: the best elements of lines, elements in fixed point, sampled outputs. The
// names are those of docs/certified-filtering.md: r and c are the best elements of a row of A and a column of B, g the
// unit.
#if defined(TROPICAL_CPU_FILTER_PREPARE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROPICAL_CPU_FILTER_PREPARE_INL_H_
#undef TROPICAL_CPU_FILTER_PREPARE_INL_H_
#else
#define TROPICAL_CPU_FILTER_PREPARE_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "cpu/filter_kernels.h"
#include "cpu/ops-inl.h"
#include "cpu/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tropical::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

using Low = hn::ScalableTag<int16_t>;
using Wide = hn::ScalableTag<double>;
using WideV = hn::Vec<Wide>;
constexpr int kLowLanes = hn::MaxLanes(Low());
constexpr int kWideLanes = hn::MaxLanes(Wide());
constexpr int kFilterVectors = 2;
constexpr int kFilterColumns = kFilterVectors * kLowLanes;
static_assert(kFilterColumns <= kFilterMaxColumns && kFilterColumns % 8 == 0 && kFilterChunk % kLowLanes == 0);

// ---- elements as doubles, in the order of max ----

template <class S>
HWY_INLINE WideV Ordered(WideV x) {
  return S::kIsMax ? x : hn::Neg(x);
}
template <class S, class T>
HWY_INLINE WideV LoadOrdered(const T* p) {
  if constexpr (sizeof(T) == sizeof(double))
    return Ordered<S>(hn::LoadU(Wide(), p));
  else
    return Ordered<S>(hn::PromoteTo(Wide(), hn::LoadU(hn::Rebind<T, Wide>(), p)));
}
template <class S, class T>
HWY_INLINE WideV SetOrdered(T x) {
  return Ordered<S>(hn::Set(Wide(), static_cast<double>(x)));
}

// a + b = sum + error exactly, for numbers within kFilterRange.
HWY_INLINE WideV TwoSum(WideV a, WideV b, WideV* error) {
  const auto sum = hn::Add(a, b);
  const auto of_b = hn::Sub(sum, a);
  *error = hn::Add(hn::Sub(a, hn::Sub(sum, of_b)), hn::Sub(b, of_b));
  return sum;
}

// At least a + b, and a + b itself where that is a double. The next double is at most |x| * 2^-52 away unless x is
// subnormal, when sums have no error.
HWY_INLINE WideV AddUp(WideV a, WideV b) {
  const Wide d;
  auto error = hn::Zero(d);
  const auto sum = TwoSum(a, b, &error);
  const auto above = hn::Add(sum, hn::Mul(hn::Abs(sum), hn::Set(d, 0x1p-52)));
  return hn::IfThenElse(hn::Gt(error, hn::Zero(d)), above, sum);
}

// ---- the best elements ----

// Keeps the maximum of what it sees, and whether all of it was below +inf and no NaN.
struct BestOf {
  WideV best;
  hn::Mask<Wide> usable;

  HWY_INLINE BestOf() {
    best = hn::Set(Wide(), lowest<double>());
    usable = hn::Lt(best, hn::Zero(Wide()));
  }
  HWY_INLINE void See(WideV x) {
    usable = hn::And(usable, hn::Lt(x, hn::Set(Wide(), highest<double>())));
    best = hn::Max(best, x);
  }
};

HWY_INLINE bool UsableBest(double best) { return best == lowest<double>() || std::abs(best) <= kFilterRange; }

template <class S, class T>
bool BestOfLine(const void* line, int64_t n, double* best) {
  const Wide d;
  const T* x = static_cast<const T*>(line);
  BestOf seen[4];
  int64_t i = 0;
  for (; i + 4 * kWideLanes <= n; i += 4 * kWideLanes) {
    TG_UNROLL
    for (int v = 0; v < 4; ++v) seen[v].See(LoadOrdered<S>(x + i + v * kWideLanes));
  }
  for (; i + kWideLanes <= n; i += kWideLanes) seen[0].See(LoadOrdered<S>(x + i));
  for (; i < n; ++i) seen[1].See(SetOrdered<S>(x[i]));
  bool usable = true;
  for (const BestOf& s : seen) usable &= hn::AllTrue(d, s.usable);
  const auto top = hn::Max(hn::Max(seen[0].best, seen[1].best), hn::Max(seen[2].best, seen[3].best));
  *best = hn::GetLane(hn::MaxOfLanes(d, top));
  return usable && UsableBest(*best);
}

template <class S, class T>
bool BestOfColumns(const void* panel, int lanes, int64_t k, double* best) {
  const Wide d;
  bool usable = true;
  for (int j = 0; j < lanes; j += 8) {
    constexpr int kVectors = 8 / kWideLanes;
    const T* x = static_cast<const T*>(panel) + j;
    BestOf seen[kVectors];
    for (int64_t s = 0; s < k; ++s, x += lanes) {
      TG_UNROLL
      for (int v = 0; v < kVectors; ++v) seen[v].See(LoadOrdered<S>(x + v * kWideLanes));
    }
    for (int v = 0; v < kVectors; ++v) {
      usable &= hn::AllTrue(d, seen[v].usable);
      hn::StoreU(seen[v].best, d, best + j + v * kWideLanes);
    }
    for (int v = 0; v < 8; ++v) usable &= UsableBest(best[j + v]);
  }
  return usable;
}

// ---- fixed point ----

HWY_INLINE double FiniteBest(double best) { return best == lowest<double>() ? 0 : best; }

// ceil((x - best) / unit) or kFilterFloor. The difference is rounded to nearest: only where that gave a whole number
// from above it does the error term move the result by one.
HWY_INLINE WideV Lowered(WideV x, WideV best, WideV per_unit) {
  const Wide d;
  auto error = hn::Zero(d);
  const auto scaled = hn::Mul(TwoSum(x, hn::Neg(best), &error), per_unit);
  const auto whole = hn::Ceil(hn::Max(scaled, hn::Set(d, double{kFilterFloor})));
  const auto short_by_one = hn::And(hn::Eq(whole, scaled), hn::Gt(error, hn::Zero(d)));
  return hn::IfThenElse(short_by_one, hn::Add(whole, hn::Set(d, 1.0)), whole);
}

HWY_INLINE void StoreLow(WideV x, int16_t* out) {
  const hn::Rebind<int32_t, Wide> d32;
  const hn::Rebind<int16_t, Wide> d16;
  hn::StoreU(hn::DemoteTo(d16, hn::DemoteTo(d32, x)), d16, out);
}

template <class S, class T>
void LowerLine(const void* line, int64_t n, double best, double unit, int16_t* out) {
  const Wide d;
  const T* x = static_cast<const T*>(line);
  const auto b = hn::Set(d, FiniteBest(best)), per_unit = hn::Set(d, 1 / unit);
  int64_t i = 0;
  for (; i + kWideLanes <= n; i += kWideLanes) StoreLow(Lowered(LoadOrdered<S>(x + i), b, per_unit), out + i);
  for (; i < n; ++i) out[i] = static_cast<int16_t>(hn::GetLane(Lowered(SetOrdered<S>(x[i]), b, per_unit)));
  for (; i % kFilterChunk != 0; ++i) out[i] = kFilterFloor;
}

template <class S, class T>
void LowerPanel(const void* panel, int64_t k, const double* best, double unit, int16_t* out, int16_t* by_column) {
  const Wide d;
  const T* x = static_cast<const T*>(panel);
  alignas(64) double shift[kFilterColumns];
  for (int j = 0; j < kFilterColumns; ++j) shift[j] = FiniteBest(best[j]);
  const auto per_unit = hn::Set(d, 1 / unit);
  for (int64_t first = 0; first < k; first += kFilterChunk) {
    int16_t* chunk = out + first * kFilterColumns;
    const int64_t steps = std::min<int64_t>(kFilterChunk, k - first);
    for (int64_t s = 0; s < steps; ++s)
      for (int j = 0; j < kFilterColumns; j += kWideLanes) {
        const int64_t at = s * kFilterColumns + j;
        StoreLow(Lowered(LoadOrdered<S>(x + first * kFilterColumns + at), hn::Load(d, shift + j), per_unit),
                 chunk + at);
      }
    std::fill(chunk + steps * kFilterColumns, chunk + kFilterChunk * kFilterColumns, int16_t{kFilterFloor});
    Transpose(chunk, kFilterColumns, kFilterColumns, kFilterChunk, by_column + first * kFilterColumns, kFilterChunk);
  }
}

template <class S, class T>
void Sample(const void* a, int64_t a_k, const void* panel, int64_t k, double* best) {
  const Wide d;
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(panel);
  constexpr int kVectors = 8 / kWideLanes;
  WideV top[kVectors];
  TG_UNROLL
  for (int v = 0; v < kVectors; ++v) top[v] = hn::Set(d, lowest<double>());
  for (int64_t s = 0; s < k; ++s, x += a_k, y += 8) {
    const auto one = SetOrdered<S>(*x);
    TG_UNROLL
    for (int v = 0; v < kVectors; ++v) top[v] = hn::Max(top[v], hn::Add(one, LoadOrdered<S>(y + v * kWideLanes)));
  }
  TG_UNROLL
  for (int v = 0; v < kVectors; ++v) hn::StoreU(top[v], d, best + v * kWideLanes);
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace tropical::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

// Copies between user memory and the compute type: load transforms, transposition, and the pass that finds
// infinities, NaN and integer ranges.
#if defined(TROPICAL_CPU_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROPICAL_CPU_PACK_INL_H_
#undef TROPICAL_CPU_PACK_INL_H_
#else
#define TROPICAL_CPU_PACK_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "cpu/kernels.h"
#include "cpu/ops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tropical::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// ---- elements ----

template <class L>
HWY_INLINE typename L::T LoadElement(typename L::In x) {
  using In = typename L::In;
  using T = typename L::T;
  if constexpr (is_half_v<In>)
    return to_float(x);
  else if constexpr (L::kMapsInfinity)
    return x == L::S::template worst<In>() ? L::kInfinity : static_cast<T>(x);
  else if constexpr (L::kBits)
    return x ? T{-1} : T{0};
  else
    return static_cast<T>(x);
}

// A vector of compute type from contiguous elements of In.
template <class L, class D>
HWY_INLINE hn::Vec<D> LoadVectorOf(D d, const typename L::In* p) {
  using In = typename L::In;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (std::is_same_v<In, float16>) {
    const hn::Rebind<hwy::float16_t, D> dh;
    return hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(p)));
  } else if constexpr (std::is_same_v<In, bfloat16>) {
    const hn::Rebind<hwy::bfloat16_t, D> db;
    return hn::PromoteTo(d, hn::LoadU(db, reinterpret_cast<const hwy::bfloat16_t*>(p)));
  } else
#endif
      if constexpr (std::is_same_v<In, hn::TFromD<D>> && L::kNative) {
    return hn::LoadU(d, p);
  } else {
    alignas(64) hn::TFromD<D> x[hn::MaxLanes(d)];
    for (size_t i = 0; i < hn::MaxLanes(d); ++i) x[i] = LoadElement<L>(p[i]);
    return hn::Load(d, x);
  }
}

// Collects x * 0 over everything seen: 0 unless some x is infinite or NaN. Nothing to do for integers.
template <class T>
struct FiniteCheck {
  using D = hn::ScalableTag<T>;
  hn::Vec<D> sum;
  T scalar{0};

  // Written out, as an implicit constructor is not compiled for the target.
  HWY_INLINE FiniteCheck() { sum = hn::Zero(D()); }
  HWY_INLINE void See(hn::Vec<D> v) {
    if constexpr (std::is_floating_point_v<T>) sum = hn::MulAdd(v, hn::Zero(D()), sum);
  }
  HWY_INLINE void See(T x) {
    if constexpr (std::is_floating_point_v<T>) scalar += x * T{0};
  }
  HWY_INLINE bool Finite() const {
    if constexpr (std::is_floating_point_v<T>)
      return hn::AllTrue(D(), hn::Eq(sum, hn::Zero(D()))) && scalar == T{0};
    else
      return true;
  }
};

// ---- contiguous rows ----

template <class L>
HWY_INLINE void CopyRow(const typename L::In* src, int64_t n, typename L::T* dst, FiniteCheck<typename L::T>& check) {
  using T = typename L::T;
  int64_t i = 0;
  if constexpr (L::kNative || is_half_v<typename L::In>) {
    const hn::ScalableTag<T> d;
    constexpr int64_t kLanes = hn::MaxLanes(d);
    for (; i + kLanes <= n; i += kLanes) {
      const auto v = LoadVectorOf<L>(d, src + i);
      check.See(v);
      hn::StoreU(v, d, dst + i);
    }
  }
  for (; i < n; ++i) {  // the compiler vectorizes this for integers
    dst[i] = LoadElement<L>(read_element(src + i));
    check.See(dst[i]);
  }
}

// ---- transposition ----

#if HWY_TARGET != HWY_SCALAR  // which has no vectors to interleave
// dst[r * ld + c] = src[c * src_step + r] for a block of kSide x kSide elements, in 128-bit registers.
template <class T>
HWY_INLINE void TransposeBlock(const T* src, int64_t src_step, T* dst, int64_t ld) {
  constexpr int kSide = 16 / sizeof(T);
  const hn::FixedTag<T, kSide> d;
  using V = hn::Vec<decltype(d)>;
  V r[kSide], s[kSide];
  TG_UNROLL
  for (int i = 0; i < kSide; ++i) r[i] = hn::LoadU(d, src + i * src_step);
  // Each stage interleaves registers that are half the side apart; log2(kSide) stages transpose.
  TG_UNROLL
  for (int stage = 1; stage < kSide; stage *= 2) {
    TG_UNROLL
    for (int i = 0; i < kSide / 2; ++i) {
      s[2 * i] = hn::InterleaveLower(d, r[i], r[i + kSide / 2]);
      s[2 * i + 1] = hn::InterleaveUpper(d, r[i], r[i + kSide / 2]);
    }
    TG_UNROLL
    for (int i = 0; i < kSide; ++i) r[i] = s[i];
  }
  TG_UNROLL
  for (int i = 0; i < kSide; ++i) hn::StoreU(r[i], d, dst + i * ld);
}
#endif

// dst[r * ld + c] = src[c * src_step + r]
template <class T>
HWY_NOINLINE void Transpose(const T* src, int64_t src_step, int64_t rows, int64_t cols, T* dst, int64_t ld) {
  int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr int64_t kSide = 16 / sizeof(T);
  for (; c + kSide <= cols; c += kSide) {
    int64_t r = 0;
    for (; r + kSide <= rows; r += kSide) TransposeBlock(src + c * src_step + r, src_step, dst + r * ld + c, ld);
    for (; r < rows; ++r)
      for (int64_t x = c; x < c + kSide; ++x) dst[r * ld + x] = src[x * src_step + r];
  }
#endif
  for (; c < cols; ++c)
    for (int64_t r = 0; r < rows; ++r) dst[r * ld + c] = src[c * src_step + r];
}

// ---- the finite check ----

// Whether n contiguous elements are finite. Four sums, so that their latencies overlap.
template <class T>
HWY_INLINE bool FiniteRow(const T* row, int64_t n) {
  const hn::ScalableTag<T> d;
  constexpr int64_t kLanes = hn::MaxLanes(d);
  FiniteCheck<T> check[4];
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    check[0].See(hn::LoadU(d, row + i));
    check[1].See(hn::LoadU(d, row + i + kLanes));
    check[2].See(hn::LoadU(d, row + i + 2 * kLanes));
    check[3].See(hn::LoadU(d, row + i + 3 * kLanes));
  }
  for (; i + kLanes <= n; i += kLanes) check[0].See(hn::LoadU(d, row + i));
  if constexpr (kMasks) {
    if (i < n) check[1].See(hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(n - i)), d, row + i));
  } else {
    for (; i < n; ++i) check[0].See(row[i]);
  }
  check[0].sum = hn::Add(hn::Add(check[0].sum, check[1].sum), hn::Add(check[2].sum, check[3].sum));
  return check[0].Finite();
}

// Whether all elements are finite, without telling what the others are: one multiply-add per vector.
template <class T>
bool Finite(const Source& s) {
  if constexpr (std::is_floating_point_v<T>) {
    const T* src = static_cast<const T*>(s.data);
    const bool by_row = s.col == 1 || s.cols == 1;
    const int64_t outer = by_row ? s.rows : s.cols, inner = by_row ? s.cols : s.rows;
    const int64_t outer_step = by_row ? s.row : s.col, inner_step = by_row ? 1 : s.row;
    if (inner_step == 1 && (outer_step == inner || outer == 1)) return FiniteRow(src, outer * inner);
    bool finite = true;
    for (int64_t i = 0; i < outer; ++i) {
      const T* row = src + i * outer_step;
      if (inner_step == 1) {
        finite &= FiniteRow(row, inner);
      } else {
        T sum{0};
        for (int64_t j = 0; j < inner; ++j) sum += row[j * inner_step] * T{0};
        finite &= sum == T{0};
      }
    }
    return finite;
  } else {
    return true;
  }
}

// ---- packing ----

// dst[r * ld + c] = T(src[r, c]); returns whether all elements are finite.
template <class L>
bool Pack(const Source& s, void* dst_void, int64_t ld) {
  using In = typename L::In;
  using T = typename L::T;
  const In* src = static_cast<const In*>(s.data);
  T* dst = static_cast<T*>(dst_void);
  FiniteCheck<T> check;
  if (s.col == 1 || s.cols == 1) {
    for (int64_t r = 0; r < s.rows; ++r) CopyRow<L>(src + r * s.row, s.cols, dst + r * ld, check);
  } else if (s.row == 1 && L::kNative) {
    if constexpr (L::kNative) {
      // Blocks of columns keep the lines that a block of rows touches in L1.
      constexpr int64_t kBlock = 64;
      for (int64_t c = 0; c < s.cols; c += kBlock)
        Transpose(src + c * s.col, s.col, s.rows, std::min(kBlock, s.cols - c), dst + c, ld);
      return Finite<T>({dst, ld, 1, s.rows, s.cols});
    }
  } else {
    // Walk the smaller stride innermost, in blocks of columns.
    constexpr int64_t kBlock = 32;
    for (int64_t c0 = 0; c0 < s.cols; c0 += kBlock)
      for (int64_t r = 0; r < s.rows; ++r)
        for (int64_t c = c0; c < std::min(c0 + kBlock, s.cols); ++c) {
          const T x = LoadElement<L>(read_element(src + r * s.row + c * s.col));
          dst[r * ld + c] = x;
          check.See(x);
        }
  }
  return check.Finite();
}

// A panel of B: rows of ld lanes, those beyond the columns of B zero.
template <class L>
bool PackPanel(const Source& s, void* dst_void, int64_t ld) {
  using T = typename L::T;
  T* dst = static_cast<T*>(dst_void);
  if constexpr (L::kBits) {
    constexpr int64_t kColumns = L::kColumnsPerLane;
    const bool* src = static_cast<const bool*>(s.data);
    for (int64_t r = 0; r < s.rows; ++r)
      for (int64_t lane = 0; lane < ld; ++lane) {
        uint32_t word = 0;
        const int64_t end = std::min(kColumns, s.cols - lane * kColumns);
        for (int64_t c = 0; c < end; ++c)
          word |= static_cast<uint32_t>(read_element(src + r * s.row + (lane * kColumns + c) * s.col)) << c;
        dst[r * ld + lane] = static_cast<T>(word);
      }
    return true;
  } else {
    if (s.cols < ld)
      for (int64_t r = 0; r < s.rows; ++r) std::fill(dst + r * ld + s.cols, dst + (r + 1) * ld, T{0});
    return Pack<L>(s, dst_void, ld);
  }
}

template <class T>
void TransposePanel(const void* panel, int lanes, int64_t k, void* dst, int64_t ld) {
  Transpose(static_cast<const T*>(panel), lanes, lanes, k, static_cast<T*>(dst), ld);
}

// ---- passes over operands ----

// Facts of floats, a vector at a time; NaN is set aside before the extremes are taken.
template <class T>
struct FloatFacts {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  V low, high, least, nans;

  HWY_INLINE FloatFacts() {
    low = least = hn::Set(D(), highest<T>());
    high = hn::Set(D(), lowest<T>());
    nans = hn::Zero(D());
  }
  HWY_INLINE void See(V v) {
    const D d;
    const auto nan = hn::IsNaN(v);
    nans = hn::IfThenElse(nan, hn::Set(d, T{1}), nans);
    v = hn::IfThenElse(nan, hn::Set(d, T{1}), v);
    low = hn::Min(low, v);
    high = hn::Max(high, v);
    least = hn::Min(least, hn::Abs(v));
  }
  HWY_INLINE Facts Get() const {
    const D d;
    Facts f;
    f.nan = !hn::AllFalse(d, hn::Ne(nans, hn::Zero(d)));
    f.minus_infinity = !hn::AllFalse(d, hn::Eq(low, hn::Set(d, lowest<T>())));
    f.plus_infinity = !hn::AllFalse(d, hn::Eq(high, hn::Set(d, highest<T>())));
    f.zero = !hn::AllFalse(d, hn::Eq(least, hn::Zero(d)));
    return f;
  }
};

// Facts of integers; under + the infinity of S is counted apart from the range.
template <class S, class In>
struct IntegerFacts {
  using D = hn::ScalableTag<In>;
  hn::Vec<D> low, high, infinite;

  HWY_INLINE IntegerFacts() {
    low = high = infinite = hn::Zero(D());  // 0 lies within every range that matters
  }
  HWY_INLINE void See(hn::Vec<D> v) {
    const D d;
    if constexpr (is_plus_v<S>) {
      const auto infinity = hn::Eq(v, hn::Set(d, S::template worst<In>()));
      infinite = hn::Or(infinite, hn::VecFromMask(d, infinity));
      v = hn::IfThenZeroElse(infinity, v);
    }
    low = hn::Min(low, v);
    high = hn::Max(high, v);
  }
  HWY_INLINE Facts Get() const {
    const D d;
    alignas(64) In lows[hn::MaxLanes(d)], highs[hn::MaxLanes(d)];
    hn::Store(low, d, lows);
    hn::Store(high, d, highs);
    Facts f;
    f.low = *std::min_element(lows, lows + hn::Lanes(d));
    f.high = *std::max_element(highs, highs + hn::Lanes(d));
    (S::kIsMax ? f.minus_infinity : f.plus_infinity) = !hn::AllFalse(d, hn::Ne(infinite, hn::Zero(d)));
    return f;
  }
};

// Everything that the choice of a path depends on: of floats in the compute type, of integers as they are.
template <class L>
Facts FactsOf(const Source& s) {
  using In = typename L::In;
  if constexpr (std::is_same_v<In, bool>) {
    return {};
  } else {
    using T = std::conditional_t<is_float_v<In>, typename L::T, In>;
    using As = Lowered<typename L::S, In, Path::plain, false>;  // no infinity is moved before it is counted
    const In* src = static_cast<const In*>(s.data);
    // The axis with the smaller stride innermost.
    const bool by_row = std::abs(s.col) <= std::abs(s.row);
    const int64_t outer = by_row ? s.rows : s.cols, inner = by_row ? s.cols : s.rows;
    const int64_t outer_step = by_row ? s.row : s.col, inner_step = by_row ? s.col : s.row;
    const hn::ScalableTag<T> d;
    constexpr int64_t kLanes = hn::MaxLanes(d);
    std::conditional_t<is_float_v<In>, FloatFacts<T>, IntegerFacts<typename L::S, In>> facts;
    for (int64_t i = 0; i < outer; ++i) {
      const In* row = src + i * outer_step;
      int64_t j = 0;
      if (inner_step == 1)
        for (; j + kLanes <= inner; j += kLanes) facts.See(LoadVectorOf<As>(d, row + j));
      for (; j < inner; ++j) facts.See(hn::Set(d, LoadElement<As>(row[j * inner_step])));
    }
    return facts.Get();
  }
}

}  // namespace tropical::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

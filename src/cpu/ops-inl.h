// The vector operations of a core kernel: mul, add and the comparison of argmax, for one semiring and compute type.
// Per-target include guard, after Highway's convention.
#if defined(TROPICAL_CPU_OPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROPICAL_CPU_OPS_INL_H_
#undef TROPICAL_CPU_OPS_INL_H_
#else
#define TROPICAL_CPU_OPS_INL_H_
#endif

#include <hwy/highway.h>

#include "lowering.h"

// g++ keeps an array of vectors in registers only if every loop over it is unrolled; clang does so by itself.
#ifndef TG_UNROLL
#if defined(__GNUC__) && !defined(__clang__)
#define TG_UNROLL _Pragma("GCC unroll 16")
#else
#define TG_UNROLL _Pragma("clang loop unroll(full)")
#endif
#endif

HWY_BEFORE_NAMESPACE();
namespace tropical::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// AVX-512 masks cost nothing; elsewhere partial vectors go through padded buffers.
constexpr bool kMasks = HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86;
constexpr int kRegisters = kMasks ? 32 : 16;

// f(lane of a, lane of b) for every lane: for rare operations without a vector form.
template <class D, class F>
HWY_INLINE hn::Vec<D> PerLane(D d, hn::Vec<D> a, hn::Vec<D> b, F f) {
  using T = hn::TFromD<D>;
  alignas(64) T x[hn::MaxLanes(d)], y[hn::MaxLanes(d)];
  hn::Store(a, d, x);
  hn::Store(b, d, y);
  for (size_t i = 0; i < hn::Lanes(d); ++i) x[i] = f(x[i], y[i]);
  return hn::Load(d, x);
}

// a + b. With AVX-512, floats are added as a * 1 + b, which rounds once and so gives the same value: on Zen 4 the add
// shares its two units with max while the multiply-add has two of its own, so that the pair takes half the time; on
// Intel both run on the same two units and nothing is lost.
template <class D>
HWY_INLINE hn::Vec<D> Sum(D d, hn::Vec<D> a, hn::Vec<D> b) {
  if constexpr (kMasks && std::is_floating_point_v<hn::TFromD<D>>)
    return hn::MulAdd(a, hn::Set(d, hn::TFromD<D>{1}), b);
  else
    return hn::Add(a, b);
}

// a + b saturated; the infinity of S absorbs.
template <class S, class D>
HWY_INLINE hn::Vec<D> SaturatedPlus(D d, hn::Vec<D> a, hn::Vec<D> b) {
  using T = hn::TFromD<D>;
  const auto sum = hn::Add(a, b);
  const auto overflow = hn::MaskFromVec(hn::BroadcastSignBit(hn::And(hn::Xor(a, sum), hn::Xor(b, sum))));
  const auto limit = hn::IfThenElse(hn::Lt(a, hn::Zero(d)), hn::Set(d, lowest<T>()), hn::Set(d, highest<T>()));
  const auto infinity = hn::Set(d, S::template worst<T>());
  const auto infinite = hn::Or(hn::Eq(a, infinity), hn::Eq(b, infinity));
  return hn::IfThenElse(infinite, infinity, hn::IfThenElse(overflow, limit, sum));
}

// kCareful: floats propagate NaN, integers saturate every candidate. Otherwise NaN never occurs, or what comes of it is
// replaced afterwards, and integers cannot wrap.
template <class S, class T, bool kCareful>
struct Ops {
  static constexpr bool kPropagates = kCareful && std::is_floating_point_v<T>;

  template <class D>
  static HWY_INLINE hn::Vec<D> Worst(D d) {
    return hn::Set(d, std::is_same_v<S, OrAnd> ? T{0} : S::template worst<T>());
  }

  template <class D>
  static HWY_INLINE hn::Vec<D> Mul(D d, hn::Vec<D> a, hn::Vec<D> b) {
    if constexpr (std::is_same_v<S, OrAnd>) {
      return hn::And(a, b);
    } else if constexpr (!makes_new_values_v<S>) {
      auto v = hn::Zero(d);
      if constexpr (S::kIsMax)
        v = hn::Min(a, b);
      else
        v = hn::Max(a, b);
      if constexpr (kPropagates) {
        v = hn::IfThenElse(hn::IsNaN(b), b, v);
        v = hn::IfThenElse(hn::IsNaN(a), a, v);
      }
      return v;
    } else if constexpr (is_plus_v<S>) {
      if constexpr (kCareful && !std::is_floating_point_v<T>)
        return SaturatedPlus<S>(d, a, b);
      else
        return Sum(d, a, b);
    } else {
      if constexpr (kCareful && !std::is_floating_point_v<T>)
        return PerLane(d, a, b, [](T x, T y) { return saturating_mul(x, y); });
      else
        return a * b;
    }
  }

  // x is selected over y.
  template <class D>
  static HWY_INLINE hn::Mask<D> Better(D, hn::Vec<D> x, hn::Vec<D> y) {
    const auto better = S::kIsMax ? hn::Gt(x, y) : hn::Lt(x, y);
    if constexpr (kPropagates)
      return hn::Or(better, hn::And(hn::IsNaN(x), hn::Not(hn::IsNaN(y))));
    else
      return better;
  }

  // The better one; x86 keeps a NaN that is already in y.
  template <class D>
  static HWY_INLINE hn::Vec<D> Add(D d, hn::Vec<D> x, hn::Vec<D> y) {
    if constexpr (std::is_same_v<S, OrAnd>)
      return hn::Or(x, y);
    else if constexpr (kPropagates)
      return hn::IfThenElse(Better(d, x, y), x, y);
    else if constexpr (S::kIsMax)
      return hn::Max(x, y);
    else
      return hn::Min(x, y);
  }

  template <class D>
  static HWY_INLINE hn::Vec<D> CanonicalNaN(D d) {
    return hn::Set(d, std::numeric_limits<T>::quiet_NaN());
  }

  // The better one of a product x and an element y of C, whose NaN stays on every target; NaN becomes canonical.
  template <class D>
  static HWY_INLINE hn::Vec<D> Combine(D d, hn::Vec<D> x, hn::Vec<D> y) {
    if constexpr (!std::is_floating_point_v<T>) {
      return Add(d, x, y);
    } else {
      const auto v = hn::IfThenElse(Better(d, x, y), x, y);
      return hn::IfThenElse(hn::IsNaN(v), CanonicalNaN(d), v);
    }
  }

  // What is stored: +0 for a zero and, where NaN can occur, the canonical NaN.
  template <class D>
  static HWY_INLINE hn::Vec<D> Canonical(D d, hn::Vec<D> v) {
    if constexpr (std::is_floating_point_v<T>) v = hn::Add(v, hn::Zero(d));
    if constexpr (kPropagates) v = hn::IfThenElse(hn::IsNaN(v), CanonicalNaN(d), v);
    return v;
  }
};

// Rounding of candidates to the element type before argmax compares them, and of results before they are stored.
template <class L>
struct Rounding {
  template <class D>
  static HWY_INLINE hn::Vec<D> Round(D d, hn::Vec<D> v) {
    using In = typename L::In;
    if constexpr (!L::kRounds) {
      return v;
    } else if constexpr (std::is_same_v<In, bfloat16>) {
      const hn::RebindToUnsigned<D> du;
      const auto u = hn::BitCast(du, v);
      const auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(du, 1u));
      const auto rounded = hn::Add(u, hn::Add(odd, hn::Set(du, 0x7fffu)));
      const auto kept = hn::BitCast(d, hn::And(rounded, hn::Set(du, 0xffff0000u)));
      return hn::IfThenElse(hn::IsNaN(v), v, kept);
    } else if constexpr (std::is_same_v<In, float16>) {
#if HWY_TARGET == HWY_SCALAR
      return PerLane(d, v, v, [](float x, float) { return to_float(from_float<float16>(x)); });
#else
      const hn::Rebind<hwy::float16_t, D> dh;
      return hn::PromoteTo(d, hn::DemoteTo(dh, v));
#endif
    } else {
      using T = hn::TFromD<D>;
      return hn::Min(hn::Max(v, hn::Set(d, T{lowest<In>()})), hn::Set(d, T{highest<In>()}));
    }
  }
};

}  // namespace tropical::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

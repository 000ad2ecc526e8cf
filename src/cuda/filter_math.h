// The filter's arithmetic: f32 bounds on sums of f64, and what they prove. docs/certified-filtering.md has the reasons
// line by line. The host compiler reads it too, for a test on machines without a GPU.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

#include "tropical_gemm/semiring.h"

namespace tropical::cuda::filter {

#if !defined(__CUDA_ARCH__)
// a + b rounded up: to nearest, and one further where the error of that says so. No operand is NaN, no two infinities
// of opposite signs.
template <class T>
inline T add_up_on_host(T a, T b) {
  const T s = a + b;
  if (std::isinf(s)) return s < 0 && std::isfinite(a) && std::isfinite(b) ? -std::numeric_limits<T>::max() : s;
  const T d = s - a, error = (a - (s - d)) + (b - d);
  return error > 0 ? std::nextafter(s, highest<T>()) : s;
}
#endif

TROPICAL_HD inline double add_up(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dadd_ru(a, b);
#else
  return add_up_on_host(a, b);
#endif
}
TROPICAL_HD inline float add_up(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fadd_ru(a, b);
#else
  return add_up_on_host(a, b);
#endif
}
TROPICAL_HD inline float to_float_up(double x) {
#if defined(__CUDA_ARCH__)
  return __double2float_ru(x);
#else
  const auto f = static_cast<float>(x);
  return static_cast<double>(f) < x ? std::nextafter(f, highest<float>()) : f;
#endif
}
TROPICAL_HD inline double add_down(double a, double b) { return -add_up(-a, -b); }
TROPICAL_HD inline float to_float_down(double x) { return -to_float_up(-x); }

// The double below x, which is no NaN; -inf has none.
TROPICAL_HD inline double below(double x) {
  if (x == lowest<double>()) return x;
  if (x == 0) return -detail::bits_to<double>(int64_t{1});
  return detail::bits_to<double>(detail::bits_to<int64_t>(x) + (x > 0 ? -1 : 1));
}

// Bounds are at most -0, so the larger of two has the smaller bits.
TROPICAL_HD inline uint32_t bits_of(float bound) { return detail::bits_to<uint32_t>(bound); }
inline constexpr uint32_t kTop = 0x80000000u, kNothing = 0xff800000u;  // -0 and -inf
inline constexpr uint32_t kSlack = 4;                                  // bounds that close to each other are "near"

TROPICAL_HD inline bool near(uint32_t x, uint32_t y) { return x - y + kSlack <= 2 * kSlack; }

// Entries closer than this to their line's largest count as equal to it.
TROPICAL_HD inline double reach(double shift) { return (shift < 0 ? -shift : shift) * 0x1p-49; }

// At least x - shift, where that is at most 0; NaN never wins here.
TROPICAL_HD inline float bound_of(double x, double shift) {
  if (x != x) return lowest<float>();
  const double d = add_up(x, -shift);
  return d >= -reach(shift) ? -0.0f : to_float_up(d);
}

// At least the rounded value of every sum that is at most r + c + t; NaN where r + c overflows.
TROPICAL_HD inline double ceiling(double r, double c, double t) {
  const double s = r + c, d = s - r, error = (r - (s - d)) + (c - d);
  return s + add_up(error, t);
}

// Whether v, the rounded sum at the first k with the largest bound, is the maximum; with kFirst: and that k its first.
// `best`: bits of the largest bound. `is_near`: whether another k's bound is near it.
template <bool kFirst>
TROPICAL_HD inline bool proven(double v, double r, double c, uint32_t best, bool is_near) {
  if (best == kNothing) return true;
  const auto value = [](uint32_t bits) {
    return static_cast<double>(detail::bits_to<float>(bits < kNothing ? bits : kNothing));
  };
  const double others = value(is_near ? best : best + kSlack + 1);
  if (!(ceiling(r, c, others) <= v)) return false;
  if constexpr (kFirst) {
    double earlier = is_near ? value(best + 1) : others;  // bounds before the first of the largest are lower
    if (best == kTop) {
      const double least = reach(r) < reach(c) ? -reach(r) : -reach(c);
      if (least < earlier) earlier = least;
    }
    return ceiling(r, c, earlier) < v;
  }
  return true;
}

// Every sum whose bound is below this is worse than v, rounded too.
TROPICAL_HD inline float threshold(double v, double r, double c) {
  return to_float_down(add_down(below(v), -add_up(r, c)));
}

}  // namespace tropical::cuda::filter

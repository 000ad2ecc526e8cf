// The filter's arithmetic: cheap bounds on exact sums, and what they prove; docs/certified-filtering-cuda.md has the
// reasons line by line. The host compiler reads it too, for a test on machines without a GPU.
//
// A scheme bounds every entry relative to the largest of its line (r of a row, c of a column), so that winners are near
// 0, where bounds are finest. The sum of two bounds is an unsigned number, smaller for better: a place on a scale.
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

// The number below x, which is no NaN; -inf has none.
template <class T>
TROPICAL_HD inline T below(T x) {
  using Bits = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  if (x == lowest<T>()) return x;
  if (x == 0) return -detail::bits_to<T>(Bits{1});
  return detail::bits_to<T>(static_cast<Bits>(detail::bits_to<Bits>(x) + (x > 0 ? -1 : 1)));
}

// Where the first k is wanted, entries this close to their line's largest count as equal to it (`tie`; else 0): then
// sums that tie with r + c are told from those that round to less.
TROPICAL_HD inline double reach(double shift) { return (shift < 0 ? -shift : shift) * 0x1p-49; }
TROPICAL_HD inline float reach(float shift) { return (shift < 0 ? -shift : shift) * 0x1p-22f; }

// f64 by f32, rounded up. The scale: the bits of sums of bounds, which are at most -0.
struct ByFloat {
  using In = double;
  using Entry = float;
  static constexpr int kChunk = 32;  // steps of k of which the loop keeps only the best sum
  static constexpr uint32_t kTop = 0x80000000u, kNothing = 0xff800000u;  // -0; -inf: nothing but -inf from here on
  static constexpr uint32_t kSlack = 4;                                  // sums of the best chunk this close are added

  // At least x - shift, where that is at most 0; NaN never wins here.
  TROPICAL_HD static Entry entry(double x, double shift, double tie, float) {
    if (x != x) return lowest<float>();
    const double d = add_up(x, -shift);
    return d >= -tie ? -0.0f : to_float_up(d);
  }
  // Of chunks the loop keeps whether another one is within kSlack of the best: what can be said of the second best.
  TROPICAL_HD static bool is_near(uint32_t x, uint32_t best) { return x - best + kSlack <= 2 * kSlack; }
  TROPICAL_HD static uint32_t second(bool is_near, uint32_t best) { return is_near ? best : best + kSlack + 1; }

  TROPICAL_HD static Entry nothing() { return lowest<float>(); }
  TROPICAL_HD static uint32_t sum(Entry a, Entry b) { return detail::bits_to<uint32_t>(add_up(a, b)); }
  // At least A + B - r - c of all that are as low as u.
  TROPICAL_HD static double above(uint32_t u, float) {
    return static_cast<double>(detail::bits_to<float>(u < kNothing ? u : kNothing));
  }
  // At least the rounded value of every sum that is at most r + c + t; NaN where r + c overflows.
  TROPICAL_HD static double ceiling(double r, double c, double t) {
    const double s = r + c, d = s - r, error = (r - (s - d)) + (c - d);
    return s + add_up(error, t);
  }
  // What is lower on the scale than this is worse than v, rounded too.
  TROPICAL_HD static uint32_t limit(double v, double r, double c, float) {
    return kTop | detail::bits_to<uint32_t>(to_float_down(add_down(below(v), -add_up(r, c))));
  }
};

// f32 by fixed point of 16 bits, rounded down: how far below the largest, in units. The scale: sums of that.
struct ByFixed {
  using In = float;
  using Entry = uint16_t;
  static constexpr int kChunk = 64;
  static constexpr uint32_t kTop = 0, kNothing = 32767, kSlack = 1;
  static constexpr uint32_t kMost = 16383;  // of a finite entry, so that two of them stay below kNothing

  // The unit, a power of two, for outputs that lie up to `spread` below the largest of their row and column together.
  TROPICAL_HD static float unit_for(float spread) {
    const float least = (spread > 1e-30f ? spread : 1e-30f) / 16000;
    return detail::bits_to<float>(((detail::bits_to<uint32_t>(least) >> 23) + 1) << 23);
  }
  TROPICAL_HD static Entry entry(float x, float shift, float tie, float unit) {
    if (!(x > lowest<float>())) return kNothing;
    const float d = -add_up(x, -shift);
    if (d <= tie) return 0;
    const float units = d * (1 / unit);
    return static_cast<Entry>(units < kMost ? units : float{kMost});
  }
  TROPICAL_HD static Entry nothing() { return kNothing; }
  TROPICAL_HD static uint32_t sum(Entry a, Entry b) { return uint32_t{a} + b; }
  TROPICAL_HD static double above(uint32_t u, float unit) {
    return -static_cast<double>(u) * static_cast<double>(unit);
  }
  TROPICAL_HD static float ceiling(float r, float c, double t) {
    return static_cast<float>(add_up(add_up(static_cast<double>(r), static_cast<double>(c)), t));
  }
  TROPICAL_HD static uint32_t limit(float v, float r, float c, float unit) {
    const double most = add_up(static_cast<double>(r), static_cast<double>(c));
    const double units = add_up(most, -static_cast<double>(below(v))) / static_cast<double>(unit);
    return units < 0x1p16 ? static_cast<uint32_t>(std::ceil(units)) - 1 : 0xffffu;
  }
};

// Whether v, the best rounded sum among the steps of the first best chunk that are within kSlack of `best`, is the
// maximum; with kFirst: and its first k there the first of all. `second`: at most the place of every other chunk.
template <class F, bool kFirst, class T = typename F::In>
TROPICAL_HD inline bool proven(T v, T r, T c, uint32_t best, uint32_t second, float unit) {
  if (best >= F::kNothing) return true;
  const uint32_t rest = best + F::kSlack + 1;  // of the chunk's other steps
  if (!(F::ceiling(r, c, F::above(second < rest ? second : rest, unit)) <= v)) return false;
  if constexpr (kFirst) {
    const uint32_t before = second > best ? second : best + 1;  // chunks before the first best one are worse than it
    double t = F::above(before < rest ? before : rest, unit);
    if (best == F::kTop) {
      const T least = reach(r) < reach(c) ? reach(r) : reach(c);
      if (-least < t) t = -least;
    }
    return F::ceiling(r, c, t) < v;
  }
  return true;
}

}  // namespace tropical::cuda::filter

// Scalar arithmetic written a second way, to check dtype.h and semiring.h against.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "tropical_gemm/semiring.h"

namespace tropical::testing {

__extension__ using int128 = __int128;

template <class T>
T clamped(int128 x) {
  return static_cast<T>(std::clamp<int128>(x, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

// Significand bits (the hidden one included), least exponent and largest number of a half type.
template <class H>
struct HalfFormat;
template <>
struct HalfFormat<float16> {
  static constexpr int kDigits = 11, kMinExponent = -14;
  static constexpr double kMax = 65504.0;
};
template <>
struct HalfFormat<bfloat16> {
  static constexpr int kDigits = 8, kMinExponent = -126;
  static constexpr double kMax = 0x1.fep127;
};

// x rounded to H, ties to even, as a number.
template <class H>
double rounded(double x) {
  using F = HalfFormat<H>;
  if (x == 0 || std::isnan(x) || std::isinf(x)) return x;
  const int exponent = std::max(std::ilogb(x), F::kMinExponent);
  const double step = std::ldexp(1.0, exponent - F::kDigits + 1);
  const double r = std::nearbyint(x / step) * step;
  return std::abs(r) > F::kMax ? std::copysign(std::numeric_limits<double>::infinity(), x) : r;
}

// The number that the bits of H stand for.
template <class H>
double decoded(uint16_t bits) {
  using F = HalfFormat<H>;
  const int fraction_bits = F::kDigits - 1;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const int exponent = (bits & 0x7fff) >> fraction_bits;
  const int top = 0x7fff >> fraction_bits;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == top)
    return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, F::kMinExponent - fraction_bits);
  return sign * std::ldexp(fraction + (1 << fraction_bits), F::kMinExponent - fraction_bits + exponent - 1);
}

template <class T>
double as_double(T x) {
  return static_cast<double>(widen(x));
}

// Equal as numbers, NaN equal to NaN.
template <class T>
bool same_value(T x, T y) {
  return widen(x) == widen(y) || (is_nan(x) && is_nan(y));
}

}  // namespace tropical::testing

// Element types: the list, their storage structs, and the constants and exact scalar operations on them.
#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>

#if defined(__CUDACC__)
#define TROPICAL_HD __host__ __device__
#else
#define TROPICAL_HD
#endif

namespace tropical {

enum class DType : int32_t { f32, f64, f16, bf16, i16, i32, i64, boolean };

struct float16 {  // IEEE 754 binary16, as stored
  uint16_t bits;
};
struct bfloat16 {  // the upper half of a binary32
  uint16_t bits;
};

template <class... Ts>
struct TypeList {};

// The one list of element types: dispatch, instances, tests and the documentation table derive from it.
using AllTypes = TypeList<float, double, float16, bfloat16, int16_t, int32_t, int64_t, bool>;

template <class T>
struct TypeInfo;
template <>
struct TypeInfo<float> {
  static constexpr DType kId = DType::f32;
  static constexpr const char* kName = "float32";
};
template <>
struct TypeInfo<double> {
  static constexpr DType kId = DType::f64;
  static constexpr const char* kName = "float64";
};
template <>
struct TypeInfo<float16> {
  static constexpr DType kId = DType::f16;
  static constexpr const char* kName = "float16";
};
template <>
struct TypeInfo<bfloat16> {
  static constexpr DType kId = DType::bf16;
  static constexpr const char* kName = "bfloat16";
};
template <>
struct TypeInfo<int16_t> {
  static constexpr DType kId = DType::i16;
  static constexpr const char* kName = "int16";
};
template <>
struct TypeInfo<int32_t> {
  static constexpr DType kId = DType::i32;
  static constexpr const char* kName = "int32";
};
template <>
struct TypeInfo<int64_t> {
  static constexpr DType kId = DType::i64;
  static constexpr const char* kName = "int64";
};
template <>
struct TypeInfo<bool> {
  static constexpr DType kId = DType::boolean;
  static constexpr const char* kName = "bool";
};

template <class T>
inline constexpr bool is_half_v = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;
template <class T>
inline constexpr bool is_float_v = std::is_floating_point_v<T> || is_half_v<T>;

namespace detail {
// Bit copies that both compilers accept in constant expressions.
template <class To, class From>
TROPICAL_HD constexpr To bits_to(From from) {
  return __builtin_bit_cast(To, from);
}
}  // namespace detail

TROPICAL_HD constexpr float to_float(bfloat16 x) { return detail::bits_to<float>(uint32_t{x.bits} << 16); }

TROPICAL_HD constexpr float to_float(float16 x) {
  const uint32_t sign = uint32_t{x.bits & 0x8000u} << 16;
  const uint32_t rest = x.bits & 0x7fffu;
  if (rest >= 0x7c00u) return detail::bits_to<float>(sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
  if (rest >= 0x0400u) return detail::bits_to<float>(sign | ((rest << 13) + 0x38000000u));
  const float magnitude = static_cast<float>(rest) * 0x1p-24f;  // zero and subnormals, exact
  return sign ? -magnitude : magnitude;
}

// Rounds to nearest, ties to even; a NaN becomes the canonical one.
template <class H>
TROPICAL_HD constexpr H from_float(float x);

template <>
TROPICAL_HD constexpr bfloat16 from_float<bfloat16>(float x) {
  const uint32_t u = detail::bits_to<uint32_t>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return {0x7fc0};
  return {static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
}

template <>
TROPICAL_HD constexpr float16 from_float<float16>(float x) {
  const uint32_t u = detail::bits_to<uint32_t>(x);
  const uint32_t sign = (u >> 16) & 0x8000u;
  const uint32_t mag = u & 0x7fffffffu;
  if (mag > 0x7f800000u) return {0x7e00};
  if (mag >= 0x477ff000u) return {static_cast<uint16_t>(sign | 0x7c00u)};  // 65520 and more round to infinity
  if (mag >= 0x38800000u)                                                  // normal: 2^-14 and more
    return {static_cast<uint16_t>(sign | ((mag - 0x38000000u + 0xfffu + ((mag >> 13) & 1u)) >> 13))};
  // Subnormal: adding 0.5 lets the float unit round at 2^-24.
  const float shifted = detail::bits_to<float>(mag) + 0.5f;
  return {static_cast<uint16_t>(sign | (detail::bits_to<uint32_t>(shifted) - 0x3f000000u))};
}

// The type in which one candidate of T is computed exactly as NumPy does, before rounding back.
template <class T>
struct Wide {
  using type = T;
};
template <>
struct Wide<float16> {
  using type = float;
};
template <>
struct Wide<bfloat16> {
  using type = float;
};
template <class T>
using wide_t = typename Wide<T>::type;

template <class T>
TROPICAL_HD constexpr wide_t<T> widen(T x) {
  if constexpr (is_half_v<T>)
    return to_float(x);
  else
    return x;
}
template <class T>
TROPICAL_HD constexpr T narrow(wide_t<T> x) {
  if constexpr (is_half_v<T>)
    return from_float<T>(x);
  else
    return x;
}

template <class T>
TROPICAL_HD constexpr bool is_nan(T x) {
  if constexpr (is_half_v<T>)
    return is_nan(to_float(x));
  else if constexpr (std::is_floating_point_v<T>)
    return x != x;
  else
    return false;
}

// Stored results are canonical: +0 for a zero, one fixed quiet NaN.
template <class T>
TROPICAL_HD constexpr T canonical(T x) {
  if constexpr (is_half_v<T>)
    return is_nan(x) ? narrow<T>(std::numeric_limits<float>::quiet_NaN()) : (x.bits & 0x7fff) == 0 ? T{0} : x;
  else if constexpr (std::is_floating_point_v<T>)
    return x != x ? std::numeric_limits<T>::quiet_NaN() : x + T{0};
  else
    return x;
}

// The largest and the smallest element: infinities for floats, the extremes for integers.
template <class T>
TROPICAL_HD constexpr T highest() {
  if constexpr (std::is_same_v<T, float16>)
    return {0x7c00};
  else if constexpr (std::is_same_v<T, bfloat16>)
    return {0x7f80};
  else if constexpr (std::is_floating_point_v<T>)
    return std::numeric_limits<T>::infinity();
  else
    return std::numeric_limits<T>::max();
}
template <class T>
TROPICAL_HD constexpr T lowest() {
  if constexpr (std::is_same_v<T, float16>)
    return {0xfc00};
  else if constexpr (std::is_same_v<T, bfloat16>)
    return {0xff80};
  else if constexpr (std::is_floating_point_v<T>)
    return -std::numeric_limits<T>::infinity();
  else
    return std::numeric_limits<T>::min();
}

// Exact integer sum and product, saturated at the extremes of T.
template <class T>
TROPICAL_HD constexpr T saturating_add(T a, T b) {
  if (b > 0 && a > highest<T>() - b) return highest<T>();
  if (b < 0 && a < lowest<T>() - b) return lowest<T>();
  return static_cast<T>(a + b);
}
template <class T>
TROPICAL_HD constexpr T saturating_mul(T a, T b) {
  if (a == 0 || b == 0) return 0;
  const bool negative = (a < 0) != (b < 0);
  if constexpr (sizeof(T) < 8) {
    const int64_t p = int64_t{a} * int64_t{b};
    return p > highest<T>() ? highest<T>() : p < lowest<T>() ? lowest<T>() : static_cast<T>(p);
  } else {
    const T limit = negative ? lowest<T>() : highest<T>();
#if defined(__CUDA_ARCH__)
    const T low = static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    return __mul64hi(a, b) == low >> 63 ? low : limit;  // the upper half only continues the sign
#else
    T product = 0;
    return __builtin_mul_overflow(a, b, &product) ? limit : product;
#endif
  }
}

}  // namespace tropical

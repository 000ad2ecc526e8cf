// The lowering table: which core kernel, compute type and load transform serve a (semiring, element type).
//
//   path      when                                         compute in
//   plain     floats; integers in range, no infinities     the type itself; f16 and bf16 in f32; bool in bits
//   mapped    + on integers in range, with infinities      the type itself, infinities moved inwards on load
//   wide      i16 and i32 out of range                     i32 and i64, clamped once on store
//   careful   infinities that make NaN; i64 out of range   candidates that propagate NaN or saturate one by one
#pragma once
#include <cstdint>

#include "tropical_gemm/semiring.h"

namespace tropical {

// How an element lies in memory. Bytes of bool arrays come from anywhere: any but 0 is true, as in NumPy, though C++
// knows only 0 and 1.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
template <class T>
inline T read_element(const T* p) {
  if constexpr (std::is_same_v<T, bool>)
    return *reinterpret_cast<const Stored<T>*>(p) != 0;
  else
    return *p;
}

enum class Path : int { plain, mapped, wide, careful };

template <class S>
inline constexpr bool is_plus_v = std::is_same_v<S, MaxPlus> || std::is_same_v<S, MinPlus>;
template <class S>
inline constexpr bool is_times_v = std::is_same_v<S, MaxMul> || std::is_same_v<S, MinMul>;
template <class S>
inline constexpr bool makes_new_values_v = is_plus_v<S> || is_times_v<S>;

// Whether the table has a row.
template <class S, class In>
constexpr bool has_path(Path path) {
  if (!supported_v<S, In>) return false;
  if (std::is_same_v<In, bool>) return path == Path::plain;
  if (is_float_v<In>) return path == Path::plain || path == Path::careful;
  if (!makes_new_values_v<S>) return path == Path::plain;
  switch (path) {
    case Path::plain:
      return is_plus_v<S> || !std::is_same_v<In, int16_t>;  // i16 products go through i32 at once
    case Path::mapped:
      return is_plus_v<S>;
    case Path::wide:
      return !std::is_same_v<In, int64_t>;
    case Path::careful:
      return std::is_same_v<In, int64_t>;
  }
  return false;
}

// One row: S and In as the user sees them, Core and T as the kernels do.
template <class S_, class In_, Path path, bool kArgmax>
struct Lowered {
  using S = S_;
  using In = In_;
  static constexpr Path kPath = path;
  static constexpr bool kBits = std::is_same_v<In, bool> && !kArgmax;
  static constexpr int kColumnsPerLane = kBits ? 32 : 1;
  // argmax over bool is that of max_min over {0, 1}.
  using Core = std::conditional_t<std::is_same_v<In, bool> && kArgmax, MaxMin, S>;
  using T = std::conditional_t<
      is_half_v<In>, float,
      std::conditional_t<
          kBits, int32_t,
          std::conditional_t<
              std::is_same_v<In, bool>, int16_t,
              std::conditional_t<path == Path::wide, std::conditional_t<sizeof(In) == 2, int32_t, int64_t>, In>>>>;
  static constexpr bool kCareful = path == Path::careful;
  // Integers under + carry an infinity, stored as the worst element of the order.
  static constexpr bool kMapsInfinity = is_plus_v<S> && (path == Path::mapped || path == Path::wide);
  // Elements are used as they lie in memory.
  static constexpr bool kNative = std::is_same_v<In, T> && !kMapsInfinity;
  // Candidates are rounded to In before they are compared (for argmax; values round once at the end).
  static constexpr bool kRounds = !std::is_same_v<In, T> && !std::is_same_v<In, bool>;

  // Where the infinity of S goes on load. On the mapped path finite elements lie within +-kPlusRange, so that no sum
  // of two wraps and sums with an infinity stay apart from finite ones.
  static constexpr T kInfinity = [] {
    if constexpr (!kMapsInfinity) {
      return T{0};
    } else {
      const T magnitude = static_cast<T>((T{1} << (8 * sizeof(T) - 2)) - 1);  // twice it does not wrap
      return static_cast<T>(S::kIsMax ? -magnitude : magnitude);
    }
  }();
};

// The largest magnitude of a finite element for which the plain and mapped paths are exact under +.
template <class In>
inline constexpr In kPlusRange = static_cast<In>(In{1} << (8 * sizeof(In) - 4));

}  // namespace tropical

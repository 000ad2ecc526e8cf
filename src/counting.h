// Counting the candidates that reach a value: what both backends agree on. It is a maximum; min_plus is that of the
// negated values.
#pragma once
#include <limits>
#include <type_traits>
#include <utility>

#include "params.h"

namespace tropical {

template <class T>
inline constexpr bool counts_v =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>;

__extension__ typedef __int128 int128;

// Sums that cannot leave the type, or stay at its end once they have.
template <class C>
TROPICAL_HD constexpr C add_counts(C x, C y) {
  if constexpr (std::is_same_v<C, int128>) {
    const C sum = static_cast<C>(static_cast<unsigned __int128>(x) + static_cast<unsigned __int128>(y));
    const bool overflow = (x < 0) == (y < 0) && (sum < 0) != (x < 0);
    constexpr C kMost = ~(C{1} << 127);
    return !overflow ? sum : x < 0 ? -kMost : kMost;
  } else {
    return x + y;
  }
}
template <class Stored, class C>
TROPICAL_HD constexpr bool count_fits([[maybe_unused]] C count) {
  if constexpr (std::is_same_v<C, int128>)
    return count <= static_cast<C>(highest<Stored>()) && count >= static_cast<C>(lowest<Stored>());
  else
    return true;
}

inline constexpr const char* kValueOverflow = "a value of the result does not fit its dtype; use int64 or floats";
inline constexpr const char* kCountOverflow = "a count of the result does not fit int64; use float64 counts";

// Values of T as V, in which sums are exact for integers: the zero as `absent`, which no sum of others reaches.
template <class V>
struct Counting {
  static constexpr bool kFloat = std::is_floating_point_v<V>;

  TROPICAL_HD static constexpr V absent() {
    if constexpr (kFloat)
      return -std::numeric_limits<V>::infinity();
    else
      return -(V{1} << static_cast<int>(8 * sizeof(V) - 2));
  }
  // Below this there is a zero in the sum.
  TROPICAL_HD static constexpr bool is_absent(V x) {
    if constexpr (kFloat)
      return x == absent();
    else
      return x < absent() / 2;
  }
  // What a running maximum begins with, and its count is 0.
  TROPICAL_HD static constexpr V start() {
    if constexpr (kFloat)
      return absent();
    else
      return 3 * (absent() / 2);
  }

  template <class T>
  TROPICAL_HD static constexpr V load(T x, bool is_min) {
    if constexpr (!kFloat)
      if (x == (is_min ? highest<T>() : lowest<T>())) return absent();
    return is_min ? -static_cast<V>(x) : static_cast<V>(x);
  }
  // The value of a result, and whether it fits; `x` is not absent.
  template <class T>
  TROPICAL_HD static constexpr bool store(V x, bool is_min, T& to) {
    const V value = is_min ? -x : x;
    if constexpr (kFloat) {
      to = canonical(static_cast<T>(value));
      return true;
    } else {
      // The extremes are infinities.
      if (value >= static_cast<V>(highest<T>()) || value <= static_cast<V>(lowest<T>())) return false;
      to = static_cast<T>(value);
      return true;
    }
  }
};

// C = A B is Ct = Bt At.
inline CountParams turned(const CountParams& p) {
  CountParams t = p;
  std::swap(t.m, t.n);
  t.a = p.b, t.b = p.a, t.a_count = p.b_count, t.b_count = p.a_count;
  for (Operand* x : {&t.a, &t.b, &t.c, &t.a_count, &t.b_count, &t.c_count}) std::swap(x->row, x->col);
  return t;
}

}  // namespace tropical

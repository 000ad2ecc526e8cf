// The semirings. One struct each, constants nowhere else; compiled by the host compiler and by nvcc.
//
//   C[i,j] = add_k mul(A[i,k], B[k,j])
//
// Each struct S offers, for every element type T with supported<S, T>:
//   zero<T>()      the result for K = 0
//   one<T>()       neutral for mul
//   worst<T>()     where an accumulator starts: no candidate is worse
//   mul(a, b)      exact and saturating for integers, rounded once for floats; NaN propagates
//   better(x, y)   x is strictly better than y (false with a NaN)
//   kMasks         whether a result equal to zero means "nothing was selected" (argmax -1)
#pragma once
#include "tropical_gemm/dtype.h"

namespace tropical {

enum class Semiring : int32_t { max_plus, min_plus, max_mul, min_mul, max_min, min_max, or_and };

namespace detail {

struct Max {
  static constexpr bool kIsMax = true;
  template <class T>
  TROPICAL_HD static constexpr T worst() {
    return lowest<T>();
  }
  template <class T>
  TROPICAL_HD static constexpr bool better(T x, T y) {
    return widen(x) > widen(y);
  }
};
struct Min {
  static constexpr bool kIsMax = false;
  template <class T>
  TROPICAL_HD static constexpr T worst() {
    return highest<T>();
  }
  template <class T>
  TROPICAL_HD static constexpr bool better(T x, T y) {
    return widen(x) < widen(y);
  }
};

// max or min of two elements with NumPy's rule: a NaN operand is the result.
template <class Order, class T>
TROPICAL_HD constexpr T pick(T a, T b) {
  if (is_nan(a)) return a;
  if (is_nan(b)) return b;
  return Order::better(b, a) ? b : a;
}

template <class T>
TROPICAL_HD constexpr T number(int x) {
  if constexpr (is_half_v<T>)
    return from_float<T>(static_cast<float>(x));
  else
    return static_cast<T>(x);
}

// a + b. For integers the worst element of the order is the infinity of the semiring and absorbs.
template <class Order>
struct Plus : Order {
  static constexpr bool kMasks = true;
  template <class T>
  TROPICAL_HD static constexpr T zero() {
    return Order::template worst<T>();
  }
  template <class T>
  TROPICAL_HD static constexpr T one() {
    return number<T>(0);
  }
  template <class T>
  TROPICAL_HD static constexpr T mul(T a, T b) {
    if constexpr (is_float_v<T>) {
      return narrow<T>(widen(a) + widen(b));
    } else {
      const T infinity = Order::template worst<T>();
      return a == infinity || b == infinity ? infinity : saturating_add(a, b);
    }
  }
};

// a * b. The zero of max_mul is the ordinary number 0, which a product may well be.
template <class Order>
struct Times : Order {
  static constexpr bool kMasks = !Order::kIsMax;
  template <class T>
  TROPICAL_HD static constexpr T zero() {
    if constexpr (Order::kIsMax)
      return number<T>(0);
    else
      return highest<T>();
  }
  template <class T>
  TROPICAL_HD static constexpr T one() {
    return number<T>(1);
  }
  template <class T>
  TROPICAL_HD static constexpr T mul(T a, T b) {
    if constexpr (is_float_v<T>)
      return narrow<T>(widen(a) * widen(b));
    else
      return saturating_mul(a, b);
  }
};

// The other order's choice between a and b.
template <class Order, class Inner>
struct Choose : Order {
  static constexpr bool kMasks = true;
  template <class T>
  TROPICAL_HD static constexpr T zero() {
    return Order::template worst<T>();
  }
  template <class T>
  TROPICAL_HD static constexpr T one() {
    return Inner::template worst<T>();
  }
  template <class T>
  TROPICAL_HD static constexpr T mul(T a, T b) {
    return pick<Inner>(a, b);
  }
};

}  // namespace detail

struct MaxPlus : detail::Plus<detail::Max> {
  static constexpr Semiring kId = Semiring::max_plus;
  static constexpr const char* kName = "max_plus";
};
struct MinPlus : detail::Plus<detail::Min> {
  static constexpr Semiring kId = Semiring::min_plus;
  static constexpr const char* kName = "min_plus";
};
struct MaxMul : detail::Times<detail::Max> {
  static constexpr Semiring kId = Semiring::max_mul;
  static constexpr const char* kName = "max_mul";
};
struct MinMul : detail::Times<detail::Min> {
  static constexpr Semiring kId = Semiring::min_mul;
  static constexpr const char* kName = "min_mul";
};
struct MaxMin : detail::Choose<detail::Max, detail::Min> {
  static constexpr Semiring kId = Semiring::max_min;
  static constexpr const char* kName = "max_min";
};
struct MinMax : detail::Choose<detail::Min, detail::Max> {
  static constexpr Semiring kId = Semiring::min_max;
  static constexpr const char* kName = "min_max";
};
// or = max and and = min on {false, true}; its zero is an ordinary value, so nothing is masked.
struct OrAnd : detail::Choose<detail::Max, detail::Min> {
  static constexpr Semiring kId = Semiring::or_and;
  static constexpr const char* kName = "or_and";
  static constexpr bool kMasks = false;
};

// The one list of semirings, in the order of the enumeration.
using AllSemirings = TypeList<MaxPlus, MinPlus, MaxMul, MinMul, MaxMin, MinMax, OrAnd>;
// What the enumeration and that of the C interface number.
constexpr bool is_semiring(int32_t number) {
  const auto count = []<class... S>(TypeList<S...>) { return static_cast<int32_t>(sizeof...(S)); };
  return number >= 0 && number < count(AllSemirings{});
}

template <class S, class T>
inline constexpr bool supported_v = std::is_same_v<S, OrAnd> == std::is_same_v<T, bool>;

// Gradients exist for the numeric semirings on floating-point types.
template <class S, class T>
inline constexpr bool differentiable_v = supported_v<S, T>&& is_float_v<T>;

}  // namespace tropical

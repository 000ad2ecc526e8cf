// The laws that the kernels and their callers rely on, and every ⊗ against arithmetic written a second way.
#include "tropical_gemm/semiring.h"

#include <gtest/gtest.h>

#include "cases.h"
#include "exact.h"

namespace tropical::testing {
namespace {

template <class T>
std::vector<T> interesting() {
  std::vector<T> values;
  if constexpr (std::is_same_v<T, bool>) {
    values = {false, true};
  } else if constexpr (is_float_v<T>) {
    const auto add = [&](double x) {
      if constexpr (is_half_v<T>)
        values.push_back(from_float<T>(static_cast<float>(x)));
      else
        values.push_back(static_cast<T>(x));
    };
    for (const double x :
         {0.0, 0x1p-24, 0x1p-14, .25, .5, .75, 1.0, 1.5, 3.0, 100.0, 2047.0, 2048.0, 65504.0, 1e30, 1e308})
      add(x), add(-x);
    values.push_back(lowest<T>());
    values.push_back(highest<T>());
    add(std::numeric_limits<double>::quiet_NaN());
  } else {
    for (const int step : {0, 1, 2, 7}) {
      values.push_back(static_cast<T>(lowest<T>() + step));
      values.push_back(static_cast<T>(highest<T>() - step));
      values.push_back(static_cast<T>(step));
      values.push_back(static_cast<T>(-step));
      values.push_back(static_cast<T>(lowest<T>() / 2 + step));
      values.push_back(static_cast<T>(highest<T>() / 2 + step));
    }
  }
  return values;
}

// S::mul by other means: 128-bit integers, or doubles rounded once.
template <class S, class T>
T product(T a, T b) {
  constexpr bool kPlus = std::is_same_v<S, MaxPlus> || std::is_same_v<S, MinPlus>;
  constexpr bool kTimes = std::is_same_v<S, MaxMul> || std::is_same_v<S, MinMul>;
  if constexpr (!kPlus && !kTimes) {
    if (is_nan(a) || is_nan(b)) return is_nan(a) ? a : b;
    return (S::kIsMax ? widen(a) <= widen(b) : widen(a) >= widen(b)) ? a : b;
  } else if constexpr (is_half_v<T>) {
    const double x = as_double(a), y = as_double(b);
    return from_float<T>(static_cast<float>(rounded<T>(kPlus ? x + y : x * y)));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(kPlus ? as_double(a) + as_double(b) : as_double(a) * as_double(b));
  } else if constexpr (kPlus) {
    constexpr T kInfinity = S::kIsMax ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
    return a == kInfinity || b == kInfinity ? kInfinity : clamped<T>(int128{a} + b);
  } else {
    return clamped<T>(int128{a} * b);
  }
}

template <class S, class T>
T sum(T a, T b) {
  return detail::pick<std::conditional_t<S::kIsMax, detail::Max, detail::Min>>(a, b);
}

// max_mul is a semiring on [0, inf), min_mul on (0, inf]; the others everywhere but at NaN.
template <class S, class T>
bool in_domain(T x) {
  if (is_nan(x)) return false;
  if constexpr (std::is_same_v<S, MaxMul>) return as_double(x) >= 0 && !std::isinf(as_double(x));
  if constexpr (std::is_same_v<S, MinMul>) return as_double(x) > 0;
  if constexpr (std::is_same_v<S, MaxPlus>)
    return !(is_float_v<T> && as_double(x) == std::numeric_limits<double>::infinity());
  if constexpr (std::is_same_v<S, MinPlus>)
    return !(is_float_v<T> && as_double(x) == -std::numeric_limits<double>::infinity());
  return true;
}

template <class F>
void for_each_pair(F&& f) {
  for (const Pair pair : supported_pairs()) {
    SCOPED_TRACE(std::string(semiring_name(pair.semiring)) + " " + dtype_name(pair.dtype));
    visit(pair.semiring, pair.dtype, f);
  }
}

TEST(Semiring, MulIsExactThenRoundedOrSaturated) {
  for_each_pair([]<class S, class T>() {
    for (const T a : interesting<T>())
      for (const T b : interesting<T>())
        EXPECT_TRUE(same_value(S::mul(a, b), product<S>(a, b))) << as_double(a) << ", " << as_double(b);
  });
}

TEST(Semiring, NeutralElements) {
  for_each_pair([]<class S, class T>() {
    for (const T x : interesting<T>()) {
      EXPECT_TRUE(same_value(S::mul(S::template one<T>(), x), x)) << as_double(x);
      EXPECT_TRUE(same_value(S::mul(x, S::template one<T>()), x)) << as_double(x);
      EXPECT_FALSE(S::better(S::template worst<T>(), x)) << as_double(x);
      if (in_domain<S>(x)) {
        EXPECT_TRUE(same_value(sum<S>(S::template zero<T>(), x), x)) << as_double(x);
        EXPECT_TRUE(same_value(S::mul(S::template zero<T>(), x), S::template zero<T>())) << as_double(x);
      }
    }
  });
}

TEST(Semiring, Distributes) {
  for_each_pair([]<class S, class T>() {
    for (const T a : interesting<T>())
      for (const T b : interesting<T>())
        for (const T c : interesting<T>()) {
          if (!in_domain<S>(a) || !in_domain<S>(b) || !in_domain<S>(c)) continue;
          const T together = S::mul(a, sum<S>(b, c)), apart = sum<S>(S::mul(a, b), S::mul(a, c));
          EXPECT_TRUE(same_value(together, apart)) << as_double(a) << ", " << as_double(b) << ", " << as_double(c);
        }
  });
}

TEST(Semiring, MulCommutes) {
  for_each_pair([]<class S, class T>() {
    for (const T a : interesting<T>())
      for (const T b : interesting<T>()) EXPECT_TRUE(same_value(S::mul(a, b), S::mul(b, a)));
  });
}

TEST(Semiring, NanPropagatesAndIsNeverBetter) {
  for_each_pair([]<class S, class T>() {
    if constexpr (is_float_v<T>) {
      const T nan = narrow<T>(std::numeric_limits<wide_t<T>>::quiet_NaN());
      for (const T x : interesting<T>()) {
        EXPECT_TRUE(is_nan(S::mul(nan, x)) && is_nan(S::mul(x, nan))) << as_double(x);
        EXPECT_FALSE(S::better(nan, x) || S::better(x, nan)) << as_double(x);
      }
    }
  });
}

TEST(Semiring, InfinityAbsorbsAndSaturationStops) {
  EXPECT_EQ(MaxPlus::mul<int32_t>(INT32_MIN, 5), INT32_MIN);
  EXPECT_EQ(MaxPlus::mul<int32_t>(INT32_MIN, INT32_MAX), INT32_MIN);
  EXPECT_EQ(MaxPlus::mul<int32_t>(INT32_MAX, 5), INT32_MAX);
  EXPECT_EQ(MaxPlus::mul<int32_t>(INT32_MIN + 1, -5), INT32_MIN);
  EXPECT_EQ(MinPlus::mul<int64_t>(INT64_MAX, INT64_MIN), INT64_MAX);
  EXPECT_EQ(MinPlus::mul<int64_t>(INT64_MIN, -5), INT64_MIN);
  EXPECT_EQ(MinPlus::mul<int16_t>(32000, 32000), INT16_MAX);
  EXPECT_EQ(MaxMul::mul<int32_t>(INT32_MIN, -1), INT32_MAX);
  EXPECT_EQ(MaxMul::mul<int32_t>(INT32_MIN, 0), 0);
  EXPECT_EQ(MinMul::mul<int64_t>(INT64_MIN, INT64_MAX), INT64_MIN);
}

TEST(Semiring, MasksWhereTheZeroIsInfinite) {
  for_each_pair([]<class S, class T>() {
    const T zero = S::template zero<T>();
    const bool infinite = !std::is_same_v<T, bool> && (same_value(zero, lowest<T>()) || same_value(zero, highest<T>()));
    EXPECT_EQ(S::kMasks, infinite);
  });
}

}  // namespace
}  // namespace tropical::testing

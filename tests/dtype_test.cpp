#include "tropical_gemm/dtype.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "exact.h"
#include "host_tensor.h"

namespace tropical::testing {
namespace {

template <class H>
class DTypeHalf : public ::testing::Test {};
using HalfTypes = ::testing::Types<float16, bfloat16>;
TYPED_TEST_SUITE(DTypeHalf, HalfTypes);

TYPED_TEST(DTypeHalf, EveryPatternDecodesAndComesBack) {
  for (int i = 0; i <= 0xffff; ++i) {
    const TypeParam x{static_cast<uint16_t>(i)};
    const double expected = decoded<TypeParam>(x.bits);
    const float got = to_float(x);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got) && is_nan(x)) << std::hex << i;
      ASSERT_EQ(from_float<TypeParam>(got).bits, canonical(x).bits) << std::hex << i;
    } else {
      ASSERT_EQ(static_cast<double>(got), expected) << std::hex << i;
      ASSERT_EQ(std::signbit(got), (i & 0x8000) != 0) << std::hex << i;
      ASSERT_EQ(from_float<TypeParam>(got).bits, x.bits) << std::hex << i;
    }
  }
}

TYPED_TEST(DTypeHalf, RoundsTiesToEven) {
  // Between each finite number and the next: the middle goes to the even one, the floats beside it do not.
  const int infinity = highest<TypeParam>().bits;
  for (int i = 0; i < infinity; ++i) {
    const float low = to_float(TypeParam{static_cast<uint16_t>(i)});
    // Beyond the largest finite number the next step would be as long as the last one; its end may overflow a float.
    const float step = i + 1 < infinity ? to_float(TypeParam{static_cast<uint16_t>(i + 1)}) - low
                                        : low - to_float(TypeParam{static_cast<uint16_t>(i - 1)});
    const float middle = low + step / 2;
    for (const int sign : {0, 0x8000}) {
      const auto bits = [&](float x) { return from_float<TypeParam>(sign ? -x : x).bits; };
      ASSERT_EQ(bits(middle), sign | (i + (i & 1))) << i;
      ASSERT_EQ(bits(std::nextafter(middle, 0.0f)), sign | i) << i;
      ASSERT_EQ(bits(std::nextafter(middle, std::numeric_limits<float>::infinity())), sign | (i + 1)) << i;
    }
  }
}

TYPED_TEST(DTypeHalf, AgreesWithRoundingInDouble) {
  Rng rng(1);
  for (int i = 0; i < 300'000; ++i) {
    const float x = detail::bits_to<float>(static_cast<uint32_t>(rng.bits()));
    const TypeParam h = from_float<TypeParam>(x);
    const double expected = rounded<TypeParam>(x);
    ASSERT_TRUE(std::isnan(expected) ? is_nan(h) : as_double(h) == expected) << x;
  }
  for (const float x : {std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::min(),
                        std::numeric_limits<float>::max(), std::numeric_limits<float>::infinity(), 0.0f})
    for (const float y : {x, -x}) {
      EXPECT_EQ(as_double(from_float<TypeParam>(y)), rounded<TypeParam>(y)) << y;
      EXPECT_EQ(from_float<TypeParam>(y).bits >> 15, std::signbit(y)) << y;
    }
}

TYPED_TEST(DTypeHalf, CanonicalValues) {
  const uint16_t quiet = std::is_same_v<TypeParam, float16> ? 0x7e00 : 0x7fc0;
  for (int i = 0; i <= 0xffff; ++i) {
    const TypeParam x{static_cast<uint16_t>(i)};
    const uint16_t expected = is_nan(x) ? quiet : (i & 0x7fff) == 0 ? uint16_t{0} : x.bits;
    ASSERT_EQ(canonical(x).bits, expected) << std::hex << i;
  }
}

TEST(DType, CanonicalFloats) {
  const auto bits32 = [](float x) { return detail::bits_to<uint32_t>(canonical(x)); };
  const auto bits64 = [](double x) { return detail::bits_to<uint64_t>(canonical(x)); };
  EXPECT_EQ(bits32(-0.0f), 0u);
  EXPECT_EQ(bits32(detail::bits_to<float>(0xff812345u)), 0x7fc00000u);
  EXPECT_EQ(bits32(-1.5f), detail::bits_to<uint32_t>(-1.5f));
  EXPECT_EQ(bits32(std::numeric_limits<float>::denorm_min()), 1u);
  EXPECT_EQ(bits64(-0.0), 0u);
  EXPECT_EQ(bits64(detail::bits_to<double>(0xfff0000000000001ULL)), 0x7ff8000000000000ULL);
}

template <class T>
class DTypeInteger : public ::testing::Test {};
using IntegerTypes = ::testing::Types<int16_t, int32_t, int64_t>;
TYPED_TEST_SUITE(DTypeInteger, IntegerTypes);

TYPED_TEST(DTypeInteger, SaturatingArithmeticIsExactThenClamped) {
  using T = TypeParam;
  std::vector<T> values = {lowest<T>(), static_cast<T>(lowest<T>() + 1),  -2,          -1, 0, 1,
                           2,           static_cast<T>(highest<T>() - 1), highest<T>()};
  for (int bit = 1; bit < static_cast<int>(8 * sizeof(T)) - 1; ++bit)
    for (const int64_t near : {-1, 0, 1})
      for (const int64_t sign : {-1, 1}) values.push_back(static_cast<T>(sign * ((int64_t{1} << bit) + near)));
  Rng rng(2);
  for (int i = 0; i < 400; ++i) values.push_back(static_cast<T>(rng.bits() >> rng.below(8 * sizeof(T))));
  for (const T a : values)
    for (const T b : values) {
      ASSERT_EQ(saturating_add(a, b), clamped<T>(int128{a} + b)) << a << " + " << b;
      ASSERT_EQ(saturating_mul(a, b), clamped<T>(int128{a} * b)) << a << " * " << b;
    }
}

TEST(DType, Extremes) {
  EXPECT_EQ(to_float(highest<float16>()), std::numeric_limits<float>::infinity());
  EXPECT_EQ(to_float(lowest<bfloat16>()), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(lowest<double>(), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(lowest<int16_t>(), -32768);
  EXPECT_EQ(highest<int64_t>(), std::numeric_limits<int64_t>::max());
  EXPECT_TRUE(highest<bool>() && !lowest<bool>());
}

}  // namespace
}  // namespace tropical::testing

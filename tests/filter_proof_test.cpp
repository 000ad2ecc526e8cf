// The CPU filter's arithmetic, against sums without rounding: bounds are bounds, and what is proved is no less than
// what it is proved against. Then products that are wrong where one rounding goes the wrong way.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cases.h"
#include "cpu/filter_kernels.h"
#include "filter.h"
#include "isas.h"
#include "unrounded.h"

namespace tropical::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct FilterScope {
  ~FilterScope() { set_filter(""); }
};

template <class Test>
void on_each_isa_with_a_filter(const Test& test) {
  const FilterScope restore;
  on_each_isa([&](const std::string&) {
    if (cpu::find_filter(Semiring::max_plus, DType::f64)) test();
  });
}

template <class T>
class FilterProof : public ::testing::Test {};
using Types = ::testing::Types<double, float>;
TYPED_TEST_SUITE(FilterProof, Types);

// Units of a line's elements below its best: never less than the truth, never more than a unit above it.
TYPED_TEST(FilterProof, FixedPointIsAnUpperBound) {
  using T = TypeParam;
  on_each_isa_with_a_filter([] {
    const auto* filter = cpu::find_filter(Semiring::max_plus, TypeInfo<T>::kId);
    Rng rng(1);
    constexpr int64_t kCount = 61;
    for (int round = 0; round < (kFew ? 300 : 3000); ++round) {
      const double unit = std::ldexp(1.0, static_cast<int>(rng.below(30)) - 25);
      // Whole units from the best, but for a little: there the difference rounds to a whole number.
      const T best = static_cast<T>(rng.one_in(2) ? 1 : std::ldexp(rng.unit(), static_cast<int>(rng.below(8))));
      T x[kCount];
      int16_t low[kCount + cpu::kFilterChunk];
      for (T& e : x) {
        const double units = static_cast<double>(rng.below(1 << static_cast<int>(rng.below(16))));
        const double little = (rng.unit() - 0.5) * std::ldexp(1.0, -static_cast<int>(rng.below(45)));
        e = std::min(best, static_cast<T>(static_cast<double>(best) - units * unit + little * unit));
        if (rng.one_in(3)) e = std::min(best, static_cast<T>(little));
      }
      filter->lower_line(x, kCount, static_cast<double>(best), unit, low);
      for (int64_t i = 0; i < kCount; ++i) {
        const Exact below = Exact{x[i]} - Exact{best};
        ASSERT_GE(low[i], cpu::kFilterFloor);
        ASSERT_TRUE(low[i] * Exact{unit} >= below) << x[i] << " " << best << " " << unit;
        ASSERT_TRUE(low[i] == cpu::kFilterFloor || (low[i] - 1) * Exact{unit} < below) << x[i] << " " << best;
      }
      ASSERT_EQ(low[kCount], cpu::kFilterFloor);
    }
  });
}

// One candidate v with bound S: proved only where v is at least r + c + g S, rounded; with argmax, only where it is
// above that of the next lower bound. Sums near the middle of two numbers, where each rounding on the way matters.
TYPED_TEST(FilterProof, ProvesWhatIsTrue) {
  using T = TypeParam;
  on_each_isa_with_a_filter([] {
    const auto* filter = cpu::find_filter(Semiring::max_plus, TypeInfo<T>::kId);
    Rng rng(2);
    constexpr int kDigits = std::numeric_limits<T>::digits, kChunk = cpu::kFilterChunk;
    const int columns = filter->columns;
    int64_t proved = 0, asked = 0;
    T b[kChunk * cpu::kFilterMaxColumns], values[cpu::kFilterMaxColumns];
    int64_t index[cpu::kFilterMaxColumns];  // integers as wide as T
    int16_t b_low[std::size(b)];
    alignas(64) int16_t best[std::size(values)], second[std::size(values)], ids[std::size(values)] = {};
    double bests[std::size(values)];
    for (int round = 0; round < (kFew ? 2000 : 20000); ++round) {
      const double r = rng.one_in(2) ? 1 : static_cast<double>(static_cast<T>(1 + rng.unit()));
      const int unit_at = -static_cast<int>(rng.below(55));
      const double unit = std::ldexp(1.0, unit_at);
      const bool argmax = rng.one_in(2);
      const T a[kChunk] = {};
      const int16_t a_low[kChunk] = {};
      std::fill(std::begin(b_low), std::end(b_low), int16_t{cpu::kFilterFloor});
      for (int j = 0; j < columns; ++j) {
        // Half a last place of what is below 1 or above it, and a little more or less.
        double c = std::ldexp(1.0, -kDigits - static_cast<int>(rng.below(3)));
        if (!rng.one_in(3))
          c += (rng.one_in(2) ? 1 : -1) * std::ldexp(c, -static_cast<int>(1 + rng.below(kDigits - 2)));
        if (rng.one_in(4)) c = std::ldexp(rng.unit(), -static_cast<int>(rng.below(40)));
        c = static_cast<double>(static_cast<T>(c));
        const int scale = rng.one_in(2) ? 4 : 16000;
        const auto s = static_cast<int16_t>(1 - rng.below(scale));
        bests[j] = c, best[j] = second[j] = s;
        b_low[j * kChunk] = s;
        const auto bound = [&](int units) { return static_cast<T>(Exact{r} + Exact{c} + units * Exact{unit}); };
        const T v = rng.one_in(2) ? bound(s) : std::nextafter(bound(s), lowest<T>());
        b[j] = v;
      }
      int64_t work = 0;
      const uint64_t unproven = filter->settle(
          {a, 1, b, a_low, b_low, best, second, ids, r, bests, unit, kChunk, columns, argmax, true, values, index},
          &work);
      for (int j = 0; j < columns; ++j) {
        const auto bound = [&](int units) { return static_cast<T>(Exact{r} + Exact{bests[j]} + units * Exact{unit}); };
        ASSERT_EQ(values[j], b[j]);
        const bool is_true = b[j] >= bound(best[j]) && (!argmax || b[j] > bound(best[j] - 1));
        if (unproven >> j & 1) {
          asked += is_true;
        } else {
          ASSERT_TRUE(is_true) << r << " " << bests[j] << " " << best[j] << " " << unit << " " << argmax;
          ++proved;
        }
      }
    }
    EXPECT_GT(proved, 4 * asked);  // even of such sums most
  });
}

struct Outcome {
  HostTensor values, argmax;
  FilterReport report;
};
Outcome product(Semiring semiring, DType dtype, const HostTensor& a, const HostTensor& b, bool argmax,
                const char* mode) {
  Rng rng(1);
  const int64_t m = a.shape()[0], n = b.shape()[1];
  Outcome got{{dtype, {m, n}, Layout::row_major, rng}, {DType::i32, {m, n}, Layout::row_major, rng}, {}};
  const DLTensor index = got.argmax.dlpack();
  set_filter(mode);
  matmul(semiring, a.dlpack(), b.dlpack(), got.values.dlpack(), argmax ? &index : nullptr);
  got.report = last_filter();
  return got;
}

// Elements that are not -inf, for max_plus.
struct Entry {
  int64_t line, k;
  double value;
};
// The product of matrices of these elements, both ways, with values alone and with indices.
template <class T>
void expect_plain(int64_t m, int64_t n, int64_t k, const std::vector<Entry>& a_entries,
                  const std::vector<Entry>& b_entries, bool is_filtered = true) {
  const DType dtype = TypeInfo<T>::kId;
  on_each_isa_with_a_filter([&] {
    for (const Semiring semiring : {Semiring::max_plus, Semiring::min_plus}) {
      Rng rng(1);
      // Zeros keep their sign.
      const auto signed_as = [&](double x) {
        return static_cast<T>(semiring == Semiring::max_plus || x == 0 ? x : -x);
      };
      HostTensor a(dtype, {m, k}, Layout::row_major, rng), b(dtype, {k, n}, Layout::row_major, rng);
      for (int64_t i = 0; i < m * k; ++i) a.at<T>(i) = signed_as(-kInfinity);
      for (int64_t i = 0; i < k * n; ++i) b.at<T>(i) = signed_as(-kInfinity);
      for (const Entry& e : a_entries) a.at<T>(e.line * k + e.k) = signed_as(e.value);
      for (const Entry& e : b_entries) b.at<T>(e.k * n + e.line) = signed_as(e.value);
      for (const bool argmax : {false, true}) {
        const Outcome plain = product(semiring, dtype, a, b, argmax, "never");
        const Outcome got = product(semiring, dtype, a, b, argmax, "always");
        EXPECT_TRUE(got.values.same_bytes(plain.values)) << semiring_name(semiring) << " " << argmax;
        EXPECT_TRUE(got.argmax.same_bytes(plain.argmax)) << semiring_name(semiring);
        EXPECT_EQ(got.report.filtered > 0, is_filtered);
      }
    }
  });
}

void fill_columns(std::vector<Entry>& b, int64_t n, int64_t k, double value) {
  for (int64_t j = 0; j < n; ++j) b.push_back({j, k, value});
}

// The other candidate's bound is just above the middle of two numbers, by what AddUp has to keep.
TYPED_TEST(FilterProof, SumsThatRoundUpByALittle) {
  constexpr bool kDouble = std::is_same_v<TypeParam, double>;
  const double g = kDouble ? 0x1p-40 : 0x1p-12, half = kDouble ? 0x1p-54 : 0x1p-25, tiny = kDouble ? 0x1p-100 : 0x1p-60;
  std::vector<Entry> b;
  fill_columns(b, 32, 0, 0);
  fill_columns(b, 32, 32, half + tiny);
  fill_columns(b, 32, 1, -1e9);
  fill_columns(b, 32, 2, -1e9);
  // Row 1 is there for the unit, which becomes g.
  expect_plain<TypeParam>(2, 32, 64, {{0, 0, 1 - g}, {0, 32, 1 - g}, {0, 1, 1}, {1, 0, -16384 * g / 1.26}, {1, 2, 0}},
                          b);
}

// A difference that rounds to a whole number of units from above.
TYPED_TEST(FilterProof, DifferencesShortOfAUnit) {
  std::vector<Entry> b;
  fill_columns(b, 8, 0, 0x1p-8);
  fill_columns(b, 8, 1, -1e6);
  fill_columns(b, 8, 32, 0x1p-8);
  expect_plain<TypeParam>(1, 8, 64, {{0, 0, 0}, {0, 1, 1}, {0, 32, 0x1p-60}}, b);
}

// Sums of -0 that are not proved: stored as +0, in place too, as whole panels are.
TYPED_TEST(FilterProof, NegativeZerosComputedAnew) {
  std::vector<Entry> b;
  fill_columns(b, 64, 0, -0.0);
  fill_columns(b, 64, 33, -0.0);
  fill_columns(b, 64, 1, -1e9);
  expect_plain<TypeParam>(2, 64, 64, {{0, 0, -0.0}, {0, 33, -0.0}, {0, 1, 1.5}, {1, 0, -13000}, {1, 1, 0}}, b);
}

// A best element of 2^1000 is filtered, the next larger one is not; on either side and of either sign.
TEST(FilterRange, TheLargestThatIsFiltered) {
  const double limit = cpu::kFilterRange, beyond = std::nextafter(limit, kInfinity);
  for (const double x : {limit, beyond})
    for (const double sign : {1.0, -1.0})
      for (const bool in_a : {false, true}) {
        std::vector<Entry> large, small;
        for (int64_t k = 0; k < 40; ++k) {
          large.push_back({0, k, sign * x - (k == 3 ? 0 : static_cast<double>(k + 1) * 0x1p990)});
          small.push_back({0, k, static_cast<double>(k % 7)});
        }
        expect_plain<double>(1, 1, 40, in_a ? large : small, in_a ? small : large, x == limit);
      }
}

}  // namespace
}  // namespace tropical::testing

// The filters of the GPU's products of floats, their arithmetic step by step on the host: bounds are bounds, what is
// proved is right.
#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <vector>

#include "cases.h"
#include "cuda/filter_math.h"
#include "filter_data.h"
#include "unrounded.h"

namespace tropical::testing {
namespace {

using namespace cuda::filter;

constexpr int64_t kRows = kFew ? 8 : 24, kCols = kRows, kSteps = 1100;

template <class T>
struct Result {
  T value;
  int64_t index;
};

// What the loop keeps of a chunk; whether it is the best so far.
template <class F>
bool see_chunk(uint32_t x, uint32_t& best, bool& near) {
  if constexpr (std::is_same_v<F, ByFloat>) near = F::is_near(x, best) || (near && x >= best);
  if (x >= best) return false;
  best = x;
  return true;
}

template <class F>
struct Product {
  using T = typename F::In;
  std::vector<T> a, b, r, c;
  float unit = 0;

  bool argmax;

  Product(const FilterData& data, uint64_t seed, bool argmax_) : argmax(argmax_) {
    std::vector<double> x(kRows * kSteps), y(kSteps * kCols);
    fill(data, true, false, kRows, kSteps, seed, x.data());
    fill(data, false, false, kSteps, kCols, seed, y.data());
    for (const double v : x) a.push_back(static_cast<T>(v));
    for (const double v : y) b.push_back(static_cast<T>(v));
    for (int64_t i = 0; i < kRows; ++i) r.push_back(largest(&a[i * kSteps], 1));
    for (int64_t j = 0; j < kCols; ++j) c.push_back(largest(&b[j], kCols));
    if constexpr (std::is_same_v<F, ByFixed>) unit = F::unit_for(spread());
  }
  static T largest(const T* line, int64_t step) {
    T peak = lowest<T>();
    for (int64_t k = 0; k < kSteps; ++k) peak = line[k * step] > peak ? line[k * step] : peak;
    return peak == lowest<T>() ? 0 : peak;
  }
  // As measured on a few outputs.
  float spread() const {
    float most = 0;
    for (int64_t i = 0; i < kRows; i += 7)
      for (int64_t j = 0; j < kCols; ++j) {
        float least = highest<float>();
        for (int64_t k = 0; k < kSteps; ++k)
          least = std::fmin(least, (r[i] - a[i * kSteps + k]) + (c[j] - b[k * kCols + j]));
        if (least < highest<float>()) most = std::max(most, least);
      }
    return most;
  }
  T sum(int64_t i, int64_t j, int64_t k) const { return a[i * kSteps + k] + b[k * kCols + j]; }
  bool has_infinity() const { return std::ranges::count(a, highest<T>()) + std::ranges::count(b, highest<T>()) > 0; }
  auto entry(T x, T shift) const { return F::entry(x, shift, argmax ? reach(shift) : 0, unit); }
  std::vector<uint32_t> sums(int64_t i, int64_t j) const {
    std::vector<uint32_t> u;
    for (int64_t k = 0; k < kSteps; ++k)
      u.push_back(F::sum(entry(a[i * kSteps + k], r[i]), entry(b[k * kCols + j], c[j])));
    return u;
  }
  // The definition, for max_plus: the first NaN, or the first of the largest.
  Result<T> defined(int64_t i, int64_t j) const {
    Result<T> best{lowest<T>(), 0};
    for (int64_t k = 0; k < kSteps; ++k) {
      const T t = sum(i, j, k);
      if (t != t) return {t, k};
      if (t > best.value) best = {t, k};
    }
    return best;
  }
  // What the loop over chunks leaves of an output, and what the look into the best chunk makes of it.
  struct Found {
    uint32_t best = ~0u, second = ~0u;
    Result<T> at;
  };
  Found found(int64_t i, int64_t j, const std::vector<uint32_t>& u, bool first_only) const {
    Found f;
    int64_t id = 0;
    bool near = false;
    const auto end_of = [](int64_t k0) { return std::min<int64_t>(k0 + F::kChunk, kSteps); };
    for (int64_t k0 = 0; k0 < kSteps; k0 += F::kChunk) {
      const uint32_t x = *std::min_element(u.begin() + k0, u.begin() + end_of(k0));
      f.second = std::max(f.best, std::min(x, f.second));
      if (see_chunk<F>(x, f.best, near)) id = k0;
    }
    if constexpr (std::is_same_v<F, ByFloat>) f.second = F::second(near, f.best);
    f.at = {lowest<T>(), id};
    for (int64_t k = id; k < end_of(id); ++k)
      if (u[k] <= f.best + (first_only ? 0 : F::kSlack) && sum(i, j, k) > f.at.value) {
        f.at = {sum(i, j, k), k};
        if (first_only) break;
      }
    return f;
  }
  Result<T> rescanned(int64_t i, int64_t j, const std::vector<uint32_t>& u, Result<T> at) const {
    const uint32_t limit = F::limit(at.value, r[i], c[j], unit);
    for (int64_t k = 0; k < kSteps; ++k) {
      if (u[k] > limit) continue;
      const T t = sum(i, j, k);
      if (t > at.value || (t == at.value && k < at.index)) at = {t, k};
    }
    return at;
  }
};

// The share of outputs that are not proved at once.
template <class F, bool kArgmax>
void every_result_is_the_defined_one(const FilterData& data, double& share) {
  int64_t listed = 0;
  for (const uint64_t seed : {1, 2}) {
    const Product<F> p(data, seed, kArgmax);
    if (p.has_infinity()) GTEST_SKIP() << "left to the plain kernels";
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < kCols; ++j) {
        const auto right = p.defined(i, j);
        if (right.value != right.value) continue;  // rows and columns with NaN are flagged
        const std::vector<uint32_t> u = p.sums(i, j);
        for (int64_t k = 0; k < kSteps; ++k) {
          ASSERT_GE(u[k], F::kTop);
          ASSERT_TRUE(u[k] < F::kNothing || p.sum(i, j, k) == lowest<double>());
        }
        const auto right_at = [&](auto at) {
          return at.value == right.value && (!kArgmax || right.value == lowest<double>() || at.index == right.index);
        };
        const auto f = p.found(i, j, u, false);
        const bool is_proven = proven<F, kArgmax>(f.at.value, p.r[i], p.c[j], f.best, f.second, p.unit);
        ASSERT_TRUE(!is_proven || right_at(f.at)) << i << " " << j;
        ASSERT_TRUE(right_at(p.rescanned(i, j, u, f.at))) << i << " " << j;
        listed += !is_proven;
      }
  }
  share = static_cast<double>(listed) / (2 * kRows * kCols);
}

class FilterCudaOn : public ::testing::TestWithParam<FilterData> {
 protected:
  template <class F, bool kArgmax>
  void expect(bool easy) {
    double share = 0;
    every_result_is_the_defined_one<F, kArgmax>(GetParam(), share);
    RecordProperty("not proved", std::to_string(share));
    EXPECT_LE(share, !easy ? 1 : kFew ? .1 : .02);  // the unit is guessed from all outputs, and badly from few
  }
};
TEST_P(FilterCudaOn, DoubleValues) { expect<ByFloat, false>(GetParam().easy); }
TEST_P(FilterCudaOn, DoubleArgmax) { expect<ByFloat, true>(GetParam().easy); }
TEST_P(FilterCudaOn, FloatValues) { expect<ByFixed, false>(GetParam().easy_in_float); }
TEST_P(FilterCudaOn, FloatArgmax) { expect<ByFixed, true>(GetParam().easy_in_float); }

INSTANTIATE_TEST_SUITE_P(Data, FilterCudaOn, ::testing::ValuesIn(kFilterData), [](const auto& data) {
  std::string name = data.param.name;
  std::erase_if(name, [](char x) { return !std::isalnum(static_cast<unsigned char>(x)); });
  return name;
});

// Believing the k of the best bounds, where sums differ by less than bounds can tell, is wrong: so the proof is needed.
template <class F>
int64_t wrong_without_proof() {
  int64_t wrong = 0;
  for (const FilterData& data : kFilterData) {
    if (std::string(data.name) != "1/64 grid with 2^-30" && std::string(data.name) != "randn") continue;
    const Product<F> p(data, 1, false);
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < kCols; ++j) wrong += p.found(i, j, p.sums(i, j), true).at.value != p.defined(i, j).value;
  }
  return wrong;
}
TEST(FilterCuda, WithoutProofValuesAreWrong) {
  EXPECT_GT(wrong_without_proof<ByFloat>(), 0);
  EXPECT_GT(wrong_without_proof<ByFixed>(), 0);
}

// The inequalities of docs/certified-filtering-cuda.md, on numbers near what rounding can change, in sums without it.
template <class F>
class FilterCudaBounds : public ::testing::Test {
 protected:
  using Number = typename F::In;
  static constexpr int kDigits = std::numeric_limits<Number>::digits, kRounds = kFew ? 20000 : 400000;

  // 1 or so, and beside it something small: half a last place of 1 or of what is below, and a little more or less.
  Number large() { return rng.one_in(2) ? Number{1} : static_cast<Number>(1 + rng.unit()); }
  Number small() {
    double c = std::ldexp(1.0, -kDigits - static_cast<int>(rng.below(3)));
    if (!rng.one_in(3)) c += std::ldexp(rng.one_in(2) ? c : -c, -static_cast<int>(1 + rng.below(kDigits - 2)));
    if (rng.one_in(4)) c = std::ldexp(rng.unit(), -static_cast<int>(rng.below(40)));
    return static_cast<Number>(rng.one_in(2) ? c : -c);
  }
  float unit() { return std::is_same_v<F, ByFixed> ? std::ldexp(1.0F, -static_cast<int>(rng.below(30))) : 0.0F; }
  // A place on the scale, seldom far from the top of what unit() makes of it.
  uint32_t place() {
    if constexpr (std::is_same_v<F, ByFixed>) return static_cast<uint32_t>(rng.below(rng.one_in(2) ? 4 : 32000));
    return detail::bits_to<uint32_t>(-std::ldexp(static_cast<float>(1 + rng.unit()), -static_cast<int>(rng.below(60))));
  }
  static Number rounded(Number r, Number c, double t) { return static_cast<Number>(Exact{r} + Exact{c} + Exact{t}); }

  Rng rng{3};
};
using Schemes = ::testing::Types<ByFloat, ByFixed>;
TYPED_TEST_SUITE(FilterCudaBounds, Schemes);

TYPED_TEST(FilterCudaBounds, SumsOfEntriesAreUpperBounds) {
  using F = TypeParam;
  using T = typename F::In;
  for (int n = 0; n < this->kRounds; ++n) {
    const float unit = this->unit();
    const double step = unit > 0 ? unit : 0x1p-40;
    const auto line = [&](T& x, T& shift) {
      shift = this->rng.one_in(2) ? this->large() : this->small();
      const double steps = static_cast<double>(this->rng.below(1 << static_cast<int>(this->rng.below(15))));
      x = std::min(shift, static_cast<T>(static_cast<double>(shift) - step * steps));
      if (this->rng.one_in(2)) x = std::min(shift, this->small());
    };
    T a, b, r, c;
    line(a, r), line(b, c);
    const double t = F::above(F::sum(F::entry(a, r, 0, unit), F::entry(b, c, 0, unit)), unit);
    ASSERT_TRUE(Exact{t} >= Exact{a} + Exact{b} - Exact{r} - Exact{c}) << a << " " << b << " " << r << " " << c;
  }
}

TYPED_TEST(FilterCudaBounds, CeilingsAreNoLowerThanRoundedSums) {
  using F = TypeParam;
  for (int n = 0; n < this->kRounds; ++n) {
    const auto r = this->large(), c = this->small();
    const double t = F::above(this->place(), this->unit());
    ASSERT_GE(F::ceiling(r, c, t), this->rounded(r, c, t)) << r << " " << c << " " << t;
  }
}

TYPED_TEST(FilterCudaBounds, BeyondTheLimitSumsRoundToLess) {
  using F = TypeParam;
  using T = typename F::In;
  for (int n = 0; n < this->kRounds; ++n) {
    const T r = this->large(), c = this->small();
    const float unit = this->unit();
    const T v = this->rounded(r, c, F::above(this->place(), unit));
    const uint32_t beyond = F::limit(v, r, c, unit) + 1;
    if (beyond >= F::kNothing) continue;
    ASSERT_LT(this->rounded(r, c, F::above(beyond, unit)), v) << r << " " << c << " " << unit;
  }
}

// Nothing is proved that some chunk could contradict: another one at `second` or later, the best one's own rest, and
// for the index those before it.
TYPED_TEST(FilterCudaBounds, IsProvedOnlyWhereNothingElseReachesIt) {
  using F = TypeParam;
  using T = typename F::In;
  int64_t proved = 0;
  for (int n = 0; n < this->kRounds; ++n) {
    const T r = this->large(), c = this->small();
    const float unit = this->unit();
    const uint32_t best = this->rng.one_in(8) ? F::kTop : this->place();
    const uint32_t second = best + static_cast<uint32_t>(this->rng.below(4)), rest = best + F::kSlack + 1;
    const auto at = [&](uint32_t u) { return this->rounded(r, c, F::above(u, unit)); };
    T v = at(best + static_cast<uint32_t>(this->rng.below(3)));
    if (this->rng.one_in(2)) v = below(v);
    const T most = at(std::min(second, rest));
    // Before: worse than the best one, and below the top by more than counts as equal to it.
    T most_before = at(std::min({std::max(second, best + 1), rest}));
    if (best == F::kTop)
      most_before = std::min(most_before, static_cast<T>(Exact{r} + Exact{c} - Exact{std::min(reach(r), reach(c))}));
    if (proven<F, false>(v, r, c, best, second, unit)) {
      ASSERT_GE(v, most) << r << " " << c << " " << best << " " << second;
      ++proved;
    }
    if (proven<F, true>(v, r, c, best, second, unit)) {
      ASSERT_GE(v, most) << r << " " << c << " " << best << " " << second;
      ASSERT_GT(v, most_before) << r << " " << c << " " << best << " " << second;
      ++proved;
    }
  }
  EXPECT_GT(proved, this->kRounds / 8);
}

// By float the place of the second best chunk is known by a flag alone.
TEST(FilterCuda, OtherChunksAreNoBetterThanTheSecond) {
  Rng rng(5);
  for (int n = 0; n < 100000; ++n) {
    uint32_t best = ~0u, places[6];
    bool near = false;
    size_t first = 0;
    for (size_t i = 0; i < std::size(places); ++i) {
      places[i] = ByFloat::kTop + static_cast<uint32_t>(rng.below(20));
      if (see_chunk<ByFloat>(places[i], best, near)) first = i;
    }
    for (size_t i = 0; i < std::size(places); ++i) {
      ASSERT_GE(places[i], best);
      ASSERT_TRUE(i == first || places[i] >= ByFloat::second(near, best)) << places[i] << " " << best;
    }
  }
}

// The roundings against those of the processor.
TEST(FilterCuda, RoundsUp) {
  Rng rng(1);
  const auto upward = [](auto x, auto y) {
    const int before = std::fegetround();
    std::fesetround(FE_UPWARD);
    volatile auto a = x, b = y;
    volatile auto s = a + b;
    std::fesetround(before);
    return s;
  };
  const auto number = [&]<class T, class Bits>(T, Bits) {
    for (;;) {
      const T x = detail::bits_to<T>(static_cast<Bits>(rng.bits()));
      if (std::isfinite(x)) return x;
    }
  };
  for (int n = 0; n < 200000; ++n) {
    const double x = number(double(), uint64_t()), y = rng.one_in(2) ? number(double(), uint64_t()) : x * rng.unit();
    ASSERT_EQ(add_up(x, -y), upward(x, -y)) << x << " " << y;
    ASSERT_EQ(add_down(x, y), -upward(-x, -y)) << x << " " << y;
    const float f = -std::abs(number(float(), uint32_t())),
                g = rng.one_in(2) ? -std::abs(number(float(), uint32_t())) : f / 3;
    ASSERT_EQ(add_up(f, g), upward(f, g)) << f << " " << g;
    const double z = rng.one_in(2) ? x : double{f} * (1 + 1e-9 * rng.unit());
    const float up = to_float_up(z);
    ASSERT_GE(double{up}, z);
    ASSERT_TRUE(up == -std::numeric_limits<float>::max() || double{std::nextafter(up, -INFINITY)} < z) << z;
    ASSERT_LT(below(x), x);
    ASSERT_EQ(below(x), std::nextafter(x, -kInf));
  }
  EXPECT_EQ(below(0.0), -5e-324);
  EXPECT_EQ(below(-0.0), -5e-324);
  EXPECT_EQ(below(kInf), std::numeric_limits<double>::max());
  EXPECT_EQ(below(-kInf), -kInf);
}

}  // namespace
}  // namespace tropical::testing

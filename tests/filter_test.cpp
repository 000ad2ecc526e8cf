// Certified filtering against the plain kernels, bit by bit, on data that is easy, hard or hopeless for it.
#include "filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cases.h"
#include "reference.h"
#include "validate.h"

namespace tropical::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Element (i, k) of an operand; `random` is uniform in [0, 1), `normal` about a standard deviation wide.
struct Draw {
  Rng& rng;
  int64_t line, place, lines;  // along k, and across
  double random() const { return rng.unit(); }
  double normal() const {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += rng.unit();
    return sum;
  }
  double below(int64_t n) const { return static_cast<double>(rng.below(n)); }
};

struct Kind {
  const char* name;
  double (*draw)(const Draw&);
};
constexpr Kind kKinds[] = {
    {"uniform", [](const Draw& d) { return d.random(); }},
    {"normal", [](const Draw& d) { return d.normal(); }},
    {"all negative", [](const Draw& d) { return -1 - d.random(); }},
    {"log probabilities", [](const Draw& d) { return std::log(d.random() + 1e-300); }},
    {"integers", [](const Draw& d) { return d.below(1000); }},
    {"few integers", [](const Draw& d) { return d.below(10); }},
    {"integers and noise", [](const Draw& d) { return d.below(10) + 1e-9 * d.random(); }},
    {"noise below the resolution", [](const Draw& d) { return d.below(100) / 64 + d.below(3) * 0x1p-30; }},
    {"noise of the last bit", [](const Draw& d) { return d.below(4) + d.below(3) * 0x1p-50; }},
    {"cents", [](const Draw& d) { return d.below(1000) / 100; }},
    {"1e12 + u", [](const Draw& d) { return 1e12 + d.random(); }},
    {"pseudo-infinities", [](const Draw& d) { return d.rng.one_in(2) ? -1e30 : d.random(); }},
    {"denormal", [](const Draw& d) { return 1e-310 * d.random(); }},
    {"smallest", [](const Draw& d) { return 0x1p-1074 * (d.below(9) - 4); }},
    {"huge", [](const Draw& d) { return 1e200 * d.normal(); }},
    {"overflowing", [](const Draw& d) { return 1.7e308 * (2 * d.random() - 1); }},
    {"overflowing downwards", [](const Draw& d) { return -1.7e308 * d.random(); }},
    {"sparse NaN", [](const Draw& d) { return d.rng.one_in(500) ? std::nan("") : d.normal(); }},
    {"sparse infinities",
     [](const Draw& d) { return d.rng.one_in(100) ? (d.rng.one_in(2) ? kInfinity : -kInfinity) : d.normal(); }},
    {"70 % -inf", [](const Draw& d) { return d.random() < 0.7 ? -kInfinity : d.normal(); }},
    {"70 % +inf", [](const Draw& d) { return d.random() < 0.7 ? kInfinity : d.normal(); }},
    {"lines of -inf", [](const Draw& d) { return d.line % 5 == 3 || d.place % 7 == 2 ? -kInfinity : d.normal(); }},
    {"lines of +inf", [](const Draw& d) { return d.line % 5 == 3 || d.place % 7 == 2 ? kInfinity : d.normal(); }},
    {"all -inf", [](const Draw&) { return -kInfinity; }},
    {"constant", [](const Draw&) { return 3.25; }},
    {"signed zeros", [](const Draw& d) { return d.rng.one_in(2) ? 0.0 : -0.0; }},
    {"near-ties along lines",
     [](const Draw& d) {
       const double x = static_cast<double>(d.line) / static_cast<double>(d.lines) - static_cast<double>(d.place) / 100;
       return -std::hypot(x, 1e-4 * d.random());
     }},
    {"wide scales of rows",
     [](const Draw& d) { return std::pow(10.0, static_cast<double>(d.line % 40)) * d.normal(); }},
    {"wide scales", [](const Draw& d) { return std::exp(10 * d.normal()); }},
    {"offsets of rows", [](const Draw& d) { return 1e3 * static_cast<double>(d.line) + d.normal(); }},
    {"rising", [](const Draw& d) { return 0.01 * static_cast<double>(d.place) + d.random(); }},
};

const Kind& named(const std::string& name) {
  return *std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& kind) { return kind.name == name; });
}

// `lines` (rows of a, columns of b) lie along `axis`.
template <class T>
void draw(HostTensor& x, const Kind& kind, size_t axis, Rng& rng) {
  const int64_t rows = x.shape()[0], cols = x.shape()[1];
  for (int64_t i = 0; i < rows * cols; ++i) {
    const int64_t r = i / cols, c = i % cols;
    const Draw d{rng, axis == 0 ? r : c, axis == 0 ? c : r, axis == 0 ? rows : cols};
    x.at<T>(i) = static_cast<T>(kind.draw(d));
  }
}

struct FilterScope {
  ~FilterScope() {
    set_filter("");
    set_isa("");
    filter_without_proof = false;
  }
};

struct Result {
  HostTensor c, argmax;
  FilterReport report;
};

Result product(Semiring s, const HostTensor& a, const HostTensor& b, Result like, bool argmax,
               const MatmulOptions& options, const char* mode) {
  set_filter(mode);
  const DLTensor index = like.argmax.dlpack();
  matmul(s, a.dlpack(), b.dlpack(), like.c.dlpack(), argmax ? &index : nullptr, options);
  like.report = last_filter();
  return like;
}

class Filter : public ::testing::TestWithParam<Pair> {
 protected:
  Semiring semiring() const { return GetParam().semiring; }
  DType dtype() const { return GetParam().dtype; }

  void fill(HostTensor& x, const Kind& kind, size_t axis, Rng& rng) const {
    if (dtype() == DType::f64)
      draw<double>(x, kind, axis, rng);
    else
      draw<float>(x, kind, axis, rng);
  }
  Result empty(int64_t m, int64_t n, Layout layout, Rng& rng) const {
    Result r{{dtype(), {m, n}, layout, rng}, {DType::i32, {m, n}, layout, rng}, {}};
    fill(r.c, kKinds[1], 0, rng);
    return r;
  }
};

bool filters(const std::string& isa) { return isa != "baseline"; }

TEST_P(Filter, EqualsPlainOnEveryKindOfData) {
  const FilterScope restore;
  Rng rng(1);
  MatmulOptions options;
  for (const Kind& kind : kKinds)
    for (const std::string& isa : build_info().isas) {
      if (!filters(isa)) continue;
      set_isa(isa);
      const int64_t m = kFew ? 3 + rng.below(8) : 20 + rng.below(40),
                    n = kFew ? 30 + rng.below(50) : 60 + rng.below(80),
                    k = kFew ? 34 + rng.below(40) : 130 + rng.below(70);
      HostTensor a(dtype(), {m, k}, Layout::row_major, rng), b(dtype(), {k, n}, Layout::row_major, rng);
      fill(a, kind, 0, rng);
      fill(b, kind, 1, rng);
      const Result like = empty(m, n, Layout::row_major, rng);
      for (const bool argmax : {false, true})
        for (const bool accumulate : {false, true}) {
          options.accumulate = accumulate;
          options.threads = 1 + static_cast<int>(rng.below(3));
          options.argmax_offset = argmax ? rng.below(100) : 0;
          const Result plain = product(semiring(), a, b, like, argmax, options, "never");
          EXPECT_EQ(plain.report.filtered, 0);
          // Twice: as it is, which does not filter so small a product, and filtered to the end.
          for (const char* mode : {"auto", "always"}) {
            const Result got = product(semiring(), a, b, like, argmax, options, mode);
            EXPECT_TRUE(got.c.same_bytes(plain.c)) << kind.name << ", " << isa << ", " << mode << ", argmax " << argmax;
            EXPECT_TRUE(got.argmax.same_bytes(plain.argmax)) << kind.name << ", " << isa << ", " << mode;
            EXPECT_LE(got.report.filtered, got.report.outputs);
            if (std::string(mode) == "always" && kind.name == std::string("uniform")) {
              EXPECT_EQ(got.report.filtered, m * n);
            }
          }
        }
    }
}

TEST_P(Filter, EqualsTheReferenceForAnyShapeAndStride) {
  const FilterScope restore;
  Rng rng(2);
  MatmulOptions options;
  for (int i = 0; i < (kFew ? 10 : 150); ++i) {
    const Kind& kind = rng.pick(kKinds);
    const int64_t m = 1 + rng.below(70), n = 1 + rng.below(150), k = 1 + rng.below(150);
    HostTensor a(dtype(), {m, k}, rng.pick(kInputLayouts), rng), b(dtype(), {k, n}, rng.pick(kInputLayouts), rng);
    fill(a, kind, 0, rng);
    fill(b, kind, 1, rng);
    const Result like = empty(m, n, rng.pick(kOutputLayouts), rng);
    const bool argmax = rng.one_in(2);
    options.accumulate = rng.one_in(2);
    options.argmax_offset = argmax ? rng.below(1000) : 0;
    options.threads = 1 + static_cast<int>(rng.below(4));
    Result expected = like;
    const DLTensor index = expected.argmax.dlpack();
    reference::matmul(
        validate_matmul(semiring(), a.dlpack(), b.dlpack(), expected.c.dlpack(), argmax ? &index : nullptr, options));
    for (const std::string& isa : build_info().isas) {
      set_isa(isa);
      const Result got = product(semiring(), a, b, like, argmax, options, "always");
      EXPECT_TRUE(got.c.same_bytes(expected.c)) << kind.name << ", " << isa << " " << m << " " << n << " " << k;
      EXPECT_TRUE(got.argmax.same_bytes(expected.argmax)) << kind.name << ", " << isa;
    }
  }
}

// Several passes over k, and panels that are given up while others are finished.
TEST_P(Filter, KeepsWhatIsFinished) {
  const FilterScope restore;
  Rng rng(3);
  MatmulOptions options;
  const int64_t m = 30, n = 300, k = kFew ? 100 : 9000;
  HostTensor a(dtype(), {m, k}, Layout::row_major, rng), b(dtype(), {k, n}, Layout::row_major, rng);
  fill(a, kKinds[0], 0, rng);
  fill(b, kKinds[0], 1, rng);
  const int64_t last = k * n - 1;
  if (dtype() == DType::f64)
    b.at<double>(last) = std::nan("");
  else
    b.at<float>(last) = std::nanf("");
  const Result like = empty(m, n, Layout::row_major, rng);
  for (const int threads : {1, 2, 3})
    for (const bool argmax : {false, true})
      for (const std::string& isa : build_info().isas) {
        set_isa(isa);
        options.threads = threads;
        const Result plain = product(semiring(), a, b, like, argmax, options, "never");
        const Result got = product(semiring(), a, b, like, argmax, options, "always");
        EXPECT_TRUE(got.c.same_bytes(plain.c)) << isa << " " << threads;
        EXPECT_TRUE(got.argmax.same_bytes(plain.argmax)) << isa << " " << threads;
        // On several threads the last panel may be looked at before another one is finished.
        if (filters(isa) && threads == 1) {
          EXPECT_GT(got.report.filtered, 0);
        }
        EXPECT_LT(got.report.filtered, m * n);
      }
}

// More rows than are prepared at once. NaN in the second block leaves the first one filtered.
TEST_P(Filter, BlocksOfRows) {
  const FilterScope restore;
  Rng rng(5);
  MatmulOptions options;
  const bool is_double = dtype() == DType::f64;
  if (kFew && !is_double) GTEST_SKIP() << "twice as many elements";
  const int64_t m = 1100, k = is_double ? 2100 : 4200, n = kFew ? 3 : 130;
  HostTensor a(dtype(), {m, k}, Layout::row_major, rng), b(dtype(), {k, n}, Layout::row_major, rng);
  fill(a, kKinds[0], 0, rng);
  fill(b, kKinds[0], 1, rng);
  const Result like = empty(m, n, Layout::row_major, rng);
  for (const bool has_nan : {false, true}) {
    if (has_nan && is_double) a.at<double>(1050 * k + 7) = std::nan("");
    if (has_nan && !is_double) a.at<float>(1050 * k + 7) = std::nanf("");
    for (const bool argmax : {false, true}) {
      options.threads = 1 + argmax;
      const Result plain = product(semiring(), a, b, like, argmax, options, "never");
      const Result got = product(semiring(), a, b, like, argmax, options, "always");
      EXPECT_TRUE(got.c.same_bytes(plain.c)) << has_nan << argmax;
      EXPECT_TRUE(got.argmax.same_bytes(plain.argmax)) << has_nan;
      if (filters(build_info().isa)) {
        EXPECT_EQ(got.report.filtered, (has_nan ? 1024 : m) * n);
      }
    }
  }
}

// Sizes that are filtered unless told otherwise, and data for which that is soon, late or in some places given up.
TEST(FilterGivesUp, AndFinishesPlainly) {
  const FilterScope restore;
  Rng rng(6);
  MatmulOptions options;
  const Kind hopeless_later{"hopeless from the middle on",
                            [](const Draw& d) { return d.line >= d.lines / 2 ? 3.25 : d.random(); }};
  const int64_t m = kFew ? 136 : 300, n = m, k = 260;
  for (const Semiring semiring : {Semiring::max_plus, Semiring::min_plus}) {
    int64_t mixed = 0;
    for (const Kind& kind :
         {kKinds[0], named("constant"), named("wide scales"), named("noise below the resolution"), hopeless_later}) {
      HostTensor a(DType::f64, {m, k}, Layout::row_major, rng), b(DType::f64, {k, n}, Layout::row_major, rng);
      draw<double>(a, kind, 0, rng);
      draw<double>(b, kind, 1, rng);
      Result like{{DType::f64, {m, n}, Layout::row_major, rng}, {DType::i32, {m, n}, Layout::row_major, rng}, {}};
      draw<double>(like.c, kKinds[1], 0, rng);
      for (const std::string& isa : build_info().isas) {
        if (!filters(isa)) continue;
        set_isa(isa);
        for (const bool argmax : {false, true})
          for (const bool accumulate : {false, true}) {
            if (kFew && accumulate != argmax) continue;
            options.accumulate = accumulate;
            const Result plain = product(semiring, a, b, like, argmax, options, "never");
            for (options.threads = 1; options.threads <= (kFew ? 1 : 3); ++options.threads) {
              const Result got = product(semiring, a, b, like, argmax, options, "auto");
              EXPECT_TRUE(got.c.same_bytes(plain.c)) << kind.name << ", " << isa << " " << options.threads << argmax;
              EXPECT_TRUE(got.argmax.same_bytes(plain.argmax)) << kind.name << ", " << isa << " " << options.threads;
              if (kind.name == kKinds[0].name) {
                EXPECT_EQ(got.report.filtered, m * n) << isa;
              }
              mixed += got.report.filtered > 0 && got.report.filtered < m * n;
            }
          }
      }
    }
    if (filters(build_info().isas[0])) {
      EXPECT_GT(mixed, 0);
    }
  }
}

// A check that cannot fail would prove nothing: without the proof some outputs of such data are wrong.
TEST_P(Filter, WithoutItsProofIsWrong) {
  const FilterScope restore;
  Rng rng(4);
  const Kind coarse{"", [](const Draw& d) { return d.below(100) / 64 + d.below(3) * 0x1p-17; }};
  const int64_t m = kFew ? 32 : 64, n = 2 * m, k = kFew ? 300 : 600;
  HostTensor a(dtype(), {m, k}, Layout::row_major, rng), b(dtype(), {k, n}, Layout::row_major, rng);
  fill(a, coarse, 0, rng);
  fill(b, coarse, 1, rng);
  const Result like = empty(m, n, Layout::row_major, rng);
  for (const std::string& isa : build_info().isas) {
    set_isa(isa);
    if (!filters(isa)) continue;
    const Result plain = product(semiring(), a, b, like, true, {}, "never");
    EXPECT_TRUE(product(semiring(), a, b, like, true, {}, "always").c.same_bytes(plain.c));
    filter_without_proof = true;
    EXPECT_FALSE(product(semiring(), a, b, like, true, {}, "always").c.same_bytes(plain.c));
    filter_without_proof = false;
  }
}

TEST_P(Filter, UnknownModeIsRefused) {
  const FilterScope restore;
  EXPECT_THROW(set_filter("sometimes"), Error);
}

INSTANTIATE_TEST_SUITE_P(Pairs, Filter,
                         ::testing::Values(Pair{Semiring::max_plus, DType::f64}, Pair{Semiring::min_plus, DType::f64},
                                           Pair{Semiring::max_plus, DType::f32}, Pair{Semiring::min_plus, DType::f32}),
                         pair_name);

}  // namespace
}  // namespace tropical::testing

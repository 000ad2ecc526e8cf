// Gradients against sums in double, and bit by bit across thread counts and instruction sets.
#include <gtest/gtest.h>

#include <optional>

#include "cases.h"
#include "exact.h"
#include "isas.h"
#include "reference.h"
#include "validate.h"

namespace tropical::testing {
namespace {

enum class Indices {
  selected,      // those of the product, as int32
  selected64,    // the same, as int64
  out_of_range,  // any integers, most of them outside [0, K)
};
constexpr Indices kIndices[] = {Indices::selected, Indices::selected64, Indices::out_of_range};
constexpr int kThreads[] = {1, 2, 5};

struct Case {
  Pair pair;
  MatmulShape shape;
  Layout a, b, grad_c, argmax, grad_a, grad_b;
  Fill fill;
  Indices indices;
  bool want_a, want_b;
  bool integers;  // small whole numbers: every order of additions is exact
  uint64_t seed;

  std::string text() const {
    return std::string(semiring_name(pair.semiring)) + " " + dtype_name(pair.dtype) + " a " + shape_name(shape.a) +
           " " + layout_name(a) + ", b " + shape_name(shape.b) + " " + layout_name(b) + ", " + fill_name(fill) +
           ", grad_c " + layout_name(grad_c) + ", grad_a " + (want_a ? layout_name(grad_a) : "no") + ", grad_b " +
           (want_b ? layout_name(grad_b) : "no") + ", indices " + std::to_string(static_cast<int>(indices)) +
           ", seed " + std::to_string(seed);
  }
};

template <class T>
void fill_whole_numbers(HostTensor& x, Rng& rng) {
  for (int64_t i = 0; i < x.count(); ++i) x.at<T>(i) = narrow<T>(static_cast<wide_t<T>>(rng.below(4)));
}

// Any integers as indices; int64 ones whose low half would be in range among them.
HostTensor random_indices(const Case& test, int64_t depth, Rng& rng) {
  const bool wide = rng.one_in(2);
  HostTensor x(wide ? DType::i64 : DType::i32, test.shape.c, test.argmax, rng);
  for (int64_t i = 0; i < x.count(); ++i) {
    const int64_t list[] = {-1,
                            depth,
                            depth - 1,
                            -depth,
                            std::numeric_limits<int32_t>::min(),
                            std::numeric_limits<int32_t>::max(),
                            rng.below(depth + 1)};
    if (!wide)
      x.at<int32_t>(i) = static_cast<int32_t>(rng.pick(list));
    else
      x.at<int64_t>(i) = rng.one_in(3) ? (int64_t{1} << 32) * (rng.below(3) - 1) : rng.pick(list);
  }
  return x;
}

HostTensor as_int64(HostTensor& indices, Layout layout, Rng& rng) {
  HostTensor x(DType::i64, indices.shape(), layout, rng);
  for (int64_t i = 0; i < x.count(); ++i) x.at<int64_t>(i) = indices.at<int32_t>(i);
  return x;
}

// What one stored element may be. Half types round a sum in f32 once; f32 and f64 round each addition.
template <class T>
std::string check(T got, const reference::GradientSum& expected, bool exact) {
  const double value = as_double(got);
  const auto complain = [&](double bound) {
    return "got " + std::to_string(value) + ", expected " + std::to_string(expected.sum) + " within " +
           std::to_string(bound) + " (" + std::to_string(expected.terms) + " terms)";
  };
  if (value == 0 && std::signbit(value)) return "got -0";
  double target = expected.sum;
  if constexpr (is_half_v<T>)
    target = rounded<T>(target);
  else
    target = static_cast<T>(target);
  if (std::isnan(target)) return std::isnan(value) ? "" : complain(0);
  if (value == target) return "";
  if (exact) return complain(0);
  const double step = std::numeric_limits<wide_t<T>>::epsilon();
  double bound = (static_cast<double>(expected.terms) + 1) * step * expected.magnitude;
  if constexpr (is_half_v<T>) {
    // The rounding of a sum that is off by `bound`: between the roundings of both ends.
    if (value >= rounded<T>(expected.sum - bound) && value <= rounded<T>(expected.sum + bound)) return "";
  } else if (std::abs(value - expected.sum) <= bound) {
    return "";
  }
  // Near the top of the range a partial sum may overflow where the whole does not.
  if (bound > std::numeric_limits<wide_t<T>>::max() * step && !std::isfinite(value)) return "";
  return complain(bound);
}

template <class T>
std::string check_all(HostTensor& got, const reference::GradientSums& sums, bool exact) {
  for (int64_t i = 0; i < got.count(); ++i) {
    const auto expected = sums.find(got.offset(i));  // absent where there was no batch to visit: no terms
    const std::string fault =
        check(got.at<T>(i), expected == sums.end() ? reference::GradientSum{} : expected->second, exact);
    if (!fault.empty()) return "element " + std::to_string(i) + ": " + fault;
  }
  return "";
}

template <class S, class T>
void run_typed(const Case& test) {
  Rng rng(test.seed);
  const Pair pair = test.pair;
  HostTensor a(pair.dtype, test.shape.a, test.a, rng), b(pair.dtype, test.shape.b, test.b, rng);
  HostTensor grad_c(pair.dtype, test.shape.c, test.grad_c, rng);
  if (test.integers) {
    fill_whole_numbers<T>(a, rng), fill_whole_numbers<T>(b, rng), fill_whole_numbers<T>(grad_c, rng);
  } else {
    fill(a, test.fill, pair, Lines::rows, rng), fill(b, test.fill, pair, Lines::columns, rng);
    fill(grad_c, rng.one_in(4) ? test.fill : Fill::uniform, pair, Lines::rows, rng);
  }

  HostTensor c(pair.dtype, test.shape.c, Layout::row_major, rng);
  HostTensor argmax(DType::i32, test.shape.c, test.argmax, rng);
  const DLTensor selected = argmax.dlpack();
  reference::matmul(validate_matmul(pair.semiring, a.dlpack(), b.dlpack(), c.dlpack(), &selected, {}));
  if (test.indices == Indices::selected64) argmax = as_int64(argmax, test.argmax, rng);
  if (test.indices == Indices::out_of_range) argmax = random_indices(test, test.shape.a.back(), rng);

  const HostTensor start_a(pair.dtype, test.shape.a, test.grad_a, rng),
      start_b(pair.dtype, test.shape.b, test.grad_b, rng);
  const DLTensor da = start_a.dlpack(), db = start_b.dlpack();
  const BackwardParams p = validate_backward(pair.semiring, grad_c.dlpack(), argmax.dlpack(), a.dlpack(), b.dlpack(),
                                             test.want_a ? &da : nullptr, test.want_b ? &db : nullptr, 0);
  const reference::Gradients expected = reference::matmul_backward<S, T>(p);

  const IsaScope restore;
  std::optional<std::pair<HostTensor, HostTensor>> first;
  for (const std::string& isa : build_info().isas) {
    set_isa(isa);
    for (const int threads : kThreads) {
      HostTensor ga = start_a, gb = start_b;
      const DLTensor dga = ga.dlpack(), dgb = gb.dlpack();
      matmul_backward(pair.semiring, grad_c.dlpack(), argmax.dlpack(), a.dlpack(), b.dlpack(),
                      test.want_a ? &dga : nullptr, test.want_b ? &dgb : nullptr, threads);
      const std::string where = test.text() + ", isa " + isa + ", threads " + std::to_string(threads);
      if (first) {
        ASSERT_TRUE(ga.same_bytes(first->first)) << where << "\ngrad_a differs from the first run";
        ASSERT_TRUE(gb.same_bytes(first->second)) << where << "\ngrad_b differs from the first run";
        continue;
      }
      ASSERT_EQ(test.want_a ? check_all<T>(ga, expected.a, test.integers) : "", "") << where << "\ngrad_a";
      ASSERT_EQ(test.want_b ? check_all<T>(gb, expected.b, test.integers) : "", "") << where << "\ngrad_b";
      ASSERT_TRUE(test.want_a || ga.same_bytes(start_a)) << where;
      ASSERT_TRUE(test.want_b || gb.same_bytes(start_b)) << where;
      first.emplace(std::move(ga), std::move(gb));
    }
  }
}

void run(const Case& test) {
  visit(test.pair.semiring, test.pair.dtype, [&]<class S, class T>() {
    if constexpr (differentiable_v<S, T>) run_typed<S, T>(test);
  });
}

Case random_case(Pair pair, MatmulShape shape, bool integers, Rng& rng) {
  Case test{};
  test.pair = pair;
  test.shape = std::move(shape);
  test.a = rng.pick(kInputLayouts), test.b = rng.pick(kInputLayouts), test.grad_c = rng.pick(kInputLayouts);
  test.argmax = rng.pick(kOutputLayouts), test.grad_a = rng.pick(kOutputLayouts),
  test.grad_b = rng.pick(kOutputLayouts);
  test.fill = rng.pick(kFills);
  test.indices = rng.pick(kIndices);
  test.want_a = !rng.one_in(4);
  test.want_b = !test.want_a || !rng.one_in(4);
  test.integers = integers;
  test.seed = rng.bits();
  return test;
}

uint64_t seed_of(Pair pair) {
  return 7'000 + 100 * static_cast<uint64_t>(pair.semiring) + static_cast<uint64_t>(pair.dtype);
}

class Backward : public ::testing::TestWithParam<Pair> {};

TEST_P(Backward, SmallShapes) {
  Rng rng(seed_of(GetParam()));
  for (int64_t m = 0; m <= 2; ++m)
    for (int64_t n = 0; n <= 2; ++n)
      for (int64_t k = 0; k <= 2; ++k)
        for (const bool integers : {true, false})
          for (const Indices indices : kIndices) {
            Case test = random_case(GetParam(), {{m, k}, {k, n}, {m, n}}, integers, rng);
            test.indices = indices;
            run(test);
            if (HasFatalFailure()) return;
          }
}

TEST_P(Backward, WholeNumbersAreExact) {
  Rng rng(seed_of(GetParam()) + 1);
  for (int i = 0; i < (kFew ? 5 : 25); ++i) {
    run(random_case(GetParam(), random_shape(rng, 20'000), true, rng));
    if (HasFatalFailure()) return;
  }
}

TEST_P(Backward, RandomCases) {
  Rng rng(seed_of(GetParam()) + 2);
  for (int i = 0; i < (kFew ? 8 : 50); ++i) {
    run(random_case(GetParam(), random_shape(rng, kFew ? 20'000 : 100'000), false, rng));
    if (HasFatalFailure()) return;
  }
}

TEST_P(Backward, OneDimensionalOperands) {
  Rng rng(seed_of(GetParam()) + 3);
  const MatmulShape shapes[] = {{{37}, {37}, {}},
                                {{37}, {37, 19}, {19}},
                                {{18, 37}, {37}, {18}},
                                {{5}, {3, 5, 4}, {3, 4}},
                                {{2, 3, 4, 5}, {5}, {2, 3, 4}}};
  for (const MatmulShape& shape : shapes)
    for (const bool integers : {true, false}) {
      run(random_case(GetParam(), shape, integers, rng));
      if (HasFatalFailure()) return;
    }
}

INSTANTIATE_TEST_SUITE_P(All, Backward, ::testing::ValuesIn(differentiable_pairs()), pair_name);

}  // namespace
}  // namespace tropical::testing

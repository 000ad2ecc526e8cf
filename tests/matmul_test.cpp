// Products against the reference, bit by bit: every instruction set, several thread counts, any strides.
#include <gtest/gtest.h>

#include "cases.h"
#include "isas.h"
#include "reference.h"
#include "validate.h"

namespace tropical::testing {
namespace {

struct Mode {
  const char* name;
  bool argmax;
  bool accumulate;
  int64_t offset;
};
constexpr Mode kModes[] = {{"values", false, false, 0},
                           {"argmax", true, false, 0},
                           {"argmax+offset", true, false, 1000},
                           {"accumulate", false, true, 0},
                           {"accumulate+argmax", true, true, 7}};
constexpr int kThreads[] = {1, 2, 5};

struct Case {
  Pair pair;
  MatmulShape shape;
  Layout a, b, c, argmax;
  Fill fill_a, fill_b;
  Mode mode;
  uint64_t seed;

  std::string text() const {
    return std::string(semiring_name(pair.semiring)) + " " + dtype_name(pair.dtype) + " a " + shape_name(shape.a) +
           " " + layout_name(a) + " " + fill_name(fill_a) + ", b " + shape_name(shape.b) + " " + layout_name(b) + " " +
           fill_name(fill_b) + ", c " + layout_name(c) + ", argmax " + layout_name(argmax) + ", " + mode.name +
           ", seed " + std::to_string(seed);
  }
};

template <class T>
std::string printed(T x) {
  return std::to_string(widen(x));
}

std::string first_difference(DType dtype, HostTensor& got, HostTensor& expected) {
  std::string text = "bytes between the elements were written";
  visit_dtype(dtype, [&]<class T>() {
    for (int64_t i = expected.count(); i-- > 0;)
      if (std::memcmp(&got.at<T>(i), &expected.at<T>(i), sizeof(T)) != 0)
        text = "element " + std::to_string(i) + ": got " + printed(got.at<T>(i)) + ", expected " +
               printed(expected.at<T>(i)) + " (or differing bits)";
  });
  return text;
}

void run(const Case& test) {
  Rng rng(test.seed);
  const Pair pair = test.pair;
  HostTensor a(pair.dtype, test.shape.a, test.a, rng), b(pair.dtype, test.shape.b, test.b, rng);
  HostTensor c(pair.dtype, test.shape.c, test.c, rng), argmax(DType::i32, test.shape.c, test.argmax, rng);
  fill(a, test.fill_a, pair, Lines::rows, rng);
  fill(b, test.fill_b, pair, Lines::columns, rng);
  fill(c, test.fill_a, pair, Lines::rows, rng);

  MatmulOptions options;
  options.accumulate = test.mode.accumulate;
  options.argmax_offset = test.mode.offset;
  const DLTensor da = a.dlpack(), db = b.dlpack();

  HostTensor expected = c, expected_argmax = argmax;
  const DLTensor reference_argmax = expected_argmax.dlpack();
  reference::matmul(validate_matmul(pair.semiring, da, db, expected.dlpack(),
                                    test.mode.argmax ? &reference_argmax : nullptr, options));
  const IsaScope restore;
  const std::vector<std::string> isas = build_info().isas;
  for (const std::string& isa : isas) {
    set_isa(isa);
    for (const int threads : kThreads) {
      if (kFew && threads > 1 && isa != isas.front()) continue;
      options.threads = threads;
      HostTensor got = c, got_argmax = argmax;
      const DLTensor dargmax = got_argmax.dlpack();
      matmul(pair.semiring, da, db, got.dlpack(), test.mode.argmax ? &dargmax : nullptr, options);
      const std::string where = test.text() + ", isa " + isa + ", threads " + std::to_string(threads);
      if (!got.same_bytes(expected)) FAIL() << where << "\nvalues " << first_difference(pair.dtype, got, expected);
      if (!got_argmax.same_bytes(expected_argmax))
        FAIL() << where << "\nargmax " << first_difference(DType::i32, got_argmax, expected_argmax);
    }
  }
}

Case random_case(Pair pair, MatmulShape shape, Rng& rng) {
  Case test{pair, std::move(shape), {}, {}, {}, {}, {}, {}, rng.pick(kModes), rng.bits()};
  test.a = rng.pick(kInputLayouts), test.b = rng.pick(kInputLayouts);
  test.c = rng.pick(kOutputLayouts), test.argmax = rng.pick(kOutputLayouts);
  test.fill_a = rng.pick(kFills);
  test.fill_b = rng.one_in(4) ? rng.pick(kFills) : test.fill_a;
  return test;
}

uint64_t seed_of(Pair pair) { return 1000 * static_cast<uint64_t>(pair.semiring) + static_cast<uint64_t>(pair.dtype); }

class Matmul : public ::testing::TestWithParam<Pair> {};

TEST_P(Matmul, EverySmallShapeFillAndMode) {
  Rng rng(seed_of(GetParam()));
  constexpr int64_t kTop = kFew ? 2 : 3;
  for (int64_t m = 0; m <= kTop; ++m)
    for (int64_t n = 0; n <= kTop; ++n)
      for (int64_t k = 0; k <= kTop; ++k)
        for (const Fill kind : kFills)
          for (const Mode& mode : kModes) {
            Case test = random_case(GetParam(), {{m, k}, {k, n}, {m, n}}, rng);
            test.fill_a = test.fill_b = kind;
            test.mode = mode;
            run(test);
            if (HasFatalFailure()) return;
          }
}

TEST_P(Matmul, RandomCases) {
  Rng rng(seed_of(GetParam()) + 1);
  for (int i = 0; i < (kFew ? 15 : 80); ++i) {
    run(random_case(GetParam(), random_shape(rng, kFew ? 50'000 : 400'000), rng));
    if (HasFatalFailure()) return;
  }
}

// Row-major matrices without argmax are what most calls are, and the fast paths of every kernel.
TEST_P(Matmul, PlainMatricesOfEveryTail) {
  Rng rng(seed_of(GetParam()) + 2);
  for (int64_t size = 1; size <= 67; size += kFew ? 6 : 1) {
    const int64_t m = 1 + rng.below(40), k = 1 + rng.below(40);
    Case test = random_case(GetParam(), {{m, k}, {k, size}, {m, size}}, rng);
    test.a = test.b = test.c = test.argmax = Layout::row_major;
    run(test);
    std::swap(test.shape.a[0], test.shape.b[1]);
    std::swap(test.shape.c[0], test.shape.c[1]);
    run(test);
    if (HasFatalFailure()) return;
  }
}

// Sizes beyond the cache blocks, in each of the three directions.
TEST_P(Matmul, ManyBlocks) {
  Rng rng(seed_of(GetParam()) + 3);
  constexpr int64_t kShapes[][3] = {{1100, 9, 40},  {5, 4200, 30}, {20, 21, 5000}, {130, 260, 70},
                                    {300, 50, 140}, {610, 55, 8},  {3, 42, 2200}};
  for (const auto& [m, n, k] : kShapes) {
    if (kFew && m * n * k > 280'000) continue;  // threads start at 2^18 candidates
    Case test = random_case(GetParam(), {{m, k}, {k, n}, {m, n}}, rng);
    run(test);
    test.fill_a = test.fill_b = Fill::outlier;
    test.mode = rng.pick(kModes);
    run(test);
    if (HasFatalFailure()) return;
  }
}

// Batches whose members are shared out among the threads.
TEST_P(Matmul, ManyMembers) {
  Rng rng(seed_of(GetParam()) + 6);
  const BatchCase batches[] = {{{7, 1, 5}, {6, 5}}, {{300}, {}}, {{}, {40, 6}}, {{3, 70}, {3, 70}}, {{1, 50}, {4, 1}}};
  for (const BatchCase& batch : batches) {
    const int64_t m = 1 + rng.below(13), n = 1 + rng.below(40), k = 1 + rng.below(kFew ? 5 : 30);
    const Shape lead = broadcast(batch);
    run(random_case(GetParam(), {with_matrix(batch.a, m, k), with_matrix(batch.b, k, n), with_matrix(lead, m, n)},
                    rng));
    if (HasFatalFailure()) return;
  }
}

// The one place where vectors take part.
TEST_P(Matmul, OneDimensionalOperands) {
  Rng rng(seed_of(GetParam()) + 4);
  const MatmulShape shapes[] = {{{37}, {37}, {}},         {{37}, {37, 19}, {19}},         {{18, 37}, {37}, {18}},
                                {{5}, {3, 5, 4}, {3, 4}}, {{2, 3, 4, 5}, {5}, {2, 3, 4}}, {{0}, {0}, {}},
                                {{1}, {1, 1}, {1}}};
  for (const MatmulShape& shape : shapes)
    for (const Mode& mode : kModes) {
      Case test = random_case(GetParam(), shape, rng);
      test.mode = mode;
      run(test);
      if (HasFatalFailure()) return;
    }
}

// K in pieces with accumulate and argmax_offset is K at once.
TEST_P(Matmul, PiecesOfTheSummedAxis) {
  const Pair pair = GetParam();
  Rng rng(seed_of(pair) + 5);
  for (const Fill kind : kFills) {
    constexpr int64_t kRows = 9, kCols = 21, kDepth = 50, kCut = 23;
    HostTensor a(pair.dtype, {kRows, kDepth}, Layout::row_major, rng);
    HostTensor b(pair.dtype, {kDepth, kCols}, Layout::row_major, rng);
    HostTensor whole(pair.dtype, {kRows, kCols}, Layout::row_major, rng),
        whole_argmax(DType::i32, {kRows, kCols}, Layout::row_major, rng);
    fill(a, kind, pair, Lines::rows, rng);
    fill(b, kind, pair, Lines::columns, rng);
    HostTensor parts = whole, parts_argmax = whole_argmax;

    DLTensor arg = whole_argmax.dlpack();
    matmul(pair.semiring, a.dlpack(), b.dlpack(), whole.dlpack(), &arg);
    arg = parts_argmax.dlpack();
    for (int64_t from = 0; from < kDepth; from += kCut) {
      const int64_t depth = std::min(kCut, kDepth - from);
      DLTensor da = a.dlpack(), db = b.dlpack();
      int64_t a_shape[] = {kRows, depth}, b_shape[] = {depth, kCols};
      da.shape = a_shape, db.shape = b_shape;
      da.byte_offset += static_cast<uint64_t>(from * da.strides[1] * da.dtype.bits / 8);
      db.byte_offset += static_cast<uint64_t>(from * db.strides[0] * db.dtype.bits / 8);
      MatmulOptions options;
      options.accumulate = from > 0;
      options.argmax_offset = from;
      matmul(pair.semiring, da, db, parts.dlpack(), &arg, options);
    }
    EXPECT_TRUE(parts.same_bytes(whole)) << fill_name(kind) << " " << first_difference(pair.dtype, parts, whole);
    EXPECT_TRUE(parts_argmax.same_bytes(whole_argmax))
        << fill_name(kind) << " argmax " << first_difference(DType::i32, parts_argmax, whole_argmax);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Matmul, ::testing::ValuesIn(supported_pairs()), pair_name);

}  // namespace
}  // namespace tropical::testing

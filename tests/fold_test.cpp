// A batch that shares B becomes rows, and every element keeps its address.
#include <gtest/gtest.h>

#include "cases.h"
#include "rearrange.h"
#include "validate.h"

namespace tropical::testing {
namespace {

constexpr Pair kPair{Semiring::max_plus, DType::f32};

// The operand's element that row `r` of all rows, in the order of the batch, begins with.
int64_t row_offset(const Operand& o, const BatchShape& batch, int64_t m, int64_t r) {
  return batch.offset(o, r / m) + r % m * o.row;
}

void expect_same_rows(const Operand& got, const BatchShape& got_batch, int64_t got_m, const Operand& from,
                      const BatchShape& batch, int64_t m) {
  ASSERT_EQ(got_batch.count() * got_m, batch.count() * m);
  for (int64_t r = 0; r < batch.count() * m; ++r)
    ASSERT_EQ(row_offset(got, got_batch, got_m, r), row_offset(from, batch, m, r)) << "row " << r;
}

struct Gradient {
  HostTensor a, b, c, argmax, grad_a, grad_b;

  Gradient(const Shape& a_lead, const Shape& b_lead, int64_t m, Rng& rng, Layout layout)
      : a(kPair.dtype, with_matrix(a_lead, m, 3), layout, rng),
        b(kPair.dtype, with_matrix(b_lead, 3, 2), layout, rng),
        c(kPair.dtype, with_matrix(broadcast({a_lead, b_lead}), m, 2), layout, rng),
        argmax(DType::i32, with_matrix(broadcast({a_lead, b_lead}), m, 2), layout, rng),
        grad_a(kPair.dtype, with_matrix(a_lead, m, 3), Layout::row_major, rng),
        grad_b(kPair.dtype, with_matrix(b_lead, 3, 2), Layout::row_major, rng) {}

  MatmulParams product() const {
    const DLTensor arg = argmax.dlpack();
    return validate_matmul(kPair.semiring, a.dlpack(), b.dlpack(), c.dlpack(), &arg, {});
  }
  BackwardParams gradient() const {
    const DLTensor ga = grad_a.dlpack(), gb = grad_b.dlpack();
    return validate_backward(kPair.semiring, c.dlpack(), argmax.dlpack(), a.dlpack(), b.dlpack(), &ga, &gb, 0);
  }
};

TEST(Fold, AddressesSurvive) {
  Rng rng(9);
  int folded = 0;
  for (int round = 0; round < 2'000; ++round) {
    BatchCase batch;
    for (int64_t d = rng.below(4); d > 0; --d) {
      const int64_t size = 1 + rng.below(3);
      batch.a.push_back(rng.one_in(4) ? 1 : size);
      batch.b.push_back(rng.one_in(2) ? 1 : size);
    }
    const Layout layout = rng.one_in(2) ? Layout::row_major : rng.pick(kOutputLayouts);
    const Gradient x(batch.a, batch.b, 1 + rng.below(3), rng, layout);
    const MatmulParams p = x.product();
    MatmulParams q = p;
    fold(q);
    folded += q.batch.ndim < p.batch.ndim;
    expect_same_rows(q.a, q.batch, q.m, p.a, p.batch, p.m);
    expect_same_rows(q.c, q.batch, q.m, p.c, p.batch, p.m);
    expect_same_rows(q.argmax, q.batch, q.m, p.argmax, p.batch, p.m);
    const BackwardParams g = x.gradient();
    BackwardParams h = g;
    fold(h);
    expect_same_rows(h.grad_c, h.batch, h.m, g.grad_c, g.batch, g.m);
    expect_same_rows(h.argmax, h.batch, h.m, g.argmax, g.batch, g.m);
    expect_same_rows(h.a, h.batch, h.m, g.a, g.batch, g.m);
    expect_same_rows(h.grad_a, h.batch, h.m, g.grad_a, g.batch, g.m);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(folded, 200);
}

int64_t rows(const Shape& a_lead, const Shape& b_lead, int64_t m, bool gradient) {
  Rng rng(10);
  const Gradient x(a_lead, b_lead, m, rng, Layout::row_major);
  MatmulParams p = x.product();
  BackwardParams g = x.gradient();
  fold(p), fold(g);
  return gradient ? g.m : p.m;
}

TEST(Fold, SharedOperandsMakeRows) {
  for (const bool gradient : {false, true}) {
    EXPECT_EQ(rows({4, 5}, {}, 3, gradient), 60);
    EXPECT_EQ(rows({4, 5}, {4, 1}, 3, gradient), 15);
    EXPECT_EQ(rows({4, 5}, {1, 5}, 3, gradient), 3);
    EXPECT_EQ(rows({4}, {}, 1, gradient), 4);
    EXPECT_EQ(rows({}, {4}, 1, gradient), 1);
    EXPECT_EQ(rows({0}, {}, 3, gradient), 0);
  }
}

}  // namespace
}  // namespace tropical::testing

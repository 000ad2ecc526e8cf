// The params that leave validation address the same elements as the tensors that entered.
#include <gtest/gtest.h>

#include "cases.h"
#include "validate.h"

namespace tropical::testing {
namespace {

// The address of element (batch `g` of `lead`, i, j) by the rules of broadcasting, without any merging of axes.
const char* address(const DLTensor& x, const Shape& lead, int64_t g, int64_t i, int64_t j) {
  int64_t o = i * x.strides[x.ndim - 2] + j * x.strides[x.ndim - 1];
  for (int d = static_cast<int>(lead.size()) - 1, axis = x.ndim - 3; d >= 0; --d, --axis) {
    const int64_t index = g % lead[static_cast<size_t>(d)];
    g /= lead[static_cast<size_t>(d)];
    if (axis >= 0 && x.shape[axis] != 1) o += index * x.strides[axis];
  }
  return static_cast<const char*>(x.data) + x.byte_offset + o * x.dtype.bits / 8;
}

void expect_same(const BatchShape& batch, const Operand& got, const DLTensor& x, const Shape& lead) {
  ASSERT_EQ(batch.count(), element_count(lead));
  const int64_t item = x.dtype.bits / 8;
  for (int64_t g = 0; g < batch.count(); ++g)
    for (const auto& [i, j] : {std::pair{0, 0}, {1, 0}, {0, 1}, {1, 1}})
      ASSERT_EQ(static_cast<const char*>(got.data) + (batch.offset(got, g) + i * got.row + j * got.col) * item,
                address(x, lead, g, i, j))
          << "batch " << g;
}

constexpr Pair kPair{Semiring::max_plus, DType::f32};

TEST(Collapse, AddressesSurvive) {
  Rng rng(5);
  for (int round = 0; round < 2'000; ++round) {
    BatchCase batch;
    for (int64_t d = rng.below(5); d > 0; --d) {
      const int64_t size = 1 + rng.below(4);
      batch.a.push_back(rng.one_in(4) ? 1 : size);
      batch.b.push_back(rng.one_in(4) ? 1 : size);
    }
    if (rng.one_in(3)) batch.a.erase(batch.a.begin(), batch.a.begin() + rng.below(int64_t(batch.a.size()) + 1));
    const Shape lead = broadcast(batch);
    const HostTensor a(kPair.dtype, with_matrix(batch.a, 2, 3), rng.pick(kInputLayouts), rng);
    const HostTensor b(kPair.dtype, with_matrix(batch.b, 3, 2), rng.pick(kInputLayouts), rng);
    const HostTensor c(kPair.dtype, with_matrix(lead, 2, 2), rng.pick(kOutputLayouts), rng);
    const HostTensor argmax(DType::i32, with_matrix(lead, 2, 2), rng.pick(kOutputLayouts), rng);
    const DLTensor arg = argmax.dlpack();
    const bool with_argmax = rng.one_in(2);
    const MatmulParams p =
        validate_matmul(kPair.semiring, a.dlpack(), b.dlpack(), c.dlpack(), with_argmax ? &arg : nullptr, {});
    ASSERT_TRUE(p.m == 2 && p.n == 2 && p.k == 3);
    expect_same(p.batch, p.a, a.dlpack(), lead);
    expect_same(p.batch, p.b, b.dlpack(), lead);
    expect_same(p.batch, p.c, c.dlpack(), lead);
    ASSERT_EQ(p.argmax.data != nullptr, with_argmax);
    if (with_argmax) expect_same(p.batch, p.argmax, arg, lead);
    for (int d = 0; d < p.batch.ndim; ++d) ASSERT_NE(p.batch.size[d], 1);
    if (HasFatalFailure()) return;
  }
}

int merged_axes(const Shape& a_lead, const Shape& b_lead) {
  Rng rng(6);
  const HostTensor a(kPair.dtype, with_matrix(a_lead, 2, 3), Layout::row_major, rng);
  const HostTensor b(kPair.dtype, with_matrix(b_lead, 3, 2), Layout::row_major, rng);
  const HostTensor c(kPair.dtype, with_matrix(broadcast({a_lead, b_lead}), 2, 2), Layout::row_major, rng);
  return validate_matmul(kPair.semiring, a.dlpack(), b.dlpack(), c.dlpack(), nullptr, {}).batch.ndim;
}

TEST(Collapse, EvenAxesMerge) {
  EXPECT_EQ(merged_axes({}, {}), 0);
  EXPECT_EQ(merged_axes({1, 1}, {1}), 0);
  EXPECT_EQ(merged_axes({2, 3, 4}, {2, 3, 4}), 1);
  EXPECT_EQ(merged_axes({2, 3, 4}, {}), 1);
  EXPECT_EQ(merged_axes({2, 1, 4}, {2, 1, 4}), 1);
  EXPECT_EQ(merged_axes({2, 1}, {1, 3}), 2);
  EXPECT_EQ(merged_axes({2, 3, 4}, {3, 4}), 2);
}

TEST(Collapse, EmptyAxes) {
  EXPECT_EQ(element_count(broadcast({{0, 3}, {1, 3}})), 0);
  EXPECT_GE(merged_axes({0, 3}, {1, 3}), 1);
  EXPECT_GE(merged_axes({3, 0}, {3, 1}), 1);
}

}  // namespace
}  // namespace tropical::testing

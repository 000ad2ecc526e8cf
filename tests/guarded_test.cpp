// Operands that end, or begin, at memory that may not be touched: no kernel reads or writes past an element.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "cases.h"
#include "isas.h"
#include "reference.h"
#include "validate.h"

namespace tropical::testing {
namespace {

enum class Side { before, behind };

// A matrix between two pages without access, flush with one of them.
class GuardedMatrix {
 public:
  GuardedMatrix(DType dtype, int64_t rows, int64_t cols, bool by_columns, Side side) {
    visit_dtype(dtype, [&]<class T>() { tensor_.dtype = dlpack_dtype<T>(); });
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = static_cast<size_t>(rows * cols * tensor_.dtype.bits / 8);
    const size_t inner = (bytes + page - 1) / page * page;
    size_ = inner + 2 * page;
    base_ = static_cast<char*>(mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED || mprotect(base_ + page, inner, PROT_READ | PROT_WRITE) != 0) std::abort();
    tensor_.data = base_ + page + (side == Side::behind ? inner - bytes : 0);
    tensor_.device = {kDLCPU, 0};
    tensor_.ndim = 2;
    tensor_.shape = shape_;
    tensor_.strides = strides_;
    shape_[0] = rows, shape_[1] = cols;
    strides_[0] = by_columns ? 1 : cols, strides_[1] = by_columns ? rows : 1;
  }
  GuardedMatrix(const GuardedMatrix&) = delete;
  GuardedMatrix& operator=(const GuardedMatrix&) = delete;
  ~GuardedMatrix() { munmap(base_, size_); }

  const DLTensor& dlpack() const { return tensor_; }
  template <class T>
  T& at(int64_t i, int64_t j) {
    return static_cast<T*>(tensor_.data)[i * strides_[0] + j * strides_[1]];
  }

 private:
  char* base_;
  size_t size_;
  int64_t shape_[2], strides_[2];
  DLTensor tensor_{};
};

class Guarded : public ::testing::TestWithParam<Pair> {};

void run(Pair pair, int64_t m, int64_t n, int64_t k, bool with_argmax, Rng& rng) {
  const Side sides[] = {Side::before, Side::behind};
  GuardedMatrix a(pair.dtype, m, k, rng.one_in(2), rng.pick(sides)),
      b(pair.dtype, k, n, rng.one_in(2), rng.pick(sides));
  GuardedMatrix c(pair.dtype, m, n, rng.one_in(4), rng.pick(sides)), arg(DType::i32, m, n, false, rng.pick(sides));
  HostTensor from_a(pair.dtype, {m, k}, Layout::row_major, rng), from_b(pair.dtype, {k, n}, Layout::row_major, rng);
  HostTensor expected(pair.dtype, {m, n}, Layout::row_major, rng), indices(DType::i32, {m, n}, Layout::row_major, rng);
  const Fill kind = rng.one_in(3) ? Fill::nans : Fill::uniform;
  fill(from_a, kind, pair, Lines::rows, rng);
  fill(from_b, kind, pair, Lines::columns, rng);
  const DLTensor wanted = indices.dlpack();
  reference::matmul(validate_matmul(pair.semiring, from_a.dlpack(), from_b.dlpack(), expected.dlpack(), &wanted, {}));
  visit_dtype(pair.dtype, [&]<class T>() {
    for (int64_t i = 0; i < m * k; ++i) a.at<T>(i / k, i % k) = from_a.at<T>(i);
    for (int64_t i = 0; i < k * n; ++i) b.at<T>(i / n, i % n) = from_b.at<T>(i);
  });
  matmul(pair.semiring, a.dlpack(), b.dlpack(), c.dlpack(), with_argmax ? &arg.dlpack() : nullptr);
  visit_dtype(pair.dtype, [&]<class T>() {
    for (int64_t i = 0; i < m * n; ++i) {
      ASSERT_EQ(std::memcmp(&c.at<T>(i / n, i % n), &expected.at<T>(i), sizeof(T)), 0) << m << "x" << k << "x" << n;
      if (!with_argmax) continue;
      ASSERT_EQ(arg.at<int32_t>(i / n, i % n), indices.at<int32_t>(i)) << m << "x" << k << "x" << n;
    }
  });
}

TEST_P(Guarded, NothingBeyondTheElementsIsTouched) {
  const Pair pair = GetParam();
  Rng rng(11 + 100 * static_cast<uint64_t>(pair.semiring) + static_cast<uint64_t>(pair.dtype));
  on_each_isa([&](const std::string&) {
    for (int round = 0; round < (kFew ? 15 : 60); ++round) {
      run(pair, 1 + rng.below(20), 1 + rng.below(70), 1 + rng.below(40), rng.one_in(2), rng);
      if (HasFatalFailure()) break;
    }
  });
}

// Rows that lie 2^32 elements apart, in memory that is reserved but hardly used.
TEST(GuardedOffsets, StridesBeyond32Bits) {
  constexpr int64_t kRow = (int64_t{1} << 32) + 3, kRows = 3, kCols = 5;
  constexpr size_t kBytes = sizeof(float) * static_cast<size_t>(kRow * kRows);
  void* const memory =
      mmap(nullptr, 3 * kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "this system reserves no such range";
  const auto view = [&](int which, int64_t rows, int64_t cols) {
    float* first = reinterpret_cast<float*>(static_cast<char*>(memory) + static_cast<size_t>(which) * kBytes);
    return MatrixView<float>(first, {rows, cols}, {kRow, 1});
  };
  const MatrixView<float> a = view(0, kRows, kRows), b = view(1, kRows, kCols), c = view(2, kRows, kCols);
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t k = 0; k < kRows; ++k) a.data[i * kRow + k] = static_cast<float>(10 * i - k * k);
    for (int64_t j = 0; j < kCols; ++j) b.data[i * kRow + j] = static_cast<float>(i * j);
  }
  const auto expect_product = [&](auto element) {
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < kCols; ++j) {
        float best = -std::numeric_limits<float>::infinity();
        for (int64_t k = 0; k < kRows; ++k) best = std::max(best, element(i, k) + b.data[k * kRow + j]);
        ASSERT_EQ(c.data[i * kRow + j], best) << i << ", " << j;
        c.data[i * kRow + j] = 0;
      }
  };
  matmul<MaxPlus, float>(a, b, c);
  expect_product([&](int64_t i, int64_t k) { return a.data[i * kRow + k]; });
  matmul<MaxPlus, float>(a.transposed(), b, c);
  expect_product([&](int64_t i, int64_t k) { return a.data[k * kRow + i]; });
  matmul<MaxPlus, float>(b.transposed(), a.transposed(), c.transposed());
  expect_product([&](int64_t i, int64_t k) { return a.data[i * kRow + k]; });
  munmap(memory, 3 * kBytes);
}

INSTANTIATE_TEST_SUITE_P(All, Guarded, ::testing::ValuesIn(supported_pairs()), pair_name);

}  // namespace
}  // namespace tropical::testing

// Descriptions of tensors that no honest caller makes, each of which once ended in a crash or in undefined behaviour.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>

#include "tropical_gemm/closure.h"
#include "tropical_gemm/permute.h"
#include "tropical_gemm/viterbi.h"

namespace tropical {
namespace {

constexpr int64_t kFar = std::numeric_limits<int64_t>::max();

ErrorCode code_of(const std::function<void()>& call, const char* says) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_NE(std::strstr(e.what(), says), nullptr) << e.what();
    return e.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::internal;
}

// A row-major matrix on the host.
template <class T>
DLTensor matrix_of(T* data, int64_t* shape) {
  DLTensor t{};
  t.data = data;
  t.device = {kDLCPU, 0};
  t.ndim = 2;
  t.dtype = dlpack_dtype<T>();
  t.shape = shape;
  return t;
}

// A 2 x 2 matrix of floats that may be lied about.
struct Matrix {
  float data[4] = {1, 2, 3, 4};
  int64_t shape[2] = {2, 2}, strides[2] = {2, 1};
  DLTensor dl() {
    DLTensor t = matrix_of(data, shape);
    t.strides = strides;
    return t;
  }
};

class Hostile : public ::testing::Test {
 protected:
  ErrorCode product(const DLTensor& x, const DLTensor& y, const DLTensor& z, const char* says) {
    const ErrorCode code = code_of([&] { matmul(Semiring::max_plus, x, y, z); }, says);
    EXPECT_EQ(c.data[0], 1);
    return code;
  }
  Matrix a, b, c;
};

TEST_F(Hostile, NumbersOfAxes) {
  for (const int32_t ndim : {-1, 65, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()}) {
    DLTensor bad = a.dl();
    bad.ndim = ndim;
    EXPECT_EQ(product(bad, b.dl(), c.dl(), "a has"), ErrorCode::invalid_value);
    EXPECT_EQ(product(b.dl(), bad, c.dl(), "b has"), ErrorCode::invalid_value);
    EXPECT_EQ(product(a.dl(), b.dl(), bad, "out has"), ErrorCode::invalid_value);
    EXPECT_EQ(code_of([&] { permute(bad, {}, c.dl()); }, "x has"), ErrorCode::invalid_value);
  }
}

TEST_F(Hostile, NoShape) {
  DLTensor bad = a.dl();
  bad.shape = nullptr;
  EXPECT_EQ(product(bad, b.dl(), c.dl(), "a has a null pointer for its shape"), ErrorCode::invalid_value);
  EXPECT_EQ(product(a.dl(), b.dl(), bad, "out has a null pointer for its shape"), ErrorCode::invalid_value);
  EXPECT_EQ(code_of([&] { closure(Semiring::min_plus, bad); }, "d has a null"), ErrorCode::invalid_value);
}

TEST_F(Hostile, ElementsOfNoSize) {
  DLTensor bad = a.dl();
  bad.dtype = {kDLInt, 4, 1};
  EXPECT_EQ(code_of([&] { matmul_shape(bad, b.dl()); }, "a has dtype"), ErrorCode::invalid_type);
  EXPECT_EQ(code_of([&] { matmul_shape(b.dl(), bad); }, "b has dtype"), ErrorCode::invalid_type);
}

TEST_F(Hostile, StridesOutOfMemory) {
  for (const int64_t stride : {kFar, -kFar, int64_t{1} << 58, -(int64_t{1} << 61)}) {
    Matrix x;
    x.strides[0] = stride;
    EXPECT_EQ(product(x.dl(), b.dl(), c.dl(), "a of shape (2, 2) has strides that lead out"), ErrorCode::invalid_value);
    EXPECT_EQ(product(a.dl(), b.dl(), x.dl(), "out of shape"), ErrorCode::invalid_value);
  }
}

// An axis of size 1, and all axes of an empty tensor, may have any stride; an empty tensor any address.
TEST_F(Hostile, StridesThatMeanNothing) {
  for (const int64_t stride : {kFar, -kFar - 1, int64_t{0}}) {
    Matrix row, column, one;
    row.shape[0] = 1, row.strides[0] = stride;
    column.shape[1] = 1, column.strides[1] = stride, column.strides[0] = 1;
    one.shape[0] = one.shape[1] = 1, one.strides[0] = one.strides[1] = stride;
    matmul(Semiring::max_plus, row.dl(), column.dl(), one.dl());
    EXPECT_EQ(one.data[0], 4);
    start_paths(Semiring::min_plus, {1}, row.dl(), nullptr);
    EXPECT_EQ(row.data[1], 0);

    Matrix left, right;
    left.shape[1] = right.shape[0] = 0, left.strides[0] = right.strides[1] = stride;
    DLTensor x = left.dl();
    x.data = nullptr, x.byte_offset = 8;
    matmul(Semiring::max_plus, x, right.dl(), c.dl());
    EXPECT_EQ(c.data[3], -std::numeric_limits<float>::infinity());
  }
}

TEST_F(Hostile, OptionsOfGraphs) {
  GraphOptions graph;
  graph.threads = -1;
  ClosureOptions options;
  options.threads = -1;
  const auto value = ErrorCode::invalid_value;
  EXPECT_EQ(code_of([&] { load_graph(Semiring::min_plus, a.dl(), nullptr, nullptr, graph); }, "threads is -1"), value);
  EXPECT_EQ(code_of([&] { closure(Semiring::min_plus, a.dl(), nullptr, options); }, "threads is -1"), value);
  EXPECT_EQ(code_of([&] { relax(Semiring::min_plus, a.dl(), b.dl(), nullptr, 1, options); }, "threads is -1"), value);
  EXPECT_EQ(code_of([&] { relax(Semiring::min_plus, a.dl(), b.dl(), nullptr, -1); }, "limit is -1"), value);
}

// Elements of several lanes: the whole of each counts.
TEST_F(Hostile, PermutedLanesOverlap) {
  DLTensor x = a.dl(), out = a.dl();
  x.dtype = out.dtype = {kDLUInt, 8, 4};
  out.data = a.data + 1;
  x.shape = out.shape = b.shape;
  b.shape[0] = 1, b.shape[1] = 2;
  b.strides[0] = 2, x.strides = out.strides = b.strides;
  const int axes[] = {0, 1};
  EXPECT_EQ(code_of([&] { permute(x, axes, out); }, "overlaps"), ErrorCode::invalid_value);
}

// Any byte but 0 is true, also where no product reads it.
TEST(HostileBytes, AreTrue) {
  uint8_t matrix[9] = {0, 7, 0, 0, 0, 255, 0, 0, 0};
  int64_t shape[] = {3, 3};
  DLTensor d = matrix_of(matrix, shape);
  d.dtype = dlpack_dtype<bool>();
  load_graph(Semiring::or_and, d, &d, nullptr);
  closure(Semiring::or_and, d);
  const uint8_t expected[9] = {1, 1, 1, 0, 1, 1, 0, 0, 1};
  EXPECT_EQ(std::memcmp(matrix, expected, sizeof matrix), 0);
}

}  // namespace
}  // namespace tropical

// The typed C++ surface: views, their conversions and the combinations that do not compile.
#include <gtest/gtest.h>

#include <vector>

#include "tropical_gemm/tropical_gemm.h"

namespace tropical {
namespace {

template <class S, class T>
concept Multiplies = requires(MatrixView<const T> in, MatrixView<T> out, MatrixView<int32_t> arg) {
  matmul<S, T>(in, in, out);
  matmul<S, T>(in, in, out, arg);
};
template <class S, class T>
concept Differentiates = requires(MatrixView<const T> in, MatrixView<const int32_t> arg, MatrixView<T> out) {
  matmul_backward<S, T>(in, arg, in, in, out, out);
};
static_assert(Multiplies<MaxPlus, float> && Multiplies<MinMax, int16_t> && Multiplies<OrAnd, bool>);
static_assert(!Multiplies<MaxPlus, bool> && !Multiplies<OrAnd, float>);
static_assert(Differentiates<MinMul, double> && Differentiates<MaxPlus, bfloat16>);
static_assert(!Differentiates<MaxPlus, int32_t> && !Differentiates<OrAnd, bool>);
static_assert(!std::is_convertible_v<MatrixView<const float>, MatrixView<float>>);

TEST(Typed, ProductWithArgmaxOfTransposedViews) {
  const std::vector<int32_t> a = {1, 5, 2, 7, 0, 3};  // (2, 3)
  std::vector<int32_t> c(4), arg(4);
  const MatrixView<const int32_t> va(a.data(), {2, 3});
  matmul<MaxPlus, int32_t>(va, va.transposed(), {c.data(), {2, 2}}, MatrixView<int32_t>(arg.data(), {2, 2}));
  EXPECT_EQ(c, (std::vector<int32_t>{10, 8, 8, 14}));
  EXPECT_EQ(arg, (std::vector<int32_t>{1, 0, 0, 0}));
}

TEST(Typed, StridesOfViews) {
  std::vector<float> x(24);
  const TensorView<float, 3> v(x.data(), {2, 3, 4});
  EXPECT_EQ(v.strides, (std::array<int64_t, 3>{12, 4, 1}));
  EXPECT_EQ(v.transposed().shape, (std::array<int64_t, 3>{2, 4, 3}));
  EXPECT_EQ(v.transposed().strides, (std::array<int64_t, 3>{12, 1, 4}));
  const TensorView<const float, 3> read_only = v;
  const DLTensor t = read_only.dlpack();
  EXPECT_EQ(t.data, x.data());
  EXPECT_EQ(t.ndim, 3);
  EXPECT_EQ(t.dtype.code, kDLFloat);
  EXPECT_EQ(t.dtype.bits, 32);
  EXPECT_EQ(t.strides[0], 12);
}

TEST(Typed, BatchesThroughTheRunTimeEntry) {
  const std::vector<double> a = {1, 2, 3, 4}, b = {0, 1};  // (2, 1, 2) and (2, 1): broadcast
  std::vector<double> c(2);
  const TensorView<const double, 3> va(a.data(), {2, 1, 2});
  const MatrixView<const double> vb(b.data(), {2, 1});
  const TensorView<double, 3> vc(c.data(), {2, 1, 1});
  matmul(Semiring::min_plus, va.dlpack(), vb.dlpack(), vc.dlpack());
  EXPECT_EQ(c, (std::vector<double>{1, 3}));
}

TEST(Typed, Gradient) {
  const std::vector<float> a = {1, 4, 3, 2}, b = {2, 1, 1, 3}, grad(4, 1);
  std::vector<float> c(4), ga(4), gb(4);
  std::vector<int32_t> arg(4);
  const MatrixView<const float> va(a.data(), {2, 2}), vb(b.data(), {2, 2});
  matmul<MaxMul, float>(va, vb, {c.data(), {2, 2}}, MatrixView<int32_t>(arg.data(), {2, 2}));
  EXPECT_EQ(c, (std::vector<float>{4, 12, 6, 6}));
  EXPECT_EQ(arg, (std::vector<int32_t>{1, 1, 0, 1}));
  matmul_backward<MaxMul, float>({grad.data(), {2, 2}}, {arg.data(), {2, 2}}, va, vb, {ga.data(), {2, 2}},
                                 {gb.data(), {2, 2}});
  EXPECT_EQ(ga, (std::vector<float>{0, 4, 2, 3}));
  EXPECT_EQ(gb, (std::vector<float>{3, 0, 4, 6}));
}

TEST(Typed, BuildInfo) {
  const BuildInfo info = build_info();
  EXPECT_EQ(info.version, TROPICAL_GEMM_VERSION);
  ASSERT_FALSE(info.isas.empty());
  EXPECT_GE(info.max_threads, 1);
  try {
    set_isa("no-such-isa");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::invalid_value);
    EXPECT_NE(std::string(e.what()).find("no-such-isa"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find(info.isas.front()), std::string::npos) << e.what();
  }
  set_isa("");
  EXPECT_EQ(build_info().isa, info.isas.front());
}

}  // namespace
}  // namespace tropical

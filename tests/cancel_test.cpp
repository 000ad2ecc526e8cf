#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tropical_gemm/c_api.h"
#include "tropical_gemm/matmul.h"
#include "tropical_gemm/permute.h"
#include "tropical_gemm/tensor_view.h"

namespace tropical {
namespace {

constexpr int64_t kSize = 512;

struct Problem {
  std::vector<float> a = std::vector<float>(kSize * kSize, 1), c = std::vector<float>(kSize * kSize);
  DLTensor of(std::vector<float>& x) {
    DLTensor t{};
    t.data = x.data();
    t.device = {kDLCPU, 0};
    t.ndim = 2;
    t.dtype = dlpack_dtype<float>();
    t.shape = shape;
    return t;
  }
  int64_t shape[2] = {kSize, kSize};
};

void expect_cancelled(Problem& p, const MatmulOptions& options) {
  try {
    matmul(Semiring::max_plus, p.of(p.a), p.of(p.a), p.of(p.c), nullptr, options);
    FAIL() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::cancelled);
  }
}

TEST(Cancel, RaisedFlagStopsTheCall) {
  Problem p;
  for (const int threads : {1, 3}) {
    std::atomic<bool> flag{true};
    MatmulOptions options;
    options.threads = threads;
    options.cancel = &flag;
    expect_cancelled(p, options);
    flag = false;
    EXPECT_NO_THROW(matmul(Semiring::max_plus, p.of(p.a), p.of(p.a), p.of(p.c), nullptr, options));
    EXPECT_EQ(p.c[kSize + 1], 2);
  }
}

TEST(Cancel, FlagRaisedByAnotherThread) {
  // A batch that shares its matrices by stride 0, so that it is long without being large.
  Problem p;
  constexpr int64_t kBatch = 2'000;
  std::vector<float> c(kBatch * 64 * 64);
  int64_t a_shape[] = {kBatch, 64, 4096}, b_shape[] = {kBatch, 4096, 64}, c_shape[] = {kBatch, 64, 64};
  int64_t a_strides[] = {0, 4096, 1}, b_strides[] = {0, 64, 1};
  DLTensor a = p.of(p.a), b = p.of(p.a), out = p.of(c);
  a.ndim = b.ndim = out.ndim = 3;
  a.shape = a_shape, a.strides = a_strides;
  b.shape = b_shape, b.strides = b_strides;
  out.shape = c_shape;
  std::atomic<bool> flag{false};
  MatmulOptions options;
  options.cancel = &flag;
  options.threads = 2;  // on a large machine all threads could be done before the flag is raised
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    flag = true;
  });
  try {
    matmul(Semiring::max_plus, a, b, out, nullptr, options);
    ADD_FAILURE() << "ran to its end";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::cancelled);
  }
  stopper.join();
}

TEST(Cancel, ACopyIsStoppedOnOneThreadToo) {
  constexpr int64_t kSide = 8192;
  std::vector<int16_t> x(kSide * kSide), y(x.size());
  const MatrixView<int16_t> from(x.data(), {kSide, kSide}), to(y.data(), {kSide, kSide});
  const int axes[] = {1, 0};
  struct Late {
    std::atomic<bool> flag{false};
    std::thread stopper{[this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      flag = true;
    }};
    ~Late() { stopper.join(); }
  };
  bool stopped = false;
  for (int tries = 0; tries < 20 && !stopped; ++tries) {
    Late late;
    try {
      permute(from.dlpack(), axes, to.dlpack(), {.threads = 1, .cancel = &late.flag});
    } catch (const Error& e) {
      stopped = e.code() == ErrorCode::cancelled;
    }
  }
  EXPECT_TRUE(stopped);
}

TEST(Cancel, WordOfTheCInterface) {
  Problem p;
  const DLTensor a = p.of(p.a), c = p.of(p.c);
  volatile int32_t word = 1;
  tg_matmul_options options{};
  options.struct_size = sizeof options;
  options.cancel = &word;
  EXPECT_EQ(tg_matmul(TG_MAX_PLUS, &a, &a, &c, nullptr, &options), TG_CANCELLED);
  EXPECT_STRNE(tg_last_error(), "");
  word = 0;
  EXPECT_EQ(tg_matmul(TG_MAX_PLUS, &a, &a, &c, nullptr, &options), TG_OK);
  EXPECT_STREQ(tg_last_error(), "");
}

}  // namespace
}  // namespace tropical

#include "parallel.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <vector>

#include "float_mode.h"
#include "tropical_gemm/matmul.h"

namespace tropical {
namespace {

TEST(Parallel, EveryTaskRunsOnce) {
  for (const int threads : {1, 2, 5, 16})
    for (const int64_t tasks : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(tasks));
      std::atomic<bool> in_range{true};
      parallel_for(tasks, threads, [&](int64_t task, int worker) {
        ++runs[static_cast<size_t>(task)];
        if (worker < 0 || worker >= threads) in_range = false;
      });
      for (const auto& count : runs) ASSERT_EQ(count, 1) << threads << " threads, " << tasks << " tasks";
      EXPECT_TRUE(in_range);
    }
}

TEST(Parallel, AWorkerIsNeverInTwoTasksAtOnce) {
  constexpr int kThreads = 4;
  std::atomic<int> inside[kThreads] = {};
  std::atomic<bool> clash{false};
  parallel_for(500, kThreads, [&](int64_t, int worker) {
    if (inside[worker]++ != 0) clash = true;
    for (int i = 0; i < 1000; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
    --inside[worker];
  });
  EXPECT_FALSE(clash);
}

TEST(Parallel, ExceptionsReachTheCaller) {
  for (const int threads : {1, 3}) {
    try {
      parallel_for(100, threads, [](int64_t task, int) {
        if (task % 10 == 3) throw std::runtime_error("task failed");
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "task failed");
    }
    std::atomic<int> runs{0};
    parallel_for(10, threads, [&](int64_t, int) { ++runs; });
    EXPECT_EQ(runs, 10);
  }
}

TEST(Parallel, RegionsNest) {
  std::atomic<int> runs{0};
  std::atomic<bool> in_range{true};
  parallel_for(3, 2, [&](int64_t, int) {
    parallel_for(4, 2, [&](int64_t, int worker) {
      ++runs;
      if (worker < 0 || worker >= 2) in_range = false;
    });
  });
  EXPECT_EQ(runs, 12);
  EXPECT_TRUE(in_range);
}

TEST(Parallel, ThreadCount) {
  EXPECT_EQ(thread_count(3), 3);
  EXPECT_GE(thread_count(0), 1);
  EXPECT_EQ(build_info().max_threads, thread_count(0));
}

#if !defined(__SANITIZE_THREAD__)  // which does not support threads after fork
// OpenMP's workers are not copied by fork: a child that waited for them would hang.
TEST(Parallel, ForkedChildRunsAlone) {
  parallel_for(8, 4, [](int64_t, int) {});  // the parent's workers exist
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(30);
    bool right = thread_count(0) == 1 && thread_count(4) == 1;
    const std::vector<float> a(64 * 64, 1);
    std::vector<float> c(64 * 64);
    MatmulOptions options;
    options.threads = 4;
    matmul<MaxPlus, float>({a.data(), {64, 64}}, {a.data(), {64, 64}}, {c.data(), {64, 64}}, options);
    for (const float x : c) right = right && x == 2;
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  EXPECT_EQ(thread_count(4), 4);  // the parent is as before
}
#endif

#if defined(__SSE__)
TEST(Parallel, SubnormalNumbersStayInAnyModeOfTheCaller) {
  constexpr unsigned kFlush = 0x8040;  // results, and operands
  constexpr int64_t kSize = 64;
  const std::vector<float> a(kSize * kSize, 1e-30f), b(kSize * kSize, 1e-10f);
  const float expected = 1e-30f * 1e-10f;
  const unsigned before = _mm_getcsr();
  for (const int threads : {1, 4}) {
    std::vector<float> c(kSize * kSize);
    MatmulOptions options;
    options.threads = threads;
    _mm_setcsr(before | kFlush);
    matmul<MaxMul, float>(MatrixView<const float>(a.data(), {kSize, kSize}),
                          MatrixView<const float>(b.data(), {kSize, kSize}),
                          MatrixView<float>(c.data(), {kSize, kSize}), options);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    EXPECT_EQ(after & kFlush, kFlush) << "the caller's mode was not restored";
    EXPECT_GT(expected, 0.0f);
    for (const float x : c) ASSERT_EQ(x, expected) << threads << " threads";
  }
}
#endif

}  // namespace
}  // namespace tropical

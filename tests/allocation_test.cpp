// Memory that runs out: for every operation the first, second, ... allocation of a call fails, until one needs no more.
// Each failure must be told as such, leak nothing, leave what is only read as it was, and not spoil the next call.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <thread>

#include "cases.h"
#include "tropical_gemm/c_api.h"
#include "tropical_gemm/closure.h"
#include "tropical_gemm/permute.h"
#include "tropical_gemm/viterbi.h"

namespace {

// How many allocations still succeed; negative: all. `lasting`: after the first that fails all others fail, too.
std::atomic<int64_t> budget{-1};
std::atomic<bool> lasting{false};
std::atomic<bool> failed{false};
std::atomic<int64_t> blocks{0};  // by operator new, not yet deleted

bool fails() {
  if (budget < 0) return false;
  const int64_t before = budget--;
  if (before > 0) return false;
  budget = lasting ? 0 : -1;
  return failed = true;
}

}  // namespace

// All memory of the library comes from here: containers and functions by `new`, arenas by aligned_alloc. Not inline, as
// g++ would warn of free for what comes from operator new.
[[gnu::noinline]] void* operator new(size_t size) {
  void* p = fails() ? nullptr : std::malloc(size ? size : 1);
  if (!p) throw std::bad_alloc();
  ++blocks;
  return p;
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void* p) noexcept {
  if (p) --blocks;
  std::free(p);
}
void operator delete(void* p, size_t) noexcept { operator delete(p); }
extern "C" void* aligned_alloc(size_t alignment, size_t size) noexcept {
  void* p = nullptr;
  return fails() || posix_memalign(&p, alignment, size) != 0 ? nullptr : p;
}

namespace tropical::testing {
namespace {

HostTensor random(DType dtype, Shape shape, Semiring semiring = Semiring::max_plus) {
  Rng rng(7);
  HostTensor x(dtype, std::move(shape), Layout::row_major, rng);
  fill(x, Fill::uniform, {semiring, dtype}, Lines::rows, rng);
  return x;
}

enum class Outcome { done, no_memory, other };

Outcome outcome_of(const std::function<void()>& call) {
  try {
    call();
    return Outcome::done;
  } catch (const Error& e) {
    return e.code() == ErrorCode::out_of_memory ? Outcome::no_memory : Outcome::other;
  } catch (const std::bad_alloc&) {
    return Outcome::no_memory;
  }
}

// In a thread of its own, which has no arena yet, with so many allocations.
Outcome attempt(const std::function<void()>& call, int64_t allocations) {
  Outcome outcome{};
  std::thread([&] {
    const int64_t before = blocks;
    failed = false;
    budget = allocations;
    outcome = outcome_of(call);
    budget = -1;
    EXPECT_EQ(blocks, before) << "after " << allocations << " allocations";
  }).join();
  return outcome;
}

// How many allocations of `call` were made to fail. `outputs` are compared with those of a call with enough memory.
int64_t run_out(const std::function<void()>& call, std::initializer_list<HostTensor*> outputs) {
  std::vector<HostTensor> blank, expected;
  for (HostTensor* x : outputs) blank.push_back(*x);
  EXPECT_EQ(attempt(call, -1), Outcome::done);
  for (HostTensor* x : outputs) expected.push_back(*x);
  int64_t failures = 0;
  for (const bool every : {false, true}) {
    lasting = every;
    for (int64_t n = 0;; ++n) {
      size_t i = 0;
      for (HostTensor* x : outputs) *x = blank[i++];
      const Outcome outcome = attempt(call, n);
      // Some do without the memory that they would have liked to have.
      EXPECT_NE(outcome, Outcome::other) << "after " << n << " allocations";
      if (!failed) break;
      ++failures;
      if (n > 1000) ADD_FAILURE() << "no end of failures", n = -2;
      if (n < 0) break;
      i = 0;
      for (HostTensor* x : outputs) *x = blank[i++];
      EXPECT_EQ(attempt(call, -1), Outcome::done);  // the next call works
    }
    size_t i = 0;
    for (HostTensor* x : outputs) EXPECT_TRUE(x->same_bytes(expected[i++]));
  }
  return failures;
}

class Allocation : public ::testing::TestWithParam<int> {
 protected:
  MatmulOptions options() const {
    MatmulOptions o;
    o.threads = GetParam();
    return o;
  }
  template <class Options>
  Options threaded() const {
    Options o;
    o.threads = GetParam();
    return o;
  }
};

TEST_P(Allocation, Matmul) {
  for (const Pair pair : supported_pairs())
    for (const bool tracks : {false, true}) {
      if (GetParam() > 1 && pair.semiring != Semiring::max_plus) continue;
      const HostTensor a = random(pair.dtype, {34, 40}, pair.semiring), b = random(pair.dtype, {40, 70}, pair.semiring);
      const HostTensor a0 = a, b0 = b;
      HostTensor c = random(pair.dtype, {34, 70}, pair.semiring), argmax = random(DType::i32, {34, 70});
      const DLTensor arg = argmax.dlpack();
      const int64_t failures = run_out(
          [&] { matmul(pair.semiring, a.dlpack(), b.dlpack(), c.dlpack(), tracks ? &arg : nullptr, options()); },
          {&c, &argmax});
      EXPECT_GT(failures, 0) << pair_text(pair);
      EXPECT_TRUE(a.same_bytes(a0) && b.same_bytes(b0)) << pair_text(pair);
    }
}

TEST_P(Allocation, FilteredMatmul) {
  set_filter("always");
  const HostTensor a = random(DType::f32, {130, 260}), b = random(DType::f32, {260, 130});
  HostTensor c = random(DType::f32, {130, 130}), argmax = random(DType::i32, {130, 130});
  const DLTensor arg = argmax.dlpack();
  EXPECT_GT(
      run_out([&] { matmul(Semiring::max_plus, a.dlpack(), b.dlpack(), c.dlpack(), &arg, options()); }, {&c, &argmax}),
      0);
  set_filter("");
}

TEST_P(Allocation, Backward) {
  const HostTensor a = random(DType::f16, {30, 40}), b = random(DType::f16, {40, 50}),
                   grad = random(DType::f16, {30, 50});
  HostTensor argmax = random(DType::i32, {30, 50}), c = random(DType::f16, {30, 50});
  const DLTensor arg = argmax.dlpack();
  matmul(Semiring::max_plus, a.dlpack(), b.dlpack(), c.dlpack(), &arg);
  HostTensor ga = a, gb = b;
  const DLTensor to_a = ga.dlpack(), to_b = gb.dlpack();
  run_out(
      [&] {
        matmul_backward(Semiring::max_plus, grad.dlpack(), arg, a.dlpack(), b.dlpack(), &to_a, &to_b, GetParam());
      },
      {&ga, &gb});
}

TEST_P(Allocation, Count) {
  const HostTensor a = random(DType::i32, {30, 40}), b = random(DType::i32, {40, 50});
  HostTensor c = random(DType::i32, {30, 50}), counts = random(DType::i64, {30, 50});
  run_out(
      [&] {
        count_matmul(Semiring::max_plus, a.dlpack(), nullptr, b.dlpack(), nullptr, c.dlpack(), counts.dlpack(),
                     options());
      },
      {&c, &counts});
}

TEST_P(Allocation, Closure) {
  constexpr Semiring kSemiring = Semiring::min_max;
  HostTensor d = random(DType::f32, {80, 80}, kSemiring), pred = random(DType::i32, {80, 80});
  const DLTensor matrix = d.dlpack(), before = pred.dlpack();
  EXPECT_GT(run_out(
                [&] {
                  load_graph(kSemiring, matrix, &matrix, &before, threaded<GraphOptions>());
                  closure(kSemiring, matrix, &before, threaded<ClosureOptions>());
                },
                {&d, &pred}),
            0);
}

TEST_P(Allocation, Paths) {
  const HostTensor w = random(DType::f64, {30, 30}, Semiring::min_max);
  HostTensor d = random(DType::f64, {3, 30}), pred = random(DType::i32, {3, 30});
  const DLTensor before = pred.dlpack();
  const std::vector<int64_t> sources{0, 5, -1};
  EXPECT_GT(run_out(
                [&] {
                  start_paths(Semiring::min_max, sources, d.dlpack(), &before);
                  relax(Semiring::min_max, w.dlpack(), d.dlpack(), &before, 100, threaded<ClosureOptions>());
                },
                {&d, &pred}),
            0);
}

TEST_P(Allocation, Viterbi) {
  for (const DType dtype : {DType::f32, DType::f16})
    for (const bool scan : {false, true}) {
      const HostTensor emission = random(dtype, {2, 20, 9}), transition = random(dtype, {9, 9});
      HostTensor paths = random(DType::i32, {2, 20}), scores = random(DType::f32, {2});
      TrellisOptions o = threaded<TrellisOptions>();
      o.scan = scan;
      EXPECT_GT(run_out(
                    [&] {
                      viterbi(emission.dlpack(), transition.dlpack(), nullptr, nullptr, nullptr, paths.dlpack(),
                              scores.dlpack(), o);
                    },
                    {&paths, &scores}),
                0);
    }
}

TEST_P(Allocation, Align) {
  const HostTensor log_probs = random(DType::f32, {3, 20, 6});
  HostTensor targets = random(DType::i32, {3, 5});
  for (int64_t i = 0; i < targets.count(); ++i) targets.at<int32_t>(i) = static_cast<int32_t>(1 + i % 5);
  HostTensor labels = random(DType::i32, {3, 20}), scores = random(DType::f32, {3, 20});
  EXPECT_GT(run_out(
                [&] {
                  forced_align(log_probs.dlpack(), targets.dlpack(), nullptr, nullptr, 0, labels.dlpack(),
                               scores.dlpack(), threaded<TrellisOptions>());
                },
                {&labels, &scores}),
            0);
}

TEST_P(Allocation, Permute) {
  const HostTensor x = random(DType::f32, {20, 30, 40});
  Rng rng(1);
  HostTensor out(DType::f32, {40, 20, 30}, Layout::row_major, rng);
  const int axes[] = {2, 0, 1};
  EXPECT_GT(run_out([&] { permute(x.dlpack(), axes, out.dlpack(), threaded<PermuteOptions>()); }, {&out}), 0);
}

TEST_P(Allocation, Facts) {
  run_out([] { build_info(); }, {});
  const HostTensor a = random(DType::f32, {3, 4}), b = random(DType::f32, {4, 5});
  EXPECT_GT(run_out([&] { matmul_shape(a.dlpack(), b.dlpack()); }, {}), 0);
}

INSTANTIATE_TEST_SUITE_P(Threads, Allocation, ::testing::Values(1, 3));

// The C interface gives a code also where there is no memory for its message.
TEST(AllocationC, ACodeWithoutMemory) {
  const HostTensor a = random(DType::f32, {34, 40}), b = random(DType::f32, {40, 70}), c = random(DType::f32, {34, 70});
  const DLTensor ta = a.dlpack(), tb = b.dlpack(), tc = c.dlpack();
  for (const bool every : {false, true}) {
    lasting = every;
    for (const bool valid : {true, false}) {
      tg_status status = TG_OUT_OF_MEMORY;
      for (int64_t n = 0; n < 1000; ++n) {
        std::string message;
        std::thread([&] {
          budget = n;
          status = tg_matmul(TG_MAX_PLUS, &ta, valid ? &tb : &ta, &tc, nullptr, nullptr);
          const bool enough = budget > 0;
          budget = -1;
          message = tg_last_error();
          EXPECT_EQ(message.empty(), status == TG_OK);
          if (enough) n = 1000;
        }).join();
        EXPECT_TRUE(status == TG_OUT_OF_MEMORY || status == (valid ? TG_OK : TG_INVALID_VALUE)) << status;
      }
      EXPECT_EQ(status, valid ? TG_OK : TG_INVALID_VALUE);
    }
  }
}

}  // namespace
}  // namespace tropical::testing

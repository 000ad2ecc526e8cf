// Instruction sets: all that the machine has are offered, and every operation has the same bits on each. Products,
// their gradients and filtering are compared in tests of their own.
#include <gtest/gtest.h>

#include <optional>

#include "cases.h"
#include "isas.h"
#include "tropical_gemm/closure.h"
#include "tropical_gemm/permute.h"
#include "tropical_gemm/viterbi.h"

namespace tropical::testing {
namespace {

bool offered(const std::string& name) {
  const std::vector<std::string> isas = build_info().isas;
  return std::find(isas.begin(), isas.end(), name) != isas.end();
}

TEST(Isa, AllThatTheMachineHasAreOffered) {
  EXPECT_TRUE(offered("baseline"));
#if defined(__x86_64__)
  __builtin_cpu_init();
  EXPECT_EQ(offered("AVX2"), __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  EXPECT_EQ(offered("AVX-512"), __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"));
#elif defined(__aarch64__)
  EXPECT_TRUE(offered("NEON"));
#endif
  EXPECT_EQ(build_info().isa, build_info().isas.front());
  on_each_isa([](const std::string& isa) { EXPECT_EQ(build_info().isa, isa); });
  EXPECT_EQ(build_info().isa, build_info().isas.front());
}

// `call` makes its operands from the generator and returns all that it wrote.
template <class Call>
void same_on_each_isa(uint64_t seed, const Call& call) {
  std::optional<std::vector<HostTensor>> first;
  on_each_isa([&](const std::string& isa) {
    Rng rng(seed);
    std::vector<HostTensor> got = call(rng);
    if (!first) first.emplace(std::move(got));
    ASSERT_EQ(first->size(), got.empty() ? first->size() : got.size());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_TRUE(got[i].same_bytes((*first)[i])) << isa << ", output " << i << ", seed " << seed;
  });
}

constexpr int kRounds = kFew ? 4 : 20;

TEST(Isa, Closures) {
  for (const Pair pair : supported_pairs())
    for (uint64_t seed = 0; seed < kRounds; ++seed)
      same_on_each_isa(seed, [&](Rng& rng) {
        const int64_t n = 1 + rng.below(150);
        HostTensor d(pair.dtype, {n, n}, Layout::row_major, rng), pred(DType::i32, {n, n}, Layout::row_major, rng);
        fill(d, rng.one_in(2) ? Fill::few : Fill::masked, pair, Lines::rows, rng);
        for (int64_t i = 0; i < n * n; ++i) pred.at<int32_t>(i) = static_cast<int32_t>(i / n);
        const DLTensor p = pred.dlpack();
        closure(pair.semiring, d.dlpack(), rng.one_in(2) ? &p : nullptr);
        return std::vector{d, pred};
      });
}

TEST(Isa, Counts) {
  for (const Semiring semiring : {Semiring::max_plus, Semiring::min_plus})
    for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64})
      for (uint64_t seed = 0; seed < kRounds; ++seed)
        same_on_each_isa(seed, [&](Rng& rng) {
          const int64_t m = 1 + rng.below(40), k = rng.below(40), n = 1 + rng.below(40);
          HostTensor a(dtype, {m, k}, rng.pick(kInputLayouts), rng), b(dtype, {k, n}, rng.pick(kInputLayouts), rng);
          HostTensor c(dtype, {m, n}, rng.pick(kOutputLayouts), rng), counts(DType::i64, {m, n}, Layout::step2, rng);
          const Fill kinds[] = {Fill::uniform, Fill::few, Fill::masked};
          fill(a, rng.pick(kinds), {semiring, dtype}, Lines::rows, rng);
          fill(b, rng.pick(kinds), {semiring, dtype}, Lines::columns, rng);
          count_matmul(semiring, a.dlpack(), nullptr, b.dlpack(), nullptr, c.dlpack(), counts.dlpack());
          return std::vector{c, counts};
        });
}

TEST(Isa, Trellises) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64})
    for (uint64_t seed = 0; seed < kRounds; ++seed)
      same_on_each_isa(seed, [&](Rng& rng) {
        const int64_t batch = 1 + rng.below(4), steps = 1 + rng.below(20), states = 1 + rng.below(50);
        const Pair pair{Semiring::max_plus, dtype};
        const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
        HostTensor emission(dtype, {batch, steps, states}, rng.pick(kInputLayouts), rng);
        HostTensor transition(dtype, {states, states}, rng.pick(kInputLayouts), rng);
        HostTensor paths(DType::i64, {batch, steps}, rng.pick(kOutputLayouts), rng);
        HostTensor scores(wide, {batch}, rng.pick(kOutputLayouts), rng);
        fill(emission, rng.pick(kFills), pair, Lines::rows, rng);
        fill(transition, rng.pick(kFills), pair, Lines::rows, rng);
        TrellisOptions options;
        options.scan = rng.one_in(3);
        viterbi(emission.dlpack(), transition.dlpack(), nullptr, nullptr, nullptr, paths.dlpack(), scores.dlpack(),
                options);

        HostTensor targets(DType::i32, {batch, steps / 2}, Layout::row_major, rng);
        HostTensor labels(DType::i32, {batch, steps}, rng.pick(kOutputLayouts), rng);
        HostTensor each(dtype, {batch, steps}, rng.pick(kOutputLayouts), rng);
        if (states > 1) {
          for (int64_t i = 0; i < targets.count(); ++i) targets.at<int32_t>(i) = int32_t(1 + rng.below(states - 1));
          forced_align(emission.dlpack(), targets.dlpack(), nullptr, nullptr, 0, labels.dlpack(), each.dlpack());
        }
        return std::vector{paths, scores, labels, each};
      });
}

TEST(Isa, Permutations) {
  for (const DType dtype : {DType::boolean, DType::i16, DType::f32, DType::f64})
    for (uint64_t seed = 0; seed < kRounds; ++seed)
      same_on_each_isa(seed, [&](Rng& rng) {
        const Pair pair{dtype == DType::boolean ? Semiring::or_and : Semiring::max_plus, dtype};
        Shape shape, permuted;
        std::vector<int> axes{0, 1, 2};
        for (size_t i = axes.size(); i > 1; --i)
          std::swap(axes[i - 1], axes[static_cast<size_t>(rng.below(int64_t(i)))]);
        for (int d = 0; d < 3; ++d) shape.push_back(1 + rng.below(40));
        for (const int axis : axes) permuted.push_back(shape[static_cast<size_t>(axis)]);
        HostTensor x(dtype, shape, rng.pick(kInputLayouts), rng), out(dtype, permuted, Layout::row_major, rng);
        fill(x, Fill::bits, pair, Lines::rows, rng);
        permute(x.dlpack(), axes, out.dlpack());
        return std::vector{out};
      });
}

}  // namespace
}  // namespace tropical::testing

// The trellises against their recurrences, and what their entries refuse. Python's tests go further.
#include "tropical_gemm/viterbi.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tropical_gemm/error.h"
#include "tropical_gemm/tensor_view.h"

namespace tropical {
namespace {

struct Model {
  int64_t batch, steps, states;
  std::vector<float> emission, transition, scores;
  std::vector<int64_t> paths;
  std::vector<int32_t> lengths;

  Model(int64_t b, int64_t t, int64_t s, unsigned seed)
      : batch(b),
        steps(t),
        states(s),
        emission(static_cast<size_t>(b * t * s)),
        transition(static_cast<size_t>(s * s)),
        scores(static_cast<size_t>(b)),
        paths(static_cast<size_t>(b * t)),
        lengths(static_cast<size_t>(b)) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> value(-3, 3);
    for (std::vector<float>* x : {&emission, &transition})
      std::generate(x->begin(), x->end(), [&] { return static_cast<float>(value(random)); });
    std::uniform_int_distribution<int32_t> length(0, static_cast<int32_t>(t));
    std::generate(lengths.begin(), lengths.end(), [&] { return length(random); });
  }
  void run(const TrellisOptions& options) {
    const TensorView<float, 3> e(emission.data(), {batch, steps, states});
    const TensorView<float, 2> a(transition.data(), {states, states});
    const TensorView<int32_t, 1> n(lengths.data(), {batch});
    const TensorView<int64_t, 2> p(paths.data(), {batch, steps});
    const TensorView<float, 1> v(scores.data(), {batch});
    const DLTensor length = n.dlpack();
    viterbi(e.dlpack(), a.dlpack(), nullptr, nullptr, &length, p.dlpack(), v.dlpack(), options);
  }
  float e(int64_t b, int64_t t, int64_t s) const { return emission[static_cast<size_t>((b * steps + t) * states + s)]; }
  float a(int64_t i, int64_t j) const { return transition[static_cast<size_t>(i * states + j)]; }

  void expect_right() const {
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t length = lengths[static_cast<size_t>(b)];
      const auto path = [&](int64_t t) { return paths[static_cast<size_t>(b * steps + t)]; };
      for (int64_t t = length; t < steps; ++t) ASSERT_EQ(path(t), -1);
      std::vector<float> v(static_cast<size_t>(states), 0.0f);
      float along = 0;
      for (int64_t t = 0; t < length; ++t) {
        std::vector<float> next(v.size());
        for (int64_t j = 0; j < states; ++j) {
          float best = t == 0 ? 0.0f : -1e30f;
          for (int64_t i = 0; t > 0 && i < states; ++i) best = std::max(best, v[static_cast<size_t>(i)] + a(i, j));
          next[static_cast<size_t>(j)] = best + e(b, t, j);
        }
        v = next;
        ASSERT_GE(path(t), 0);
        along += e(b, t, path(t)) + (t > 0 ? a(path(t - 1), path(t)) : 0.0f);
      }
      const float score = length == 0 ? 0.0f : *std::max_element(v.begin(), v.end());
      EXPECT_EQ(scores[static_cast<size_t>(b)], score);
      EXPECT_EQ(along, score);
    }
  }
};

TEST(Viterbi, Recurrence) {
  for (const auto& [b, t, s] : {std::array<int64_t, 3>{1, 1, 1}, {2, 9, 5}, {7, 12, 33}, {3, 5, 600}})
    for (const int threads : {1, 2, 4})
      for (const bool scan : {false, true}) {
        if (scan && s > 100) continue;
        Model model(b, t, s, 7);
        model.run({.threads = threads, .scan = scan});
        model.expect_right();
      }
}

TEST(Viterbi, Cancels) {
  Model model(4, 6, 8, 1);
  const std::atomic<bool> raised{true};
  try {
    model.run({.cancel = &raised});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled);
  }
}

TEST(Viterbi, RefusesOverlap) {
  Model model(2, 2, 2, 1);
  const TensorView<float, 3> e(model.emission.data(), {2, 2, 2});
  const TensorView<float, 2> a(model.transition.data(), {2, 2});
  const TensorView<int64_t, 2> p(model.paths.data(), {2, 2});
  const TensorView<float, 1> inside(model.emission.data(), {2});
  try {
    viterbi(e.dlpack(), a.dlpack(), nullptr, nullptr, nullptr, p.dlpack(), inside.dlpack());
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "scores overlaps log_emission in memory; pass an output of its own");
  }
}

TEST(Viterbi, AlignsTargets) {
  // Two sequences of four steps; the second has one target only.
  std::vector<double> x = {0, 5, 0, 0, 5, 0, 5, 0, 0, 0, 0, 5,  //
                           0, 1, 0, 0, 2, 0, 0, 3, 0, 9, 0, 0};
  std::vector<int32_t> targets = {1, 2, 1, 0}, lengths = {2, 1}, labels(8);
  std::vector<double> scores(8);
  const TensorView<double, 3> probs(x.data(), {2, 4, 3});
  const TensorView<int32_t, 2> y(targets.data(), {2, 2}), l(labels.data(), {2, 4});
  const TensorView<int32_t, 1> n(lengths.data(), {2});
  const TensorView<double, 2> s(scores.data(), {2, 4});
  const DLTensor length = n.dlpack();
  forced_align(probs.dlpack(), y.dlpack(), nullptr, &length, 0, l.dlpack(), s.dlpack(), {.threads = 2});
  EXPECT_EQ(labels, (std::vector<int32_t>{1, 1, 0, 2, 1, 1, 1, 0}));
  EXPECT_EQ(scores, (std::vector<double>{5, 5, 5, 5, 1, 2, 3, 9}));
}

}  // namespace
}  // namespace tropical

// Closures against plain Floyd-Warshall on weights whose sums are exact; predecessors by walking every path.
#include "tropical_gemm/closure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "cases.h"
#include "lowering.h"

namespace tropical::testing {
namespace {

// A matrix and its view, which a DLTensor points into. std::vector<bool> has no elements to point to.
template <class T>
struct Square {
  int64_t n;
  std::unique_ptr<T[]> x;
  MatrixView<T> view;
  explicit Square(int64_t nodes, T fill = {})
      : n(nodes), x(new T[static_cast<size_t>(nodes * nodes)]), view(x.get(), {nodes, nodes}) {
    std::fill_n(x.get(), n * n, fill);
  }
  Square(const Square& o) : Square(o.n) { std::copy_n(o.x.get(), n * n, x.get()); }
  Square& operator=(const Square& o) {
    std::copy_n(o.x.get(), n * n, x.get());
    return *this;
  }
  void set(const std::vector<T>& values) { std::copy(values.begin(), values.end(), x.get()); }
  std::vector<T> values() const { return {x.get(), x.get() + n * n}; }
  T& at(int64_t i, int64_t j) { return x[static_cast<size_t>(i * n + j)]; }
  DLTensor dlpack() { return view.dlpack(); }
};

std::vector<int64_t> sizes(std::vector<int64_t> all, std::vector<int64_t> few) { return kFew ? few : all; }

// Weights whose sums and products along paths are exact in T, and no closed walk better than one.
template <class S, class T>
Square<T> random_graph(int64_t n, Rng& rng, int64_t present_in = 3) {
  Square<T> g(n, S::template zero<T>());
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      if (!rng.one_in(present_in)) continue;
      const int r = static_cast<int>(rng.below(4));
      int value = r;  // 0..3
      if constexpr (is_plus_v<S>) value = S::kIsMax ? -r : r;
      if constexpr (is_times_v<S> && S::kIsMax) value = r > 0;  // {0, 1}
      if constexpr (is_times_v<S> && !S::kIsMax) value = 1 << (r % 2);
      g.at(i, j) = detail::number<T>(value);
    }
  return g;
}

template <class S, class T>
void naive(Square<T>& d, bool reflexive) {
  const T one = S::template one<T>();
  for (int64_t i = 0; i < d.n && reflexive; ++i)
    if (!S::better(d.at(i, i), one)) d.at(i, i) = one;
  for (int64_t k = 0; k < d.n; ++k)
    for (int64_t i = 0; i < d.n; ++i)
      for (int64_t j = 0; j < d.n; ++j) {
        const T x = S::mul(d.at(i, k), d.at(k, j));
        if (S::better(x, d.at(i, j))) d.at(i, j) = x;
      }
}

template <class S, class T>
void expect_closure(int64_t n, bool reflexive, Rng& rng) {
  Square<T> g = random_graph<S, T>(n, rng);
  Square<T> expected = g;
  naive<S, T>(expected, reflexive);
  for (const int threads : kFew ? std::vector{3} : std::vector{1, 3}) {
    Square<T> d = g;
    const DLTensor x = d.dlpack();
    load_graph(S::kId, x, &x, nullptr, {.reflexive = reflexive});
    ASSERT_EQ(closure(S::kId, x, nullptr, {.threads = threads}), std::nullopt);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        ASSERT_TRUE(!S::better(d.at(i, j), expected.at(i, j)) && !S::better(expected.at(i, j), d.at(i, j)))
            << S::kName << " " << TypeInfo<T>::kName << " n = " << n << " at " << i << ", " << j;
  }
}

TEST(Closure, EverySemiringAndTypeEqualsFloydWarshall) {
  Rng rng(1);
  [&]<class... S>(TypeList<S...>) {
    const auto each = [&]<class R>() {
      const auto typed = [&]<class T>() {
        if constexpr (supported_v<R, T>)
          for (const int64_t n : sizes({0, 1, 2, 63, 65, 130}, {0, 1, 70}))
            for (const bool reflexive : {true, false}) expect_closure<R, T>(n, reflexive, rng);
      };
      [&]<class... T>(TypeList<T...>) { (typed.template operator()<T>(), ...); }(AllTypes{});
    };
    (each.template operator()<S>(), ...);
  }(AllSemirings{});
}

// Halves within halves, down to one kernel's rows. A ring.
TEST(Closure, ManyNodes) {
  constexpr int64_t kNodes = kFew ? 300 : 1100;
  Square<float> d(kNodes, highest<float>());
  for (int64_t i = 0; i < kNodes; ++i) d.at(i, (i + 1) % kNodes) = 1;
  const DLTensor x = d.dlpack();
  Square<int32_t> p(kNodes);
  const DLTensor pred = p.dlpack();
  load_graph(Semiring::min_plus, x, &x, &pred, {});
  ASSERT_EQ(closure(Semiring::min_plus, x, &pred), std::nullopt);
  for (int64_t i = 0; i < kNodes; ++i)
    for (int64_t j = 0; j < kNodes; ++j) {
      ASSERT_EQ(d.at(i, j), static_cast<float>((j - i + kNodes) % kNodes));
      ASSERT_EQ(p.at(i, j), i == j ? -9999 : (j + kNodes - 1) % kNodes);
    }
}

// Every chain of predecessors ends at its source after fewer than n steps, and its edges sum up to the distance.
template <class T>
void expect_paths(Square<T>& g, Square<T>& d, Square<int32_t>& pred) {
  const T none = highest<T>();
  for (int64_t i = 0; i < d.n; ++i)
    for (int64_t j = 0; j < d.n; ++j) {
      if (i == j || d.at(i, j) == none) {
        ASSERT_EQ(pred.at(i, j), -9999) << i << " " << j;
        continue;
      }
      T sum = 0;
      int64_t at = j, steps = 0;
      while (at != i) {
        ASSERT_LT(steps++, d.n - 1) << "from " << i << " to " << j;
        const int64_t before = pred.at(i, at);
        ASSERT_TRUE(before >= 0 && before < d.n);
        sum = static_cast<T>(sum + g.at(before, at));
        at = before;
      }
      ASSERT_EQ(sum, d.at(i, j)) << i << " " << j;
    }
}

template <class T>
void expect_predecessors(int64_t n, int64_t present_in, bool undirected, bool negative, Rng& rng) {
  Square<T> g = random_graph<MinPlus, T>(n, rng, present_in);
  if (negative) {  // w + h(i) - h(j) keeps closed walks; many then have weight 0 over edges that have not
    std::vector<T> h(static_cast<size_t>(n));
    for (T& x : h) x = static_cast<T>(rng.below(9));
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        if (g.at(i, j) != highest<T>())
          g.at(i, j) = static_cast<T>(static_cast<T>(static_cast<int64_t>(g.at(i, j)) / 3) + h[static_cast<size_t>(i)] -
                                      h[static_cast<size_t>(j)]);
  }
  Square<T> d(n), edges(n);
  Square<int32_t> p(n);
  const DLTensor x = g.dlpack(), to = d.dlpack(), pred = p.dlpack();
  load_graph(Semiring::min_plus, x, &to, &pred, {.undirected = undirected});
  edges = d;
  ASSERT_EQ(closure(Semiring::min_plus, to, &pred), std::nullopt);
  expect_paths(edges, d, p);
  // Rows by products alone.
  std::vector<int64_t> sources(static_cast<size_t>(std::min<int64_t>(n, 5)));
  std::iota(sources.begin(), sources.end(), 0);
  const auto s = static_cast<int64_t>(sources.size());
  Square<int32_t> q(n);
  Square<T> rows(n);
  const DLTensor w = edges.dlpack();
  DLTensor some = rows.dlpack(), some_pred = q.dlpack();
  int64_t shape[] = {s, n};
  some.shape = some_pred.shape = shape;
  start_paths(Semiring::min_plus, sources, some, &some_pred);
  ASSERT_TRUE(relax(Semiring::min_plus, w, some, &some_pred, n));
  for (int64_t i = 0; i < s; ++i)
    for (int64_t j = 0; j < n; ++j) ASSERT_EQ(rows.at(i, j), d.at(i, j));
  for (int64_t i = s; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) rows.at(i, j) = d.at(i, j), q.at(i, j) = p.at(i, j);
  expect_paths(edges, rows, q);
}

// Weights 0 to 3, two thirds of the edges of weight 0 in the runs with potentials: ties everywhere.
TEST(Closure, PredecessorsFormPaths) {
  Rng rng(2);
  for (const int64_t n : sizes({1, 2, 5, 64, 65, 129, 200, 300}, {1, 65, 130}))
    for (const int64_t present_in : {2, 20})
      for (const bool undirected : {false, true}) {
        expect_predecessors<int32_t>(n, present_in, undirected, false, rng);
        expect_predecessors<float>(n, present_in, undirected, false, rng);
        if (!undirected) expect_predecessors<int64_t>(n, present_in, false, true, rng);
        if (!undirected) expect_predecessors<double>(n, present_in, false, true, rng);
      }
}

// Zero-weight edges both ways among nodes that are reached over sums rounded differently.
TEST(Closure, PredecessorsOfRoundedSumsEnd) {
  Rng rng(3);
  for (int round = 0; round < 6; ++round) {
    const int64_t n = 150;
    Square<float> g(n, highest<float>());
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        if (rng.one_in(6)) g.at(i, j) = rng.one_in(2) ? 0 : static_cast<float>(std::pow(10, 8 * rng.unit() - 4));
    Square<float> d(n);
    Square<int32_t> p(n);
    const DLTensor x = g.dlpack(), to = d.dlpack(), pred = p.dlpack();
    load_graph(Semiring::min_plus, x, &to, &pred, {.undirected = round % 2 == 0});
    ASSERT_EQ(closure(Semiring::min_plus, to, &pred), std::nullopt);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) {
        int64_t steps = 0;
        for (int64_t at = j; at != i && p.at(i, at) >= 0; at = p.at(i, at)) ASSERT_LT(steps++, n);
      }
  }
}

TEST(Closure, NamesANodeOnACycleThatIsTooGood) {
  constexpr int64_t kNodes = 140;
  for (const int64_t begin : {0, 60, 100}) {
    Square<int32_t> d(kNodes, highest<int32_t>());
    for (int64_t i = 0; i + 1 < kNodes; ++i) d.at(i, i + 1) = 1;
    d.at(begin + 30, begin) = -31;  // one less than the way there
    const DLTensor x = d.dlpack();
    load_graph(Semiring::min_plus, x, &x, nullptr, {});
    const auto node = closure(Semiring::min_plus, x);
    ASSERT_TRUE(node.has_value());
    EXPECT_GE(*node, begin);
    EXPECT_LE(*node, begin + 30);
  }
  Square<double> product(2, 0);
  product.at(0, 1) = 2, product.at(1, 0) = 0.75;
  const DLTensor x = product.dlpack();
  load_graph(Semiring::max_mul, x, &x, nullptr, {});
  EXPECT_TRUE(closure(Semiring::max_mul, x).has_value());
}

TEST(Closure, ToleratesRoundingOfFloats) {
  const auto run = [](double gap, double tolerance) {
    Square<double> d(2, 0);
    d.at(0, 1) = 1, d.at(1, 0) = -1 - gap;
    const DLTensor x = d.dlpack();
    const auto node = closure(Semiring::min_plus, x, nullptr, {.tolerance = tolerance});
    EXPECT_TRUE(node || (d.at(0, 0) == 0 && d.at(1, 1) == 0));
    return node.has_value();
  };
  EXPECT_FALSE(run(0, 0));
  EXPECT_TRUE(run(1e-12, 0));
  EXPECT_FALSE(run(1e-12, 1e-11));
  EXPECT_TRUE(run(1e-10, 1e-11));
}

TEST(Closure, ReadsGraphs) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  Square<float> g(3, -1), d(3);
  Square<int32_t> p(3);
  g.set({5, -1, 0, kInf, -7, -2, -1, 3, -1});
  const float absent = -1;
  const DLTensor to = d.dlpack(), pred = p.dlpack();
  GraphFacts facts = load_graph(Semiring::min_plus, g.dlpack(), &to, &pred, {.no_edge = &absent});
  EXPECT_EQ(d.values(), (std::vector<float>{0, kInf, 0, kInf, -7, -2, kInf, 3, 0}));
  EXPECT_EQ(p.values(), (std::vector<int32_t>{-9999, -9999, 0, -9999, -9999, 1, -9999, 2, -9999}));
  EXPECT_EQ(facts.absent, 3);
  EXPECT_EQ(facts.zeros, 1);
  EXPECT_EQ(facts.negative_at, 4);
  EXPECT_EQ(facts.magnitude, 7);
  EXPECT_FALSE(facts.nan_at || facts.infinite_at);
  // Columns first, both ways, counted as steps.
  const MatrixView<float> by_columns = g.view.transposed();
  facts = load_graph(Semiring::min_plus, by_columns.dlpack(), &to, &pred,
                     {.no_edge = &absent, .undirected = true, .unweighted = true});
  EXPECT_EQ(d.values(), (std::vector<float>{0, kInf, 1, kInf, 0, 1, 1, 1, 0}));
  EXPECT_EQ(p.values(), (std::vector<int32_t>{-9999, -9999, 0, -9999, -9999, 1, 2, 2, -9999}));
  g.at(1, 2) = kNaN, g.at(2, 0) = kNaN, g.at(0, 1) = -kInf;
  facts = load_graph(Semiring::min_plus, g.dlpack(), nullptr, nullptr, {});
  EXPECT_EQ(facts.nan_at, 5);
  EXPECT_EQ(facts.infinite_at, 1);
}

TEST(Closure, StopsWhenCancelledAndTellsItsProgress) {
  Square<float> d(300, 1);
  const DLTensor x = d.dlpack();
  std::atomic<bool> flag{false};
  struct Seen {
    std::vector<int64_t> done;
    std::atomic<bool>* flag;
    int ends = 0;
  } seen{{}, &flag};
  ClosureOptions options;
  options.cancel = &flag;
  options.context = &seen;
  options.progress = [](void* context, int64_t done, int64_t total) {
    auto* s = static_cast<Seen*>(context);
    EXPECT_LE(done, total);
    EXPECT_TRUE(s->done.empty() || s->done.back() < done);
    s->done.push_back(done);
    if (done == total) ++s->ends;
  };
  ASSERT_EQ(closure(Semiring::min_plus, x, nullptr, options), std::nullopt);
  EXPECT_GE(seen.done.size(), 5u);
  EXPECT_EQ(seen.ends, 1);
  options.progress = [](void* context, int64_t, int64_t) { *static_cast<Seen*>(context)->flag = true; };
  try {
    closure(Semiring::min_plus, x, nullptr, options);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::cancelled);
  }
}

TEST(Closure, RelaxStopsAtItsLimit) {
  constexpr int64_t kNodes = 10;
  Square<int64_t> w(kNodes, highest<int64_t>());
  for (int64_t i = 0; i + 1 < kNodes; ++i) w.at(i, i + 1) = 2;
  Square<int64_t> rows(kNodes);
  const DLTensor x = w.dlpack();
  DLTensor d = rows.dlpack();
  int64_t shape[] = {1, kNodes};
  d.shape = shape;
  start_paths(Semiring::min_plus, {0}, d, nullptr);
  EXPECT_EQ(rows.at(0, 0), 0);
  EXPECT_EQ(rows.at(0, 1), highest<int64_t>());
  EXPECT_FALSE(relax(Semiring::min_plus, x, d, nullptr, 4));
  EXPECT_EQ(rows.at(0, 4), 8);
  EXPECT_EQ(rows.at(0, 5), highest<int64_t>());
  EXPECT_TRUE(relax(Semiring::min_plus, x, d, nullptr, 20));
  EXPECT_EQ(rows.at(0, 9), 18);
}

TEST(Closure, RefusesBadInput) {
  Square<float> d(3, 1), e(3, 1);
  Square<int32_t> p(3);
  Square<double> other(3);
  int64_t flat[] = {9, 1};
  DLTensor x = d.dlpack(), tall = x;
  tall.shape = flat;
  const MatrixView<float> by_columns = d.view.transposed();
  const DLTensor turned = by_columns.dlpack(), pred = p.dlpack(), f64 = other.dlpack();
  EXPECT_THROW(closure(Semiring::min_plus, tall), Error);
  EXPECT_THROW(closure(Semiring::or_and, x), Error);
  EXPECT_THROW(closure(Semiring::min_plus, turned), Error);
  EXPECT_THROW(closure(Semiring::min_plus, x, &f64), Error);
  EXPECT_THROW(load_graph(Semiring::min_plus, x, &f64, nullptr), Error);
  EXPECT_THROW(load_graph(Semiring::min_plus, x, &turned, nullptr), Error);
  EXPECT_THROW(start_paths(Semiring::min_plus, {0, 1}, x, nullptr), Error);
  EXPECT_THROW(start_paths(Semiring::min_plus, {0, 3, 1}, x, nullptr), Error);
  EXPECT_THROW(relax(Semiring::min_plus, x, x, nullptr, 1), Error);
  EXPECT_THROW(relax(Semiring::min_plus, x, f64, nullptr, 1), Error);
  const DLTensor to = e.dlpack();
  EXPECT_NO_THROW(load_graph(Semiring::min_plus, x, &to, &pred));
  EXPECT_EQ(d.values(), (std::vector<float>(9, 1)));
}

}  // namespace
}  // namespace tropical::testing

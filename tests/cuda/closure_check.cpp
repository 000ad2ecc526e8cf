// Closures and rows of paths on the GPU against the CPU library: values in every bit where sums are exact, predecessors
// by walking each path. A plain program like cuda_check: closure_check LIBRARY
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "../host_tensor.h"
#include "lowering.h"
#include "tropical_gemm/closure.h"

namespace tropical::testing {
namespace {

int failures = 0, checks = 0;

void expect(bool good, const char* what, const std::string& test) {
  ++checks;
  if (good || ++failures > 40) return;
  std::printf("FAILED %s: %s\n", test.c_str(), what);
  std::fflush(stdout);
}

// A matrix in host memory and its copy on the device.
template <class T>
class Matrix {
 public:
  Matrix(int64_t m, int64_t n)
      : host_(new T[static_cast<size_t>(m * n) + 1]()),
        bytes_(static_cast<size_t>(m * n) * sizeof(T)),
        device_(cuda_allocate(bytes_ + 1, 0, nullptr)),
        view_(host_.get(), {m, n}) {}
  ~Matrix() { cuda_release(device_, 0, nullptr); }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  T& operator()(int64_t i, int64_t j) { return host_[static_cast<size_t>(i * view_.shape[1] + j)]; }
  T* data() { return host_.get(); }
  size_t bytes() const { return bytes_; }
  DLTensor host() const { return view_.dlpack(); }
  DLTensor device() const {
    DLTensor t = view_.dlpack();
    t.data = device_;
    t.device = {kDLCUDA, 0};
    return t;
  }
  void upload() { cuda_copy(device_, host_.get(), bytes_, 0, nullptr); }
  void download() { cuda_copy(host_.get(), device_, bytes_, 0, nullptr); }
  bool same(const Matrix& other) const { return std::memcmp(host_.get(), other.host_.get(), bytes_) == 0; }

 private:
  std::unique_ptr<T[]> host_;
  size_t bytes_;
  void* device_;
  MatrixView<T> view_;
};

template <class S, class T>
void fill(Matrix<T>& g, int64_t n, int64_t present_in, Rng& rng) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const int r = static_cast<int>(rng.below(4));
      int value = r;
      if constexpr (is_plus_v<S>) value = S::kIsMax ? -r : r;
      if constexpr (is_times_v<S> && S::kIsMax) value = r > 0;
      if constexpr (is_times_v<S> && !S::kIsMax) value = 1 << (r % 2);
      g(i, j) = rng.one_in(present_in) ? detail::number<T>(value) : S::template zero<T>();
    }
  g.upload();
}

bool walks(Matrix<int32_t>& g, Matrix<int32_t>& d, Matrix<int32_t>& pred, const std::vector<int64_t>& sources,
           int64_t n) {
  for (size_t r = 0; r < sources.size(); ++r)
    for (int64_t j = 0; j < n; ++j) {
      const auto row = static_cast<int64_t>(r);
      if (j == sources[r] || d(row, j) == highest<int32_t>()) {
        if (pred(row, j) != -9999) return false;
        continue;
      }
      int64_t sum = 0, steps = 0;
      for (int64_t at = j; at != sources[r];) {
        const int64_t before = pred(row, at);
        if (before < 0 || before >= n || ++steps >= n) return false;
        sum += g(before, at);
        at = before;
      }
      if (sum != d(row, j)) return false;
    }
  return true;
}

template <class S, class T>
void values(int64_t n, Rng& rng) {
  const std::string test = std::string(S::kName) + " " + TypeInfo<T>::kName + " n = " + std::to_string(n);
  Matrix<T> g(n, n), cpu(n, n), gpu(n, n);
  fill<S, T>(g, n, 1 + rng.below(12), rng);
  const GraphOptions options{.undirected = rng.one_in(3), .reflexive = !rng.one_in(3)};
  const DLTensor to = cpu.host(), to_gpu = gpu.device();
  const GraphFacts a = load_graph(S::kId, g.host(), &to, nullptr, options);
  const GraphFacts b = load_graph(S::kId, g.device(), &to_gpu, nullptr, options);
  expect(a.absent == b.absent && a.zeros == b.zeros && a.magnitude == b.magnitude && a.negative_at == b.negative_at,
         "facts", test);
  gpu.download();
  expect(gpu.same(cpu), "edges", test);
  const auto x = closure(S::kId, to), y = closure(S::kId, to_gpu);
  gpu.download();
  expect(!x && !y && gpu.same(cpu), "closure", test);
}

void predecessors(int64_t n, Rng& rng) {
  const std::string test = "predecessors n = " + std::to_string(n);
  Matrix<int32_t> g(n, n), edges(n, n), d(n, n), pred(n, n), cpu(n, n);
  fill<MinPlus>(g, n, rng.one_in(2) ? 2 : 1 + n / 4, rng);
  const GraphOptions options{.undirected = rng.one_in(2)};
  const DLTensor to = d.device(), p = pred.device(), c = cpu.host();
  load_graph(Semiring::min_plus, g.host(), &c, nullptr, options);
  std::memcpy(edges.data(), cpu.data(), cpu.bytes());
  edges.upload();
  load_graph(Semiring::min_plus, g.device(), &to, &p, options);
  expect(!closure(Semiring::min_plus, to, &p) && !closure(Semiring::min_plus, c), "closure", test);
  d.download(), pred.download();
  expect(d.same(cpu), "distances", test);
  std::vector<int64_t> all(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) all[static_cast<size_t>(i)] = i;
  expect(walks(edges, d, pred, all, n), "paths", test);
  const std::vector<int64_t> some{n / 2, 0, n - 1};
  Matrix<int32_t> rows(3, n), rows_pred(3, n);
  const DLTensor r = rows.device(), rp = rows_pred.device();
  start_paths(Semiring::min_plus, some, r, &rp);
  expect(relax(Semiring::min_plus, edges.device(), r, &rp, n + 1), "rest", test);
  rows.download(), rows_pred.download();
  bool same = true;
  for (int64_t k = 0; k < 3; ++k)
    for (int64_t j = 0; j < n; ++j) same &= rows(k, j) == cpu(some[static_cast<size_t>(k)], j);
  expect(same, "rows", test);
  expect(walks(edges, rows, rows_pred, some, n), "paths of rows", test);
}

void divergence() {
  constexpr int64_t kNodes = 200;
  Matrix<float> g(kNodes, kNodes);
  for (int64_t i = 0; i < kNodes; ++i)
    for (int64_t j = 0; j < kNodes; ++j) g(i, j) = highest<float>();
  for (int64_t i = 0; i + 1 < kNodes; ++i) g(i, i + 1) = 1;
  g(150, 100) = -51;
  g.upload();
  const DLTensor x = g.device();
  const GraphFacts facts = load_graph(Semiring::min_plus, x, &x, nullptr);
  expect(facts.negative_at == 150 * kNodes + 100, "negative_at", "divergence");
  const auto node = closure(Semiring::min_plus, x);
  expect(node && *node >= 100 && *node <= 150, "node", "divergence");
  g(3, 7) = std::numeric_limits<float>::quiet_NaN(), g(2, 2) = lowest<float>();
  g.upload();
  const GraphFacts strange = load_graph(Semiring::min_plus, x, nullptr, nullptr);
  expect(strange.nan_at == 3 * kNodes + 7 && strange.infinite_at == 2 * kNodes + 2, "places", "divergence");
}

}  // namespace
}  // namespace tropical::testing

int main(int argc, char** argv) {
  using namespace tropical;
  using namespace tropical::testing;
  if (argc > 1) setenv("TROPICAL_GEMM_CUDA_LIBRARY", argv[1], 1);
  const CudaInfo info = cuda_info();
  if (info.devices.empty()) {
    std::printf("no device: %s\n", info.problem.c_str());
    return 77;  // skipped
  }
  Rng rng(1);
  [&]<class... S>(TypeList<S...>) {
    const auto each = [&]<class R>(R) {
      const auto typed = [&]<class T>(T) {
        if constexpr (supported_v<R, T>)
          for (const int64_t n : {1, 5, 64, 65, 130, 300}) values<R, T>(n, rng);
      };
      [&]<class... T>(TypeList<T...>) { (typed(T{}), ...); }(AllTypes{});
    };
    (each(S{}), ...);
  }(AllSemirings{});
  values<MinPlus, float>(4500, rng);
  for (const int64_t n : {3, 64, 100, 257, 700, 1100}) predecessors(n, rng), predecessors(n, rng);
  divergence();
  std::printf("%d checks, %d failures\n", checks, failures);
  return failures ? 1 : 0;
}

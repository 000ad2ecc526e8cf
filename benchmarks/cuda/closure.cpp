// Closures on a GPU beside one product of the same size: cuda_closure_bench LIBRARY [n...]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "tropical_gemm/tropical_gemm.h"

namespace {

using namespace tropical;

// An n x n matrix on the device.
struct Matrix {
  int64_t n, shape[2];
  size_t bytes;
  void* data;
  Matrix(int64_t nodes)
      : n(nodes), shape{n, n}, bytes(static_cast<size_t>(n * n) * 4), data(cuda_allocate(bytes, 0, nullptr)) {}
  ~Matrix() { cuda_release(data, 0, nullptr); }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  DLTensor tensor(const DLDataType& dtype) {
    DLTensor t{};
    t.data = data;
    t.device = {kDLCUDA, 0};
    t.ndim = 2;
    t.dtype = dtype;
    t.shape = shape;
    return t;
  }
};

// Weights from 0 to 1, the same block of rows again and again.
void fill(Matrix& x) {
  static std::vector<float> block;
  block.resize(static_cast<size_t>(x.n) * 61);
  std::mt19937 random(1);
  for (float& w : block) w = static_cast<float>(random() >> 8) * 0x1p-24f;
  for (int64_t i = 0; i < x.n; i += 61)
    cuda_copy(static_cast<float*>(x.data) + i * x.n, block.data(),
              static_cast<size_t>(std::min<int64_t>(61, x.n - i) * x.n) * 4, 0, nullptr);
}

void wait(Matrix& x) {
  float one = 0;
  cuda_copy(&one, x.data, sizeof one, 0, nullptr);
}

template <class Run>
double seconds(Matrix& result, const Run& run) {
  wait(result);
  const auto start = std::chrono::steady_clock::now();
  run();
  wait(result);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void row(int64_t n, bool beside) {
  constexpr DLDataType kFloat = dlpack_dtype<float>(), kIndex = dlpack_dtype<int32_t>();
  const double work = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  Matrix d(n);
  const DLTensor x = d.tensor(kFloat);
  double product = 0;
  if (beside) {
    Matrix a(n), c(n);
    fill(a);
    const DLTensor from = a.tensor(kFloat), to = c.tensor(kFloat);
    std::vector<double> times;
    for (int i = 0; i < 4; ++i) times.push_back(seconds(c, [&] { matmul(Semiring::min_plus, from, from, to); }));
    product = *std::min_element(times.begin() + 1, times.end());
  }
  const auto close = [&](const DLTensor* pred) {
    std::vector<double> times;
    for (int i = 0; i < (beside ? 3 : 1); ++i) {
      fill(d);
      load_graph(Semiring::min_plus, x, &x, pred);
      times.push_back(seconds(d, [&] { closure(Semiring::min_plus, x, pred); }));
    }
    return *std::min_element(times.begin(), times.end());
  };
  const double values = close(nullptr);
  if (!beside) {
    std::printf("n = %lld: in place %.3f s, %.2f T/s\n", static_cast<long long>(n), values, work / values / 1e12);
    return;
  }
  Matrix p(n);
  const DLTensor pred = p.tensor(kIndex);
  const double tracked = close(&pred);
  std::printf("n = %6lld: product %8.2f ms (%.2f T/s), closure %8.2f ms = %.2f, with predecessors %8.2f ms = %.2f\n",
              static_cast<long long>(n), 1e3 * product, work / product / 1e12, 1e3 * values, values / product,
              1e3 * tracked, tracked / product);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) setenv("TROPICAL_GEMM_CUDA_LIBRARY", argv[1], 1);
  std::vector<int64_t> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(std::atoll(argv[i]));
  if (sizes.empty()) sizes = {1024, 2048, 4096, 8192, 16384, 46000};
  for (const int64_t n : sizes) row(n, n <= 20000);
  return 0;
}

// The Viterbi recurrence on the GPU against the CPU library, bit by bit, on random problems of every path through the
// code. A plain program like cuda_check: viterbi_check LIBRARY [--seconds S] [--seed N]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../host_tensor.h"
#include "tropical_gemm/viterbi.h"

namespace tropical::testing {
namespace {

// A tensor in host memory and, once sent, its copy on the device.
class Both {
 public:
  Both(DType dtype, Shape shape, Layout layout, Rng& rng) : host_(dtype, std::move(shape), layout, rng) {
    data_ = cuda_allocate(bytes(), 0, nullptr);
  }
  ~Both() { cuda_release(data_, 0, nullptr); }
  Both(const Both&) = delete;
  Both& operator=(const Both&) = delete;
  HostTensor& host() { return host_; }
  void send() { cuda_copy(data_, host_.storage().data(), bytes(), 0, nullptr); }
  // The device's copy is what the host has, gaps and guards included.
  bool same(const char* name) {
    std::vector<uint64_t> got(host_.storage().size());
    cuda_copy(got.data(), data_, bytes(), 0, nullptr);
    if (got == host_.storage()) return true;
    std::printf("%s differ, ", name);
    return false;
  }
  DLTensor on_host() const { return host_.dlpack(); }
  DLTensor on_device() const {
    DLTensor t = host_.dlpack();
    t.data = data_;
    t.device = {kDLCUDA, 0};
    return t;
  }

 private:
  size_t bytes() { return host_.storage().size() * sizeof(uint64_t); }
  HostTensor host_;
  void* data_;
};

enum Kind { normal, negative, positive, ties, impossible, nan, infinite, turning, kKinds };
constexpr const char* kKindNames[] = {"normal",     "negative", "positive", "ties",
                                      "impossible", "nan",      "infinite", "turning"};

double draw(Kind kind, Rng& rng) {
  const double u = rng.unit();
  switch (kind) {
    case negative:
      return -5 * u;
    case positive:
      return 5 * u;
    case ties:
      return static_cast<double>(rng.below(4)) - 2;
    case impossible:
      return rng.one_in(3) ? lowest<double>() : -u;
    case nan:
      return rng.one_in(5000) ? std::numeric_limits<double>::quiet_NaN() : u - 0.5;
    case infinite:
      return rng.one_in(20) ? lowest<double>() : rng.one_in(2000) ? highest<double>() : u - 0.5;
    default:
      return u - 0.5;
  }
}

template <class T>
void put(HostTensor& x, int64_t index, double value) {
  if constexpr (is_half_v<T>)
    x.at<T>(index) = narrow<T>(static_cast<float>(value));
  else
    x.at<T>(index) = static_cast<T>(value);
}

struct Problem {
  DType dtype;
  Kind kind;
  int64_t batch, steps, states;
  int64_t matrices = 0, matrix_steps = 0;  // 0: one matrix of two axes
};

std::string text(const Problem& p) {
  return std::string(kKindNames[p.kind]) + " batch " + std::to_string(p.batch) + " steps " + std::to_string(p.steps) +
         " states " + std::to_string(p.states) + " matrices " + std::to_string(p.matrices) + " x " +
         std::to_string(p.matrix_steps) + " dtype " + std::to_string(static_cast<int>(p.dtype));
}

bool right(const Problem& p, Rng& rng) {
  const auto layout = [&](std::initializer_list<Layout> of) { return rng.pick(of); };
  const auto input = [&](Shape shape) {
    return std::make_unique<Both>(
        p.dtype, shape,
        layout({Layout::row_major, Layout::row_major, Layout::column_major, Layout::step2, Layout::shuffled}), rng);
  };
  const bool wide = p.dtype == DType::f64;
  auto emission = input({p.batch, p.steps, p.states});
  auto transition =
      p.matrices == 0 ? input({p.states, p.states}) : input({p.matrices, p.matrix_steps, p.states, p.states});
  std::unique_ptr<Both> initial, final, lengths;
  if (rng.one_in(2)) initial = input({rng.one_in(2) ? 1 : p.batch, p.states});
  if (rng.one_in(2)) final = input({rng.one_in(2) ? 1 : p.batch, p.states});
  visit_dtype(p.dtype, [&]<class T>() {
    if constexpr (is_float_v<T>) {
      for (int64_t i = 0; i < emission->host().count(); ++i) {
        // Scores whose sign changes every now and then.
        const double turn = p.kind == turning ? ((i / p.states % p.steps / 7) % 2 ? 3 : -3) : 0;
        put<T>(emission->host(), i, draw(p.kind, rng) + turn);
      }
      for (Both* x : {transition.get(), initial.get(), final.get()})
        for (int64_t i = 0; x && i < x->host().count(); ++i) put<T>(x->host(), i, draw(p.kind, rng));
    }
  });
  if (rng.one_in(2)) {
    lengths = std::make_unique<Both>(rng.one_in(2) ? DType::i32 : DType::i64, Shape{p.batch}, Layout::step2, rng);
    for (int64_t b = 0; b < p.batch; ++b) {
      const int64_t n = rng.one_in(3) ? p.steps : rng.below(p.steps + 3) - 1;  // clamped
      if (lengths->on_host().dtype.bits == 32)
        lengths->host().at<int32_t>(b) = static_cast<int32_t>(n);
      else
        lengths->host().at<int64_t>(b) = n;
    }
  }
  Both paths(rng.one_in(2) ? DType::i32 : DType::i64, {p.batch, p.steps}, rng.pick(kOutputLayouts), rng);
  Both scores(wide ? DType::f64 : DType::f32, {p.batch}, rng.pick(kOutputLayouts), rng);
  for (Both* x : {emission.get(), transition.get(), initial.get(), final.get(), lengths.get(), &paths, &scores})
    if (x) x->send();

  const auto run = [&](auto side) {
    DLTensor ends[3];
    const DLTensor* given[3] = {};
    int n = 0;
    for (const Both* x : {initial.get(), final.get(), lengths.get()}) {
      if (x) ends[n] = side(*x), given[n] = &ends[n];
      ++n;
    }
    viterbi(side(*emission), side(*transition), given[0], given[1], given[2], side(paths), side(scores));
  };
  run([](const Both& x) { return x.on_device(); });
  run([](const Both& x) { return x.on_host(); });
  const bool same_scores = scores.same("scores"), same_paths = paths.same("paths");
  return same_scores && same_paths;
}

}  // namespace
}  // namespace tropical::testing

int main(int argc, char** argv) {
  using namespace tropical;
  using namespace tropical::testing;
  double seconds = 20;
  uint64_t seed = 1;
  if (argc > 1) setenv("TROPICAL_GEMM_CUDA_LIBRARY", argv[1], 1);
  for (int i = 2; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--seconds")) seconds = std::atof(argv[i + 1]);
    if (!std::strcmp(argv[i], "--seed")) seed = std::strtoull(argv[i + 1], nullptr, 10);
  }
  const CudaInfo info = cuda_info();
  if (info.devices.empty()) {
    std::printf("no device: %s\n", info.problem.c_str());
    return 77;  // skipped
  }
  constexpr int64_t kStates[] = {1,   2,   5,   16,  31,  32,  33,  60,  64,   65,   100,  127,  128,  129,
                                 130, 200, 257, 300, 500, 700, 800, 999, 1200, 1440, 1441, 1690, 1700, 2100};
  constexpr int64_t kBatches[] = {1, 2, 3, 4, 5, 8, 9, 16, 17, 20, 33, 48, 64, 70, 130};
  constexpr DType kTypes[] = {DType::f32, DType::f32, DType::f32, DType::f64, DType::f16, DType::bf16};
  Rng rng(seed);
  int checks = 0, failures = 0;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  while (elapsed() < seconds) {
    Problem p{rng.pick(kTypes), static_cast<Kind>(rng.below(kKinds)), rng.pick(kBatches), 0, rng.pick(kStates)};
    constexpr int64_t kMostWork = 400'000'000, kMostElements = 4'000'000;
    p.steps =
        std::min<int64_t>({kMostWork / (p.batch * p.states * p.states), kMostElements / (p.batch * p.states), 200});
    p.steps = 1 + rng.below(p.steps + 1);
    if (rng.one_in(6)) {
      p.matrices = rng.one_in(2) ? 1 : p.batch;
      p.matrix_steps = rng.one_in(2) ? 1 : std::max<int64_t>(p.steps - 1, 0);
      if (p.matrices * p.matrix_steps * p.states * p.states > kMostElements) continue;
    }
    const uint64_t of_problem = rng.bits();
    Rng own(of_problem);
    ++checks;
    try {
      if (right(p, own)) continue;
    } catch (const std::exception& error) {
      std::printf("%s\n", error.what());
    }
    if (++failures <= 40) std::printf("FAILED %s\n", text(p).c_str());
    std::fflush(stdout);
  }
  std::printf("%d checks, %d failures\n", checks, failures);
  return failures ? 1 : 0;
}

// Products of f64 and f32 through bounds against the plain kernels of the same library, bit by bit, on all kinds of
// data. A plain program: filter_check LIBRARY [--size N] [--only TEXT]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "../filter_data.h"
#include "session.h"

namespace tropical::testing {
namespace {

template <class T>
class Device {
 public:
  explicit Device(int64_t count) : bytes_(static_cast<size_t>(count) * sizeof(T)) {
    check(cudaMalloc(&data_, bytes_ + 256), "malloc");
  }
  ~Device() { check(cudaFree(data_), "free"); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  T* data() const { return static_cast<T*>(data_); }
  void set(int byte) { check(cudaMemsetAsync(data_, byte, bytes_, stream), "memset"); }
  void upload(const std::vector<T>& from) {
    check(cudaMemcpyAsync(data_, from.data(), bytes_, cudaMemcpyDefault, stream), "upload");
  }
  std::vector<T> download() const {
    std::vector<T> to(bytes_ / sizeof(T));
    check(cudaMemcpyAsync(to.data(), data_, bytes_, cudaMemcpyDefault, stream), "download");
    check(cudaStreamSynchronize(stream), "synchronize");
    return to;
  }

 private:
  size_t bytes_;
  void* data_ = nullptr;
};

void fill_in_parallel(const FilterData& data, bool is_a, bool negated, int64_t rows, int64_t cols, uint64_t seed,
                      std::vector<double>& to) {
  std::vector<std::thread> threads;
  const int64_t parts = std::max(1u, std::thread::hardware_concurrency());
  for (int64_t t = 0; t < parts; ++t)
    threads.emplace_back([&, t] {
      const int64_t begin = rows * t / parts, end = rows * (t + 1) / parts;
      fill(data, is_a, negated, end - begin, cols, seed, to.data() + begin * cols, begin);
    });
  for (std::thread& thread : threads) thread.join();
}

template <class T>
struct Outcome {
  std::vector<T> c;
  std::vector<int32_t> argmax;
  FilterCounts report;
};

template <class T>
class Problem {
 public:
  Problem(int64_t m, int64_t n, int64_t k, Semiring semiring)
      : a_(m * k), b_(k * n), c_(m * n), argmax_(m * n), report_(1), host_a_(m * k), host_b_(k * n) {
    p_.semiring = semiring, p_.dtype = TypeInfo<T>::kId;
    p_.m = m, p_.n = n, p_.k = k;
    p_.a = {a_.data(), k, 1, {}}, p_.b = {b_.data(), n, 1, {}}, p_.c = {c_.data(), n, 1, {}};
    p_.filter_counts = report_.data();
  }
  void load(const FilterData& data, uint64_t seed) {
    const bool negated = p_.semiring == Semiring::min_plus;
    fill_in_parallel(data, true, negated, p_.m, p_.k, seed, host_a_);
    fill_in_parallel(data, false, negated, p_.k, p_.n, seed, host_b_);
    upload();
  }
  Outcome<T> run(Filtering filtering, bool argmax, bool captured = false, const FilterData* before = nullptr) {
    p_.filtering = filtering;
    p_.argmax = {argmax ? argmax_.data() : nullptr, p_.n, 1, {}};
    cuda::Status status;
    const size_t bytes = backend->matmul_workspace(&p_, 0, &status);
    check(status, "call");
    Device<char> scratch(static_cast<int64_t>(bytes));
    scratch.set(0xa5);
    const auto enqueue = [&] {
      backend->matmul(&p_, &queue, scratch.data(), &status);
      check(status, "call");
    };
    c_.set(0x11), argmax_.set(0x11);
    const std::vector<double> a = host_a_, b = host_b_;
    const auto real = [&] {
      host_a_ = a, host_b_ = b;
      upload();
      report_.set(0);
    };
    testing::run(
        captured, real, [&] { load(*before, 99); }, enqueue);
    return {c_.download(), argmax_.download(), report_.download()[0]};
  }
  int64_t outputs() const { return p_.m * p_.n; }

 private:
  void upload() {
    const std::vector<T> a(host_a_.begin(), host_a_.end()), b(host_b_.begin(), host_b_.end());
    a_.upload(a), b_.upload(b);
    check(cudaStreamSynchronize(stream), "synchronize");
  }

  MatmulParams p_;
  Device<T> a_, b_, c_;
  Device<int32_t> argmax_;
  Device<FilterCounts> report_;
  std::vector<double> host_a_, host_b_;
};

template <class T>
int64_t differences(const std::vector<T>& x, const std::vector<T>& y) {
  int64_t count = 0;
  for (size_t i = 0; i < x.size(); ++i) count += std::memcmp(&x[i], &y[i], sizeof(T)) != 0;
  return count;
}

void expect(bool right, const std::string& what) {
  if (right) return;
  ++failures;
  std::printf("FAILED %s\n", what.c_str());
}

// How many values are wrong where nothing is proved.
template <class T>
int64_t all_data(int64_t m, int64_t n, int64_t k, Semiring semiring, const std::string& only) {
  Problem<T> problem(m, n, k, semiring);
  int64_t wrong = 0;
  for (const FilterData& data : kFilterData) {
    if (std::string(data.name).find(only) == std::string::npos) continue;
    problem.load(data, static_cast<uint64_t>(m + n + k));
    double share[2];
    bool chosen[2];
    for (const bool argmax : {false, true}) {
      const Outcome<T> plain = problem.run(Filtering::never, argmax);
      const auto same = [&](const Outcome<T>& x, const char* how) {
        const int64_t values = differences(x.c, plain.c), indices = differences(x.argmax, plain.argmax);
        expect(values + indices == 0, std::string(data.name) + how + (argmax ? ", argmax: " : ": ") +
                                          std::to_string(values) + " values, " + std::to_string(indices) + " indices");
      };
      const Outcome<T> always = problem.run(Filtering::always, argmax);
      same(always, ", always");
      const Outcome<T> automatic = problem.run(Filtering::automatic, argmax);
      same(automatic, ", automatic");
      wrong += differences(problem.run(Filtering::unproven, argmax).c, plain.c);
      expect(plain.report.filtered + plain.report.plain == 0, "never: no report");
      expect(always.report.filtered + always.report.plain == problem.outputs(), "always: one report");
      share[argmax] = static_cast<double>(always.report.unproven) / static_cast<double>(problem.outputs());
      chosen[argmax] = automatic.report.filtered > 0;
      if (sizeof(T) == 8 ? data.easy : data.easy_in_float)
        expect(automatic.report.plain == 0, std::string(data.name) + ": not chosen");
    }
    std::printf("%s %s %-28s unproven %.5f %.5f, chosen %d %d\n", TypeInfo<T>::kName,
                semiring == Semiring::max_plus ? "max" : "min", data.name, share[0], share[1], chosen[0], chosen[1]);
    std::fflush(stdout);
  }
  return wrong;
}

// Graphs choose again at each run.
template <class T>
void graphs(int64_t n) {
  const FilterData* easy = nullptr;
  const FilterData* hard = nullptr;
  for (const FilterData& data : kFilterData) {
    if (std::string(data.name) == "randn") easy = &data;
    if (std::string(data.name) == (sizeof(T) == 8 ? "1/64 grid with 2^-30" : "two hops in a plane")) hard = &data;
  }
  for (const bool argmax : {false, true})
    for (const auto& [data, before] : {std::pair{easy, hard}, std::pair{hard, easy}}) {
      Problem<T> problem(n, n, n, Semiring::max_plus);
      problem.load(*data, 3);
      const Outcome<T> plain = problem.run(Filtering::never, argmax);
      const Outcome<T> graph = problem.run(Filtering::automatic, argmax, true, before);
      expect(differences(graph.c, plain.c) + differences(graph.argmax, plain.argmax) == 0, "graph: same result");
      expect((graph.report.filtered > 0) == (data == easy), "graph: chooses by the data of this run");
    }
}

}  // namespace
}  // namespace tropical::testing

int main(int argc, char** argv) {
  using namespace tropical;
  using namespace tropical::testing;
  int64_t size = 1024;
  std::string only, library = argc > 1 ? argv[1] : "";
  for (int i = 2; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--size")) size = std::atoll(argv[i + 1]);
    if (!std::strcmp(argv[i], "--only")) only = argv[i + 1];
  }
  const cuda::DeviceInfo info = begin(library.c_str());
  if (info.major < 8) return 77;  // skipped

  const auto check_type = [&]<class T>(T, int64_t n) {
    int64_t wrong = all_data<T>(n, n, n, Semiring::max_plus, only);
    wrong += all_data<T>(n + 7, n + 3, n + 35, Semiring::min_plus, only);
    std::printf("%s: without proof %lld wrong values\n", TypeInfo<T>::kName, static_cast<long long>(wrong));
    if (!only.empty()) return;
    graphs<T>(sizeof(T) == 8 ? n : std::max<int64_t>(n, 3328));  // large enough to choose
    expect(wrong > 0, "without proof, wrong values show");
  };
  check_type(double(), size);
  if (info.major >= 9) check_type(float(), size);
  std::printf("%d failures\n", failures);
  return failures ? 1 : 0;
}

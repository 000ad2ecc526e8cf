// Rows of the GPU's speed table: library calls beside register-only rates of the same run.
//   cuda_bench LIBRARY [FILTER]
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "cuda/backend.h"
#include "rates.cuh"

namespace tropical::cuda {
namespace {

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(error));
  std::exit(2);
}
void check(const Status& status) {
  if (status.code == 0) return;
  std::printf("%d %s\n", status.code, status.message);
  std::exit(2);
}

const Backend* backend = nullptr;
cudaStream_t stream = nullptr;
Queue queue;
int multiprocessors = 0;
double clock_hz = 0;
std::string filter;

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// Seconds of one call of f: the median over events around `inner` calls, from a graph where they are short.
template <class F>
double seconds_of(F f, bool graph, int inner = 20, int repeats = 9) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  cudaGraph_t g = nullptr;
  cudaGraphExec_t exec = nullptr;
  if (graph) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
    for (int i = 0; i < inner; ++i) f();
    check(cudaStreamEndCapture(stream, &g), "capture");
    check(cudaGraphInstantiate(&exec, g, 0), "instantiate");
  } else {
    inner = 1;
  }
  const auto once = [&] {
    if (graph)
      check(cudaGraphLaunch(exec, stream), "launch");
    else
      f();
  };
  for (int i = 0; i < 2; ++i) once();
  std::vector<double> times;
  for (int r = 0; r < repeats; ++r) {
    check(cudaEventRecord(begin, stream), "record");
    once();
    check(cudaEventRecord(end, stream), "record");
    check(cudaEventSynchronize(end), "synchronize");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "elapsed");
    times.push_back(ms * 1e-3 / inner);
  }
  if (graph) {
    check(cudaGraphExecDestroy(exec), "destroy");
    check(cudaGraphDestroy(g), "destroy");
  }
  check(cudaEventDestroy(begin), "destroy");
  check(cudaEventDestroy(end), "destroy");
  return median(times);
}

double rate_of(double macs, double seconds) { return macs / seconds / multiprocessors / clock_hz; }

template <class Core, Mode kMode = Mode::value>
double rate(const char* name, typename Core::T a0, typename Core::T a1, int words) {
  using T = typename Core::T;
  const int blocks = multiprocessors * 4, rounds = 1 << 12;
  T* data;
  check(cudaMalloc(&data, sizeof(T) * (blocks * kRateThreads + 64)), "malloc");
  check(cudaMemset(data, 1, sizeof(T) * (blocks * kRateThreads + 64)), "memset");
  const double s = seconds_of(
      [&] { register_rate<Core, kMode><<<blocks, kRateThreads, 0, stream>>>(data, a0, a1, rounds); }, false, 1, 5);
  check(cudaFree(data), "free");
  const double r = rate_of(2.0 * kRateResults * rounds * kRateThreads * blocks * words, s);
  std::printf("| register rate | %-28s | %6.1f MAC/clk/SM |\n", name, r);
  return r;
}

enum class Data { uniform, normal, negative, mixed, infinities, nans, blocks };
const char* kDataNames[] = {"uniform", "randn", "negative", "mixed rows", "-inf 30 %", "NaN", "mixed blocks"};

std::vector<double> numbers(Data kind, int64_t rows, int64_t cols, bool is_a, bool min) {
  std::vector<double> x(static_cast<size_t>(rows * cols));
  static std::vector<double> normal = [] {
    std::mt19937 engine(1);
    std::normal_distribution<double> d;
    std::vector<double> v(1 << 18);
    for (double& e : v) e = d(engine);
    return v;
  }();
  uint64_t state = is_a ? 88172645463325252u : 362436069362436069u;
  const auto next = [&] {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
  };
  for (int64_t i = 0; i < rows * cols; ++i) {
    const int64_t row = i / cols;
    const double u = static_cast<double>(next() >> 40) / (1 << 24), g = normal[next() & 0x3ffff];
    double v = u;
    switch (kind) {
      case Data::uniform:
        break;
      case Data::normal:
        v = g;
        break;
      case Data::negative:
        v = -u - 1e-3;
        break;
      case Data::mixed:
        v = is_a && (row & 1) ? -10 - u : u;
        break;
      case Data::infinities:
        v = next() % 100 < 30 || (is_a && row % 17 == 0) ? -INFINITY : g;
        break;
      case Data::nans:
        v = next() % 20000 == 0 ? NAN : g;
        break;
      case Data::blocks:
        v = is_a && (row / 256 & 1) ? -10 - u : u;
        break;
    }
    x[static_cast<size_t>(i)] = min ? -v : v;
  }
  return x;
}

template <class T>
std::vector<T> elements(const std::vector<double>& x) {
  std::vector<T> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    if constexpr (is_half_v<T>)
      y[i] = from_float<T>(static_cast<float>(x[i]));
    else if constexpr (std::is_integral_v<T>)
      y[i] = std::isinf(x[i]) ? (x[i] < 0 ? lowest<T>() : highest<T>()) : static_cast<T>(x[i] * 700);
    else
      y[i] = static_cast<T>(x[i]);
  }
  return y;
}

struct Memory {
  void* data = nullptr;
  explicit Memory(size_t bytes) { check(cudaMalloc(&data, bytes + 256), "malloc"); }
  ~Memory() { check(cudaFree(data), "free"); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
};

struct Options {
  Semiring semiring = Semiring::max_plus;
  Data data = Data::uniform;
  bool argmax = false;
  const char* layout = "NN";  // N row-major, T column-major; of A and B
  int64_t batch = 1;
};

template <class T>
double product(int64_t m, int64_t n, int64_t k, const Options& o) {
  const bool min = o.semiring == Semiring::min_plus;
  const auto a = elements<T>(numbers(o.data, m * o.batch, k, true, min));
  const auto b = elements<T>(numbers(o.data, k * o.batch, n, false, min));
  Memory da(a.size() * sizeof(T)), db(b.size() * sizeof(T)), dc(static_cast<size_t>(o.batch * m * n) * sizeof(T)),
      dg(o.argmax ? static_cast<size_t>(o.batch * m * n) * 4 : 16);
  check(cudaMemcpy(da.data, a.data(), a.size() * sizeof(T), cudaMemcpyDefault), "copy");
  check(cudaMemcpy(db.data, b.data(), b.size() * sizeof(T), cudaMemcpyDefault), "copy");
  MatmulParams p;
  p.semiring = o.semiring, p.dtype = TypeInfo<T>::kId;
  p.m = m, p.n = n, p.k = k;
  p.a = {da.data, k, 1, {m * k}};
  if (o.layout[0] == 'T') p.a.row = 1, p.a.col = m;
  p.b = {db.data, n, 1, {k * n}};
  if (o.layout[1] == 'T') p.b.row = 1, p.b.col = k;
  p.c = {dc.data, n, 1, {m * n}};
  if (o.argmax) p.argmax = {dg.data, n, 1, {m * n}};
  p.batch.ndim = o.batch > 1;
  p.batch.size[0] = o.batch;
  Status status;
  Memory scratch(backend->matmul_workspace(&p, 0, &status));
  check(status);
  const bool graph = static_cast<double>(m) * n * k * o.batch < 2e9;
  const double s = seconds_of(
      [&] {
        backend->matmul(&p, &queue, scratch.data, &status);
        check(status);
      },
      graph);
  return s;
}

bool wanted(const std::string& name) { return filter.empty() || name.find(filter) != std::string::npos; }

template <class T>
double row(const char* group, const std::string& name, int64_t m, int64_t n, int64_t k, const Options& o,
           double peak = 64) {
  if (!wanted(std::string(group) + " " + name)) return 0;
  const double s = product<T>(m, n, k, o);
  const double r = rate_of(static_cast<double>(m) * n * k * o.batch, s);
  std::printf("| %s | %-44s | %9.2f us | %6.1f MAC/clk/SM | %5.1f %% |\n", group, name.c_str(), s * 1e6, r,
              100 * r / peak);
  std::fflush(stdout);
  return s;
}

std::string text(int64_t n) { return std::to_string(n); }

void values() {
  for (const int64_t n : {256, 512, 1024, 2048, 4096, 8192})
    for (const Data d :
         {Data::uniform, Data::normal, Data::negative, Data::mixed, Data::infinities, Data::nans, Data::blocks}) {
      if (n == 8192 && d != Data::uniform && d != Data::negative) continue;
      row<float>("values", "f32 max_plus n=" + text(n) + " " + kDataNames[int(d)], n, n, n, {Semiring::max_plus, d});
      if (d == Data::uniform || d == Data::negative)
        row<float>("values", "f32 min_plus n=" + text(n) + " negated " + kDataNames[int(d)], n, n, n,
                   {Semiring::min_plus, d});
    }
  for (const char* layout : {"TN", "TT", "NT"})
    for (const int64_t n : {1024, 2048, 4096, 8192})
      for (const Data d : {Data::uniform, Data::negative}) {
        if (n == 8192 && d == Data::negative) continue;
        row<float>("layouts", std::string("f32 max_plus ") + layout + " n=" + text(n) + " " + kDataNames[int(d)], n, n,
                   n, {Semiring::max_plus, d, false, layout});
      }
}

void argmax() {
  for (const int64_t n : {256, 512, 1024, 2048, 4096, 8192}) {
    const double base = row<float>("argmax", "f32 values n=" + text(n), n, n, n, {});
    for (const Data d : {Data::uniform, Data::normal, Data::negative, Data::mixed, Data::infinities, Data::nans}) {
      if (n == 8192 && d != Data::uniform && d != Data::infinities) continue;
      const double s = row<float>("argmax", "f32 argmax n=" + text(n) + " " + kDataNames[int(d)], n, n, n,
                                  {Semiring::max_plus, d, true});
      if (s > 0 && base > 0) std::printf("|   over values | %.2fx |\n", s / base);
    }
  }
}

void types() {
  const int64_t n = 4096;
  for (const int64_t size : {int64_t{1024}, n}) {
    const std::string at = " n=" + text(size);
    row<int32_t>("types", "i32 max_plus" + at, size, size, size, {});
    row<int32_t>("types", "i32 min_plus, infinities" + at, size, size, size, {Semiring::min_plus, Data::infinities});
    row<int16_t>("types", "i16 max_plus" + at, size, size, size, {});
    row<int16_t>("types", "i16 min_plus, infinities" + at, size, size, size, {Semiring::min_plus, Data::infinities});
    row<float16>("types", "f16 max_plus" + at, size, size, size, {Semiring::max_plus, Data::normal});
    row<bfloat16>("types", "bf16 max_plus" + at, size, size, size, {Semiring::max_plus, Data::normal});
    row<bfloat16>("types", "bf16 max_plus NaN" + at, size, size, size, {Semiring::max_plus, Data::nans});
    row<float16>("types", "f16 max_mul" + at, size, size, size, {Semiring::max_mul, Data::normal});
    row<float16>("types", "f16 max_min" + at, size, size, size, {Semiring::max_min, Data::normal});
    row<double>("types", "f64 max_plus" + at, size, size, size, {Semiring::max_plus, Data::normal});
    row<double>("types", "f64 min_plus, infinities" + at, size, size, size, {Semiring::min_plus, Data::infinities});
    row<float>("types", "f32 max_mul" + at, size, size, size, {Semiring::max_mul, Data::normal});
    row<float>("types", "f32 min_mul" + at, size, size, size, {Semiring::min_mul, Data::normal});
    row<float>("types", "f32 max_min" + at, size, size, size, {Semiring::max_min, Data::normal});
    row<float>("types", "f32 min_max" + at, size, size, size, {Semiring::min_max, Data::normal});
    row<int64_t>("types", "i64 max_plus (generic)" + at, size, size, size, {});
    row<int32_t>("types", "i32 argmax (generic)" + at, size, size, size, {Semiring::max_plus, Data::uniform, true});
    row<float16>("types", "f16 argmax (generic)" + at, size, size, size, {Semiring::max_plus, Data::uniform, true});
    row<double>("types", "f64 argmax (generic)" + at, size, size, size, {Semiring::max_plus, Data::uniform, true});
  }
}

void batches() {
  const int64_t shapes[][2] = {{4096, 16}, {4096, 32}, {1024, 64}, {256, 128}, {65536, 8}, {1000000, 8}};
  for (const auto& [count, n] : shapes)
    for (const bool arg : {false, true})
      for (const Data d : {Data::uniform, Data::infinities}) {
        Options o{Semiring::max_plus, d, arg};
        o.batch = count;
        row<float>("batch", text(count) + "x" + text(n) + "^3 " + (arg ? "argmax " : "values ") + kDataNames[int(d)], n,
                   n, n, o);
      }
}

void edges() {
  const int64_t shapes[][3] = {{4096, 4096, 4096}, {4095, 4095, 4095}, {4097, 4097, 4097}, {1024, 1024, 1024},
                               {1000, 1000, 1000}, {100000, 64, 64},   {64, 64, 100000},   {64, 100000, 64}};
  for (const auto& [m, n, k] : shapes)
    row<float>("edges", "m=" + text(m) + " n=" + text(n) + " k=" + text(k), m, n, k, {});
}

template <class T>
void backward(const char* name, int64_t n, Semiring semiring) {
  if (!wanted(std::string("backward ") + name)) return;
  const auto a = elements<T>(numbers(Data::normal, n, n, true, false)),
             b = elements<T>(numbers(Data::normal, n, n, false, false));
  const size_t bytes = a.size() * sizeof(T);
  Memory da(bytes), db(bytes), dc(bytes), dg(a.size() * 4), ga(bytes), gb(bytes);
  check(cudaMemcpy(da.data, a.data(), bytes, cudaMemcpyDefault), "copy");
  check(cudaMemcpy(db.data, b.data(), bytes, cudaMemcpyDefault), "copy");
  MatmulParams p;
  p.semiring = semiring, p.dtype = TypeInfo<T>::kId, p.m = p.n = p.k = n;
  p.a = {da.data, n, 1, {}}, p.b = {db.data, n, 1, {}}, p.c = {dc.data, n, 1, {}}, p.argmax = {dg.data, n, 1, {}};
  Status status;
  Memory scratch(backend->matmul_workspace(&p, 0, &status));
  backend->matmul(&p, &queue, scratch.data, &status);
  check(status);
  p.argmax.data = nullptr;
  Memory values_scratch(backend->matmul_workspace(&p, 0, &status));
  const double values_time = seconds_of([&] { backend->matmul(&p, &queue, values_scratch.data, &status); }, false);
  p.argmax.data = dg.data;
  BackwardParams q;
  q.semiring = semiring, q.dtype = p.dtype, q.m = q.n = q.k = n;
  q.a = p.a, q.b = p.b, q.grad_c = p.c, q.argmax = p.argmax;
  q.grad_a = {ga.data, n, 1, {}}, q.grad_b = {gb.data, n, 1, {}};
  Memory more(backend->backward_workspace(&q, 0, &status));
  const auto run = [&] {
    backend->matmul_backward(&q, &queue, more.data, &status);
    check(status);
  };
  const double both = seconds_of(run, false);
  q.grad_b.data = nullptr;
  const double only_a = seconds_of(run, false);
  q.grad_b.data = gb.data, q.grad_a.data = nullptr;
  const double only_b = seconds_of(run, false);
  std::printf("| backward | %-30s | %9.2f us (a %.2f, b %.2f) | values %.2f us | %.1f %% |\n", name, both * 1e6,
              only_a * 1e6, only_b * 1e6, values_time * 1e6, 100 * both / values_time);
}

void rates() {
  rate<FloatCore<MaxPlus, true>, Mode::value>("f32 max_plus by value", 1.f, 2.f, 1);
  rate<FloatCore<MaxPlus, true>, Mode::positive>("f32 max_plus, three-input max", 1.f, 2.f, 1);
  rate<FloatCore<MaxMul, true>>("f32 max_mul", 1.f, 2.f, 1);
  rate<FloatCore<MinMul, true>>("f32 min_mul", 1.f, 2.f, 1);
  rate<FloatCore<MaxMin, true>>("f32 max_min", 1.f, 2.f, 1);
  rate<FloatCore<MinMax, true>>("f32 min_max", 1.f, 2.f, 1);
  rate<IntegerCore<MaxPlus>>("i32 max_plus", 1, 2, 1);
  rate<ShortPairs<MaxPlus>>("i16 max_plus", 1, 2, 2);
  rate<HalfPairs<MaxPlus, float16>>("f16 max_plus", 0x3c003c00u, 0x40004000u, 2);
  rate<HalfPairs<MaxPlus, bfloat16>>("bf16 max_plus", 0x3f803f80u, 0x40004000u, 2);
  rate<DoubleCore<MaxPlus>>("f64 max_plus", 1., 2., 1);
}

}  // namespace
}  // namespace tropical::cuda

int main(int argc, char** argv) {
  using namespace tropical;
  using namespace tropical::cuda;
  if (argc > 2) filter = argv[2];
  void* handle = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW | RTLD_LOCAL);
  const auto entry = handle ? reinterpret_cast<GetBackend>(dlsym(handle, kEntrySymbol)) : nullptr;
  if (!entry) {
    std::printf("usage: cuda_bench LIBRARY [FILTER]\n");
    return 2;
  }
  backend = entry();
  int khz = 0;
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0), "device");
  check(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0), "device");
  clock_hz = khz * 1e3;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  queue = {0, stream};
  std::printf("%d multiprocessors at %.2f GHz (the rated clock)\n", multiprocessors, clock_hz * 1e-9);
  rates();
  values();
  argmax();
  types();
  batches();
  edges();
  backward<float>("f32 max_plus n=2048", 2048, Semiring::max_plus);
  backward<float>("f32 max_mul n=2048", 2048, Semiring::max_mul);
  backward<float>("f32 max_plus n=4096", 4096, Semiring::max_plus);
  backward<float16>("f16 max_plus n=2048", 2048, Semiring::max_plus);
  return 0;
}

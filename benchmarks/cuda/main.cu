// The GPU's speed table: library calls beside register-only rates of the same run, against the goals set for them.
//   cuda_bench LIBRARY [FILTER]     rows whose name contains FILTER
// Not here: the host time of a call (benchmarks/python/overhead_cuda.py) and other ways to the same results
// (compare_cuda.py).
#include <dlfcn.h>

#include "bmm.cuh"
#include "rates.cuh"
#include "table.h"

namespace tropical::cuda {
namespace {

std::string filter;
Table table;

std::string text(int64_t n) { return std::to_string(n); }
bool wanted(const std::string& name) { return filter.empty() || name.find(filter) != std::string::npos; }

// Prints one measurement and returns its seconds; 0 where it is not wanted.
template <class T>
double row(const char* group, const std::string& name, int64_t m, int64_t n, int64_t k, const Options& o) {
  if (!wanted(std::string(group) + " " + name)) return 0;
  const double s = product<T>(m, n, k, o);
  const double r = rate_of(static_cast<double>(m) * n * k * o.batch, s);
  std::printf("| %s | %-44s | %9.2f us | %6.1f MAC/clk/SM | %5.1f %% of 64 |\n", group, name.c_str(), s * 1e6, r,
              100 * r / 64);
  std::fflush(stdout);
  return s;
}

constexpr Data kOneSign[] = {Data::uniform, Data::normal, Data::negative};
constexpr Data kMixed[] = {Data::mixed, Data::infinities, Data::nans};

// What a size is to reach with values: microseconds below n = 2048, then percent of 64 MAC/clk/SM.
struct Goals {
  int64_t n;
  double one_sign, mixed;
};
constexpr Goals kValues[] = {{256, 5.5, 6},  {512, 15.5, 16.5}, {1024, 84, 93},
                             {2048, 84, 70}, {4096, 88, 70},    {8192, 88, 70}};

void values() {
  for (const auto& [n, one_sign, mixed] : kValues)
    for (const char* layout : {"NN", "TN", "TT", "NT"}) {
      const bool small = n < 2048;
      if (small && layout != std::string("NN")) continue;
      for (const Semiring semiring : {Semiring::max_plus, Semiring::min_plus}) {
        const auto each = [&](Data data, const char* kind, double goal) {
          const char* name = semiring == Semiring::max_plus ? "max_plus " : "min_plus, negated ";
          const double s =
              row<float>("values", std::string(layout) + " f32 n=" + text(n) + " " + name + kDataNames[int(data)], n, n,
                         n, {semiring, data, false, layout});
          if (s == 0) return;
          const std::string what = std::string("f32 values n = ") + text(n) + ", " + kind;
          const double macs = static_cast<double>(n) * n * n;
          if (small)
            table.add(what, s * 1e6, Table::at_most, goal, "us");
          else
            table.add(what + ", four layouts", 100 * rate_of(macs, s) / 64, Table::at_least, goal,
                      "% of 64 MAC/clk/SM");
        };
        for (const Data data : kOneSign) each(data, "uniform, randn, negative", one_sign);
        for (const Data data : kMixed) each(data, "mixed rows, -inf, NaN", mixed);
      }
    }
  for (const int64_t n : {2048, 4096})  // multiprocessors in different modes: no goal
    row<float>("values", "NN f32 n=" + text(n) + " max_plus mixed blocks", n, n, n, {Semiring::max_plus, Data::blocks});
}

// Over the values' time on uniform data; microseconds below n = 1024.
constexpr Goals kArgmax[] = {{256, 10.5, 10.5},  {512, 24, 24},      {1024, 1.65, 2.2},
                             {2048, 1.50, 1.75}, {4096, 1.38, 1.75}, {8192, 1.30, 1.75}};

void argmax() {
  for (const auto& [n, one_sign, mixed] : kArgmax) {
    const double base = n < 1024 ? 0 : row<float>("argmax", "f32 values n=" + text(n), n, n, n, {});
    const auto each = [&](Data data, const char* kind, double goal) {
      const double s = row<float>("argmax", "f32 argmax n=" + text(n) + " " + kDataNames[int(data)], n, n, n,
                                  {Semiring::max_plus, data, true});
      if (s == 0) return;
      const std::string what = "f32 argmax n = " + text(n) + ", " + kind;
      if (n < 1024)
        table.add(what, s * 1e6, Table::at_most, goal, "us");
      else if (base > 0)
        table.add(what, s / base, Table::at_most, goal, "x values");
    };
    for (const Data data : kOneSign) each(data, "uniform, randn, negative", one_sign);
    for (const Data data : kMixed) each(data, "mixed rows, -inf, NaN", mixed);
  }
}

void rates_and_types() {
  rate<FloatCore<MaxPlus, true>, Mode::value>("f32 max_plus by value", 1.f, 2.f, 1);
  rate<FloatCore<MaxPlus, true>, Mode::positive>("f32 max_plus, three-input max", 1.f, 2.f, 1);
  const double mul = rate<FloatCore<MaxMul, true>>("f32 max_mul", 1.f, 2.f, 1);
  const double max_min = rate<FloatCore<MaxMin, true>>("f32 max_min", 1.f, 2.f, 1);
  const double min_max = rate<FloatCore<MinMax, true>>("f32 min_max", 1.f, 2.f, 1);
  rate<IntegerCore<MaxPlus>>("i32 max_plus", 1, 2, 1);
  rate<ShortPairs<MaxPlus>>("i16 max_plus", 1, 2, 2);
  rate<HalfPairs<MaxPlus, float16>>("f16 max_plus", 0x3c003c00u, 0x40004000u, 2);
  rate<HalfPairs<MaxPlus, bfloat16>>("bf16 max_plus", 0x3f803f80u, 0x40004000u, 2);
  rate<DoubleCore<MaxPlus>>("f64 max_plus", 1., 2., 1);

  const int64_t n = 4096;
  const auto each = [&]<class T>(T, const std::string& name, const Options& o, double goal) {
    const double s = row<T>("types", name + " n=4096", n, n, n, o);
    if (s > 0 && goal > 0)
      table.add(name.substr(0, name.find(',')) + " n = 4096", rate_of(static_cast<double>(n) * n * n, s),
                Table::at_least, goal, "MAC/clk/SM");
  };
  for (const Data data : {Data::uniform, Data::infinities}) {
    const std::string of = std::string(", ") + kDataNames[int(data)];
    each(int32_t(), "i32 plus, max" + of, {Semiring::max_plus, data}, 57);
    each(int32_t(), "i32 plus, min" + of, {Semiring::min_plus, data}, 57);
    each(int16_t(), "i16 plus, max" + of, {Semiring::max_plus, data}, 105);
    each(int16_t(), "i16 plus, min" + of, {Semiring::min_plus, data}, 105);
  }
  for (const Data data : {Data::normal, Data::nans}) {
    const std::string of = std::string(", ") + kDataNames[int(data)];
    each(float16(), "f16 max_plus" + of, {Semiring::max_plus, data}, 100);
    each(bfloat16(), "bf16 max_plus" + of, {Semiring::max_plus, data}, 100);
  }
  each(double(), "f64 plus, max, randn", {Semiring::max_plus, Data::normal}, 18);
  each(double(), "f64 plus, min, -inf 30 %", {Semiring::min_plus, Data::infinities}, 18);
  each(float(), "f32 max_mul", {Semiring::max_mul, Data::normal}, .85 * mul);
  each(float(), "f32 max_min", {Semiring::max_min, Data::normal}, .85 * max_min);
  each(float(), "f32 min_max", {Semiring::min_max, Data::normal}, .85 * min_max);
  // Without a goal.
  each(float16(), "f16 max_mul", {Semiring::max_mul, Data::normal}, 0);
  each(float16(), "f16 max_min", {Semiring::max_min, Data::normal}, 0);
  each(int64_t(), "i64 max_plus", {}, 0);
  each(int32_t(), "i32 argmax", {Semiring::max_plus, Data::uniform, true}, 0);
  each(float16(), "f16 argmax", {Semiring::max_plus, Data::uniform, true}, 0);
  each(double(), "f64 argmax", {Semiring::max_plus, Data::uniform, true}, 0);
}

void batches() {
  struct Batch {
    int64_t count, n;
    double values, argmax;  // goals over cuBLAS
  };
  constexpr Batch kBatches[] = {{4096, 16, .35, .55}, {4096, 32, .9, 1.9}, {1024, 64, 1.3, 2.6},
                                {256, 128, 1.8, 3.6}, {65536, 8, 0, 0},    {1000000, 8, 0, 0}};
  if (!wanted("batch")) return;
  const Bmm bmm;
  for (const auto& [count, n, values_goal, argmax_goal] : kBatches) {
    const std::string shape = text(count) + "x" + text(n) + "^3";
    const double peer = bmm.seconds(count, static_cast<int>(n));
    std::printf("| batch | %-44s | %9.2f us |\n", (shape + " cuBLAS sgemm").c_str(), peer * 1e6);
    for (const bool arg : {false, true})
      for (const Data data : {Data::uniform, Data::normal, Data::mixed, Data::infinities}) {
        Options o{Semiring::max_plus, data, arg};
        o.batch = count;
        const char* kind = arg ? " argmax" : " values";
        const double s = row<float>("batch", shape + kind + " " + kDataNames[int(data)], n, n, n, o);
        const double goal = arg ? argmax_goal : values_goal;
        if (s > 0 && peer > 0 && goal > 0) table.add("f32 " + shape + kind, s / peer, Table::at_most, goal, "x cuBLAS");
      }
  }
}

// Against the round size beside them, or the time that their bytes take.
void edges() {
  const size_t bytes = size_t{1} << 30;
  double bandwidth = 0;
  if (wanted("edges")) {
    const Memory from(bytes), to(bytes);
    const double s = seconds_of(
        [&] { check(cudaMemcpyAsync(to.data, from.data, bytes, cudaMemcpyDefault, context.stream), "copy"); }, false);
    bandwidth = 2.0 * static_cast<double>(bytes) / s;
    std::printf("| edges | copy on the device, bytes read and written | %.2f TB/s |\n", bandwidth * 1e-12);
  }
  struct Pair {
    int64_t m, n, k, round_m, round_n, round_k;
  };
  constexpr Pair kPairs[] = {{4095, 4095, 4095, 4096, 4096, 4096}, {4097, 4097, 4097, 4096, 4096, 4096},
                             {1000, 1000, 1000, 1024, 1024, 1024}, {100000, 64, 64, 98304, 64, 64},
                             {64, 64, 100000, 64, 64, 98304},      {64, 100000, 64, 64, 98304, 64}};
  for (const auto& e : kPairs) {
    const auto name = [](int64_t m, int64_t n, int64_t k) { return text(m) + "x" + text(k) + "x" + text(n); };
    const double s = row<float>("edges", name(e.m, e.n, e.k), e.m, e.n, e.k, {});
    const double round =
        row<float>("edges", name(e.round_m, e.round_n, e.round_k), e.round_m, e.round_n, e.round_k, {});
    if (s == 0 || round == 0) continue;
    const double macs = static_cast<double>(e.m) * e.n * e.k;
    const double share = macs / s / (static_cast<double>(e.round_m) * e.round_n * e.round_k / round);
    const double moved = 4.0 * static_cast<double>(e.m * e.k + e.k * e.n + e.m * e.n);
    std::printf("|   %.0f %% of the round size, %.0f %% of the bytes' time, %.0f %% of 64 MAC/clk/SM |\n", 100 * share,
                100 * moved / bandwidth / s, 100 * rate_of(macs, s) / 64);
    table.add(name(e.m, e.n, e.k) + " (MxKxN)", 100 * std::max(share, moved / bandwidth / s), Table::at_least, 80,
              "% of the round size or of the bytes' time");
  }
}

// Products through bounds over the plain kernels of the same run; goals of values and of argmax.
struct FilterGoals {
  int64_t n;
  double values, argmax, hard;
};
template <class T>
void filtered(const char* type, std::initializer_list<FilterGoals> goals, std::initializer_list<Data> easy,
              std::initializer_list<Data> hard) {
  for (const FilterGoals& goal : goals) {
    const int64_t n = goal.n;
    const auto each = [&](Data data, bool is_easy) {
      const std::string name = std::string(type) + " n=" + text(n) + " " + kDataNames[int(data)];
      const std::string what = std::string(type) + " filter, n = " + text(n) + (is_easy ? "" : ", not worth it");
      double values = 0;
      for (const bool argmax : {false, true}) {
        const std::string kind = argmax ? " argmax" : "";
        Options o{Semiring::max_plus, data, argmax};
        o.filtering = Filtering::automatic;
        const double s = row<T>("filter", name + kind, n, n, n, o);
        o.filtering = Filtering::never;
        const double plain = row<T>("filter", name + kind + " plain", n, n, n, o);
        if (s == 0 || plain == 0) continue;
        std::printf("|   %.2fx |\n", plain / s);
        const double least = !is_easy ? goal.hard : argmax ? goal.argmax : goal.values;
        if (least > 0) table.add(what + kind, plain / s, Table::at_least, least, "x plain");
        if (argmax && is_easy && sizeof(T) == 8)
          table.add(what + ", argmax over values", s / values, Table::at_most, 1.03, "");
        values = s;
      }
    };
    for (const Data data : easy) each(data, true);
    for (const Data data : hard) each(data, false);
  }
}
void filtered() {
  filtered<double>("f64", {{2048, 1.7, 1.7, 0}, {4096, 2.0, 2.0, .93}, {8192, 2.2, 2.2, .93}},
                   {Data::uniform, Data::normal, Data::negative, Data::integers, Data::nans, Data::infinities},
                   {Data::grid, Data::huge});
  filtered<float>("f32", {{2048, 0, 0, 0}, {4096, 1.2, 1.45, .93}, {8192, 1.35, 1.6, .93}},
                  {Data::uniform, Data::normal, Data::logs, Data::integers}, {Data::points});
}

template <class T>
void gradients(const char* name, int64_t n, Semiring semiring, double goal) {
  if (!wanted(std::string("backward ") + name)) return;
  const BackwardTimes t = backward<T>(n, semiring);
  const double percent = 100 * t.both / t.values;
  std::printf("| backward | %-30s | %9.2f us (a %.2f, b %.2f) | values %.2f us | %.1f %% |\n", name, t.both * 1e6,
              t.only_a * 1e6, t.only_b * 1e6, t.values * 1e6, percent);
  if (goal > 0) table.add("backward, both gradients, n = " + text(n), percent, Table::at_most, goal, "% of values");
}

void run() {
  rates_and_types();
  values();
  argmax();
  batches();
  edges();
  filtered();
  gradients<float>("f32 max_plus n=2048", 2048, Semiring::max_plus, 20);
  gradients<float>("f32 max_mul n=2048", 2048, Semiring::max_mul, 0);
  gradients<float>("f32 max_plus n=4096", 4096, Semiring::max_plus, 0);
  gradients<float16>("f16 max_plus n=2048", 2048, Semiring::max_plus, 0);
  table.print();
}

}  // namespace
}  // namespace tropical::cuda

int main(int argc, char** argv) {
  using namespace tropical::cuda;
  if (argc > 2) filter = argv[2];
  void* handle = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW | RTLD_LOCAL);
  const auto entry = handle ? reinterpret_cast<GetBackend>(dlsym(handle, kEntrySymbol)) : nullptr;
  if (!entry) {
    std::printf("usage: cuda_bench LIBRARY [FILTER]\n");
    return 2;
  }
  context.backend = entry();
  int khz = 0;
  check(cudaDeviceGetAttribute(&context.multiprocessors, cudaDevAttrMultiProcessorCount, 0), "device");
  check(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0), "device");
  context.clock_hz = khz * 1e3;
  check(cudaStreamCreateWithFlags(&context.stream, cudaStreamNonBlocking), "stream");
  context.queue = {0, context.stream};
  std::printf("%d multiprocessors at %.2f GHz (the rated clock)\n", context.multiprocessors, context.clock_hz * 1e-9);
  run();
  return 0;
}

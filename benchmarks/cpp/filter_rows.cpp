// Certified filtering beside the plain kernels, on data that it wins and loses on.
#include <cmath>
#include <limits>
#include <memory>

#include "problem.h"
#include "rows.h"

namespace tropical::bench {
namespace {

double unit(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }
double normal(std::mt19937_64& random) { return std::normal_distribution<double>()(random); }

struct Data {
  const char* name;
  double (*draw)(std::mt19937_64&);
};
constexpr Data kUniform{"uniform", unit};
// What the targets are for, beside uniform numbers.
constexpr Data kEasy[] = {
    {"normal", normal},
    {"integers", [](std::mt19937_64& random) { return static_cast<double>(random() % 1000); }},
    {"log_u", [](std::mt19937_64& random) { return std::log(unit(random) + 1e-300); }},
    {"masked",  // two thirds -inf
     [](std::mt19937_64& random) {
       return random() % 3 == 0 ? normal(random) : -std::numeric_limits<double>::infinity();
     }},
};
constexpr Data kHard[] = {
    {"cents", [](std::mt19937_64& random) { return static_cast<double>(random() % 1000) / 100; }},
};
// What has to be given up, or nearly.
constexpr Data kHopeless[] = {
    {"constant", [](std::mt19937_64&) { return 3.25; }},
    {"wide_scales", [](std::mt19937_64& random) { return std::exp(10 * normal(random)); }},
    {"noise",
     [](std::mt19937_64& random) {
       return static_cast<double>(random() % 100) / 64 + static_cast<double>(random() % 3) * 0x1p-30;
     }},
    {"denormal", [](std::mt19937_64& random) { return 1e-310 * unit(random); }},
};

struct Target {
  DType dtype;
  int64_t n;
  double values, argmax;
};
// f32 values have no target.
constexpr Target kTargets[] = {{DType::f64, 512, 1.5, 1.6},
                               {DType::f64, 1024, 1.9, 2.0},
                               {DType::f64, 2048, 2.3, 2.4},
                               {DType::f32, 1024, 0, 1.1},
                               {DType::f32, 2048, 0, 1.3}};

Timed with_filter(const std::shared_ptr<Problem>& problem, bool argmax, const char* mode, int threads) {
  Timed timed{[=] {
                set_filter(mode);
                argmax ? problem->argmax(threads) : problem->values(threads);
                set_filter("never");
              },
              problem->pairs()};
  timed.threads = threads;
  return timed;
}

ProblemSpec spec_of(DType dtype, int64_t n, const Data& data) {
  ProblemSpec spec{Semiring::max_plus, dtype, n, n, n, 1, {}};
  spec.fill.draw = data.draw;
  return spec;
}

void add(std::vector<Row>& rows, const Target& t, const Data& data, bool argmax, double target) {
  const ProblemSpec spec = spec_of(t.dtype, t.n, data);
  rows.push_back({std::string("filter/") + (argmax ? "argmax/" : "values/") + data.name + "/" + spec_name(spec),
                  Quantity::speedup, target, [=] {
                    auto problem = std::make_shared<Problem>(spec);
                    return Comparison{with_filter(problem, argmax, "never", 1), with_filter(problem, argmax, "auto", 1),
                                      [=] { argmax ? problem->check_argmax() : problem->check_values(); }};
                  }});
}

}  // namespace

void add_filter(std::vector<Row>& rows) {
  for (const Target& t : kTargets) {
    const bool f64 = t.dtype == DType::f64;
    const auto both = [&](const Data& data, double values, double argmax) {
      if (f64 || &data == &kUniform) add(rows, t, data, false, values);
      add(rows, t, data, true, argmax);
    };
    both(kUniform, t.values, t.argmax);
    for (const Data& data : kEasy) both(data, t.values, t.argmax);
    for (const Data& data : kHard) both(data, 0, 0);
    for (const Data& data : kHopeless)
      if (f64 || data.draw != kHopeless[3].draw) both(data, 0.92, 0.92);
  }
  for (const int64_t n : {1024, 2048}) {
    const ProblemSpec spec = spec_of(DType::f64, n, kUniform);
    rows.push_back({"filter/threads/2/" + spec_name(spec), Quantity::speedup, 1.85,
                    [=] {
                      auto problem = std::make_shared<Problem>(spec);
                      Timed one = with_filter(problem, false, "auto", 1);
                      one.threads = 2;  // both by the wall clock
                      return Comparison{one, with_filter(problem, false, "auto", 2), [=] { problem->check_values(); }};
                    },
                    "", 2});
  }
}

}  // namespace tropical::bench

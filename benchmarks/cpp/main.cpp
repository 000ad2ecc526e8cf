// tropical_gemm_bench: every row is a Google Benchmark, so --benchmark_filter and the output formats work; a summary in
// Markdown follows.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <exception>
#include <iostream>
#include <utility>

#include "report.h"
#include "rows.h"
#include "tropical_gemm/matmul.h"

namespace tropical::bench {
namespace {

// Restores the instruction set that was in use.
class ForcedIsa {
 public:
  explicit ForcedIsa(const std::string& isa) : before_(build_info().isa) {
    if (!isa.empty()) set_isa(isa);
  }
  ~ForcedIsa() { set_isa(before_); }
  ForcedIsa(const ForcedIsa&) = delete;
  ForcedIsa& operator=(const ForcedIsa&) = delete;

 private:
  std::string before_;
};

// "" if the row can run here.
std::string reason_to_skip(const Row& row) {
  const BuildInfo info = build_info();
  if (info.max_threads < row.threads) return "needs " + std::to_string(row.threads) + " threads";
  if (!row.isa.empty() && std::find(info.isas.begin(), info.isas.end(), row.isa) == info.isas.end())
    return "this machine has no " + row.isa;
  return "";
}

Outcome measure(const Row& row) {
  const ForcedIsa forced(row.isa);
  const Comparison c = row.make();
  c.subject.run();
  c.check();
  const PairTiming t = time_pairs(c.base, c.subject);
  Outcome outcome{row.name, row.quantity, row.target, t.speed_ratio};
  if (row.quantity == Quantity::ratio) outcome.value = t.time_ratio;
  outcome.base_rate = c.base.pairs / t.base_seconds;
  outcome.rate = c.subject.pairs / t.subject_seconds;
  outcome.seconds = t.subject_seconds;
  return outcome;
}

const char* counter_name(Quantity quantity) {
  return quantity == Quantity::share ? "share" : quantity == Quantity::speedup ? "speedup" : "ratio";
}

// What all rows leave for the end.
struct Session {
  std::vector<Outcome> outcomes;
  std::vector<std::string> unmeasured;
  bool failed = false;
};

void run(benchmark::State& state, const Row& row, Session& session) {
  const auto give_up = [&](const std::string& reason) {
    session.unmeasured.push_back(row.name + ": " + reason);
    state.SkipWithError(reason.c_str());
  };
  if (const std::string reason = reason_to_skip(row); !reason.empty()) return give_up(reason);
  Outcome outcome;
  try {
    outcome = measure(row);
  } catch (const std::exception& e) {
    session.failed = true;
    return give_up(e.what());
  }
  while (state.KeepRunning()) state.SetIterationTime(outcome.seconds);
  state.counters[counter_name(row.quantity)] = outcome.value.median;
  state.counters["low"] = outcome.value.low;
  state.counters["high"] = outcome.value.high;
  if (outcome.rate > 0) state.counters["G/s"] = outcome.rate * 1e-9;
  state.counters[row.quantity == Quantity::share ? "limit_G/s" : "base_G/s"] = outcome.base_rate * 1e-9;
  if (row.target > 0) state.SetLabel("target " + target_text(outcome) + ": " + verdict(outcome));
  session.outcomes.push_back(std::move(outcome));
}

}  // namespace
}  // namespace tropical::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  tropical::set_filter("never");  // rows are about the plain kernels, but for those that say otherwise
  tropical::bench::Session session;
  for (const tropical::bench::Row& row : tropical::bench::all_rows())
    benchmark::RegisterBenchmark(
        row.name.c_str(), [row, &session](benchmark::State& state) { tropical::bench::run(state, row, session); })
        ->UseManualTime()
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  if (benchmark::RunSpecifiedBenchmarks() > 0 && !session.outcomes.empty())
    tropical::bench::write_report(std::cout, session.outcomes, session.unmeasured);
  benchmark::Shutdown();
  return session.failed ? 1 : 0;
}

#include "measure.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace tropical::bench {
namespace {

using Samples = std::array<double, kPairs>;

double now(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double time_runs(const Timed& program, int64_t runs) {
  const clockid_t clock = program.threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  const double start = now(clock);
  for (int64_t i = 0; i < runs; ++i) program.run();
  return now(clock) - start;
}

// How many runs make one sample. The first call warms caches and must not count.
int64_t runs_per_sample(const Timed& program) {
  program.run();
  int64_t runs = 1;
  double took = time_runs(program, runs);
  while (took < program.seconds / 8) {
    runs *= 2;
    took = time_runs(program, runs);
  }
  return std::max<int64_t>(1, std::llround(std::ceil(program.seconds / took * static_cast<double>(runs))));
}

Spread spread(Samples samples) {
  std::sort(samples.begin(), samples.end());
  return {samples[kPairs / 2], samples.front(), samples.back()};
}

}  // namespace

PairTiming time_pairs(const Timed& base, const Timed& subject) {
  const int64_t base_runs = runs_per_sample(base), subject_runs = runs_per_sample(subject);
  Samples base_time, subject_time, time_ratio, speed_ratio;
  const double weight = base.pairs > 0 && subject.pairs > 0 ? subject.pairs / base.pairs : 1;
  for (size_t i = 0; i < kPairs; ++i) {
    base_time[i] = time_runs(base, base_runs) / static_cast<double>(base_runs);
    subject_time[i] = time_runs(subject, subject_runs) / static_cast<double>(subject_runs);
    time_ratio[i] = subject_time[i] / base_time[i];
    speed_ratio[i] = weight / time_ratio[i];
  }
  return {spread(speed_ratio), spread(time_ratio), spread(base_time).median, spread(subject_time).median};
}

double time_alone(const Timed& program) {
  const int64_t runs = runs_per_sample(program);
  Samples samples;
  for (double& s : samples) s = time_runs(program, runs) / static_cast<double>(runs);
  return spread(samples).median;
}

}  // namespace tropical::bench

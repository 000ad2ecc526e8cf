// Interleaved timing: two programs take turns, so that a change of the machine's speed meets both. What runs on one
// thread is timed by that thread's clock, which stands still while other processes have the processor.
#pragma once
#include <functional>

namespace tropical::bench {

// Something to time. `pairs` counts its (add, mul) pairs per run; 0 where they mean nothing.
struct Timed {
  std::function<void()> run;
  double pairs = 0;
  double seconds = 0.05;  // how long one sample takes at least
  int threads = 1;
};

// A median with its extremes.
struct Spread {
  double median = 0, low = 0, high = 0;
};

struct PairTiming {
  Spread speed_ratio;  // runs of the subject per run of the base, both weighted by their pairs where they have them
  Spread time_ratio;   // seconds per run of the subject over seconds per run of the base
  double base_seconds = 0, subject_seconds = 0;  // per run, medians
};

inline constexpr int kPairs = 7;

// The median of kPairs pairs of samples (base, subject).
PairTiming time_pairs(const Timed& base, const Timed& subject);

// Seconds per run: the median of kPairs samples.
double time_alone(const Timed& program);

}  // namespace tropical::bench

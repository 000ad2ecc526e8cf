#!/usr/bin/env bash
# Builds and runs the C++ benchmarks; arguments go to Google Benchmark (such as --benchmark_filter=max_plus).
source "$(dirname "$0")/common.sh"

scripts/setup.sh bench
cmake --preset release -DTG_BUILD_BENCHMARKS=ON
cmake --build --preset release
for program in build/release/benchmarks/cpp/bench_*; do
  [ -x "$program" ] && [ -f "$program" ] && "$program" "$@"
done

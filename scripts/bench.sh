#!/usr/bin/env bash
# Builds and runs the benchmarks; arguments go to Google Benchmark (such as --benchmark_filter=max_plus).
source "$(dirname "$0")/common.sh"

scripts/setup.sh bench
cmake --preset release -DTG_BUILD_BENCHMARKS=ON
cmake --build --preset release
build/release/benchmarks/cpp/tropical_gemm_bench "$@"

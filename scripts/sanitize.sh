#!/usr/bin/env bash
# Builds and runs the C++ tests under sanitizers, with clang: it builds them several times faster than g++, and its
# OpenMP run-time tells the thread sanitizer about its barriers (by Archer), where g++'s gives false reports.
#   scripts/sanitize.sh asan    address and undefined behaviour
#   scripts/sanitize.sh tsan    data races, in the tests that use threads
# The presets build few kernel shapes, unoptimised: optimising instrumented kernels takes longer than all the tests.
source "$(dirname "$0")/common.sh"

case "${1:-}" in
  asan | tsan) ;;
  *) echo "usage: sanitize.sh asan|tsan" >&2 && exit 2 ;;
esac
scripts/setup.sh sanitize
say "$1: build"
cmake --preset "$1"
cmake --build --preset "$1"
say "$1: tests"
ctest --preset "$1" --parallel "$JOBS"

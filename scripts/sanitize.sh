#!/usr/bin/env bash
# Builds and runs the C++ tests under sanitizers.
#   scripts/sanitize.sh asan    address and undefined behaviour
#   scripts/sanitize.sh tsan    data races, in the tests about threads; with clang, whose OpenMP run-time tells the
#                               sanitizer about its barriers (by Archer), where g++'s gives false reports
source "$(dirname "$0")/common.sh"

case "${1:-}" in
  asan) scripts/setup.sh dev ;;
  tsan) scripts/setup.sh tsan ;;
  *) echo "usage: sanitize.sh asan|tsan" >&2 && exit 2 ;;
esac
say "$1: build"
cmake --preset "$1"
cmake --build --preset "$1"
say "$1: tests"
ctest --preset "$1"

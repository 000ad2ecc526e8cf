#!/usr/bin/env bash
# From a fresh clone to all tests: C and C++ (ctest), the installed C++ package, Python (pytest).
source "$(dirname "$0")/common.sh"

scripts/setup.sh dev
scripts/install_package.sh --tests
say "C and C++ tests"
ctest --test-dir build/python --output-on-failure
say "C++ package, as another project uses it"
scripts/example_cpp.sh
say "Python tests"
python -m pytest python/tests

#!/usr/bin/env bash
# Installs the C++ package from build/python into build/prefix, builds examples/cpp against it, and runs the result.
source "$(dirname "$0")/common.sh"

cmake --install build/python --component cpp --prefix build/prefix >/dev/null
cmake -S examples/cpp -B build/example -G Ninja -DCMAKE_PREFIX_PATH="$ROOT/build/prefix" >/dev/null
cmake --build build/example >/dev/null
build/example/shortest_paths

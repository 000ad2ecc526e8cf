#!/usr/bin/env bash
# Calls every operation with hostile arguments for a while, under the address and undefined-behaviour sanitizers; then
# reads damaged graph files for as long.
#   scripts/fuzz.sh [SECONDS]    60 each if not given
# What fails is left, made small, in build/fuzz/found: once mended, it belongs in tests/fuzz/corpus.
source "$(dirname "$0")/common.sh"

seconds="${1:-60}"
scripts/setup.sh sanitize
scripts/setup.sh dev
scripts/install_package.sh
say "fuzz: build"
cmake --preset fuzz
cmake --build --preset fuzz
say "fuzz: $seconds seconds"
export ASAN_OPTIONS=allocator_may_return_null=1
export LSAN_OPTIONS="suppressions=$ROOT/cmake/lsan.supp:print_suppressions=0"
fuzzer="$ROOT/build/fuzz/tests/tropical_gemm_fuzzer"
mkdir -p build/fuzz/corpus build/fuzz/found
cd build/fuzz
if ! "$fuzzer" -max_total_time="$seconds" -max_len=400 -len_control=0 -print_final_stats=1 -artifact_prefix=found/ \
  corpus "$ROOT/tests/fuzz/corpus"; then
  for case in found/*-*; do
    "$fuzzer" -minimize_crash=1 -max_total_time=30 -exact_artifact_path="$case.small" "$case" >/dev/null 2>&1 || true
  done
  ls -l found
  exit 1
fi
cd "$ROOT"
say "fuzz: damaged graph files"
python -X faulthandler python/tests/reader_fuzz.py "$seconds"

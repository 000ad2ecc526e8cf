#!/usr/bin/env bash
# Which lines the tests run: of C++ by clang's counters, over ctest and the Python tests, which import this build; of
# Python by coverage, with the processes that tests start. Fails below 95 % of either. What is left out, and why, is in
# CONTRIBUTING.md. Reports: build/coverage/cpp.txt and python.txt, with the missing lines in html/.
source "$(dirname "$0")/common.sh"

scripts/setup.sh sanitize
scripts/setup.sh dev
out="$ROOT/build/coverage" least=95
llvm="$(dirname "$(readlink -f "$(command -v clang)")")"
export LLVM_PROFILE_FILE="$out/counts/%4m.profraw" COVERAGE_FILE="$out/counts/python"
rm -rf "$out/counts" "$out/site" "$out/html"
mkdir -p "$out/counts" "$out/html"

say "coverage: build"
pip install --quiet --no-build-isolation --no-deps --target "$out/site" "-Cbuild-dir=$out/cmake" \
  -Ccmake.args=--preset=coverage -Ccmake.build-type=Debug -Cinstall.strip=false .

say "coverage: C and C++ tests"
ctest --test-dir "$out/cmake" --output-on-failure -E Consumer

say "coverage: Python tests"
export PYTHONPATH="$out/site"
python -m coverage run -m pytest -q python/tests

say "coverage: C++"
"$llvm/llvm-profdata" merge --sparse "$out"/counts/*.profraw -o "$out/counts/all"
programs=("$out"/site/tropical_gemm/_core*.so)
for each in "$out"/cmake/tests/tropical_gemm_*; do
  [ -x "$each" ] && [ -f "$each" ] && programs+=(-object "$each")
done
counted=("${programs[@]}" "-instr-profile=$out/counts/all" '-ignore-filename-regex=/(tests|usr|nanobind)/')
"$llvm/llvm-cov" report "${counted[@]}" --show-region-summary=false --show-branch-summary=false | tee "$out/cpp.txt"
"$llvm/llvm-cov" show "${counted[@]}" --format=html --output-dir="$out/html/cpp"

say "coverage: Python"
python -m coverage combine --quiet
python -m coverage html --quiet --directory="$out/html/python"
python -m coverage report --fail-under="$least" | tee "$out/python.txt"

awk -v least="$least" '/^TOTAL/ { share = $(NF); sub("%", "", share); print "C++ lines: " share " %"; exit !(share >= least) }' "$out/cpp.txt"

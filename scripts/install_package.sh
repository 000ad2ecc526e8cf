#!/usr/bin/env bash
# Builds the Python package in build/python and installs it into .venv. With --tests, the C++ tests are built there
# too, so that the library is compiled once for both. Incremental. TG_WERROR=ON makes warnings errors. TG_BUILD_CUDA=ON
# adds the CUDA library, which takes minutes for each of TG_CUDA_ARCHITECTURES.
source "$(dirname "$0")/common.sh"

tests=OFF
[ "${1:-}" = --tests ] && tests=ON

stamp="$VENV/.installed-package-tests-$tests"
sources=(CMakeLists.txt pyproject.toml cmake include src python/bindings python/tropical_gemm)
[ "$tests" = ON ] && sources+=(tests)
if [ -e "$stamp" ] && [ -z "$(find "${sources[@]}" -newer "$stamp" -not -path '*/__pycache__*' -print -quit)" ]; then
  exit 0
fi
say "building and installing the package (jobs: $JOBS)"
rm -f "$VENV"/.installed-package-*
touch "$stamp.new"
pip install --quiet --no-build-isolation --no-deps --force-reinstall \
  --config-settings=build-dir=build/python --config-settings=cmake.define.TG_BUILD_TESTS="$tests" \
  --config-settings=cmake.define.TG_WERROR="${TG_WERROR:-OFF}" \
  --config-settings=cmake.define.TG_BUILD_CUDA="${TG_BUILD_CUDA:-OFF}" \
  ${TG_CUDA_ARCHITECTURES:+--config-settings=cmake.define.TG_CUDA_ARCHITECTURES="$TG_CUDA_ARCHITECTURES"} .
mv "$stamp.new" "$stamp"

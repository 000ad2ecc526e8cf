#!/usr/bin/env bash
# The sdist and a wheel, as they would be released: built, checked, and installed into empty environments.
#   dist/     both; the wheel with a manylinux tag, the libraries that it needs inside
# PYTHON is the interpreter that the wheel is for. TG_BUILD_CUDA=ON adds the CUDA library.
source "$(dirname "$0")/common.sh"

scripts/setup.sh wheel
python="${PYTHON:-python3}"
work="$ROOT/build/wheel"
rm -rf "$work" dist
mkdir -p "$work"

empty_environment() {
  rm -rf "$work/try"
  "$python" -m venv "$work/try"
}

try_it() {
  "$work/try/bin/python" -m pip check
  (cd "$work" && try/bin/python "$ROOT/scripts/smoke.py")
}

say "sdist"
"$VENV/bin/python" -m build --sdist --outdir dist . >"$work/sdist.log" || { cat "$work/sdist.log"; exit 1; }
mkdir "$work/sources"
tar -xzf dist/*.tar.gz -C "$work/sources" --strip-components=1

say "the sdist in an empty environment"
empty_environment
"$work/try/bin/python" -m pip install --quiet "$work/sources" --config-settings=build-dir=build/release \
  --config-settings=cmake.define.TG_BUILD_CUDA=OFF
try_it

say "wheel, from the sdist"
# What JAX's custom calls need, of the oldest jaxlib that the wheel is for.
"$work/try/bin/python" -m pip install --quiet --no-deps --target "$work/jaxlib" -r scripts/wheel-jaxlib.txt
# This compiler's C++ runtime is newer than that of most machines. libgcc stays theirs: it unwinds for all modules.
"$work/try/bin/python" -m pip wheel --quiet --no-deps --wheel-dir "$work" \
  --config-settings=build-dir=build/release --config-settings=cmake.define.TG_BUILD_CUDA="${TG_BUILD_CUDA:-OFF}" \
  --config-settings=cmake.define.CMAKE_SHARED_LINKER_FLAGS="-static-libstdc++" \
  --config-settings=cmake.define.CMAKE_MODULE_LINKER_FLAGS="-static-libstdc++" \
  --config-settings=cmake.define.TG_BUILD_JAX=ON --config-settings=cmake.define.TG_JAX_INCLUDE="$work/jaxlib/jaxlib/include" \
  ${TG_CUDA_ARCHITECTURES:+--config-settings=cmake.define.TG_CUDA_ARCHITECTURES="$TG_CUDA_ARCHITECTURES"} "$work/sources"
"$VENV/bin/python" -m auditwheel show "$work"/*.whl
"$VENV/bin/python" -m auditwheel repair --strip --wheel-dir dist "$work"/*.whl

say "the wheel in an empty environment"
empty_environment
"$work/try/bin/python" -m pip install --quiet dist/*.whl
try_it

say "what they hold"
"$VENV/bin/python" scripts/check_wheel.py dist

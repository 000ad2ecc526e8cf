#!/usr/bin/env bash
# Builds the package for this machine's GPU and runs every test that needs one. Fetches nothing: it expects nvcc, CMake,
# Ninja, a C++20 compiler, and in python3 scikit-build-core, nanobind, pytest, hypothesis, ml_dtypes, PyTorch, CuPy, JAX.
#   scripts/gpu_check.sh [STEP...]   of: build wheel tests check sanitize speed; all of them where none is named
# Highway: installed, or below the directory HWY_DIR (include/hwy/highway.h and lib/libhwy.so.1).
# PYTHON, JOBS, BUILD (build/gpu) and TG_CUDA_ARCHITECTURES (this GPU's) may be set too. PYTEST_ARGS goes to pytest.
source "$(dirname "$0")/common.sh"

PYTHON="${PYTHON:-python3}"
BUILD="$ROOT/${BUILD:-build/gpu}"
SITE="$BUILD/site"
mkdir -p "$BUILD"
export PYTHONPATH="$SITE${PYTHONPATH:+:$PYTHONPATH}"
export XLA_PYTHON_CLIENT_PREALLOCATE=false

compute="$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n1 | tr -d '. ')"
[ "$compute" = 90 ] && compute=90a
ARCHITECTURES="${TG_CUDA_ARCHITECTURES:-$compute}"

highway=()
if [ -n "${HWY_DIR:-}" ]; then
  highway=("-Ccmake.define.TG_HWY_INCLUDE=$HWY_DIR/include" "-Ccmake.define.TG_HWY_LIBRARY=$HWY_DIR/lib/libhwy.so.1")
  export LD_LIBRARY_PATH="$HWY_DIR/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi

failed=()
# Runs a step, says how long it took, goes on after a failure.
step() {
  local begin=$SECONDS status
  say "$1"
  set +e
  (set -e && "$1")
  status=$?
  set -e
  [ "$status" = 0 ] || failed+=("$1")
  echo "-- $1: $((SECONDS - begin)) s, status $status"
}

build() {
  rm -rf "$SITE" "$BUILD/wheel"
  "$PYTHON" -m pip wheel --quiet --no-index --no-build-isolation --no-deps -w "$BUILD/wheel" \
    "-Cbuild-dir=$BUILD/cmake" -Ccmake.define.TG_BUILD_CUDA=ON "-Ccmake.define.TG_CUDA_ARCHITECTURES=$ARCHITECTURES" \
    -Ccmake.define.TG_BUILD_CUDA_CHECK=ON "-Ccmake.define.TG_INSTANCES=${TG_INSTANCES:-all}" "${highway[@]}" .
  "$PYTHON" -m pip install --quiet --no-index --no-deps --target "$SITE" "$BUILD"/wheel/*.whl
}

# What the wheel holds, and that it does without a GPU and without a driver's help.
wheel() {
  "$PYTHON" -m zipfile -l "$(echo "$BUILD"/wheel/*.whl)" | grep -E '\.so'
  "$PYTHON" -m zipfile -l "$(echo "$BUILD"/wheel/*.whl)" | grep -q 'tropical_gemm/libtropical_gemm_cuda.so'
  cd /
  CUDA_VISIBLE_DEVICES= "$PYTHON" -c '
import tropical_gemm as tg
cuda = tg.info()["cuda"]
print("no device:", cuda["problem"])
assert cuda["built"] and not tg.cuda_available() and cuda["problem"]'
  "$PYTHON" -c '
import tropical_gemm as tg
print(tg.info()["cuda"])
assert tg.cuda_available()'
  # In either order: both bring a C++ runtime.
  "$PYTHON" -c 'import tropical_gemm, torch; tropical_gemm.matmul(torch.ones(2, 2), torch.ones(2, 2))'
  "$PYTHON" -c 'import torch, tropical_gemm; tropical_gemm.matmul(torch.ones(2, 2), torch.ones(2, 2))'
}

tests() { "$PYTHON" -m pytest -p no:cacheprovider -rs ${PYTEST_ARGS:---durations=5} python/tests; }

check() {
  "$BUILD/cmake/tests/cuda/cuda_check" "$SITE/tropical_gemm/libtropical_gemm_cuda.so" --seconds "${CHECK_SECONDS:-30}"
  "$BUILD/cmake/tests/cuda/filter_check" "$SITE/tropical_gemm/libtropical_gemm_cuda.so"
  "$BUILD/cmake/tests/cuda/closure_check" "$SITE/tropical_gemm/libtropical_gemm_cuda.so"
  # Its blocks wait for each other: an error may show as a hang.
  timeout 300 "$BUILD/cmake/tests/cuda/viterbi_check" "$SITE/tropical_gemm/libtropical_gemm_cuda.so"
}

# Every tool over every C++ check, and memcheck over the Python tests that meet other libraries' memory. Each may take
# SANITIZE_LIMIT seconds: a sanitizer can turn blocks that wait for each other into a hang.
sanitize() {
  local tool check failures=0
  sanitized() {
    echo "-- $*"
    timeout "${SANITIZE_LIMIT:-600}" compute-sanitizer --error-exitcode 9 --print-limit 5 "$@" ||
      { echo "-- status $?" && failures=$((failures + 1)); }
  }
  for tool in memcheck racecheck initcheck synccheck; do
    for check in cuda_check viterbi_check; do
      sanitized --tool "$tool" "$BUILD/cmake/tests/cuda/$check" "$SITE/tropical_gemm/libtropical_gemm_cuda.so" \
        --seconds "${SANITIZE_SECONDS:-10}"
    done
    for check in filter_check closure_check; do
      sanitized --tool "$tool" "$BUILD/cmake/tests/cuda/$check" "$SITE/tropical_gemm/libtropical_gemm_cuda.so"
    done
  done
  for check in arrays out permute count; do
    sanitized --tool memcheck --target-processes all \
      "$PYTHON" -m pytest -q -p no:cacheprovider "python/tests/test_cuda_$check.py"
  done
  [ "$failures" = 0 ]
}

# Host time of a call, beside torch.mm's in the same process.
speed() { "$PYTHON" benchmarks/python/overhead_cuda.py; }

steps=("$@")
[ "${#steps[@]}" = 0 ] && steps=(build wheel tests check sanitize speed)
for name in "${steps[@]}"; do
  case "$name" in
    build | wheel | tests | check | sanitize | speed) step "$name" ;;
    *) echo "gpu_check.sh: unknown step '$name'" >&2 && exit 2 ;;
  esac
done
[ "${#failed[@]}" = 0 ] || { echo "gpu_check.sh: failed: ${failed[*]}" >&2 && exit 1; }
say "all well"

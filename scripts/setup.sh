#!/usr/bin/env bash
# Installs what a step needs: system packages by apt, Python packages into .venv. Quick when all is there.
#   scripts/setup.sh build    compilers, CMake, Ninja, Highway, the environment, the build's Python packages
#   scripts/setup.sh demo     build + what the examples import
#   scripts/setup.sh dev      build + GoogleTest + python/requirements-dev.txt
#   scripts/setup.sh docs     dev + what makes the pages
#   scripts/setup.sh wheel    build + what checks a wheel
#   scripts/setup.sh bench    dev + Google Benchmark
#   scripts/setup.sh lint     build + clang, clang-format, clang-tidy + python/requirements-dev.txt
#   scripts/setup.sh cuda     build + nvcc from PyPI, where the system has none
#   scripts/setup.sh neon     build + GoogleTest's source, a cross compiler for 64-bit ARM and an emulator
#   scripts/setup.sh sanitize build + GoogleTest + clang, its sanitizers and its OpenMP run-time
source "$(dirname "$0")/common.sh"

step="${1:-dev}"
packages=(g++ cmake ninja-build make libhwy-dev)
requirements=()
case "$step" in
  build) ;;
  demo) requirements=(examples/requirements.txt) ;;
  dev) packages+=(libgtest-dev) requirements=(python/requirements-dev.txt) ;;
  docs) packages+=(libgtest-dev) requirements=(python/requirements-dev.txt docs/requirements.txt) ;;
  wheel) packages+=(binutils) requirements=(scripts/wheel-requirements.txt) ;;
  bench) packages+=(libgtest-dev libbenchmark-dev) requirements=(python/requirements-dev.txt) ;;
  # clang-tidy reads the commands of a clang build, and omp.h from libomp-dev.
  lint) packages+=(clang clang-format clang-tidy libomp-dev) requirements=(python/requirements-dev.txt) ;;
  cuda) have nvcc || requirements=(scripts/cuda-requirements.txt) ;;
  sanitize) packages+=(libgtest-dev clang libclang-rt-dev llvm libomp-dev) ;;
  neon) packages+=(googletest g++-aarch64-linux-gnu qemu-user) ;;
  *) echo "setup.sh: unknown step '$step'" >&2 && exit 2 ;;
esac

python_complete() {
  python3 -c '
import ensurepip, os, sysconfig, venv
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))' 2>/dev/null
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  else
    sudo "$@"
  fi
}

may_install() {
  have apt-get || return 1
  [ "$(id -u)" = 0 ] && return 0
  have sudo && { [ -t 0 ] || sudo -n true 2>/dev/null; }
}

install_system_packages() {
  local missing=() package
  python_complete || packages+=(python3 python3-dev python3-venv)
  if ! have dpkg-query; then
    echo "setup.sh: this is no Debian system; these packages or their like are needed: ${packages[*]}" >&2
    return
  fi
  for package in "${packages[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ "${#missing[@]}" = 0 ] && return
  if ! may_install; then
    echo "setup.sh: not installed, and no right to install them: ${missing[*]}; going on without" >&2
    return
  fi
  say "apt-get install ${missing[*]}"
  as_root apt-get -qq -o DPkg::Lock::Timeout=300 update
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 \
    install --no-install-recommends "${missing[@]}" >/dev/null
}

check_tools() {
  local tool
  for tool in c++ ninja python3; do
    have "$tool" || { echo "setup.sh: '$tool' is missing" >&2 && exit 1; }
  done
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    { echo "setup.sh: Python 3.10 or newer is needed, this is $(python3 --version)" >&2 && exit 1; }
}

# The packages named by pyproject.toml's build-system, so that builds need no isolated environment and stay incremental.
build_requirements() {
  "$VENV/bin/python" -c '
try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib
with open("pyproject.toml", "rb") as file:
    print("\n".join(tomllib.load(file)["build-system"]["requires"]))'
}

install_python_packages() {
  [ -x "$VENV/bin/python" ] || { say "python3 -m venv .venv" && python3 -m venv "$VENV"; }
  local wanted stamp="$VENV/.installed-$step" want_cmake=()
  # The environment's CMake serves where the system has none or an old one.
  cmake_recent || want_cmake=("cmake>=3.25")
  wanted="$(build_requirements; printf '%s\n' "${want_cmake[@]}")"
  local key
  key="$({ echo "$wanted"; [ "${#requirements[@]}" = 0 ] || cat "${requirements[@]}"; } | sha256sum)"
  [ "$(cat "$stamp" 2>/dev/null)" = "$key" ] && return
  say "pip install into .venv ($step)"
  echo "$wanted" >"$VENV/build-requirements.txt"
  "$VENV/bin/python" -m pip install --quiet -r "$VENV/build-requirements.txt" "${requirements[@]/#/-r}"
  echo "$key" >"$stamp"
}

cmake_recent() {
  local version
  version="$(cmake --version 2>/dev/null | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')"
  [ "$(printf '%s\n' 3.25 "${version:-0}" | sort -V | head -n1)" = 3.25 ]
}

install_system_packages
check_tools
install_python_packages

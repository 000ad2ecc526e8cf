#!/usr/bin/env bash
# Builds the C++ tests for 64-bit ARM and runs them by an emulator: what NEON computes. Debian or its like only; takes
# some minutes, for few kernels are built and the emulator is slow.
source "$(dirname "$0")/common.sh"

scripts/setup.sh neon
sysroot="$ROOT/build/neon-sysroot"
if [ ! -e "$sysroot/usr/include/hwy/highway.h" ]; then
  say "neon: Highway for ARM, from the lists of that architecture, which this system need not have"
  mkdir -p "$sysroot/apt/lists/partial" "$sysroot/apt/archives/partial"
  (
    cd "$sysroot/apt"
    apt_for_arm() {
      apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root \
        -o Dir::State::lists="$sysroot/apt/lists" -o Dir::Cache="$sysroot/apt" "$@"
    }
    apt_for_arm update
    apt_for_arm download libhwy-dev libhwy1
    for package in ./*.deb; do dpkg -x "$package" "$sysroot"; done
  )
fi
say "neon: build"
cmake --preset neon
cmake --build --preset neon
say "neon: tests"
ctest --preset neon --parallel "$JOBS"

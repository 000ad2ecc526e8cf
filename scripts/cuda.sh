#!/usr/bin/env bash
# Compiles the CUDA library for two architectures with few kernels, so that neither rots. Needs no GPU.
source "$(dirname "$0")/common.sh"

scripts/setup.sh cuda
if ! have nvcc; then
  CUDACXX="$(echo "$VENV"/lib/python3*/site-packages/nvidia/cu13/bin/nvcc)"
  export CUDACXX
fi
say "CUDA library"
cmake --preset cuda
cmake --build --preset cuda
ctest --preset cuda

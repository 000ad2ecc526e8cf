#!/usr/bin/env bash
# Formats C++ and Python sources; with --check, only says what would change.
source "$(dirname "$0")/common.sh"

mapfile -t sources < <(git ls-files --cached --others --exclude-standard -- '*.h' '*.cpp' '*.c' '*.cu' '*.cuh')
if [ "${1:-}" = --check ]; then
  clang-format --dry-run -Werror "${sources[@]}"
  ruff format --check python benchmarks examples scripts docs/conf.py
else
  clang-format -i "${sources[@]}"
  ruff format python benchmarks examples scripts docs/conf.py
fi

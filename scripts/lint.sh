#!/usr/bin/env bash
# Format and lint checks of C++ and Python sources. Changes nothing.
source "$(dirname "$0")/common.sh"

scripts/setup.sh lint
say "clang-format, ruff format"
scripts/format.sh --check
say "ruff check"
ruff check python benchmarks examples scripts docs/conf.py
say "mypy"
mypy
say "workflows and issue forms"
check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
say "clang-tidy"
cmake --preset lint >/dev/null
# What the compile commands know: without the sources that need CUDA's headers.
mapfile -t sources < <(git ls-files -- 'src/*.cpp' | while read -r file; do
  ! grep -q "\"file\": \"$ROOT/$file\"" build/lint/compile_commands.json || echo "$file"
done)
printf '%s\n' "${sources[@]}" | xargs -n1 -P "$JOBS" clang-tidy --quiet -p build/lint

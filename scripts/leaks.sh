#!/usr/bin/env bash
# Calls in great number, after which the process must use as much memory as before.
#   scripts/leaks.sh [CALLS]    a million
source "$(dirname "$0")/common.sh"

scripts/setup.sh dev
scripts/install_package.sh
say "leaks"
python python/tests/leaks.py --calls "${1:-1000000}"

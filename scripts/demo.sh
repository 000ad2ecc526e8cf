#!/usr/bin/env bash
# From a fresh clone to the demo: geodesic distances over handwritten digits.
source "$(dirname "$0")/common.sh"

scripts/setup.sh demo
scripts/install_package.sh
say "examples/geodesic_digits.py"
python examples/geodesic_digits.py --output geodesic_digits.png

#!/usr/bin/env bash
# The pages in docs/ and the API from the docstrings, as one site. A warning is an error.
source "$(dirname "$0")/common.sh"

scripts/setup.sh docs
scripts/install_package.sh
say "build/docs/index.html"
python -m sphinx --fresh-env --fail-on-warning --keep-going --quiet --builder html docs build/docs

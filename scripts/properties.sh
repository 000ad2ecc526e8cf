#!/usr/bin/env bash
# Looks for what the tests of random cases do not hold for: all of them, with new cases in great number.
#   scripts/properties.sh [MINUTES [PYTEST OPTIONS]]    again and again for that long; once if not given
# A case that fails is kept in .hypothesis and tried first the next time; once mended, it belongs into a test.
source "$(dirname "$0")/common.sh"

minutes="${1:-0}"
scripts/setup.sh dev
scripts/install_package.sh
end=$((SECONDS + 60 * minutes))
while
  say "properties: $((SECONDS < end ? end - SECONDS : 0)) seconds left"
  python -m pytest -q -m hypothesis --hypothesis-profile=search "${@:2}" python/tests
  [ "$SECONDS" -lt "$end" ]
do :; done

#!/usr/bin/env bash
# From a fresh clone to all tests: C and C++ (ctest), the installed C++ package, Python (pytest), examples that train.
source "$(dirname "$0")/common.sh"

scripts/setup.sh dev
scripts/install_package.sh --tests
say "C and C++ tests"
ctest --test-dir build/python --output-on-failure
say "products with the filter wherever it can be proved, whose sizes are otherwise too small for it"
TROPICAL_GEMM_FILTER=always ctest --test-dir build/python --output-on-failure -R 'Matmul|Guarded|Fold|Typed'
TROPICAL_GEMM_FILTER=always python -m pytest -q python/tests/test_matmul.py python/tests/test_out.py \
  python/tests/test_meaning.py python/tests/test_numpy.py
say "C++ package, as another project uses it"
scripts/example_cpp.sh
say "Python tests"
python -m pytest python/tests
say "examples, with few steps"
mkdir -p build/examples
python examples/train_tropical.py --device cpu --steps 30 --output build/examples/train_tropical.png
python examples/tropical_attention.py --device cpu --steps 30
python examples/connected_digits.py --strips 20 --output build/examples/connected_digits.png
python examples/travel_times.py --side 5 --steps 30
python examples/ground_states.py --size 8 --output build/examples/ground_state.png

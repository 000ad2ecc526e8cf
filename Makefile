# Most targets are scripts in scripts/; every one of them sets up what it needs first.
.PHONY: help setup demo test lint format docs wheel bench cuda asan tsan fuzz properties leaks neon clean

help:  ## this list
	@sed -n 's/^\([a-z]*\):  ## /\1\t/p' Makefile | expand -t 12

setup:  ## install what development needs: system packages, and Python packages into .venv
	scripts/setup.sh dev

demo:  ## build, install into .venv, and run the example on handwritten digits
	scripts/demo.sh

test:  ## build and run all C, C++ and Python tests
	scripts/test.sh

lint:  ## check formats, lint C++ and Python, check types
	scripts/lint.sh

format:  ## format C++ and Python sources
	scripts/setup.sh lint
	scripts/format.sh

docs:  ## make the pages and the API one site, build/docs/index.html; warnings are errors
	scripts/docs.sh

wheel:  ## build sdist and wheel into dist, check what they hold, try them in empty environments
	scripts/wheel.sh

bench:  ## build and run the C++ benchmarks
	scripts/bench.sh

cuda:  ## compile the CUDA library (no GPU needed)
	scripts/cuda.sh

asan:  ## C++ tests under the address and undefined-behaviour sanitizers
	scripts/sanitize.sh asan

tsan:  ## C++ tests under the thread sanitizer
	scripts/sanitize.sh tsan

fuzz:  ## hostile arguments for a minute, under sanitizers, and damaged files for another
	scripts/fuzz.sh

properties:  ## tests of random cases, with new ones in great number
	scripts/properties.sh

leaks:  ## a million calls, after which the process uses as much memory as before
	scripts/leaks.sh

neon:  ## C++ tests on 64-bit ARM, by a cross compiler and an emulator
	scripts/neon.sh

clean:  ## remove builds and .venv
	rm -rf build dist .venv

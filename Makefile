# One entry point for people and for CI. `make demo` and `make test` do all the set-up themselves.
#
# Set-up is a chain of stamp files in .venv: the virtual environment, the native module, one stamp per extra. Each is
# made again only when what it depends on changes, so a second `make test` goes straight to the tests.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUST_SOURCES := $(shell find rust -type f -not -name '*.pyc')
INSTALL := $(BIN)/uv pip install --quiet --python
NATIVE_SOURCES := Cargo.toml Cargo.lock pyproject.toml $(RUST_SOURCES)

# The statistical tests draw so many samples each. With 10^7 a probability of 1/2 that is off by 0.002 is found with a
# power of 1 - 1e-9, at a false-alarm rate of 1e-9; with 10^8 (and 6 GiB of memory) one that is off by 0.0006.
SAMPLES ?= 10000000
WORKERS ?= auto

CLIENTS ?= c go java web

# Where `make ffi` installs the C library.
PREFIX ?= target/ffi

# How long `make fuzz` looks for new inputs of each target.
SECONDS ?= 60

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Without it uv fetches an interpreter of its own where PYTHON does not start.
export UV_PYTHON_DOWNLOADS := never
# uv compiles nothing when it installs, so that each process would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE
export PYO3_PYTHON := $(abspath $(BIN)/python)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL: # cargo and pip use all cores by themselves, and interleaved output helps nobody
.PHONY: help demo test test-rust test-python test-engines test-aarch64 statistical constant-time lint bench bench-rust
.PHONY: prove miri instructions fuzz docs paper wheel crate clean check-tools test-cli test-tools test-long
.PHONY: bench-oracles notebooks figures release-check everything check-python outputs
.PHONY: test-integrations test-all-integrations build-clients test-clients ffi header web

help: ## show this list
	@echo "usage: make TARGET [PYTHON=python3.12]"
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(VENV)/.native $(VENV)/.extra-all ## run the main job: Adult occupations, local against central; picture in demo/
	$(BIN)/dpnoise demo

# Always the same packages, so that the features of what they depend on are the same, and nothing is compiled twice.
RUST_TESTS := cargo test --package dpnoise-kernels --package dpnoise-core --locked

# The native module is optimised as a whole, on one core: the Rust tests are compiled on the others meanwhile.
test: | check-tools ## run the tests of the core and its API but the long ones
	@nice $(RUST_TESTS) --no-run --quiet & $(MAKE) $(VENV)/.extra-test && wait $$!
	@$(MAKE) test-rust test-python

test-rust: | check-tools ## run the Rust tests, documentation examples included
	$(RUST_TESTS)
	@echo "The binding crate (rust/python) has no tests of its own: the Python tests call it."

# The workers keep all cores busy: threads of NumPy's matrix products would only wait for each other.
test-python test-cli test-long statistical: export OPENBLAS_NUM_THREADS := 1

test-python: $(VENV)/.native $(VENV)/.extra-test ## run the Python tests but the long ones, on all cores
	$(BIN)/python -m pytest -m 'not long' --ignore=tests/cli --ignore=tests/engines --numprocesses auto --dist worksteal

test-cli: $(VENV)/.native $(VENV)/.extra-test ## test the command line
	$(BIN)/python -m pytest tests/cli --numprocesses auto --dist worksteal

test-long: $(VENV)/.native $(VENV)/.extra-test ## run the long tests but the examples, with as many samples as find the planted faults
	$(BIN)/python -m pytest -m long tests/api tests/statistical --numprocesses auto --dist worksteal

test-engines: $(VENV)/.native $(VENV)/.extra-test-engines ## test counting with processes, Dask and Spark (needs Java 17)
	$(BIN)/python -m pytest tests/engines

INTEGRATIONS := $(patsubst integrations/%/Makefile,%,$(wildcard integrations/*/Makefile))

test-integrations: ## test the integrations, each in an environment of its own, but what takes 5 GB
	@set -e; for name in $(INTEGRATIONS); do $(MAKE) --no-print-directory -C integrations/$$name gate; done

test-all-integrations: ## test all integrations in full, with HOST_SAMPLES=250000 samples each, and measure them
	@set -e; for name in $(INTEGRATIONS); do $(MAKE) -C integrations/$$name test statistical bench; done

test-tools: $(VENV)/.extra-test ## test the tools (tools/*/tests), none of which uses dpnoise
	$(BIN)/python -m pytest tools

statistical: $(VENV)/.native $(VENV)/.extra-test ## run the long tests and the long forms of others, with SAMPLES=10000000 each, and kill ledgers
	DPNOISE_TEST_SAMPLES=$(SAMPLES) $(BIN)/python -m pytest tests/statistical \
		tests/vectors/test_gaussian.py tests/vectors/test_noise.py tests/vectors/test_selection.py \
		tests/api/test_any_input.py tests/security/test_hostile_input.py tests/security/test_ledger*.py \
		tests/security/test_subsample_and_aggregate_privacy.py \
		--numprocesses $(WORKERS) --dist worksteal --durations=5
	$(BIN)/python -m pytest -m long tests/api/test_audit.py tests/api/test_local_doubt.py tests/api/test_sgd.py tests/test_readme.py \
		clients/web/tests/test_browser_to_count.py --numprocesses auto --dist worksteal
	PROPTEST_CASES=2000 $(RUST_TESTS) --test all parameters::
	$(RUST_TESTS) --test all -- --ignored --nocapture
	$(MAKE) -C clients/c long

# Python's debugging allocators notice writes outside of objects. -X dev would not reach the workers of pytest-xdist.
everything: ## run what a release must pass: .ci/run, all integrations, benchmarks, and 10^8 samples (6 GiB of memory, hours)
	.ci/run
	PYTHONDEVMODE=1 $(MAKE) test-python
	$(MAKE) statistical SAMPLES=100000000 WORKERS=1
	$(BIN)/python -m pytest -m long clients/web/tests/test_collector.py --numprocesses auto
	$(MAKE) test-all-integrations HOST_SAMPLES=1000000
	$(MAKE) bench bench-oracles bench-rust instructions
	$(MAKE) fuzz SECONDS=600
	$(MAKE) prove FAULTS=--faults
	$(MAKE) miri
	$(MAKE) release-check

build-clients:
	@for client in $(CLIENTS); do $(MAKE) -C clients/$$client build || exit 1; done

test-clients: $(VENV)/.native $(VENV)/.extra-test ## test CLIENTS="c go java web", each with its tools, and the site with the playground
	@for client in $(CLIENTS); do $(MAKE) -C clients/$$client check || exit 1; done
	DPNOISE_TEST_CLIENTS="$(CLIENTS)" $(BIN)/python -m pytest -m 'not long' clients/shared $(CLIENTS:%=clients/%) \
		--numprocesses auto --dist loadfile

ffi: ## build the C library, FEATURES=client,collector,noise, and install it in PREFIX=target/ffi
	@$(MAKE) -C clients/c install PREFIX=$(abspath $(PREFIX))

header: ## write clients/c/dpnoise.h from the Rust sources beside it
	@$(MAKE) -C clients/c header

web: ## build the npm package for browsers and node in clients/web/dist (needs binaryen; PROTOCOLS="a b" for a small one)
	@$(MAKE) -C clients/web build

test-aarch64: | check-tools ## run the Rust unit tests and pinned outputs for aarch64, emulated (QEMU, a cross compiler)
	tools/test_aarch64.sh

prove: | check-tools ## check the proofs, and that their models agree with the code (Coq; QEMU and a cross compiler for NEON; FAULTS=--faults plants faults)
	$(PYTHON) proofs/prove.py $(FAULTS)

miri: | check-tools ## run every kernel once under Miri: portable, with AVX2, and some with AVX-512 (Rust's nightly toolchain; three minutes)
	tools/miri.sh

constant-time: | check-constant-time-tools ## check that time and addresses do not depend on secrets (valgrind, objdump; for NEON a cross compiler)
	$(PYTHON) tools/constant_time/check.py

lint: $(VENV)/.native $(VENV)/.extra-lint | check-lint-tools ## check format, lints, types, layers and Rust documentation
	cargo fmt --all --check
	cargo fmt --manifest-path clients/c/fuzz/Cargo.toml --check
	cargo metadata --format-version 1 --locked --manifest-path clients/c/fuzz/Cargo.toml > /dev/null
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy --workspace --all-targets --locked -- --cfg dpnoise_secrecy -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
	$(BIN)/python tools/layers/check.py
	$(BIN)/lint-imports --no-cache
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/ruff format --check --config docs/ruff.toml integrations/*/*.md
	$(BIN)/mypy python/dpnoise tests/structure/inferred_types.py
	$(BIN)/mypy --config-file integrations/mypy.ini integrations/*/src/dpnoise_*
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	$(BIN)/python docs/site/page_types.py
	$(BIN)/python -m mypy.stubtest dpnoise._native --mypy-config-file pyproject.toml

bench: $(VENV)/.native $(VENV)/.extra-bench ## run all benchmarks, and keep their record for the site (15 minutes)
	$(BIN)/python -m pytest benches --benchmark-quiet --quiet --record

bench-oracles: $(VENV)/.native $(VENV)/.extra-bench ## measure frequency oracles at published settings, and keep their record (10 minutes)
	$(BIN)/python -m benches.oracles

bench-rust: | check-tools ## time the parts of the Rust crate
	cargo bench --package dpnoise-benches --locked

instructions: | check-tools ## compare instructions per sample with tools/instructions/record.json: 2 % apart fails (RECORD=--record keeps them; valgrind, QEMU)
	$(PYTHON) tools/instructions/count.py $(RECORD)

fuzz: | check-tools ## fuzz the C interface and what reads bytes in Rust, for SECONDS=60 seconds each, after planted faults (Linux, C++ compiler)
	$(PYTHON) clients/c/fuzz/fuzz.py $(SECONDS)

docs: web $(VENV)/.group-docs ## build the documentation site in site/, warnings as errors (with binaryen also the playground)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

paper: $(VENV)/.native $(VENV)/.group-paper ## check the paper about dpnoise, and build it in dist/paper.pdf
	$(BIN)/python docs/site/paper.py dist/paper.pdf

outputs: $(VENV)/.native $(VENV)/.extra-test-engines ## run the code of the pages, and show what it prints (needs Java 17)
	PYSPARK_PYTHON=$(abspath $(BIN)/python) $(BIN)/python docs/site/page_outputs.py

figures: ## print the figures of the layout: places of an integration, files of a noise, lines of each tenant (Python 3.11)
	$(PYTHON) tools/figures/figures.py

notebooks: ## write the tutorial and the guide to tables as Jupyter notebooks, in dist/notebooks
	$(PYTHON) docs/site/notebooks.py dist/notebooks

wheel: $(BIN)/maturin | check-tools ## build the wheel for this machine in dist/
	$(BIN)/maturin build --release --locked --out dist

release-check: $(VENV)/.release ## build what a release consists of in dist/, and try it (Linux; half an hour)
	. $(BIN)/activate && python tools/release/check.py

# Cargo takes a registry's crate of one version to be always the same. It would build dpnoise-core against what an earlier
# run unpacked of dpnoise-kernels (in a folder that begins with a hyphen; those of real registries begin with a host) or built.
crate: | check-tools ## package the Rust crates as they would be published, and build that
	rm -rf target/crate "$${CARGO_HOME:-$$HOME/.cargo}"/registry/src/-*/dpnoise-*
	CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_DEV_OPT_LEVEL=0 cargo publish --dry-run --package dpnoise-kernels --package dpnoise-core --package dpnoise-prio --locked --allow-dirty \
		--target-dir target/crate

clean: ## remove everything that was built, .venv too
	rm -rf $(VENV) integrations/*/.venv target dist site demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	rm -f python/dpnoise/_native.*.so python/dpnoise/_native*.pyd
	find benches clients docs examples integrations proofs python tests tools -name __pycache__ -prune -exec rm -rf {} +

check-tools:
	@tools/check_tools.sh $(PYTHON)

check-python:
	@tools/check_tools.sh $(PYTHON) python

check-%-tools:
	@tools/check_tools.sh $(PYTHON) $*

$(BIN)/python: | check-python
	$(PYTHON) -m venv $(VENV)

# uv makes an environment in seconds, where pip takes up to two minutes.
$(BIN)/maturin $(BIN)/uv: | $(BIN)/python
	$(BIN)/python -m pip install --quiet 'maturin>=1.16,<2' 'uv>=0.13,<0.14'

PYTHON_SOURCES := $(shell find python/dpnoise -type f -not -name '*.pyc' -not -name '*.so')

# The wheel that integrations are tested with. What `maturin develop` compiled is not compiled again.
target/wheel_for_tests/.dpnoise: $(NATIVE_SOURCES) $(PYTHON_SOURCES) | check-tools $(BIN)/maturin
	rm -f target/wheel_for_tests/dpnoise-*.whl
	$(BIN)/maturin build --release --locked --out target/wheel_for_tests
	@touch $@

$(VENV)/.native: $(NATIVE_SOURCES) | check-tools $(BIN)/maturin $(BIN)/uv
	. $(BIN)/activate && maturin develop --uv --release --locked
	@touch $@

# dpnoise itself is installed by now, so uv resolves the extra from its metadata and fetches only what it names.
$(VENV)/.extra-%: pyproject.toml | $(VENV)/.native
	$(INSTALL) $(BIN)/python 'dpnoise[$*]'
	@touch $@

$(VENV)/.release: pyproject.toml tools/release/requirements.txt | $(BIN)/uv
	$(INSTALL) $(BIN)/python --group release --constraint tools/release/requirements.txt
	@touch $@

# The site is built from sources alone, so this neither compiles nor installs dpnoise.
$(VENV)/.group-%: pyproject.toml | $(BIN)/uv
	$(INSTALL) $(BIN)/python --group $*
	@touch $@


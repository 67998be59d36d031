# What can be done with one integration: `make -C integrations/<host> test`. It needs what the root's `make` needs.
#
# dpnoise is installed from its wheel, which the root's Makefile builds once for all.

PYTHON ?= python3
ROOT := $(abspath $(dir $(lastword $(MAKEFILE_LIST)))/..)
NAME := $(notdir $(CURDIR))
BIN := .venv/bin
UV := $(ROOT)/.venv/bin/uv
WHEEL := $(ROOT)/target/wheel_for_tests/.dpnoise
# Tests see what is installed, not folders named like the hosts, so the folder of integrations is on no path.
PYTEST := $(BIN)/python -m pytest -c $(ROOT)/integrations/tests.ini --rootdir . --confcutdir $(ROOT)/integrations
SHOWN := $(ROOT)/integrations/shared/test_shown.py

# As many samples of the host and of ours, most of which draw one at a time.
HOST_SAMPLES ?= 250000

# As in the root's Makefile, which says why.
export UV_PYTHON_DOWNLOADS := never
export OPENBLAS_NUM_THREADS := 1
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help test gate statistical host-suite bench outputs wheel clean FORCE

help: ## show this list
	@echo "usage: make -C integrations/$(NAME) TARGET [PYTHON=python3.12]"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(ROOT)/integrations/integration.mk | expand -t 16

test: .venv/.installed ## run the tests, the code of the pages and the examples of docstrings
	$(PYTEST) -m 'not long' tests $(SHOWN)

# The Makefile of an integration says in BY_HAND why its tests are not for every change, or not for this machine.
REQUIRED := $(shell sed -n 's/^requires-python = "\([^"]*\)".*/\1/p' pyproject.toml)
BY_HAND ?= $(shell $(PYTHON) -c 'import re, sys; \
	first, end = (re.findall(r"3\.(\d+)", "$(REQUIRED)") + ["99"])[:2]; \
	int(first) <= sys.version_info[1] < int(end) or print("it needs Python $(REQUIRED)")')
gate:
	@$(if $(BY_HAND),echo "SKIPPED integrations/$(NAME): $(BY_HAND). Run make -C integrations/$(NAME) test",$(MAKE) test)

statistical: .venv/.installed ## compare HOST_SAMPLES=250000 samples with the host's, and run the examples
	DPNOISE_TEST_SAMPLES=$(HOST_SAMPLES) $(PYTEST) tests/test_distributions*.py
	$(PYTEST) -m long tests $(SHOWN)

host-suite: .venv/.installed ## run the host's own tests of CHECKOUT=FOLDER, plain and with ours (HOST=PACKAGE where there are several)
	$(BIN)/python ../host_suite.py $(abspath $(CHECKOUT)) "$(HOST)" $(ARGUMENTS)

bench: .venv/.bench ## measure beside the host, and keep record.json
	cd $(ROOT) && PYTHONPATH=. $(CURDIR)/$(BIN)/python -m pytest -p benches.conftest $(CURDIR)/bench_*.py \
		--benchmark-quiet --quiet --record=$(NAME)

outputs: .venv/.installed ## run the code of the pages, and show what it prints
	$(BIN)/python $(ROOT)/docs/site/page_outputs.py $(wildcard *.md)

wheel: | $(UV) ## build the wheel and the source distribution in dist/ of the root
	$(UV) build --quiet --no-create-gitignore --out-dir $(ROOT)/dist .

clean: ## remove the environment
	rm -rf .venv .pytest_cache

# The root's Makefile decides whether these are out of date.
$(WHEEL) $(UV): FORCE
	@$(MAKE) --no-print-directory -C $(ROOT) $(patsubst $(ROOT)/%,%,$@)
FORCE:

# The wheel by its path: an index may have another package of that name.
.venv/.installed: pyproject.toml $(WHEEL) | $(UV)
	@test -x $(BIN)/python || $(UV) venv --quiet --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" .venv
	$(UV) pip install --quiet --python $(BIN)/python --reinstall-package dpnoise $(dir $(WHEEL))dpnoise-*.whl \
		--group test --editable .
	@touch $@

.venv/.bench: .venv/.installed
	$(UV) pip install --quiet --python $(BIN)/python --group bench
	@touch $@

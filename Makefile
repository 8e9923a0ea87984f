# `make help` lists what there is.
PYTHON ?= python3
PY := .venv/bin/python
CODE := $(wildcard src tests benchmarks examples)
PYTEST := $(PY) -m pytest -n auto --dist worksteal

export PYTHON

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast test-long compat bench lint format lock clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/.installed  ## make .venv, with all that the other targets need
	@:

.venv/.installed: pyproject.toml requirements-dev.lock scripts/setup.sh scripts/system.sh
	@scripts/setup.sh

demo: setup  ## see bucketq at work
	@$(PY) examples/demo.py $(ARGS)

test: lint  ## all checks: linters, tests, and the core tests on other installed Pythons
	$(PYTEST) $(ARGS)
	@scripts/compat.sh

test-fast: setup  ## the tests alone; ARGS='-k name' picks some
	$(PYTEST) $(ARGS)

test-long: setup  ## the long simulations, at length
	HYPOTHESIS_PROFILE=long $(PYTEST) -m long -o faulthandler_timeout=0 $(ARGS)

compat: setup  ## the core tests on other installed Pythons
	@scripts/compat.sh

bench: setup  ## the benchmarks
	@$(PY) -m benchmarks $(ARGS)

lint: setup  ## ruff, mypy and the import contracts
	$(PY) -m ruff check $(CODE)
	$(PY) -m ruff format --check $(CODE)
	$(PY) -m mypy $(CODE)
	.venv/bin/lint-imports --no-logo

format: setup  ## let ruff put the code in order
	$(PY) -m ruff check --fix $(CODE)
	$(PY) -m ruff format $(CODE)

lock:  ## renew requirements-dev.lock; UPGRADE=1 takes the newest versions
	@scripts/lock.sh

clean:  ## remove all that make made, environments too
	rm -rf .venv .venv-* build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

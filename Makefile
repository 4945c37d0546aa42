# `make` alone lists the targets. Each does its own set-up from a bare python3 (3.11 or newer).

PY := .venv/bin/python
STAMP := .venv/.installed
T ?=
WORKERS ?= 2
N ?= 7
TESTS = $(if $(T),tests/$(T),tests)

# Tests start real trainers; without this each of them starts a thread per core.
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help venv test test-long lint types imports demo bench bench-peers clean

help:  ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(STAMP)  ## make .venv with everything in constraints.txt

$(STAMP): pyproject.toml constraints.txt .ci/venv
	@.ci/venv $(STAMP)

test: $(STAMP)  ## run the tests; T=core runs those below tests/core
	$(PY) -m pytest -n $(WORKERS) --dist loadfile $(TESTS)

test-long: $(STAMP)  ## run also the many-seed and exhaustive forms; ends with a summary table
	$(PY) -m pytest -n $(WORKERS) --dist loadfile -m "long or not long" $(TESTS)

lint: $(STAMP)  ## check style and format
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: $(STAMP)  ## check types
	$(PY) -m mypy

imports: $(STAMP)  ## check who may import whom
	.venv/bin/lint-imports

demo: $(STAMP)  ## train on two racks of processes, lose a node and a rack, finish
	.venv/bin/marin-sup demo

bench: $(STAMP)  ## measure, N=7 rounds; T=recovery, core, sync or overhead measures that alone
	$(PY) -m tests.bench --rounds $(N) $(T)

bench-peers: $(STAMP)  ## make .bench-venv (6 GB) with the launchers that `make bench` compares with
	$(PY) -m venv .bench-venv
	.bench-venv/bin/python -m pip install --quiet --disable-pip-version-check -r tests/bench/peers.txt

clean:  ## remove .venv, caches and runs of the demo
	rm -rf .venv .bench-venv build/bench .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache runs/demo runs/demo-*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

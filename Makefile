# Two commands do everything on a fresh machine with Python 3.11 and make:
#   make demo   sets up and runs the main job offline
#   make test   sets up and runs the fast tests, offline
# Setting up makes a virtual environment in .venv; only that may use the network.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# What a user's shell holds must not change what the tests or the demo show.
CLEAN := env $(foreach name,BASE_URL DATA_DIR CACHE_DIR JOBS OFFLINE RETRIES TIMEOUT ALLOW_HTTP,\
	-u CUDAREDIST_$(name))

.PHONY: help setup demo test test-slow test-real test-network lint types imports schemas \
	docs data benchmark toolkit fuzz clean

help:
	@sed -n '2,4s/^# *//p' Makefile

setup: $(VENV)/.done

$(VENV)/.done: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $@

demo: setup
	$(CLEAN) BIN=$(BIN) sh examples/demo.sh

test: setup
	$(CLEAN) $(BIN)/python -m pytest -n auto -m "not slow and not network and not real" \
		--cov --cov-report=term-missing:skip-covered

test-slow: setup
	$(CLEAN) $(BIN)/python -m pytest -n 2 --dist loadfile -m slow --timeout 900

test-real: setup
	$(CLEAN) $(BIN)/python -m pytest -m "real and not network"

test-network: setup
	$(CLEAN) $(BIN)/python -m pytest -n 2 --dist loadfile -m network --timeout 900

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports

# Make the shipped JSON Schemas anew from the models; a test fails where they differ.
schemas: setup
	$(BIN)/python -m tests.support.schemas

# Make the reference pages anew from commands and schemas; a test fails where they differ.
docs: setup
	$(BIN)/python -m tests.support.reference

# Make the shipped data anew, all of it through pip: some 80 GB of wheels, of which nothing is kept.
WHEELS = --channel wheels --data-dir data
RELEASES = 11.8.0 12.0.1 12.1.1 12.2.0 12.2.1 12.2.2 12.3.2 12.4.1 12.5.1 12.6.3 12.8.2 12.9.1 12.9.2 \
	13.0.2 13.0.3 13.1.2 13.2.2 13.3.1 13.4.3 13.5.0
data: setup
	$(BIN)/cudaredist download-manifests $(WHEELS) --redist cuda $(addprefix --version ,$(RELEASES))
	$(BIN)/cudaredist download-manifests $(WHEELS) --redist cudnn --redist cudss --redist cusparselt \
		--redist cutensor --redist nccl --redist nvshmem
	$(BIN)/cudaredist download-manifests $(WHEELS) --redist cusparselt \
		--version 0.6.3 --version 0.7.1 --version 0.8.1
	$(BIN)/cudaredist process-manifests $(WHEELS)
	$(BIN)/cudaredist update-nvcc-compat $(WHEELS) --accept-changed
	$(BIN)/cudaredist update-gpus $(WHEELS)

benchmark: setup
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/read_manifests.py
	$(BIN)/python benchmarks/fetch_manifests.py
	$(BIN)/python benchmarks/process_archives.py
	$(BIN)/python benchmarks/materialize.py
	$(BIN)/python benchmarks/second_run.py

# CUDA toolkits of two releases from the package index, and a program compiled with each; needs g++
# and some 150 MB for each.
toolkit: setup
	$(CLEAN) BIN=$(BIN) sh examples/toolkit.sh build/toolkit

# Coverage-guided fuzzing of every reader; `make fuzz SECONDS=1800` for a long run.
SECONDS ?= 15
FUZZERS := elf pe ar fatbin tar zip
fuzz: $(VENV)/.fuzz
	for reader in $(FUZZERS); do \
		$(BIN)/python fuzz/fuzz_$$reader.py -max_total_time=$(SECONDS) -verbosity=0 \
			-print_final_stats=1 || exit 1; \
	done

$(VENV)/.fuzz: $(VENV)/.done
	$(BIN)/python -m pip install --quiet --group fuzz
	touch $@

clean:
	rm -rf $(VENV) .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache dist

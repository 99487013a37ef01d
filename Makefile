# Two commands do everything on a fresh machine with Python 3.11 and make: make demo, make test.
# Setting up makes a virtual environment in .venv; only that, and what says so, uses the network.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# What a user's shell holds must not change what the tests or the demo show, nor have every process
# compile the program anew.
CLEAN := env -u PYTHONDONTWRITEBYTECODE $(foreach name,BASE_URL DATA_DIR CACHE_DIR JOBS OFFLINE RETRIES TIMEOUT ALLOW_HTTP,\
	-u CUDAREDIST_$(name))

.PHONY: help setup demo test coverage test-slow test-real test-network lint types imports count \
	schemas docs data benchmark toolkit fuzz clean

help:
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/make \1\t\2/p' Makefile | expand -t 20

setup: $(VENV)/.done  ## make the virtual environment; all others do it where needed

$(VENV)/.done: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $@

demo: setup  ## run the main job offline, on the data that is shipped
	$(CLEAN) BIN=$(BIN) sh examples/demo.sh

# Many tests wait for a server that lets them wait: two at once for each core.
FAST := -n $(shell expr 2 \* $$(nproc 2>/dev/null || echo 2)) -m "not slow and not network and not real"

test: setup  ## run the fast tests, offline
	$(CLEAN) $(BIN)/python -m pytest $(FAST)

# The same examples each time, so that two runs of one revision agree; `make test` looks for new ones.
coverage: setup  ## run the fast tests with fixed examples and measure what they reach
	$(CLEAN) $(BIN)/python -m pytest $(FAST) --hypothesis-profile ci \
		--cov --cov-report=term-missing:skip-covered

test-slow: setup  ## run the tests that kill, cut off and fill disks
	$(CLEAN) $(BIN)/python -m pytest -n 2 --dist loadfile -m slow

test-real: setup  ## run the tests on NVIDIA's real manifests, where they are beside the checkout
	$(CLEAN) $(BIN)/python -m pytest -m "real and not network"

test-network: setup  ## run the tests that need a package index
	$(CLEAN) $(BIN)/python -m pytest -n 2 --dist loadfile -m network

lint: setup  ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup  ## mypy
	$(BIN)/mypy

imports: setup  ## import-linter
	$(BIN)/lint-imports

count: setup  ## count lines of logic, name what exceeds a limit of length
	$(BIN)/python -m tools.count_logic

schemas: setup  ## make the shipped JSON Schemas anew from the models
	$(BIN)/python -m tools.schemas

docs: setup  ## make the reference pages anew from commands and schemas
	$(BIN)/python -m tools.reference

WHEELS = --channel wheels --data-dir data
RELEASES = 11.8.0 12.0.1 12.1.1 12.2.0 12.2.1 12.2.2 12.3.2 12.4.1 12.5.1 12.6.3 12.8.2 12.9.1 12.9.2 \
	13.0.2 13.0.3 13.1.2 13.2.2 13.3.1 13.4.3 13.5.0
data: setup  ## make the shipped data anew from wheels: some 80 GB of wheels, none of them kept
	$(BIN)/cudaredist download-manifests $(WHEELS) --redist cuda $(addprefix --version ,$(RELEASES))
	$(BIN)/cudaredist download-manifests $(WHEELS) --redist cudnn --redist cudss --redist cusparselt \
		--redist cutensor --redist nccl --redist nvshmem
	$(BIN)/cudaredist download-manifests $(WHEELS) --redist cusparselt \
		--version 0.6.3 --version 0.7.1 --version 0.8.1
	$(BIN)/cudaredist process-manifests $(WHEELS)
	$(BIN)/cudaredist update-nvcc-compat $(WHEELS) --accept-changed
	$(BIN)/cudaredist update-gpus $(WHEELS)

benchmark: setup  ## measure against limits and peers
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/read_manifests.py
	$(BIN)/python benchmarks/fetch_manifests.py
	$(BIN)/python benchmarks/check_wheels.py
	$(BIN)/python benchmarks/process_archives.py
	$(BIN)/python benchmarks/materialize.py
	$(BIN)/python benchmarks/second_run.py

toolkit: setup  ## lay out two toolkits and compile with each; needs g++ and 150 MB for each
	$(CLEAN) BIN=$(BIN) sh examples/toolkit.sh build/toolkit

SECONDS ?= 15
FUZZERS := elf pe ar fatbin tar zip
fuzz: $(VENV)/.fuzz  ## fuzz every reader; SECONDS=1800 for a long run
	for reader in $(FUZZERS); do \
		$(BIN)/python fuzz/fuzz_$$reader.py -max_total_time=$(SECONDS) -verbosity=0 \
			-print_final_stats=1 || exit 1; \
	done

$(VENV)/.fuzz: $(VENV)/.done
	$(BIN)/python -m pip install --quiet --group fuzz
	touch $@

clean:  ## remove what was made here
	rm -rf $(VENV) .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache dist

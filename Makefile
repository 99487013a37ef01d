# On a new machine with Python 3.11 and make, start with `make demo` or `make test`. Both create a
# virtual environment in .venv first. Only this step, and the targets that mention it, use the network.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# Remove variables of the user's shell that change the tests, demo or benchmarks, or make every
# process compile the program again.
CLEAN := env -u PYTHONDONTWRITEBYTECODE $(foreach name,BASE_URL DATA_DIR CACHE_DIR JOBS OFFLINE RETRIES TIMEOUT ALLOW_HTTP,\
	-u CUDAREDIST_$(name))

.PHONY: help setup demo test coverage test-slow test-real test-network test-nightly test-environments lint types \
	other-types imports count schemas docs picture man dist docs-site data benchmark toolkit fuzz \
	lowest machines nightly clean

help:
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/make \1\t\2/p' Makefile | expand -t 20

setup: $(VENV)/.done  ## create the virtual environment; other targets do this if needed

$(VENV)/.pip: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	touch $@

$(VENV)/.tool: $(VENV)/.pip
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.done: $(VENV)/.tool
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

# Without the tools for developers, which take minutes to install.
demo: $(VENV)/.tool  ## create a package set from 154 MB of wheels in build/demo (network)
	$(CLEAN) BIN=$(BIN) sh examples/demo.sh build/demo

# Some tests wait for a server or a program, so run one more than there are cores. Each worker imports
# all tests, which takes as long as hundreds of them.
FAST := -n $(shell expr 1 + $$(nproc 2>/dev/null || echo 2)) --dist worksteal \
	-m "not slow and not network and not real" tests/unit tests/acceptance tests/property

test: setup  ## run the fast tests, offline
	$(CLEAN) $(BIN)/python -m pytest $(FAST)

# The examples are fixed, so that two runs of a revision have equal results. `make test` generates new
# examples, and fewer of them.
coverage: setup  ## run the fast tests with fixed examples and measure coverage
	$(CLEAN) $(BIN)/python -m pytest $(FAST) --hypothesis-profile ci \
		--cov --cov-report=term-missing:skip-covered

test-slow: setup  ## run the tests with killed processes, network faults, full disks and all shipped data
	$(CLEAN) $(BIN)/python -m pytest -n 2 --dist worksteal -m "slow and not nightly"

test-real: setup  ## run the tests of NVIDIA's real manifests, if these are next to the checkout
	$(CLEAN) $(BIN)/python -m pytest -n 2 --dist worksteal -m "real and not network and not nightly"

test-network: setup  ## run the tests that require a package index (network)
	$(CLEAN) $(BIN)/python -m pytest -n 2 --dist loadfile -m "network and not nightly and not environments"

test-nightly: setup  ## run the tests that take minutes each (network)
	$(CLEAN) $(BIN)/python -m pytest -n 2 --dist loadfile -m nightly

test-environments: setup  ## audit environments with torch, JAX, TensorFlow, vLLM and others (network, 30 GB)
	$(CLEAN) $(BIN)/python -m pytest -m environments

lint: setup  ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Tests and benchmarks require a POSIX system.
types: setup  ## mypy for the oldest and newest Python, and for Windows
	$(BIN)/mypy
	$(BIN)/mypy --python-version 3.14
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32 cudaredist tools

other-types: setup  ## mypy for the other versions of Python, and for macOS
	$(BIN)/mypy --python-version 3.12
	$(BIN)/mypy --python-version 3.13
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin

imports: setup  ## import-linter
	$(BIN)/lint-imports

count: setup  ## count lines of logic in each package
	$(BIN)/python -m tools.count_logic

schemas: setup  ## generate the shipped JSON Schemas from the models
	$(BIN)/python -m tools.schemas

docs: setup  ## generate the reference pages from commands and schemas
	$(BIN)/python -m tools.reference

picture: setup  ## generate the picture of terminal output in docs
	$(BIN)/python -m tools.pictures

man: setup  ## generate the man pages in build/man
	$(BIN)/python -m tools.man_pages

dist: man  ## build and check the sdist and the wheel in dist/ (network)
	BIN=$(BIN) tools/check_dist.sh

SITE := build/site
# -W and -n fail on every warning, such as a link to a missing page or heading.
docs-site: $(VENV)/.docs  ## build the documentation site in build/site
	$(BIN)/sphinx-build -q -n -W --keep-going -d build/site-cache docs $(SITE)
	! grep -rlE '<(script|link|img|iframe)[^>]* (src|href)="(https?:)?//' $(SITE) --include='*.html'

# Without the other tools for developers, and without the program.
$(VENV)/.docs: $(VENV)/.pip
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

WHEELS = --channel wheels --data-dir data
RELEASES = 11.8.0 12.0.0 12.0.1 12.1.0 12.1.1 12.2.0 12.2.1 12.2.2 12.3.0 12.3.1 12.3.2 12.4.0 12.4.1 \
	12.5.0 12.5.1 12.6.0 12.6.1 12.6.2 12.6.3 12.8.0 12.8.1 12.8.2 12.9.0 12.9.1 12.9.2 13.0.0 13.0.1 \
	13.0.2 13.0.3 13.1.0 13.1.1 13.1.2 13.2.0 13.2.1 13.2.2 13.3.0 13.3.1 13.4.1 13.4.2 13.4.3 13.5.0
# Every release in the index, of CUDA, cuDNN, cuDSS, cuSPARSELt, cuTENSOR, NCCL, nvCOMP and NVSHMEM.
CUDNN = 8.5.0 8.6.0 8.7.0 8.8.0 8.8.1 8.9.0 8.9.1 8.9.2 8.9.4 8.9.5 8.9.6 8.9.7 9.0.0 9.1.0 9.1.1 9.2.0 \
	9.2.1 9.3.0 9.4.0 9.5.0 9.5.1 9.6.0 9.7.0 9.7.1 9.8.0 9.9.0 9.10.0 9.10.1 9.10.2 9.11.0 9.11.1 9.12.0 \
	9.13.0 9.13.1 9.14.0 9.15.0 9.15.1 9.16.0 9.17.0 9.17.1 9.18.0 9.18.1 9.19.0 9.19.1 9.20.0 9.21.0 \
	9.21.1 9.22.0 9.23.0 9.23.1 9.23.2 9.24.0 9.24.1 9.25.1 9.26.0 9.26.1 9.27.0 9.28.0 9.28.1
CUDSS = 0.4.0 0.5.0 0.6.0 0.7.0 0.7.1 0.8.0 1.0.0
CUSPARSELT = 0.6.2 0.6.3 0.7.1 0.8.0 0.8.1 0.9.0 0.9.1 0.10.0
CUTENSOR = 1.6.0 1.6.1 1.6.2 1.7.0 2.0.0 2.0.1 2.0.2 2.2.0 2.3.0 2.3.1 2.4.1 2.5.0 2.6.0 2.7.0 2.8.0 \
	2.8.1
NCCL = 2.13.4 2.14.3 2.15.5 2.16.2 2.16.5 2.17.1 2.18.1 2.18.3 2.19.3 2.20.3 2.20.5 2.21.5 2.22.3 \
	2.23.4 2.24.3 2.25.1 2.26.2 2.26.5 2.27.3 2.27.5 2.27.6 2.27.7 2.28.3 2.28.7 2.28.9 2.29.2 2.29.3 \
	2.29.7 2.30.3 2.30.4 2.30.7 2.31.2 2.32.3
NVSHMEM = 3.1.7 3.2.5 3.3.9 3.3.20 3.3.24 3.4.5 3.5.19 3.5.21 3.6.5 3.7.0 3.7.1 3.7.2 3.8.0
# Of these products, the newest three minor releases.
CUBLASMP = 0.8.1 0.9.1 0.10.0
CUFFTMP = 11.4.0 12.1.3
CUQUANTUM = 26.03.2 26.06.0 26.09.0
CUSOLVERMP = 0.7.2 0.8.0 0.9.1
NVCOMP = 5.1.0 5.2.0 5.3.0 6.0.0
NVJPEG = 0.9.1 0.10.0 0.11.0
NVPL = 25.5 25.11 26.5
NVTIFF = 0.6.0 0.7.0 0.8.0
download = $(BIN)/cudaredist download-manifests $(WHEELS) --redist $(1) $(addprefix --version ,$(2))
data: setup  ## generate the shipped data from about 250 GB of wheels, without storing them (network)
	$(call download,cublasmp,$(CUBLASMP))
	$(call download,cuda,$(RELEASES))
	$(call download,cudnn,$(CUDNN))
	$(call download,cudss,$(CUDSS))
	$(call download,cufftmp,$(CUFFTMP))
	$(call download,cuquantum,$(CUQUANTUM))
	$(call download,cusolvermp,$(CUSOLVERMP))
	$(call download,cusparselt,$(CUSPARSELT))
	$(call download,cutensor,$(CUTENSOR))
	$(call download,nccl,$(NCCL))
	$(call download,nvcomp,$(NVCOMP))
	$(call download,nvjpeg2000,$(NVJPEG))
	$(call download,nvpl,$(NVPL))
	$(call download,nvshmem,$(NVSHMEM))
	$(call download,nvtiff,$(NVTIFF))
	$(BIN)/python -m tools.wheel_requirements
	$(BIN)/cudaredist process-manifests $(WHEELS)
	$(BIN)/cudaredist update-nvcc-compat $(WHEELS) --accept-changed
	$(BIN)/cudaredist update-gpus $(WHEELS)
	$(BIN)/cudaredist update-symbols $(WHEELS)
	$(BIN)/cudaredist update-api $(WHEELS)

benchmark: setup  ## compare the speed with limits and other programs
	$(CLEAN) $(BIN)/python benchmarks/run.py

toolkit: setup  ## install two toolkits and compile with each; requires g++ and 150 MB for each (network)
	$(CLEAN) BIN=$(BIN) sh examples/toolkit.sh build/toolkit

SECONDS ?= 15
FUZZERS := elf symbols pe ar fatbin tar zip
fuzz: $(VENV)/.fuzz  ## fuzz every reader; SECONDS=1800 for a long run
	for reader in $(FUZZERS); do \
		$(BIN)/python fuzz/fuzz_$$reader.py -max_total_time=$(SECONDS) -verbosity=0 \
			-print_final_stats=1 || exit 1; \
	done

$(VENV)/.fuzz: $(VENV)/.done
	$(BIN)/python -m pip install --quiet --group fuzz
	touch $@

LOWEST := build/lowest/bin/python
lowest: setup  ## run the fast tests with the lowest versions of all dependencies (network)
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python build/lowest
	$(BIN)/uv pip install --quiet --python $(LOWEST) --resolution lowest-direct \
		--editable . --group test --group check
	$(CLEAN) $(LOWEST) -m pytest $(FAST)

machines:  ## run `make test` and `make demo` on three fresh machines (root, network)
	tools/fresh_machines.sh

# Run one target after the other, since benchmarks and time limits need the whole machine.
nightly: other-types coverage test-nightly test-environments lowest fuzz machines  ## run the checks that are too long for a merge
	BENCHMARK_TOLERANCE=2 $(MAKE) benchmark

clean:  ## remove everything that make created
	rm -rf $(VENV) .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache dist

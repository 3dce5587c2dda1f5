# make demo   warm up a small model, train it under several controllers, draw runs/demo/entropy.png
# make test   the whole test suite
# make lint   ruff and mypy
# Each sets up .venv by itself; a second call installs nothing.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test lint clean

demo: $(STAMP)
	$(BIN)/python -m llmtrain.demo

test: $(STAMP)
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(STAMP): pyproject.toml constraints.txt tests/requirements-verl.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "entrostat needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[train,dev]'
	$(BIN)/python -m pip install --quiet --no-deps -r tests/requirements-verl.txt
	touch $@

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache

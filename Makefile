# make demo | test | lint | bench: each sets up its own virtual environment on first use.
# PYTHON chooses the interpreter; PIP_ARGS reaches every pip install, for instance
#   make demo PIP_ARGS="--extra-index-url https://download.pytorch.org/whl/cpu"
# takes PyTorch's much smaller build for machines without a GPU.

PYTHON ?= python3
PIP_ARGS ?=
VENV ?= .venv
TEST_PROCESSES ?= 2
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt $(PIP_ARGS)

.PHONY: demo test lint format bench clean

demo: $(VENV)/.base
	$(BIN)/elmokit demo --out demo

# several processes of one thread each: most tests are too small for two threads
test: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist worksteal

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/cpu.py

clean:
	rm -rf $(VENV) build *.egg-info src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

# torch first and by its pinned version: a later line must never bring another one
$(VENV)/.base: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "ElmoKit needs Python 3.10 or newer, this is " + sys.version.split()[0] + "; try make PYTHON=python3.12")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) "$$(grep ^torch== constraints.txt)"
	$(PIP_INSTALL) -e ".[plots]"
	touch $@

$(VENV)/.dev: $(VENV)/.base
	$(PIP_INSTALL) -e ".[dev]"
	touch $@

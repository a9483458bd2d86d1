# `make demo` and `make test` do all set-up: they need Python >= 3.11, make and a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
# Modules are compiled when they are first imported, and kept: pip would compile all of them.
export PYTHONDONTWRITEBYTECODE :=
OUT ?= demo-run

.PHONY: demo test lint tests clean

demo: $(VENV)/.demo
	$(BIN)/d2cp demo --out $(OUT)

test: lint tests

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks tools
	$(BIN)/ruff format --check src tests benchmarks tools
	$(BIN)/mypy

tests: $(VENV)/.dev
	OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -n 2 --dist worksteal

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("d2cp needs Python 3.11 or newer, found " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e .
	touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e '.[dev]'
	touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) $(OUT) build dist

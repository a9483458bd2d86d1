# `make demo` and `make test` do all set-up: they need Python >= 3.11, make and a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
# Modules are compiled when they are first imported, and kept: pip would compile all of them.
export PYTHONDONTWRITEBYTECODE :=
OUT ?= demo-run

.PHONY: demo test lint tests unusual docs pictures clean

demo: $(VENV)/.demo
	$(BIN)/d2cp demo --out $(OUT)

test: lint tests

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks tools
	$(BIN)/ruff format --check src tests benchmarks tools
	$(BIN)/mypy

tests: $(VENV)/.dev
	OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -n 2 --dist worksteal

# The numerical tests once more, as a processor without vector instructions and with other threads
# adds up: what passes by the last bits of a sum fails here.
unusual: $(VENV)/.dev
	ATEN_CPU_CAPABILITY=default OMP_NUM_THREADS=4 OMP_WAIT_POLICY=passive HF_HUB_OFFLINE=1 \
		$(BIN)/python -m pytest -m "not slow" tests/backbone/test_backbone_adapter.py \
		tests/backbone/test_backbone_block.py tests/debias tests/disentangle/test_diffusion.py \
		tests/disentangle/test_guide.py tests/disentangle/test_parts.py tests/environments tests/mine

# The site in site/, with a sample report: of $(OUT) where `make demo` made it, else of a quick run.
docs: $(VENV)/.docs
	$(BIN)/python -m tools.site.sample --run $(OUT)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "open site/index.html"

# README's pictures again: the demo's run, and a search of rendered leaves. Needs a Chromium.
pictures: demo $(VENV)/.dev
	$(BIN)/python -m tools.pictures --run $(OUT)

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("d2cp needs Python 3.11 or newer, found " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e .
	touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e '.[dev]'
	touch $@ $(VENV)/.demo

$(VENV)/.docs: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e '.[docs]'
	touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) $(OUT) build dist site

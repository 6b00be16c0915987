# make quickstart   train a model from a notebook, here and now
# make test         install what the tests need and run them
# make test-frameworks  install PyTorch, Paddle, JAX and MPI outside of the tree and train with them
# make lab          open JupyterLab on the example notebooks
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# pip warns about package folders that are configured and absent; nobody can act on it here.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
WORKERS ?= auto

.PHONY: quickstart lab test test-frameworks lint bench docs clean

quickstart: $(VENV)/examples.stamp
	$(BIN)/python notebooks/run.py notebooks/quickstart.ipynb

lab: $(VENV)/lab.stamp
	$(BIN)/python -m jupyterlab notebooks

test: $(VENV)/test.stamp
	$(BIN)/python -m pytest -n $(WORKERS)

test-frameworks: $(VENV)/test.stamp
	$(BIN)/python tests/frameworks/install.py
	$(BIN)/python -m pytest -n 0 -m frameworks tests/frameworks

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)-bench/stamp
	$(VENV)-bench/bin/python -m tests.bench $(BENCH)

docs: $(VENV)/docs.stamp
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed: make PYTHON=python3.12 …")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/examples.stamp: $(BIN)/python pyproject.toml
	$(PIP) -e '.[all,examples]'
	@touch $@

$(VENV)/lab.stamp: $(BIN)/python pyproject.toml
	$(PIP) -e '.[all,examples,lab]'
	@touch $@

$(VENV)/test.stamp: $(BIN)/python pyproject.toml
	$(PIP) -e '.[test]'
	@touch $@

$(VENV)/docs.stamp: $(BIN)/python pyproject.toml
	$(PIP) -e '.[test,docs]'
	@touch $@

# The peers that we measure against live in an environment of their own.
$(VENV)-bench/stamp: pyproject.toml
	$(PYTHON) -m venv $(VENV)-bench
	$(VENV)-bench/bin/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-bench docs/_build build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

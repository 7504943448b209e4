# Targets: demo, test, test-lanes, test-all, coverage, soak, bench, docs, lint, release-check, bundle, clean. All of them
# except the two release targets install into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Runtime dependencies and the web app, without torch.
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt
# Duration of the soak test, which runs random operations.
SOAK_MINUTES ?= 60
# Marker expression and runner of `make test-lanes`.
LANES ?= lane and not slow and not bench
LANES_PYTEST ?= $(BIN)/python -m pytest

# Pytest arguments of `make release-check` (the quick tests), and the Python interpreter of its environment.
RELEASE_TESTS ?= tests -m "not lane and not bench" -n 2 --dist worksteal
CHECK_PYTHON ?= $(PYTHON)

# Tests start many processes: without bytecode files, compiling the modules would take longer than the tests themselves.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-all test-lanes soak coverage bench docs lint release-check bundle clean

demo: $(STAMP)
	$(BIN)/vidkin demo

# The tests without a lane (tests/support/lanes.py), which take less than four minutes on two idle cores. On a fresh
# checkout, pytest rewrites the assertions of all tests, which takes half a minute: collecting first does this once instead
# of in both processes. mypy is single-threaded and runs in parallel. All tests of research/ and scale/ are in lanes.
test: $(DEV_STAMP)
	$(MAKE) --no-print-directory lint & lint=$$!; \
	[ -d tests/__pycache__ ] || $(BIN)/python -m pytest tests --collect-only -qq > /dev/null 2>&1; \
	$(BIN)/python -m pytest tests -m "not lane and not bench" -n 2 --dist worksteal; tests=$$?; \
	wait $$lint || { echo "lint failed: see above, or run make lint" >&2; exit 1; }; exit $$tests

# All lanes without slow tests: rare cases, browsers, clusters, servers, killed processes, documentation, research.
test-lanes: $(DEV_STAMP)
	$(LANES_PYTEST) -m "$(LANES)" -n 2 --dist worksteal

# Fuzzing requires Atheris, which only has wheels for Linux and current Python versions.
test-all: test test-lanes
	$(PIP) atheris
	$(BIN)/python -m pytest -m "slow and not bench" -n 2 --dist worksteal

# Quick tests and lanes in one run, with a coverage report of vidkin at the end.
coverage: $(DEV_STAMP)
	$(BIN)/python -m pytest -m "not slow and not bench" -n 2 --dist worksteal --hypothesis-profile full -o seconds_a_test=0 --cov

soak: $(DEV_STAMP)
	$(BIN)/python -m pytest tests/index/test_soak.py --soak-minutes $(SOAK_MINUTES) --log-cli-level INFO

bench: $(DEV_STAMP)
	$(BIN)/python research/benchmarks/run_all.py

# Suppresses the notice of mkdocs-material about its successor.
docs: $(DEV_STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

lint: $(DEV_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Builds wheels and source distributions of all three packages in dist/ and tests them; see release/check.py.
release-check:
	$(PYTHON) release/check.py --python $(CHECK_PYTHON) -- $(RELEASE_TESTS)

# Builds a folder in dist/ that runs without Python on the current platform; see release/bundle.py.
bundle:
	$(PYTHON) release/bundle.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable ".[web,plots]"
	touch $@

# Installs torch first and separately, because the resolver then accepts the installed build for the pin instead of
# selecting the newest one with its CUDA packages.
$(DEV_STAMP): $(STAMP) research/pyproject.toml scale/pyproject.toml
	$(PIP) torch torchvision
	$(PIP) --editable ".[dev]" --editable "research[baselines,hashes,hdf5]" --editable scale
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

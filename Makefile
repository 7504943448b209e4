# Targets: demo, test, test-lanes, test-all, coverage, soak, bench, docs, lint, release-check, bundle, clean. All but the two
# of a release install into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What runs, and the page; no torch.
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt
# of the test that does everything at random
SOAK_MINUTES ?= 60
# Lanes of `make test-lanes`, and what runs them.
LANES ?= lane and not slow and not bench
LANES_PYTEST ?= $(BIN)/python -m pytest

# What `make release-check` gives to pytest: the quick tests. CHECK_PYTHON runs the empty environment.
RELEASE_TESTS ?= tests -m "not lane and not bench" -n 2 --dist worksteal
CHECK_PYTHON ?= $(PYTHON)

# Tests start many programs: compiled anew in each, the modules would take longer than what they do.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-all test-lanes soak coverage bench docs lint release-check bundle clean

demo: $(STAMP)
	$(BIN)/vidkin demo

# Less than four minutes on two idle cores: what is in no lane (tests/support/lanes.py). On a fresh machine pytest rewrites
# all tests, half a minute of a core: once, and not in each of its two processes. mypy, which has one, works beside both.
# All tests of research/ and scale/ are in lanes.
test: $(DEV_STAMP)
	$(MAKE) --no-print-directory lint & lint=$$!; \
	[ -d tests/__pycache__ ] || $(BIN)/python -m pytest tests --collect-only -qq > /dev/null 2>&1; \
	$(BIN)/python -m pytest tests -m "not lane and not bench" -n 2 --dist worksteal; tests=$$?; \
	wait $$lint || { echo "lint failed: see above, or run make lint" >&2; exit 1; }; exit $$tests

# Everything but what takes minutes by itself: rarer cases, browsers, clusters, servers, killed programs, documents, research.
test-lanes: $(DEV_STAMP)
	$(LANES_PYTEST) -m "$(LANES)" -n 2 --dist worksteal

# Fuzzing needs Atheris, which has wheels for Linux and the Pythons of now only.
test-all: test test-lanes
	$(PIP) atheris
	$(BIN)/python -m pytest -m "slow and not bench" -n 2 --dist worksteal

# All of that once, with the coverage of the product, which is reported at the end.
coverage: $(DEV_STAMP)
	$(BIN)/python -m pytest -m "not slow and not bench" -n 2 --dist worksteal --hypothesis-profile full -o seconds_a_test=0 --cov

soak: $(DEV_STAMP)
	$(BIN)/python -m pytest tests/index/test_soak.py --soak-minutes $(SOAK_MINUTES) --log-cli-level INFO

bench: $(DEV_STAMP)
	$(BIN)/python research/benchmarks/run_all.py

# The mkdocs-material of this series announces its successor at every call.
docs: $(DEV_STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

lint: $(DEV_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Wheels and source archives of all three packages in dist/, tested in an empty environment; see release/check.py.
release-check:
	$(PYTHON) release/check.py --python $(CHECK_PYTHON) -- $(RELEASE_TESTS)

# A folder in dist/ that runs without Python, for the system that this runs on; see release/bundle.py.
bundle:
	$(PYTHON) release/bundle.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable ".[web,plots]"
	touch $@

# torch first and alone: a resolver that sees its pin takes the build that is there,
# instead of the newest one with its CUDA packages.
$(DEV_STAMP): $(STAMP) research/pyproject.toml scale/pyproject.toml
	$(PIP) torch torchvision
	$(PIP) --editable ".[dev]" --editable "research[baselines,hashes,hdf5]" --editable scale
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

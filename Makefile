# `make demo` and `make test` set everything up first, on a machine with Python 3.11+, a C++ compiler and make.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.lapjoint-installed
CXX_FILES := $(wildcard native/*/*.cpp native/*/*.h tests/native/*.cpp)
NATIVE := $(CXX_FILES) $(wildcard cmake/*.cmake) CMakeLists.txt pyproject.toml

# Tests start hundreds of programs. Each would compile every module if it could not find what the one before it compiled.
unexport PYTHONDONTWRITEBYTECODE

# Tests run in JOBS processes. Groups of tests stay together (tests/conftest.py); the longest group starts first.
JOBS ?= 2
FUZZ_CASES ?= 10000
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --no-loadscope-reorder

.PHONY: setup demo test quick lint format wheel-check sanitize floors nightly clean

setup: $(STAMP)  ## the environment, in .venv; rebuilt when native code or dependencies change

.venv/bin/python:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

$(STAMP): .venv/bin/python $(NATIVE)
	@tools/system-packages
	$(BIN)/python -m pip install --quiet "scikit-build-core>=0.10" "nanobind>=2.4" setuptools wheel ninja cmake
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[dev]"
	@touch $@

demo: setup  ## the main job on the embedded default: a scene simulated, summed up and pictured
	@mkdir -p out
	$(BIN)/lapjoint scenes
	$(BIN)/lapjoint run building --workers 2 --seconds 2 --picture out/building.png --json out/building.json

test: setup  ## every test
	$(PYTEST)

quick: setup  ## the tests that take less than a few seconds
	$(PYTEST) -m "not slow"

lint: setup  ## ruff, ruff format, mypy strict, clang-format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_FILES)

wheel-check: setup  ## a wheel, built in isolation, runs where there is no compiler and no Bullet
	tools/wheel-check $(PYTHON)

sanitize: setup  ## native code with checks for memory, undefined behaviour and threads
	JOBS=$(JOBS) tools/sanitize address
	JOBS=$(JOBS) tools/sanitize thread

floors: setup  ## the quick tests with the lowest versions that pyproject.toml allows
	JOBS=$(JOBS) $(BIN)/python tools/floors

nightly: sanitize floors  ## what takes hours: sanitizers, floors, fuzzing, a long run, faults on purpose
	LAPJOINT_FUZZ_CASES=$(FUZZ_CASES) $(BIN)/python -m pytest -n $(JOBS) tests/fuzzing
	@mkdir -p out
	$(BIN)/python benchmarks/soak.py --csv out/soak.csv
	$(BIN)/python benchmarks/chaos.py --csv out/chaos.csv

clean:
	rm -rf .venv build dist out

# `make demo` and `make test` set everything up first, on a machine with Python 3.11+, a C++ compiler and make.
PYTHON ?= python3
BIN := .venv/bin
DEMO := .venv/.lapjoint-demo
ALL := .venv/.lapjoint-installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
FLOAT32_ALONE := --config-settings=cmake.define.LAPJOINT_FLOAT64=OFF
CXX_FILES := $(wildcard native/*.h native/*/*.cpp native/*/*.h tests/native/*.cpp)
NATIVE := $(filter-out tests/%,$(CXX_FILES)) $(wildcard cmake/*.cmake) CMakeLists.txt pyproject.toml

# Compilers in parallel: one for each core. Ninja would start two more, which on two cores take a tenth longer in all.
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell getconf _NPROCESSORS_ONLN)

# Tests start hundreds of programs. Each would compile every module if it could not find what the one before it compiled.
unexport PYTHONDONTWRITEBYTECODE

# Tests run in JOBS processes: more than cores, for those with Ray and with a browser mostly wait. Groups of tests stay
# together (tests/conftest.py); the longest group starts first.
JOBS ?= 4
FUZZ_CASES ?= 10000
RESUME_SCENES ?= 3000
LIMIT_CASES ?= 1000
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --no-loadscope-reorder

.PHONY: setup demo docs test quick lint format wheel-check sanitize floors nightly clean

setup: $(ALL)  ## the environment, in .venv; rebuilt when native code or dependencies change

.venv/bin/python:
	$(PYTHON) -m venv .venv

# lapjoint in float32, and what the demo needs. Modules become bytecode when they are first imported: all of SciPy would
# take longer than the demo.
$(DEMO): .venv/bin/python $(NATIVE)
	@tools/system-packages pictures
	$(PIP) "scikit-build-core>=1.0" "nanobind>=2.4" setuptools wheel
	@# CMake and Ninja, where the machine has none that are new enough.
	needs=$$($(BIN)/python -c "from scikit_build_core.build import *; print(*get_requires_for_build_editable())"); \
	  [ -z "$$needs" ] || $(PIP) $$needs
	$(PIP) --no-build-isolation $(if $(wildcard $(ALL)),,$(FLOAT32_ALONE)) --editable ".[picture]"
	@touch $@

# What tests need besides: the other precision, all extras of the lapjoint that is installed, and the group `dev`, which pip
# knows from 25.1 on.
$(ALL): $(DEMO)
	@tools/system-packages pictures browser network
	$(BIN)/python -c "import lapjoint._bullet_float64" 2>/dev/null || $(PIP) --no-build-isolation --no-deps --editable .
	$(PIP) "pip>=25.1"
	$(PIP) "lapjoint[all]" --group dev
	@touch $@

demo: $(DEMO)  ## the building on two workers, summed up, pictured, and as a page to turn and play in a browser
	@mkdir -p out && rm -rf out/building
	$(BIN)/lapjoint run building --workers 2 --seconds 2 --picture out/building.png --json out/building.json \
	  --record out/building --record-every 10
	$(BIN)/lapjoint export out/building out/building.html
	@echo "The building after two seconds:  $(CURDIR)/out/building.png"
	@echo "The same to play in a browser:   $(CURDIR)/out/building.html"

docs: setup  ## the site, in out/docs: pages, gallery, figures, notebooks, API; opens from the file system
	$(PIP) --group docs
	$(BIN)/python tools/make-docs

test: setup  ## every test
	$(PYTEST)

quick: setup  ## the tests that are not marked slow
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

nightly: sanitize floors  ## what takes hours: sanitizers, floors, fuzzing, resuming, limits, a long run, faults on purpose
	LAPJOINT_FUZZ_CASES=$(FUZZ_CASES) $(BIN)/python -m pytest -n $(JOBS) tests/fuzzing
	LAPJOINT_RESUME_SCENES=$(RESUME_SCENES) $(BIN)/python -m pytest -n $(JOBS) tests/checkpoint/test_resume.py
	LAPJOINT_LIMIT_CASES=$(LIMIT_CASES) $(BIN)/python -m pytest -n $(JOBS) tests/validation/test_limit_energy.py \
	  tests/validation/test_bad_starts.py
	LAPJOINT_BOND_CASES=1 $(BIN)/python -m pytest -n $(JOBS) tests/fracture/test_bonds.py
	LAPJOINT_SURGE_STEPS=500 $(BIN)/python -m pytest -n $(JOBS) tests/server/test_surges.py
	@mkdir -p out
	$(BIN)/python benchmarks/soak.py --csv out/soak.csv
	$(BIN)/python benchmarks/chaos.py --csv out/chaos.csv

clean:
	rm -rf .venv build dist out

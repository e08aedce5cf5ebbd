# make demo and make test are all a newcomer needs; every target says what it does and ends by saying how it went.

PYTHON ?= $(shell for python in python3.11 python3 python3.12 python3.13; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
VENV := .venv
PEERS := build/.venv-peers
AGES := build/.venv-oldest build/.venv-newest
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt README.md LICENSE $(shell find src cpp -type f \
	-not -name '*.so' -not -path '*/__pycache__/*' -not -path 'cpp/tests/*')
WHEEL = $$(echo build/wheel/cfmaps-*.whl)

# What is tested is the installed package, never src.
unexport PYTHONPATH
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-versions check bench bench-boosted reproduce sanitize sanitize-address sanitize-thread clean

help:
	@echo "make demo      train a forest, explain a few rows, draw the counterfactual map"
	@echo "make test      build, install and run the whole test suite"
	@echo "make check     format, lint, types and stub"
	@echo "make test-versions   the suite with the oldest and the newest versions of the libraries"
	@echo "make bench     time cfmaps beside its peers, one thread each"
	@echo "make bench-boosted   the same on XGBoost and LightGBM models"
	@echo "make reproduce the paper's tables and figures again; QUICK=1 in minutes"
	@echo "make sanitize  the suite under ASan and UBSan, the threads under TSan"
	@echo "make docs      the site, in build/docs"
	@echo "make wheels    a wheel for every Python that is supported, and a minimal test of each"
	@echo "make clean     remove what these targets made"

demo: $(VENV)/.package $(VENV)/.plot
	@echo "== demo: examples/demo.py"
	@$(BIN)/python examples/demo.py
	@echo "make demo: done"

# pytest's closing line is the last word.
test: $(VENV)/.package $(VENV)/.test
	@echo "== test: tests, README, docs and docstrings, against the installed package"
	@$(BIN)/python -m pytest --pyargs tests README.md docs cfmaps

check: $(VENV)/.package $(VENV)/.test $(VENV)/.dev
	@echo "== check: format"
	@$(BIN)/ruff format --check .
	@find cpp -name '*.cpp' -o -name '*.hpp' | xargs $(BIN)/clang-format --dry-run -Werror
	@echo "== check: lint"
	@$(BIN)/ruff check .
	@echo "== check: types of the installed package"
	@$(BIN)/mypy
	@echo "== check: the stub says what the extension offers"
	@installed=$$($(BIN)/python -c 'import cfmaps, pathlib; print(pathlib.Path(cfmaps.__file__).parent)') && \
		$(BIN)/python -m nanobind.stubgen -q -i $$installed -m _core -o build/_core.pyi && \
		diff -u $$installed/_core.pyi build/_core.pyi
	@echo "make check: format, lint, types and stub are clean"

bench: $(PEERS)/.package $(PEERS)/.peers
	@echo "== bench: cfmaps beside its peers, one thread each"
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 RAYON_NUM_THREADS=1 $(PEERS)/bin/python benchmarks/bench.py
	@echo "make bench: done"

bench-boosted: $(PEERS)/.package $(PEERS)/.peers
	@echo "== bench-boosted: cfmaps beside treecf on boosted models, one thread each"
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 RAYON_NUM_THREADS=1 $(PEERS)/bin/python benchmarks/boosted.py
	@echo "make bench-boosted: done"

# Oldest are those of tests/oldest.txt, newest what pip finds.
test-versions: $(addsuffix /.versions,$(AGES))
	@for age in $(AGES); do \
		echo "== test-versions: $$age"; \
		$$age/bin/python -m pip list 2>/dev/null | grep -E "^(scikit-learn|numpy|pandas|xgboost|lightgbm|catboost)"; \
		$$age/bin/python -m pytest -q -p no:cacheprovider --pyargs tests cfmaps || exit 1; \
	done
	@echo "make test-versions: the suite passes with the oldest and the newest"

STUDY = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 RAYON_NUM_THREADS=1 PYTHONPATH=benchmarks:experiments:examples \
	$(PEERS)/bin/python -W ignore

reproduce: $(PEERS)/.package $(PEERS)/.peers
	@echo "== reproduce: the study of the paper, every system on one thread$(if $(QUICK), (quick))"
	@$(PEERS)/bin/python -m pip install --quiet "$(WHEEL)[plot]"
	@$(STUDY) experiments/adapters.py
	@$(STUDY) experiments/reproduce.py $(if $(QUICK),--quick) $(if $(VOTES),--votes $(VOTES)) $(OPTIONS)
	@echo "make reproduce: done"

# ---- sanitizers ----

CONFIGURE = $(BIN)/cmake -S . -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DCMAKE_BUILD_TYPE=Debug \
	-DCMAKE_CXX_FLAGS="-O1 -D_GLIBCXX_ASSERTIONS" -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python --log-level=WARNING
CORE_ONLY := -DCFMAPS_PYTHON=OFF -DCFMAPS_TESTS=ON
# A Python that is not instrumented must load the runtimes first, and its own leaks are not ours.
PRELOAD = $(shell g++ -print-file-name=libasan.so) $(shell g++ -print-file-name=libstdc++.so)
HALT := UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
# TSan cannot start where the kernel scatters addresses too widely.
STEADY = $(shell setarch $$(uname -m) -R true 2>/dev/null && echo setarch $$(uname -m) -R)

sanitize: sanitize-address sanitize-thread
	@echo "make sanitize: no complaint from ASan, UBSan and TSan"

sanitize-address: $(VENV)/.package $(VENV)/.test $(VENV)/.dev
	@echo "== sanitize: the core's tests under ASan and UBSan"
	@$(CONFIGURE) -B build/asan -DCFMAPS_SANITIZE=address,undefined $(CORE_ONLY)
	@$(BIN)/cmake --build build/asan
	@$(HALT) $(BIN)/ctest --test-dir build/asan --output-on-failure --no-tests=error
	@echo "== sanitize: the Python suite under ASan and UBSan"
	@$(CONFIGURE) -B build/asan-python -DCFMAPS_SANITIZE=address,undefined
	@$(BIN)/cmake --build build/asan-python --target _core
	@rm -rf build/asan-package && mkdir -p build/asan-package && cp -r src/cfmaps build/asan-package/
	@rm -f build/asan-package/cfmaps/_core*.so && cp build/asan-python/_core*.so build/asan-package/cfmaps/
	@PYTHONPATH=build/asan-package LD_PRELOAD="$(PRELOAD)" ASAN_OPTIONS=detect_leaks=0 $(HALT) \
		$(BIN)/python -m pytest -p no:cacheprovider --timeout 1800 tests

sanitize-thread: $(VENV)/.dev
	@echo "== sanitize: the core's tests under TSan"
	@$(CONFIGURE) -B build/tsan -DCFMAPS_SANITIZE=thread $(CORE_ONLY)
	@$(BIN)/cmake --build build/tsan
	@TSAN_OPTIONS=halt_on_error=1 $(STEADY) $(BIN)/ctest --test-dir build/tsan --output-on-failure --no-tests=error

# ---- site and wheels ----

.PHONY: docs wheels

docs: $(VENV)/.package $(VENV)/.docs
	@echo "== docs: docs into build/docs, warnings are errors"
	@$(BIN)/python -m sphinx -W --keep-going -q -d build/doctrees docs build/docs
	@echo "make docs: build/docs/index.html"

WHEELS := $(foreach version,3.11 3.12 3.13,build/wheels/$(version)/.tested)

wheels: $(WHEELS)
	@echo "make wheels: done"

# Where several Pythons are managed side by side, the newest of each version is asked for.
$(WHEELS): build/wheels/%/.tested: $(SOURCES) tests/minimal.py
	@echo "== wheel for Python $*"
	@rm -rf $(@D) && mkdir -p $(@D)
	@PYENV_VERSION=$$(pyenv latest $* 2>/dev/null) python$* -m venv $(@D)/venv
	@$(@D)/venv/bin/python -m pip wheel --quiet --no-deps --wheel-dir $(@D) .
	@$(@D)/venv/bin/python -m pip install --quiet $(@D)/cfmaps-*.whl
	@$(@D)/venv/bin/python tests/minimal.py
	@touch $@

clean:
	@rm -rf build dist demo docs/api.rst docs/auto_gallery docs/generated $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@echo "make clean: done"

# ---- environments ----

build/wheel/.built: $(SOURCES) | $(BIN)/python
	@echo "== build: a wheel of cfmaps (needs g++ and Python.h)"
	@command -v g++ >/dev/null || { echo "g++ is missing: apt-get install g++"; exit 1; }
	@$(BIN)/python -c 'import pathlib, sysconfig, sys; \
		sys.exit(not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists())' || \
		{ echo "Python.h is missing: apt-get install python3-dev"; exit 1; }
	@rm -rf build/wheel && $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir build/wheel .
	@touch $@

$(VENV)/.package $(PEERS)/.package: %/.package: build/wheel/.built | %/bin/python
	@echo "== install: cfmaps into $*"
	@$*/bin/python -m pip install --quiet $(WHEEL)
	@$*/bin/python -m pip install --quiet --no-deps --force-reinstall $(WHEEL)
	@touch $@

$(VENV)/.plot $(VENV)/.test $(VENV)/.dev $(VENV)/.docs: $(VENV)/.%: pyproject.toml | $(VENV)/.package
	@echo "== install: what cfmaps[$*] needs into $(VENV)"
	@$(BIN)/python -m pip install --quiet "$(WHEEL)[$*]" $(if $(filter dev,$*),cmake ninja)
	@touch $@

$(PEERS)/.peers: benchmarks/requirements-peers.txt | $(PEERS)/.package
	@echo "== install: the peers into $(PEERS)"
	@$(PEERS)/bin/python -m pip install --quiet -r $< || echo "the peers cannot be installed here: bench runs without them"
	@touch $@

$(addsuffix /.versions,$(AGES)): build/.venv-%/.versions: tests/oldest.txt build/wheel/.built | build/.venv-%/bin/python
	@echo "== install: cfmaps and the $* versions of what it works with into build/.venv-$*"
	@build/.venv-$*/bin/python -m pip install --quiet --upgrade "$(WHEEL)[test]" $(if $(filter oldest,$*),-c $<)
	@build/.venv-$*/bin/python -m pip install --quiet --no-deps --force-reinstall $(WHEEL)
	@touch $@

# Debian splits venv from Python; virtualenv does without it, wherever pip is.
$(VENV)/bin/python $(PEERS)/bin/python $(addsuffix /bin/python,$(AGES)): %/bin/python:
	@test -n "$(PYTHON)" || { echo "Python >= 3.11 is missing: apt-get install python3"; exit 1; }
	@echo "== environment: $* with $(PYTHON)"
	@mkdir -p $(@D)
	@$(PYTHON) -m venv $* >/dev/null 2>&1 || { rm -rf $* && \
		$(PYTHON) -m pip install --quiet --target build/virtualenv virtualenv 2>/dev/null && \
		PYTHONPATH=build/virtualenv $(PYTHON) -m virtualenv --quiet $*; } || \
		{ rm -rf $*; echo "no virtual environment can be made: apt-get install python3-venv"; exit 1; }

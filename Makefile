# `make` alone lists the targets. Everything runs from .venv, which the first target that needs it builds.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# The `spark` extra (about 450 MB) is of no use without a Java; `make .venv EXTRAS=...` decides otherwise.
EXTRAS ?= $(if $(shell command -v java),all,testing,prove,faststream,opentelemetry,dev)
# The first of these that runs, is new enough and can build an environment; PYTHON=/path/to/python forces one.
# Distributions build theirs with all optimizations, version managers seldom: tests then take a sixth longer.
PYTHON ?= /usr/bin/python3 python3.13 python3.12 python3.11 python3

BIN := .venv/bin
comma := ,
# One stamp for each set of extras: made once, made again when the dependencies may have changed.
STAMP = .venv/.made-with-$(subst $(comma),-,$(EXTRAS))
CODE := $(wildcard core transports adapters tests tools examples)

.PHONY: help .venv man demo fmt words one shaky test test-all test-changed checks coverage pure judges daemons models outside versions lint types verdicts trace-rows mutants composed bench soak torture agreement site site-check site-outputs dist release locked licences newcomers evidence clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[.a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv: $(STAMP)  ## build the environment, with Spark where there is a Java

.venv/.made-with-%: pyproject.toml
	@usable='import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))'; \
	if ! $(BIN)/python -c "$$usable" 2>/dev/null; then \
	    for python in $(PYTHON) none; do \
	        "$$python" -c "$$usable" 2>/dev/null && break; \
	    done; \
	    if [ "$$python" = none ]; then \
	        echo "No Python 3.11 or newer that can make a virtual environment was found:" \
	             "run 'sudo apt-get install -y python3 python3-venv' or set PYTHON=/path/to/python." >&2; \
	        exit 1; \
	    fi; \
	    echo "Building .venv with $$("$$python" --version)."; \
	    "$$python" -m venv --clear .venv; \
	fi
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(filter plain,$*),--no-compile) --editable '.$(if $(filter plain,$*),,[$(EXTRAS)])'
	@touch $@

man: .venv  ## write the manual pages of all commands to build/man/man1
	@$(BIN)/stablecast manual build/man/man1

demo:  ## the documented failure runs, live, on loopback; installs what users get, and no more
	@packaging/machine/prepare demo
	@$(MAKE) --no-print-directory .venv/.made-with-plain
	@$(BIN)/stablecast demo

# Groups and ports of the host are the same for all. Parts that open them run beside each other if each gets a network of its
# own, which needs root, and one after the other otherwise.
OWN_NETWORK := $(shell unshare --net ip link set lo up 2>/dev/null && echo unshare --net sh -c \''ip link set lo up && exec "$$@"'\' sh)

# Machines have two cores. Three parts of the tests run at a time, because those with daemons mostly wait. The longest begin.
# To record coverage makes code three times slower and each start of a process twice, and its report decides nothing:
# `make coverage` records it, for the parts that show most.
PURE := tests/core tests/transports tests/scenarios $(addprefix tests/adapters/lab/,model prove sim whole world)
JUDGES := tests/tools/evidence tests/tools/site tests/adapters/evidence $(wildcard tests/test_*.py)
OUTSIDE := tests/adapters/testing tests/tools/agreement tests/packaging tests/tools/bench tests/e2e tests/examples tests/tools/release \
    tests/tools/torture
MODELS := tests/models tests/adapters/lab/proof
# Tests are in two tiers (tests/tiers.toml). The gate decides on each change: what it shows takes minutes.
TIER := $(if $(filter test,$(MAKECMDGOALS)),gate,all)
BUDGET := 1500
PYTEST := $(BIN)/python -m pytest -q -p no:cacheprovider
COVERED := --no-cov

# What a machine lacks stops nothing: the last lines say what was not run, and why. On a build machine that is a failure.
COUNTS := build/counts
export STABLECAST_COUNTS := $(if $(filter test%,$(MAKECMDGOALS)),$(CURDIR)/$(COUNTS),$(STABLECAST_COUNTS))
LEAVE_OUT = $(BIN)/python -m tests.support.left_out $(COUNTS)

test:  ## the gate: lint, types, and the tests that show most in minutes; installs what this machine lacks
	@packaging/machine/prepare test
	@rm -rf $(COUNTS)
	@status=0; $(MAKE) --no-print-directory checks TIER=gate || status=$$?; $(LEAVE_OUT) || status=1; exit $$status

test-all:  ## everything, from nothing: all tests, graphs, proofs, planted faults, faults of real processes; hours
	@packaging/machine/prepare test
	@rm -rf $(COUNTS)
	@status=0; export STABLECAST_VERDICTS=none; \
	for part in checks versions mutants torture agreement; do \
	    $(MAKE) --no-print-directory $$part TIER=all || { echo "make $$part failed"; status=1; }; \
	done; $(LEAVE_OUT) || status=1; exit $$status

# Tests that open ports get a network of their own; those with hosts of their own make theirs.
test-changed: .venv  ## what `make test` left out of the rooms that changed, within 25 minutes; counts with those of the gate
	@status=0; $(MAKE) --no-print-directory -k -j2 -Otarget changed-inside changed-outside || status=$$?; $(LEAVE_OUT) || status=1; exit $$status

CHANGED := $(BIN)/python -m tests.support.changed
changed-%: TESTS = $(shell $(CHANGED) $(if $(filter inside,$*),but,in) $(OUTSIDE))
changed-%:
	$(if $(strip $(TESTS)),@$(if $(filter inside,$*),$(OWN_NETWORK)) $(PYTEST) --no-cov --tier=rest --budget=$(BUDGET) $(strip $(TESTS)))

checks: lint
	@$(MAKE) --no-print-directory -k -j3 -Otarget models daemons $(if $(filter all,$(TIER)),outside) pure judges types TIER=$(TIER)

# Only what is finished is combined: helpers of `multiprocessing` outlive pytest and may be writing what they have.
coverage: .venv  ## branch coverage of what the tests of the core, the transports and the daemons run
	@rm -f .coverage .coverage.*
	@$(MAKE) --no-print-directory -j2 -Otarget daemons pure judges COVERED='--cov --cov-report='
	@$(BIN)/coverage combine --quiet .coverage.pure .coverage.judges .coverage.daemons && $(BIN)/coverage report

fmt: .venv  ## format the code, and mend what the linter can
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --fix .

T ?= tests/core

words: .venv  ## advice about the wording of changed files (ARGS=all: of all files); it fails nothing
	@$(BIN)/python -m tests.support.words $(ARGS)

one: .venv  ## one test, file or folder (T=tests/core/store/test_repository.py)
	@$(PYTEST) --no-cov $(T)

# What needs an hour to fail now and then fails here: with eight busy loops beside it, ten times.
shaky: .venv  ## run tests of real processes ten times beside eight busy loops (T=tests/e2e/test_demo.py)
	@for loop in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; trap 'kill $$(jobs -p)' EXIT; \
	for time in 1 2 3 4 5 6 7 8 9 10; do echo "run $$time"; $(PYTEST) --no-cov $(T); done

pure:
	@COVERAGE_FILE=.coverage.pure $(PYTEST) $(COVERED) --tier=$(TIER) $(PURE) core transports

judges: $(if $(OWN_NETWORK),,daemons)
	@COVERAGE_FILE=.coverage.judges $(OWN_NETWORK) $(PYTEST) $(COVERED) --tier=$(TIER) $(JUDGES)

daemons: $(if $(OWN_NETWORK)$(filter --cov,$(COVERED)),,outside)
	@COVERAGE_FILE=.coverage.daemons $(OWN_NETWORK) $(PYTEST) $(COVERED) --tier=$(TIER) \
	    $(addprefix --ignore=,$(MODELS) $(PURE) $(JUDGES) $(OUTSIDE)) tests adapters

models:
	@$(PYTEST) --no-cov --tier=$(TIER) $(MODELS) $(if $(filter gate,$(TIER)),$(OUTSIDE))

outside:
	@$(PYTEST) --no-cov $(OUTSIDE)

lint: .venv  ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: .venv  ## mypy --strict over code and tests
	@if $(BIN)/python -c 'import pyspark' 2>/dev/null; then $(BIN)/mypy $(CODE); \
	else $(LEAVE_OUT) "mypy needs the types of Spark: install a Java 17, then run 'make .venv'"; fi

verdicts: .venv  ## show the graphs, conditions and ties that changed (ARGS=all: all), and keep the verdicts: tla/verdicts.json
	$(if $(filter all,$(ARGS)),@rm -f tla/verdicts.json)
	@STABLECAST_VERDICTS=write $(PYTEST) --no-cov -k "graph or condition or tie or agree" $(MODELS)

trace-rows: .venv  ## documented rows that no test shows, groups without a fault (ARGS=--all, --groups, --json)
	@$(BIN)/python -m tools.rows $(ARGS)

mutants: .venv  ## plant faults in core, transports and programs: every one must be found (ARGS=NAME... or --rows)
	@$(BIN)/python -m tools.mutants $(ARGS)
	@$(PYTEST) --no-cov -k fault -m "thorough or not thorough" tests/models

composed: .venv  ## explore one whole system of the core over a million states, as each night (ARGS=--help)
	@$(BIN)/stablecast model composed $(ARGS)

bench: .venv  ## messages per second next to a baseline (ARGS=--help lists the options)
	@$(BIN)/python -m tools.bench $(ARGS)

# The oldest and the newest Python that pyproject.toml declares, apart from the one of .venv; on what needs no extra tool.
VERSIONS := 3.11 3.13
VERSION_TESTS := tests/core tests/transports tests/scenarios tests/adapters/config tests/adapters/store/journal

versions: .venv  ## tests on the oldest and the newest declared Python, where they are installed
	@for version in $(VERSIONS); do \
	    if $(BIN)/python --version | grep -q " $$version\."; then continue; fi; \
	    if ! python$$version -c 'import ensurepip' 2>/dev/null; then \
	        echo "Python $$version is not installed here: only $$($(BIN)/python --version) was tested."; continue; \
	    fi; \
	    python$$version -m venv --clear build/python$$version; \
	    build/python$$version/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'; \
	    build/python$$version/bin/python -m pytest -q -p no:cacheprovider --no-cov $(VERSION_TESTS); \
	done

# The generator and its theme are an extra of their own: tests do without them.
SITE := .venv/.made-for-the-site

$(SITE): $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[site]'
	@touch $@

site: $(SITE)  ## build the handbook and the page that runs the core: build/site/html (ARGS=--pages: without that page)
	@$(BIN)/python -m tools.site $(ARGS)

site-check: site  ## build the site, and click through the page that runs the core with Chromium
	@$(PYTEST) --no-cov -m "thorough or not thorough" tests/tools/site

site-outputs: .venv  ## run the pages of the handbook, and write their outputs anew
	@$(BIN)/python -m tools.site --outputs

soak: .venv  ## all tests, with many more property-test examples
	@$(BIN)/python -m pytest -q --timeout=0 --hypothesis-profile=soak

torture: .venv  ## faults of real processes, judged (ARGS=--help: seeds, plans; needs root)
	@$(BIN)/python -m tools.torture $(ARGS)

fuzz: .venv  ## mutated bytes for every decoder and every reader of files (ARGS=--help: limits, memory; needs atheris)
	@$(BIN)/python -m tools.fuzz $(ARGS)

agreement: .venv  ## one figure: simulated worlds against real processes (ARGS=--help: seeds; needs root)
	@$(BIN)/python -m tools.agreement $(ARGS)

dist: .venv  ## build the wheel and the archive of the sources: dist/ (ARGS=--published: by locked tools, with a list of parts)
	@$(BIN)/python -m tools.release $(ARGS)

release: .venv  ## build them, and use them with the oldest and the newest Python, without and with extras
	@$(BIN)/python -m tools.release --check $(ARGS)

# What builds install: exact versions with hashes, for all platforms from the oldest Python on.
LOCKED := packaging/locked
RESOLVE := $(BIN)/uv pip compile pyproject.toml --quiet --universal --generate-hashes --no-annotate --no-header --python-version 3.11

locked: .venv  ## resolve the dependencies of builds anew: packaging/locked (ARGS=--upgrade: the newest versions)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[release]'
	@$(RESOLVE) $(ARGS) --output-file $(LOCKED)/runtime.txt
	@$(RESOLVE) $(ARGS) --extra release --output-file $(LOCKED)/build.txt

licences: .venv  ## the licence of each library that an installation brings; fails on one that is not allowed
	@$(BIN)/python -m tools.release --licences

newcomers: .venv  ## follow the pages for newcomers from an empty environment, and time it
	@$(BIN)/python -m tools.release --newcomers

evidence: .venv  ## what the guarantees rest on, as a folder: build/evidence (ARGS=--full; --help: parts)
	@$(BIN)/python -m tools.evidence $(ARGS)

clean:  ## remove what builds and tools wrote; .venv stays
	@rm -rf build dist .coverage .coverage.* htmlcov .hypothesis .mypy_cache .pytest_cache .ruff_cache bench.json
	@find $(CODE) -type d -name __pycache__ -prune -exec rm -rf {} +

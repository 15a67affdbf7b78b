# `make demo` and `make test` do all their own set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.ready-to-run
DEV_STAMP := $(VENV)/.ready-to-develop
BENCH_STAMP := $(VENV)/.ready-to-measure
DOCS_STAMP := $(VENV)/.ready-to-document
SOAK_STAMP := $(VENV)/.ready-to-soak
DIST_BIN := $(VENV)/dist/bin
DIST_STAMP := $(VENV)/dist/.ready-to-release
WHOLE_SUITE := $(BIN)/pytest -q -n 4 --dist worksteal -m "not soak" --timing durations.jsonl
CONSTRAINTS ?= constraints.txt
INSTALL := VENV=$(VENV) CONSTRAINTS="$(CONSTRAINTS)" sh scripts/install
CODE := src tests benchmarks examples packs scripts
# Tests start Python a thousand times: what it compiled once is kept, also where the environment says otherwise.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help demo test unit budget live durations attacks lint format bench many soak soak-list serve pictures messages docs dist lock clean clis

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

demo: $(RUN_STAMP) ## a bug becomes a reviewed branch, whatever gets in the way, in under a minute
	@$(BIN)/podium demo

# Each worker takes a stretch of the tests, so that what a file sets up once is set up once, and then helps out.
test: $(DEV_STAMP) clis tests/__pycache__ ## the whole test suite, with the real agent CLIs where Node is
	@rm -f durations.jsonl
	$(WHOLE_SUITE)

unit: $(DEV_STAMP) ## the tests that start no process, in under two minutes
	$(BIN)/pytest -q -n 2 --dist worksteal -m "not soak" tests/unit

budget: $(DEV_STAMP) clis tests/__pycache__ ## the whole suite once, and its CPU by kind as the new tests/budget.json; for an idle machine
	@rm -f durations.jsonl
	$(WHOLE_SUITE) --write-budget

# In a new checkout each worker would prepare every file of tests, at twenty seconds apiece: two do it first, half each.
tests/__pycache__: | $(DEV_STAMP)
	@$(BIN)/pytest -qq --collect-only tests/unit tests/integration/[a-c]*/ >/dev/null & $(BIN)/pytest -qq --collect-only tests/integration/[d-z]*/ >/dev/null; wait

live: $(DEV_STAMP) clis ## every test with the real agent CLIs; `make test` runs a few of each
	$(BIN)/python -m tests.soak_parts live
	sh scripts/live-state > tests/live.state

durations: test ## the whole suite once, then its cost by folder and kind; for an idle machine
	@$(BIN)/python -m tests.timing durations.jsonl

attacks: $(DEV_STAMP) clis ## every attack on the default layout, as an ordinary user and as root, with the counts
	$(BIN)/pytest -q -n 2 -rP tests/integration/attacks -k "not live_where and not layer_is_missing and not weaker_layouts"

soak: $(SOAK_STAMP) clis ## the long counts in parts of at most forty minutes; PART=name or number runs one
	$(BIN)/python -m tests.soak_parts $(or $(PART),all)

soak-list: $(DEV_STAMP) ## what each part of the soak holds, and how long it took last
	@$(BIN)/python -m tests.soak_parts

clis:
	@sh scripts/agent-clis
	@sh scripts/github-description

lint: $(DEV_STAMP) ## formatting, types, import directions
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(DEV_STAMP) ## put the code into shape
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

bench: $(BENCH_STAMP) ## measured ratios against the floor and a peer
	$(BIN)/python -m benchmarks

many: $(BENCH_STAMP) ## the figures of many machines, on a PostgreSQL of their own
	$(BIN)/python -m benchmarks many

serve: $(RUN_STAMP) ## the console of this folder, with a worker beside it, until Ctrl-C
	@$(BIN)/podium serve

pictures: $(DEV_STAMP) ## the pictures of the README, from a real demo and a real console
	$(BIN)/python -m tests.pictures

messages: $(DEV_STAMP) ## every text that a person or an agent can see: file, key, text
	@$(BIN)/python scripts/messages.py

docs: export NO_MKDOCS_2_WARNING = 1
docs: $(DOCS_STAMP) ## the documentation as a site, in site/; any warning is an error
	$(BIN)/mkdocs build --strict --quiet

dist: $(DIST_STAMP) ## wheel, sdist and SBOM in dist/, checked, and the wheel tried in a bare environment; ARGS="--tag v0.2.0"
	@$(DIST_BIN)/python -m scripts.dist $(ARGS)

lock: $(DIST_STAMP) ## constraints.txt anew from pyproject.toml; pins that still fit are kept, but for ARGS=--upgrade
	$(DIST_BIN)/uv pip compile --quiet --universal --python-version 3.11 --custom-compile-command "make lock" --no-annotate --no-emit-package podium \
		--all-extras $(addprefix --group ,bench dev dist docs soak) $(ARGS) --output-file constraints.txt pyproject.toml

clean: ## remove the environment and the caches
	rm -rf $(VENV) site dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@sh scripts/need python git sandbox
	$(PYTHON) -m venv $(VENV)

$(RUN_STAMP): pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(INSTALL) --editable .
	@touch $@

# Compiled before a test imports it: there a warning of the compiler is an error.
$(DEV_STAMP): pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@sh scripts/need postgres tmux chromium
	$(INSTALL) --editable '.[all]' --group dev
	@$(BIN)/python -W ignore -m compileall -qq -j 2 $(VENV)/lib || true # some packages ship files for other versions
	@touch $(RUN_STAMP) $@

$(SOAK_STAMP): pyproject.toml $(CONSTRAINTS) $(DEV_STAMP)
	$(INSTALL) --group docs --group soak
	@touch $(DOCS_STAMP) $@

$(BENCH_STAMP): pyproject.toml $(CONSTRAINTS) $(DEV_STAMP)
	$(INSTALL) --group bench
	@touch $@

$(DOCS_STAMP): pyproject.toml $(CONSTRAINTS) $(RUN_STAMP)
	$(INSTALL) --group docs
	@touch $@

# In an environment of its own: packages that are installed beside Podium change what some of its dependencies load.
$(DIST_STAMP): pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(BIN)/python -m venv $(VENV)/dist
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip --python $(DIST_BIN)/python install --quiet --disable-pip-version-check $(addprefix --constraint ,$(CONSTRAINTS)) --group dist
	@touch $@

# Every target sets up what it needs in .venv; nothing else has to be installed but Python 3.11+, git and make.
PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
# Two for each core: tests wait for other processes about as long as they compute.
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) * 2)))
OFFICIAL := tests/official
WEB := tests/web

.DEFAULT_GOAL := help
.PHONY: help setup clients browser images test check format bench soak run tour lock clean

help: ## Show the targets.
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 12

setup: $(STAMP) ## Make .venv with everything the project needs.

$(STAMP): requirements.lock pyproject.toml
	python="$(PYTHON)"; "$${python:-$$(scripts/pick_python.sh)}" -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

clients: ## Install the official opencode clients for tests/official, if npm can be had.
	@$(OFFICIAL)/install.sh

browser: ## Install what the tests of the web page need, if it can be had: a Chromium and axe-core.
	@$(WEB)/install.sh

test: $(STAMP) clients browser ## Run the whole test suite.
	$(BIN)/python -m pytest -n $(WORKERS)

check: $(STAMP) ## Format, lint, types, layers, documents.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports
	PYTHONPATH=src $(BIN)/python scripts/blocking_stub.py --check
	$(BIN)/python scripts/check_docs.py

format: $(STAMP) ## Format the code and fix what can be fixed.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP) ## Measure speed side by side; prints ratios.
	$(BIN)/python -m bench

soak: $(STAMP) ## The long tests: thousands of crashes and random histories.
	$(BIN)/python -m pytest -n $(WORKERS) -m soak

run: $(STAMP) ## Run the main job: two prompts in a scratch copy of sample/, without a key.
	@$(BIN)/python scripts/demo.py

tour: $(STAMP) ## A tour through a scratch store: sessions made, forked, searched, damaged and diagnosed.
	$(BIN)/python scripts/tour.py

images: $(STAMP) browser ## Take the pictures of the web page and of the terminal for the documents anew.
	for what in web screen chat run undo; do $(BIN)/python scripts/record_$$what.py || exit 1; done

lock: ## Resolve requirements.lock anew (needs uv).
	uv pip compile --quiet --universal --generate-hashes --no-header --group dev pyproject.toml -o requirements.lock

clean: ## Remove what make made.
	rm -rf $(VENV) $(OFFICIAL)/node_modules $(WEB)/node_modules build dist .mypy_cache .ruff_cache .import_linter_cache .hypothesis

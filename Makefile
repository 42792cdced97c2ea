# The verbs: setup run smoke test check bench. Each sets up what it needs; nothing has to be edited first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NAME ?= gateway
RUN_STAMP := $(VENV)/.run-stamp
DEV_STAMP := $(VENV)/.dev-stamp

TRAIN_VENV := .venv-train
TRAIN_STAMP := $(TRAIN_VENV)/.train-stamp
MODEL ?= models/builtin-mini

.PHONY: help setup setup-dev run smoke test check format bench model model-test model-eval lock proto clean

help: ## show the verbs
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Pointsman needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(RUN_STAMP): requirements/run.lock pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/run.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

$(DEV_STAMP): requirements/dev.lock $(RUN_STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	@touch $@

setup: $(RUN_STAMP) ## create .venv with everything that serving needs (CPU)

setup-dev: $(DEV_STAMP) ## the same, with the tools that tests and checks need

run: setup ## Envoy, router, decision model and two sample backends; sends samples, then serves until Ctrl-C
	@$(BIN)/python -m examples.quickstart

smoke: setup ## the same once; exits non-zero if a sample went wrong
	@$(BIN)/python -m examples.quickstart --once

test: setup-dev ## the whole test suite
	$(BIN)/python -m pytest $(ARGS)

check: setup-dev ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup-dev ## let ruff rewrite the layout of the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup-dev ## make bench NAME=gateway [QUICK=1]
	$(BIN)/python -m bench $(NAME) $(if $(QUICK),--quick)

$(TRAIN_STAMP): requirements/run.lock requirements/train.lock
	$(PYTHON) -m venv $(TRAIN_VENV)
	$(TRAIN_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/run.lock
	$(TRAIN_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/train.lock
	@touch $@

# Threads that wait for each other must not spin: the other core may be busy with something else.
model: $(TRAIN_STAMP) ## make model [QUICK=1] [FIRST=DIR]: train the embedded model anew, into var/model
	OMP_WAIT_POLICY=PASSIVE $(TRAIN_VENV)/bin/python -m train model $(if $(QUICK),--quick) $(if $(FIRST),--first $(FIRST)) $(ARGS)

model-test: $(TRAIN_STAMP) ## the tests of the recipe that need PyTorch; `make test` runs the others
	$(TRAIN_VENV)/bin/python -m pytest --confcutdir=tests/with_torch tests/with_torch/*.py

model-eval: setup ## make model-eval [MODEL=DIR] [FIRST=DIR] [QUICK=1]: how good it is on text of others
	$(BIN)/python -m train eval $(MODEL) $(if $(QUICK),--quick) $(if $(FIRST),--first $(FIRST))

lock: setup-dev ## resolve the dependencies of pyproject.toml anew
	$(BIN)/python -m pip install --quiet pip-tools
	$(BIN)/pip-compile -q --strip-extras --extra cpu --extra envoy --generate-hashes --allow-unsafe --no-header \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host -o requirements/run.lock pyproject.toml
	$(BIN)/pip-compile -q --strip-extras --extra cpu --extra envoy --extra dev --extra bench --generate-hashes --allow-unsafe --no-header \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host -c requirements/run.lock -o requirements/dev.lock pyproject.toml

clean: ## remove the environment and caches
	rm -rf $(VENV) $(TRAIN_VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis var build dist *.egg-info

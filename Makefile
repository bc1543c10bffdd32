PYTHON ?= python3
WORKERS ?= 2
ARGS ?=
SEEDS ?= 20000
SEEDS_ON_POSTGRES ?= 500
KILLS ?= 500

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SERVER_STAMP := $(VENV)/.serves
INSTALL := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
    $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

EVERYTHING := server,uvicorn,postgres,spark,test,dev
# Tests that kill hq at each of its calls compile a small library: without a compiler, one comes from PyPI.
comma := ,
COMPILER := $(if $(shell command -v cc),,$(comma)compiler)

.DEFAULT_GOAL := help
.PHONY: help serve dist install constraints format lint check test bench soak mutants explore docs clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

serve: $(SERVER_STAMP) ## Serve ./hq.db at http://127.0.0.1:9999 (ARGS="--port 8080 ...")
	@$(BIN)/hq serve $(ARGS)

install: $(STAMP) ## Create .venv with hq, its tests and its linters, at the pinned versions

# The environment variables pin the build backend too: older pips read the first, newer ones the second.
$(STAMP): pyproject.toml constraints.txt
	@echo "Installing into $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(INSTALL) -e '.[$(EVERYTHING)$(COMPILER)]'
	@touch $(SERVER_STAMP) $@

# Serving needs less than testing.
$(SERVER_STAMP): pyproject.toml constraints.txt
	@echo "Installing into $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(INSTALL) -e '.[server,uvicorn,postgres]'
	@touch $@

constraints: ## Resolve every extra afresh and rewrite constraints.txt
	@rm -rf build/constraints
	@$(PYTHON) -m venv build/constraints
	@build/constraints/bin/python -m pip install --quiet --disable-pip-version-check \
	    -e '.[$(EVERYTHING),compiler]' hatchling editables
	@{ echo "# Everything hq and its extras bring, resolved together by \`make constraints\`."; \
	    build/constraints/bin/python -m pip freeze --exclude-editable; } > build/constraints.txt
	@mv build/constraints.txt constraints.txt
	@rm -rf build/constraints

format: $(STAMP) ## Format the code and fix what ruff can fix
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

lint: $(STAMP) ## Formatting, lint, types, import contracts
	@$(BIN)/ruff format --check --quiet . || { echo "Run make format."; exit 1; }
	@$(BIN)/ruff check --quiet --output-format concise .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

check: lint ## Lint and fast tests, about a minute
	@$(BIN)/pytest -q -n $(WORKERS) -m "not slow"

test: lint ## Everything a release needs: lint and all tests
	@$(BIN)/pytest -q -n $(WORKERS) --dist loadgroup

bench: $(STAMP) ## Measure the rules, embedded systems, workers, HTTP, dialects and Spark (about 45 minutes)
	@$(BIN)/python -P benchmarks/domain.py
	@$(BIN)/python -P benchmarks/embedded.py $(ARGS)
	@$(BIN)/python -P benchmarks/workers.py
	@$(BIN)/python -P benchmarks/postgres.py $(ARGS)
	@$(BIN)/python -P benchmarks/http.py $(ARGS)
	@$(BIN)/python -P benchmarks/dialects.py
	@$(BIN)/python -P benchmarks/pipeline.py

soak: $(STAMP) ## Hours of faults and full-size backlogs (SEEDS=..., SEEDS_ON_POSTGRES=..., KILLS=...)
	@$(BIN)/python -m tests.simulation.world --seeds $(SEEDS)
	@$(BIN)/python -m tests.simulation.on_postgres --seeds $(SEEDS_ON_POSTGRES)
	@$(BIN)/python -m tests.postgres.open_transaction --seconds 600
	@for scenario in blocked_group delayed late_priority many_queues large_payloads; do \
	    echo $$scenario; $(BIN)/python -m tests.scale.scenarios $$scenario || exit 1; done
	@for database in sqlite postgres; do \
	    $(BIN)/python -m tests.faults.kill_loop --kills $(KILLS) --database $$database || exit 1; done
	@for engine in hypercorn uvicorn; do for ending in "" --term; do \
	    $(BIN)/python -m tests.faults.kill_loop --kills $(KILLS) --http $$engine $$ending || exit 1; done; done

mutants: $(STAMP) ## Break the rules one by one and see that a test notices
	@$(BIN)/python -m tests.mutants $(ARGS)

explore: $(STAMP) ## Walk every state of a small world (ARGS="...")
	@$(BIN)/python -m tests.domain.small_world $(ARGS)

docs: $(STAMP) ## Rebuild the generated pages of docs/
	@$(BIN)/python docs/generate.py $(ARGS)

# Wheels of libraries with parts in C are of one system and one version of Python, and so is the file.
dist: $(STAMP) ## One file, dist/hq, that runs hq on machines like this one that have Python and nothing else
	@mkdir -p dist
	@PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
	    $(BIN)/shiv --quiet --python '/usr/bin/env python3' --compressed --console-script hq \
	    --output-file dist/hq '.[server,client,uvicorn,postgres]'
	@echo "dist/hq"

clean: ## Remove .venv and everything the tools leave behind
	@rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

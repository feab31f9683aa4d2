# Every target sets itself up: a fresh clone and Python 3.11 or newer are enough.

VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# The first Python that this project supports; `make PYTHON=python3.13 …` chooses another.
PYTHON ?= $(shell for name in python3 python3.11 python3.12 python3.13 python; do \
	"$$name" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' >/dev/null 2>&1 && { echo "$$name"; break; }; done)

COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --no-annotate --custom-compile-command 'make lock'

# Every program that the tests and the demo start would otherwise compile all of its modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test loadtest faults check lint types imports config lock clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo      three simulated engines and the gateway, with examples to try (Ctrl-C ends it)'
	@echo 'make test      the whole suite, with a real vLLM and client libraries; ARGS="-k name" chooses tests'
	@echo 'make loadtest  loads simulated engines, with and without the gateway; the report is in build/loadtest'
	@echo 'make faults    lets engines fail under load, for a quarter of an hour; make faults ARGS=--short for a minute or two'
	@echo 'make check     ruff, mypy, import contracts'
	@echo 'make config    writes anew what is made of settings: JSON Schema, reference, engines in docker-compose.yml'
	@echo 'make lock      renews requirements/*.lock from pyproject.toml and requirements/*.in'
	@echo 'make clean     removes the environments and caches'

setup: $(READY)

$(READY): requirements/dev.lock requirements/tools.lock pyproject.toml requirements/setup.sh
	@sh requirements/setup.sh '$(PYTHON)' '$(VENV)'
	@touch $@

demo: $(READY)
	@$(BIN)/turnout demo

test: $(READY)
	@$(BIN)/python -m $(if $(ARGS),pytest $(ARGS),tests.run)

loadtest: $(READY)
	@$(BIN)/python -m loadtests $(ARGS)

faults: $(READY)
	@$(BIN)/python -m loadtests.faults $(ARGS)

check: lint types imports

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

# What a test compares with the settings.
ENGINE := $(BIN)/turnout engines
config: $(READY)
	$(BIN)/turnout check --schema >config/turnout.schema.json
	$(BIN)/turnout check --reference >config/turnout.reference.yaml
	$(ENGINE) compose vllm --config config/compose/cpu.yaml --into docker-compose.yml
	for name in vllm trtllm triton; do \
		$(ENGINE) compose $$name --config config/compose/gpu.yaml --into docker-compose.yml || exit 1; done
	$(ENGINE) settings --markdown >docs/launch.md
	$(ENGINE) command trtllm --settings --config config/compose/gpu.yaml >config/engines/trtllm.yaml
	$(ENGINE) repository triton --config config/compose/gpu.yaml --out config/engines/triton --force

# UPGRADE=--upgrade takes newer releases; without it, only what pyproject.toml asks for changes.
lock: $(READY)
	$(COMPILE) $(UPGRADE) pyproject.toml --output-file requirements/runtime.lock
	$(COMPILE) $(UPGRADE) pyproject.toml --group dev --constraints requirements/runtime.lock \
		--output-file requirements/dev.lock
	$(COMPILE) $(UPGRADE) --group tools --constraints requirements/dev.lock --output-file requirements/tools.lock
	$(COMPILE) $(UPGRADE) requirements/clients.in --output-file requirements/clients.lock
	$(COMPILE) $(UPGRADE) requirements/clients-llama-index.in --output-file requirements/clients-llama-index.lock
	$(BIN)/python -m tests.clients.install --lock

clean:
	rm -rf tests/clients/node/node_modules .venv .venvs .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

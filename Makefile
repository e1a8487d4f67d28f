# Everything runs in .venv, which `make install` builds; nothing has to be active or installed before
# but a Python. Where packages come from is the business of the environment's own pip configuration.

.DEFAULT_GOAL := help
.PHONY: help install demo kafka kafka-nodes quick test check format-check lint types imports tidy slow nightly bench clean
SHELL := /bin/bash
.DELETE_ON_ERROR:

# An active environment must not leak into ours.
unexport PYTHONPATH
unexport PYTHONHOME
unexport VIRTUAL_ENV

PYTHON ?=
ARGS ?=
# Tests of one folder: `make test T=broker/partition`.
T ?=
# In how many processes tests run: one more than there are cores, because tests also wait.
# 0 is one process, that of pytest itself, which a debugger needs.
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1)))
BIN := .venv/bin
# Tests of one file stay together, in their order: what they share is made once (tests/conftest.py).
PYTEST := $(BIN)/python -m pytest -q -n $(WORKERS) --maxprocesses 8 --dist loadfile $(if $(T),tests/$(T))
# Scripts and the editable install name the checkout's place, so a moved checkout installs again.
STAMP := .venv/installed-$(shell pwd -P | cksum | cut -d' ' -f1)

help:  ## show the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP)  ## build .venv and install Ottla with its development tools

$(STAMP): pyproject.toml
	@python=""; \
	for candidate in $(if $(PYTHON),"$(PYTHON)",python3 python3.13 python3.12 python3.11 python3.14 python); do \
	  if "$$candidate" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null </dev/null; \
	  then python="$$candidate"; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "make: need Python 3.11 or newer with venv; install one or name it: make install PYTHON=/path/to/python3" >&2; \
	  exit 1; \
	fi; \
	"$$python" -m venv --clear .venv
	$(BIN)/python -m pip --disable-pip-version-check --no-input install --quiet -e '.[dev]'
	@touch $@

demo: install  ## show Ottla at work: real clients while leaders die, then a small study of what acks lose
	$(BIN)/ottla demo $(ARGS)
	@rm -rf out/study-acks
	$(BIN)/ottla study run acks --seeds 3 --jobs 2 --out out/study-acks

kafka: install  ## start Apache Kafka to compare with, until Ctrl-C (ARGS="--version 3.9.1"; needs Java 17, Maven)
	$(BIN)/python tests/lib/compare_kafka.py $(ARGS)

kafka-nodes: install  ## play cases with several nodes to three brokers of Apache Kafka (ARGS="--version 3.9.1"; minutes)
	$(BIN)/python tests/lib/compare_kafka_nodes.py $(ARGS)

quick: install  ## run the tests of raft, idempotency, log and broker: short searches, no real clients
	OTTLA_SHORT_SEARCHES=1 $(PYTEST) -m "not slow and not nightly and not clients" $(addprefix tests/,raft idempotency log broker) $(ARGS)

test: install  ## run the quick test suite (T=broker/partition for a folder, ARGS="-k name" to choose)
	$(PYTEST) -m "not slow and not nightly" $(ARGS)

check: format-check lint types imports tidy  ## format, lint, types, import contracts, limits of the house

format-check: install
	$(BIN)/ruff format --check .

lint: install
	$(BIN)/ruff check .

types: install
	$(BIN)/mypy

imports: install
	$(BIN)/lint-imports

tidy: install
	$(BIN)/python -m pytest -q -m "not slow and not nightly" tests/tidy

slow: install  ## run the tests that take seconds or build packages
	$(PYTEST) -m "slow and not nightly" $(ARGS)

nightly: install  ## run the tests that take minutes: clusters of Spark, 1,000 seeds, 20,000 damages
	$(PYTEST) -m nightly --timeout 0 $(ARGS)

bench: install  ## measure
	$(BIN)/python tests/bench/run.py $(ARGS)

clean:  ## remove .venv, caches and reports
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage out dist build
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

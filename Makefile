PYTHON ?= python

.PHONY: check fuzz bench

check:
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	$(PYTHON) -m pytest -q tests/test_layers.py
	$(PYTHON) -m pytest -q

# the property tests at length: twenty times the examples
fuzz:
	$(PYTHON) -m pytest -q --hypothesis-profile=long -m hypothesis tests

bench:
	$(PYTHON) -m benchmarks.embedded
	$(PYTHON) -m benchmarks.endpoint
	$(PYTHON) -m benchmarks.memory

PYTHON ?= python

.PHONY: check bench

check:
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	$(PYTHON) -m pytest -q tests/test_layers.py
	$(PYTHON) -m pytest -q

bench:
	$(PYTHON) -m benchmarks.embedded
	$(PYTHON) -m benchmarks.endpoint
	$(PYTHON) -m benchmarks.memory

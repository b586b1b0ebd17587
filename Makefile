PYTHON ?= python

.PHONY: check bench

check:
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	$(PYTHON) -m pytest -q tests/test_layers.py
	$(PYTHON) -m pytest -q

bench:
	for benchmark in benchmarks/[a-z]*.py; do $(PYTHON) $$benchmark || exit 1; done

"""Benchmarks: `python -m benchmarks`. See docs/benchmarks/."""

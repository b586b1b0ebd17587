"""Benchmarks: `python -m benchmarks.embedded`, `.endpoint`, `.memory`. See docs/benchmarks.md."""

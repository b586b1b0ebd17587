"""Maintains solutions as the quads of windows change, without evaluating the whole query again.

Incremental view maintenance: `planner.py` selects the queries, and docs/decisions/098-windows-by-difference.md explains
why the solutions are those of the engine. No times or bounds of windows here, and no I/O.
"""

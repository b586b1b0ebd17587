"""Solutions that change with the quads of windows, without asking the whole query again.

Incremental view maintenance: `planner.py` decides which queries, and docs/decisions/098-windows-by-difference.md why
the solutions are those of the engine. Times and bounds of windows are not known here, and there is no I/O.
"""

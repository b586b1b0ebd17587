"""The embedded engine: asks a `pyoxigraph.Store` and returns solutions; the only place that does.

`query.py` asks, `writing.py` writes solutions into pipes, and `pipes.py` reads them. Knows no files, no sources and no
windows.
"""

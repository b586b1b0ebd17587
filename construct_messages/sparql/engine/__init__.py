"""The embedded engine: evaluates queries over a `pyoxigraph.Store` and returns solutions.

`query.py` evaluates, `query.py` writes solutions into pipes, and `query.py` reads them. No files, no sources and no
windows here.
"""

"""The embedded engine: evaluates queries over a `pyoxigraph.Store` and returns solutions.

`query.py` evaluates, `writing.py` writes solutions into pipes, and `pipes.py` reads them. No files, no sources and no
windows here.
"""

"""HTTP for everything that sends requests: URLs, headers, retries, time limits, failures, and both clients.

Knows no SPARQL and no solutions, and of streams only the names in `wire.py`.
"""

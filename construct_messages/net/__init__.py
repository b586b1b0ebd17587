"""HTTP for everything that sends requests: URLs, headers, retries, time limits, failures, and both clients.

Knows no SPARQL, no solutions and no streams.
"""

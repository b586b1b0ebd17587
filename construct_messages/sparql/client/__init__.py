"""HTTP for all code that sends requests: URLs, headers, retries, time limits, failures, and both clients.

No SPARQL and no solutions here, and of streams only the names in `rdf/wire.py`.
"""

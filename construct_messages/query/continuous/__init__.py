"""Continuous queries as text: RSP-QL, C-SPARQL and CQELS in, windows and plain SPARQL out. No engine, no clock."""

"""Parses continuous queries (RSP-QL, C-SPARQL and CQELS) into windows and plain SPARQL. No engine, no clock."""

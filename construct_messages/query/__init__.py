"""Parses SPARQL query text and returns rewritten text and a template. No I/O, no solutions."""

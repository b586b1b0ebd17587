"""SPARQL query text in, rewritten text and template out. No I/O, no solutions."""

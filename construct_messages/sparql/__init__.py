"""SPARQL: clients of endpoints, results, sources, the embedded engine, and child processes."""

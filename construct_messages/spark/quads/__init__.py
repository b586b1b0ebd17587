"""RDF files as tables of quads."""

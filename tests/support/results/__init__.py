"""SPARQL results documents, valid and hostile."""

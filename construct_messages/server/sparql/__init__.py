"""SPARQL endpoints: SPARQL 1.1 Protocol and Service Description."""

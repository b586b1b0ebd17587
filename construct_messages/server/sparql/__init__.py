"""SPARQL endpoints: the protocol, the description, and what answers. SPARQL 1.1 Protocol and Service Description."""

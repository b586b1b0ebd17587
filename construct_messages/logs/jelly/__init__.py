"""Jelly logs: one stream frame is one message. The wire, the lookup tables, and encoder and decoder over them.

Jelly 1.1 (https://w3id.org/jelly/1.1.x/specification/serialization), RDF Messages section 3. No I/O.
"""

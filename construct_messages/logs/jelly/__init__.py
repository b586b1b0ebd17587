"""Jelly logs: one stream frame is one message. Wire format, lookup tables, encoder and decoder.

Jelly 1.1 (https://w3id.org/jelly/1.1.x/specification/serialization), RDF Messages section 3. No I/O.
"""

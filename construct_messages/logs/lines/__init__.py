"""N-Triples and N-Quads logs. RDF Messages, section 3; RDF 1.2 N-Triples and N-Quads. No I/O."""

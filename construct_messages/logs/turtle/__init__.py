"""Turtle and TriG logs. RDF Messages, section 3; RDF 1.2 Turtle and TriG. No I/O."""

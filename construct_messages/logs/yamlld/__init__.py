"""YAML-LD logs. RDF Messages, section 3; YAML-LD 1.0. No I/O."""

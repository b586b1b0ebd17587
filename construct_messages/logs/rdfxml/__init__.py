"""RDF/XML logs. RDF Messages, section 3; RDF 1.1 XML Syntax. No I/O."""

"""Converts RDF/XML documents to N-Triples, for all readers of RDF/XML.

`parser.py` parses XML, limits its cost, and makes a file of N-Triples of a document, `productions.py` has the grammar
of RDF/XML, `productions.py` writes the content of XML literals. pyoxigraph parses the output, and checks IRIs and
language tags strictly; its own reader of RDF/XML loses statements without an error
(tests/support/engines/upstream-reports.md). No file is opened here.

RDF 1.2 XML Syntax (https://www.w3.org/TR/rdf12-xml/).
"""

from construct_messages.logs.rdfxml.parser import (
    DocumentLimits,
    NTriplesFile,
    RdfXmlError,
    RdfXmlParser,
)

__all__ = ["DocumentLimits", "NTriplesFile", "RdfXmlError", "RdfXmlParser"]

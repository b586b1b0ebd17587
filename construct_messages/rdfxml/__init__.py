"""RDF/XML documents as N-Triples: everything that reads RDF/XML reads it here.

`parser.py` reads XML and bounds what it may cost, `productions.py` holds the grammar of RDF/XML, `canonical.py` writes
the content of XML literals, `files.py` is a document as a file of N-Triples. What comes out is parsed by pyoxigraph,
which knows IRIs and language tags to the letter; its own reader of RDF/XML loses statements without an error, see
docs/decisions/064-reading-rdf-xml.md. RDF 1.2 XML Syntax (https://www.w3.org/TR/rdf12-xml/). No file is opened here.
"""

from construct_messages.rdfxml.files import NTriplesFile
from construct_messages.rdfxml.parser import DocumentLimits, RdfXmlError, RdfXmlParser

__all__ = ["DocumentLimits", "NTriplesFile", "RdfXmlError", "RdfXmlParser"]

"""RDF terms: a term **is** its canonical N-Triples string.

`canonical.py` makes and reads them, `grammar.py` has their escapes, `wellformed.py` checks IRIs and language tags,
`canonical.py` resolves relative IRIs, `libraries.py` has terms of pyoxigraph and rdflib, `values.py` has those of
callers. `natives.py` has values of Python. No I/O here, and nothing about queries, messages or logs.
"""

from construct_messages.rdf.terms.canonical import (
    FORBIDDEN,
    UNBOUND,
    Term,
    blank,
    iri,
    literal,
    resolve,
    triple,
)
from construct_messages.rdf.terms.grammar import (
    ASCII_CHARS,
    BLANK_LABEL,
    NEEDS_ESCAPE,
    OTHER_CHARS,
    PN_BASE,
    PN_CHARS,
    RDF,
    USUAL_ASCII_IRI,
    USUAL_IRI,
    USUAL_LANGUAGE,
    XSD,
    escape,
    unescape,
)
from construct_messages.rdf.terms.libraries import (
    OxTerm,
    from_pyoxigraph,
    from_rdflib,
    to_pyoxigraph,
    to_rdflib,
)
from construct_messages.rdf.terms.parsing import TERM_HINT, boolean, number, parse_term
from construct_messages.rdf.terms.parts import (
    has_blank,
    is_blank,
    is_literal,
    is_triple,
    literal_parts,
    map_blanks,
    nesting,
    triple_parts,
)
from construct_messages.rdf.terms.values import as_term, to_python
from construct_messages.rdf.terms.wellformed import (
    UNREADABLE,
    Lenience,
    Lenient,
    is_iri,
    is_language,
)

__all__ = [
    "ASCII_CHARS",
    "BLANK_LABEL",
    "FORBIDDEN",
    "NEEDS_ESCAPE",
    "OTHER_CHARS",
    "PN_BASE",
    "PN_CHARS",
    "RDF",
    "TERM_HINT",
    "UNBOUND",
    "UNREADABLE",
    "USUAL_ASCII_IRI",
    "USUAL_IRI",
    "USUAL_LANGUAGE",
    "XSD",
    "Lenience",
    "Lenient",
    "OxTerm",
    "Term",
    "as_term",
    "blank",
    "boolean",
    "escape",
    "from_pyoxigraph",
    "from_rdflib",
    "has_blank",
    "iri",
    "is_blank",
    "is_iri",
    "is_language",
    "is_literal",
    "is_triple",
    "literal",
    "literal_parts",
    "map_blanks",
    "nesting",
    "number",
    "parse_term",
    "resolve",
    "to_pyoxigraph",
    "to_python",
    "to_rdflib",
    "triple",
    "triple_parts",
    "unescape",
]

"""Converts terms of pyoxigraph and rdflib to terms, and back, for the public interface."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyoxigraph as ox

from construct_messages.rdf.errors import TermError
from construct_messages.rdf.terms.canonical import Term, blank, iri, literal, triple
from construct_messages.rdf.terms.parsing import TERM_HINT
from construct_messages.rdf.terms.parts import (
    is_blank,
    is_literal,
    is_triple,
    literal_parts,
    triple_parts,
)
from construct_messages.rdf.terms.wellformed import Lenience

OxTerm: TypeAlias = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple


def from_pyoxigraph(term: OxTerm, scope: str = "", lenience: Lenience | None = None) -> Term:
    """Converts a pyoxigraph term, whose `str()` is canonical N-Triples already. `term`: a term that pyoxigraph has
    checked, unless it was lenient. `lenience`: for a term that was parsed leniently, which is then checked here; see
    `iri`.

    >>> from_pyoxigraph(ox.Literal(1))
    '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    """
    if isinstance(term, ox.BlankNode):
        return blank(term.value, scope)
    if isinstance(term, ox.Triple):
        subject, predicate, object = (from_pyoxigraph(part, scope, lenience) for part in term)
        return triple(subject, predicate, object)
    if lenience is None:
        return Term(str(term))
    if isinstance(term, ox.NamedNode):
        return iri(term.value, lenience=lenience)
    if term.language:
        direction = term.direction and str(term.direction)
        return literal(term.value, language=term.language, direction=direction, lenience=lenience)
    return literal(term.value, datatype=term.datatype.value, lenience=lenience)


def to_pyoxigraph(term: Term) -> OxTerm:
    """Converts a term to a pyoxigraph object.

    >>> to_pyoxigraph(iri("urn:x"))
    <NamedNode value=urn:x>
    """
    if not isinstance(term, str):  # of a quad that a caller made
        raise TermError(f"{term!r} is no term", hint=TERM_HINT)
    try:
        if is_blank(term):
            return ox.BlankNode(term[2:])
        if is_literal(term):
            value, datatype, language, direction = literal_parts(term)
            if language:
                return ox.Literal(
                    value,
                    language=language,
                    direction=ox.BaseDirection(direction) if direction else None,
                )
            return ox.Literal(value, datatype=ox.NamedNode(datatype) if datatype else None)
        if is_triple(term):
            subject, predicate, object = (to_pyoxigraph(part) for part in triple_parts(term))
            # pyoxigraph checks the kinds of the parts itself
            return ox.Triple(subject, predicate, object)  # type: ignore[arg-type]
        return ox.NamedNode(_iri_of(term))
    except TermError:
        raise
    except (ValueError, TypeError) as error:
        raise TermError(f"{term} is no term for pyoxigraph: {error}", hint=TERM_HINT) from error


def _iri_of(term: Term) -> str:
    if not (term.startswith("<") and term.endswith(">")):
        raise TermError(f"{term!r} is not an RDF term", hint=TERM_HINT)
    return term[1:-1]


def from_rdflib(term: Any, scope: str = "", lenience: Lenience | None = None) -> Term:
    """Converts an rdflib term; `scope` and `lenience` as for `parse_term`.

    >>> import rdflib
    >>> from_rdflib(rdflib.Literal("chat", lang="fr"))
    '"chat"@fr'
    """
    import rdflib

    if isinstance(term, rdflib.URIRef):
        return iri(str(term), encode=True, lenience=lenience)
    if isinstance(term, rdflib.Literal):
        datatype = str(term.datatype) if term.datatype else None
        return literal(str(term), datatype=datatype, language=term.language, lenience=lenience)
    if isinstance(term, rdflib.BNode):
        return blank(str(term), scope)
    raise TermError(f"rdflib's {type(term).__name__} {term!r} is not an RDF term")


def to_rdflib(term: Term) -> Any:
    """Converts a term to an rdflib object (`rdflib.term.Identifier`).

    >>> to_rdflib(Term('"7"^^<http://www.w3.org/2001/XMLSchema#integer>'))
    rdflib.term.Literal('7', datatype=rdflib.term.URIRef('http://www.w3.org/2001/XMLSchema#integer'))
    """
    import rdflib

    if is_blank(term):
        return rdflib.BNode(term[2:])
    if is_literal(term):
        value, datatype, language, direction = literal_parts(term)
        if direction:
            raise TermError(
                f"rdflib has no literals with a base direction: {term}", hint="use to_pyoxigraph()"
            )
        # normalize=False: rdflib would rewrite "01" to "1"
        return rdflib.Literal(
            value,
            lang=language,
            datatype=rdflib.URIRef(datatype) if datatype else None,
            normalize=False,
        )
    if is_triple(term):
        raise TermError(f"rdflib has no triple terms: {term}", hint="use to_pyoxigraph()")
    return rdflib.URIRef(_iri_of(term))

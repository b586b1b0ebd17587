"""The kinds and parts of canonical terms.

RDF 1.2 N-Triples, canonical form (https://www.w3.org/TR/rdf12-n-triples/#canonical-ntriples). `parsing.py` parses terms
of other forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from construct_messages.rdf.errors import TermError
from construct_messages.rdf.terms.canonical import Term, triple
from construct_messages.rdf.terms.grammar import unescape


def is_blank(term: Term) -> bool:
    """Whether the term is a blank node; one inside a triple term does not count (see `has_blank`)."""
    return term.startswith("_:")


def is_literal(term: Term) -> bool:
    return term.startswith('"')


def is_triple(term: Term) -> bool:
    return term.startswith("<<(")


def has_blank(term: Term, label: str = "") -> bool:
    """Whether the term is, or holds at any depth, a blank node whose label begins with `label`.

    >>> from construct_messages.rdf.terms import parse_term
    >>> nested = parse_term('<<( <urn:s> <urn:p> _:b )>>')
    >>> has_blank(nested), has_blank(nested, "b"), has_blank(nested, "t")
    (True, True, False)
    """
    if is_triple(term):
        return any(has_blank(part, label) for part in triple_parts(term))
    return term.startswith(f"_:{label}")


# In canonical terms a token ends at its closing character; spaces only occur between tokens.
_PART: Final = re.compile(r'<<\(|\)>>|<[^>]*>|_:[^ ]+|"(?:[^"\\]|\\.)*+"(?:@[^ ]+|\^\^<[^>]*>)?')


def triple_parts(term: Term) -> tuple[Term, Term, Term]:
    """Returns subject, predicate and object of a triple term.

    >>> from construct_messages.rdf.terms import parse_term
    >>> triple_parts(parse_term('<<( <urn:s> <urn:p> <<( <urn:s> <urn:p> "x y" )>> )>>'))
    ('<urn:s>', '<urn:p>', '<<( <urn:s> <urn:p> "x y" )>>')
    """
    parts: list[Term] = []
    depth = start = 0
    for match in _PART.finditer(term, 3, len(term) - 3):
        token = match.group()
        if token == "<<(":
            if depth == 0:
                start = match.start()
            depth += 1
        elif token == ")>>":
            depth -= 1
            if depth == 0:
                parts.append(Term(term[start : match.end()]))
        elif depth == 0:
            parts.append(Term(token))
    subject, predicate, object = parts
    return subject, predicate, object


def nesting(text: str) -> int:
    """Returns the depth of nested triple terms in a term or in a line of N-Triples or N-Quads.

    >>> nesting('<<( <urn:s> <urn:p> <<( <urn:s> <urn:p> "<<(" )>> )>>')
    2
    """
    deepest = depth = 0
    for match in _PART.finditer(text):
        if match.group() == "<<(":
            depth += 1
            deepest = max(deepest, depth)
        elif match.group() == ")>>":
            depth -= 1
    return deepest


def map_blanks(term: Term, change: Callable[[Term], Term]) -> Term:
    """Returns the term with every blank node in it, at any depth, replaced by `change(blank node)`.

    >>> from construct_messages.rdf.terms import iri, parse_term
    >>> map_blanks(parse_term('<<( _:a <urn:p> "_:a" )>>'), lambda b: iri("urn:" + b[2:]))
    '<<( <urn:a> <urn:p> "_:a" )>>'
    """
    if is_blank(term):
        return change(term)
    if is_triple(term):
        subject, predicate, object = triple_parts(term)
        return triple(
            map_blanks(subject, change), predicate, map_blanks(object, change), generalized=True
        )
    return term


_LITERAL: Final = re.compile(
    r'"((?:[^"\\]|\\.)*+)"(?:@([a-z0-9\-]+?)(?:--(ltr|rtl))?|\^\^<([^>]*)>)?', re.DOTALL
)


def literal_parts(term: Term) -> tuple[str, str | None, str | None, str | None]:
    """Returns value, datatype IRI, language tag and base direction of a literal; absent parts are None.

    >>> from construct_messages.rdf.terms import literal, number
    >>> literal_parts(literal("chat", language="fr")), literal_parts(number("7"))[1]
    (('chat', None, 'fr', None), 'http://www.w3.org/2001/XMLSchema#integer')
    """
    match = _LITERAL.fullmatch(term)
    if match is None:
        raise TermError(f"{term!r} is not a literal")
    value, language, direction, datatype = match.groups()
    return unescape(value), datatype, language, direction

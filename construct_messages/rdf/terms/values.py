"""Converts values of Python, pyoxigraph and rdflib to terms, and terms to values of Python."""

from __future__ import annotations

from typing import Any

import pyoxigraph as ox

from construct_messages.rdf.errors import TermError, UsageError, shown
from construct_messages.rdf.terms.canonical import Term, literal
from construct_messages.rdf.terms.libraries import from_pyoxigraph, from_rdflib
from construct_messages.rdf.terms.natives import form_of, native
from construct_messages.rdf.terms.parsing import parse_term
from construct_messages.rdf.terms.parts import is_literal, is_triple, literal_parts, triple_parts


def as_term(value: object) -> Term:
    """Converts a value of a caller to a term.

    Args:
        value: N-Triples text, a term of pyoxigraph or rdflib, or a plain value of Python. A `str` is always N-Triples:
            `"42"` is an integer, `'"42"'` a string. A number, boolean, date, time or duration becomes a literal of its
            datatype.

    Raises:
        TermError: the text is not a term.
        UsageError: another type.

    >>> as_term("42") == as_term(ox.Literal(42)) == as_term(42)
    True
    >>> as_term(0.5)
    '"0.5"^^<http://www.w3.org/2001/XMLSchema#double>'
    """
    if isinstance(value, (ox.NamedNode, ox.BlankNode, ox.Literal, ox.Triple)):
        return parse_term(from_pyoxigraph(value))  # it may have been parsed leniently
    if isinstance(value, str) and not _is_rdflib(value):
        return parse_term(value)
    if _is_rdflib(value):
        return from_rdflib(value)
    if form_of(value) is not None:
        return literal(value)
    raise UsageError(
        f"{value!r} is no term",
        hint='write it as in N-Triples: "<http://…>", \'"text"@en\' or "42"',
    )


def to_python(term: Term) -> Any:
    """Returns the value of a term.

    Args:
        term: an IRI, a literal, a blank node or a triple term.

    Returns:
        The characters of an IRI; the result of `natives.native` for a literal; the label of a blank node, with `_:`; a
            tuple of three values for a triple term. `literal_parts` has language and datatype.

    Raises:
        TermError: the literal has no value of its datatype, or one that Python's type cannot represent.

    >>> to_python(literal(5)), to_python(Term("<urn:x>")), to_python(literal("chat", language="fr"))
    (5, 'urn:x', 'chat')
    """
    if is_triple(term):
        return tuple(map(to_python, triple_parts(term)))
    if not is_literal(term):
        return term[1:-1] if term.startswith("<") else str(term)
    lexical, datatype, _, _ = literal_parts(term)
    try:
        return native(lexical, datatype)
    except (ValueError, OverflowError) as error:
        raise TermError(
            f"{shown(term)} has no value in Python: {error}",
            hint="use the characters: literal_parts(term)[0]",
        ) from error


def _is_rdflib(value: object) -> bool:
    # without importing rdflib, which is slow to import
    return any(kind.__module__ == "rdflib.term" for kind in type(value).__mro__)

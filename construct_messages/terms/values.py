"""Terms from values of Python, of pyoxigraph and of rdflib, as callers pass them."""

from __future__ import annotations

import pyoxigraph as ox

from construct_messages.errors import UsageError
from construct_messages.terms.canonical import Term, parse_term
from construct_messages.terms.libraries import from_pyoxigraph, from_rdflib


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
    if isinstance(value, (bool, float)):
        return from_pyoxigraph(ox.Literal(value))
    if _is_plain(value):
        import rdflib  # which knows the lexical forms; slow to import

        return from_rdflib(rdflib.Literal(value))
    if _is_rdflib(value):
        return from_rdflib(value)
    raise UsageError(
        f"{value!r} is no term",
        hint='write it as in N-Triples: "<http://…>", \'"text"@en\' or "42"',
    )


def _is_plain(value: object) -> bool:
    from datetime import (
        date,
        time,
        timedelta,
    )  # a datetime is a date; most queries do without all of them
    from decimal import Decimal

    return isinstance(value, (int, date, time, timedelta)) or (
        isinstance(value, Decimal) and value.is_finite()
    )


def _is_rdflib(value: object) -> bool:
    # without importing rdflib, which is slow to import
    return any(kind.__module__ == "rdflib.term" for kind in type(value).__mro__)

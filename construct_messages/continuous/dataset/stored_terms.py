"""Converts quads to the form in which a store of pyoxigraph returns them, so that equal ones can be recognised.

Oxigraph stores values of the types of XML Schema: `01` and `1` are one integer, and removing one removes the other.
"""

from __future__ import annotations

import re
from typing import Final

import pyoxigraph as ox

from construct_messages.rdf.terms import XSD, OxTerm

_REMEMBERED: Final = 10_000

_SUBJECT: Final = ox.NamedNode("urn:s")
_PREDICATE: Final = ox.NamedNode("urn:p")

_FRACTION: Final = r"(?:0|-?[1-9][0-9]{0,9}|-?(?:0|[1-9][0-9]{0,5})\.[0-9]{0,4}[1-9])"
_MONTH: Final = (
    r"(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31"
)
_TIME: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{0,5}[1-9])?"
PLAIN_FORMS: Final = {
    "integer": r"0|-?[1-9][0-9]{0,17}",
    "decimal": _FRACTION,
    "double": _FRACTION,
    "dateTime": f"[1-9][0-9]{{3}}-(?:{_MONTH})T{_TIME}Z",
    "boolean": "true|false",
}
"""Common lexical forms that are stored unchanged, by the name of their XML Schema datatype."""

_SAME: Final = {
    f"{XSD}string": re.compile(""),
    **{f"{XSD}{name}": re.compile(form) for name, form in PLAIN_FORMS.items()},
}


def is_plain(text: str, name: str) -> bool:
    """Whether a text is one of those forms.

    >>> is_plain("12", "integer"), is_plain("012", "integer")
    (True, False)
    """
    return _SAME[f"{XSD}{name}"].fullmatch(text) is not None


class StoredTerms:
    """Converts terms to those that a store returns.

    >>> terms = StoredTerms()
    >>> terms.term(ox.Literal("01", datatype=ox.NamedNode(f"{XSD}integer"))) == ox.Literal(1)
    True
    """

    def __init__(self) -> None:
        self._known: dict[OxTerm, OxTerm] = {}

    def quad(self, quad: ox.Quad) -> ox.Quad:
        """Returns a quad as a store returns it."""
        object = quad.object
        if isinstance(object, (ox.NamedNode, ox.BlankNode)):
            return quad
        stored = self.term(object)
        return (
            quad
            if stored is object
            else ox.Quad(quad.subject, quad.predicate, stored, quad.graph_name)
        )

    def term(self, term: OxTerm) -> OxTerm:
        """Returns the object of a quad as a store returns it; the same Python object if it is equal."""
        if isinstance(term, ox.Literal):
            datatype = term.datatype.value
            if not datatype.startswith(XSD):
                return term
            same = _SAME.get(datatype)
            if same is not None and (not same.pattern or same.fullmatch(term.value)):
                return term
        known = self._known.get(term)
        if known is None:
            store = ox.Store()  # a new store each time, as it would keep removed quads
            store.add(ox.Quad(_SUBJECT, _PREDICATE, term))
            ((_, _, known, _),) = store
            if len(self._known) == _REMEMBERED:
                self._known.clear()
            self._known[term] = known
        return known

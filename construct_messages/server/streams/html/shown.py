"""Terms as views show them: IRIs shortened with common prefixes, plain numbers and dates, short names of blank nodes.

The page shows terms in the same way (`pages/static/term-view.js`), with the same prefixes. Everything is limited, and
omissions are counted. No HTML here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from construct_messages.rdf.terms import (
    RDF,
    XSD,
    Term,
    is_blank,
    is_literal,
    is_triple,
    literal_parts,
    triple_parts,
)
from construct_messages.server.pages.files import static_files
from construct_messages.server.streams.html.marks import Piece, pieces

Href = Callable[[str], str | None]
"""Returns the link target of an IRI; None: no link."""

_TYPE: Final = f"{RDF}type"
_MOST_CHARACTERS: Final = 2000
_DEEPEST: Final = 12

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_ZONE: Final = r"(?:Z|[+-][0-9]{2}:[0-9]{2})?"
_TIME: Final = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
_DATE: Final = re.compile(
    rf"-?[0-9]{{4,}}(?:-[0-9]{{2}}(?:-[0-9]{{2}}(?:T{_TIME})?)?)?{_ZONE}|{_TIME}{_ZONE}"
)
_TRUTH: Final = re.compile("true|false")
_VALUES: Final[Mapping[str, tuple[str, re.Pattern[str]]]] = {
    **{f"{XSD}{name}": ("number", _NUMBER) for name in ("integer", "decimal", "double")},
    **{
        f"{XSD}{name}": ("date", _DATE)
        for name in ("date", "dateTime", "dateTimeStamp", "gYear", "gYearMonth", "time")
    },
    f"{XSD}boolean": ("truth", _TRUTH),
}
_IMPLIED: Final = (None, f"{XSD}string")
_LOCAL: Final = re.compile(r"(?:\w[\w.:%(),'!*&+;=~@$-]*)?")


class Shown(NamedTuple):
    """A term in the form that is shown.

    Args:
        kind: `iri`, `blank`, `literal` or `triple`; `number`, `date` or `truth` for a literal that is shown as one.
        text: the IRI, shortened if it has a known prefix; the characters of a literal; the name of a blank node on the
            page.
        title: the whole IRI, the whole label of a blank node, or the datatype of a number, a date or a truth value.
        href: its link target; None: no link.
        language, direction: the language and direction of a literal.
        datatype: the datatype of a literal, unless it is implied.
        omitted: the number of omitted characters of a literal or an IRI.
        parts: the parts of a triple term.
    """

    kind: str
    text: str
    title: str = ""
    href: str | None = None
    language: str | None = None
    direction: str | None = None
    datatype: Shown | None = None
    omitted: int = 0
    parts: Sequence[Shown] = ()

    @property
    def pieces(self) -> Sequence[Piece]:
        """The text, with marks for invisible characters."""
        return pieces(self.text)


class NodeNames:
    """The names of the blank nodes of a message, in the order in which they are shown.

    >>> names = NodeNames()
    >>> names[Term("_:c14n7")], names[Term("_:x")], names[Term("_:c14n7")]
    ('_:b1', '_:b2', '_:b1')
    """

    def __init__(self) -> None:
        self._names: dict[Term, str] = {}

    def __getitem__(self, term: Term) -> str:
        return self._names.setdefault(term, f"_:b{len(self._names) + 1}")


@cache
def common_prefixes() -> Mapping[str, str]:
    """Returns the IRIs by prefix from the page's module `prefixes.js`, which contains them as JSON.

    >>> common_prefixes()["xsd"]
    'http://www.w3.org/2001/XMLSchema#'
    """
    module = static_files()["prefixes.js"].body.decode()
    start = module.index("{", module.index("COMMON_PREFIXES"))
    prefixes: dict[str, str] = json.loads(module[start : module.index("};", start) + 1])
    return prefixes


def show(term: Term, href: Href, labels: NodeNames, depth: int = 0) -> Shown:
    """Returns a term in the form that is shown.

    Args:
        term: the term.
        href: returns the link target of an IRI.
        labels: the names of the message's blank nodes.
        depth: the number of triple terms around it.

    >>> from construct_messages.rdf.terms import iri
    >>> show(iri(f"{XSD}integer"), lambda iri: None, NodeNames()).text
    'xsd:integer'
    """
    if is_literal(term):
        return _literal(term, href, labels)
    if is_blank(term):
        return Shown("blank", labels[term], term)
    if is_triple(term):
        if depth == _DEEPEST:
            return Shown("blank", "<<( … )>>", omitted=len(term))
        return Shown(
            "triple", "", parts=[show(part, href, labels, depth + 1) for part in triple_parts(term)]
        )
    value = term[1:-1]
    if len(value) > _MOST_CHARACTERS:
        kept = value[:_MOST_CHARACTERS]
        return Shown("iri", kept, kept, omitted=len(value) - len(kept))
    return Shown("iri", _shortened(value), value, href(value))


def _literal(term: Term, href: Href, labels: NodeNames) -> Shown:
    text, datatype, language, direction = literal_parts(term)
    kind, pattern = _VALUES.get(datatype or "", ("literal", None))
    if pattern is not None and datatype is not None and pattern.fullmatch(text):
        return Shown(kind, text, _shortened(datatype))
    of_type = None if datatype in _IMPLIED else show(Term(f"<{datatype}>"), href, labels)
    kept = text[:_MOST_CHARACTERS]
    return Shown("literal", kept, "", None, language, direction, of_type, len(text) - len(kept))


@cache
def _namespaces() -> Sequence[tuple[str, str]]:
    return sorted(common_prefixes().items(), key=lambda item: -len(item[1]))


def _shortened(value: str) -> str:
    if value == _TYPE:
        return "a"
    for prefix, namespace in _namespaces():
        local = value[len(namespace) :]
        if value.startswith(namespace) and _LOCAL.fullmatch(local) and not local.endswith("."):
            return f"{prefix}:{local}"
    return value

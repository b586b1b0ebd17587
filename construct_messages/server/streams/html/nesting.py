"""Messages in a readable form: subjects with their properties, and nodes nested at their only mention.

Templates show this form. Everything is limited, and omissions are counted. No HTML here.

The page for queries creates the same form itself (`pages/static/nesting.js`), because it reads logs in the browser,
also those of other servers. The HTML of streams needs no script; without a button for more, its limits are larger.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final, NamedTuple

from construct_messages.rdf.message import Message, Quad
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
from construct_messages.server.pages.endpoint import static_files

# --- marks ----------------------------------------------------------------------------------------
# Marks for invisible characters and for those that change the direction of text, as views show them.
#
# Unicode Technical Report 36, section 2 (visual security): a text must not look like another one. The page does the
# same (`pages/static/marks.js`), and one table of cases tests both.

_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0"
    "\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e01ff]|\\A +| +\\Z"
)
_JOINERS: Final = "\u200c\u200d"
_NAMES: Final = {
    "\x85": "next line",
    "\u2028": "line separator",
    "\u2029": "paragraph separator",
    "\ufeff": "byte order mark",
}


class Piece(NamedTuple):
    """A part of a text.

    Args:
        text: the text to show.
        name: the name of the replaced character; empty: the text is shown unchanged.
    """

    text: str
    name: str = ""


def pieces(text: str) -> list[Piece]:
    """Returns the parts of a text, with separate parts for marks.

    >>> pieces("a\\u202eb")
    [Piece(text='a', name=''), Piece(text='U+202E', name='U+202E right-to-left override'), Piece(text='b', name='')]
    """
    return list(_pieces(text))


def _pieces(text: str) -> Iterator[Piece]:
    shown = 0
    for found in _HIDDEN.finditer(text):
        hidden = found[0]
        if hidden in _JOINERS and _joins(text, found.start()):
            continue
        if found.start() > shown:
            yield Piece(text[shown : found.start()])
        shown = found.end()
        if hidden.startswith(" "):
            name = "a space" if len(hidden) == 1 else f"{len(hidden):,} spaces"
            yield Piece("␠" * min(len(hidden), 3), name)
        else:
            code = f"U+{ord(hidden):04X}"
            name = _NAMES.get(hidden) or unicodedata.name(hidden, "").lower()
            yield Piece(code, f"{code} {name}".rstrip())
    if shown < len(text):
        yield Piece(text[shown:])


def _joins(text: str, place: int) -> bool:
    """Returns whether a joiner is between letters or emoji, where it is a normal part of the text."""
    before, after = text[place - 1 : place], text[place + 1 : place + 2]
    return (
        before != ""
        and after != ""
        and unicodedata.category(before)[0] in "LMS"
        and unicodedata.category(after)[0] in "LS"
    )


# --- shown ----------------------------------------------------------------------------------------
# Terms as views show them: IRIs shortened with common prefixes, plain numbers and dates, short names of blank nodes.
#
# The page shows terms in the same way (`pages/static/term-view.js`), with the same prefixes. Everything is limited,
# and omissions are counted. No HTML here.

Href = Callable[[str], str | None]
"""Returns the link target of an IRI; None: no link."""

_TYPE_IRI: Final = f"{RDF}type"
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
    if value == _TYPE_IRI:
        return "a"
    for prefix, namespace in _namespaces():
        local = value[len(namespace) :]
        if value.startswith(namespace) and _LOCAL.fullmatch(local) and not local.endswith("."):
            return f"{prefix}:{local}"
    return value


# --- nesting --------------------------------------------------------------------------------------

_TYPE: Final = f"<{RDF}type>"
_FIRST, _REST, _NIL = f"<{RDF}first>", f"<{RDF}rest>", f"<{RDF}nil>"
_LABELS: Final = tuple(
    Term(f"<{property}>")
    for property in (
        "http://www.w3.org/2000/01/rdf-schema#label",
        "http://www.w3.org/2004/02/skos/core#prefLabel",
        "http://xmlns.com/foaf/0.1/name",
        "http://schema.org/name",
        "https://schema.org/name",
        "http://purl.org/dc/terms/title",
        "http://purl.org/dc/elements/1.1/title",
    )
)

_MOST_QUADS: Final = 1000

_Properties = dict[Term, list[Term]]


@dataclass
class Node:
    """A subject or an object.

    Args:
        term: the term.
        properties: its properties, for a subject or a nested object.
        items: the items of a list; None: it is not a list.
        nested: whether it is nested at its only mention: a blank node instead of its name, an IRI below it.
        label: a label in addition to its name; None: it has none here.
    """

    term: Shown
    properties: list[tuple[Shown, list[Node]]] = field(default_factory=list)
    items: list[Node] | None = None
    nested: bool = False
    label: Shown | None = None


class GraphShown(NamedTuple):
    """A graph of a message.

    Args:
        name: the name of the graph; None: the default graph.
        subjects: the subjects, in the order of the message.
    """

    name: Shown | None
    subjects: list[Node]


class Card(NamedTuple):
    """A message.

    Args:
        graphs: the graphs, in the order of the message.
        quads: the number of quads.
        omitted: the number of omitted quads.
    """

    graphs: list[GraphShown]
    quads: int
    omitted: int


def card(message: Message, href: Href) -> Card:
    """Returns a message in the form that is shown.

    Args:
        message: the message; the first 1000 quads are shown.
        href: returns the link target of an IRI.

    >>> from construct_messages.rdf.terms import iri, literal
    >>> blank = Term("_:b")
    >>> message = Message([Quad(iri("urn:s"), iri("urn:p"), blank), Quad(blank, iri("urn:q"), literal("o"))])
    >>> (subject,) = card(message, lambda iri: None).graphs[0].subjects
    >>> subject.term.text, subject.properties[0][1][0].properties[0][1][0].term.text
    ('urn:s', 'o')
    """
    quads = [quad for quad, _ in zip(message, range(_MOST_QUADS), strict=False)]
    graphs: dict[Term | None, list[Quad]] = {}
    for quad in quads:
        graphs.setdefault(quad.graph, []).append(quad)
    mentions, labels = _mentions(quads), NodeNames()
    shown = [
        GraphShown(
            None if name is None else show(name, href, labels),
            _Nesting(of, mentions, href, labels).subjects(),
        )
        for name, of in graphs.items()
    ]
    return Card(shown, len(message), len(message) - len(quads))


def _mentions(quads: Iterable[Quad]) -> Mapping[Term, int]:
    """Returns the number of mentions of each node; a mention that rules out nesting counts as 2."""
    found: Counter[Term] = Counter()
    subjects: dict[Term, set[Term | None]] = {}
    for quad in quads:
        subjects.setdefault(quad.subject, set()).add(quad.graph)
        if is_triple(quad.object):
            found.update(dict.fromkeys(_blanks(quad.object), 2))
        elif not is_literal(quad.object):
            found[quad.object] += 1
        if quad.graph is not None and is_blank(quad.graph):
            found[quad.graph] += 2
    for node, graphs in subjects.items():
        found[node] += 2 * (len(graphs) - 1)  # several graphs have statements about the node
    return found


def _blanks(term: Term) -> Iterable[Term]:
    for part in triple_parts(term):
        if is_blank(part):
            yield part
        elif is_triple(part):
            yield from _blanks(part)


class _Nesting:
    """The subjects of one graph."""

    def __init__(
        self, quads: Iterable[Quad], mentions: Mapping[Term, int], href: Href, labels: NodeNames
    ) -> None:
        self._mentions, self._href, self._labels = mentions, href, labels
        self._properties: dict[Term, _Properties] = {}
        self._objects: set[Term] = set()
        for subject, predicate, object, _ in quads:
            self._properties.setdefault(subject, {}).setdefault(predicate, []).append(object)
            self._objects.add(object)
        self._left = dict.fromkeys(self._properties)

    def subjects(self) -> list[Node]:
        found = [self._described(term, 0) for term in self._properties if not self._is_nested(term)]
        while self._left:  # part of a cycle, or nested too deeply
            found.append(self._described(next(iter(self._left)), 0))
        return found

    def _is_nested(self, term: Term) -> bool:
        return self._mentions[term] == 1 and term in self._objects

    def _described(self, term: Term, depth: int) -> Node:
        del self._left[term]
        # the name of a nested blank node is not shown, so it gets no number
        named = depth == 0 or not is_blank(term)
        shown = self._show(term) if named else Shown("blank", "")
        properties = [
            (self._show(predicate), [self._object(object, depth + 1) for object in objects])
            for predicate, objects in sorted(
                self._properties[term].items(), key=lambda item: item[0] != _TYPE
            )
        ]
        return Node(shown, properties, nested=depth > 0, label=self._label(term))

    def _show(self, term: Term) -> Shown:
        return show(term, self._href, self._labels)

    def _label(self, term: Term) -> Shown | None:
        """Returns the label of a node: in English, else without a language, else the first one."""
        for property in _LABELS:
            literals = [
                each
                for each in self._properties[term].get(property, ())
                if is_literal(each) and literal_parts(each)[0].strip()
            ]
            if literals:
                return self._show(min(literals, key=_language_rank))
        return None

    def _object(self, term: Term, depth: int) -> Node:
        if term not in self._left or not self._is_nested(term) or depth > _DEEPEST:
            return Node(self._show(term), items=[] if term == _NIL else None)
        if not is_blank(term) or (cells := self._cells(term)) is None:
            return self._described(term, depth)
        for cell in cells:
            del self._left[cell]
        items = [self._object(self._properties[cell][Term(_FIRST)][0], depth + 1) for cell in cells]
        return Node(Shown("blank", ""), items=items, nested=True)

    def _cells(self, term: Term) -> list[Term] | None:
        """Returns the nodes of a list; None: it is incomplete, or one of its nodes has other properties as well."""
        cells: dict[Term, None] = {}
        while term != _NIL:
            properties = self._properties.get(term)
            if (
                term not in self._left
                or term in cells
                or not self._is_nested(term)
                or properties is None
            ):
                return None
            if properties.keys() != {_FIRST, _REST} or any(
                len(objects) != 1 for objects in properties.values()
            ):
                return None
            cells[term] = None
            term = properties[Term(_REST)][0]
        return list(cells)


def _language_rank(label: Term) -> int:
    _, _, language, _ = literal_parts(label)
    if language is None:
        return 1
    return 0 if language.lower().split("-")[0] == "en" else 2

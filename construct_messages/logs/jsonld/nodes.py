"""Makes quads of JSON-LD nodes under a processed context, in one walk: the terms are written as they are met.

JSON-LD 1.1 API, sections 5.1 (expansion), 5.3 (value expansion) and 8.1 (to RDF), for what most documents have. `Rare`
is raised for everything else: scoped contexts, `@nest`, `@json`, lists in sets, names that are no IRIs, every error.
`decoder.py` then has PyLD expand the document. tests/logs/jsonld/test_nodes.py compares both ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

from construct_messages.logs.from_pyoxigraph import too_much
from construct_messages.logs.jsonld.json_text import (
    FIRST_DOUBLE,
    literal_of,
    names_nothing_known,
)
from construct_messages.rdf.labels import MessageLabels
from construct_messages.rdf.message import Message, of_terms
from construct_messages.rdf.terms import (
    RDF,
    USUAL_ASCII_IRI,
    USUAL_LANGUAGE,
    XSD,
    Term,
    escape,
    is_iri,
    is_language,
)
from construct_messages.rdf.terms.wellformed import SURROGATE


class Rare(Exception):
    """Raised for documents that only the careful way reads; it does not leave this folder."""


Write: TypeAlias = "Callable[[Nodes, Entry, Term, Any, Term | None], None]"
"""Makes the quads of an entry of a node: by what its name means, the node, its value and the graph."""
_Meaning = TypeVar("_Meaning")


# --- names ----------------------------------------------------------------------------------------

_USUAL: Final = re.compile(USUAL_ASCII_IRI).fullmatch
_USUAL_LANGUAGE: Final = re.compile(USUAL_LANGUAGE).fullmatch
_LABEL: Final = re.compile(r"_:\S+").fullmatch
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:").match
_SPACE: Final = re.compile(r"\s").search
# references and bases that need no more than to be joined
_SEGMENTS: Final = re.compile(r"(?!\.)[\w.~\-]+(?:/(?!\.)[\w.~\-]+)*/?", re.ASCII).fullmatch
_ROOTED: Final = re.compile(r"(?:/(?!\.)[\w.~\-]+)+/?", re.ASCII).fullmatch
_FRAGMENT: Final = re.compile(r"#[\w.~\-/]+", re.ASCII).fullmatch
_BASE: Final = re.compile(
    r"([a-z]+://[^/?#]*/(?:(?!\.)[^/?#]+/)*)(?:(?!\.)[^/?#]+)?(?:\?[^#]*)?(?=#|\Z)"
).match

_TYPE: Final = Term(f"<{RDF}type>")
_FIRST: Final = Term(f"<{RDF}first>")
_REST: Final = Term(f"<{RDF}rest>")
_NIL: Final = Term(f"<{RDF}nil>")
_STRING: Final = f"{XSD}string"
_BOOLEAN_END: Final = f'"^^<{XSD}boolean>'
_INTEGER_END: Final = f'"^^<{XSD}integer>'
# datatypes that are not only names: they need a tag, or their lexical form is JSON
_OTHER_DATATYPES: Final = tuple(RDF + name for name in ("langString", "dirLangString", "JSON"))

_MOST_NAMES: Final = 1 << 10
_LONGEST_NAME: Final = 1 << 7
"""The names of one kind whose meaning is kept, with a context."""
_LONGEST: Final = 1 << 9
"""The maximal length of namespaces and of a vocabulary, in characters: few names do not become very long IRIs."""


class Entry:
    """What the name of an entry of a node means. `write` makes quads of the entry's value; None: it is dropped.

    `keyword`: the keyword that it is, or nothing. `predicate`: its IRI otherwise. `end`: what follows the text of a
    string, from its quote. `datatype`: that of all its values. `names`: whether strings are IRIs, and of which kind.
    """

    __slots__ = ("datatype", "end", "keyword", "names", "predicate", "write")

    def __init__(self, write: Write | None, keyword: str = "") -> None:
        self.write, self.keyword = write, keyword
        self.predicate = Term("")
        self.end, self.names = '"', ""
        self.datatype: str | None = None

    def of_item(self) -> Entry:
        """Returns the meaning of the items of lists under this one."""
        entry = Entry(self.write)
        entry.predicate, entry.end, entry.names, entry.datatype = (
            _FIRST,
            self.end,
            self.names,
            self.datatype,
        )
        return entry


class Terms:
    """The names of a processed context. `context`: as PyLD holds it; its `mappings` have the terms. `base`: that of the
    document.

    >>> terms = Terms({"mappings": {"ex": {"@id": "http://e/", "_prefix": True}}}, "http://e/x/y#z")
    >>> terms.entries["ex:p"].predicate, terms.name("z", vocabulary=False), terms.name("ex:s", vocabulary=False)
    ('<http://e/p>', '<http://e/x/z>', '<http://e/s>')
    """

    def __init__(self, context: Mapping[str, Any], base: str | None) -> None:
        if "previousContext" in context:
            raise Rare
        self._mappings: Mapping[str, Any] = context["mappings"]
        self._vocabulary: str | None = context.get("@vocab")
        if len(self._vocabulary or "") > _LONGEST:
            raise Rare
        self._language, self._direction = context.get("@language"), context.get("@direction")
        self._set_base(context, base)
        # PyLD takes no IRI with white space beyond ASCII for one
        self._spaces = _SPACE if "processingMode" in context else None
        self.entries, self.types = _Known(self._entry), _Known(self._type)
        self.ends, self.tags = _Known(self._end), _Known(self._tag)
        aliases: dict[str, list[str]] = {"@id": ["@id"], "@value": ["@value"]}
        for name, mapping in self._mappings.items():
            if mapping and mapping["@id"] in aliases:
                aliases[mapping["@id"]].append(name)
        self.ids, self.values = tuple(aliases["@id"]), frozenset(aliases["@value"])
        self.no_nodes = self.values | {"@list", "@set"}

    def _set_base(self, context: Mapping[str, Any], base: str | None) -> None:
        own = context.get("@base", base)
        match = None if own is None else _BASE(own)
        self._folder = match[1] if match else None
        self._document = match[0] if match else None
        self._origin = "/".join(match[1].split("/", 3)[:3]) if match else ""

    def iri(self, name: str, *, vocabulary: bool) -> str:
        """Returns the IRI of a name: absolute, compact, of the vocabulary, or relative to the base."""
        begins, colon, rest = name.partition(":")
        if colon and begins:
            if rest.startswith("//") or begins == "_":
                return name
            mapping = self._mappings.get(begins)
            if mapping and mapping["_prefix"]:
                if len(mapping["@id"]) > _LONGEST:
                    raise Rare
                return f"{mapping['@id']}{rest}"
            if _SCHEME(name):
                return name
            raise Rare
        if vocabulary and self._vocabulary is not None:
            return self._vocabulary + name
        if self._folder is not None:
            if _SEGMENTS(name):
                return self._folder + name
            if _ROOTED(name):
                return self._origin + name
            if _FRAGMENT(name):
                return f"{self._document}{name}"
        raise Rare

    def name(self, name: Any, *, vocabulary: bool) -> Term:
        """Returns the term of a name in a document, which is no blank node."""
        if name.__class__ is not str or name[:1] == "@":
            raise Rare
        if vocabulary and name in self._mappings:
            mapping = self._mappings[name]
            if (
                not mapping
                or not mapping["@id"]
                or mapping.get("@context")
                or mapping["@id"][0] == "@"
            ):
                raise Rare
            iri = mapping["@id"]
        else:
            iri = self.iri(name, vocabulary=vocabulary)
        if vocabulary and names_nothing_known(iri):
            raise Rare
        return self.term(iri)

    def term(self, iri: str) -> Term:
        """Returns the term of an absolute IRI."""
        if not _USUAL(iri) and (not is_iri(iri) or (self._spaces and self._spaces(iri))):
            raise Rare
        return Term(f"<{iri}>")

    def _type(self, name: str) -> Term:
        return self.name(name, vocabulary=True)

    def _entry(self, name: str) -> Entry:
        if name in _KEYWORDS:
            return Entry(_KEYWORDS[name], name)
        if name[:1] == "@":
            return Entry(_rare)
        mapping = self._mappings.get(name)
        if mapping is None:
            return Entry(None) if name in self._mappings else self._of_iri(name)
        iri = mapping["@id"]
        if iri is None:
            return Entry(None)
        if (
            iri in _ALIASED
            and "@context" not in mapping
            and set(mapping.get("@container", ())) <= {"@set"}
        ):
            return Entry(_KEYWORDS[iri], iri)
        return self._of_mapping(iri, mapping)

    def _of_iri(self, name: str) -> Entry:
        if ":" not in name and self._vocabulary is None:
            return Entry(None)
        try:
            iri = self.iri(name, vocabulary=True)
        except Rare:
            return Entry(_rare)
        return self._of_mapping(iri, {})

    def _of_mapping(self, iri: str, mapping: Mapping[str, Any]) -> Entry:
        container = frozenset(mapping.get("@container", ())) - {"@set"}
        write = (_OF_REVERSE if mapping.get("reverse") else _OF_CONTAINER).get(container, _rare)
        entry = Entry(write)
        if iri.startswith("_:") and not mapping:
            return Entry(_unnamed)
        if mapping.keys() & {"@context", "@index"} or iri[:1] in "_@" or names_nothing_known(iri):
            entry.write = _rare
        try:
            entry.predicate = self.term(iri)
            self._coerce(entry, mapping)
        except Rare:
            entry.write = _rare
        return entry

    def _coerce(self, entry: Entry, mapping: Mapping[str, Any]) -> None:
        coerced = mapping.get("@type")
        if coerced in ("@id", "@vocab"):
            entry.names = coerced
        elif coerced is not None and coerced != "@none":
            entry.datatype, entry.end = coerced, self._end_of(coerced)
        else:
            language = mapping.get("@language", self._language)
            entry.end = tagged(language, mapping.get("@direction", self._direction))
        if entry.write is _language_map and mapping.get("@direction", self._direction):
            raise Rare

    def _end(self, name: str) -> tuple[str, str]:
        """Returns the IRI of a datatype, and the end of its literals."""
        datatype = self.types[name][1:-1]
        return datatype, self._end_of(datatype)

    def _tag(self, name: str) -> str:
        if name == "@none":
            return '"'
        if name[:1] == "@" or name in self._mappings:
            raise Rare
        return tagged(name, None)

    def _end_of(self, datatype: str) -> str:
        if datatype in _OTHER_DATATYPES or datatype[0] == "@":
            raise Rare
        return '"' if datatype == _STRING else f'"^^{self.term(datatype)}'

    def literal(self, value: dict[str, Any]) -> Term | None:
        """Returns the literal of a value object; None: its value is null."""
        parts: dict[str, Any] = {}
        for name, part in value.items():
            entry = self.entries[name]
            if entry.keyword in parts or entry.keyword not in _OF_VALUES:
                raise Rare
            parts[entry.keyword] = part
        text, kind = parts["@value"], parts.get("@type", "")
        if kind.__class__ is not str or parts.get("@index", "").__class__ is not str:
            raise Rare
        if "@language" in parts or "@direction" in parts:
            if "@type" in parts or text.__class__ is not str or None in parts.values():
                raise Rare
            return string(text, tagged(parts.get("@language"), parts.get("@direction")))
        datatype, end = self.ends[kind] if "@type" in parts else (None, '"')
        if text.__class__ is str:
            return string(text, end)
        return None if text is None else native(text, datatype, end)


def tagged(language: Any, direction: Any) -> str:
    """Returns the end of strings in a language, with a base direction; null: none."""
    if language is None and direction is None:
        return '"'
    if language.__class__ is not str or direction not in (None, "ltr", "rtl"):
        raise Rare
    tag = language.lower()
    if not _USUAL_LANGUAGE(tag) and not is_language(tag):
        raise Rare
    return f'"@{tag}' if direction is None else f'"@{tag}--{direction}'


class _Known(dict[str, _Meaning]):
    """The meanings of names, which are made when they are first asked for."""

    def __init__(self, make: Callable[[str], _Meaning]) -> None:
        self._make = make

    def __missing__(self, name: str) -> _Meaning:
        made = self._make(name)
        if len(name) <= _LONGEST_NAME:
            if len(self) >= _MOST_NAMES:
                self.clear()
            self[name] = made
        return made


def string(text: str, end: str) -> Term:
    """Returns a string as a literal. `end`: the rest of the term, from the quote."""
    if not text.isprintable() or '"' in text or "\\" in text:
        if SURROGATE.search(text):
            raise Rare
        text = escape(text)
    return Term(f'"{text}{end}')


def native(value: Any, datatype: str | None, end: str) -> Term:
    """Returns a number or a boolean as a literal. `end`: that of the datatype, if it has one."""
    if value.__class__ is bool:
        return Term(f'"{"true" if value else "false"}{end if datatype else _BOOLEAN_END}')
    if value.__class__ is int and datatype is None and -FIRST_DOUBLE < value < FIRST_DOUBLE:
        return Term(f'"{value}{_INTEGER_END}')
    if value.__class__ not in (int, float):
        raise Rare
    text, found = literal_of(value, datatype)
    return Term(f'"{text}{end}' if datatype else f'"{text}"^^<{found}>')


# --- nodes ----------------------------------------------------------------------------------------

_CHECKED_AFTER: Final = 1 << 8
"""The number of terms after which their lengths are counted."""


class Nodes:
    """The quads of the nodes of one message. `labels`: of its blank nodes. `most`: the maximal number of characters of
    its terms as N-Quads; `number`: its number in the log, for that error.

    >>> from construct_messages.rdf.labels import Labels
    >>> nodes = Nodes(Terms({"mappings": {}}, None), Labels("x").in_message(1), 1, 1000)
    >>> nodes.message_of({"@id": "urn:a", "urn:p": ["b", {"urn:q": 1}]}, wrapped=False).lines.decode().split("\\n")[0]
    '<urn:a> <urn:p> "b" .'
    """

    __slots__ = ("_counted", "_labels", "_left", "_most", "_number", "_terms", "rows")

    def __init__(self, terms: Terms, labels: MessageLabels, number: int, most: float) -> None:
        self._terms, self._labels = terms, labels
        self._number, self._most, self._left, self._counted = number, most, most, 0
        # subject, predicate, object, graph, subject …
        self.rows: list[Term | None] = []

    def message_of(self, document: Any, *, wrapped: bool) -> Message:
        """Returns the message of a document. `wrapped`: whether its nodes are in the `@graph` of another one; otherwise
        its entry `@graph` is the default graph, if it has no others.
        """
        if "@context" in document:  # which the names are from
            document = document.copy()
            del document["@context"]
        if wrapped or "@graph" not in document:
            self.all(document, None)
        elif len(document) == 1:
            self.all(document["@graph"], None)
        else:
            self.all(document, None)
            if not any(name in document for name in self._terms.ids):
                self._check_others(document)
        self._count()
        return of_terms(self.rows)

    def _check_others(self, document: dict[str, Any]) -> None:
        """Raises `Rare` unless a document without `@id` surely has more than its `@graph`, which else has no name."""
        others = Nodes(self._terms, MessageLabels("_:"), self._number, self._most)
        others.all({name: value for name, value in document.items() if name != "@graph"}, None)
        if not others.rows or others.rows[0] != "_:0":  # the first label is that of the document
            raise Rare

    def all(self, values: Any, graph: Term | None) -> None:
        """Makes the quads of one or several nodes that are values of no property."""
        for each in values if values.__class__ is list else (values,):
            if each.__class__ is not dict or not self.is_node(each):
                raise Rare
            self.node(each, graph)

    def check(self) -> None:
        """Counts the characters of the terms, after some more of them."""
        if len(self.rows) - self._counted >= _CHECKED_AFTER:
            self._count()

    def _count(self) -> None:
        rows, start = self.rows, self._counted
        self._left -= sum(map(len, filter(None, rows[start:])))
        if self._left < 0:
            raise too_much(self._number, int(self._most))
        self._counted = len(rows)

    def entry(self, name: str) -> Entry:
        return self._terms.entries[name]

    def is_node(self, value: dict[str, Any]) -> bool:
        return self._terms.no_nodes.isdisjoint(value)

    def end_of_language(self, name: str) -> str:
        """Returns the end of strings under a name of a language map."""
        return self._terms.tags[name]

    def node(self, node: dict[str, Any], graph: Term | None) -> Term:
        """Makes the quads of a node, and returns its term."""
        subject = self.subject(node)
        self.fill(node, subject, graph)
        return subject

    def subject(self, node: dict[str, Any]) -> Term:
        """Returns the term of a node."""
        subject = None
        for name in self._terms.ids:
            if name in node:
                if subject is not None:
                    raise Rare
                subject = self.name(node[name], vocabulary=False)
        return self.fresh() if subject is None else subject

    def fill(self, node: dict[str, Any], subject: Term, graph: Term | None) -> None:
        """Makes the quads of the entries of a node."""
        entries = self._terms.entries
        for name, value in node.items():
            entry = entries[name]
            if entry.write is not None:
                entry.write(self, entry, subject, value, graph)
                if len(self.rows) - self._counted >= _CHECKED_AFTER:
                    self._count()

    def name(self, name: Any, *, vocabulary: bool) -> Term:
        """Returns the term of a node by its name."""
        if name.__class__ is not str:
            raise Rare
        if name[:2] == "_:":
            if not _LABEL(name):
                raise Rare
            return self._labels[name]  # type: ignore[index] # any text is a label in JSON-LD
        if vocabulary:
            return self._terms.types[name]
        return self._terms.name(name, vocabulary=False)

    def add(self, subject: Term, entry: Entry, value: Any, graph: Term | None) -> None:
        """Makes the quads of a property with a value that is no array."""
        kind = value.__class__
        if kind is str:
            object: Term | None = (
                self.name(value, vocabulary=entry.names == "@vocab")
                if entry.names
                else string(value, entry.end)
            )
        elif kind is not dict:
            object = None if value is None else native(value, entry.datatype, entry.end)
        elif self.is_node(value):
            object = self.subject(value)
            self.rows += (subject, entry.predicate, object, graph)
            self.fill(value, object, graph)
            return
        elif value.get("@list") is not None and value.keys() <= {"@list", "@index"}:
            self.add_list(subject, entry, value["@list"], graph)
            return
        else:
            object = self._terms.literal(value)
        if object is not None:
            self.rows += (subject, entry.predicate, object, graph)

    def add_list(self, subject: Term, entry: Entry, values: Any, graph: Term | None) -> None:
        """Makes the quads of a property with a list."""
        rows, of_item = self.rows, entry.of_item()
        predicate, node = entry.predicate, subject
        for each in values if values.__class__ is list else (values,):
            cell, start = self.fresh(), len(rows)
            rows += (node, predicate, cell, graph)
            if each.__class__ is list:
                self.add_list(cell, of_item, each, graph)
            else:
                self.add(cell, of_item, each, graph)
            if len(rows) == start + 4:  # null is no item
                del rows[start:]
            else:
                node, predicate = cell, _REST
            self.check()
        rows += (node, predicate, _NIL, graph)

    def fresh(self) -> Term:
        """Returns the term of another node without a name."""
        return self._labels[Term(f" {len(self._labels)}")]


# --- entries --------------------------------------------------------------------------------------


def _rare(_nodes: Nodes, _entry: Entry, _subject: Term, _value: Any, _graph: Term | None) -> None:
    raise Rare


def _unnamed(_nodes: Nodes, _entry: Entry, _subject: Term, value: Any, _graph: Term | None) -> None:
    """Drops values of a blank node as predicate, as of the names that Activity Streams does not define."""
    for each in value if value.__class__ is list else (value,):
        if each.__class__ in (dict, list):
            raise Rare  # nodes in it stay


def _property(nodes: Nodes, entry: Entry, subject: Term, value: Any, graph: Term | None) -> None:
    if value.__class__ is not list:
        nodes.add(subject, entry, value, graph)
        return
    for each in value:
        if each.__class__ is list:
            raise Rare
        nodes.add(subject, entry, each, graph)
        nodes.check()


def _list(nodes: Nodes, entry: Entry, subject: Term, value: Any, graph: Term | None) -> None:
    if value.__class__ is dict and not nodes.is_node(value):
        raise Rare  # it is a list already, or may be null
    if value is not None:
        nodes.add_list(subject, entry, value, graph)


def _language_map(
    nodes: Nodes, entry: Entry, subject: Term, value: Any, graph: Term | None
) -> None:
    if value.__class__ is not dict:
        _property(nodes, entry, subject, value, graph)
        return
    for language, texts in value.items():
        end = nodes.end_of_language(language)
        for text in texts if texts.__class__ is list else (texts,):
            if text.__class__ is str:
                nodes.rows += (subject, entry.predicate, string(text, end), graph)
            elif text is not None:
                raise Rare
        nodes.check()


def _index_map(nodes: Nodes, entry: Entry, subject: Term, value: Any, graph: Term | None) -> None:
    for each in value.values() if value.__class__ is dict else (value,):
        _property(nodes, entry, subject, each, graph)
        nodes.check()


def _reverse(nodes: Nodes, entry: Entry, subject: Term, value: Any, graph: Term | None) -> None:
    for each in value if value.__class__ is list else (value,):
        if each.__class__ is dict and nodes.is_node(each):
            object = nodes.node(each, graph)
        elif each.__class__ is str and entry.names:
            object = nodes.name(each, vocabulary=entry.names == "@vocab")
        else:
            raise Rare
        nodes.rows += (object, entry.predicate, subject, graph)
        nodes.check()


def _reverse_map(
    nodes: Nodes, _entry: Entry, subject: Term, value: Any, graph: Term | None
) -> None:
    if value.__class__ is not dict:
        raise Rare
    for name, each in value.items():
        of_name = nodes.entry(name)
        if of_name.write is _property:
            _reverse(nodes, of_name, subject, each, graph)
        else:
            raise Rare


def _types(nodes: Nodes, _entry: Entry, subject: Term, value: Any, graph: Term | None) -> None:
    for each in value if value.__class__ is list else (value,):
        nodes.rows += (subject, _TYPE, nodes.name(each, vocabulary=True), graph)
        nodes.check()


def _graph(nodes: Nodes, _entry: Entry, subject: Term, value: Any, _graph: Term | None) -> None:
    nodes.all(value, subject)


def _included(nodes: Nodes, _entry: Entry, _subject: Term, value: Any, graph: Term | None) -> None:
    for each in value if value.__class__ is list else (value,):
        before = len(nodes.rows)
        nodes.all(each, graph)
        if len(nodes.rows) == before:  # an error, if there is no more than a name
            raise Rare


def _index(_nodes: Nodes, _entry: Entry, _subject: Term, value: Any, _graph: Term | None) -> None:
    if value.__class__ is not str:
        raise Rare


_KEYWORDS: Final[Mapping[str, Write | None]] = {
    "@id": None,  # see `Nodes.node`
    "@type": _types,
    "@graph": _graph,
    "@included": _included,
    "@reverse": _reverse_map,
    "@index": _index,
    **dict.fromkeys(("@value", "@language", "@direction"), _rare),
}
_ALIASED: Final = ("@id", "@type", "@value", "@language")
_OF_VALUES: Final = ("@value", "@type", "@language", "@direction", "@index")
_OF_CONTAINER: Final[Mapping[frozenset[str], Write]] = {
    frozenset(): _property,
    frozenset(("@list",)): _list,
    frozenset(("@language",)): _language_map,
    frozenset(("@index",)): _index_map,
}
_OF_REVERSE: Final[Mapping[frozenset[str], Write]] = {frozenset(): _reverse}

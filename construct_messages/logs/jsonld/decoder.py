"""The NDJSON-LD decoder: one JSON-LD document a line, a line whose only key is `@context` for the active context.

RDF Messages for NDJSON-LD (https://w3c-cg.github.io/rsp/messages/). `decoder.py` interprets documents.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyoxigraph as ox

from construct_messages.errors import LimitExceeded, LogError, Position, TermError, UsageError
from construct_messages.logs import DecoderOptions
from construct_messages.logs.from_pyoxigraph import (
    WholeLines,
    decode_utf8,
    most_characters,
    to_message,
    too_much,
)
from construct_messages.logs.jsonld.encoder import GEN_DELIMS
from construct_messages.logs.jsonld.json_text import (
    NO_BASE,
    NO_IRI,
    JsonReader,
    mask_halves,
    prepare,
)
from construct_messages.logs.jsonld.nodes import Nodes, Rare, Terms
from construct_messages.rdf.formats import Format, Syntax
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import Lenience, from_pyoxigraph
from construct_messages.rdf.terms.wellformed import NO_CHARACTER

if TYPE_CHECKING:
    from construct_messages.logs.jsonld.contexts import Contexts


# --- documents ------------------------------------------------------------------------------------
# Converts the JSON-LD documents of a log to messages, with the active context.
#
# RDF Messages for NDJSON-LD (https://w3c-cg.github.io/rsp/messages/) defines the active context, also for YAML-LD
# logs here. pyoxigraph, which implements JSON-LD 1.1 with the base directions of RDF 1.2, creates RDF; PyLD expands
# documents first if contexts have more than prefixes. No parsing of text here.

# Estimates the size of the RDF of a JSON-LD document, before a parser creates it.
#
# The parser creates all quads of a document together, and each contains the `@id` of its node: the memory for a long
# one with many values grows with the square of its size in the log. Documents are in expanded form, or have a context
# of prefixes only.

_BLANK: Final = 34
"""The length of a label that the parser creates."""
_TYPE: Final = 49
_LITERAL: Final = 50
"""The parts of a literal other than its value: quotes, and the datatype of a number."""
_IN_A_LIST: Final = 2 * (_BLANK + _TYPE + _BLANK)


def characters(document: Any) -> int:
    """Returns the approximate number of characters of a document's quads as N-Quads.

    >>> characters({"@id": "urn:a", "urn:p": ["b", {"@id": "urn:c"}]})
    76
    """

    def iri(name: Any) -> int:
        return len(name) if isinstance(name, str) else _BLANK

    total = 0
    nodes: list[tuple[Any, int]] = [(document, 0)]  # each with the length of its graph's name
    while nodes:
        node, graph = nodes.pop()
        if isinstance(node, list):
            nodes += ((each, graph) for each in node)
            continue
        if not isinstance(node, dict):
            continue
        subject = iri(node.get("@id"))
        for key, values in node.items():
            if key == "@graph":
                nodes.append((values, subject))
            elif key == "@included":
                nodes.append((values, graph))
            elif key == "@reverse":
                nodes += (
                    ({"@id": node.get("@id"), predicate: each}, graph)
                    for predicate, each in values.items()
                )
            elif key == "@type" or not key.startswith("@"):
                statement = subject + graph + (_TYPE if key == "@type" else iri(key))
                for value in _each(values):
                    total += statement
                    if not isinstance(value, dict):
                        total += iri(value) if key == "@type" else _LITERAL + len(str(value))
                    elif "@value" in value:
                        total += _LITERAL + sum(len(str(part)) for part in value.values())
                    elif "@list" in value:
                        items = (
                            value["@list"] if isinstance(value["@list"], list) else [value["@list"]]
                        )
                        total += len(items) * (_IN_A_LIST + 2 * graph)
                        nodes += (({key: item}, graph) for item in items)
                    else:
                        total += iri(value.get("@id"))
                        nodes.append((value, graph))
    return total


def _each(values: Any) -> Iterator[Any]:
    if isinstance(values, list):
        yield from values
    else:
        yield values


# --- documents ------------------------------------------------------------------------------------

_NAME: Final = re.compile(r"(?!_$)[^@:/][^:/]*")
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_UNSET: Final = object()
_RELATIVE: Final = re.compile(rf"<{NO_BASE}([^>]*)>")
_MOST_CONTEXTS: Final = 32
_MOST_TEXT: Final = 1 << 20
"""How many processed contexts of documents are kept: their number, and the bytes of their JSON."""
_EXPANDED: Final = Terms({"mappings": {}}, None)
"""The names of documents in expanded form."""


class Documents:
    """Converts the documents of one log to messages, in order.

    >>> documents, start = Documents(None, None, Labels("x")), Position(1, 1)
    >>> documents.read({"@context": {"ex": "http://example.org/"}}, 1, start)
    >>> documents.read({"@id": "ex:s", "ex:p": "o"}, 1, start)
    <Message of 1 quad: <http://example.org/s> <http://example.org/p> "o" .>
    >>> documents.read({}, 2, start)
    <Message, empty>
    """

    def __init__(
        self,
        # the IRI that relative IRIs resolve against
        base: str | None,
        contexts: Mapping[str, Any] | None,
        labels: Labels,
        lenience: Lenience | None = None,
        context: str | None = None,
    ) -> None:
        self._base, self._given, self._labels, self._lenience = base, contexts, labels, lenience
        # whether terms that are not RDF are accepted
        self.lenient = lenience is not None and not lenience.is_strict
        self._active: Any = _UNSET
        self._before = None if context is None else [context]
        # the prefixes of the active context, if it has nothing else
        self._only: dict[str, str] | None = {} if context is None else None
        # the processed contexts of documents, by their JSON; None: only PyLD reads documents with them
        self._terms: dict[bytes, Terms | None] = {}
        # the prefixes that active contexts have declared so far
        self.prefixes: dict[str, str] = {}

    def read(
        self,
        document: Any,
        number: int,
        position: Position,
        most: float = inf,
        mask: str = "",
    ) -> Message | None:
        """Returns the message of a document; None: the document sets the active context. `most`: the maximal number of
        characters of the message as N-Quads. `mask`: the character in place of halves of surrogate pairs, whose quads
        are skipped.
        """
        try:
            if isinstance(document, dict) and document.keys() == {"@context"}:
                self._set_context(document["@context"], number, most)
                return None
            if document == {}:
                return Message()
            if not mask and isinstance(document, dict):
                terms = self._terms_of(document, number, most)
                if terms is not None:
                    nodes = Nodes(terms, self._labels.in_message(number), number, most)
                    try:
                        return nodes.message_of(document, wrapped=self._active is not _UNSET)
                    except Rare:
                        pass
            return self.by_pyld(document, number, most, mask)
        except UsageError as error:
            raise LogError(
                error.message, number=number, position=position, hint=error.hint
            ) from error
        except MemoryError as error:
            raise LimitExceeded(
                f"message {number}: a string is longer than the parser takes: {error}",
                position=position,
            ) from error

    def _sound(self, quads: Iterable[ox.Quad], mask: str) -> Iterator[ox.Quad]:
        """Leaves out quads that JSON-LD drops without an error; those with a term that somebody wrote count."""
        assert self._lenience is not None
        for quad in quads:
            text = str(quad)
            if mask and mask in text:
                error = TermError("half a surrogate pair is not a character", kind=NO_CHARACTER)
            elif _RELATIVE.search(text):
                error = self._relative(quad, self._lenience)
            elif NO_IRI in text:
                continue  # a name that a context maps to null
            else:
                yield quad
                continue
            self._lenience.skips(error)

    @staticmethod
    def _relative(quad: ox.Quad, lenience: Lenience) -> TermError:
        """Returns the first error of a quad with a relative IRI; malformed terms before it count."""
        for term in (quad.subject, quad.predicate, quad.object):
            if _RELATIVE.search(str(term)):
                break
            try:
                from_pyoxigraph(term, "x", lenience)
            except TermError as error:
                return error
        relative = _RELATIVE.findall(str(quad))[0]
        return TermError(f"IRI <{relative}> is relative", kind="a relative IRI")

    @cached_property
    def _contexts(self) -> Contexts:
        # loading PyLD takes a third of a second, and logs of this package do not need it
        from construct_messages.logs.jsonld.contexts import Contexts

        return Contexts(self._given, self._base)

    def _set_context(self, context: Any, number: int, most: float) -> None:
        declared, only = _declared(context, {})
        if not only:
            self._contexts.expand(
                {"@graph": {}}, context, number=number, most=most
            )  # so that an error belongs to this document
        self._active, self._only = context, declared if only else None
        self._terms.clear()
        self.prefixes.update(declared)

    def _terms_of(self, document: dict[str, Any], number: int, most: float) -> Terms | None:
        """Returns the names under the context of a document."""
        context = document.get("@context", _UNSET)
        key = b"" if context is _UNSET else msgspec.json.encode(context)
        kept = self._terms
        if key in kept:
            return kept[key]
        if len(kept) >= _MOST_CONTEXTS or sum(map(len, kept)) + len(key) > _MOST_TEXT:
            kept.clear()
        try:
            kept[key] = self._process(context, number, most)
        except Rare:
            kept[key] = None
        return kept[key]

    def _process(self, context: Any, number: int, most: float) -> Terms:
        if self._only is not None:
            declared, only = ({}, True) if context is _UNSET else _declared(context, self._only)
            if only:
                prefixes = {**self._only, **declared}.items()
                mappings = {name: {"@id": iri, "_prefix": True} for name, iri in prefixes}
                return Terms({"mappings": mappings}, self._base)
        active = self._before if self._active is _UNSET else self._active
        if context is _UNSET:
            return self._contexts.terms(active, number=number, most=most)
        return self._contexts.terms(active, context, number=number, most=most)

    def by_pyld(self, document: Any, number: int, most: float, mask: str) -> Message:
        """Reads a document with anything that `Nodes` does not read."""
        if self._active is _UNSET:
            expanded = self._contexts.expand(document, self._before, number=number, most=most)
        else:
            expanded = self._contexts.expand(
                {"@graph": document}, self._active, number=number, most=most
            )
        if not mask:
            nodes = Nodes(_EXPANDED, self._labels.in_message(number), number, most)
            try:
                return nodes.message_of(expanded, wrapped=True)
            except Rare:
                pass
        quads = self._quads(prepare(expanded), number, most)
        if self.lenient:
            quads = self._sound(quads, mask)
        rename = self._labels.in_message(number).__getitem__
        return to_message(quads, rename, self._lenience, number=number, most=most)

    def _quads(self, expanded: list[Any], number: int, most: float) -> Iterator[ox.Quad]:
        written = msgspec.json.encode(expanded)
        # an upper bound of the result, which is small for nearly all documents
        if written.count(b",") * len(written) > most and characters(expanded) > most:
            raise too_much(number, int(most))
        try:
            yield from ox.parse(written, format=ox.RdfFormat.JSON_LD, lenient=self.lenient)
        except SyntaxError as error:
            said = error.msg
            if NO_BASE in said:  # of which the parser takes another character for the reason
                said = said.replace(NO_BASE, "").rpartition(": ")[0] + ": it is relative"
            raise UsageError(f"malformed JSON-LD: {said}") from error


def _declared(context: Any, active: Mapping[str, str]) -> tuple[dict[str, str], bool]:
    """Returns the prefixes that a context declares, and whether it has nothing else. `active`: the prefixes before."""
    if not isinstance(context, dict):
        return {}, False
    prefixes: dict[str, str] = {}
    for name, value in context.items():
        if (
            isinstance(value, dict)
            and value.keys() == {"@id", "@prefix"}
            and value["@prefix"] is True
        ):
            value = value["@id"]
        elif not isinstance(value, str) or not value.endswith(GEN_DELIMS):
            continue
        if _NAME.fullmatch(name) and isinstance(value, str) and _ABSOLUTE.match(value):
            prefixes[name] = value
    # a namespace that begins with a term is itself a compact IRI
    begins = {value.partition(":")[0] for value in prefixes.values()}
    plain = begins.isdisjoint(context) and begins.isdisjoint(active)
    return prefixes, plain and len(prefixes) == len(context)


# --- decoder --------------------------------------------------------------------------------------

_ONE_A_LINE: Final = (
    "write each message as one JSON-LD document on one line, as `jq --compact-output .` does"
)


class JsonLdDecoder:
    """Reads an NDJSON-LD log; see `Decoder`.

    >>> from construct_messages.rdf.formats import NDJSON_LD
    >>> decoder = JsonLdDecoder(NDJSON_LD, NDJSON_LD.own, DecoderOptions())
    >>> list(decoder.feed(b'{"@context": {"ex": "http://example.org/"}}\\n{"@id": "ex:a", "ex:b": ["c"]}'))
    []
    >>> list(decoder.feed(b"\\n{}\\n")), decoder.prefixes
    ([<Message of 1 quad: <http://example.org/a> <http://example.org/b> "c" .>, <Message, empty>], \
{'ex': 'http://example.org/'})
    """

    options: Final = None

    def __init__(self, _format: Format, syntax: Syntax | None, options: DecoderOptions) -> None:
        self.syntax, self._message_bytes = syntax, options.message_bytes
        self._documents = Documents(
            options.base,
            options.contexts,
            options.labels or Labels(),
            options.lenience,
            options.context,
        )
        self._json, self._lines = JsonReader(), WholeLines(options.message_bytes)
        self._may_join = options.documents

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes of the active contexts so far."""
        return self._documents.prefixes

    def feed(self, data: bytes) -> Iterator[Message]:
        for line in self._lines.feed(data):
            yield from self._read(line)

    def close(self) -> Iterator[Message]:
        for line in self._lines.close():
            yield from self._read(line)

    def read_whole(self, document: bytes) -> Iterator[Message]:
        """Returns the message of a document, which may have any number of lines."""
        self._lines.joined = True
        yield from self.feed(document)
        yield from self.close()

    def _read(self, line: bytes) -> Iterator[Message]:
        number, position = self._lines.number, Position(self._lines.line, 1)
        joined = self._lines.joined
        joins = self._may_join and self._lines.line == 1 and not joined
        text, mask = decode_utf8(line, number, self._lines.line), ""
        if self._documents.lenient:
            text, mask = mask_halves(text)
        if not text.strip(" \t\r\n"):
            if joins:
                self._lines.join(line)
                return
            hint = "leave blank lines out, and write an empty message as {}"
            raise LogError("the line is blank", number=number, position=position, hint=hint)
        try:
            document = self._json.read(text, number, self._lines.line)
        except LogError as error:
            goes_on = self._goes_on(text, error)
            if joins and goes_on:
                self._lines.join(line)
                return
            if error.hint is None and (goes_on or (joined and self._may_join)):
                error.hint = _ONE_A_LINE
            raise
        if isinstance(document, list) and joins:  # only a document, and no log, begins so
            self._lines.join(line)
            return
        if isinstance(document, list) and joined:
            document = {"@included": document}
        if not isinstance(document, dict):
            raise LogError(
                f"the line is no JSON object: {text[:40]}",
                number=number,
                position=position,
                hint='write several nodes as {"@included": […]}',
            )
        message = self._documents.read(
            document, number, position, most_characters(len(line), self._message_bytes), mask
        )
        if message is not None:
            self._lines.number += 1
            yield message

    @staticmethod
    def _goes_on(text: str, error: LogError) -> bool:
        """Returns whether the line is the beginning of a document over several lines."""
        return error.position is not None and error.position.column > len(text.rstrip())


def read_document(format: Format, document: bytes, options: DecoderOptions) -> Iterator[Message]:
    """Returns the message of a JSON-LD document, which may have any number of lines."""
    if not document.removeprefix(BOM_UTF8).strip():
        raise LogError(
            "the document is empty, which is no JSON",
            number=1,
            hint="send {} for a message without a statement",
        )
    decoder = JsonLdDecoder(format, format.own, options)
    yield from decoder.read_whole(document)

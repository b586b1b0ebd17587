"""NDJSON-LD for a template: the JSON of a message is laid out once, and each solution fills its places.

Which keys and braces a message has depends on which of its terms are equal. A `_Layout` is for the solutions in which
no triple is left out and no two terms are equal that the template does not make so itself; every other solution takes
the plain path, and the two give the same bytes (tests/logs/jsonld/test_template.py). SPARQL's rules are read from
`template.FORBIDDEN`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, repeat
from typing import Any, Final, TypeAlias

import msgspec

from construct_messages.errors import UnsupportedByFormat
from construct_messages.logs.capabilities import Carrier
from construct_messages.logs.encoded import EncodedBatch, EncodedMessages, EncodedTexts
from construct_messages.logs.jsonld.nodes import RDF_TYPE, Ambiguous, MessageDocuments, Nodes, remember
from construct_messages.logs.plain_encoder import ByMessage
from construct_messages.message import Message
from construct_messages.solutions import Solutions
from construct_messages.template import FORBIDDEN, Blank, Constant, Pattern, Slot, Template, Variable
from construct_messages.terms import Term, is_literal

_MOST_PATTERNS: Final = 100


class JsonLdTemplate:
    """Encodes batches of solutions; byte for byte what `encode(Message(instantiate(…)))` gives.

    Args:
        encode: the encoder's own.
        carrier: the encoder's.
        documents: the encoder's.
        template: what instantiates the solutions.
    """

    def __init__(
        self, encode: Callable[[Message], bytes], carrier: Carrier, documents: MessageDocuments, template: Template
    ) -> None:
        self._encode, self._carrier, self._documents, self._template = encode, carrier, documents, template
        self._plain = ByMessage(encode, template)
        self._layout: _Layout | None = None
        # each slot is compared with each: of very many, message by message is quicker
        if carrier.carries_template(template) and 0 < len(template.live) <= _MOST_PATTERNS:
            try:
                self._layout = _Layout(template, documents.compact)
            except (Ambiguous, UnsupportedByFormat):
                self._layout = None  # every message is to be refused, or written without the context

    def encode(self, solutions: Solutions, first: int) -> EncodedBatch:
        """Encodes a batch; see `TemplateEncoder.encode`."""
        if self._layout is None or not self._carrier.carries_columns(solutions):
            return self._plain.encode(solutions, first)
        exceptions = self._layout.exceptions(solutions.text)
        try:
            regular = self._layout.lines(solutions, exceptions, first)
        except (Ambiguous, UnsupportedByFormat):
            return self._plain.encode(solutions, first)
        if not exceptions:
            self._count(len(solutions))
            return EncodedTexts(list(regular))
        lines = []
        for place, solution in enumerate(solutions):
            if place in exceptions:
                lines.append(self._encode(Message(self._template.instantiate(solution, first + place))))
            else:
                self._count(1)
                lines.append(next(regular).encode())
        return EncodedMessages(lines)

    def _count(self, messages: int) -> None:
        self._carrier.count(messages)
        self._documents.message_count += messages


class _Json(dict[Term, str]):
    """The JSON of what `Names` or `Values` hold.

    Args:
        texts: what they hold.
        encode: writes one of it.
    """

    def __init__(self, texts: Mapping[Term, Any], encode: Callable[[Any], str]) -> None:
        self._texts, self._encode = texts, encode

    def __missing__(self, term: Term) -> str:
        json = self._encode(self._texts[term])
        remember(self, term, json)
        return json


def _encode(value: Any) -> str:
    return msgspec.json.encode(value).decode()


# Text, or a slot of the template with what writes its terms
_Piece: TypeAlias = str | tuple[Slot, _Json]


class _Layout:
    """Where in the JSON of a message which slot stands, and the solutions that this holds for.

    Args:
        template: without triple terms.
        nodes: what messages are written by.

    Raises:
        Ambiguous, UnsupportedByFormat: for a constant, as `Nodes`.
    """

    def __init__(self, template: Template, nodes: Nodes) -> None:
        self._labels = template.labels
        # no IRI and no prefix holds what JSON escapes
        self._names, self._values = _Json(nodes.names, '"{}"'.format), _Json(nodes.values, _encode)
        self._forbidden: dict[int, set[str]] = {}  # how the terms of each variable may not begin
        graphs: dict[Slot | None, dict[Slot, dict[Slot | None, dict[Slot, None]]]] = {}
        for pattern in template.live:
            typed = pattern.predicate == Constant(RDF_TYPE) and not _is_literal(pattern.object)
            self._forbid(pattern, typed)
            subjects = graphs.setdefault(pattern.graph, {})
            # under None, as under @type, which no predicate is
            objects = subjects.setdefault(pattern.subject, {}).setdefault(None if typed else pattern.predicate, {})
            objects[pattern.object] = None
        self._distinct = [pair for slots in _siblings(graphs) for pair in combinations(slots, 2) if _may_equal(*pair)]
        self._form, self._columns = self._compile(self._document(graphs))

    def _forbid(self, pattern: Pattern, typed: bool) -> None:
        for slot, starts in zip(pattern, FORBIDDEN.values(), strict=True):
            if isinstance(slot, Variable):
                self._forbidden.setdefault(slot.index, set()).update(starts)
        if typed and isinstance(pattern.object, Variable):
            self._forbidden[pattern.object.index].add('"')

    # --- which solutions ------------------------------------------------------------------------------------------

    def exceptions(self, columns: Sequence[Sequence[Term]]) -> set[int]:
        """The places of the solutions that this does not hold for."""
        found: set[int] = set()
        for index, starts in self._forbidden.items():
            column = columns[index]
            if "" in column:
                found.update(place for place, term in enumerate(column) if not term)
            # no term holds a line break: so one search tells whether any begins in some way
            joined = "\n" + "\n".join(column)
            if any(f"\n{start}" in joined for start in starts):
                found.update(place for place, term in enumerate(column) if term.startswith(tuple(starts)))
        for a, b in self._distinct:
            pairs = zip(_terms(a, columns), _terms(b, columns), strict=False)
            found.update(place for place, (x, y) in enumerate(pairs) if x == y)
        return found

    # --- what they give -------------------------------------------------------------------------------------------

    def lines(self, solutions: Solutions, exceptions: Collection[int], first: int) -> Iterator[str]:
        """The lines of all but the exceptions, in order.

        Raises:
            Ambiguous, UnsupportedByFormat: for any of them, as `Nodes`.
        """
        places = [place for place in range(len(solutions)) if place not in exceptions]
        filled: list[Iterable[str]] = []
        for slot, json in self._columns:
            if isinstance(slot, Variable):
                column = solutions.text[slot.index]
                filled.append(
                    list(map(json.__getitem__, [column[place] for place in places] if exceptions else column))
                )
            else:
                assert isinstance(slot, Blank)
                form = "%s" if json is self._names else '{"@id":%s}'
                form %= f'"{self._labels.of_template("%d", slot.index)}"'
                filled.append([form % (first + place) for place in places])
        if not filled:
            return repeat(self._form % (), len(places))
        return map(self._form.__mod__, zip(*filled, strict=True))

    def _document(
        self, graphs: Mapping[Slot | None, Mapping[Slot, Mapping[Slot | None, Collection[Slot]]]]
    ) -> list[_Piece]:
        """The pieces of the line, as `Nodes.document` puts them together."""
        names = self._names
        top: list[list[_Piece]] = []
        for graph, subjects in graphs.items():
            nodes = [self._node(subject, properties) for subject, properties in subjects.items()]
            if graph is None:
                top += nodes
            else:
                top.append(['{"@id":', (graph, names), ',"@graph":[', *_joined(nodes), "]}"])
        if len(top) == 1:
            return [*top[0], "\n"]
        return ['{"@included":[', *_joined(top), "]}\n"]

    def _node(self, subject: Slot, properties: Mapping[Slot | None, Collection[Slot]]) -> list[_Piece]:
        names, values = self._names, self._values
        pieces: list[_Piece] = ['{"@id":', (subject, names)]
        for predicate, objects in properties.items():
            key: _Piece = '"@type"' if predicate is None else (predicate, names)
            items: list[list[_Piece]] = [[(object, names if predicate is None else values)] for object in objects]
            array = len(items) > 1
            pieces += [",", key, ":[" if array else ":", *_joined(items), "]" if array else ""]
        return [*pieces, "}"]

    def _compile(self, pieces: Iterable[_Piece]) -> tuple[str, list[tuple[Slot, _Json]]]:
        """The pieces as a format string, constants filled in, and what is to fill the rest."""
        form, columns = [], []
        for piece in pieces:
            if isinstance(piece, str):
                form.append(piece.replace("%", "%%"))
            elif isinstance(slot := piece[0], Constant):
                form.append(piece[1][slot.term].replace("%", "%%"))
            else:
                form.append("%s")
                columns.append(piece)
        return "".join(form), columns


def _joined(items: Sequence[list[_Piece]]) -> list[_Piece]:
    """The items with a comma between each two."""
    return [piece for number, item in enumerate(items) for piece in ([",", *item] if number else item)]


def _siblings(
    graphs: Mapping[Slot | None, Mapping[Slot, Mapping[Slot | None, Collection[Slot]]]],
) -> Iterator[list[Slot]]:
    """The slots that are in one group, whose terms must differ for each to have its own place."""
    yield [graph for graph in graphs if graph is not None]
    for subjects in graphs.values():
        yield list(subjects)
        for properties in subjects.values():
            # a predicate that turns out to be rdf:type would be written as @type
            yield list({Constant(RDF_TYPE), *(predicate for predicate in properties if predicate is not None)})
            yield from map(list, properties.values())


def _may_equal(a: Slot, b: Slot) -> bool:
    """Whether the terms of two different slots, of which none is a triple term, can be equal."""
    kinds = {type(a), type(b)}
    return Variable in kinds and Blank not in kinds  # data and template have different labels


def _terms(slot: Slot, columns: Sequence[Sequence[Term]]) -> Iterable[Term]:
    if isinstance(slot, Variable):
        return columns[slot.index]
    assert isinstance(slot, Constant)
    return repeat(slot.term)


def _is_literal(slot: Slot) -> bool:
    return isinstance(slot, Constant) and is_literal(slot.term)

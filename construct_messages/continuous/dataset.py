"""The dataset of a continuous query: a store that changes as elements enter windows and leave them.

docs/decisions/047-windows-as-datasets.md defines the graph of each triple. Quads are counted, as several messages and
windows may hold the same one; `update` applies the differences to the store. No times and no bounds of windows here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import pyoxigraph as ox

from construct_messages.query.continuous.values import (
    CM,
    MEMBER,
    STATIC,
    STREAM_NAMES,
    WINDOWS_GRAPH,
    ContinuousQuery,
    Needs,
    absolute,
)
from construct_messages.rdf.labels import Labels, may_have_labels
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import XSD, OxTerm, Term
from construct_messages.rdf.terms.values import date_time_of
from construct_messages.streams.element import GENERATED_AT, Element

# --- stored terms ---------------------------------------------------------------------------------
# Converts quads to the form in which a store of pyoxigraph returns them, so that equal ones can be recognised.
#
# Oxigraph stores values of the types of XML Schema: `01` and `1` are one integer, and removing one removes the other.

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


# --- contents -------------------------------------------------------------------------------------

# --- compacted store ------------------------------------------------------------------------------
# A store whose quads change endlessly, in bounded memory.
#
# Oxigraph's store in memory keeps removed quads: each takes some 400 bytes and its text for ever, and queries scan
# them. So the store is rebuilt when removed quads outweigh the others.
# No windows and no elements here.

_QUAD_BYTES: Final = 400  # the approximate size of a quad with short texts in Oxigraph 0.5
_SPARE_BYTES: Final = 1 << 16
_OF_CHANGING: Final = 4  # the factor of their weight that may be removed before a rebuild
_OF_FIXED: Final = 0.5


class CompactedStore:
    """A store in memory, which is rebuilt when it has too many removed quads.

    Args:
        fixed: the quads that always stay.

    Attributes:
        store: holds the quads; another object after each compaction.
        compactions: the number of rebuilds.

    >>> quads = CompactedStore([])
    >>> for number in range(1000):
    ...     quad = ox.Quad(ox.NamedNode(f"urn:{number}"), ox.NamedNode("urn:p"), ox.Literal(number))
    ...     quads.change(list(quads.store), [quad], [quad])
    >>> len(quads.store), quads.compactions
    (1, 6)
    """

    def __init__(self, fixed: Iterable[ox.Quad]) -> None:
        self.store = ox.Store()
        self.store.extend(fixed)
        fixed_text = self.store.dump(format=ox.RdfFormat.N_QUADS)
        assert fixed_text is not None  # without a file, it returns the bytes
        self._fixed = fixed_text  # this takes a third of the time of adding quads
        self._fixed_bytes = len(self._fixed) + _QUAD_BYTES * len(self.store)
        self._changing_bytes = self._removed_bytes = 0
        self.compactions = 0

    def change(
        self, removed: Collection[ox.Quad], added: Collection[ox.Quad], changing: Iterable[ox.Quad]
    ) -> None:
        """Removes quads and adds others.

        Args:
            removed: quads in the store, none of them fixed.
            added: quads that are not in the store.
            changing: all quads afterwards; fixed ones may be among them.
        """
        removed_bytes = sum(map(_bytes_of, removed))
        self._removed_bytes += removed_bytes
        self._changing_bytes += sum(map(_bytes_of, added)) - removed_bytes
        most = _OF_CHANGING * self._changing_bytes + _OF_FIXED * self._fixed_bytes
        if self._removed_bytes > max(_SPARE_BYTES, most):
            self._build(changing)
            return
        for quad in removed:
            self.store.remove(quad)
        self.store.extend(added)

    def _build(self, changing: Iterable[ox.Quad]) -> None:
        self.store = ox.Store()  # the old one is freed before the new one is filled
        self.store.extend(ox.parse(self._fixed, format=ox.RdfFormat.N_QUADS, lenient=True))
        self.store.extend(changing)
        self._removed_bytes = 0
        self.compactions += 1


def _bytes_of(quad: ox.Quad) -> int:
    """The approximate size of a quad in a store."""
    object = quad.object
    if isinstance(object, ox.Literal):
        return _QUAD_BYTES + len(object.value)
    return _QUAD_BYTES + (len(str(object)) if isinstance(object, ox.Triple) else 0)


# --- contents -------------------------------------------------------------------------------------

Name: TypeAlias = ox.NamedNode | ox.BlankNode

ElementIri: TypeAlias = Callable[[str, int], str]
"""Builds an element's IRI from its stream's IRI and its sequence number; without brackets."""

_DEFAULT: Final = ox.DefaultGraph()
_WINDOWS: Final = ox.NamedNode(WINDOWS_GRAPH)
_STATIC: Final = ox.NamedNode(STATIC)
_MEMBER: Final = ox.NamedNode(MEMBER)

CONTEXT_GRAPH: Final = f"<{CM}graph>"
"""The predicate of context triples between an element and a named graph of its message."""

_ALL: Final = ~Needs.NOTHING
_NUMBERS: Final = re.compile(r"[0-9]{1,19}(?![0-9])")


@dataclass(frozen=True, slots=True)
class HeldElement:
    """An element as windows hold it.

    Args:
        sequence: its sequence.
        name: its IRI.
        quads: the quads of its message, as a store returns them.
        named: the quads in named graphs that its message may name.
        context: its context triples, in the default graph.
    """

    sequence: int
    name: ox.NamedNode
    quads: list[ox.Quad]
    named: list[ox.Quad]
    context: list[ox.Quad]
    _in_window: dict[int, list[ox.Quad]] = field(default_factory=dict)


class ReservedGraphs:
    """The graphs that hold what this package states: of windows, of their messages, and of the members of windows.

    A message adds no quad to them by naming them, as it could otherwise speak for another message or stream.

    Args:
        query: its windows.

    >>> from construct_messages.query.continuous.parse import parse_continuous
    >>> query = parse_continuous('''SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT1S]
    ... { WINDOW <urn:w> { ?s ?p ?o } }''')
    >>> sorted(ReservedGraphs(query).among(["<urn:w>", "<urn:s/12>", "<urn:other>"], "{}/{}".format))
    ['<urn:s/12>', '<urn:w>']
    """

    def __init__(self, query: ContinuousQuery) -> None:
        self._streams = tuple(dict.fromkeys(window.stream for window in query.windows))
        self._names = frozenset(f"<{window.name}>" for window in query.windows) | {
            f"<{WINDOWS_GRAPH}>"
        }

    def among(self, graphs: Iterable[str], element_iri: ElementIri) -> frozenset[str]:
        """Returns those of some graphs that are reserved; with brackets, as a store returns them."""
        return frozenset(
            graph
            for graph in graphs
            if graph in self._names
            or any(
                graph == f"<{element_iri(stream, int(sequence))}>"
                for sequence in _NUMBERS.findall(graph)
                for stream in self._streams
            )
        )


class Contents:
    """The contents of the windows of a query, with static data, as a store.

    Args:
        query: its windows, and the graphs that it needs of them.
        static: the quads of static data.
        labels: create the labels of all blank nodes.
        predicates: the predicates of the default graphs that the query reads; None: it may read all.
    """

    def __init__(
        self,
        query: ContinuousQuery,
        static: Iterable[Quad],
        labels: Labels,
        predicates: frozenset[ox.NamedNode] | None = None,
    ) -> None:
        self._labels, self._predicates = labels, predicates
        self._counts: dict[ox.Quad, int] = {}
        self._before: dict[
            ox.Quad, bool
        ] = {}  # whether the store has a quad whose count has changed since
        self._static: set[ox.Quad] = set()  # the fixed quads that windows hold, too
        self._stored = StoredTerms()
        self._reserved = ReservedGraphs(query)
        self._windows = [ox.NamedNode(window.name) for window in query.windows]
        self._needs = [query.needs.get(window.name, _ALL) for window in query.windows]
        self._has_context = any(Needs.CONTEXT in needs for needs in self._needs)
        self._merged = [window.name in query.default for window in query.windows]
        quads = (
            Message(static)
            .map_blanks(lambda node: Term(f"_:{labels.of_data}{node[2:]}"))
            .to_pyoxigraph()
        )
        self._store = CompactedStore(
            [*quads, *(_member(_STATIC, graph) for graph in _graphs(quads))]
        )

    def hold(
        self, stream: int, stream_iri: str, element_iri: ElementIri, time: int, element: Element
    ) -> HeldElement:
        """Returns an element in the form that enters windows.

        Args:
            stream: the number of its stream; different streams have different blank nodes.
            stream_iri: the IRI of its stream, without brackets.
            element_iri: builds its own IRI.
            time: its time in windows.
            element: the element.
        """
        nquads = element.nquads
        if may_have_labels(nquads):
            scope = self._labels.of_response(stream)
            nquads = element.message.map_blanks(lambda node: Term(f"_:{scope}{node[2:]}")).lines
        parsed: Iterable[ox.Quad] = ox.parse(nquads, format=ox.RdfFormat.N_QUADS, lenient=True)
        read = self._predicates
        if read is not None:
            parsed = [
                quad for quad in parsed if quad.predicate in read or quad.graph_name != _DEFAULT
            ]
        quads = list(map(self._stored.quad, parsed))
        node = ox.NamedNode(element_iri(stream_iri, element.sequence))
        named = [quad for quad in quads if quad.graph_name != _DEFAULT]
        graphs = list(map(str, _graphs(named)))
        if taken := self._reserved.among(graphs, element_iri):
            named = [quad for quad in named if str(quad.graph_name) not in taken]
        context: list[ox.Quad] = []
        if self._has_context:
            triples = context_triples(str(node), stream_iri, time, element.sequence, graphs)
            lines = "".join(f"{s} {p} {o} .\n" for s, p, o in triples)
            context += (
                quad
                for quad in ox.parse(lines, format=ox.RdfFormat.N_QUADS, lenient=True)
                if read is None or quad.predicate in read
            )
        return HeldElement(element.sequence, node, quads, named, context)

    def enter(self, window: int, held: HeldElement) -> None:
        """Counts the quads that an element adds to a window."""
        quads = held._in_window[window] = self._quads(window, held)
        counts, before = self._counts, self._before
        for quad in quads:
            count = counts.get(quad, 0)
            counts[quad] = count + 1
            if quad not in before:
                before[quad] = count > 0 or quad in self._static

    def leave(self, window: int, held: HeldElement) -> None:
        """Reverts `enter`."""
        counts, before = self._counts, self._before
        for quad in held._in_window.pop(window):
            count = counts.pop(quad)
            if count > 1:
                counts[quad] = count - 1
            if quad not in before:
                before[quad] = True

    def update(self) -> ox.Store:
        """Brings the store up to date."""
        added, removed = [], []
        for quad, before in self._before.items():
            now = quad in self._counts or quad in self._static
            if now and not before:
                added.append(quad)
            elif before and not now:
                removed.append(quad)
        self._before.clear()
        self._store.change(removed, added, self._counts)
        return self._store.store

    def _quads(self, window: int, held: HeldElement) -> list[ox.Quad]:
        """The quads that an element adds to a window; some may be repeated."""
        needs, quads = self._needs[window], list[ox.Quad]()
        own = held.quads + held.context if Needs.CONTEXT in needs else held.quads
        if Needs.UNION in needs:
            graph = self._windows[window]
            quads += [ox.Quad(quad.subject, quad.predicate, quad.object, graph) for quad in own]
        if Needs.MEMBERS in needs:
            graph = held.name
            quads += [ox.Quad(quad.subject, quad.predicate, quad.object, graph) for quad in own]
            quads.append(_member(self._windows[window], graph))
        if self._merged[window]:
            quads += (
                self._kept(ox.Quad(quad.subject, quad.predicate, quad.object)) for quad in own
            )
        if held.named and Needs.GRAPHS in needs:
            quads += map(self._kept, held.named)
            quads += (self._kept(_member(_STATIC, graph)) for graph in _graphs(held.named))
        return quads

    def _kept(self, quad: ox.Quad) -> ox.Quad:
        """Returns a quad of a graph with static data, after recording whether it is a static quad."""
        if quad not in self._counts and quad not in self._before and quad in self._store.store:
            self._static.add(quad)
        return quad


def context_triples(
    node: str, stream: str, microseconds: int, sequence: int, graphs: Iterable[str]
) -> Iterator[tuple[str, str, str]]:
    """Yields the context triples of an element, with terms as a store returns them.

    Args:
        node: the IRI of the element.
        stream: the name of its stream, without brackets.
        microseconds: its time.
        sequence: its sequence.
        graphs: the named graphs of its message.
    """
    yield node, f"<{GENERATED_AT}>", f'"{date_time_of(microseconds)}"^^<{XSD}dateTime>'
    yield node, f"<{CM}sequence>", f'"{sequence}"^^<{XSD}integer>'
    yield node, f"<{CM}stream>", f"<{absolute(stream, STREAM_NAMES)}>"
    for graph in graphs:
        yield node, CONTEXT_GRAPH, graph


def _graphs(named: Iterable[ox.Quad]) -> list[Name]:
    graphs = dict.fromkeys(quad.graph_name for quad in named)
    return [graph for graph in graphs if not isinstance(graph, ox.DefaultGraph)]


def _member(group: ox.NamedNode, graph: Name) -> ox.Quad:
    return ox.Quad(group, _MEMBER, graph, _WINDOWS)

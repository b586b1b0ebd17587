"""The dataset that a continuous query is asked of: a store that changes as elements enter windows and leave them.

docs/decisions/047-windows-as-datasets.md defines the graph of each triple. A quad is counted, as several messages and
windows may hold it; the store changes when it is asked, by what is different then. Times and windows' bounds are not
known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import pyoxigraph as ox

from construct_messages.continuous.dataset.compacted_store import CompactedStore
from construct_messages.continuous.dataset.stored_terms import StoredTerms
from construct_messages.labels import Labels
from construct_messages.message import Message, Quad
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
from construct_messages.streams.element import GENERATED_AT, Element
from construct_messages.terms import XSD, OxTerm, Term
from construct_messages.terms.date_times import date_time_of

Name: TypeAlias = ox.NamedNode | ox.BlankNode

_DEFAULT: Final = ox.DefaultGraph()
_WINDOWS: Final = ox.NamedNode(WINDOWS_GRAPH)
_STATIC: Final = ox.NamedNode(STATIC)
_MEMBER: Final = ox.NamedNode(MEMBER)
_GENERATED_AT: Final = ox.NamedNode(GENERATED_AT)
_SEQUENCE: Final = ox.NamedNode(f"{CM}sequence")
_STREAM: Final = ox.NamedNode(f"{CM}stream")
_GRAPH: Final = ox.NamedNode(f"{CM}graph")
_DATE_TIME: Final = ox.NamedNode(f"{XSD}dateTime")

_ALL: Final = ~Needs.NOTHING


@dataclass(frozen=True, slots=True)
class HeldElement:
    """An element as windows hold it.

    Args:
        sequence: of the element.
        name: its IRI.
        quads: of its message, as a store returns them.
        named: those in a named graph.
        context: the triples about it, in the default graph.
    """

    sequence: int
    name: ox.NamedNode
    quads: list[ox.Quad]
    named: list[ox.Quad]
    context: list[ox.Quad]
    _in_window: dict[int, list[ox.Quad]] = field(default_factory=dict)


class Contents:
    """The contents of the windows of a query, with static data, as a store.

    Args:
        query: its windows, and what it needs of them.
        static: the quads of static data.
        labels: make those of all blank nodes.
        predicates: of the quads of default graphs that the query reads; None: it may read all.
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
        self._static: set[ox.Quad] = set()  # what stays, of the quads that windows hold, too
        self._stored = StoredTerms()
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
        self, stream: int, stream_iri: str, name: str, time: int, element: Element
    ) -> HeldElement:
        """An element, to enter windows.

        Args:
            stream: the number of its stream; blank nodes of one stream are no others'.
            stream_iri: of its stream, without brackets.
            name: its own IRI, without brackets.
            time: its time, as windows read it.
            element: with its message.
        """
        nquads = element.nquads
        if b"_:" in nquads:
            scope = self._labels.of_response(stream)
            nquads = element.message.map_blanks(lambda node: Term(f"_:{scope}{node[2:]}")).lines
        parsed: Iterable[ox.Quad] = ox.parse(nquads, format=ox.RdfFormat.N_QUADS, lenient=True)
        read = self._predicates
        if read is not None:
            parsed = [
                quad for quad in parsed if quad.predicate in read or quad.graph_name != _DEFAULT
            ]
        quads = list(map(self._stored.quad, parsed))
        node = ox.NamedNode(name)
        named = [quad for quad in quads if quad.graph_name != _DEFAULT]
        context: list[ox.Quad] = []
        if self._has_context:
            said = _context(stream_iri, time, element.sequence)
            context += (
                ox.Quad(node, predicate, object)
                for predicate, object in said
                if read is None or predicate in read
            )
            context += (ox.Quad(node, _GRAPH, graph) for graph in _graphs(named))
        return HeldElement(element.sequence, node, quads, named, context)

    def enter(self, window: int, held: HeldElement) -> None:
        """Counts what an element adds to a window."""
        quads = held._in_window[window] = self._quads(window, held)
        counts, before = self._counts, self._before
        for quad in quads:
            count = counts.get(quad, 0)
            counts[quad] = count + 1
            if quad not in before:
                before[quad] = count > 0 or quad in self._static

    def leave(self, window: int, held: HeldElement) -> None:
        """Takes back what `enter` counted."""
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
        """What an element adds to a window; some of it maybe twice."""
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
        """A quad of a graph that static data may have, too: what is there without a window is static."""
        if quad not in self._counts and quad not in self._before and quad in self._store.store:
            self._static.add(quad)
        return quad


def _context(
    stream: str, microseconds: int, sequence: int
) -> Iterator[tuple[ox.NamedNode, OxTerm]]:
    yield (
        _GENERATED_AT,
        ox.Literal(date_time_of(microseconds), datatype=_DATE_TIME),
    )  # as a store returns it
    yield _SEQUENCE, ox.Literal(sequence)
    yield _STREAM, ox.NamedNode(absolute(stream, STREAM_NAMES))


def _graphs(named: Iterable[ox.Quad]) -> list[Name]:
    graphs = dict.fromkeys(quad.graph_name for quad in named)
    return [graph for graph in graphs if not isinstance(graph, ox.DefaultGraph)]


def _member(group: ox.NamedNode, graph: Name) -> ox.Quad:
    return ox.Quad(group, _MEMBER, graph, _WINDOWS)

"""The dataset of a continuous query: a store that changes as elements enter windows and leave them.

docs/decisions/047-windows-as-datasets.md defines the graph of each triple. Quads are counted, as several messages and
windows may hold the same one; `update` applies the differences to the store. No times and no bounds of windows here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import pyoxigraph as ox

from construct_messages.continuous.dataset.compacted_store import CompactedStore
from construct_messages.continuous.dataset.stored_terms import StoredTerms
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
from construct_messages.rdf.terms import XSD, Term
from construct_messages.rdf.terms.date_times import date_time_of
from construct_messages.streams.element import GENERATED_AT, Element

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

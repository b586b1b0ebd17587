"""The quads in windows that match patterns, and their changes.

The same dataset as in `continuous/dataset.py` (docs/decisions/047-windows-as-datasets.md), as texts, and without a
store: quads are counted, and only those that match a pattern of the query are kept. No SPARQL and no joins here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from construct_messages.continuous.dataset import (
    CONTEXT_GRAPH,
    ElementIri,
    HeldElement,
    ReservedGraphs,
    context_triples,
)
from construct_messages.continuous.incremental.quads import (
    PatternMatcher,
    QuadReader,
    TextQuad,
)
from construct_messages.query.continuous.values import (
    MEMBER,
    STATIC,
    WINDOWS_GRAPH,
    ContinuousQuery,
    Needs,
)
from construct_messages.rdf.labels import Labels, may_have_labels
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import Term
from construct_messages.streams.element import Element

_WINDOWS: Final = f"<{WINDOWS_GRAPH}>"
_STATIC: Final = f"<{STATIC}>"
_MEMBER: Final = f"<{MEMBER}>"

_ALL: Final = ~Needs.NOTHING

Origin: TypeAlias = "tuple[int, str, ElementIri, int, Element]"
"""The arguments of `MatchedContents.hold`."""


class HeldQuads:
    """An element as windows hold it.

    Args:
        quads: the matching quads that it adds to windows on its stream, by the number of each window that has any;
            None: not read yet, as the query is evaluated as a whole.
        origin: to convert the element to a `HeldElement`; None: not kept.

    Attributes:
        whole: the `HeldElement`; None: not created yet.
    """

    __slots__ = ("origin", "quads", "whole")

    def __init__(self, quads: dict[int, list[TextQuad]] | None, origin: Origin | None) -> None:
        self.quads, self.origin = quads, origin
        self.whole: HeldElement | None = None


_NOTHING: Final = HeldQuads({}, None)


class Changes(NamedTuple):
    """Added and removed quads."""

    appeared: list[TextQuad]
    vanished: list[TextQuad]


class _Holding:
    """The graphs to which a window adds a quad of an element."""

    def __init__(self, query: ContinuousQuery, number: int) -> None:
        window = query.windows[number]
        needs = query.needs.get(window.name, _ALL)
        self.number, self.stream = number, window.stream
        self.name = f"<{window.name}>"
        self.union, self.members = Needs.UNION in needs, Needs.MEMBERS in needs
        self.context, self.graphs = Needs.CONTEXT in needs, Needs.GRAPHS in needs
        self.merged = window.name in query.default


class MatchedContents:
    """The quads of the windows of a query, with static data, that a pattern matches.

    Args:
        query: its windows, and the graphs that it needs of them.
        static: the quads of static data.
        labels: create the labels of all blank nodes.
        matcher: matches the patterns.
        keep: whether to keep the elements.
    """

    def __init__(
        self,
        query: ContinuousQuery,
        static: Iterable[Quad],
        labels: Labels,
        matcher: PatternMatcher,
        *,
        keep: bool,
    ) -> None:
        self._keep = keep
        self._labels, self._matcher = labels, matcher
        self._read = matcher.reader.read
        windows = [_Holding(query, number) for number in range(len(query.windows))]
        self._of_stream = {
            window.stream: [one for one in windows if one.stream == window.stream]
            for window in windows
        }
        self._reserved = ReservedGraphs(query)
        self._has_context = any(window.context for window in windows)
        self._has_names = self._has_context or any(window.members for window in windows)
        predicates = matcher.reader.predicates
        self._has_graphs = any(window.graphs for window in windows) or (
            self._has_context and (predicates is None or CONTEXT_GRAPH in predicates)
        )
        self._read_all = matcher.reader.read if predicates is None else QuadReader(None).read
        self._counts: dict[TextQuad, int] = {}
        self._before: dict[TextQuad, int] = {}  # the earlier counts of changed quads
        data = Message(static).map_blanks(lambda node: Term(f"_:{labels.of_data}{node[2:]}"))
        fixed = self._read(data.lines)
        graphs = dict.fromkeys(f"{quad.graph}" for quad in data if quad.graph is not None)
        self._enter(matcher.matched((*fixed, *(_member(_STATIC, graph) for graph in graphs))))

    def hold(
        self, stream: int, stream_iri: str, element_iri: ElementIri, time: int, element: Element
    ) -> HeldQuads:
        """Returns an element in the form that enters windows.

        Args:
            stream, stream_iri, element_iri, time, element: see `Contents.hold`.
        """
        nquads = element.nquads
        if may_have_labels(nquads):
            scope = self._labels.of_response(stream)
            nquads = element.message.map_blanks(lambda node: Term(f"_:{scope}{node[2:]}")).lines
        quads = self._read(nquads)
        windows = self._of_stream[stream_iri]
        node = f"<{element_iri(stream_iri, element.sequence)}>" if self._has_names else ""
        graphs: Sequence[str] = ()
        if self._has_graphs:  # also of quads that match no pattern
            graphs = list(dict.fromkeys(quad[3] for quad in self._read_all(nquads) if quad[3]))
        context: list[TextQuad] = []
        if self._has_context:
            triples = context_triples(node, stream_iri, time, element.sequence, graphs)
            context += ((*triple, "") for triple in triples)
        taken = self._reserved.among(graphs, element_iri) if graphs else ()
        named = [quad for quad in quads if quad[3] and quad[3] not in taken]
        named += [_member(_STATIC, graph) for graph in graphs if graph not in taken]
        held: dict[int, list[TextQuad]] = {}
        for window in windows:
            if found := self._matcher.matched(_quads(window, node, quads, context, named)):
                held[window.number] = found
        if self._keep:
            return HeldQuads(held, (stream, stream_iri, element_iri, time, element))
        return HeldQuads(held, None) if held else _NOTHING

    def enter(self, window: int, held: HeldQuads) -> None:
        """Counts the quads that an element adds to a window."""
        if held.quads:
            self._enter(held.quads.get(window, ()))

    def leave(self, window: int, held: HeldQuads) -> None:
        """Reverts `enter`."""
        if not held.quads:
            return
        counts, before = self._counts, self._before
        for quad in held.quads.get(window, ()):
            count = counts[quad]
            before.setdefault(quad, count)
            if count == 1:
                del counts[quad]
            else:
                counts[quad] = count - 1

    @property
    def are_changed(self) -> bool:
        """Whether elements with such quads have entered or left since the last call of `changes`."""
        return bool(self._before)

    def changes(self) -> Changes:
        """Returns the changes since the last call."""
        counts = self._counts
        changes = Changes([], [])
        for quad, before in self._before.items():
            if quad in counts:
                if not before:
                    changes.appeared.append(quad)
            elif before:
                changes.vanished.append(quad)
        self._before.clear()
        return changes

    def _enter(self, quads: Iterable[TextQuad]) -> None:
        counts, before = self._counts, self._before
        for quad in quads:
            count = counts.get(quad, 0)
            before.setdefault(quad, count)
            counts[quad] = count + 1


def _quads(
    window: _Holding,
    node: str,
    quads: list[TextQuad],
    context: list[TextQuad],
    named: list[TextQuad],
) -> list[TextQuad]:
    """Returns the quads that an element adds to a window; some may be repeated."""
    own = quads + context if window.context else quads
    added: list[TextQuad] = []
    if window.union:
        name = window.name
        added += [(subject, predicate, object, name) for subject, predicate, object, _ in own]
    if window.members:
        added += [(subject, predicate, object, node) for subject, predicate, object, _ in own]
        added.append(_member(window.name, node))
    if window.merged:
        added += [(subject, predicate, object, "") for subject, predicate, object, _ in own]
    if window.graphs:
        added += named
    return added


def _member(group: str, graph: str) -> TextQuad:
    return group, _MEMBER, graph, _WINDOWS

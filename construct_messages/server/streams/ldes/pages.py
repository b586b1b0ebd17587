"""A Linked Data Event Stream as messages: its root, its pages and its members. No I/O.

LDES 1.0.0-alpha with its server primer (https://w3id.org/ldes/server-primer), and the TREE profile: hypermedia come
before the members, and the quads of a member are together. A member is the IRI of an element: the default graph
contains the time when it was stored, and the graph of that name is the default graph of the message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from construct_messages.rdf.labels import Labels, may_have_labels
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import RDF, XSD, Term, iri, literal
from construct_messages.rdf.vocabulary import CM, DCTERMS, LDES, PROV, RDFS, TREE
from construct_messages.rdf.wire import Property
from construct_messages.server.streams.addresses import StreamIris
from construct_messages.streams.element import Element, Retention, State, messages_of

LDES_PREFIXES: Final = {
    "cm": CM,
    "dcterms": DCTERMS,
    "ldes": LDES,
    "prov": PROV,
    "rdfs": RDFS,
    "tree": TREE,
    "xsd": XSD,
}

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TYPE: Final = iri(f"{RDF}type")
_LABEL: Final = iri(f"{RDFS}label")
_EVENT_STREAM: Final = iri(f"{LDES}EventStream")
_VIEW, _MEMBER, _NODE = iri(f"{TREE}view"), iri(f"{TREE}member"), iri(f"{TREE}Node")
_ISSUED, _SEQUENCE, _GENERATED = (
    iri(f"{DCTERMS}issued"),
    iri(f"{CM}{Property.SEQUENCE}"),
    iri(f"{PROV}generatedAtTime"),
)
_RELATION, _RELATION_NODE = iri(f"{TREE}relation"), iri(f"{TREE}node")
_PATH, _VALUE = iri(f"{TREE}path"), iri(f"{TREE}value")
_AT_LEAST, _AT_MOST = (
    iri(f"{TREE}{name}OrEqualToRelation") for name in ("GreaterThan", "LessThan")
)
_TRUE: Final = literal("true", datatype=f"{XSD}boolean")


class LdesPage(NamedTuple):
    """A page of a stream: the elements of a range of sequences that begins after a multiple of its size.

    Args:
        first, last: the sequences, both inclusive.

    >>> LdesPage.of(2001, 1000), LdesPage.of(3000, 1000).name, LdesPage.named("2001-3000"), LdesPage.named("2002-3001")
    (LdesPage(first=2001, last=3000), '2001-3000', LdesPage(first=2001, last=3000), None)
    """

    first: int
    last: int

    @classmethod
    def of(cls, sequence: int, size: int) -> LdesPage:
        """Returns the page of an element."""
        before = (sequence - 1) // size * size
        return cls(before + 1, before + size)

    @classmethod
    def named(cls, name: str) -> LdesPage | None:
        """Returns the page with a name; None: there is none. The names of pages depend on their size."""
        first, _, last = name.partition("-")
        if not (_is_sequence(first) and _is_sequence(last)):
            return None
        page = cls(int(first), int(last))
        return (
            page
            if page.first <= page.last and page == cls.of(page.last, page.last - page.first + 1)
            else None
        )

    @property
    def name(self) -> str:
        """The last part of its IRI."""
        return f"{self.first}-{self.last}"


def _is_sequence(text: str) -> bool:
    return text.isascii() and text.isdigit() and text[0] != "0" and len(text) < 16


def pages_of(state: State, size: int) -> list[LdesPage]:
    """Returns the pages with retained elements, the oldest first.

    >>> from construct_messages.streams.element import Description
    >>> pages_of(State("a", Description(), first=15, next=31, bytes=0), 10)
    [LdesPage(first=11, last=20), LdesPage(first=21, last=30)]
    """
    if state.first == state.next:
        return []
    first, last = LdesPage.of(state.first, size), LdesPage.of(state.last, size)
    return [LdesPage(start, start + size - 1) for start in range(first.first, last.first + 1, size)]


class PageTimes(NamedTuple):
    """The first and last storage times of a page's elements, in microseconds since 1970.

    Args:
        page: the page.
        earliest: the time of its first element, or of the first retained one.
        latest: the time of its last element; None: the page is not full.
    """

    page: LdesPage
    earliest: int
    latest: int | None


def root(
    iris: StreamIris,
    bounds: Sequence[PageTimes],
    state: State,
    *,
    version_of_path: str | None = None,
) -> Message:
    """Returns the root: the description of the stream, its retention, and its pages with their time bounds.

    Consecutive pages may share a time, so the bounds are inclusive.

    Args:
        iris: the IRIs of the stream.
        bounds: the bounds of its pages, the oldest first.
        state: its state.
        version_of_path: the property whose object is the versioned resource of a member; None: there is none.
    """
    stream, view = Term(f"<{iris.event_stream}>"), Term(f"<{iris.ldes}>")
    quads = [
        Quad(stream, _TYPE, _EVENT_STREAM),
        Quad(stream, _LABEL, literal(state.description.label or state.name)),
        Quad(stream, iri(f"{LDES}timestampPath"), _ISSUED),
        Quad(stream, iri(f"{LDES}sequencePath"), _SEQUENCE),
        Quad(stream, _VIEW, view),
        Quad(view, _TYPE, _NODE),
        *_retention(iris, bounds, state),
    ]
    if version_of_path is not None:
        quads.append(Quad(stream, iri(f"{LDES}versionOfPath"), iri(version_of_path)))
    labels = Labels.at(iris.ldes).in_message(0)
    for page, *times in bounds:
        node = Term(f"<{iris.ldes_page(page.name)}>")
        for kind, microseconds in zip((_AT_LEAST, _AT_MOST), times, strict=True):
            if microseconds is not None:
                relation = labels[Term(f"_:{len(labels)}")]
                quads += (
                    Quad(view, _RELATION, relation),
                    Quad(relation, _TYPE, kind),
                    Quad(relation, _RELATION_NODE, node),
                    Quad(relation, _PATH, _ISSUED),
                    Quad(relation, _VALUE, _date_time(microseconds)),
                )
    return Message(quads)


def _retention(iris: StreamIris, bounds: Sequence[PageTimes], state: State) -> Iterator[Quad]:
    """Returns the retention policy: the maximal age of elements, if any, and the time of the oldest one.

    LDES has no terms for limits on the number of elements or bytes; the time expresses their effect.
    """
    retention = state.description.retention
    if state.first == 1 and (retention == Retention() or not bounds):
        return  # without a policy, all elements are retained
    policy = Term(f"<{iris.ldes}#retention>")
    yield Quad(Term(f"<{iris.ldes}>"), iri(f"{LDES}retentionPolicy"), policy)
    yield Quad(policy, _TYPE, iri(f"{LDES}RetentionPolicy"))
    if retention.seconds is not None:
        seconds = f"{retention.seconds:f}".rstrip("0").rstrip(".")
        yield Quad(
            policy,
            iri(f"{LDES}fullLogDuration"),
            literal(f"PT{seconds}S", datatype=f"{XSD}duration"),
        )
    if bounds:
        yield Quad(policy, iri(f"{LDES}startingFrom"), _date_time(bounds[0].earliest))


def page_head(iris: StreamIris, page: LdesPage, *, full: bool) -> Message:
    """Returns the statements of a page before its members.

    Args:
        iris: the IRIs of the stream.
        page: the page.
        full: whether the page is complete.
    """
    stream, node = Term(f"<{iris.event_stream}>"), Term(f"<{iris.ldes_page(page.name)}>")
    quads = [
        Quad(stream, _TYPE, _EVENT_STREAM),
        Quad(stream, _VIEW, Term(f"<{iris.ldes}>")),
        Quad(node, _TYPE, _NODE),
    ]
    return Message([*quads, Quad(node, iri(f"{LDES}immutable"), _TRUE)] if full else quads)


def members(
    iris: StreamIris,
    elements: Sequence[Element],
    version_of_path: str | None = None,
    *,
    graphs: bool = True,
) -> Iterator[Message]:
    """Returns elements as members with separate blank nodes, whose labels are the same each time.

    Named graphs of messages keep their names. Without named graphs, the default graph of a message follows the
    statements about its member, and only the TREE profile shows where it belongs.

    Args:
        iris: the IRIs of the stream.
        elements: the elements.
        version_of_path: the property whose only object in a message's default graph, if that is an IRI, is the
            versioned resource of the member.
        graphs: whether the format names graphs.
    """
    stream, labels = Term(f"<{iris.event_stream}>"), Labels.at(iris.ldes)
    for element, message in zip(elements, messages_of(elements), strict=True):
        if may_have_labels(element.nquads):
            message = message.map_blanks(labels.in_message(element.sequence).__getitem__)
        member = Term(f"<{iris.element(element.sequence)}>")
        quads = [
            Quad(stream, _MEMBER, member),
            Quad(member, _ISSUED, _date_time(element.microseconds)),
            Quad(member, _SEQUENCE, Term(f'"{element.sequence}"^^<{XSD}integer>')),
        ]
        if element.generated is not None:
            quads.append(
                Quad(member, _GENERATED, literal(element.generated, datatype=f"{XSD}dateTime"))
            )
        if version_of_path is not None and (entity := _only_object(message, iri(version_of_path))):
            quads.append(Quad(member, iri(version_of_path), entity))
        default = member if graphs else None
        quads += [
            Quad(subject, predicate, object, graph or default)
            for subject, predicate, object, graph in message
        ]
        yield Message(quads)


def _only_object(message: Message, predicate: Term) -> Term | None:
    """Returns the only object of a property in the default graph, if that is an IRI."""
    objects = {
        quad.object for quad in message if quad.predicate == predicate and quad.graph is None
    }
    return objects.pop() if len(objects) == 1 and next(iter(objects)).startswith("<") else None


def _date_time(microseconds: int) -> Term:
    time = (_EPOCH + timedelta(microseconds=microseconds)).isoformat().removesuffix("+00:00")
    return Term(f'"{time}Z"^^<{XSD}dateTime>')  # canonical, ten times as fast as `literal`

"""The members that a reader has returned: the minimal state for returning each once, also after a restart.

For ordered members, the state is the last one, and those with the same values; otherwise all of them. No I/O.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import blake2b
from itertools import pairwise
from typing import Final, NamedTuple, Self, TypeAlias

from construct_messages.errors import SourceError
from construct_messages.feeds.state import Checkpoint
from construct_messages.feeds.transport import Start
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import (
    RDF,
    XSD,
    Term,
    iri,
    is_blank,
    is_literal,
    literal,
    literal_parts,
    map_blanks,
)
from construct_messages.rdf.vocabulary import CM, LDES, TREE
from construct_messages.rdf.wire import Property

# --- values ---------------------------------------------------------------------------------------
# Compares the values by which members of event streams are ordered. No I/O.
#
# XML Schema Definition Language 1.1, part 2: sections 3.3.7 (dateTime), 3.3.6 (duration), 3.3.3 (decimal).

Value: TypeAlias = tuple[int, Decimal | str]
"""The sort key of a literal or IRI: times, then numbers, then others (`OTHER`)."""

OTHER: Final = 2

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DATE_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d:\d\d)(\.\d{1,40})?)?(Z|[+-]\d\d:\d\d)?", re.ASCII
)
_NUMBER: Final = re.compile(r"[+-]?\d{1,40}(?:\.\d{0,40})?", re.ASCII)
_TIMES: Final = {f"{XSD}dateTime", f"{XSD}dateTimeStamp", f"{XSD}date"}
_DURATION: Final = re.compile(
    r"P(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?", re.ASCII
)


def value_of(term: Term) -> Value:
    """Returns the sort key of a literal or IRI among others of its kind. A time without a zone is interpreted as UTC.

    A string in the form of a time is one: many pages have bounds without a datatype.

    >>> from construct_messages.rdf.terms import literal
    >>> earlier = literal("2026-11-22T13:00:00.0001+02:00", datatype=f"{XSD}dateTime")
    >>> later = literal("2026-11-22T11:00:00.00010000001Z", datatype=f"{XSD}dateTime")
    >>> value_of(earlier) < value_of(later) < value_of(literal("7", datatype=f"{XSD}integer"))
    True
    """
    if not is_literal(term):
        return OTHER, term
    text, datatype, _, _ = literal_parts(term)
    if (datatype in _TIMES or (datatype is None and "T" in text)) and (
        match := _DATE_TIME.fullmatch(text.strip())
    ):
        date, time, fraction, zone = match.groups()
        try:
            read = datetime.fromisoformat(f"{date}T{time or '00:00:00'}{zone or 'Z'}")
            whole = (read - _EPOCH).total_seconds()
        except (ValueError, OverflowError):  # such as the 30th of February
            return OTHER, text
        return 0, Decimal(int(whole)) + Decimal(fraction or 0)
    if datatype is not None and _NUMBER.fullmatch(text.strip()):
        return 1, Decimal(text.strip())
    return OTHER, text


def seconds_of(term: Term) -> float | None:
    """Returns a duration in seconds, from a duration or a number of seconds; None: neither.

    >>> from construct_messages.rdf.terms import literal
    >>> seconds_of(literal("PT1M30S", datatype=f"{XSD}duration")), seconds_of(literal("soon"))
    (90.0, None)
    """
    text = literal_parts(term)[0].strip() if is_literal(term) else ""
    if _NUMBER.fullmatch(text):
        return float(text)
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


# --- hypermedia -----------------------------------------------------------------------------------
# Reads a page of a Linked Data Event Stream: its stream, its relations to other pages, its members.
#
# TREE (https://w3id.org/tree/specification) with its profile specification; LDES 1.0.0-alpha. No I/O, and no choice
# of the next page.

Path: TypeAlias = tuple[Term, ...]  # a sequence of properties from a member to a value

_MEMBER, _VIEW = iri(f"{TREE}member"), iri(f"{TREE}view")
_RELATION, _NODE, _PATH, _VALUE = (
    iri(f"{TREE}{name}") for name in ("relation", "node", "path", "value")
)
_TIMESTAMP_PATH, _SEQUENCE_PATH = iri(f"{LDES}timestampPath"), iri(f"{LDES}sequencePath")
_POLLING, _IMMUTABLE = iri(f"{LDES}pollingInterval"), iri(f"{LDES}immutable")
_TYPE, _FIRST, _REST, _NIL = (iri(f"{RDF}{name}") for name in ("type", "first", "rest", "nil"))
_LOWER: Final = {
    iri(f"{TREE}{name}Relation") for name in ("GreaterThan", "GreaterThanOrEqualTo", "EqualTo")
}
_UPPER: Final = {
    iri(f"{TREE}{name}Relation") for name in ("LessThan", "LessThanOrEqualTo", "EqualTo")
}
_ELEMENTS: Final = (iri(f"{CM}{Property.SEQUENCE}"),)


class EventStream(NamedTuple):
    """The description of a stream by its root."""

    iri: Term
    # the path to the time by which members are ordered; None: they are not ordered
    timestamp_path: Path | None = None
    # the path to the value that orders members with the same time, or all members without times
    sequence_path: Path | None = None
    # the time between requests of a client, in seconds; None: the page does not contain it
    polling_seconds: float | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths to the values by which members are ordered."""
        return tuple(path for path in (self.timestamp_path, self.sequence_path) if path is not None)

    @property
    def has_elements(self) -> bool:
        """Whether members are elements of a server of this package: the graph with a member's name is its message."""
        return self.sequence_path == _ELEMENTS


class Relation(NamedTuple):
    """A relation of a page to another one."""

    page: str  # the IRI of the other page
    # inclusive bounds of the first value by which its members are ordered; None: no bound
    lower: Value | None
    upper: Value | None


class Member(NamedTuple):
    """A member with all of its statements."""

    iri: Term
    quads: Sequence[Quad]

    def values(self, path: Path) -> set[Term]:
        """Returns the values at the end of a path, in the default graph or else in the graph of the member's name."""
        for graph in (None, self.iri):
            nodes = {self.iri}
            for step in path:
                nodes = {
                    quad.object
                    for quad in self.quads
                    if quad.predicate == step and quad.subject in nodes and quad.graph == graph
                }
            if nodes:
                return nodes
        return set()

    def element(self) -> Message:
        """Returns the message of a member that is an element of a server of this package."""
        graphs = (quad for quad in self.quads if quad.graph is not None)
        return Message(
            quad._replace(graph=None) if quad.graph == self.iri else quad for quad in graphs
        )


class Hypermedia:
    """A page, or another document that leads to one; its quads are in order.

    `in_profile`: it conforms to the TREE profile: first hypermedia, then each member from its `tree:member` on.
    """

    def __init__(self, quads: Sequence[Quad], *, in_profile: bool = False) -> None:
        self._starts = [
            index
            for index, quad in enumerate(quads)
            if quad.predicate == _MEMBER and quad.graph is None
        ]
        self._quads, self._in_profile = quads, in_profile
        hypermedia = quads[: self._starts[0]] if in_profile and self._starts else quads
        self._default: dict[Term, list[Quad]] = {}
        self._graphs: dict[Term, list[Quad]] = {}
        for quad in hypermedia:
            if quad.graph is None:
                self._default.setdefault(quad.subject, []).append(quad)
            else:
                self._graphs.setdefault(quad.graph, []).append(quad)

    def objects(self, subject: Term, predicate: Term) -> list[Term]:
        """Returns objects in the default graph."""
        return [
            quad.object for quad in self._default.get(subject, ()) if quad.predicate == predicate
        ]

    def pairs(self, predicate: Term) -> list[tuple[Term, Term]]:
        """Returns the subjects and objects of a property in the default graph."""
        return [
            (s, quad.object)
            for s, quads in self._default.items()
            for quad in quads
            if quad.predicate == predicate
        ]

    def view(self, asked: str, places: Iterable[str]) -> tuple[Term, str] | None:
        """Returns the stream, and the URL of the root of its view; None: there is none. Raises `SourceError` if there
        are several.

        `asked`: the requested IRI, which may be that of the stream; `places`: the URLs of this page, before and after
        redirects.
        """
        views = [(stream, view[1:-1]) for stream, view in self.pairs(_VIEW) if view.startswith("<")]
        here = set(places)
        for wanted in (
            [(stream, view) for stream, view in views if stream == f"<{asked}>"],
            [(stream, view) for stream, view in views if view in here],
            views,
        ):
            chosen = [each for each in wanted if each[1] in here] if len(wanted) > 1 else wanted
            if len(chosen) == 1:
                return chosen[0]
        if views:
            raise SourceError(
                f"{asked} has {len(views)} views",
                hint="give one of them: " + ", ".join(sorted({v for _, v in views})),
            )
        return None

    def event_stream(self, stream: Term) -> EventStream:
        """Returns the description of a stream; raises `SourceError` if it is ordered by an unsupported path."""
        timestamp, sequence = (
            self._only_path(stream, name) for name in (_TIMESTAMP_PATH, _SEQUENCE_PATH)
        )
        polling = [
            seconds
            for value in self.objects(stream, _POLLING)
            if (seconds := seconds_of(value)) is not None
        ]
        return EventStream(stream, timestamp, sequence, max(polling, default=None))

    def _only_path(self, stream: Term, predicate: Term) -> Path | None:
        paths = {self._path(value) for value in self.objects(stream, predicate)}
        if not paths:
            return None
        if len(paths) > 1 or None in paths:
            raise SourceError(
                f"{stream} has an {predicate} that is not read here",
                hint="paths are properties, or lists of them",
            )
        return paths.pop()

    def _path(self, node: Term) -> Path | None:
        """Returns a path: a property, or a list of them; None: an unsupported one."""
        if node.startswith("<") and node != _NIL:
            return (node,)
        steps: list[Term] = []
        while node != _NIL:
            first, rest = self.objects(node, _FIRST), self.objects(node, _REST)
            if len(first) != 1 or len(rest) != 1 or not first[0].startswith("<") or len(steps) > 99:
                return None
            steps.append(first[0])
            node = rest[0]
        return tuple(steps) or None

    def immutable(self, places: Iterable[str]) -> bool:
        values = (
            object for place in places for object in self.objects(Term(f"<{place}>"), _IMMUTABLE)
        )
        return any(is_literal(each) and literal_parts(each)[0] in ("true", "1") for each in values)

    def relations(self, places: Iterable[str], ordered_by: Path | None) -> list[Relation]:
        """Returns the relations of the page, with bounds of the path `ordered_by`; several relations to one page are
        combined.
        """
        found: dict[str, Relation] = {}
        for place in dict.fromkeys(places):
            for relation in self.objects(Term(f"<{place}>"), _RELATION):
                lower, upper = self._bounds(relation, ordered_by)
                for node in self.objects(relation, _NODE):
                    if not node.startswith("<"):
                        raise SourceError(f"{place} has a relation to {node}, which is no page")
                    before = found.get(node, Relation(node[1:-1], None, None))
                    found[node] = before._replace(
                        lower=_tightest(max, before.lower, lower),
                        upper=_tightest(min, before.upper, upper),
                    )
        return list(found.values())

    def _bounds(self, relation: Term, ordered_by: Path | None) -> tuple[Value | None, Value | None]:
        kinds, values = set(self.objects(relation, _TYPE)), self.objects(relation, _VALUE)
        paths = [self._path(path) for path in self.objects(relation, _PATH)]
        if ordered_by is None or paths != [ordered_by] or len(values) != 1:
            return None, None
        value = value_of(values[0])
        if value[0] == OTHER:  # the value is neither a time nor a number
            return None, None
        return value if kinds & _LOWER else None, value if kinds & _UPPER else None

    @property
    def has_members(self) -> bool:
        return bool(self._starts)

    def members(self) -> Iterator[Member]:
        """Yields the members, in the order of the page."""
        if self._in_profile:
            for start, end in pairwise([*self._starts, len(self._quads)]):
                yield Member(self._quads[start].object, self._quads[start + 1 : end])
        else:
            for member in dict.fromkeys(self._quads[start].object for start in self._starts):
                yield Member(member, self._described(member))

    def _described(self, member: Term) -> list[Quad]:
        """Returns the statements with the member as subject, and those in its graph; likewise for the blank nodes in
        them.
        """
        found: dict[Quad, None] = {}
        nodes = {member: None}
        waiting = [member]

        def meet(node: Term) -> Term:
            if node not in nodes:
                nodes[node] = None
                waiting.append(node)
            return node

        while waiting:
            node = waiting.pop()
            for quad in (*self._default.get(node, ()), *self._graphs.get(node, ())):
                found[quad] = None
                for term in (quad.subject, quad.object):
                    if "_:" in term:
                        map_blanks(term, meet)
        return list(found)


def _tightest(
    choose: Callable[[Value, Value], Value], some: Value | None, other: Value | None
) -> Value | None:
    if some is None or other is None:
        return some if other is None else other
    return choose(some, other)


def check_member(term: Term) -> None:
    """Raises `SourceError` for a member that is not an IRI, by which it is distinguished from those of other pages."""
    if is_blank(term) or not term.startswith("<"):
        raise SourceError(f"the member {term} is no IRI, so it cannot be distinguished from others")


# --- known ----------------------------------------------------------------------------------------


class Known:
    """The members that were returned.

    `sequence` is that of the last returned member, or the number of returned members.

    >>> known = Known(None)
    >>> known.add("urn:a", (), 1)
    >>> known.has("urn:a", ()), known.has("urn:b", ()), Known(known.checkpoint).has("urn:a", ())
    (True, False, True)
    """

    def __init__(self, checkpoint: Checkpoint | None) -> None:
        self.sequence = 0 if checkpoint is None else checkpoint.sequence
        if checkpoint is not None:
            checkpoint.check("last", "known")
        place = {} if checkpoint is None else checkpoint.place
        # the values that order the last member, and digests of the IRIs of those with these values
        self._terms = tuple(map(Term, place.get("last", ())))
        self._last = tuple(map(value_of, self._terms))
        self._known = set(place.get("known", ()))

    @classmethod
    def at(cls, start: Start) -> Self:
        """Returns the state before the first member, without a request."""
        known = cls(start.checkpoint)
        if start.checkpoint is None:
            known.sequence = start.after or 0
        if start.since is not None:
            known._terms = (literal(start.since.isoformat(), datatype=f"{XSD}dateTime"),)
            known._last = tuple(map(value_of, known._terms))
        return known

    @property
    def checkpoint(self) -> Checkpoint:
        place = {"last": tuple(self._terms), "known": tuple(sorted(self._known))}
        return Checkpoint(self.sequence, {name: texts for name, texts in place.items() if texts})

    def has(self, name: str, values: tuple[Value, ...]) -> bool:
        """Whether a member was returned, by its IRI and the values that order it. One that is earlier than the last
        counts as returned.
        """
        return values < self._last or (values == self._last and _digest(name) in self._known)

    def is_past(self, bound: Value) -> bool:
        """Returns whether all members up to a bound were returned."""
        return bool(self._last) and bound[0] == self._last[0][0] and bound < self._last[0]

    def add(self, name: str, terms: tuple[Term, ...], sequence: int) -> None:
        """Records that a member was returned, with the terms that order it."""
        if terms != self._terms:
            self._terms, self._last = terms, tuple(map(value_of, terms))
            self._known.clear()
        self._known.add(_digest(name))
        self.sequence = sequence


def _digest(name: str) -> str:
    return urlsafe_b64encode(blake2b(name.encode(), digest_size=9).digest()).decode()

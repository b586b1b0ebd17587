"""The dataset of a continuous query: a store that changes as elements enter windows and leave them.

docs/decisions/047-windows-as-datasets.md defines the graph of each triple. Quads are counted, as several messages and
windows may hold the same one; `update` applies the differences to the store. No times and no bounds of windows here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

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
from construct_messages.query.select import Select
from construct_messages.rdf.labels import Labels, may_have_labels
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import (
    XSD,
    OxTerm,
    Term,
    from_pyoxigraph,
    is_literal,
    is_triple,
    to_pyoxigraph,
)
from construct_messages.rdf.terms.values import date_time_of
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.open import open_source
from construct_messages.streams.element import GENERATED_AT, Element

if TYPE_CHECKING:
    from construct_messages.sparql.sources.open import SourceLike


# --- static ---------------------------------------------------------------------------------------
# Static data of a continuous query: all data of a source, read once. Does I/O, through `sparql/sources/`.

_VARIABLES: Final = ("s", "p", "o", "g")
_EVERYTHING: Final = Select(
    prologue="",
    head="SELECT ?s ?p ?o ?g ",
    variables=_VARIABLES,
    dataset="WHERE ",
    group="{ { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }",
)


def read_static(source: SourceLike, query: ContinuousQuery) -> list[Quad]:
    """Returns the quads of a source for a query: those of the graphs in its FROM and FROM NAMED, or else all.

    >>> import pyoxigraph as ox
    >>> from construct_messages.query.continuous.parse import parse_continuous
    >>> store = ox.Store()
    >>> store.add(ox.Quad(ox.NamedNode("urn:s"), ox.NamedNode("urn:p"), ox.Literal(1), ox.NamedNode("urn:g")))
    >>> read_static(store, parse_continuous("SELECT * { ?s ?p ?o }"))[0].graph
    '<urn:g>'
    """
    opened = open_source(source)
    request = Request(_EVERYTHING, query.default_graphs, query.named_graphs, labels=Labels("s"))
    try:
        return [
            Quad(subject, predicate, object, graph or None)
            for solutions in opened.solutions(request)
            for subject, predicate, object, graph in solutions
        ]
    finally:
        if opened is not source:
            opened.close()


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


class StoredTerms:
    """Converts terms to those that a store returns.

    >>> terms = StoredTerms()
    >>> terms.term(ox.Literal("01", datatype=ox.NamedNode(f"{XSD}integer"))) == ox.Literal(1)
    True
    """

    def __init__(self) -> None:
        self._known: dict[OxTerm, OxTerm] = {}

    def term(self, term: OxTerm) -> OxTerm:
        """Returns the object of a quad as a store returns it; the same Python object if it is equal."""
        if isinstance(term, (ox.NamedNode, ox.BlankNode)):
            return term
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


# --- quads of messages ----------------------------------------------------------------------------
# Reads the quads of messages as texts of terms, as a store returns them.
#
# N-Quads (RDF 1.2). Messages are canonical N-Quads, so that one regular expression matches most lines. Messages with
# uncommon forms are parsed by pyoxigraph.

TextQuad: TypeAlias = "tuple[str, str, str, str]"
"""Subject, predicate, object and graph; the empty string is the default graph."""

_IRI: Final = r"<[^>\\]*+>"
_NODE: Final = rf"(?:{_IRI}|_:[A-Za-z0-9_]++)"
_LITERAL: Final = r'"[^"\\\r\n]*+"'
_TYPED: Final = "|".join(
    rf'"(?:{form})"\^\^<{re.escape(XSD)}{name}>' for name, form in PLAIN_FORMS.items()
)
_OBJECT: Final = rf"({_NODE}|{_LITERAL}(?![\^@])|{_TYPED})(?: ({_NODE}))? \."
_QUADS: Final = re.compile(rf"^({_NODE}) ({_IRI}) {_OBJECT}[\r\n]*$", re.MULTILINE)
_DEFAULT: Final = ox.DefaultGraph()


class QuadReader:
    """Reads the quads of messages with certain predicates, which have brackets; None: all quads.


    >>> reader = QuadReader(frozenset(["<urn:p>"]))
    >>> list(reader.read(b'<urn:s> <urn:p> "o" .\\n<urn:s> <urn:q> "o" <urn:g> .'))
    [('<urn:s>', '<urn:p>', '"o"', '')]
    """

    def __init__(self, predicates: frozenset[str] | None) -> None:
        self.predicates = predicates
        self._lines = [
            (
                name,
                f" {name} ".encode(),
                re.compile(rf"({_NODE}) {re.escape(name)} {_OBJECT}\r*").fullmatch,
            )
            for name in sorted(predicates or ())
        ]
        self._stored = StoredTerms()

    def read(self, nquads: bytes) -> list[TextQuad]:
        """Returns the quads of a message."""
        found: list[TextQuad]
        if self.predicates is None:
            text = nquads.decode()
            found = _QUADS.findall(text)
            is_complete = len(found) == text.count("\n") + (text[-1:] not in ("", "\n"))
            return found if is_complete else list(self._read_all(nquads))
        found = []
        find = nquads.find
        for name, between, line in self._lines:
            place = find(between)
            while place >= 0:
                end = find(b"\n", place)
                if end < 0:
                    end = len(nquads)
                quad = line(nquads[nquads.rfind(b"\n", 0, place) + 1 : end].decode())
                if quad is None:  # an uncommon form, or the text is in a literal or triple term
                    return list(self._read_all(nquads))
                subject, object, graph = quad.groups("")
                found.append((subject, name, object, graph))
                place = find(between, end)
        return found

    def _read_all(self, nquads: bytes) -> Iterator[TextQuad]:
        for quad in ox.parse(nquads, format=ox.RdfFormat.N_QUADS, lenient=True):
            predicate = str(quad.predicate)
            if self.predicates is None or predicate in self.predicates:
                graph = "" if quad.graph_name == _DEFAULT else str(quad.graph_name)
                yield (
                    str(quad.subject),
                    predicate,
                    from_pyoxigraph(self._stored.term(quad.object)),
                    graph,
                )

    def among(self, quads: Iterable[TextQuad]) -> list[TextQuad]:
        """Those of some quads that have one of the predicates."""
        known = self.predicates
        return [quad for quad in quads if known is None or quad[1] in known]

    def stored(self, term: Term) -> Term:
        """A term of a query as a store returns it."""
        if is_literal(term) or is_triple(term):
            return from_pyoxigraph(self._stored.term(to_pyoxigraph(term)))
        return term


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
    """A store in memory, which is rebuilt when it has too many removed quads. `fixed` quads always stay.

    `store` holds the quads; it is another object after each of the `compactions`.


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
        """Removes quads, none of them fixed, and adds new ones. `changing`: all quads afterwards but the fixed ones."""
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

ElementIri: TypeAlias = Callable[[str, int], str]
"""Builds an element's IRI from its stream's IRI and its sequence number; without brackets."""

_WINDOWS: Final = f"<{WINDOWS_GRAPH}>"
_STATIC: Final = f"<{STATIC}>"
_MEMBER: Final = f"<{MEMBER}>"

CONTEXT_GRAPH: Final = f"<{CM}graph>"
"""The predicate of context triples between an element and a named graph of its message."""

_ALL: Final = ~Needs.NOTHING
_NUMBERS: Final = re.compile(r"[0-9]{1,19}(?![0-9])")

Origin: TypeAlias = "tuple[int, str, ElementIri, int, Element]"
"""The arguments of `Contents.hold`."""


class HeldQuads:
    """An element as windows hold it.

    `quads` are those that it adds to windows on its stream and that the query reads, by the number of each window that
    has any; None while the query is evaluated as a whole. `origin` is kept where the way of evaluation may change: the
    element is read again then, as `whole` for the evaluation of the whole query.
    """

    __slots__ = ("origin", "quads", "whole")

    def __init__(self, quads: dict[int, list[TextQuad]] | None, origin: Origin | None) -> None:
        self.quads, self.origin = quads, origin
        self.whole: HeldQuads | None = None


_NOTHING: Final = HeldQuads({}, None)


class Changes(NamedTuple):
    """Added and removed quads."""

    appeared: list[TextQuad]
    vanished: list[TextQuad]


class ReservedGraphs:
    """The graphs that hold what this package states: of windows, of their messages, and of the members of windows.

    A message adds no quad to them by naming them, as it could otherwise speak for another message or stream.

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


class Contents:
    """The quads of the windows of a query, with static data, and their changes.

    Several messages and windows may hold the same quad: quads are counted.

    Args:
        query: its windows, and the graphs that it needs of them.
        static: the quads of static data.
        labels: create the labels of all blank nodes.
        reader: reads the quads whose predicates make a difference.
        matched: returns those of some quads that make a difference; None: all do.
        keep: whether to keep the elements, see `HeldQuads.origin`.
    """

    def __init__(
        self,
        query: ContinuousQuery,
        static: Iterable[Quad],
        labels: Labels,
        reader: QuadReader,
        matched: Callable[[Iterable[TextQuad]], list[TextQuad]] | None = None,
        *,
        keep: bool = False,
    ) -> None:
        self._keep = keep
        self._labels, self._read = labels, reader.read
        self._matched = matched or reader.among
        windows = [_Holding(query, number) for number in range(len(query.windows))]
        self._of_stream = {
            window.stream: [one for one in windows if one.stream == window.stream]
            for window in windows
        }
        self._reserved = ReservedGraphs(query)
        self._has_context = any(window.context for window in windows)
        self._has_names = self._has_context or any(window.members for window in windows)
        predicates = reader.predicates
        self._has_graphs = any(window.graphs for window in windows) or (
            self._has_context and (predicates is None or CONTEXT_GRAPH in predicates)
        )
        self._read_all = reader.read if predicates is None else QuadReader(None).read
        self._counts: dict[TextQuad, int] = {}
        self._before: dict[TextQuad, int] = {}  # the earlier counts of changed quads
        data = Message(static).map_blanks(lambda node: Term(f"_:{labels.of_data}{node[2:]}"))
        fixed = self._read(data.lines)
        graphs = dict.fromkeys(f"{quad.graph}" for quad in data if quad.graph is not None)
        self._enter(self._matched((*fixed, *(_member(_STATIC, graph) for graph in graphs))))

    def hold(
        self, stream: int, stream_iri: str, element_iri: ElementIri, time: int, element: Element
    ) -> HeldQuads:
        """Returns an element in the form that enters windows."""
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
            if found := self._matched(_quads(window, node, quads, context, named)):
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


class StoredContents(Contents):
    """The contents of windows in a store, for an engine."""

    def __init__(
        self, query: ContinuousQuery, static: Iterable[Quad], labels: Labels, reader: QuadReader
    ) -> None:
        super().__init__(query, static, labels, reader)
        fixed = self.changes().appeared
        self._fixed = frozenset(fixed)
        self._store = CompactedStore(_parsed(fixed))

    def update(self) -> ox.Store:
        """Brings the store up to date."""
        appeared, vanished = self.changes()
        self._store.change(_parsed(vanished), _parsed(appeared), self._changing())
        return self._store.store

    def _changing(self) -> Iterator[ox.Quad]:
        # a generator, as it is seldom read
        yield from _parsed(quad for quad in self._counts if quad not in self._fixed)


def _parsed(quads: Iterable[TextQuad]) -> list[ox.Quad]:
    lines = "".join([f"{s} {p} {o} {graph} .\n" for s, p, o, graph in quads])
    return list(ox.parse(lines, format=ox.RdfFormat.N_QUADS, lenient=True))


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


def context_triples(
    node: str, stream: str, microseconds: int, sequence: int, graphs: Iterable[str]
) -> Iterator[tuple[str, str, str]]:
    """Yields the context triples of an element, with terms as a store returns them. `node` has brackets."""
    yield node, f"<{GENERATED_AT}>", f'"{date_time_of(microseconds)}"^^<{XSD}dateTime>'
    yield node, f"<{CM}sequence>", f'"{sequence}"^^<{XSD}integer>'
    yield node, f"<{CM}stream>", f"<{absolute(stream, STREAM_NAMES)}>"
    for graph in graphs:
        yield node, CONTEXT_GRAPH, graph

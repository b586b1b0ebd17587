"""The values a user holds: `Quad` and `Message`.

An RDF Message is an RDF dataset, possibly empty, that is to be read atomically (RDF Messages, section 1,
https://w3c-cg.github.io/rsp/messages/). A message is held as quads, as their terms in a row, or as its lines: quads are
then made when they are first asked for. No serialization here, and nothing about where messages come from.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import pyoxigraph as ox

from construct_messages.errors import UsageError, WrongType
from construct_messages.rdf import compiled
from construct_messages.rdf.arguments import checked, wrong_type
from construct_messages.rdf.isomorphism import match, rename
from construct_messages.rdf.labels import may_have_labels
from construct_messages.rdf.terms import (
    UNBOUND,
    Term,
    iri,
    map_blanks,
    to_python,
)
from construct_messages.rdf.terms.libraries import (
    check_terms,
    html_table,
    matching,
    pyoxigraph_quad,
    rdflib_dataset,
    row_of_pyoxigraph,
    rows_in,
    rows_of_rdflib,
)
from construct_messages.rdf.terms.parsing import terms_of_lines

if TYPE_CHECKING:
    import rdflib


class Quad(NamedTuple):
    """A triple of a message and its graph (None: the default graph). All parts are `Term`s.

    >>> print(Quad(iri("urn:s"), iri("urn:p"), iri("urn:o")))
    <urn:s> <urn:p> <urn:o> .
    """

    subject: Term
    predicate: Term
    object: Term
    graph: Term | None = None

    def __str__(self) -> str:
        return " ".join((*(term for term in self if term is not None), "."))


make_quads = cast(
    "Callable[[Iterable[Iterable[str | None]]], Iterator[Quad]]",
    partial(map, tuple.__new__, repeat(Quad)),
)
"""Makes a quad of each row of four parts, as `Quad._make` does, but without counting them."""


_QUAD: Final = {Quad}
_SHOWN_QUADS: Final = 100  # in a notebook
_subject_of: Final = itemgetter(0)
_predicate_of: Final = itemgetter(1)
_object_of: Final = itemgetter(2)


class Message:
    """An RDF dataset that belongs together: an immutable set of quads that keeps their order.

    `==` and `hash` compare the quads as a set, with blank node labels. `isomorphic` ignores blank node labels.

    Attributes:
        checked: whether all terms are known to be valid RDF. Messages that this package has read or made are checked.

    >>> message = Message([Quad(iri("urn:s"), iri("urn:p"), iri("urn:o"))])
    >>> len(message), message
    (1, <Message of 1 quad: <urn:s> <urn:p> <urn:o> .>)
    >>> Message()
    <Message, empty>
    """

    __slots__ = ("_held", "_made", "_set", "_terms", "checked")

    def __init__(self, quads: Iterable[Quad] = ()) -> None:
        if not hasattr(quads, "__iter__"):
            raise _no_quad(quads)
        held = tuple(quads)
        if not set(map(type, held)) <= _QUAD:
            _check_quads(held)
        try:
            # where all predicates are different, or all objects, so are the quads: that is seen in less time
            if len(set(map(_predicate_of, held))) < len(held) and len(
                set(map(_object_of, held))
            ) < len(held):
                held = tuple(dict.fromkeys(held))
        except TypeError:
            _check_quads(held)
            raise
        self._made = held
        self._terms: Sequence[Term | None] | None = None  # until quads are made of them
        self._held: bytes | None = None  # the lines, until terms are made of them
        self._set: frozenset[Quad] | None = None
        self.checked = False

    @classmethod
    @checked
    def from_pyoxigraph(cls, quads: Iterable[ox.Quad | ox.Triple]) -> "Message":
        """Creates a message from pyoxigraph's quads (of a `Dataset`, a `Store` or a parser) or triples, in their order.

        Raises:
            TermError: a blank node label that no log can write.

        >>> Message.from_pyoxigraph(ox.parse("<urn:s> <urn:p> 1 .", format=ox.RdfFormat.TURTLE))
        <Message of 1 quad: <urn:s> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .>
        """
        return cls(make_quads(map(row_of_pyoxigraph, quads)))

    @classmethod
    def from_rdflib(cls, graph: "rdflib.Graph") -> "Message":
        """Creates a message from an `rdflib.Graph`, or from all graphs of an `rdflib.Dataset`, in their order.

        Raises:
            TermError: a term that is not RDF, such as a quoted graph, or a blank node label that no log can write.

        >>> import rdflib
        >>> Message.from_rdflib(rdflib.Graph().parse(data="<urn:s> <urn:p> <urn:o> ."))
        <Message of 1 quad: <urn:s> <urn:p> <urn:o> .>
        """
        return cls(make_quads(rows_of_rdflib(graph)))

    @property
    def _row(self) -> Sequence[Term | None] | None:
        """The terms in a row; None: there are quads."""
        lines = self._held
        if lines is not None:
            self._terms = terms_of_lines(lines)
            self._held = None  # last, so that other threads find the one or the other
        return self._terms

    @property
    def _quads(self) -> tuple[Quad, ...]:
        terms = self._row
        if terms is not None:
            self._made = tuple(make_quads(rows_in(terms)))
            self._terms = None  # last, as above
        return self._made

    @property
    def quads(self) -> frozenset[Quad]:
        """The quads as a set."""
        if self._set is None:
            self._set = frozenset(self._quads)
        return self._set

    @property
    def statements(self) -> Iterable[tuple[Term, Term, Term, Term | None]]:
        """The quads in order, as plain tuples: to go through them once takes less time."""
        terms = self._row
        if terms is None:
            return self._made
        return rows_in(terms)  # type: ignore[return-value] # only the graph is None

    @property
    def lines(self) -> bytes:
        """The quads as canonical N-Quads, one per line, in order. Triples of the default graph are also N-Triples.

        >>> Message([Quad(iri("urn:s"), iri("urn:p"), iri("urn:o"))]).lines
        b'<urn:s> <urn:p> <urn:o> .\\n'
        """
        if (lines := self._held) is not None:
            return lines
        return "".join(
            [
                f"{s} {p} {o} .\n" if g is None else f"{s} {p} {o} {g} .\n"
                for s, p, o, g in self.statements
            ]
        ).encode()

    def __len__(self) -> int:
        if (lines := self._held) is not None:
            return lines.count(b"\n")
        terms = self._terms
        return len(self._made) if terms is None else len(terms) // 4

    def __iter__(self) -> Iterator[Quad]:
        return iter(self._quads)

    def __contains__(self, quad: object) -> bool:
        return quad in self.quads

    def __eq__(self, other: object) -> bool:
        return self.quads == other.quads if isinstance(other, Message) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.quads)

    def __repr__(self) -> str:
        if not len(self):
            return "<Message, empty>"
        shown = " ".join(str(quad) for quad in self._quads[:3])
        count = "1 quad" if len(self) == 1 else f"{len(self)} quads"
        return f"<Message of {count}: {shown}{' …' if len(self) > 3 else ''}>"

    def _repr_html_(self) -> str:
        """The quads as a table, for notebooks."""
        table = html_table(self._quads[:_SHOWN_QUADS])
        left = len(self) - _SHOWN_QUADS
        return f"<p>Message of {len(self):,} quad{'' if len(self) == 1 else 's'}</p>{table}" + (
            f"<p>and {left:,} more</p>" if left > 0 else ""
        )

    def subjects(self, predicate: Term | None = None, object: Term | None = None) -> list[Term]:
        """Returns the different subjects of the quads with a predicate and an object, in order; None: with any.

        Raises:
            UsageError: text that is not a term.

        >>> Message([Quad(iri("urn:s"), iri("urn:p"), Term('"chat"@fr'))]).subjects(iri("urn:p"))
        ['<urn:s>']
        """
        return list(dict.fromkeys(map(_subject_of, matching(self._quads, None, predicate, object))))

    def objects(self, subject: Term | None = None, predicate: Term | None = None) -> list[Term]:
        """Returns the different objects of the quads with a subject and a predicate, in order; None: with any.

        Raises:
            UsageError: text that is not a term.

        >>> Message([Quad(iri("urn:s"), iri("urn:p"), Term('"chat"@fr'))]).objects(iri("urn:s"))
        ['"chat"@fr']
        """
        return list(dict.fromkeys(map(_object_of, matching(self._quads, subject, predicate, None))))

    def value(
        self, subject: Term | None = None, predicate: Term | None = None, default: Any = None
    ) -> Any:
        """Returns the one object of a subject and a predicate, as a value of Python; see `to_python`.

        Args:
            subject, predicate: of the quad; None: any.
            default: returned if there is no such quad.

        Raises:
            UsageError: several objects, or text that is not a term.
            TermError: a literal without a value of its datatype.

        >>> message = Message([Quad(iri("urn:s"), iri("urn:p"), Term('"chat"@fr'))])
        >>> message.value(predicate=iri("urn:p")), message.value(predicate=iri("urn:q"), default=0)
        ('chat', 0)
        """
        found = self.objects(subject, predicate)
        if len(found) > 1:
            shown = ", ".join(found[:3])
            raise UsageError(
                f"the message has {len(found)} values there: {shown}{' …' if len(found) > 3 else ''}",
                hint="call objects(…), and choose one",
            )
        return to_python(found[0]) if found else default

    def isomorphic(self, other: "Message") -> bool:
        """Returns whether two messages are the same dataset up to blank node labels (RDF 1.2 Concepts, section 4.4).

        Raises:
            LimitExceeded: the messages are too large and symmetric to compare in reasonable time.

        >>> a, b = (Message([Quad(Term(label), iri("urn:p"), iri("urn:o"))]) for label in ("_:a", "_:b"))
        >>> a == b, a.isomorphic(b)
        (False, True)
        """
        if len(self) != len(other):
            return False
        if self == other:
            return True
        names = match(self, other)
        return set(rename(self, lambda label: names.get(label, UNBOUND))) == other.quads

    def to_pyoxigraph(self) -> list[ox.Quad]:
        """Returns the quads as pyoxigraph objects, in order.

        Raises:
            TermError: a term that pyoxigraph cannot represent: an IRI that was read leniently, or a term in a position
                that RDF does not allow.

        >>> Message([Quad(iri("urn:s"), iri("urn:p"), iri("urn:o"))]).to_pyoxigraph()[0].predicate
        <NamedNode value=urn:p>
        """
        return list(map(pyoxigraph_quad, self._quads))

    def to_rdflib(self) -> "rdflib.Dataset":
        """Returns the message as an `rdflib.Dataset`.

        Raises:
            TermError: a triple term or a base direction, which rdflib cannot represent.

        >>> len(Message([Quad(iri("urn:s"), iri("urn:p"), iri("urn:o"))]).to_rdflib())
        1
        """
        return rdflib_dataset(self._quads)

    def skolemize(self, prefix: str) -> "Message":
        """Returns the message with IRIs for blank nodes: `prefix` and the label (RDF 1.2 Concepts, section 3.5).

        Labels of messages of a query or of a log are unique, and so are the IRIs.

        Raises:
            TermError: the prefix is not an absolute IRI.

        >>> Message([Quad(Term("_:b0"), iri("urn:p"), iri("urn:o"))]).skolemize("https://example.org/.well-known/genid/")
        <Message of 1 quad: <https://example.org/.well-known/genid/b0> <urn:p> <urn:o> .>
        """
        skolemized = self.map_blanks(lambda node: iri(prefix + node[2:]))
        skolemized.checked = self.checked
        return skolemized

    def map_blanks(self, change: Callable[[Term], Term]) -> "Message":
        """Returns the message with every blank node, also in triple terms, replaced by `change(blank node)`.

        >>> Message([Quad(Term("_:a"), iri("urn:p"), Term("_:b"))]).map_blanks(lambda node: Term(f"{node}2"))
        <Message of 1 quad: _:a2 <urn:p> _:b2 .>
        """
        if (lines := self._held) is not None:
            if not may_have_labels(lines):
                return self
        else:
            terms = self._made if self._terms is None else (self._terms,)
            if "_:" not in "".join(filter(None, chain.from_iterable(terms))):
                return self  # which takes a twentieth of the time
        return Message(
            Quad(*(None if term is None else map_blanks(term, change) for term in quad))  # type: ignore[arg-type] # only the graph is None
            for quad in self._quads
        )


_new: Final = object.__new__


def of_terms(terms: Sequence[Term | None]) -> Message:
    """A message whose terms are in one flat sequence; its quads are made when they are first used. `terms`: as
    `rows_in` takes them; the message keeps them.

    >>> of_terms([iri("urn:s"), iri("urn:p"), iri("urn:o"), None] * 2)
    <Message of 1 quad: <urn:s> <urn:p> <urn:o> .>
    """
    if compiled.wire is not None:
        are_distinct = compiled.wire.are_distinct(terms)
    else:  # a set of hashes takes less memory than one of rows
        are_distinct = len(set(map(hash, rows_in(terms)))) == len(terms) // 4
    if not are_distinct:  # see `Message`
        return Message(make_quads(rows_in(terms)))
    message = _new(Message)
    message._terms, message._made, message._held = terms, (), None
    message._set, message.checked = None, False
    return message


def of_lines(lines: bytes) -> Message:
    r"""The message of canonical N-Quads lines; its terms are made when they are first asked for. `lines`: of different
    statements, known to be valid and canonical; each ends with LF.

    >>> message = of_lines(b"<urn:s> <urn:p> <urn:o> .\n")
    >>> len(message), message.checked, message
    (1, True, <Message of 1 quad: <urn:s> <urn:p> <urn:o> .>)
    """
    message = _new(Message)
    message._held, message._terms, message._made = lines, None, ()
    message._set, message.checked = None, True
    return message


def of_distinct(quads: tuple[Quad, ...]) -> Message:
    """The message of quads that are known to be different, and to be RDF.

    >>> of_distinct((Quad(iri("urn:s"), iri("urn:p"), iri("urn:o")),)).checked
    True
    """
    message = Message.__new__(Message)
    message._terms, message._made, message._held = None, quads, None
    message._set, message.checked = None, True
    return message


def _check_quads(quads: Iterable[object]) -> None:
    """Rejects values that are not quads of terms, for callers without a type checker."""
    for quad in quads:
        if not isinstance(quad, Quad):
            raise _no_quad(quad)
        check_terms(quad)


def _no_quad(value: object) -> WrongType:
    hint = "write Quad(iri(…), iri(…), literal(…))"
    if isinstance(value, ox.Quad | ox.Triple | ox.Dataset | ox.Store):
        hint = "use Message.from_pyoxigraph"
    elif isinstance(value, tuple) and value and type(value[0]).__module__.startswith("rdflib."):
        hint += ", or use Message.from_rdflib"
    return wrong_type("Message", "quads", value, "an iterable of Quads", hint)

"""Stateless transformation: a CONSTRUCT over single messages, with one message for each of its solutions.

`Transformation.plain` is the definition: a store for each message. `Transformation.batch` returns the same in less
time: many messages become the named graphs of one store, and one query is evaluated over all of them, `GRAPH ?message {
… }`. If the result could differ, `plain` is used; docs/decisions/050-registered-queries.md lists these cases. No
streams here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, islice
from typing import Final

import pyoxigraph as ox

from construct_messages.errors import ConstructMessagesError, UnsupportedQuery
from construct_messages.logs.checking import Checker
from construct_messages.query.algebra.nodes import Dataset, OrderBy, Project
from construct_messages.query.algebra.separable import reach
from construct_messages.query.algebra.translation import translate
from construct_messages.query.checks import REWRITTEN
from construct_messages.query.prologue import check_base, check_prefixes, insert
from construct_messages.query.rewrite import ConstructQuery, query_form
from construct_messages.query.select import Select, unused
from construct_messages.query.syntax.parser import Query
from construct_messages.query.tokens import decoded
from construct_messages.rdf.arguments import checked
from construct_messages.rdf.labels import Labels, may_have_labels
from construct_messages.rdf.message import Message, of_distinct
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Template, row_message
from construct_messages.rdf.terms import parse_term
from construct_messages.sparql.engine import StoreQuery

BATCH: Final = 1000
"""The number of messages in one query."""

_NOW: Final = parse_term('"1970-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>')
_NAME: Final = "<urn:x-message:"
_GRAPH: Final = b" " + _NAME.encode() + b"%09d> .\n"


@checked
def transform(
    query: str,
    messages: Iterable[Message],
    *,
    prefixes: Mapping[str, str] | None = None,
    base: str | None = None,
    one_per_message: bool = False,
) -> Iterator[Message]:
    """Evaluates a query over each message alone and yields one message per solution, in the order of the messages.

    A message is a dataset: its default graph and its named graphs are those of the query. Blank nodes of the messages
    keep their labels. Messages are read in batches of 1,000; for smaller batches, call it for each batch.

    Args:
        query: the text of a CONSTRUCT query, or of a SELECT, whose rows become messages as in `rows.row_message`.
        messages: any number of messages, such as those of a log.
        prefixes: prefixes that the query uses but does not declare.
        base: resolve relative IRIs of the query against this IRI.
        one_per_message: yield one message for each message instead, with the quads of all its solutions, which is the
            result of the CONSTRUCT query as SPARQL defines it. A message without a solution becomes an empty message.

    Raises:
        QueryError: the query is not valid.
        TermError: a message is not valid RDF.

    >>> from construct_messages import Quad, iri, literal
    >>> readings = [Message([Quad(iri("urn:sensor"), iri("urn:celsius"), literal(c))]) for c in ("18", "31")]
    >>> hot = "CONSTRUCT { ?s a <urn:Hot> } WHERE { ?s <urn:celsius> ?c FILTER(STRLEN(?c) = 2 && ?c > '30') }"
    >>> for message in transform(hot, readings):
    ...     print(message)
    <Message of 1 quad: <urn:sensor> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:Hot> .>
    >>> [len(message) for message in transform(hot, readings, one_per_message=True)]
    [0, 1]
    """
    transformation = Transformation(
        query, prefixes=prefixes, base=base, one_per_message=one_per_message
    )
    return _transformed(transformation, iter(messages))


def _transformed(transformation: Transformation, messages: Iterator[Message]) -> Iterator[Message]:
    checker = Checker()
    while batch := list(islice(messages, BATCH)):
        for message in batch:
            checker.check(message)
        yield from transformation.batch([message.lines for message in batch])


class Transformation:
    """A query that is evaluated over one message at a time.

    Args:
        query, prefixes, base, one_per_message: see `transform`.

    Attributes:
        batches: whether one query can be evaluated over many messages; else each has its own store.

    Raises:
        QueryError: the query is not legal.
    """

    def __init__(
        self,
        query: str,
        *,
        prefixes: Mapping[str, str] | None = None,
        base: str | None = None,
        one_per_message: bool = False,
    ) -> None:
        self._one_per_message = one_per_message
        self._labels, self._given = Labels(), 0
        self._template: Template | None = None
        self._together: StoreQuery | None = None
        if query_form(query) == "SELECT":
            declared = insert([], check_base(base), check_prefixes(prefixes))[1]
            self._alone = StoreQuery(declared + query)
        else:
            parsed = ConstructQuery.parse(query, prefixes=prefixes, base=base)
            parsed.warn_of_unbound()
            self._alone = StoreQuery(parsed.select, REWRITTEN)
            self._template = parsed.template.labelled(self._labels)
            if _is_separable(parsed.rewritten.tree):
                self._together = StoreQuery(str(_together(parsed.rewritten)), REWRITTEN)
        self.batches = self._together is not None
        self._alone.check()

    def batch(self, messages: Sequence[bytes]) -> Iterator[Message]:
        """Returns the transformed messages.

        Args:
            messages: the canonical N-Quads lines of each message; the last line feed may be left out.

        Raises:
            QueryError, SourceError: the evaluation failed.
        """
        if self._together is None or len(messages) < 2:
            return self.plain(messages)
        lines = [message and message.rstrip(b"\n") + b"\n" for message in messages]
        marked = b"".join(
            [text.replace(b" .\n", _GRAPH % number) for number, text in enumerate(lines)]
        )
        try:
            store = _load(marked)
        except SyntaxError:
            # a quad already has a graph: a second one is not N-Quads
            return self._apart(messages)
        solved = self._together.solve(store)
        if solved.solutions is None:
            return iter([Message()] * len(messages) if self._one_per_message else ())
        *columns, graphs = solved.solutions.text
        order = sorted(range(len(graphs)), key=graphs.__getitem__)
        made = self._instantiate(
            solved.variables, Solutions([[column[place] for place in order] for column in columns])
        )
        if not self._one_per_message:
            return made
        of_message: list[list[Message]] = [[] for _ in messages]
        for place, each in zip(order, made, strict=True):
            of_message[int(graphs[place].removeprefix(_NAME)[:-1])].append(each)
        return map(_joined, of_message)

    def plain(self, messages: Iterable[bytes]) -> Iterator[Message]:
        """Returns the same as `batch`, with a store for each message."""
        for message in messages:
            solved = self._alone.solve(_load(message))
            made: Iterator[Message] = iter(())
            if solved.solutions is not None:
                made = self._instantiate(solved.variables, solved.solutions)
            if self._one_per_message:
                yield _joined(made)
            else:
                yield from made

    def _apart(self, messages: Sequence[bytes]) -> Iterator[Message]:
        """Splits messages: those with named graphs one by one, and those between them together."""
        for names_graphs, run in groupby(messages, key=_names_graphs):
            together = list(run)
            yield from self.plain(together) if names_graphs else self.batch(together)

    def _instantiate(self, variables: Sequence[str], solutions: Solutions) -> Iterator[Message]:
        first = self._given
        self._given += len(solutions)
        if self._template is None:
            return (
                row_message(variables, row, self._labels, number)
                for number, row in enumerate(solutions, first)
            )
        return map(of_distinct, self._template.instantiate_all(solutions.text, first))


def _joined(messages: Iterable[Message]) -> Message:
    """Returns one message with the quads of several."""
    joined = Message(quad for message in messages for quad in message)
    joined.checked = True
    return joined


def _names_graphs(lines: bytes) -> bool:
    quads = ox.parse(lines, format=ox.RdfFormat.N_QUADS, lenient=True)
    return any(quad.graph_name != ox.DefaultGraph() for quad in quads)


def _load(lines: bytes) -> ox.Store:
    """Returns a store of valid N-Quads lines, with their labels of blank nodes."""
    store = ox.Store()
    if may_have_labels(lines):  # loading would rename blank nodes
        store.extend(ox.parse(lines, format=ox.RdfFormat.N_QUADS, lenient=True))
    else:
        store.load(lines, format=ox.RdfFormat.N_QUADS, lenient=True)
    return store


def _together(select: Select) -> Select:
    """Returns the query over the named graphs of a store, each of which is a message."""
    source = select.tree.source
    taken = {decoded(source.text, token)[1:] for token in source.tokens if token.kind == "variable"}
    name = unused("message", taken)
    projection = select.head.rstrip()
    return replace(
        select,
        head=f"{projection} ?{name}{select.head[len(projection) :]}",
        variables=(*select.variables, name),
        group=f"{{ GRAPH ?{name} {select.group} }}",
    )


def _is_separable(select: Query) -> bool:
    """Whether `GRAPH ?message { … }` returns for each graph the result of the query for this graph alone.

    It does if each solution matches a triple, and so has its graph, and if no part of the query depends on several
    solutions or other graphs. Queries that this package's algebra does not support do not count as separable.
    """
    try:
        plan = translate(select, now=_NOW)
    except ConstructMessagesError:
        return False
    pattern = plan.pattern
    # once each: further ones are in sub-selects, which would not project the graph
    if isinstance(pattern, Project):
        pattern = pattern.pattern
    if isinstance(pattern, OrderBy):
        pattern = pattern.pattern
    try:
        return plan.dataset == Dataset() and reach(pattern) == "matches"
    except UnsupportedQuery:
        return False

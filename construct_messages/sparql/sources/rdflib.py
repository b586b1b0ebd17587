"""rdflib graphs as a source, evaluated by rdflib, so that any of its stores can answer.

rdflib's SPARQL is slow and does not support SPARQL 1.2; if that matters, load the data into pyoxigraph instead.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping
from contextlib import aclosing
from typing import Any, TypeAlias

import rdflib
from pyparsing import ParseException
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.processor import SPARQLProcessor
from rdflib.query import Result
from rdflib.term import Identifier, Variable

from construct_messages.errors import (
    ConstructMessagesError,
    Position,
    QueryError,
    SourceError,
    UsageError,
)
from construct_messages.query.checks import REWRITTEN
from construct_messages.query.prologue import undeclared
from construct_messages.query.select import Select
from construct_messages.rdf.options import UNION
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import UNBOUND, Term, from_rdflib
from construct_messages.sparql.results import accepted
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.threads import ain_thread, in_thread

_Binding: TypeAlias = Mapping[Variable, Identifier]


class RdflibSource:
    """An `rdflib.Graph` or `rdflib.Dataset`; it stays open.

    A Dataset's own `default_union` decides, unless the request names its graphs.
    """

    stable_blank_nodes = True

    def __init__(self, graph: rdflib.Graph) -> None:
        self._graph = graph

    @property
    def predefined(self) -> Mapping[str, str]:
        """The graph's bound prefixes, which `Graph.query` predefines."""
        return {prefix: str(namespace) for prefix, namespace in self._graph.namespaces()}

    def solutions(self, request: Request) -> Generator[Solutions]:
        """See `Source.solutions`. With a time limit, it runs in a thread, which is abandoned when the time is over."""
        if request.timeout is None:
            # in the caller's thread: some stores cannot be used in other threads
            return self._solutions(request)
        return in_thread(self._solutions(request), time.monotonic() + request.timeout)

    async def asolutions(self, request: Request) -> AsyncGenerator[Solutions]:
        """See `Source.asolutions`; runs in a thread, which is abandoned when the reader stops."""
        deadline = None if request.timeout is None else time.monotonic() + request.timeout
        async with aclosing(ain_thread(self._solutions(request), deadline)) as batches:
            async for batch in batches:
                yield batch

    def _solutions(self, request: Request) -> Generator[Solutions]:
        variables, scope = (
            [Variable(name) for name in request.select.variables],
            request.labels.of_data,
        )
        lenience = request.lenience

        def read(term: Identifier) -> Term:
            return from_rdflib(term, scope, lenience)

        for binding in _evaluate(self._dataset(request), request.select):
            terms = [binding.get(variable) for variable in variables]
            # one at a time: rdflib's time for a solution is more than a batch would save
            yield Solutions.of(
                [[UNBOUND if term is None else accepted(lenience, read, term) for term in terms]]
            )

    def close(self) -> None:
        """Does nothing: the graph belongs to the caller."""

    def _dataset(self, request: Request) -> rdflib.Graph:
        asked = request.default_graphs + request.named_graphs
        if not asked:
            return self._graph
        if not isinstance(self._graph, rdflib.Dataset):
            if asked == (UNION,):
                return self._graph
            raise UsageError(
                "an rdflib.Graph is one graph; it has no graphs to choose from",
                hint="pass a Dataset",
            )
        if request.default_graphs == (UNION,) and not request.named_graphs:
            return rdflib.Dataset(store=self._graph.store, default_union=True)
        chosen = rdflib.Dataset()
        for name in request.default_graphs:
            graphs = (
                self._graph.graphs() if name == UNION else [self._graph.graph(rdflib.URIRef(name))]
            )
            for graph in graphs:
                chosen.default_graph += graph
        for name in request.named_graphs:
            target = chosen.graph(rdflib.URIRef(name))
            target += self._graph.graph(rdflib.URIRef(name))
        return chosen


class _Lazy(SPARQLProcessor):
    """rdflib's evaluation, which yields bindings as they are found; `Result` leaves out empty ones, or makes a list."""

    found: Iterable[_Binding] | None = None

    def query(self, *arguments: Any, **options: Any) -> Mapping[str, Any]:
        result = super().query(*arguments, **options)
        self.found = result["bindings"]
        return result


def _evaluate(graph: rdflib.Graph, select: Select) -> Generator[_Binding]:
    query = str(select)
    try:
        lazy = _Lazy(graph)  # type: ignore[no-untyped-call] # rdflib's
        result = graph.query(query, processor=lazy)
        if not isinstance(result, Result):  # raised by rdflib's own client for an error
            raise SourceError(f"rdflib's evaluation failed: {result}")
        # a store may have its own evaluation, which returns a complete result
        yield from result.bindings if lazy.found is None else lazy.found
    except ParseException as error:
        own = None if select.written is None else _refused(select.written.text)
        shown = error if own is None else own
        raise QueryError(
            f"rdflib refuses the query: {shown.msg}",
            position=Position(shown.lineno, shown.column),
            hint=REWRITTEN if own is None else None,
        ) from error
    except ConstructMessagesError:
        raise
    except Exception as error:  # rdflib and its stores raise the bare class
        if "Unknown namespace prefix" in str(error) and (
            prefix := undeclared(query, [known for known, _ in graph.namespaces()])
        ):
            raise QueryError(
                f"rdflib refuses the query: prefix {prefix}: is not declared",
                hint=f"add PREFIX {prefix}: <...> or give it as an option",
            ) from error
        raise SourceError(f"rdflib's evaluation failed: {error}") from error


def _refused(text: str) -> ParseException | None:
    """Returns the reason why rdflib rejects a query, or None."""
    try:
        parseQuery(text)
    except ParseException as error:
        return error
    return None

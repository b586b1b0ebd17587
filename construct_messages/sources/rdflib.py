"""rdflib graphs as a source, evaluated by rdflib itself, so that any store behind the graph answers.

rdflib's SPARQL is slow and knows no SPARQL 1.2; where that matters, hand the data to pyoxigraph instead.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping

import rdflib
from pyparsing import ParseException
from rdflib.query import ResultRow

from construct_messages.errors import (
    ConstructMessagesError,
    Position,
    QueryError,
    SourceError,
    SourceTimeout,
    UsageError,
)
from construct_messages.solutions import Solutions
from construct_messages.sources import REWRITTEN, UNION, Request
from construct_messages.sources.threads import in_threads
from construct_messages.terms import UNBOUND, from_rdflib


class RdflibSource:
    """An `rdflib.Graph` or `rdflib.Dataset`; it stays open.

    Args:
        graph: the graph. A Dataset's own `default_union` decides, unless the request names its graphs.
    """

    stable_blank_nodes = True

    def __init__(self, graph: rdflib.Graph) -> None:
        self._graph = graph

    @property
    def predefined(self) -> Mapping[str, str]:
        """The graph's bound prefixes, which `Graph.query` lets queries use undeclared."""
        return {prefix: str(namespace) for prefix, namespace in self._graph.namespaces()}

    def solutions(self, request: Request) -> Generator[Solutions]:
        """See `Source.solutions`. The time limit is looked at between solutions."""
        deadline = None if request.timeout is None else time.monotonic() + request.timeout
        graph, names = self._dataset(request), request.select.variables
        for solution in _evaluate(graph, str(request.select)):
            if deadline is not None and time.monotonic() > deadline:
                raise SourceTimeout("rdflib's evaluation did not end within the time allowed", hint="raise timeout")
            values = solution.asdict()
            # one at a time: rdflib takes longer for a solution than a batch would save
            yield Solutions.of([[from_rdflib(values[name], "d") if name in values else UNBOUND for name in names]])

    async def asolutions(self, request: Request) -> AsyncGenerator[Solutions]:
        """See `Source.asolutions`; each solution is evaluated in a thread."""
        async for batch in in_threads(self.solutions(request)):
            yield batch

    def close(self) -> None:
        """Nothing to do: the graph is the caller's."""

    def _dataset(self, request: Request) -> rdflib.Graph:
        asked = request.default_graphs + request.named_graphs
        if not asked:
            return self._graph
        if not isinstance(self._graph, rdflib.Dataset):
            if asked == (UNION,):
                return self._graph
            raise UsageError("an rdflib.Graph is one graph; it has no graphs to choose from", hint="pass a Dataset")
        if request.default_graphs == (UNION,) and not request.named_graphs:
            return rdflib.Dataset(store=self._graph.store, default_union=True)
        chosen = rdflib.Dataset()
        for name in request.default_graphs:
            graphs = self._graph.graphs() if name == UNION else [self._graph.graph(rdflib.URIRef(name))]
            for graph in graphs:
                chosen.default_graph += graph
        for name in request.named_graphs:
            target = chosen.graph(rdflib.URIRef(name))
            target += self._graph.graph(rdflib.URIRef(name))
        return chosen


def _evaluate(graph: rdflib.Graph, query: str) -> Iterator[ResultRow]:
    try:
        for solution in graph.query(query):
            assert isinstance(solution, ResultRow)
            yield solution
    except ParseException as error:
        raise QueryError(
            f"rdflib refuses the query: {error.msg}",
            position=Position(error.lineno, error.column),
            hint=REWRITTEN,
        ) from error
    except ConstructMessagesError:
        raise
    except Exception as error:  # rdflib and the stores behind it raise bare ones
        raise SourceError(f"rdflib's evaluation failed: {error}") from error

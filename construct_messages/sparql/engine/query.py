"""A query over stores: starts it over a dataset, or evaluates it to its end.

SPARQL 1.1 Protocol, section 2.1.4 (the dataset). Blocks until the engine returns; `writing.py` is for results that are
read incrementally. No I/O except for the store.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import pyoxigraph as ox

from construct_messages.query.checks import check
from construct_messages.query.depth import check_depth
from construct_messages.query.embedded import for_embedded, names_in_full
from construct_messages.query.refusals import refusal
from construct_messages.query.syntax.parser import parse
from construct_messages.query.written import WrittenQuery
from construct_messages.rdf.errors import (
    ConstructMessagesError,
    QueryError,
    SourceError,
    UsageError,
)
from construct_messages.rdf.options import UNION
from construct_messages.rdf.solutions import Solutions
from construct_messages.sparql.results.tsv import TsvDecoder

QueryResult: TypeAlias = ox.QuerySolutions | ox.QueryBoolean | ox.QueryTriples
Functions: TypeAlias = Callable[[ox.Store], Mapping[ox.NamedNode, Callable[..., Any]]]
"""Extension functions of a query, by their IRIs, given the store."""

RAISED: Final = (
    ConstructMessagesError,
    SyntaxError,
    OSError,
    ValueError,
    RuntimeError,
    MemoryError,
)
"""The exceptions of an evaluation, which `StoreQuery.error` converts."""


class Solved(NamedTuple):
    """All solutions of a query.

    Args:
        variables: in the order of the projection.
        total: the number of solutions.
        solutions: the solutions by column, with the engine's own labels; None without solutions or variables.
        has_blanks: whether there may be blank nodes among their terms.
    """

    variables: tuple[str, ...]
    total: int
    solutions: Solutions | None
    has_blanks: bool


class StoreQuery:
    """A query to evaluate over stores.

    Args:
        text: the query.
        hint: the hint about positions in errors of the engine.
        written: the query that the text was made from; if the engine rejects it as well, errors have positions in it.
        functions: see `Functions`.

    Raises:
        QueryError: the query is too deep for the engine, or it would evaluate it wrongly: see `for_embedded`.

    >>> store = ox.Store()
    >>> store.add(ox.Quad(ox.NamedNode("urn:s"), ox.NamedNode("urn:p"), ox.Literal(1), ox.NamedNode("urn:g")))
    >>> list(StoreQuery("SELECT ?s { ?s ?p 1 }").solve(store, (UNION,)).solutions)
    [('<urn:s>',)]
    """

    def __init__(
        self,
        text: str,
        hint: str | None = None,
        written: WrittenQuery | None = None,
        functions: Functions | None = None,
    ) -> None:
        check_depth(text)
        self.text = text
        self._hint, self._written, self._functions = hint, written, functions
        self._embedded = for_embedded(text)

    def begin(
        self, store: ox.Store, default_graphs: Sequence[str] = (), named_graphs: Sequence[str] = ()
    ) -> QueryResult:
        """Starts the evaluation.

        Args:
            store: the store.
            default_graphs: IRIs of the graphs to merge into the default graph; `(UNION,)` for all.
            named_graphs: IRIs of the named graphs.

        Raises:
            UsageError: the graph names are not a dataset.
            SyntaxError: the engine rejects the query.
            OSError: the evaluation failed.
        """
        union = UNION in default_graphs
        if union and len(default_graphs) > 1:
            raise UsageError(
                "default graph: union is all graphs already", hint="use union alone, or graph IRIs"
            )
        try:
            default: list[ox.NamedNode | ox.BlankNode | ox.DefaultGraph] = [
                ox.NamedNode(graph) for graph in default_graphs if graph != UNION
            ]
            named: list[ox.NamedNode | ox.BlankNode] = list(map(ox.NamedNode, named_graphs))
        except ValueError as error:
            raise UsageError(f"graph names must be absolute IRIs: {error}") from error
        return store.query(
            self._embedded,
            use_default_graph_as_union=union,
            # with only named graphs, the default graph is empty
            default_graph=default if default or named else None,
            named_graphs=named if default or named else None,
            custom_functions=None if self._functions is None else dict(self._functions(store)),
        )

    def check(self) -> tuple[str, ...]:
        """Checks a SELECT by the engine, and returns its variables; evaluates nothing.

        Raises:
            QueryError: the engine rejects the query.
        """
        try:
            result = self.begin(ox.Store())
        except RAISED as error:
            raise self.error(error) from error
        assert isinstance(result, ox.QuerySolutions)
        return tuple(variable.value for variable in result.variables)

    def solve(self, store: ox.Store, default_graphs: Sequence[str] = ()) -> Solved:
        """Evaluates a SELECT to its end.

        Args:
            store, default_graphs: see `begin`.

        Raises:
            QueryError: the engine rejects the query.
            SourceError: the evaluation failed.
        """
        try:
            result = self.begin(store, default_graphs)
            assert isinstance(result, ox.QuerySolutions)
            variables = tuple(variable.value for variable in result.variables)
            if not variables:
                return Solved((), sum(1 for _ in result), None, False)
            document = result.serialize(format=ox.QueryResultsFormat.TSV)
        except RAISED as error:
            raise self.error(error) from error
        assert document is not None  # without a file, it returns the bytes
        decoder = TsvDecoder(variables, scope="")
        batches = decoder.feed(document)
        decoder.close()
        solutions = batches[0] if batches else None
        return Solved(
            variables, 0 if solutions is None else len(solutions), solutions, b"_:" in document
        )

    def error(self, error: BaseException) -> ConstructMessagesError:
        """Converts the engine's exception to an error of this package."""
        return explain(error, self.text, self._hint, self._written)


def explain(
    error: BaseException, text: str, hint: str | None = None, written: WrittenQuery | None = None
) -> ConstructMessagesError:
    """Converts the engine's exception to an error of this package.

    Args:
        error: the exception.
        text, hint, written: see `StoreQuery`.
    """
    if isinstance(error, ConstructMessagesError):
        return error
    if isinstance(error, RuntimeError) and str(error).startswith("The custom function"):
        return QueryError(
            f"the embedded engine refuses the query: {error}", hint="use the functions of SPARQL"
        )
    if not isinstance(error, SyntaxError):
        return SourceError(f"the embedded evaluation failed: {error}")
    refused = "the embedded engine refuses the query"
    known = written or WrittenQuery(text)
    if (own := _grammatical(known)) is not None:
        return QueryError(f"{refused}: {own.message}", position=own.position, hint=own.hint)
    if (there := known.refusal()) is not None:
        return refusal(there, known.text, hint if written is None else None, refused)
    found = refusal(error, text, hint, refused)
    if for_embedded(text) != names_in_full(
        text
    ):  # the position is in the text that the engine was asked
        return QueryError(found.message, hint=found.hint)
    return found


def _grammatical(query: WrittenQuery) -> QueryError | None:
    """Returns why a query is not SPARQL, by this package's own parser; None if it is, or is of the engine's dialect.

    The engine's parser tries all that may follow, and gives the position of the last.
    """
    try:
        check(parse(query.text, base=query.base, prefixes=query.prefixes))
    except QueryError as error:
        return None if error.message.endswith("found LATERAL") else error
    return None

"""SELECT queries as tables: the solutions of a source as typed columns.

`logs/columns` decides the types of columns, here as for the solutions of a CONSTRUCT. No messages here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from construct_messages.construct.messages import apull, pull
from construct_messages.errors import UsageError
from construct_messages.logs.columns.tables import Tabular
from construct_messages.query.rewrite import parse_select
from construct_messages.rdf.arguments import checked
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.options import Dataset, Requests
from construct_messages.rdf.terms import Lenience, Lenient, Term, as_term
from construct_messages.sparql.sources import Request, Source
from construct_messages.sparql.sources.open import name_of_source, open_source

if TYPE_CHECKING:
    from construct_messages.logs.columns.options import ColumnOptions
    from construct_messages.logs.columns.solutions import SolutionRows
    from construct_messages.rdf.solutions import Solutions
    from construct_messages.sparql.sources.open import SourceLike


@checked
def select(
    query: str,
    source: SourceLike = None,
    *,
    bindings: Mapping[str, Any] | None = None,
    prefixes: Mapping[str, str] | None = None,
    base: str | None = None,
    dataset: Dataset = Dataset(),
    requests: Requests = Requests(),
    lenient: Lenient = False,
) -> QuerySolutions:
    """Runs a SELECT query and returns its solutions, as a table of Arrow, pandas, Polars or DuckDB.

    The query is checked immediately. It runs when the result is read.

    Args:
        query: the text of a SELECT query.
        source: see `open_source`.
        bindings: initial bindings, joined as a VALUES block in WHERE: variable to term, or to a value of Python.
        prefixes: prefixes that the query uses but does not declare.
        base: resolve relative IRIs of the query against this IRI.
        dataset: the default and named graphs of the query.
        requests: options of requests to the source: pages, time limits, retries, …
        lenient: pass terms of the source that are not RDF, such as malformed IRIs, or leave their solutions out
            (`"skip"`), and log their number at the end; otherwise they are errors.

    Returns:
        A lazy result. Convert or iterate it once.

    Raises:
        QueryError: the query is not a valid SELECT query.
        UsageError: an invalid option.
        SourceError: the source cannot be opened.

    >>> import pyoxigraph as ox
    >>> store = ox.Store()
    >>> store.load(b"<urn:a> <urn:size> 3 . <urn:b> <urn:size> 4 .", format=ox.RdfFormat.TURTLE)
    >>> select("SELECT * WHERE { ?s <urn:size> ?size } ORDER BY ?s", store).to_arrow().read_all().to_pylist()
    [{'s': 'urn:a', 'size': 3}, {'s': 'urn:b', 'size': 4}]
    """
    opened = open_source(source, lenient=bool(lenient), **requests.opening)
    parsed = parse_select(query, base=base, prefixes=prefixes, predefined=opened.predefined)
    if bindings:
        parsed = parsed.bind(
            {name.lstrip("?$"): as_term(value) for name, value in bindings.items()}
        )
    request = Request(
        parsed,
        tuple(dataset.default_graph),
        tuple(dataset.named_graphs),
        requests.page_size,
        requests.timeout,
        lenience=Lenience.of(lenient, base=base),
        labels=Labels(),
        page_key=None if requests.page_key is None else requests.page_key.lstrip("?$"),
    )
    origin = {"query": query, **name_of_source(source)}
    return QuerySolutions(opened, request, origin, owns_source=opened is not source)


class QuerySolutions(Tabular[dict[str, Term]]):
    """The solutions of one SELECT query. Iterate it, for a dict of terms for each solution, or convert it, once.

    The source is released when the result is exhausted, closed, left as a context manager, or garbage collected. A
    result that ends early raises an error.

    Attributes:
        variables: the projected variables in order, without `?`.

    >>> import pyoxigraph as ox
    >>> store = ox.Store()
    >>> store.load(b"<urn:a> <urn:size> 3 .", format=ox.RdfFormat.TURTLE)
    >>> list(select("SELECT ?s WHERE { ?s <urn:size> ?size }", store))
    [{'s': '<urn:a>'}]
    """

    _again, _items = "select", "solutions"

    def __init__(
        self, source: Source, request: Request, origin: Mapping[str, str], *, owns_source: bool
    ) -> None:
        super().__init__()
        self._source, self._request, self._origin = source, request, origin
        self._owns_source = owns_source
        self.variables = request.select.variables

    def _each(self) -> Generator[dict[str, Term]]:
        return _iterate(self._batches(), self.variables)

    def _aeach(self) -> AsyncGenerator[dict[str, Term]]:
        batches = apull(self._source, self._request, self._owns_source)
        return _aiterate(batches, self.variables)

    def _record_batches(self, options: ColumnOptions) -> Generator[Any]:
        from construct_messages.logs.columns.solutions import SolutionRows

        if options.layout not in (None, "solutions"):
            raise UsageError(
                f"the solutions of a SELECT have no layout {options.layout!r}",
                hint='leave it out: "quads" and "nested" are for messages',
            )
        options = replace(options, layout="solutions")
        return _tabulate(self._batches(), SolutionRows(self.variables, options, self._origin))

    def _batches(self) -> Generator[Solutions]:
        return pull(self._source, self._request, self._owns_source)

    def close(self) -> None:
        """Cancels the query and releases the source."""
        super().close()
        if self._owns_source:
            self._source.close()


# The generators do not refer to the result, so that a result that is dropped releases its source.


def _iterate(batches: Generator[Solutions], variables: Sequence[str]) -> Generator[dict[str, Term]]:
    with closing(batches):
        for batch in batches:
            for solution in batch:
                yield _bound(solution, variables)


async def _aiterate(
    batches: AsyncGenerator[Solutions], variables: Sequence[str]
) -> AsyncGenerator[dict[str, Term]]:
    async with aclosing(batches):
        async for batch in batches:
            for solution in batch:
                yield _bound(solution, variables)


def _bound(solution: Sequence[Term], variables: Sequence[str]) -> dict[str, Term]:
    return {name: term for name, term in zip(variables, solution, strict=True) if term}


def _tabulate(batches: Generator[Solutions], rows: SolutionRows) -> Generator[Any]:
    with closing(batches):
        for batch in batches:
            yield from rows.add(batch)
        yield from rows.finish()

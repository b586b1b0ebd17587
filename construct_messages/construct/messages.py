"""The one join of a query and a source, which results in messages.

`construct_messages` is what users call. A `QueryMessages` pulls batches of solutions from the source, groups them,
instantiates the template (`assembly.py`), and hands out messages or the bytes of a log. What is in a message is decided
in `rdf/template.py`, how it is written in `logs/`, where solutions come from in `sparql/sources/`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from construct_messages.construct.assembly import Assembly, Options, Writing
from construct_messages.errors import UsageError
from construct_messages.logs import FormatOptions
from construct_messages.logs.columns.tables import Tabular
from construct_messages.logs.targets import LogTarget, format_of_target, log_file, write_in_thread
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.query.select import Select
from construct_messages.rdf.arguments import checked, warn, wrong_type
from construct_messages.rdf.files.output import refuse_input
from construct_messages.rdf.formats import LogType
from construct_messages.rdf.formats.lookup import find_log
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from construct_messages.rdf.options import DISTINCT_LIMIT, Dataset, Grouping, Requests
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import Lenience, Lenient
from construct_messages.sparql.sources import Condition, Request, Source
from construct_messages.sparql.sources.open import name_of_source, open_source, paths_of_source

if TYPE_CHECKING:
    from construct_messages.construct.rows import QueryRows
    from construct_messages.construct.shapes import Validation
    from construct_messages.logs.columns.options import ColumnOptions
    from construct_messages.sparql.sources.open import SourceLike

_NO_SOLUTIONS: Final = "no messages: the data have no solutions of the query"
_AT_ONCE: Final = 128
"""How many solutions are encoded before others of the event loop have their turn; about 50 ms in the slowest format."""


@checked
def construct_messages(
    query: str,
    source: SourceLike = None,
    *,
    group_by: Grouping | str | Sequence[str] = (),
    distinct: bool = False,
    distinct_limit: int = DISTINCT_LIMIT,
    skip_empty: bool = False,
    skolemize: str | None = None,
    label_prefix: str | None = None,
    max_messages: int | None = None,
    bindings: Mapping[str, Any] | None = None,
    prefixes: Mapping[str, str] | None = None,
    base: str | None = None,
    dataset: Dataset = Dataset(),
    requests: Requests = Requests(),
    lenient: Lenient = False,
    validation: Validation | None = None,
    progress: Callable[[int], object] | None = None,
) -> QueryMessages:
    """Runs a CONSTRUCT query and returns one RDF Message for each solution.

    The query is parsed immediately. The source is not contacted before the first message is requested. A variable of
    the template that no solution binds, such as a misspelt one, is legal, and a `QueryWarning`, as is a result that has
    been read without a solution. `warnings.filterwarnings("ignore", category=QueryWarning)` turns both off.

    Args:
        query: the text of a SPARQL 1.1 or 1.2 CONSTRUCT query; `GRAPH` is allowed in its template.
        source: see `open_source`; None: the environment variable CONSTRUCT_MESSAGES_SOURCE.
        group_by: variables; solutions with equal terms for them form one message. A `Grouping` has further options.
        distinct: leave out messages that equal an earlier one, up to blank nodes of the template.
        distinct_limit: the maximal number of messages to compare; more are an error.
        skip_empty: leave out messages without quads.
        skolemize: replace blank nodes of the data by IRIs under this IRI, such as
            `https://example.org/.well-known/genid/`; blank nodes of the template stay.
        label_prefix: the beginning of blank node labels: a lower-case letter, then lower-case letters or digits. None:
            random, so that two results share no node. With a fixed prefix, the same solutions result in the same log.
        max_messages: end the result after this number of messages.
        bindings: initial bindings, joined as a VALUES block in WHERE: variable to term (N-Triples text, a term of
            pyoxigraph or rdflib, or a number, boolean, date, time or duration of Python).
        prefixes: prefixes that the query uses but does not declare.
        base: resolve relative IRIs of the query against this IRI.
        dataset: the default and named graphs of the query.
        requests: how the source is opened and asked: time limit, pages, and options for endpoints.
        lenient: accept terms of the source that are not RDF, such as malformed IRIs, or leave their solutions out
            (`"skip"`), and log their number at the end; otherwise they are errors.
        validation: validates each message; those that it drops are left out.
        progress: called with the number of messages that have been made since its last call, such as `update` of a
            progress bar of tqdm.

    Returns:
        A lazy result. Iterate it (`for` or `async for`), write it or serialize it, once.

    Raises:
        QueryError: the query is not a valid CONSTRUCT query.
        UsageError: an invalid option.
        SourceError: the source cannot be opened.
        DoesNotConform: while the messages are read, a message does not conform, and `validation` stops there.

    >>> import pyoxigraph as ox
    >>> store = ox.Store()
    >>> for name in "ab":
    ...     store.add(ox.Quad(ox.NamedNode(f"urn:{name}"), ox.NamedNode("urn:p"), ox.Literal(name)))
    >>> for message in construct_messages("CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o } ORDER BY ?s", store):
    ...     print(message)
    <Message of 1 quad: <urn:a> <urn:q> "a" .>
    <Message of 1 quad: <urn:b> <urn:q> "b" .>
    """
    grouping = Grouping.of(group_by)
    options = Options(
        distinct,
        distinct_limit,
        skip_empty,
        skolemize,
        label_prefix,
        max_messages,
        grouping=grouping,
        strict=requests.strict,
        passed=None if validation is None else _passed(validation),
        progress=progress,
    )
    opened = open_source(source, lenient=lenient, **requests.opening)
    parsed = ConstructQuery.parse(
        query, base=base, prefixes=prefixes, predefined=opened.predefined, group_by=grouping.by
    )
    request = _request(parsed.select_for(bindings, grouping), dataset, requests)
    request = replace(
        request, lenience=Lenience.of(lenient, base=parsed.base), labels=Labels(label_prefix)
    )
    parsed.warn_of_unbound(name.lstrip("?$") for name in bindings or ())
    return QueryMessages(
        parsed,
        opened,
        request,
        options,
        owns_source=opened is not source,
        origin={"query": query, **name_of_source(source)},
        reads=paths_of_source(source),
        warns=True,
    )


def _request(select: Select, dataset: Dataset, requests: Requests) -> Request:
    return Request(
        select,
        tuple(dataset.default_graph),
        tuple(dataset.named_graphs),
        requests.page_size,
        requests.timeout,
        page_key=None if requests.page_key is None else requests.page_key.lstrip("?$"),
    )


def _passed(validation: object) -> Callable[[Iterator[Message]], Iterator[Message]]:
    # most queries do without its library
    from construct_messages.construct.shapes import Validation

    if not isinstance(validation, Validation):
        hint = "pass Validation(Shapes(…)), or leave it out"
        raise wrong_type("construct_messages", "validation", validation, "a Validation", hint)
    return validation.passed


class QueryMessages(Tabular[Message]):
    """The messages of one query. Iterate it, write it or serialize it, once.

    The source is released when the result is exhausted, closed, left as a context manager, or garbage collected. A
    result that ends early raises an error.

    Attributes:
        query: the parsed query.

    >>> import pyoxigraph
    >>> messages = construct_messages("CONSTRUCT { ?s a <urn:A> } WHERE { ?s <urn:p> ?o }", pyoxigraph.Store())
    >>> messages.select
    'SELECT ?s WHERE { ?s <urn:p> ?o }'
    >>> list(messages), messages.message_count
    ([], 0)
    """

    _again = "construct_messages"

    def __init__(
        self,
        query: ConstructQuery,
        source: Source,
        request: Request,
        options: Options,
        *,
        owns_source: bool,
        origin: Mapping[str, str] | None = None,
        reads: Sequence[str | os.PathLike[str]] = (),
        warns: bool = False,
    ) -> None:
        super().__init__()
        self._reads, self._warns = reads, warns
        self.query, self._origin = query, origin or {}
        self._source, self._request, self._owns_source = source, request, owns_source
        self._template = query.template.labelled(request.labels)
        paged = request.page_size is not None
        self._assembly = Assembly(self._template, options, source.stable_blank_nodes, paged=paged)

    @property
    def select(self) -> str:
        """The SELECT query that is sent to the source."""
        return str(self._request.select)

    def explain(self) -> str:
        """Returns the plan of the query and its SQL, where DuckDB evaluates it; stages before the last are evaluated.

        Raises:
            UsageError: something else evaluates it.
        """
        explain = getattr(self._source, "explain", None)
        if explain is None:
            raise UsageError(
                "only DuckDB's plans are shown, and something else evaluates this query",
                hint="load the files into a table of quads, or choose the engine duckdb",
            )
        try:
            return str(explain(self._request))
        finally:
            self.close()

    @property
    def message_count(self) -> int:
        """The number of messages so far."""
        return self._assembly.message_count

    @property
    def solution_count(self) -> int:
        """The number of solutions so far."""
        return self._assembly.solution_count

    def _each(self) -> Generator[Message]:
        return _iterate(self._batches(), self._assembly)

    def _aeach(self) -> AsyncGenerator[Message]:
        return _aiterate(self._abatches(), self._assembly)

    # --- solutions ---

    def abatches(self, condition: Condition | None = None) -> AsyncGenerator[Solutions]:
        """The solutions, a batch at a time, for asyncio; `instantiate` makes messages of those that are wanted.

        Args:
            condition: the source's earlier validators; if the data have not changed since, there are no solutions.

        Raises:
            SourceError: see `Source.asolutions`; the solutions are not all then.
        """
        self._begin()
        request = replace(self._request, condition=condition)
        batches = self._arunning = apull(self._source, request, self._owns_source, self._assembly)
        return batches

    def instantiate(self, solutions: Solutions) -> Iterator[Message]:
        """The messages of some solutions, in their order."""
        return self._assembly.feed(solutions)

    # --- logs ---

    def serialize(
        self,
        format: str | LogType = "nq",
        syntax: str | None = None,
        *,
        prefixes: Mapping[str, str] | None = None,
        options: FormatOptions | None = None,
    ) -> Generator[bytes]:
        """Returns the log as chunks of bytes, as they become available.

        This is faster than iterating, because no `Message` objects are created.

        Args:
            format: a name, extension or media type (`"nt"`, `"nq"`, `"ttl"`, `"trig"`, `"ndjsonld"`, `"yamlld"`,
                `"rdfxml"`, `"jelly"`, `"json"`, `"parquet"`, `"arrow"`, `"csv"`), or a type of log of
                `formats.negotiation`. Parameters of a media type override `syntax`.
            syntax: `"rdfm"` (default), `"1.2-messages"`, `"1.2-basic-messages"` or `"1.1-messages"`; only for the
                first four formats, because the others delimit messages by themselves.
            prefixes: for formats that have prefixes; None: those of the query.
            options: options of the format, such as `JellyOptions` or `ColumnOptions`.

        Raises:
            UsageError: an unknown format or syntax, or a combination that does not exist.
            UnsupportedByFormat: the format cannot represent a quad.
            ColumnError: a value does not fit into its column.
            SourceError: the source failed; the log is incomplete.
        """
        self._begin()
        chunks = _serialize(self._batches(), self._writing(format, syntax, prefixes, options))
        self._running = chunks
        return chunks

    def aserialize(
        self,
        format: str | LogType = "nq",
        syntax: str | None = None,
        *,
        prefixes: Mapping[str, str] | None = None,
        options: FormatOptions | None = None,
    ) -> AsyncGenerator[bytes]:
        """Returns the log as chunks of bytes, for asyncio; see `serialize`."""
        self._begin()
        chunks = _aserialize(self._abatches(), self._writing(format, syntax, prefixes, options))
        self._arunning = chunks
        return chunks

    def write(
        self,
        target: LogTarget,
        format: str | None = None,
        syntax: str | None = None,
        *,
        prefixes: Mapping[str, str] | None = None,
        options: FormatOptions | None = None,
    ) -> int:
        """Writes the log and returns the number of messages.

        Args:
            target: a path, which appears when the log is complete and is compressed if it ends in `.gz`, `.bz2`, `.xz`
                or `.zst`; or a binary file object, which stays open.
            format: see `serialize`; None: that of the extension of the path or of the file's name, which must be known;
                N-Quads if there is no extension.
            syntax, prefixes, options: see `serialize`.

        Raises:
            UsageError: an unknown format, extension or syntax; or the target is a file of the source, or in its
                directory.
            CannotWrite: the target cannot be written.
            UnsupportedByFormat, ColumnError, SourceError: see `serialize`; no file is written.
        """
        if isinstance(target, (str, os.PathLike)):
            refuse_input(target, self._reads)
        with log_file(target) as write:
            for chunk in self.serialize(
                format_of_target(target, format), syntax, prefixes=prefixes, options=options
            ):
                write(chunk)
        return self.message_count

    async def awrite(
        self,
        target: LogTarget,
        format: str | None = None,
        syntax: str | None = None,
        *,
        prefixes: Mapping[str, str] | None = None,
        options: FormatOptions | None = None,
    ) -> int:
        """Writes the log and returns the number of messages, for asyncio; see `write`. A thread writes the file.

        >>> import asyncio, io, pyoxigraph
        >>> store, log = pyoxigraph.Store(), io.BytesIO()
        >>> store.load(b"<urn:a> <urn:p> 1 .", pyoxigraph.RdfFormat.TURTLE)
        >>> asyncio.run(construct_messages("CONSTRUCT WHERE { ?s <urn:p> ?o }", store).awrite(log, "nt"))
        1
        """
        if isinstance(target, (str, os.PathLike)):
            refuse_input(target, self._reads)
        with log_file(target) as write:
            chunks = self.aserialize(
                format_of_target(target, format), syntax, prefixes=prefixes, options=options
            )
            async with aclosing(chunks):
                async for chunk in chunks:
                    await write_in_thread(write, chunk)
        return self.message_count

    def close(self) -> None:
        """Cancels the query and releases the source."""
        super().close()
        if self._owns_source:
            self._source.close()

    def _writing(
        self,
        format: str | LogType,
        syntax: str | None,
        prefixes: Mapping[str, str] | None,
        options: FormatOptions | None,
    ) -> Writing:
        found, delimiting = find_log(format, syntax)
        if prefixes is None:
            prefixes = self.query.prefixes if found.log_prefixes else {}
        return Writing(
            self._assembly, self._template, found, delimiting, prefixes, options, self._origin
        )

    def _record_batches(self, options: ColumnOptions) -> Generator[Any]:
        from construct_messages.construct.rows import QueryRows

        rows = QueryRows(self._assembly, self._template, options, self._origin)
        return _tabulate(self._batches(), rows)

    def _batches(self) -> Generator[Solutions]:
        return pull(self._source, self._request, self._owns_source, self._assembly, self._warns)

    def _abatches(self) -> AsyncGenerator[Solutions]:
        return apull(self._source, self._request, self._owns_source, self._assembly, self._warns)


# The generators know nothing of the stream that holds them: so a stream that is dropped is garbage at once, and its
# generators' `finally` run.


def pull(
    source: Source,
    request: Request,
    owns_source: bool,
    assembly: Assembly | None = None,
    warns: bool = False,
) -> Generator[Solutions]:
    """Yields the solutions of a source, as many as the messages need; closes the source at the end if it is owned."""
    try:
        # some endpoints take LIMIT 0 for no limit
        if request.select.limit == 0 or (assembly and assembly.left == 0):
            return
        none = warns
        with closing(source.solutions(request)) as batches:
            for batch in batches:
                none = none and not batch
                if left := request.readable(batch):
                    yield left
                if assembly and assembly.left == 0:
                    return
        if none:
            warn(_NO_SOLUTIONS)
    finally:
        if request.lenience is not None:
            request.lenience.report()
        if owns_source:
            source.close()


async def apull(
    source: Source,
    request: Request,
    owns_source: bool,
    assembly: Assembly | None = None,
    warns: bool = False,
) -> AsyncGenerator[Solutions]:
    """`pull` for asyncio."""
    try:
        # some endpoints take LIMIT 0 for no limit
        if request.select.limit == 0 or (assembly and assembly.left == 0):
            return
        none = warns
        async with aclosing(source.asolutions(request)) as batches:
            async for batch in batches:
                none = none and not batch
                if left := request.readable(batch):
                    yield left
                if assembly and assembly.left == 0:
                    return
        if none:
            warn(_NO_SOLUTIONS)
    finally:
        if request.lenience is not None:
            request.lenience.report()
        if owns_source:
            source.close()


def _iterate(batches: Generator[Solutions], assembly: Assembly) -> Generator[Message]:
    with closing(batches):
        for batch in batches:
            yield from assembly.feed(batch)
        yield from assembly.finish()


async def _aiterate(
    batches: AsyncGenerator[Solutions], assembly: Assembly
) -> AsyncGenerator[Message]:
    async with aclosing(batches):
        async for batch in batches:
            for message in assembly.feed(batch):
                yield message
        for message in assembly.finish():
            yield message


def _tabulate(batches: Generator[Solutions], rows: QueryRows) -> Generator[Any]:
    with closing(batches):
        for batch in batches:
            yield from rows.feed(batch)
        yield from rows.finish()


def _serialize(batches: Generator[Solutions], writing: Writing) -> Generator[bytes]:
    with closing(batches):
        for batch in batches:
            if chunk := writing.feed(batch):
                yield chunk
        yield from filter(None, writing.finish())


async def _aserialize(
    batches: AsyncGenerator[Solutions], writing: Writing
) -> AsyncGenerator[bytes]:
    import asyncio

    async with aclosing(batches):
        async for batch in batches:
            for part in batch.parts(_AT_ONCE):
                if chunk := writing.feed(part):
                    yield chunk
                await asyncio.sleep(0)
        for chunk in filter(None, writing.finish()):
            yield chunk

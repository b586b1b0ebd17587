"""CONSTRUCT over a stream on Spark: each micro-batch is a table of quads, which a query joins with static tables.

Spark's streaming plans have no place for most of SPARQL, so every query is evaluated batch by batch, by `foreachBatch`
and `construct`. Queries that cannot be evaluated so are refused before the streaming query starts. Windows are in
`windows`, which shares `Output` and `start`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import StringType, StructType

from construct_messages.errors import UnsupportedQuery, UsageError
from construct_messages.feeds.table import kinds_for
from construct_messages.query.algebra.nodes import (
    Bgp,
    Dataset,
    Join,
    Node,
    OrderBy,
    Path,
    Project,
    Union,
    Unit,
    Values,
)
from construct_messages.query.algebra.separable import reach
from construct_messages.query.optimizer.optimize import Statistics
from construct_messages.query.select import unused
from construct_messages.query.syntax import nodes as syntax
from construct_messages.query.syntax.parser import parse
from construct_messages.query.tokens import QueryText, decoded
from construct_messages.rdf.arguments import checked
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.terms import Term, iri
from construct_messages.spark.construct import construct_messages
from construct_messages.spark.dialect import case, literal
from construct_messages.spark.logs import register
from construct_messages.spark.logs.data_source import LogSource
from construct_messages.spark.logs.options import WriteOptions
from construct_messages.spark.logs.sinks import QUERY_ID, FolderWriter
from construct_messages.spark.planning import plan_query
from construct_messages.spark.quads.table import COLUMNS, TERMS, QuadTable, checked_terms
from construct_messages.spark.scans import as_graph
from construct_messages.spark.session import is_remote, translated

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

SCOPES: Final = ("message", "batch")
"""The values of `scope`, which selects the default graph of a query."""

_MESSAGE: Final = "<urn:x-message:"
_BREAK: Final = literal("\n")
# the parts of a line; possessive, so that they neither backtrack nor fill the stack
_SPLIT: Final = literal(
    r"^(\S++) (\S++) ("
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+"(?:@\S++|\^\^<[^>]*+>)?+|<<\( .* \)>>|<[^>]*+>|_:\S++'
    r")(?: (<[^>]*+>|_:\S++))?+ \.$"
)
# the same, if each of them is a term for its place
_SOUND: Final = literal(
    "^({subject}) ({predicate}) ({object})(?: ({graph}))?+ [.]\\z".format(
        **{place: "|".join(terms) for place, terms in TERMS.items()}
    )
)
_SOUND_PARTS: Final = 5  # one more than others have
# A line is never within itself. Spark computes an exploded array once, and would repeat the expression of a column for
# each test of the column.
_PARTS: Final = (
    f"transform(transform(array_distinct(split(message, {_BREAK})), "
    f"line -> split(regexp_replace(line, {_SOUND}, concat_ws({_BREAK}, '$1', '$2', '$3', '$4', '')), {_BREAK})), "
    f"parts -> if(size(parts) = {_SOUND_PARTS}, parts, "
    f"split(regexp_replace(parts[0], {_SPLIT}, concat_ws({_BREAK}, '$1', '$2', '$3', '$4')), {_BREAK})))"
)
_PER_MESSAGE: Final = (
    'pass scope="batch", which answers the query over all messages of a micro-batch together; the result then '
    "depends on where batches end"
)


@checked
def construct_stream(
    query: str,
    messages: DataFrame,
    to: str | Callable[[DataFrame, int], object],
    *,
    checkpoint: str,
    graphs: Mapping[str, Any] | None = None,
    scope: str = "message",
    trigger: Mapping[str, Any] | None = None,
    sink: Mapping[str, str] | None = None,
    **options: Any,
) -> StreamingQuery:
    """Starts a streaming query that writes one RDF Message for each solution of a CONSTRUCT query over a stream.

    Each micro-batch is evaluated by itself, as a table, by `foreachBatch` of Spark. Blank nodes of the template have
    labels that depend on the streaming query and the batch, so that they never meet.

    Args:
        query: see `construct_messages`. Its default graph is that of the stream.
        messages: a streaming DataFrame with a column `message`, such as one of the data source `rdfm`; or, with
            `scope="batch"`, one of quads, with the columns `subject`, `predicate`, `object` and, if there is one,
            `graph`.
        to: the folder or the stream to write to, see `register`, each message once; or a function, which gets a
            DataFrame of the messages of a batch and the number of the batch, and may get a batch again after a failure.
        checkpoint: the folder in which Spark keeps the progress, `checkpointLocation`.
        graphs: static tables, as `QuadTable` or DataFrame of quads, by the IRI of the named graph that the query reads
            them as: `GRAPH <urn:rooms> { … }`. Quads in named graphs of a table are left out.
        scope: `"message"`: the query is answered for each message alone, joined with the static tables, so that it does
            not matter where batches end. `"batch"`: the default graph is that of all messages of a micro-batch.
        trigger: arguments of `DataStreamWriter.trigger`, such as `{"availableNow": True}`.
        sink: options for writing, see `register`.
        options: others of `construct_messages`, except for `label_prefix`.

    Returns:
        The streaming query, which has been started.

    Raises:
        QueryError, UsageError, QuadsError: see `construct_messages`.
        UnsupportedQuery: see `construct_messages`; also a query that cannot be answered for each message alone, or that
            may have solutions without anything of the stream, which each batch would repeat.

    >>> import pathlib, tempfile
    >>> query = "CONSTRUCT { ?sensor <urn:reads> ?value } WHERE { ?sensor <urn:value> ?value }"
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = pathlib.Path(name)
    ...     (folder / "logs").mkdir()
    ...     _ = (folder / "logs" / "first.nq").write_text("# @message\\n<urn:a> <urn:value> <urn:b> .\\n")
    ...     register(spark)
    ...     messages = spark.readStream.format("rdfm").load(name + "/logs")
    ...     running = construct_stream(
    ...         query, messages, name + "/out", checkpoint=name + "/state", trigger={"availableNow": True}
    ...     )
    ...     _ = running.awaitTermination(120)
    ...     spark.read.format("rdfm").load(name + "/out").head().message
    '<urn:a> <urn:reads> <urn:b> .'
    """
    check_stream(messages)
    if scope not in SCOPES:
        raise UsageError(f"scope={scope!r} is unknown", hint=f"choose one of {', '.join(SCOPES)}")
    if "label_prefix" in options:
        raise UsageError("label_prefix is set by the batch", hint="leave it out")
    tables = {iri(name): _static(table) for name, table in (graphs or {}).items()}
    _check_columns(messages, scope)
    output = Output(to, checkpoint, sink)
    batches = _Batches(
        _checked_query(query, tables, scope, options), tables, scope, options, output
    )
    batches.check(messages)
    return start(messages, batches.write, checkpoint, trigger)


def check_stream(messages: DataFrame) -> None:
    """Raises for a DataFrame whose micro-batches are not known here."""
    if not messages.isStreaming:
        raise UsageError("the messages are not a stream", hint="use construct_messages for a table")
    if is_remote(messages.sparkSession):
        raise UsageError(
            "a stream over Spark Connect is not known here by its batches",
            hint="use a session without Spark Connect, such as local_session()",
        )


def start(
    messages: DataFrame,
    write: Callable[[DataFrame, int], None],
    checkpoint: str,
    trigger: Mapping[str, Any] | None,
) -> StreamingQuery:
    """Starts a streaming query that calls a function with each micro-batch and its number."""
    register(messages.sparkSession)
    writer = messages.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
    if trigger:
        writer = writer.trigger(**trigger)
    with translated():
        return writer.start()


def running_query(batch: DataFrame) -> str:
    """Returns the identity of the streaming query that runs a batch."""
    query: str | None = batch.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
    assert query is not None  # Spark sets it for each batch
    return query


@dataclass(frozen=True)
class Output:
    """Where the messages of each micro-batch go: see `construct_stream`."""

    to: str | Callable[[DataFrame, int], object]
    checkpoint: str
    sink: Mapping[str, str] | None

    def check(self, schema: StructType) -> None:
        """Raises for options that are not those of a sink."""
        if callable(self.to):
            if self.sink:
                raise UsageError("sink is for a folder or a stream", hint="leave it out")
            return
        writing = CaseInsensitiveDict({**(self.sink or {}), "path": self.to})
        LogSource(writing).streamWriter(schema, overwrite=False)

    def write(self, messages: DataFrame, query: str, number: int) -> None:
        """Writes the messages of a batch once, also if they come in another order when the batch runs again."""
        if callable(self.to):
            self.to(messages, number)
            return
        batch = {"queryId": query, "batchId": str(number)}
        if not kinds_for(self.to):
            _save(messages, self.to, {**batch, **(self.sink or {})})
            return
        # a stream takes messages one after the other: those of a batch are stored first, and sent as they were stored
        stored = f"{self.checkpoint}/messages"
        _save(messages, stored, batch)
        writer = FolderWriter.of(WriteOptions.of({"path": stored}))
        if logs := writer.logs(query, number):
            reader = messages.sparkSession.read.format("rdfm")
            sent = reader.option("paths", json.dumps(logs)).load().select("message")
            _save(sent, self.to, {**batch, **(self.sink or {})})
            writer.remove(logs)


def _static(table: DataFrame | QuadTable) -> QuadTable:
    return table if isinstance(table, QuadTable) else QuadTable.of(table)


def _check_columns(messages: DataFrame, scope: str) -> None:
    types = {field.name: field.dataType for field in messages.schema.fields}
    if isinstance(types.get("message"), StringType):
        return
    if not {*COLUMNS[:3]} <= types.keys():
        raise UsageError(
            f"no column `message` of strings among {', '.join(types)}",
            hint="give each message as lines of N-Quads in a column of that name, or quads in columns of their own",
        )
    if scope == "message":
        raise UsageError(
            "quads do not name the message that they are of", hint='pass scope="batch"'
        )


# --- queries --------------------------------------------------------------------------------------


def _checked_query(
    query: str, tables: Mapping[Term, QuadTable], scope: str, options: Mapping[str, Any]
) -> str:
    """Returns the text to evaluate over the table of a batch, or raises why that is not possible."""
    known = {name: options[name] for name in ("prefixes", "base", "bindings") if name in options}
    _, plan = plan_query(query, **known)
    if plan.dataset != Dataset() or "dataset" in options:
        raise UnsupportedQuery(
            "the dataset of a query over a stream is the stream and its static tables",
            fragment="FROM",
            hint="leave FROM, FROM NAMED and dataset= out, and name static tables by graphs=",
        )
    pattern = plan.pattern
    if scope == "batch":
        if not _reads_stream(pattern, tables):
            raise _refused("its solutions do not depend on the stream, so that each batch has them")
        return query
    for name in ("group_by", "distinct", "max_messages"):
        if options.get(name):
            raise UnsupportedQuery(
                f"{name} is about several messages, and each is taken alone",
                fragment=name,
                hint=_PER_MESSAGE,
            )
    for kind in (Project, OrderBy):  # further ones are in sub-selects
        if isinstance(pattern, kind):
            pattern = pattern.pattern
    try:
        found = reach(pattern, tables)
    except UnsupportedQuery as error:
        if error.fragment == "WHERE":
            raise _refused(error.message) from error
        error.hint = _PER_MESSAGE
        raise
    if found != "matches":
        raise _refused("some of its solutions match no triple of a message")
    return _within_graph(query, known)


def _refused(reason: str) -> UnsupportedQuery:
    return UnsupportedQuery(
        f"the query cannot be answered batch by batch: {reason}",
        fragment="WHERE",
        hint="match something of the stream, outside of GRAPH, in each branch of the query",
    )


def _reads_stream(node: Node, tables: Mapping[Term, QuadTable]) -> bool:
    """Whether each solution of a node needs something of the stream."""
    match node:
        case Bgp(patterns):
            return any(pattern.graph not in tables for pattern in patterns)
        case Unit() | Values():
            return False
        case Path():
            return node.graph not in tables
        case Union(left, right):
            return _reads_stream(left, tables) and _reads_stream(right, tables)
        case Join(left, right):
            return _reads_stream(left, tables) or _reads_stream(right, tables)
    children = node.children
    return _reads_stream(children[0], tables) if children else True


def _within_graph(query: str, known: Mapping[str, Any]) -> str:
    """Returns the query with `GRAPH ?message { … }` as its WHERE group; it uses no variable of that name."""
    source = QueryText.of(query)
    tree = parse(source, **{name: known[name] for name in ("prefixes", "base") if name in known})
    assert isinstance(tree.form, syntax.ConstructForm)  # as `plan_query` has found
    text, form = source.text, tree.form
    taken = {decoded(text, token)[1:] for token in source.tokens if token.kind == "variable"}
    group = text[form.where.start : form.where.end]
    head = text[: form.where.start]
    if form.template is None:  # CONSTRUCT WHERE { … }
        head = f"{text[: form.start]}CONSTRUCT {group} WHERE "
    name = unused("message", taken)
    return f"{head}{{ GRAPH ?{name} {group} }}{text[form.where.end :]}"


# --- batches --------------------------------------------------------------------------------------


@dataclass
class _Batches:
    """Writes the messages of each micro-batch, as a function of `foreachBatch`."""

    query: str
    tables: Mapping[Term, QuadTable]
    scope: str
    options: Mapping[str, Any]
    output: Output

    def check(self, messages: DataFrame) -> None:
        """Raises for a query or a sink that is not supported."""
        spark = messages.sparkSession
        schema = ", ".join(f"{name} STRING" for name in COLUMNS)
        empty = QuadTable(spark.createDataFrame([], schema))
        self.output.check(construct_messages(self.query, empty, **self.options).frame.schema)

    def write(self, batch: DataFrame, number: int) -> None:
        query, quads = running_query(batch), self._quads(batch)
        labels = Labels.at(f"{query} {number}")
        try:
            # Quads are kept only where they are read twice: for a query of one pattern, this took half of the time.
            # Paths are evaluated by jobs of their own, and a function may read the messages several times.
            if self.scope == "batch" or callable(self.output.to):
                quads.persist()
            table = self._with_static(quads)
            made = construct_messages(self.query, table, label_prefix=labels.prefix, **self.options)
            if not quads.is_cached and (made.reads > 1 or made.plan.ordered):
                quads.persist()
            self.output.write(made.frame, query, number)
        finally:
            quads.unpersist()

    def _quads(self, batch: DataFrame) -> DataFrame:
        """Returns the distinct quads of a batch; if messages are taken alone, each is the named graph of its number."""
        if "message" not in batch.columns:
            return self._of_stream(QuadTable.of(batch).frame)
        alone = self.scope == "message"
        quads = quads_of_messages(batch, alone=alone)
        return quads if alone else self._of_stream(quads)

    def _of_stream(self, quads: DataFrame) -> DataFrame:
        """Returns distinct quads, without those in the graphs of static tables, to which a stream adds nothing."""
        graph = F.col("graph")
        return quads.filter(graph.isNull() | ~graph.isin(*self.tables)).dropDuplicates()

    def _with_static(self, quads: DataFrame) -> QuadTable:
        """Returns the table of a batch with the static tables, each as a named graph.

        In the scope of a batch, `GRAPH ?g` is about them, too.
        """
        # a frame is of the session of the batch if a part of it is; Spark removes this part
        nothing = quads.filter("FALSE")
        graphs = {
            name: QuadTable(nothing.union(as_graph(name, table)), table.statistics)
            for name, table in self.tables.items()
        }
        distinct = True
        if self.scope == "batch":
            quads = reduce(DataFrame.union, (table.frame for table in graphs.values()), quads)
            distinct = all(table.statistics.distinct for table in graphs.values())
        return QuadTable(quads, Statistics(distinct=distinct), graphs=graphs)


def quads_of_messages(messages: DataFrame, *, alone: bool) -> DataFrame:
    """Returns the quads of messages, each as often as messages have it.

    If messages are taken `alone`, the quads of their default graphs only, with the number of the message as the graph.
    They are checked, see `QuadTable.of`.
    """
    number = f"concat({literal(_MESSAGE)}, monotonically_increasing_id(), '>') AS own"
    lines = messages.selectExpr(f"{_PARTS} AS lines", number)
    parts = lines.selectExpr("explode(lines) AS parts", "own").filter("parts[0] <> ''")
    columns = [f"get(parts, {place}) AS {name}" for place, name in enumerate(COLUMNS[:3])]
    graph = "nullif(get(parts, 3), '')"
    if alone:
        parts, graph = parts.filter(f"{graph} IS NULL"), "own"
    quads = parts.selectExpr(*columns, f"{graph} AS graph", "parts")
    sound = (f"size(parts) = {_SOUND_PARTS}", "true")
    checked = case(sound, otherwise=checked_terms({place: place for place in COLUMNS}))
    return quads.filter(checked).select(*COLUMNS)


def _save(messages: DataFrame, to: str, options: Mapping[str, str]) -> None:
    messages.write.format("rdfm").mode("append").options(**options).save(to)

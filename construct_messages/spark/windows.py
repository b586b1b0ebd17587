"""Windows over a stream on Spark: `continuous` evaluates them, in parts of the time that Spark distributes.

Each micro-batch (`foreachBatch`) stores its messages with their times in the checkpoint, and a record of how far time
has come. When it has passed the ends of windows, their messages are read again: each task gets those of a part of the
time, in order, and lets a `WindowedQuery` evaluate the windows that close in it. So there is one meaning of windows.

Spark's own watermark is not used: it drops late rows without saying which, moves a batch later, and would decide
differently from `continuous`, message by message, which are late.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyoxigraph as ox
from pyarrow import fs
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, LongType, StringType, TimestampType

from construct_messages.continuous.dataset import read_static
from construct_messages.continuous.windowed import Firing, WindowedQuery
from construct_messages.continuous.windows import (
    ARRIVAL,
    Extent,
    WindowOptions,
    first_instant,
    time_of,
)
from construct_messages.errors import LogError, UnsupportedQuery, UsageError
from construct_messages.logs.lines.decoder import to_messages, to_text
from construct_messages.query.continuous.parse import parse_continuous
from construct_messages.query.continuous.values import (
    ContinuousQuery,
    CountWindow,
    Needs,
    Operator,
    Report,
    TimeWindow,
    written,
)
from construct_messages.rdf.arguments import checked
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Quad
from construct_messages.rdf.terms import to_pyoxigraph
from construct_messages.spark.logs.files import (
    Place,
    entries,
    is_there,
    make_folder,
    place_of,
    read_bytes,
    remove_file,
    remove_folder,
    s3_settings,
    write_bytes,
)
from construct_messages.spark.quads.table import COLUMNS, QuadTable
from construct_messages.spark.session import active_session, translated
from construct_messages.spark.streaming import Output, check_stream, running_query, start
from construct_messages.streams.element import Element

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

STATIC_QUADS: Final = 100_000
"""The maximal number of static quads: each task has them in memory."""

_STORED: Final = {"time": "BIGINT", "sequence": "BIGINT", "message": "STRING", "reason": "STRING"}
_SCHEMA: Final = ", ".join(f"{name} {type}" for name, type in _STORED.items())
_MADE: Final = "time TIMESTAMP, message STRING"
_ARROW: Final = pa.schema([("time", pa.timestamp("us", tz="UTC")), ("message", pa.string())])
_FARTHEST: Final = 1 << 61  # microseconds: 73,000 years; sums of two fit into 64 bits
_FOLDERS: Final = 32  # of stored messages, before they become one
_PARTS: Final = 2  # of a period, for each core
_MANY: Final = 1000
_QUERY: Final = "query"
_OWN: Final = re.compile(r"\d+(-before|\.json~?)?")
_NAMES: Final = Needs.MEMBERS | Needs.CONTEXT
_NUMBERS: Final = 40  # bits for the messages of a task, in labels


@checked
def construct_windows(
    query: str,
    messages: DataFrame,
    to: str | Callable[[DataFrame, int], object],
    *,
    checkpoint: str,
    options: WindowOptions | None = None,
    static: DataFrame | QuadTable | None = None,
    on_drop: Callable[[DataFrame, int], object] | None = None,
    trigger: Mapping[str, Any] | None = None,
    sink: Mapping[str, str] | None = None,
    base: str | None = None,
) -> StreamingQuery:
    """Starts a streaming query that evaluates a continuous query whenever windows over a stream close.

    The windows have the contents and the messages that they have in `continuous`. A window closes when a later message
    has come, and stays open when the streaming query ends: the next run goes on with it. Messages that come late enter
    no window, and are counted, see `dropped_messages`.

    With a column `sequence`, messages are late or not in that order, wherever batches end. Otherwise those of a batch
    count as arriving together.

    Args:
        query: RSP-QL, C-SPARQL or CQELS, with windows of `RANGE` and `STEP` over one stream.
        messages: a streaming DataFrame with a column `message`. With `time="arrival"`, it also has a column `time`, a
            timestamp. `sequence`, a number that grows, is that of the message in its stream.
        to: see `construct_stream`. A function gets a DataFrame with the columns `time`, at which the window closes, and
            `message`.
        checkpoint: the folder in which Spark keeps the progress, and this function the messages of open windows.
        options: see `WindowOptions`.
        static: at most 100,000 quads of static data, read once at the start.
        on_drop: a function that gets a DataFrame of messages that enter no window, with the columns `time`, `sequence`,
            `message` and `reason` (`late`, `untimed`, `ahead`), and the number of the batch, which it may get again.
        trigger: see `construct_stream`.
        sink: see `construct_stream`.
        base: resolve relative IRIs in the query against this absolute IRI.

    Returns:
        The streaming query, which has been started.

    Raises:
        QueryError: the query is not valid.
        UnsupportedQuery: windows of other kinds, of several streams, or evaluated at other times than when they close.
        UsageError: an option or a column is missing, or the checkpoint is that of another query.

    >>> import pathlib, tempfile
    >>> from construct_messages.spark import register
    >>> query = '''CONSTRUCT { <urn:all> <urn:seen> ?count } FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE 1m STEP 1m]
    ... WHERE { { SELECT (COUNT(*) AS ?count) { WINDOW <urn:w> { ?s <urn:at> ?t } } } }'''
    >>> line = '# @message\\n<urn:a> <urn:at> "2026-01-01T00:{}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\\n'
    >>> with tempfile.TemporaryDirectory() as name:
    ...     (pathlib.Path(name) / "logs").mkdir()
    ...     log = "".join(map(line.format, ("00:10", "00:20", "01:30")))
    ...     _ = (pathlib.Path(name) / "logs" / "first.nq").write_text(log)
    ...     register(spark)
    ...     messages = spark.readStream.format("rdfm").load(name + "/logs")
    ...     running = construct_windows(
    ...         query, messages, name + "/out", checkpoint=name + "/state", trigger={"availableNow": True},
    ...         options=WindowOptions(time="<urn:at>"),
    ...     )
    ...     _ = running.awaitTermination(120)
    ...     spark.read.format("rdfm").load(name + "/out").head().message
    '<urn:all> <urn:seen> "2"^^<http://www.w3.org/2001/XMLSchema#integer> .'
    """
    check_stream(messages)
    options = options or WindowOptions()
    parsed = parse_continuous(query, base=base)
    columns = _columns(messages, options)
    _check_windows(parsed, options, ordered="sequence" in columns)
    quads = [] if static is None else _static(static, parsed)
    engine = WindowedQuery(parsed, options, static=quads)
    output = Output(to, checkpoint, sink)
    spark = messages.sparkSession
    output.check(spark.createDataFrame([], _MADE).schema)
    state = place_of(f"{checkpoint}/windows", s3_settings(spark))
    evaluation = _Evaluation(query, base, options, quads, "sequence" in columns, _reach(parsed))
    windows = _Windows(evaluation, columns, output, on_drop, state, f"{checkpoint}/windows")
    windows.check(engine.digest)
    return start(messages, windows.write, checkpoint, trigger)


def dropped_messages(checkpoint: str) -> dict[str, int]:
    """Returns the number of messages that entered no window of a `construct_windows`, by reason.

    Args:
        checkpoint: its checkpoint.

    >>> dropped_messages("no-such-folder")
    {}
    """
    spark = active_session()
    state = place_of(f"{checkpoint}/windows", () if spark is None else s3_settings(spark))
    records = [info.base_name.removesuffix(".json") for info in entries(state)]
    numbers = [int(name) for name in records if name.isdigit()]
    return dict(_Record.read(state, max(numbers)).dropped) if numbers else {}


# --- refusals -------------------------------------------------------------------------------------


def _columns(messages: DataFrame, options: WindowOptions) -> list[str]:
    """Returns SQL of the columns that are read, or raises for one that is missing or has another type."""
    types = {each.name: each.dataType for each in messages.schema.fields}
    needed: dict[str, DataType] = {"message": StringType()}
    if options.time == ARRIVAL or options.max_ahead is not None:
        needed["time"] = TimestampType()
    if "sequence" in types:
        needed["sequence"] = LongType()
    for name, type in needed.items():
        if types.get(name) != type:
            found = ", ".join(f"{each} {types[each].simpleString()}" for each in types)
            raise UsageError(
                f"no column `{name}` of type {type.simpleString()} among {found}",
                hint='add it, or with WindowOptions(time="<IRI>") take the time from the message'
                if name == "time"
                else None,
            )
    return [*needed]


def _check_windows(query: ContinuousQuery, options: WindowOptions, *, ordered: bool) -> None:
    """Raises for a query with windows that are not evaluated here, with the reason."""
    report, _ = options.policy_of(query)
    if options.lateness > _FARTHEST:
        raise UsageError("the lateness is longer than 73,000 years", hint="use microseconds")
    for window in query.windows:
        name = written(window.name)
        if isinstance(window, CountWindow):
            raise _refused(name, "counts messages, which is not known of parts of the time")
        if window.range is None:
            raise _refused(name, "holds all messages, and a part of the time only those in it")
        if not window.step:
            raise _refused(name, "is evaluated at each message, as it has no STEP")
        if max(window.range, window.step) > _FARTHEST:
            raise _refused(name, "is longer than 73,000 years")
        if window.stream != query.windows[0].stream:
            raise _refused(name, f"is on {window.stream}, and here is one stream")
        if not ordered and query.needs.get(window.name, _NAMES) & _NAMES:
            raise UnsupportedQuery(
                f"the query may read names of single messages in {name}, which follow from sequences",
                fragment="GRAPH, a variable as a predicate, or a predicate of context triples",
                hint="leave it out, read a stream of a server, or add a column `sequence`",
            )
    closes = report is Report.WINDOW_CLOSE or (
        report is Report.NON_EMPTY_CONTENT and query.operator is Operator.RSTREAM
    )
    if not closes or options.empty:
        other = "empty=True" if closes else f"{report.value} with {query.operator.value}"
        raise UnsupportedQuery(
            f"windows are evaluated on Spark when they close, and not {other}",
            fragment=other,
            hint="leave it out, or use continuous()",
        )


def _refused(window: str, reason: str) -> UnsupportedQuery:
    return UnsupportedQuery(
        f"the window {window} {reason}",
        fragment=window,
        hint="write it as [RANGE PT10M STEP PT1M], or use continuous()",
    )


def _static(table: DataFrame | QuadTable, query: ContinuousQuery) -> list[Quad]:
    """Returns the static quads that a query reads."""
    quads = table if isinstance(table, QuadTable) else QuadTable.of(table)
    with translated():
        rows = quads.frame.select(*COLUMNS).limit(STATIC_QUADS + 1).collect()
    if len(rows) > STATIC_QUADS:
        raise UsageError(
            f"there are more than {STATIC_QUADS:,} static quads, and each task has them in memory",
            hint="leave out those that the query does not read, or join the messages with them afterwards",
        )
    store = ox.Store()
    store.extend(
        ox.Quad(*(to_pyoxigraph(term) for term in row if term is not None))  # type: ignore[arg-type] # as checked
        for row in rows
    )
    return read_static(store, query)


# --- tasks ----------------------------------------------------------------------------------------


def _reach(query: ContinuousQuery) -> int:
    """Returns how long before a part of the time the messages begin that its windows hold.

    ISTREAM and DSTREAM compare with the windows before.
    """
    windows = [window for window in query.windows if isinstance(window, TimeWindow)]
    compared = 0 if query.operator is Operator.RSTREAM else min(each.step for each in windows)
    return max(each.range or 1 for each in windows) + compared


class _Period(NamedTuple):
    """The time from one batch to the next, in parts for tasks."""

    start: int
    end: int  # instants, see `continuous/windows`; it is in the period, and the start is not
    first: int  # the earliest time of the stream: no window was evaluated at it, or before
    size: int  # of a part
    parts: int
    query: str  # the identity of the streaming query
    given: int  # the number of the first message

    def part(self, number: int) -> tuple[int, int]:
        start = self.start + number * self.size
        return start, min(start + self.size, self.end)


@dataclass(frozen=True)
class _Evaluation:
    """The work of tasks: they find the times of messages, and evaluate the windows of a part of the time."""

    query: str
    base: str | None
    options: WindowOptions
    static: Sequence[Quad]
    ordered: bool  # by `sequence`
    reach: int  # microseconds

    def timed(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Adds to messages their times, and the reason why they enter no window, unless they are late."""
        parsed = parse_continuous(self.query, base=self.base)
        find, max_ahead, first = time_of(self.options.time, parsed.query), self.options.max_ahead, 1
        for batch in batches:
            texts, sequences, arrivals = (column.to_pylist() for column in batch.columns)
            for place, column in enumerate((texts, sequences) if self.ordered else (texts,)):
                if None in column:
                    name = ("message", "sequence")[place]
                    raise LogError(
                        f"{name} is NULL", number=first + column.index(None), hint="filter it out"
                    )
            times: list[int | None] = []
            reasons: list[str | None] = []
            for message, arrival in zip(to_messages(texts, first), arrivals, strict=True):
                time = find(Element("", 1, arrival, message.lines))
                is_time = time is not None and abs(time) <= _FARTHEST
                is_ahead = (
                    is_time and None not in (max_ahead, arrival) and time - arrival > max_ahead
                )
                times.append(time if is_time else None)
                reasons.append("ahead" if is_ahead else None if is_time else "untimed")
            first += len(texts)
            columns = [pa.array(times, pa.int64()), batch["sequence"], batch["message"]]
            columns.append(pa.array(reasons, pa.string()))
            yield pa.RecordBatch.from_arrays(columns, [*_STORED])

    def made(self, period: _Period, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Evaluates the windows that close in a part of a period, of which the first row has the number only."""
        rows = chain.from_iterable(
            zip(*(column.to_pylist() for column in batch.columns), strict=True) for batch in batches
        )
        for head in rows:
            start, end = period.part(head[0])
            firings = self._fired(period, head[0], start, end, rows)
            made = (
                (firing.time, to_text(message)) for firing in firings for message in firing.messages
            )
            while some := [*islice(made, _MANY)]:
                yield pa.RecordBatch.from_pylist(
                    [dict(zip(_ARROW.names, r, strict=True)) for r in some], _ARROW
                )

    def _fired(
        self, period: _Period, part: int, start: int, end: int, rows: Iterable[tuple[Any, ...]]
    ) -> Iterator[Firing]:
        bounds = self.options.bounds
        parsed = parse_continuous(self.query, base=self.base)
        engine = WindowedQuery(
            parsed,
            # messages come in the order of times, or in that of the stream; none is late
            replace(
                self.options,
                time=ARRIVAL,
                max_ahead=None,
                lateness=self.options.lateness if self.ordered else 0,
            ),
            static=self.static,
            label_prefix=Labels.at(period.query).prefix,
        )
        begin = start
        if parsed.operator is not Operator.RSTREAM:
            grids = (Extent.of(window, self.options).grid for window in parsed.windows)
            last = max(grid.not_after(start) for grid in grids if grid is not None)
            if last > period.first:  # it was evaluated, and is again, to compare with
                begin = last - 1
        engine.begin(begin, period.given + (part << _NUMBERS))
        (stream,) = engine.streams
        for number, (_, time, sequence, message) in enumerate(rows, 1):
            element = Element(stream, sequence or number, time, message.encode())
            for firing in engine.take(stream, element):
                if first_instant(firing.time, bounds) > start:
                    yield firing
        for firing in engine.advance(end):
            if first_instant(firing.time, bounds) > start:
                yield firing


# --- batches --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Record:
    """How far a batch came. Times are microseconds since 1970."""

    newest: int | None = None  # the latest time
    first: int | None = None  # the earliest time of a message that entered windows
    sequence: int | None = None  # the last one
    dropped: Mapping[str, int] = field(default_factory=dict)
    # folders of messages that windows hold or will hold, with the earliest and the latest time in each
    stored: Sequence[tuple[str, int, int]] = ()

    @classmethod
    def read(cls, state: Place, number: int) -> _Record:
        record = state / f"{number}.json"
        if not is_there(record):
            raise UsageError(
                f"the checkpoint has no record of the windows of batch {number}, {record.path}",
                hint="name a new checkpoint, if this one is not whole, or that of another query",
            )
        return cls(**json.loads(read_bytes(record)))

    def watermark(self, lateness: int) -> int | None:
        """The time before which no message enters windows any more; None: there was none yet."""
        return None if self.newest is None else self.newest - lateness


@dataclass(frozen=True)
class _Windows:
    """Writes the messages of the windows that close with a micro-batch, as a function of `foreachBatch`."""

    evaluation: _Evaluation
    columns: Sequence[str]
    output: Output
    on_drop: Callable[[DataFrame, int], object] | None
    state: Place
    folder: str  # the same place, by Spark's name

    def check(self, digest: str) -> None:
        """Raises if the checkpoint is that of another query."""
        if not is_there(self.state / _QUERY):
            _write(self.state, _QUERY, digest)
        elif read_bytes(self.state / _QUERY).decode() != digest:
            raise UsageError(
                f"{self.output.checkpoint} is the checkpoint of another query, or of other options",
                hint="name a new folder",
            )

    def write(self, batch: DataFrame, number: int) -> None:
        query, spark = running_query(batch), batch.sparkSession
        lateness, reach = self.evaluation.options.lateness, self.evaluation.reach
        before = _Record.read(self.state, number - 1) if number else _Record()
        _clean(self.state, {f"{number - 1}.json", *(name for name, _, _ in before.stored)})
        record = self._store(batch, number, before)
        start, end = before.watermark(lateness), record.watermark(lateness)
        made = spark.createDataFrame([], _MADE)
        if end is not None and record.first is not None:
            start = record.first if start is None else max(record.first, start)
            if start < end:
                most = _PARTS * spark.sparkContext.defaultParallelism
                size = max(-(-(end - start) // most), reach)
                parts, given = -(-(end - start) // size), number << (2 * _NUMBERS)
                period = _Period(start, end, record.first, size, parts, query, given)
                rows = self._parted(spark, record, period)
                made = rows.mapInArrow(partial(self.evaluation.made, period), _MADE)
                kept = [each for each in record.stored if each[2] >= end - reach]
                record = replace(record, stored=kept)
        self.output.write(made, query, number)
        _write(self.state, f"{number}.json", json.dumps(asdict(record)))

    def _store(self, batch: DataFrame, number: int, before: _Record) -> _Record:
        """Stores the messages of a batch with their times, and returns its record, with all that is stored."""
        spark, name = batch.sparkSession, f"{number}"
        self._judged(batch, before).write.mode("overwrite").parquet(f"{self.folder}/{name}")
        rows = self._read(spark, [name])
        span = [F.expr(f"{f}({c})") for c in ("time", "sequence") for f in ("min", "max")]
        found = {
            row[0]: row[1:] for row in rows.groupBy("reason").agg(F.count("*"), *span).collect()
        }
        sequences = [each for row in found.values() for each in row[3:] if each is not None]
        if sequences and before.sequence is not None and min(sequences) <= before.sequence:
            raise UsageError(
                f"the sequence {min(sequences)} came in a batch after that of {before.sequence}",
                hint="read one stream, or leave the column `sequence` out",
            )
        record = replace(before, sequence=max(sequences, default=before.sequence))
        if kept := found.pop(None, None):
            first, newest = kept[1:3]
            stored = [*self._compacted(spark, number, before.stored), (name, first, newest)]
            record = replace(
                record,
                newest=newest if before.newest is None else max(newest, before.newest),
                first=first if before.first is None else min(first, before.first),
                stored=stored,
            )
        if found:
            counts = Counter({reason: row[0] for reason, row in found.items()})
            record = replace(record, dropped=dict(counts + Counter(before.dropped)))
            if self.on_drop is not None:
                dropped = rows.filter("reason IS NOT NULL")
                self.on_drop(dropped.withColumn("time", F.timestamp_micros("time")), number)
        return record

    def _judged(self, batch: DataFrame, before: _Record) -> DataFrame:
        """Returns the messages of a batch with their times, and the reason why they enter no window."""
        evaluation = self.evaluation
        columns = (
            ("message", "STRING", "message"),
            ("sequence", "BIGINT", "sequence"),
            ("time", "BIGINT", "unix_micros(time)"),
        )
        read = [
            f"{sql if name in self.columns else 'NULL'}::{type} AS {name}"
            for name, type, sql in columns
        ]
        timed = batch.selectExpr(*read).mapInArrow(evaluation.timed, _SCHEMA)
        lateness = evaluation.options.lateness
        passed = F.lit(before.watermark(lateness)).cast("bigint")
        if evaluation.ordered:
            earlier = Window.orderBy("sequence").rowsBetween(Window.unboundedPreceding, -1)
            newest = F.max(F.when(F.col("reason").isNull(), F.col("time"))).over(earlier)
            passed = F.greatest(passed, newest - lateness)
        late = F.when(F.col("time") < passed, "late").otherwise(F.col("reason"))
        return timed.withColumn("reason", late)

    def _parted(self, spark: SparkSession, record: _Record, period: _Period) -> DataFrame:
        """Gives each part of a period the messages that its windows hold, in order, after a row with its number.

        Empty windows may have solutions, too.
        """
        start, size, reach = period.start, period.size, self.evaluation.reach
        part = (
            f"explode(sequence(greatest((time - {start}) DIV {size}, 0), "
            f"least((time - {start - reach}) DIV {size}, {period.parts - 1}))) AS part"
        )
        # the others have left all windows, or are in none yet
        names = [name for name, first, _ in record.stored if first < period.end]
        held = self._read(spark, names).filter(
            f"reason IS NULL AND time >= {start - reach} AND time < {period.end}"
        )
        rows = spark.range(period.parts).selectExpr("id AS part", *["NULL"] * 3)
        rows = rows.union(held.selectExpr(part, "time", "sequence", "message"))
        key = "sequence" if self.evaluation.ordered else "time"
        rows = rows.toDF("part", "time", "sequence", "message")
        return rows.repartitionById(period.parts, F.col("part").cast("int")).sortWithinPartitions(
            key
        )

    def _compacted(
        self, spark: SparkSession, number: int, stored: Sequence[tuple[str, int, int]]
    ) -> Sequence[tuple[str, int, int]]:
        """Joins many small folders into one."""
        if len(stored) < _FOLDERS:
            return stored
        names, firsts, lasts = zip(*stored, strict=True)
        together = f"{number}-before"
        rows = self._read(spark, names).filter("reason IS NULL")
        rows.coalesce(spark.sparkContext.defaultParallelism).write.mode("overwrite").parquet(
            f"{self.folder}/{together}"
        )
        return [(together, min(firsts), max(lasts))]

    def _read(self, spark: SparkSession, names: Collection[str]) -> DataFrame:
        if not names:
            return spark.createDataFrame([], _SCHEMA)
        return spark.read.schema(_SCHEMA).parquet(*(f"{self.folder}/{name}" for name in names))


def _write(state: Place, name: str, text: str) -> None:
    """Writes a file, whole or not at all."""
    make_folder(state)
    write_bytes(state / name, text.encode(), state / f"{name}~")


def _clean(state: Place, needed: Collection[str]) -> None:
    """Removes records, and folders of messages, that are not needed any more."""
    for info in entries(state):
        if info.base_name in needed or not _OWN.fullmatch(info.base_name):
            continue
        if info.type == fs.FileType.Directory:
            remove_folder(state / info.base_name)
        else:
            remove_file(state / info.base_name)

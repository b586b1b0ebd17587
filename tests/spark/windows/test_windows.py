"""Windows over a stream on Spark: what `continuous` finds in the same messages, late and out of order, each once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from itertools import chain, count
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from construct_messages.continuous import Bounds, WindowedQuery, WindowOptions
from construct_messages.errors import (
    ConstructMessagesError,
    LogError,
    UnsupportedQuery,
    UsageError,
)
from construct_messages.logs.lines.decoder import to_text
from construct_messages.query.continuous.parse import parse_continuous
from construct_messages.query.continuous.values import Report
from construct_messages.rdf.message import Quad
from construct_messages.rdf.terms import Term
from construct_messages.rdf.terms.values import date_time_of
from construct_messages.streams.element import Element
from tests.support.docs import BLOCKS
from tests.support.spark.flows import appear, ended, shapes, stream, texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.slow

XSD = "http://www.w3.org/2001/XMLSchema#"
SECOND = 1_000_000
STATIC = [
    ("<urn:s0>", "<urn:in>", "<urn:hall>", None),
    ("<urn:s1>", "<urn:in>", "<urn:attic>", None),
    ("<urn:s1>", "<urn:in>", "<urn:cellar>", "<urn:g>"),
]


@dataclass(frozen=True)
class Case:
    """A query over messages, of which each says its number, its time, a sensor and a value."""

    form: str
    windows: str
    where: str
    options: WindowOptions
    ordered: bool = False
    origin: int = 0  # seconds
    files: int = 3
    per_batch: int = 1

    @property
    def query(self) -> str:
        return f"""PREFIX : <urn:> PREFIX prov: <http://www.w3.org/ns/prov#>
            REGISTER {self.form} {self.windows} WHERE {{ {self.where} }}"""


def window(name: str, width: str, step: str) -> str:
    return f"FROM NAMED WINDOW :{name} ON :in [RANGE PT{width}S STEP PT{step}S]"


AVERAGES = """{ SELECT ?s (AVG(?v) AS ?mean) (COUNT(*) AS ?n) (MIN(?t) AS ?from) WHERE {
    WINDOW :w { ?m :of ?s ; :value ?v ; :at ?t } } GROUP BY ?s }"""
COUNTS = "{ SELECT (COUNT(*) AS ?n) WHERE { WINDOW :w { ?m :of ?s } } }"
RISING = """WINDOW :w { GRAPH ?m { ?x :of ?s ; :value ?v } GRAPH ?l { ?y :of ?s ; :value ?u }
    ?m prov:generatedAtTime ?t . ?l prov:generatedAtTime ?k FILTER(?t < ?k && ?v < ?u) }"""
AT = partial(WindowOptions, time="<urn:at>")
CASES = {
    "patterns and nodes, before 1970": Case(
        "RSTREAM :out AS CONSTRUCT { ?m :is [ :of ?s ; :by ?who ] }",
        window("w", "10", "10"),
        "WINDOW :w { ?m :of ?s ; :by ?who }",
        AT(),
        origin=-120,
    ),
    "groups in windows that overlap unevenly": Case(
        "RSTREAM :out AS CONSTRUCT { ?s :mean ?mean ; :n ?n ; :from ?from }",
        window("w", "10", "3"),
        AVERAGES,
        AT(lateness=4 * SECOND, bounds=Bounds.CLOSED_OPEN, origin=1234567),
    ),
    "new pairs of messages, in their order": Case(
        "ISTREAM :out AS CONSTRUCT { ?x :before ?y ; :in ?m , ?l ; :t ?t }",
        window("w", "4", "1.5"),
        RISING,
        AT(lateness=3 * SECOND),
        ordered=True,
        files=4,
        per_batch=2,
    ),
    "what has vanished, with gaps and static data": Case(
        "DSTREAM :out AS CONSTRUCT { ?room :had ?v }",
        window("w", "2", "5"),
        "WINDOW :w { ?m :of ?s ; :value ?v } ?s :in ?room",
        WindowOptions(max_ahead=30 * SECOND, time="<urn:at>", lateness=5 * SECOND),
    ),
    "two windows, of which many are empty": Case(
        "RSTREAM :out AS CONSTRUCT { :w :n ?n . ?m :last ?v }",
        window("w", "20", "5") + window("last", "1", "2"),
        COUNTS + " OPTIONAL { WINDOW :last { ?m :value ?v } }",
        WindowOptions(),
    ),
}  # fmt: skip


def moments(random: Random, case: Case) -> list[int]:
    """Times in microseconds: mostly onwards, some at the ends of windows, some late, some after a pause."""
    times, now = [], case.origin * SECOND
    for _ in range(40 * case.files):
        now += random.choice([0, 0, 1, SECOND // 3, SECOND, SECOND, 3 * SECOND])
        if random.random() < 0.02:
            now += random.choice([40, 90]) * SECOND
        if random.random() < 0.2:
            now -= now % (5 * SECOND)
        times.append(now - random.choice([0, 0, 0, 0, 1, 2, 3, 8, 30]) * SECOND)
    return times


def written(random: Random, time: int) -> str:
    """The form of a time in a zone."""
    if random.random() < 0.5:
        return date_time_of(time)
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time)
    zone = timezone(timedelta(minutes=random.choice([-840, -150, 60, 120, 845 - 5])))
    return at.astimezone(zone).isoformat()


def message(random: Random, number: int, time: int) -> str:
    sensor, node = random.choice("012"), f"<urn:m{number}>"
    value = random.choice(["1", "2", "7", "20"])
    lines = [
        f"{node} <urn:of> <urn:s{sensor}> .",
        f'{node} <urn:value> "{value}"^^<{XSD}integer> .',
        f"{node} <urn:by> _:who{sensor} .",
    ]
    form = f'"{written(random, time)}"^^<{XSD}dateTime>'
    kind = random.random()
    if kind < 0.05:
        form = random.choice(['"2026-01-01T00:00:00"', '"soon"'])
    if kind > 0.03:
        lines.append(f"{node} <urn:at> {form} .")
    return "\n".join(lines)


def events(random: Random, case: Case) -> list[list[tuple[int, int, str]]]:
    """Messages for each file, with their numbers and the times of their arrival; a few are ahead of theirs."""
    files: list[list[tuple[int, int, str]]] = [[] for _ in range(case.files)]
    for number, time in enumerate(moments(random, case), 1):
        arrival = time - random.choice([0] * 30 + [40 * SECOND]) * (case.options.time != "arrival")
        text = f'{message(random, number, time)}\n<urn:m{number}> <urn:arrived> "{arrival}" .'
        files[(number - 1) // 40].append((number, arrival, text))
    return files


def expected(
    case: Case, batches: Sequence[Sequence[tuple[int, int, str]]]
) -> tuple[Counter[tuple[int, str]], dict[str, int]]:
    """What `continuous` finds in messages, each with its number and the time of its arrival."""
    engine = WindowedQuery(
        parse_continuous(case.query),
        case.options,
        static=[Quad(Term(s), Term(p), Term(o), Term(g) if g else None) for s, p, o, g in STATIC],
    )
    found = Counter[tuple[int, str]]()
    numbers = count(1)
    for batch in batches:
        elements = [Element("in", n, at, text.encode()) for n, at, text in batch]
        if not case.ordered:  # those of a batch arrive together
            elements.sort(key=lambda each: engine._time_of(each) or 0)
        for element in elements:
            taken = element if case.ordered else element._replace(sequence=next(numbers))
            for firing in engine.take("urn:in", taken):
                for text, often in shapes(map(to_text, firing.messages)).items():
                    found[firing.time, text] += often
    return found, dict(engine.dropped["urn:in"])


def arrived(messages: DataFrame, *, ordered: bool) -> DataFrame:
    """Messages of a folder with a time and a number, which each message says."""
    columns = [
        "message",
        "timestamp_micros(try_cast(regexp_extract(message, 'arrived> .(-?[0-9]+)', 1) AS BIGINT)) AS time",
    ]
    if ordered:
        columns.append("bigint(regexp_extract(message, 'urn:m([0-9]+)>', 1)) AS sequence")
    return messages.selectExpr(*columns)


def found_on_spark(
    spark: SparkSession, case: Case, files: Sequence[Sequence[tuple[int, int, str]]], folder: Path
) -> tuple[Counter[tuple[int, str]], dict[str, int]]:
    """What `construct_windows` finds in the messages of files."""
    from construct_messages.spark import construct_windows, dropped_messages, register

    register(spark)
    (folder / "in").mkdir()
    for number, file in enumerate(files):
        appear(folder / "in" / f"{number}.nq", *(text for _, _, text in file))
    found: dict[int, Counter[tuple[int, str]]] = {}  # by batch, which may come again
    dropped: dict[int, Counter[str]] = {}

    def keep(frame: DataFrame, batch: int) -> None:
        rows = frame.selectExpr("unix_micros(time) AS time", "message").collect()
        found[batch] = Counter((row["time"], *shapes([row["message"]])) for row in rows)

    def drop(frame: DataFrame, batch: int) -> None:
        dropped[batch] = Counter(row["reason"] for row in frame.collect())

    messages = stream(spark, folder / "in", maxFilesPerTrigger=case.per_batch)
    schema = "subject STRING, predicate STRING, object STRING, graph STRING"
    running = partial(
        construct_windows,
        case.query,
        arrived(messages, ordered=case.ordered),
        keep,
        checkpoint=str(folder / "checkpoint"),
        options=case.options,
        static=spark.createDataFrame(STATIC, schema),
        on_drop=drop,
        trigger={"availableNow": True},
    )
    ended(running)
    assert len(found) == len(files) // case.per_batch
    counts = dropped_messages(str(folder / "checkpoint"))
    assert dict(sum(dropped.values(), Counter())) == counts
    return sum(found.values(), Counter()), counts


@pytest.mark.parametrize("name", CASES)
def test_as_continuous_finds(name: str, quick: SparkSession, tmp_path: Path) -> None:
    case = CASES[name]
    files = events(Random(name), case)
    batches = [
        [*chain.from_iterable(files[first : first + case.per_batch])]
        for first in range(0, case.files, case.per_batch)
    ]
    found, dropped = found_on_spark(quick, case, files, tmp_path)
    assert (found, dropped) == expected(case, batches)
    assert len(found) > 10
    assert dropped["late"] > 3


def test_what_is_stored(
    quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time that has passed everything stored, or nothing of it; folders that become one; a batch that runs again."""
    from construct_messages.spark import dropped_messages, windows
    from construct_messages.spark.logs.files import place_of
    from construct_messages.spark.logs.sinks import QUERY_ID
    from construct_messages.spark.streaming import Output

    monkeypatch.setattr(windows, "_FOLDERS", 2)
    case = Case(
        "RSTREAM :out AS CONSTRUCT { ?m :of ?s }",
        window("w", "2", "2"),
        "WINDOW :w { ?m :of ?s }",
        AT(lateness=10 * SECOND),
    )
    seconds = [[0, 3], [1000], [1001, 990], [1002, 5], [1004], [1013]]
    files = [
        [(n, 0, message(Random(9), 10 * n + m, second * SECOND)) for m, second in enumerate(each)]
        for n, each in enumerate(seconds)
    ]
    found: dict[int, Counter[tuple[int, str]]] = {}

    def keep(frame: DataFrame, batch: int) -> None:
        rows = frame.selectExpr("unix_micros(time) AS time", "message").collect()
        found[batch] = Counter((row["time"], *shapes([row["message"]])) for row in rows)

    reach = windows._reach(parse_continuous(case.query))
    batches = windows._Windows(
        windows._Evaluation(case.query, None, case.options, [], ordered=False, reach=reach),
        ["message"],
        Output(keep, str(tmp_path), None),
        None,
        place_of(f"{tmp_path}/windows"),
        f"{tmp_path}/windows",
    )
    quick.sparkContext.setLocalProperty(QUERY_ID, "a")
    for number in (0, 1, 2, 3, 3, 4, 5):
        texts = [(text,) for _, _, text in files[number]]
        batches.write(quick.createDataFrame(texts, "message STRING"), number)
    assert (sum(found.values(), Counter()), dropped_messages(str(tmp_path))) == expected(
        case, files
    )
    kept = sorted(each.name for each in (tmp_path / "windows").iterdir() if each.is_dir())
    assert kept == ["4", "4-before", "5", "5-before"]  # the next batch removes two of them
    with pytest.raises(UsageError, match="no record of the windows of batch 6"):
        batches.write(quick.createDataFrame([], "message STRING"), 7)


IN = "CONSTRUCT { ?m <urn:p> ?o } FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE 2m STEP 1m]"
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("CONSTRUCT WHERE { ?s ?p ?o }", {}, "has no windows"),
    (IN.replace("RANGE 2m STEP 1m", "ROWS 3"), {}, "counts messages"),
    (IN.replace("RANGE 2m STEP 1m", "RANGE 2m"), {}, "has no STEP"),
    (IN.replace("RANGE 2m STEP 1m", "NOW"), {}, "has no STEP"),
    (IN.replace("RANGE 2m STEP 1m", "ALL"), {}, "holds all messages"),
    (f"{IN} FROM NAMED WINDOW <urn:v> ON <urn:other> [RANGE 2m STEP 1m]", {}, "here is one stream"),
    (IN, {"report": Report.CONTENT_CHANGE}, "and not ON_CONTENT_CHANGE"),
    (IN, {"every": 5}, "and not PERIODIC"),
    (f"REGISTER ISTREAM <urn:o> AS {IN}", {"report": Report.NON_EMPTY_CONTENT}, "with ISTREAM"),
    (IN, {"empty": True}, "empty=True"),
    (IN, {"lateness": 1 << 62}, "the lateness is longer"),
    (IN, {"time": "arrival"}, "no column `time` of type timestamp"),
    (IN, {"max_ahead": 1}, "no column `time` of type timestamp"),
    (IN, {"time": "no path"}, "is not a property path"),
    (IN.replace("CONSTRUCT", "SELECT"), {}, "expected"),
]


@pytest.mark.parametrize(("query", "options", "words"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused_before_the_query_starts(
    query: str, options: dict[str, Any], words: str, messages: DataFrame, tmp_path: Path
) -> None:
    where = " WHERE { WINDOW <urn:w> { ?m <urn:p> ?o } }" * ("FROM" in query)
    started = Starting(messages.select("message"), tmp_path)
    with pytest.raises(ConstructMessagesError, match=words):
        started(query + where, WindowOptions(**{"time": "<urn:at>", **options}))
    assert not (tmp_path / "checkpoint").exists()


@dataclass(frozen=True)
class Starting:
    messages: DataFrame
    folder: Path

    def __call__(self, query: str, options: WindowOptions, **others: Any) -> StreamingQuery:
        from construct_messages.spark import construct_windows

        checkpoint, to = str(self.folder / "checkpoint"), str(self.folder / "out")
        now = {"availableNow": True}
        return construct_windows(
            query, self.messages, to, checkpoint=checkpoint, options=options, trigger=now, **others
        )


@pytest.fixture(scope="module")
def messages(quick: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """A stream without messages."""
    from construct_messages.spark import register

    register(quick)
    return stream(quick, tmp_path_factory.mktemp("empty"))


def test_what_cannot_be_known_without_the_data(
    quick: SparkSession, messages: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from construct_messages.spark import windows

    at, query = WindowOptions(time="<urn:at>"), IN + " WHERE { WINDOW <urn:w> { ?m <urn:p> ?o } }"
    started = Starting(messages, tmp_path)
    for part in ("GRAPH ?g { ?m <urn:p> ?o }", "?m ?p ?o", "?m cm:sequence ?o"):
        reads = query.replace("?m <urn:p> ?o }", f"{part} }}").replace(
            "cm:", "<https://w3id.org/construct-messages#"
        )
        with pytest.raises(UnsupportedQuery, match="names of single messages in <urn:w>"):
            started(reads.replace("#sequence", "#sequence>"), at)
    local = messages.selectExpr("message", "timestamp_ntz '2026-01-01' AS time")
    with pytest.raises(UsageError, match="among message string, time timestamp_ntz"):
        Starting(local, tmp_path)(query, WindowOptions())
    monkeypatch.setattr(windows, "STATIC_QUADS", 2)
    schema = "subject STRING, predicate STRING, object STRING, graph STRING"
    with pytest.raises(UsageError, match="more than 2 static quads"):
        started(query, at, static=quick.createDataFrame(STATIC, schema))
    with pytest.raises(UsageError, match="not a stream"):
        Starting(quick.createDataFrame([("",)], ["message"]), tmp_path)(query, at)
    assert started(query, at).awaitTermination(300)
    with pytest.raises(UsageError, match="the checkpoint of another query"):
        started(query, WindowOptions(time="<urn:at>", lateness=1))


def test_times_and_messages_that_are_none() -> None:
    """A time that 64 bits of microseconds do not hold is none; an invalid message is an error that numbers it."""
    from construct_messages.spark.windows import _Evaluation

    evaluation = _Evaluation(
        IN + " WHERE { WINDOW <urn:w> { ?m <urn:p> ?o } }", None, AT(), [], ordered=True, reach=1
    )

    def timed(sequence: int | None, text: str | None) -> list[tuple[int | None, str | None]]:
        columns = {"message": pa.array(["", text]), "sequence": pa.array([1, sequence])}
        batch = pa.RecordBatch.from_pydict({**columns, "time": pa.nulls(2, pa.int64())})
        return [(row["time"], row["reason"]) for row in next(evaluation.timed([batch])).to_pylist()]

    far = f'<urn:m> <urn:at> "300000-01-01T00:00:00Z"^^<{XSD}dateTime> .'
    assert timed(2, far) == [(None, "untimed")] * 2
    near = far.replace("300000-01-01T00:00:00Z", "1969-12-31T23:59:59.9999999Z")
    assert timed(2, near) == [(None, "untimed"), (-1, None)]
    for sequence, text, words in (
        (None, far, "sequence is NULL"),
        (2, None, "message is NULL"),
        (2, "<urn:m> <urn:p> .", "message 2"),
    ):
        with pytest.raises(LogError, match=words):
            timed(sequence, text)


def test_the_guide(quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import construct_messages.spark

    (program,) = (
        block.text
        for block in BLOCKS
        if (block.page, block.title) == ("docs/guides/spark-streams.md", "means.py")
    )
    monkeypatch.setattr(construct_messages.spark, "local_session", lambda _: quick, raising=False)
    for name in ("readings", "means", "means-checkpoint"):
        assert program.count(f'"{name}"') == 1
        program = program.replace(f'"{name}"', repr(str(tmp_path / name)))
    files = ["a 10 12:01:00", "a 20 12:09:00"], ["a 40 12:11:30"], ["b 7 12:10:00", "b 8 12:21:01"]
    head = f"PREFIX ex: <http://example.org/> PREFIX xsd: <{XSD}>\n"
    line = (
        '# @message\n[] ex:by ex:{} ; ex:celsius {} ; ex:at "2026-06-01T{}+02:00"^^xsd:dateTime .\n'
    )
    (tmp_path / "readings").mkdir()
    for number, readings in enumerate(files):
        log = head + "".join(line.format(*reading.split()) for reading in readings)
        (tmp_path / "readings" / f"{number}.trig").write_text(log)
        exec(program, {})
    found = "\n".join(texts(tmp_path / "means"))
    assert sorted(re.findall(r'/mean> "(\d+)"', found)) == ["15", "40"]
    dropped = construct_messages.spark.dropped_messages(str(tmp_path / "means-checkpoint"))
    assert dropped == {"late": 1}

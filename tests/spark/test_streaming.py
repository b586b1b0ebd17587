"""CONSTRUCT over a stream: the same messages as for each message alone, wherever batches end, and each once."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from construct_messages.continuous.transform import transform
from construct_messages.errors import (
    ConstructMessagesError,
    QuadsError,
    SparkUnavailable,
    UsageError,
)
from construct_messages.logs.lines.decoder import to_messages, to_text
from construct_messages.logs.reading import read_log
from construct_messages.rdf.message import Message
from construct_messages.spark import session
from construct_messages.spark.session import translated
from tests.support.docs import BLOCKS
from tests.support.places import ROOT, absent, shared_path
from tests.support.spark.clusters import SECONDS, run
from tests.support.spark.flows import (
    ATTEMPTS,
    appear,
    elements,
    ended,
    server,
    shapes,
    stream,
    texts,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

TRIPLE = ("subject", "predicate", "object")
XSD = "http://www.w3.org/2001/XMLSchema#"


def reading(sensor: str, celsius: int, *more: str) -> str:
    lines = [f'<urn:{sensor}> <urn:celsius> "{celsius}"^^<{XSD}integer> .', *more]
    return "\n".join(lines)


FILES: list[list[str]] = [
    [
        reading("a", 18, '<urn:a> <urn:says> "a \\"quoted\\" > \\n line . <urn:x>"@en .'),
        "",
        reading("b", 31, "_:n <urn:of> <urn:b> .", "_:n <urn:unit> _:m ."),
    ],
    [reading("a", 31), reading("a", 31), "<urn:c> <urn:says> <<( <urn:a> <urn:p> \"x . <y>\" )>> ."],
    [
        reading("c", 40, "<urn:c> <urn:hall> <urn:h> <urn:graph> ."),
        "<urn:b> <urn:says> \"only in a graph\" <urn:graph> .",
        "<urn:b> <urn:says> \"next to a reading of another message\" .",
    ],
]  # fmt: skip

QUERIES = {
    "filter": "CONSTRUCT { ?s a <urn:Hot> } WHERE { ?s <urn:celsius> ?c FILTER(?c > 30) }",
    "nodes": "CONSTRUCT { [] <urn:of> ?s ; <urn:value> ?c . ?n <urn:unit> ?m } WHERE { ?s <urn:celsius> ?c OPTIONAL { "
    "?n <urn:of> ?s ; <urn:unit> ?m } }",
    "short": "PREFIX u: <urn:> CONSTRUCT WHERE { ?s u:celsius ?c ; u:says ?text }",
    "branches": "CONSTRUCT { ?s <urn:has> ?o } { { ?s <urn:says> ?o } UNION { ?o <urn:of> ?s } BIND(1 AS ?one) "
    "VALUES ?one { 1 2 } }",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def nodes(messages: Iterable[str]) -> list[str]:
    return [label for each in messages for label in set(re.findall(r"_:\S+_t\S+", each))]


@pytest.mark.parametrize("name", QUERIES)
def test_as_for_each_message_alone(
    name: str, quick: SparkSession, folder: Path, tmp_path: Path
) -> None:
    from construct_messages.spark import construct_stream, register

    register(quick)
    for number, file in enumerate(FILES):
        appear(folder / f"{number}.nq", *file)
    expected = transform(QUERIES[name], to_messages([each for file in FILES for each in file]))
    out = tmp_path / "out"
    messages = stream(quick, folder, maxFilesPerTrigger=2 if name == "filter" else 1000)
    running = partial(
        construct_stream,
        QUERIES[name],
        messages,
        str(out),
        checkpoint=str(tmp_path / "checkpoint"),
        trigger={"availableNow": True},
    )
    assert len(ended(running)) == (2 if name == "filter" else 1)
    found = texts(out)
    assert shapes(found) == shapes(map(to_text, expected))
    assert len(nodes(found)) == len(set(nodes(found)))


def test_static_tables_and_a_function(quick: SparkSession, folder: Path, tmp_path: Path) -> None:
    from construct_messages.spark import construct_stream, register

    register(quick)
    rooms = [
        ("<urn:a>", "<urn:in>", "<urn:hall>", None),
        ("<urn:b>", "<urn:in>", "<urn:attic>", None),
        ("<urn:b>", "<urn:in>", "<urn:hall>", None),
        ("<urn:c>", "<urn:in>", "<urn:nowhere>", "<urn:other>"),
        ("<urn:z>", "<urn:in>", "<urn:hall>", None),
        ("<urn:z>", "<urn:celsius>", '"not of the stream"', None),
    ]
    schema = "subject STRING, predicate STRING, object STRING, graph STRING"
    query = """CONSTRUCT { ?room <urn:celsius> ?c ; <urn:reading> [ <urn:of> ?s ] } WHERE {
        ?s <urn:celsius> ?c . GRAPH <urn:rooms> { ?s <urn:in> ?room } }"""
    seen: dict[int, list[str]] = {}

    def keep(messages: DataFrame, batch: int) -> None:
        seen[batch] = [row["message"] for row in messages.collect()]

    for number, file in enumerate(FILES):
        appear(folder / f"{number}.nq", *file)
    running = partial(
        construct_stream,
        query,
        stream(quick, folder, maxFilesPerTrigger=2),
        keep,
        checkpoint=str(tmp_path / "checkpoint"),
        graphs={"urn:rooms": quick.createDataFrame(rooms, schema)},
        trigger={"availableNow": True},
    )
    ended(running)
    found = [each for batch in seen.values() for each in batch]
    rooms_of = {"a": ["hall"], "b": ["attic", "hall"], "c": []}
    readings = re.findall(
        r'<urn:(\w)> <urn:celsius> "(\d+)"', "\n".join(each for file in FILES for each in file)
    )
    pairs = sorted((room, value) for sensor, value in readings for room in rooms_of[sensor])
    match = [re.search(r'<urn:(\w+)> <urn:celsius> "(\d+)"', each) for each in found]
    assert sorted(each.groups() for each in match if each) == pairs
    assert len(set(nodes(found))) == len(found) == len(pairs)


def test_quads_of_messages(quick: SparkSession) -> None:
    """As in the W3C's tests of N-Triples and N-Quads; a line that is none is an error, also if no pattern reads it."""
    from construct_messages.spark.streaming import quads_of_messages

    read = list[Message]()
    for document in sorted(shared_path("suites/w3c/rdf").rglob("*.n[tq]")):
        with suppress(ConstructMessagesError):
            read += read_log(document)
    read += to_messages([each for file in FILES for each in file])
    given = quick.createDataFrame([(to_text(message),) for message in read], ["message"])
    expected = {(q.subject, q.predicate, q.object, q.graph) for each in read for q in each}
    assert len(expected) > 200
    assert {tuple(row) for row in quads_of_messages(given, alone=False).collect()} == expected
    found = [tuple(row) for row in quads_of_messages(given, alone=True).select(*TRIPLE).collect()]
    own = [(q.subject, q.predicate, q.object) for each in read for q in each if q.graph is None]
    assert sorted(found) == sorted(own)
    for line, words in (
        ("<urn:a> <urn:p> <urn:b> . # c", "'subject' holds <urn:a> <urn:p> <urn:b> . # c"),
        ("<urn:a> <urn:p> <urn b> .", "'object' holds <urn b>"),
        ("_:a _:p <urn:b> .", "'predicate' holds _:p"),
    ):
        bad = quick.createDataFrame([("<urn:a> <urn:p> <urn:b> .\n" + line,)], ["message"])
        read_none = quads_of_messages(bad, alone=True).filter("predicate = '<urn:none>'")
        with pytest.raises(QuadsError, match=words), translated():
            read_none.collect()


def test_a_batch_as_one_dataset_into_a_stream(
    quick: SparkSession, folder: Path, tmp_path: Path
) -> None:
    """What is found depends on where batches end; a batch that runs again is sent as it was."""
    from construct_messages.spark import construct_stream, register

    register(quick)
    appear(folder / "a.nq", "<urn:a> <urn:p> <urn:b> .", "<urn:b> <urn:p> <urn:c> .")
    query = "CONSTRUCT { [] <urn:reaches> ?o } WHERE { <urn:a> <urn:p>+ ?o }"
    checkpoint = tmp_path / "checkpoint"
    with server(tmp_path / "streams.db") as served:
        url = f"{served.url}/streams/out"

        def run() -> None:
            running = partial(
                construct_stream,
                query,
                stream(quick, folder),
                url,
                checkpoint=str(checkpoint),
                scope="batch",
                sink={"create": "true"},
                trigger={"availableNow": True},
            )
            ended(running)

        run()
        first = elements(url)
        assert shapes(first) == shapes([f"_:b <urn:reaches> <urn:{o}> ." for o in "bc"])
        (checkpoint / "commits" / "0").unlink()  # as after a kill before Spark noted the commit
        (checkpoint / "commits" / ".0.crc").unlink()
        run()
        appear(folder / "b.nq", "<urn:c> <urn:p> <urn:d> .")
        run()
        assert elements(url) == first


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("ASK { ?s ?p ?o }", {}, "ASK"),
    ("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o } LIMIT 3", {}, "SLICE is not supported for each message"),
    ("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o MINUS { ?s a ?o } }", {}, "MINUS"),
    ("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o FILTER NOT EXISTS { ?s a ?o } }", {}, "EXISTS"),
    ("CONSTRUCT { ?s ?p ?o } WHERE { { SELECT DISTINCT ?s { ?s ?p ?o } } }", {}, "is not supported"),
    ("CONSTRUCT { ?s ?p ?o } WHERE { ?s <urn:p>* ?o }", {}, "PATH"),
    ("CONSTRUCT { ?s ?p ?o } WHERE { GRAPH ?g { ?s ?p ?o } }", {}, "GRAPH other than"),
    ("CONSTRUCT { ?s ?p ?o } FROM <urn:g> WHERE { ?s ?p ?o }", {}, "the dataset of a query"),
    ("CONSTRUCT { ?s ?p 1 } WHERE { GRAPH <urn:t> { ?s ?p ?o } }", {}, "match no triple of a message"),
    ("CONSTRUCT { ?s ?p 1 } WHERE { OPTIONAL { ?s ?p ?o } }", {}, "match no triple of a message"),
    ("CONSTRUCT { ?s ?p 1 } WHERE { { ?s ?p ?o } UNION { GRAPH <urn:t> { ?s ?p ?o } } }", {}, "UNION"),
    ("CONSTRUCT { ?s ?p 1 } WHERE { GRAPH <urn:t> { ?s ?p ?o } }", {"scope": "batch"}, "do not depend on the stream"),
    ("CONSTRUCT { ?s ?p 1 } WHERE { ?s ?p ?o SERVICE <urn:x> { ?s ?p 1 } }", {"scope": "batch"}, "SERVICE"),
    ("CONSTRUCT WHERE { ?s ?p ?o }", {"distinct": True}, "distinct is about several messages"),
    ("CONSTRUCT WHERE { ?s ?p ?o }", {"label_prefix": "x"}, "label_prefix is set"),
    ("CONSTRUCT WHERE { ?s ?p ?o }", {"scope": "window"}, "scope='window' is unknown"),
    ("CONSTRUCT WHERE { ?s ?p ?o }", {"sink": {"format": "csv"}}, "csv"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "options", "words"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused_before_the_query_starts(
    query: str,
    options: dict[str, Any],
    words: str,
    quick: SparkSession,
    messages: DataFrame,
    tmp_path: Path,
) -> None:
    from construct_messages.spark import construct_stream

    schema = "subject STRING, predicate STRING, object STRING"
    graphs = {"urn:t": quick.createDataFrame([], schema)}
    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(ConstructMessagesError, match=words):
        construct_stream(
            query,
            messages,
            str(tmp_path / "out"),
            checkpoint=str(checkpoint),
            graphs=graphs,
            **options,
        )
    assert not checkpoint.exists()
    assert not quick.streams.active


@pytest.fixture(scope="module")
def messages(quick: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """A stream without messages."""
    from construct_messages.spark import register

    register(quick)
    return stream(quick, tmp_path_factory.mktemp("empty"))


def test_frames_that_are_no_streams_of_messages(
    quick: SparkSession, messages: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    from construct_messages.spark import construct_stream

    query = "CONSTRUCT WHERE { ?s ?p ?o }"
    table = quick.createDataFrame([("",)], ["message"])
    for frame, words in (
        (table, "not a stream"),
        (messages.select("file"), "no column `message`"),
        (
            messages.selectExpr(
                *(f"file AS {name}" for name in ("subject", "predicate", "object"))
            ),
            "the message that they are of",
        ),
    ):
        with pytest.raises(UsageError, match=words):
            construct_stream(query, frame, "out", checkpoint="unused")
    monkeypatch.setattr("construct_messages.spark.streaming.is_remote", lambda _: True)
    with pytest.raises(UsageError, match="Spark Connect"):
        construct_stream(query, messages, "out", checkpoint="unused")


def test_the_guide(quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import construct_messages.spark

    (program,) = (
        block.text
        for block in BLOCKS
        if (block.page, block.title) == ("docs/guides/spark-streams.md", "hot.py")
    )
    monkeypatch.setattr(construct_messages.spark, "local_session", lambda _: quick, raising=False)
    (tmp_path / "readings").mkdir()
    celsius = "".join(
        f"# @message\n<http://example.org/{sensor}> <http://example.org/celsius> {degrees} .\n"
        for sensor, degrees in (("a", 31), ("b", 40), ("a", 18), ("c", 50))
    )
    (tmp_path / "readings" / "1.ttl").write_text(celsius)
    (tmp_path / "rooms.ttl").write_text(
        "@prefix : <http://example.org/> . :a :in :hall . :b :in :attic ."
    )
    for name in ("readings", "rooms.ttl", "alarms", "alarms-checkpoint"):
        assert program.count(f'"{name}"') == 1
        program = program.replace(f'"{name}"', repr(str(tmp_path / name)))
    for _ in range(2):
        exec(program, {})
    found = shapes(texts(tmp_path / "alarms"))
    assert found.total() == 2
    assert {re.findall(r"/(hall|attic)>", each)[0] for each in found} == {"hall", "attic"}


def test_the_pipeline_of_the_guide(tmp_path: Path) -> None:
    try:
        session.require()
    except SparkUnavailable as unavailable:
        absent(str(unavailable))
    files = {
        block.title: block.text
        for block in BLOCKS
        if block.page == "docs/guides/spark-streams.md" and block.title != "hot.py"
    }
    for name in ("spark-pipeline.yml", "transformations/copies.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(files[name].replace("/srv/pipelines", str(tmp_path)))
    (tmp_path / "readings").mkdir()
    appear(tmp_path / "readings" / "1.nq", *FILES[0])
    command = Path(sys.executable).with_name("spark-pipelines")
    settings = {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    for _ in range(ATTEMPTS):
        done = run((command, "run"), tmp_path, os.environ | settings, SECONDS)
        if "failed to connect back" not in done.errors:
            break
    output = done.log + done.errors
    assert "Run is COMPLETED" in output, output[-2000:]
    assert done.status == 0 or "UNKNOWN_RESPONSE" in output  # of pyspark 4.3, as the guide says
    assert shapes(texts(tmp_path / "copies")) == shapes(FILES[0])

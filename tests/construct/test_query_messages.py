"""`QueryMessages`: lazy, read once, closed, written, bounded; and what is refused at once."""

from __future__ import annotations

import asyncio
import gc
import io
import math
import os
import threading
import warnings
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
import rdflib

from construct_messages import QueryMessages, construct_messages, transform
from construct_messages.errors import (
    GroupError,
    LimitExceeded,
    NotConstruct,
    QueryError,
    QueryWarning,
    SourceError,
    SourceTimeout,
    TermError,
    UnsupportedByFormat,
    UsageError,
)
from construct_messages.rdf.options import Grouping
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import Term
from construct_messages.sparql.sources import Request
from tests.support.queries.message_cases import DATA, PREFIX, XSD
from tests.support.queries.options import arguments

# --- what a stream promises ------------------------------------------------------------------------------------------

SPO = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"


@pytest.fixture
def store() -> ox.Store:
    filled = ox.Store()
    filled.load(DATA.encode(), format=ox.RdfFormat.TURTLE)
    return filled


class Recorder:
    """A source that records what is asked of it."""

    predefined: Mapping[str, str] = {}
    stable_blank_nodes = True

    def __init__(self) -> None:
        self.said: list[str] = []

    def solutions(self, request: Request) -> Generator[Solutions]:
        self.said.append("asked")
        try:
            for number in range(10):
                yield Solutions.of([(Term(f"<urn:{number}>"),) * len(request.select.variables)])
                self.said.append(f"went on after {number}")
        finally:
            self.said.append("closed")

    async def asolutions(self, request: Request) -> AsyncGenerator[Solutions]:
        for batch in self.solutions(request):
            yield batch

    def close(self) -> None:
        self.said.append("let go")


def test_lazy_and_closed_when_exhausted() -> None:
    source = Recorder()
    stream = construct_messages(SPO, source)
    assert source.said == []
    next(stream)
    assert source.said == ["asked"]
    assert len(list(stream)) == 9
    assert source.said[-1] == "closed"
    assert (stream.message_count, stream.solution_count) == (10, 10)


def test_a_large_batch_leaves_turns_to_others() -> None:
    class OneBatch(Recorder):
        def solutions(self, request: Request) -> Generator[Solutions]:
            width = len(request.select.variables)
            yield Solutions.of([(Term(f"<urn:{number}>"),) * width for number in range(1000)])

    async def turns() -> tuple[int, bytes]:
        """How often others had one until the log was whole."""
        count, chunks = 0, []

        async def write() -> None:
            async for chunk in construct_messages(SPO, OneBatch()).aserialize("trig"):
                chunks.append(chunk)

        writing = asyncio.create_task(write())
        while not writing.done():
            await asyncio.sleep(0)
            count += 1
        return count, b"".join(chunks)

    count, log = asyncio.run(turns())
    assert count >= 1000 / 200
    assert log == b"".join(construct_messages(SPO, OneBatch()).serialize("trig"))


def test_closed_by_the_context_manager() -> None:
    source = Recorder()
    with construct_messages(SPO, source) as stream:
        next(stream)
    assert source.said == ["asked", "closed"]


def test_closed_as_garbage() -> None:
    source = Recorder()
    stream = construct_messages(SPO, source)
    next(stream)
    watch = weakref.ref(stream)
    del stream
    assert watch() is None, "dropping the last reference is enough"
    assert source.said == ["asked", "closed"]


def test_closed_when_max_messages_is_reached() -> None:
    source = Recorder()
    assert len(list(construct_messages(SPO, source, max_messages=3))) == 3
    assert source.said == ["asked", "went on after 0", "went on after 1", "closed"]


async def test_closed_in_asyncio() -> None:
    source = Recorder()
    async with construct_messages(SPO, source) as stream:
        async for _ in stream:
            break
    assert source.said[-1] == "closed"


def test_what_the_stream_opened_it_closes(data_file: Path) -> None:
    assert len(list(construct_messages(SPO, data_file))) == 17


def test_read_once(store: ox.Store) -> None:
    stream = construct_messages(SPO, store)
    next(stream)
    with pytest.raises(UsageError, match="read once"):
        stream.serialize()
    with pytest.raises(UsageError, match="read once"):
        aiter(stream)
    serialized = construct_messages(SPO, store)
    next(serialized.serialize())
    with pytest.raises(UsageError, match="read once"):
        next(serialized)


def test_threads_end_with_the_stream(store: ox.Store) -> None:
    before = set(threading.enumerate())
    stream = construct_messages(
        "CONSTRUCT { ?a ?b ?c } WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }", store
    )
    next(stream)
    (evaluation,) = (
        each for each in set(threading.enumerate()) - before if each.name.endswith(" evaluation")
    )
    del stream
    gc.collect()
    evaluation.join(240)
    assert not evaluation.is_alive()


@pytest.mark.parametrize(
    ("name", "format", "head"),
    [
        ("log.nq", None, b"# @message\n<http"),
        ("log.nt", None, b"# @message\n<http"),
        ("log.ttl", None, b"# @message\nPREFIX ex:"),
        ("log.trig", None, b"# @message\nPREFIX ex:"),
        ("log.txt", "trig", b"# @message\nPREFIX ex:"),
        ("log.nq", "application/trig; version=1.2-messages", b'VERSION "1.2-messages"\nPREFIX ex:'),
    ],
)
def test_write(name: str, format: str | None, head: bytes, store: ox.Store, tmp_path: Path) -> None:
    query = PREFIX + "CONSTRUCT { ?l ex:label ?n } WHERE { ?l ex:label ?n }"
    assert construct_messages(query, store).write(tmp_path / name, format) == 2
    assert (tmp_path / name).read_bytes().startswith(head)
    buffer = io.BytesIO()
    assert construct_messages(query, store).write(buffer, format or "nq") == 2
    assert buffer.getvalue()
    assert not buffer.closed


def test_a_file_open_for_text_is_refused(store: ox.Store) -> None:
    with pytest.raises(UsageError, match="open for text"):
        construct_messages(SPO, store).write(io.StringIO())  # type: ignore[arg-type]


def test_a_failed_write_leaves_nothing(store: ox.Store, tmp_path: Path) -> None:
    path = tmp_path / "log.nt"
    with pytest.raises(UnsupportedByFormat, match="message 1: N-Triples has no named graphs"):
        construct_messages("CONSTRUCT { GRAPH ?s { ?s ?p ?o } } WHERE { ?s ?p ?o }", store).write(
            path
        )
    assert os.listdir(tmp_path) == []


def test_skolemize(store: ox.Store) -> None:
    query = (
        PREFIX
        + "CONSTRUCT { ?e ex:in ?y ; ex:by [ ex:name 'x' ] } WHERE { ?c ex:founded ?e . ?e ex:year ?y }"
    )
    options = {"skolemize": "https://example.org/.well-known/genid/", "label_prefix": "x"}
    (message,) = construct_messages(query, store, **options)  # type: ignore[arg-type]
    skolem, own = sorted({quad.subject for quad in message})
    assert skolem.startswith("<https://example.org/.well-known/genid/x_d")
    assert own == "_:x_t0b0"
    (log,) = construct_messages(query, store, **options).serialize()  # type: ignore[arg-type]
    assert b"<https://example.org/.well-known/genid/x_d" in log


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ('"Acme"@en', 1),
        (ox.Literal("Acme", language="en"), 1),
        (rdflib.Literal("Acme", lang="en"), 1),
        ('"Acme"', 0),
    ],
)
def test_bindings_take_terms_of_any_library(value: object, found: int, store: ox.Store) -> None:
    query = PREFIX + "CONSTRUCT { ?c ex:named ?n } WHERE { ?c ex:name ?n }"
    assert len(list(construct_messages(query, store, bindings={"n": value}))) == found


@pytest.mark.parametrize(
    ("value", "term"),
    [
        (2, f'"2"^^<{XSD}integer>'),
        (-(10**30), f'"-{10**30}"^^<{XSD}integer>'),
        (True, f'"true"^^<{XSD}boolean>'),
        (2.5, f'"2.5"^^<{XSD}double>'),
        (math.inf, f'"INF"^^<{XSD}double>'),
        (Decimal("1E+3"), f'"1000"^^<{XSD}decimal>'),
        (Decimal("0.10"), f'"0.10"^^<{XSD}decimal>'),
        (
            datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
            f'"2026-01-02T03:04:05+00:00"^^<{XSD}dateTime>',
        ),
        (date(2026, 1, 2), f'"2026-01-02"^^<{XSD}date>'),
        (time(1, 2), f'"01:02:00"^^<{XSD}time>'),
        (timedelta(days=1), f'"P1D"^^<{XSD}dayTimeDuration>'),
        ("2", f'"2"^^<{XSD}integer>'),  # text is N-Triples, also that of a number
        ('"2"', '"2"'),
    ],
    ids=lambda value: str(value),
)
def test_bindings_take_plain_values_of_python(value: object, term: str) -> None:
    """Issue 13, 16."""
    stream = construct_messages(
        "CONSTRUCT { ?s ?p ?n } WHERE { ?s ?p ?o }", Recorder(), bindings={"n": value}
    )
    assert f"VALUES (?n) {{ ({term}) }}" in stream.select
    assert ox.Store().query(stream.select) is not None


def test_the_environment_names_the_source(data_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONSTRUCT_MESSAGES_SOURCE", raising=False)
    with pytest.raises(UsageError, match="no source is named"):
        construct_messages(SPO)
    monkeypatch.setenv("CONSTRUCT_MESSAGES_SOURCE", str(data_file))
    assert len(list(construct_messages(SPO))) == 17


@pytest.mark.parametrize(
    ("query", "options", "error", "words"),
    [
        ("SELECT * { ?s ?p ?o }", {}, NotConstruct, "got SELECT"),
        ("CONSTRUCT { ?s ?p } WHERE { ?s ?p ?o }", {}, QueryError, "line 1, column"),
        ("CONSTRUCT { ?s ex:p ?o } WHERE { ?s ?p ?o }", {}, QueryError, "ex:"),
        ("CONSTRUCT { ?s <p> ?o } WHERE { ?s ?p ?o }", {}, QueryError, "relative"),
        (SPO, {"group_by": ("?nowhere",)}, QueryError, "nowhere"),
        (
            SPO,
            {"group_by": ("?s",), "group_order": "random"},
            UsageError,
            "order='random' must be",
        ),
        (SPO, {"group_limit": 0}, UsageError, "limit=0"),
        (SPO, {"distinct_limit": -1}, UsageError, "distinct_limit"),
        (SPO, {"page_size": 0}, UsageError, "page_size"),
        (SPO, {"timeout": 0}, UsageError, "timeout"),
        (SPO, {"max_messages": -1}, UsageError, "max_messages"),
        (SPO, {"skolemize": "relative"}, TermError, "relative"),
        (SPO, {"bindings": {"s": "unquoted"}}, TermError, "not an RDF term"),
        (SPO, {"bindings": {"s": "Brussels"}}, TermError, "a string as"),
        (SPO, {"bindings": {"s": [5]}}, UsageError, "no term"),
        (SPO, {"bindings": {"s": None}}, UsageError, "no term"),
        (SPO, {"bindings": {"s": Decimal("NaN")}}, UsageError, "no term"),
        (SPO, {"bindings": {"s": "_:b"}}, UsageError, "blank node"),
        (SPO, {"bindings": {"nowhere": "<urn:x>"}}, UsageError, "nowhere"),
        (
            f"{SPO} GROUP BY (STR(?s) AS ?k)",
            {"bindings": {"k": 1}},
            UsageError,
            "GROUP BY computes it",
        ),
        (
            "CONSTRUCT { ?s ?p ?o } { . ?s ?p ?o }",
            {"bindings": {"s": 1}},
            QueryError,
            "line 1, column 26",
        ),
    ],
)
def test_refused_at_once(
    query: str, options: dict[str, object], error: type[Exception], words: str, store: ox.Store
) -> None:
    with pytest.raises(error, match=words):
        construct_messages(query, store, **arguments(options))


@pytest.mark.parametrize("source", ["store", "file", "rdflib", "oxigraph", "rdflib-endpoint"])
def test_a_prefix_that_nobody_declared_is_named(source: str, sources: dict[str, object]) -> None:
    """Issue 13, 16."""
    query = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o . ?o nowhere:p ?q }"
    with pytest.raises(
        (QueryError, SourceError), match=r"PREFIX nowhere:|nowhere: is not declared"
    ):
        list(construct_messages(query, sources[source]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"group_by": ("?s",), "group_limit": 3}, LimitExceeded, "more than 3 solutions"),
        ({"distinct": True, "distinct_limit": 3}, LimitExceeded, "more than 3 different messages"),
        ({"timeout": 1e-9}, SourceTimeout, "time allowed"),
    ],
)
def test_limits_are_errors(
    options: dict[str, object], error: type[Exception], words: str, store: ox.Store
) -> None:
    with pytest.raises(error, match=words):
        list(construct_messages(SPO, store, **arguments(options)))


def test_a_sorted_key_that_comes_back_is_an_error() -> None:
    class Unsorted(Recorder):
        def solutions(self, request: Request) -> Generator[Solutions]:
            yield Solutions.of(
                [(Term(f"<urn:{n % 2}>"),) * len(request.select.variables) for n in range(4)]
            )

    with pytest.raises(GroupError, match="came back after it was closed"):
        list(construct_messages(SPO, Unsorted(), group_by=Grouping("?s", order="sorted")))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (42, "is no source"),
        ([], "list of files is empty"),
        ([1], "is no path"),
        ("ftp://example.org/data", "cannot be a source"),
        (["http://example.org/sparql", "data.ttl"], "cannot be a source"),
        ("absent.ttl", "no such file"),
    ],
)
def test_what_is_no_source(source: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        construct_messages(SPO, source)  # type: ignore[arg-type]


# --- warnings ---------------------------------------------------------------------------------------------------------

NOTHING = "no messages: the data have no solutions of the query"
UNBOUND = "no solution binds ?oo of the template, so its triples are left out"


async def read_all(messages: QueryMessages) -> int:
    return len([message async for message in messages])


@pytest.mark.parametrize(
    ("read", "query", "warned"),
    [
        (list, "CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:typo> ?o }", [NOTHING]),
        (lambda found: asyncio.run(read_all(found)), "CONSTRUCT WHERE { ?s a ?o }", [NOTHING]),
        (lambda found: b"".join(found.serialize()), "CONSTRUCT WHERE { ?s a ?o }", [NOTHING]),
        (lambda found: found.write(io.BytesIO()), "CONSTRUCT WHERE { ?s a ?o }", [NOTHING]),
        (lambda found: found.to_arrow().read_all(), "CONSTRUCT WHERE { ?s a ?o }", [NOTHING]),
        (list, "CONSTRUCT { ?s <urn:q> ?oo } WHERE { ?s <urn:p> ?o }", [UNBOUND]),
        (list, "CONSTRUCT { ?s <urn:q> ?oo } WHERE { ?s a ?o }", [UNBOUND, NOTHING]),
        (list, "CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }", []),
        (list, "CONSTRUCT WHERE { ?s a ?o } LIMIT 0", []),
        (next, "CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }", []),
    ],
)
def test_warnings(read: Callable[[QueryMessages], Any], query: str, warned: list[str]) -> None:
    store = ox.Store()
    store.add(ox.Quad(ox.NamedNode("urn:a"), ox.NamedNode("urn:p"), ox.Literal("1")))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with construct_messages(query, store) as messages:
            read(messages)
    assert [str(each.message) for each in found] == warned
    assert {(each.category, each.filename) for each in found} <= {(QueryWarning, __file__)}
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", category=QueryWarning)
        with construct_messages(query, store) as messages:
            read(messages)
    assert not found


def test_transform_warns() -> None:
    with pytest.warns(QueryWarning, match=r"\?oo of the template"):
        transform("CONSTRUCT { ?s <urn:q> ?oo } WHERE { ?s <urn:p> ?o }", [])


async def test_written_in_a_task_as_without_one(tmp_path: Path) -> None:
    log, other = tmp_path / "log.nq", tmp_path / "other.nq"
    assert await construct_messages(SPO, Recorder(), label_prefix="x").awrite(log) == 10
    assert construct_messages(SPO, Recorder(), label_prefix="x").write(other) == 10
    assert log.read_bytes() == other.read_bytes()


async def test_nothing_is_written_where_a_task_ends_early(tmp_path: Path) -> None:
    class Slow(Recorder):
        async def asolutions(self, request: Request) -> AsyncGenerator[Solutions]:
            async for solutions in super().asolutions(request):
                yield solutions
                await asyncio.sleep(60)

    writing = asyncio.create_task(construct_messages(SPO, Slow()).awrite(tmp_path / "log.nq"))
    await asyncio.sleep(0.1)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert os.listdir(tmp_path) == []

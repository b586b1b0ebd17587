"""`writing.py`: logs of any messages, whole or not there, blocking or not."""

from __future__ import annotations

import asyncio
import gzip
import io
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from construct_messages import Message, Quad, awrite_log, construct_messages, read_log, write_log
from construct_messages.errors import LogError, UnsupportedByFormat, UsageError
from construct_messages.rdf.formats import FORMATS
from construct_messages.rdf.terms import iri, literal
from tests.support.logs.archives import archive
from tests.support.places import ROOT
from tests.support.waiting import eventually

SUBJECT, PREDICATE, GRAPH = (iri(f"http://example.org/{name}") for name in "spg")
MESSAGES = [Message([Quad(SUBJECT, PREDICATE, literal(str(number)))]) for number in range(100)]
MESSAGES[10] = MESSAGES[-1] = Message()
NAMED = Message([Quad(SUBJECT, PREDICATE, literal("o"), GRAPH)])

Write = Callable[..., int]


@pytest.fixture(params=["blocking", "asynchronous"])
def write(request: pytest.FixtureRequest) -> Write:
    if request.param == "blocking":
        return write_log

    def write(stream: Any, *arguments: Any, **options: Any) -> int:
        return asyncio.run(awrite_log(stream, *arguments, **options))

    return write


@pytest.mark.parametrize("packing", ["", ".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_what_is_written_is_read(format: Any, packing: str, write: Write, tmp_path: Path) -> None:
    path = tmp_path / f"log.{format.extension}{packing}"
    assert write(iter(MESSAGES), path) == 100
    assert list(read_log(path)) == MESSAGES
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.slow
@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["log", "hard", "symbolic"])
@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_a_log_is_written_in_place_of_the_one_that_is_read(
    format: Any, name: str, write: Write, tmp_path: Path
) -> None:
    """It is read to its end before the new one has its name, under which it stays if reading fails."""
    log, target = (tmp_path / f"{each}.{format.extension}" for each in ("log", name))
    many = MESSAGES * 30  # more than is read at once
    write_log(many, log)
    if name == "hard":
        target.hardlink_to(log)
    elif name == "symbolic":
        target.symlink_to(log.name)
    before = log.read_bytes()

    def failing() -> Iterator[Message]:
        yield from read_log(log)
        raise OSError("the disk has gone")

    with pytest.raises(OSError, match="gone"):
        write(failing(), target)
    assert (log.read_bytes(), target.read_bytes()) == (before, before)
    assert write((message for message in read_log(log) if message), target) == 98 * 30
    assert list(read_log(target)) == [message for message in many if message]
    if name == "hard":
        assert log.read_bytes() == before
    assert write(read_log(target), target) == 98 * 30
    assert sorted(os.listdir(tmp_path)) == sorted({log.name, target.name})


LOGS: dict[str, tuple[str | None, dict[str, Any], str]] = {
    "by default": (None, {}, '# @message\n<http://example.org/s> <http://example.org/p> "0" .\n'),
    "a label": (
        "nt",
        {"syntax": "1.2-messages"},
        'VERSION "1.2-messages"\n<http://example.org/s> <http://example.org/p> "0" .\nMESSAGE\n',
    ),
    "a media type": (
        "text/turtle; version=1.1-messages",
        {"prefixes": {"ex": "http://example.org/"}},
        'VERSION "1.1-messages"\nPREFIX ex: <http://example.org/>\n\nex:s ex:p "0" .\nMESSAGE\n',
    ),
    "prefixes that are not used": (
        "nq",
        {"prefixes": {"ex": "urn:"}},
        LOG := '# @message\n<http://example.org/s> <http://example.org/p> "0" .\n',
    ),
}


@pytest.mark.parametrize("case", LOGS)
def test_formats_and_syntaxes(case: str, write: Write) -> None:
    format, options, expected = LOGS[case]
    file = io.BytesIO()
    assert write(MESSAGES[:1], file, format, **options) == 1
    assert file.getvalue().decode() == expected


def test_a_log_without_messages(write: Write) -> None:
    file = io.BytesIO()
    assert write([], file, "nt", syntax="1.2-messages") == 0
    assert file.getvalue() == b'VERSION "1.2-messages"\n'


# --- from logs ------------------------------------------------------------------------------------------------------

PREFIXED = b"PREFIX ex: <http://example.org/>\nex:s ex:p 1 .\n# @message\nPREFIX later: <urn:>\nlater:s ex:p 2 .\n"


def test_prefixes_of_a_log_are_carried_on(write: Write) -> None:
    file = io.BytesIO()
    assert write(read_log(PREFIXED), file, "trig") == 2
    assert b"PREFIX ex:" in file.getvalue()
    assert b"ex:s ex:p 1 ." in file.getvalue()
    assert list(read_log(file.getvalue())) == list(read_log(PREFIXED))
    file = io.BytesIO()
    assert write(read_log(PREFIXED), file, "trig", prefixes={}) == 2
    assert b"PREFIX" not in file.getvalue()


def test_jelly_says_whether_there_are_named_graphs(write: Write) -> None:
    def written(stream: Any, **options: Any) -> bytes:
        file = io.BytesIO()
        assert write(stream, file, "jelly", **options) == 1
        return file.getvalue()

    triples, quads = written(MESSAGES[:1], graphs=False), written(MESSAGES[:1])
    assert triples != quads
    turtle = b'<http://example.org/s> <http://example.org/p> "0" .'
    assert written(read_log(turtle, "ttl")) == triples
    assert written(read_log(turtle, "trig")) == quads
    assert written(read_log(turtle, "ttl"), graphs=True) == quads
    assert (
        written(read_log(archive(("0.ttl", turtle)))) == quads
    )  # the next file may be of another format


def test_a_query(write: Write) -> None:
    """The messages of a query are a stream as any other; `QueryMessages.write` is quicker."""
    query = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o } LIMIT 7"
    data = str(ROOT / "queries" / "data" / "companies.ttl")
    one, other = io.BytesIO(), io.BytesIO()
    assert (
        write(construct_messages(query, data), one)
        == construct_messages(query, data).write(other)
        == 7
    )
    assert one.getvalue() == other.getvalue()


# --- failures -------------------------------------------------------------------------------------------------------


def failing(error: BaseException) -> Iterator[Message]:
    yield from MESSAGES
    raise error


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()], ids=repr)
def test_a_stream_that_fails_leaves_no_file(
    error: BaseException, write: Write, tmp_path: Path
) -> None:
    with pytest.raises(type(error)):
        write(failing(error), tmp_path / "log.nq.gz")
    assert os.listdir(tmp_path) == []


def test_a_log_that_fails_leaves_the_old_file(write: Write, tmp_path: Path) -> None:
    (tmp_path / "log.nq").write_bytes(b"old")
    with pytest.raises(LogError):
        write(read_log(PREFIXED + b"nonsense"), tmp_path / "log.nq")
    with pytest.raises(UnsupportedByFormat, match="message 101"):
        write([*MESSAGES, NAMED], tmp_path / "log.nq", "ttl")
    assert (tmp_path / "log.nq").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["log.nq"]


TARGETS: dict[str, tuple[Callable[[Path], Any], dict[str, Any], str]] = {
    "an archive": (lambda path: path / "log.tar.gz", {}, "archives are read, not written"),
    "another archive": (
        lambda path: str(path / "log.tgz"),
        {"format": "ttl"},
        "archives are read, not written",
    ),
    "13.12-an unknown extension": (
        lambda path: path / "log.rdf",
        {},
        r"\.rdf is not the extension of a log format",
    ),
    "13.12-an unknown packing": (
        lambda path: path / "log.nq.zip",
        {},
        r"\.zip is not the extension of a log format",
    ),
    "a folder": (lambda path: path, {}, "is a directory"),
    "no folder": (lambda path: path / "absent" / "log.nq", {}, "cannot write"),
    "a text file": (lambda _: io.StringIO(), {}, "open for text"),
    "an unknown format": (
        lambda path: path / "log.nq",
        {"format": "docx"},
        "unknown format 'docx'",
    ),
    "an unknown syntax": (
        lambda path: path / "log.nq",
        {"syntax": "2"},
        "unknown message syntax '2'",
    ),
    "a syntax without meaning": (
        lambda path: path / "log.jelly",
        {"syntax": "rdfm"},
        "by itself",
    ),
}


@pytest.mark.parametrize("case", TARGETS)
def test_what_is_no_target(case: str, write: Write, tmp_path: Path) -> None:
    target, options, text = TARGETS[case]
    with pytest.raises(UsageError, match=text):
        write(MESSAGES, target(tmp_path), **options)
    assert os.listdir(tmp_path) == []


def test_an_unknown_extension_with_a_format(write: Write, tmp_path: Path) -> None:
    assert write(MESSAGES, tmp_path / "log.rdf", "rdfxml") == 100
    assert list(read_log(tmp_path / "log.rdf", "rdfxml")) == MESSAGES


@pytest.mark.parametrize(
    ("name", "format"), [("log.ttl", "Turtle"), ("log.rdf", "N-Quads"), ("log", "N-Quads")]
)
def test_the_name_of_an_open_file(name: str, format: str, write: Write, tmp_path: Path) -> None:
    with (tmp_path / name).open("wb") as file:
        write(
            [Message([Quad(SUBJECT, PREDICATE, SUBJECT)])] * 2,
            file,
            prefixes={"e": "http://example.org/"},
        )
    assert ((tmp_path / name).read_bytes().count(b"e:s e:p") == 2) is (format == "Turtle")


class Slow(io.RawIOBase):
    """A raw file that takes a few bytes at a time."""

    def __init__(self) -> None:
        self.taken = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.taken += bytes(data[:7])
        return min(len(data), 7)


def test_a_raw_file_that_takes_little(write: Write) -> None:
    file = Slow()
    assert write(MESSAGES, file) == 100
    assert list(read_log(file.taken)) == MESSAGES
    assert not file.closed


# --- asyncio --------------------------------------------------------------------------------------------------------


async def test_an_asynchronous_stream(tmp_path: Path) -> None:
    async def stream() -> AsyncIterator[Message]:
        for message in MESSAGES:
            await asyncio.sleep(0)
            yield message

    assert await awrite_log(stream(), tmp_path / "log.ttl.gz") == 100
    assert [message async for message in read_log(tmp_path / "log.ttl.gz")] == MESSAGES


async def test_one_log_into_another(tmp_path: Path) -> None:
    assert await awrite_log(read_log(PREFIXED), tmp_path / "log.jelly") == 2
    file = io.BytesIO()
    assert await awrite_log(read_log(tmp_path / "log.jelly"), file) == 2
    assert [len(message) for message in read_log(file.getvalue())] == [1, 1]


async def test_a_cancelled_writer_leaves_no_file(tmp_path: Path) -> None:
    async def endless() -> AsyncIterator[Message]:
        while True:
            yield MESSAGES[0]
            await asyncio.sleep(0)

    writing = asyncio.create_task(awrite_log(endless(), tmp_path / "log.nq.gz"))
    await eventually(lambda: os.listdir(tmp_path))
    assert [name[:8] for name in os.listdir(tmp_path)] == [".log.nq."]
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert os.listdir(tmp_path) == []


async def test_the_loop_runs_while_a_file_takes_its_time() -> None:
    class Blocking(io.RawIOBase):
        begun, free = threading.Event(), threading.Event()

        def write(self, data: Any) -> int:
            self.begun.set()
            self.free.wait(60)
            return len(data)

    writing = asyncio.create_task(awrite_log(MESSAGES, Blocking()))
    await eventually(Blocking.begun.is_set)  # which it is while this loop runs
    assert not writing.done()
    Blocking.free.set()
    assert await writing == 100


def test_packed_content(tmp_path: Path) -> None:
    write_log(MESSAGES, tmp_path / "log.nq.gz")
    write_log(MESSAGES, tmp_path / "log.nq")
    assert (
        gzip.decompress((tmp_path / "log.nq.gz").read_bytes()) == (tmp_path / "log.nq").read_bytes()
    )

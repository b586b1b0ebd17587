"""`reading.py`: logs from wherever bytes come, with `for` and with `async for`."""

from __future__ import annotations

import asyncio
import bz2
import fcntl
import gc
import gzip
import io
import lzma
import os
import re
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pytest
import zstandard

from construct_messages import read_log
from construct_messages.errors import (
    ConstructMessagesError,
    IncompleteResult,
    LimitExceeded,
    LogError,
    UsageError,
)
from tests.support.logs.archives import archive
from tests.support.logs.sources import (
    LOG,
    NUMBERS,
    SOURCES,
    achunks,
    anumbers,
    number,
    numbers,
    stream_reader,
)
from tests.support.waiting import eventually


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "log.nt"
    path.write_bytes(LOG)
    return path


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("format", [None, "nt", "application/n-triples; messages=rdfm"])
def test_sources(kind: str, format: str | None, path: Path) -> None:
    source = SOURCES[kind](path)
    reader = read_log(source, format)
    assert numbers(reader) == NUMBERS
    assert (reader.bytes_read, reader.message_count, reader.packing, reader.archive) == (
        len(LOG),
        1000,
        "",
        False,
    )
    close(source, by_us=hasattr(source, "read"))


@pytest.mark.parametrize("kind", SOURCES)
async def test_sources_asynchronously(kind: str, path: Path) -> None:
    source = SOURCES[kind](path)
    assert await anumbers(read_log(source)) == NUMBERS
    close(source, by_us=hasattr(source, "read"))


def close(source: Any, *, by_us: bool) -> None:
    """An open file stays open: whoever opened it closes it."""
    if by_us:
        assert not source.closed
        source.close()


async def test_asynchronous_sources() -> None:
    assert await anumbers(read_log(achunks())) == NUMBERS
    assert await anumbers(read_log(await stream_reader())) == NUMBERS
    with pytest.raises(UsageError, match="asynchronously") as caught:
        next(read_log(achunks()))
    assert "async for" in str(caught.value)


NO_SOURCES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no such file": (lambda path: path.with_name("absent.nt"), "No such file"),
    "a folder": (lambda path: path.parent, "Is a directory"),
    "a text file": (lambda path: path.open(encoding="utf-8"), "open for text"),
    "text": (lambda _: io.StringIO("text"), "open for text"),
    "strings": (lambda _: ["text"], "a log is bytes, and str came"),
    "nothing": (lambda _: None, "source must be .*, not None"),
    "a number": (lambda _: 7, "source must be .*, not 7 .int."),
}


@pytest.mark.parametrize("case", NO_SOURCES)
async def test_what_is_no_source(case: str, path: Path) -> None:
    make, text = NO_SOURCES[case]
    source = make(path)
    with pytest.raises(UsageError, match=text):
        list(read_log(source))
    with pytest.raises(UsageError, match=text):
        await anumbers(read_log(source))
    if hasattr(source, "close"):
        source.close()


@pytest.mark.skipif(
    not Path("/proc/self/mem").exists(), reason="only Linux has a file that fails so"
)
def test_a_file_that_cannot_be_read_on() -> None:
    with pytest.raises(
        IncompleteResult, match="cannot read the rest of /proc/self/mem: Input/output error"
    ):
        list(read_log("/proc/self/mem"))


# --- names ----------------------------------------------------------------------------------------------------------

NAMES: dict[str, tuple[Callable[[bytes], bytes], str, str]] = {
    "log.nt": (bytes, "N-Triples", ""),
    "log.NQ": (bytes, "N-Quads", ""),
    "log.ttl": (bytes, "Turtle", ""),
    "log.trig": (bytes, "TriG", ""),
    "log": (bytes, "N-Quads", ""),
    "log.txt": (bytes, "N-Quads", ""),
    "log.nt.gz": (gzip.compress, "N-Triples", ".gz"),
    "log.ttl.bz2": (bz2.compress, "Turtle", ".bz2"),
    "log.trig.XZ": (lzma.compress, "TriG", ".xz"),
    "log.nq.zst": (lambda data: zstandard.ZstdCompressor().compress(data), "N-Quads", ".zst"),
    "log.gz": (gzip.compress, "N-Quads", ".gz"),
    "packed.ttl": (gzip.compress, "Turtle", ".gz"),
    "log.bin": (lzma.compress, "N-Quads", ".xz"),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("opened", [False, True], ids=["by name", "as a file"])
def test_names(name: str, opened: bool, tmp_path: Path) -> None:
    pack, format, packing = NAMES[name]
    path = tmp_path / name
    path.write_bytes(pack(LOG))
    with path.open("rb") as file:
        reader = read_log(file if opened else path)
        assert numbers(reader) == NUMBERS
    assert reader.format is not None
    assert (reader.format.name, reader.packing) == (format, packing)
    assert reader.bytes_read == path.stat().st_size


@pytest.mark.parametrize(
    "name", ["log.tar", "log.tar.gz", "log.tgz", "log.tar.bz2", "log.txz", "log.TAR.zst", "log"]
)
@pytest.mark.parametrize("opened", [False, True], ids=["by name", "as a file"])
async def test_archives(name: str, opened: bool, tmp_path: Path) -> None:
    files = [
        (f"{number:010}.ttl", f'<http://example.org/s> a "{number}" .'.encode())
        for number in range(100)
    ]
    packers = {"gz": gzip.compress, "tgz": gzip.compress, "bz2": bz2.compress, "txz": lzma.compress}
    pack = packers.get(
        name.rpartition(".")[2], NAMES["log.nq.zst"][0] if name.endswith("zst") else bytes
    )
    path = tmp_path / name
    path.write_bytes(pack(archive(*files)))
    with path.open("rb") as file:
        reader = read_log(file if opened else path)
        assert numbers(reader) == list(range(100))
    assert reader.archive
    assert reader.format is not None
    assert reader.format.name == "Turtle"
    assert await anumbers(read_log(path)) == list(range(100))


def test_an_old_archive_is_told_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "log.tar"
    path.write_bytes(archive())
    assert list(read_log(path)) == []


# --- what is announced ----------------------------------------------------------------------------------------------

LABELLED = b'VERSION "1.2-messages"\n<urn:s> <urn:p> 1 .\nMESSAGE\n'
SILENT = b"<urn:s> <urn:p> 1 .\nMESSAGE\n"
COMMENTED = b"<urn:s> <urn:p> 1 .\n# @message\n<urn:s> <urn:p> 2 .\n"

ANNOUNCEMENTS: dict[str, tuple[bytes, str | None, str | None, int | str]] = {
    "by the log": (LABELLED, None, None, 1),
    "by nobody": (SILENT, "ttl", None, "MESSAGE"),
    "by the media type": (SILENT, "text/turtle; version=1.2-messages", None, 1),
    "by the argument": (SILENT, None, "1.2-messages", 1),
    "by both": (LABELLED, "text/turtle; version=1.2-messages", "1.2-messages", 1),
    "comments": (COMMENTED, None, None, 2),
    "comments, by the argument": (COMMENTED, "ttl", "RDFM", 2),
    "a restriction": (
        COMMENTED + b"<urn:s> <urn:p> <<( <urn:s> <urn:p> 1 )>> .",
        "ttl;version=1.1;messages=rdfm",
        "rdfm",
        "1.1",
    ),
    "a contradiction": (LABELLED, "text/turtle; messages=rdfm", "1.2-messages", "contradicts"),
    "another than the log's": (LABELLED, "ttl", "1.1-messages", "1.2-messages"),
    "unknown": (LABELLED, None, "1.3-messages", "unknown message syntax '1.3-messages'"),
    "an unknown format": (LABELLED, "docx", None, "unknown format 'docx'"),
    "without meaning": (b"{}\n", "ndjsonld", "rdfm", "by itself"),
}


@pytest.mark.parametrize("case", ANNOUNCEMENTS)
def test_announcements(case: str) -> None:
    log, format, syntax, expected = ANNOUNCEMENTS[case]
    if isinstance(expected, int):
        reader = read_log(log, format, syntax=syntax)
        assert len(list(reader)) == expected
        assert reader.syntax is not None
        assert reader.syntax.label == ("rdfm" if log is COMMENTED else "1.2-messages")
    else:
        with pytest.raises(ConstructMessagesError, match=expected):
            list(read_log(log, format, syntax=syntax))


def test_what_the_reader_knows() -> None:
    reader = read_log(
        b"PREFIX ex: <http://example.org/> # @message\nex:s ex:p ex:o .\n# @message\n"
    )
    assert (reader.format, reader.syntax, dict(reader.prefixes), reader.bytes_read) == (
        None,
        None,
        {},
        0,
    )
    next(reader)
    assert reader.format is not None
    assert reader.syntax is not None
    assert (reader.format.name, reader.syntax.label) == ("TriG", "rdfm")
    assert dict(reader.prefixes) == {"ex": "http://example.org/"}


def test_base_and_contexts() -> None:
    (message,) = read_log(b"<s> <p> <o> .", base="http://example.org/")
    assert [quad.subject for quad in message] == ["<http://example.org/s>"]
    context = {"@context": {"p": "http://example.org/p"}}
    log = b'{"@context": "http://example.org/context", "@id": "urn:s", "p": "o"}\n'
    (message,) = read_log(log, contexts={"http://example.org/context": context})
    assert [quad.predicate for quad in message] == ["<http://example.org/p>"]


# --- errors ---------------------------------------------------------------------------------------------------------


def test_messages_before_an_error_come_first(path: Path) -> None:
    path.write_bytes(LOG + b"nonsense\n")
    reader = read_log(path)
    assert numbers(islice(reader, 999)) == list(range(999))
    with pytest.raises(LogError) as caught:
        next(reader)
    assert (caught.value.number, caught.value.position) == (1000, (2001, 1))
    assert caught.value.__notes__ == [f"in {path}"]
    with pytest.raises(UsageError, match="read once"):
        list(reader)


@pytest.mark.parametrize("extension", [".gz", ".bz2", ".xz", ".zst"])
async def test_cut_at_every_byte(extension: str, tmp_path: Path) -> None:
    """A packed log that was cut ends in an error, wherever the cut is: never in a log that is shorter."""
    pack = next(pack for pack, _, packing in NAMES.values() if packing == extension)
    packed = pack(LOG[:500])
    path = tmp_path / f"log.nt{extension}"
    for end in range(len(packed)):
        path.write_bytes(packed[:end])
        with pytest.raises(LogError, match="data end early"):
            list(read_log(path))
        if end % 50 == 0:
            with pytest.raises(LogError, match="data end early"):
                await anumbers(read_log(path))


def test_members_of_a_packed_log(tmp_path: Path) -> None:
    for name, (pack, _, packing) in NAMES.items():
        if packing:
            (tmp_path / name).write_bytes(pack(LOG[:70]) + pack(LOG[70:]) + pack(b""))
            assert numbers(read_log(tmp_path / name)) == NUMBERS


def test_the_size_of_messages() -> None:
    with pytest.raises(LimitExceeded, match="message 1"):
        list(read_log(b'<urn:s> <urn:p> "' + b"x" * 2000 + b'" .', message_bytes=1000))
    assert numbers(read_log(LOG, message_bytes=1000)) == NUMBERS
    with pytest.raises(UsageError, match="message_bytes=0"):
        read_log(LOG, message_bytes=0)


# --- once, lazily, and let go ---------------------------------------------------------------------------------------


def open_files() -> set[str]:
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # a thread has closed it since
            found.add(os.readlink(f"/proc/self/fd/{name}"))
    return found


def test_nothing_is_opened_before_the_first_message(tmp_path: Path) -> None:
    reader = read_log(tmp_path / "later.nt")
    (tmp_path / "later.nt").write_bytes(LOG)
    assert numbers(reader) == NUMBERS


def test_once() -> None:
    reader = read_log(LOG)
    assert iter(reader) is reader
    list(reader)
    with pytest.raises(UsageError, match="read once"):
        aiter(reader)


async def test_once_asynchronously() -> None:
    reader = read_log(LOG)
    await anumbers(reader)
    with pytest.raises(UsageError, match="read once"):
        aiter(reader)
    with pytest.raises(UsageError, match="read once"):
        next(reader)


@pytest.mark.parametrize("how", ["exhausted", "closed", "left", "dropped", "failed"])
def test_the_file_is_let_go(how: str, path: Path) -> None:
    reader = read_log(path, "jelly" if how == "failed" else None)
    if how == "failed":
        with pytest.raises(LogError):
            next(reader)
    elif how == "exhausted":
        list(reader)
    else:
        next(reader)
        assert str(path) in open_files()
    if how == "closed":
        reader.close()
    elif how == "left":
        with reader:
            pass
    elif how == "dropped":
        del reader
        gc.collect()
    assert str(path) not in open_files()


@pytest.mark.parametrize("how", ["exhausted", "closed", "left", "failed"])
async def test_the_file_is_let_go_asynchronously(how: str, path: Path) -> None:
    reader = read_log(path, "jelly" if how == "failed" else None)
    if how == "failed":
        with pytest.raises(LogError):
            await anumbers(reader)
    elif how == "exhausted":
        await anumbers(reader)
    else:
        await anext(aiter(reader))
        assert str(path) in open_files()
    if how == "closed":
        await reader.aclose()
    elif how == "left":
        async with reader:
            pass
    assert str(path) not in open_files()


def test_a_source_is_read_as_it_is_needed() -> None:
    given = 0

    def endless() -> Iterator[bytes]:
        nonlocal given
        while True:
            given += 1
            yield LOG[:8000]

    reader = read_log(endless(), "nt")
    for _ in range(10):
        next(reader)
    assert given == 1
    reader.close()


# --- the event loop -------------------------------------------------------------------------------------------------


async def test_the_loop_runs_while_a_file_is_waited_for(tmp_path: Path) -> None:
    fifo = tmp_path / "log.nt"
    os.mkfifo(fifo)
    reading = asyncio.create_task(anumbers(read_log(fifo)))
    turns = 0
    for _ in range(20):
        await asyncio.sleep(0.005)
        turns += 1
    assert not reading.done()
    assert turns == 20
    await asyncio.to_thread(fifo.write_bytes, LOG)
    assert await reading == NUMBERS


def unread(pipe: IO[bytes]) -> int:
    """How many bytes are in a pipe."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


async def test_a_cancelled_reader_closes_its_file_when_the_thread_is_done(tmp_path: Path) -> None:
    fifo = tmp_path / "log.nt"
    os.mkfifo(fifo)
    reading = asyncio.create_task(anumbers(read_log(fifo)))
    writer = await asyncio.to_thread(fifo.open, "wb", buffering=0)  # opens when the reader does
    writer.write(LOG[:1000])
    await eventually(lambda: unread(writer) == 0)  # then the reader waits for more
    reading.cancel()
    await asyncio.wait(
        [reading], timeout=60
    )  # the thread goes on until the file is written to, or closed
    assert reading.cancelled()
    writer.close()
    await eventually(lambda: str(fifo) not in open_files())


def test_a_message_comes_as_soon_as_it_is_there() -> None:
    read, write = os.pipe()
    with os.fdopen(read, "rb") as file, os.fdopen(write, "wb", buffering=0) as writer:
        reader = read_log(file, "nt", syntax="1.2-messages")
        writer.write(b'<urn:s> <urn:p> "1" .\nMESSAGE\n')
        assert number(next(reader)) == 1
        writer.write(b'<urn:s> <urn:p> "2" .\nMESSAGE\n')
        assert number(next(reader)) == 2
        reader.close()


def test_the_docstring_names_every_argument() -> None:
    arguments = read_log.__code__.co_varnames[
        : read_log.__code__.co_argcount + read_log.__code__.co_kwonlyargcount
    ]
    assert read_log.__doc__ is not None
    assert [
        name for name in arguments if not re.search(rf"^ +{name}: ", read_log.__doc__, re.MULTILINE)
    ] == []

"""What a subscription writes into a log: the same bytes however its elements came, when, and what a failure leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from construct_messages import GrowingLog, Message, Quad, iri, read_log
from construct_messages.errors import LimitExceeded, LogError, UnsupportedByFormat
from construct_messages.feeds import subscribe
from construct_messages.feeds.recording import RecordingState, record
from construct_messages.logs import DecoderOptions, encoder_for
from construct_messages.logs.documents import DocumentReader
from construct_messages.logs.lines.decoder import to_messages
from construct_messages.logs.writing import OpenLog
from construct_messages.rdf.formats import N_QUADS
from construct_messages.rdf.formats.lookup import find_log
from construct_messages.streams.element import Element
from construct_messages.streams.publication import received, received_lines, received_message
from tests.support.http.streams import StreamsServer
from tests.support.logs.lines import documents
from tests.support.streams import numbered, written
from tests.support.waiting import eventually


def elements_of(sent: Sequence[bytes]) -> list[Element]:
    """The elements of records, as a transport reads them: together if it can, or else those that are messages."""
    reader = DocumentReader(N_QUADS, DecoderOptions(comments=False))
    lines = reader.lines(sent)
    event(f"passed on as they are: {lines is not None}")
    if lines is not None:
        return received_lines("a", range(1, len(sent) + 1), lines, [0] * len(sent))
    found = []
    for number, document in enumerate(sent, 1):
        try:
            found.append(received("a", number, reader.read(document), 0))
        except (LogError, LimitExceeded):
            event("not a message")
    return found


@given(sent=st.lists(documents(), min_size=1, max_size=3))
def test_lines_are_passed_on_as_they_are_read(sent: list[bytes]) -> None:
    for element in elements_of(sent):
        read = to_messages([element.nquads.decode()])[0]
        passed = received_message(element)
        assert (passed.lines, element.message.lines) == (read.lines, read.lines)
        assert list(passed) == list(element.message) == list(read)


@given(document=documents())
def test_elements_of_others_are_read(document: bytes) -> None:
    """Those that a program made of lines that are not canonical, or no lines."""

    def outcome(read: str) -> object:
        try:
            element = Element("a", 1, 0, document)
            return list(element.message if read == "alone" else to_messages([document.decode()])[0])
        except (LogError, UnicodeDecodeError) as error:
            return str(error)

    assert outcome("alone") == outcome("together")


async def test_what_comes_is_there_before_more_comes(served: StreamsServer, tmp_path: Path) -> None:
    url, log = f"{served.url}/streams/a", GrowingLog(tmp_path / "log.nq")
    with log.opened() as opened:
        recording = asyncio.create_task(record(subscribe(url, after=0), opened))
        for number in range(1, 4):
            await served.publish([numbered(number)])
            await eventually(
                lambda least=number: log.path.read_bytes().count(b"# @message") == least
            )
        recording.cancel()
        await asyncio.wait([recording])
    assert list(read_log(log.path)) == [*map(numbered, range(1, 4))]


async def test_what_waits_is_written_together(served: StreamsServer) -> None:
    sent, pieces = [*map(numbered, range(1, 301))], list[bytes]()
    await served.publish(sent)
    log = OpenLog(encoder_for(*find_log("nq")), pieces.append)
    await record(subscribe(f"{served.url}/streams/a", follow=False), log)
    assert len(pieces) < 30
    assert (log.message_count, log.size) == (300, len(b"".join(pieces)))
    assert list(read_log(b"".join(pieces), "nq")) == sent


async def test_a_disk_that_is_full(served: StreamsServer, tmp_path: Path) -> None:
    """The state includes nothing that was not written."""
    url, file = f"{served.url}/streams/a", bytearray()
    state = RecordingState(tmp_path / "state", url, can_be_cut=True)

    def write(data: bytes) -> None:
        if len(file) + len(data) > 100_000:
            raise OSError(28, "No space left on device")
        file.extend(data)

    log = OpenLog(encoder_for(*find_log("nq")), write)
    recording = asyncio.create_task(record(subscribe(url, after=0), log, state))
    await served.publish([numbered(1)])
    await eventually(lambda: written(tmp_path / "state") == 1)
    saved = len(file)
    await served.publish([*map(numbered, range(2, 3000))])
    with pytest.raises(OSError, match="No space left"):
        await recording
    known = RecordingState(tmp_path / "state", url, can_be_cut=True).known
    assert known is not None
    assert known.size is not None
    assert saved <= known.size <= len(file)
    assert list(read_log(bytes(file[: known.size]), "nq")) == [
        numbered(number) for number in range(1, known.checkpoint.sequence + 1)
    ]


async def test_messages_before_one_that_cannot_be_written(served: StreamsServer) -> None:
    named, pieces = Message([Quad(iri("urn:s"), iri("urn:p"), iri("urn:o"), iri("urn:g"))]), []
    await served.publish([numbered(1), numbered(2), named, numbered(4)])
    log = OpenLog(encoder_for(*find_log("nt")), pieces.append)
    with pytest.raises(UnsupportedByFormat, match="message 3: N-Triples has no named graphs"):
        await record(subscribe(f"{served.url}/streams/a", follow=False), log)
    assert list(read_log(b"".join(pieces), "nt")) == [numbered(1), numbered(2)]

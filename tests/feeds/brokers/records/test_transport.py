"""Records as messages and back, whatever the broker: types, empty values, keys, and what is no message."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages import Message
from construct_messages.errors import CannotWrite, LogError, SourceError, UsageError
from construct_messages.feeds.brokers import records
from construct_messages.feeds.brokers.records import (
    DeadLetterFile,
    DeadLetterTopic,
    RecordTransport,
)
from construct_messages.feeds.state import Checkpoint
from construct_messages.feeds.transport import (
    Record,
    Settings,
    Start,
    Transport,
    content_type_in,
    option_values,
)
from construct_messages.logs import DecoderOptions
from construct_messages.logs.documents import CONTEXTS
from construct_messages.logs.lines.decoder import decoded
from construct_messages.rdf.formats import FORMATS, N_QUADS, Format
from construct_messages.rdf.wire import Header
from construct_messages.streams import Element
from tests.support.logs.lines import documents
from tests.support.strategies import messages

URL = "memory://broker/topic"


def settings(**given: object) -> Settings:
    return Settings(contexts=CONTEXTS, message_bytes=1 << 20, retries=0, idle_seconds=1, **given)  # type: ignore[arg-type] # each by its name


class Topic(RecordTransport):
    """A topic that keeps the records in a list."""

    def __init__(self, settings: Settings, kept: Sequence[Record] = ()) -> None:
        super().__init__(URL, settings)
        self.kept = list(kept)
        self.sequence = 0
        self.together = 3

    @property
    def position(self) -> Checkpoint:
        return Checkpoint(self.sequence)

    def advance_past(self, record: Record) -> None:
        self.sequence = record.sequence

    async def records(self, start: Start, *, follow: bool) -> AsyncGenerator[Sequence[Record]]:  # noqa: ARG002 - the whole
        yield ()
        records = [record._replace(sequence=n) for n, record in enumerate(self.kept, 1)]
        for first in range(0, len(records), self.together):
            yield records[first : first + self.together]

    async def send(self, records: Sequence[Record], key: str) -> None:  # noqa: ARG002 - records have keys
        self.kept.extend(records)


async def read(topic: Topic) -> list[Element]:
    return [each async for each in topic.read(Start(), follow=False) if each is not None]


PLAIN = messages(
    graphs=False,
    triple_terms=False,
    directions=False,
    any_text=False,
    any_predicate=False,
    dot_segments=False,
)
"""Messages that every format can write."""


@given(sent=PLAIN, format=st.sampled_from(FORMATS))
async def test_what_is_written_is_read(sent: list[Message], format: Format) -> None:
    """By a reader to whom records name their type."""
    topic = Topic(settings(media_type=format.document_type))
    await topic.write(sent, "k")
    assert [record.key for record in topic.kept] == [f"k-{n}" for n in range(1, len(sent) + 1)]
    elements = await read(Topic(settings(), topic.kept))
    assert all(
        element.message.isomorphic(each) for element, each in zip(elements, sent, strict=True)
    )


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ({"content-type": "text/turtle"}, "text/turtle"),
        ({"Content-Type": "text/turtle"}, "text/turtle"),
        (
            {"rdf-message-content-type": "application/trig", "Content-Type": "a/b"},
            "application/trig",
        ),
        ({"type": "text/turtle"}, None),
        ({}, None),
    ],
)
def test_the_type_in_headers(headers: dict[str, str], found: str | None) -> None:
    assert content_type_in(headers) == found


def test_both_headers_are_written() -> None:
    named = Record(b"", "text/turtle", headers={"a": "b"}).named
    assert named.pop("a") == "b"
    assert set(named.values()) == {"text/turtle"}
    assert content_type_in(named) == "text/turtle"


LINE = b"<http://example.org/s> <http://example.org/p> <http://example.org/o> ."


async def test_the_type_of_the_caller_is_that_of_records_that_name_none() -> None:
    kept = [Record(LINE), Record(b"{}", "application/ld+json"), Record(b"")]
    sizes = [
        len(each.message) for each in await read(Topic(settings(media_type="text/turtle"), kept))
    ]
    assert sizes == [1, 0, 0]


async def test_times_and_sequences() -> None:
    (element,) = await read(Topic(settings(), [Record(LINE, "text/turtle", microseconds=7)]))
    assert (element.stream, element.sequence, element.microseconds) == (URL, 1, 7)


BAD = {
    "no type": (Record(LINE), SourceError, "record 1 names no media type"),
    "another type": (Record(LINE, "image/png"), SourceError, "image/png"),
    "malformed": (Record(b"<a", "text/turtle"), LogError, "message 1"),
    "two messages": (
        Record(b'VERSION "1.2-messages"\nMESSAGE\nMESSAGE\n', "text/turtle"),
        LogError,
        "2 messages",
    ),
    "two messages by the type": (
        Record(LINE + b"\n# @message\n" + LINE, "application/n-quads; messages=rdfm"),
        LogError,
        "2 messages",
    ),
    "an unknown syntax": (Record(LINE, "text/turtle; messages=x"), SourceError, "messages=x"),
}


@pytest.mark.parametrize("case", BAD)
async def test_what_is_no_message(case: str, tmp_path: Path) -> None:
    """It ends reading, or goes to the place that the caller names: a file, or a topic; the others are read."""
    record, error, words = BAD[case]
    good = Record(LINE, "text/turtle")
    with pytest.raises(error, match=words):
        await read(Topic(settings(), [record]))
    file = tmp_path / "dead.jsonl"
    file.write_text('{"cut')  # by a kill
    kept = [good, record, record, good]
    assert len(await read(Topic(settings(dead_letters=DeadLetterFile(file)), kept))) == 2
    cut, *letters = file.read_text().splitlines()
    assert cut == '{"cut'
    assert [json.loads(letter)["sequence"] for letter in letters] == [2, 3]
    letter = json.loads(letters[0])
    assert base64.b64decode(letter["value"]) == record.value
    assert (letter["source"], letter["contentType"]) == (URL, record.content_type)
    assert words.replace(" 1", " 2") in letter["reason"]

    dead = Topic(settings())

    @asynccontextmanager
    async def opening() -> AsyncGenerator[Transport]:
        yield dead

    assert len(await read(Topic(settings(dead_letters=DeadLetterTopic(opening)), kept))) == 2
    assert [each.value for each in dead.kept] == [record.value] * 2
    assert {each.headers[Header.DEAD_LETTER_SOURCE] for each in dead.kept} == {URL}
    assert [each.headers[Header.DEAD_LETTER_PLACE] for each in dead.kept] == ["2", "3"]
    assert all("\n" not in each.headers[Header.DEAD_LETTER_REASON] for each in dead.kept)
    assert len({each.key for each in dead.kept}) == 2


async def test_the_position_is_before_what_is_no_message() -> None:
    """So that a reader that continues there gets the same error again, instead of the record after it."""
    good = Record(LINE, "text/turtle")
    topic = Topic(settings(), [good, good, Record(LINE), good])
    with pytest.raises(SourceError, match="record 3"):
        await read(topic)
    assert topic.position == Checkpoint(2)


async def test_the_position_is_before_a_dead_letter_until_it_is_stored() -> None:
    positions = []

    class Place:
        async def put(self, record: Record, source: str, reason: str) -> None:  # noqa: ARG002 - the whole protocol
            positions.append(topic.position)

    good = Record(LINE, "text/turtle")
    topic = Topic(settings(dead_letters=Place()), [good, Record(LINE), Record(LINE)])
    assert len(await read(topic)) == 1
    assert positions == [Checkpoint(1), Checkpoint(2)]
    assert topic.position == Checkpoint(3)


class OneByOne(Topic):
    """Reads each record by the decoder."""

    def message_in(self, record: Record) -> Message:
        options = DecoderOptions(base=URL, message_bytes=1 << 20, comments=False)
        messages = decoded(N_QUADS, record.value, options) if record.value else iter(())
        try:
            message = next(messages, Message())
            if next(messages, None) is not None:
                raise LogError("several messages")
        except LogError as error:
            error.number = record.sequence
            raise
        return message

    def _lines_of(self, records: Sequence[Record]) -> None:  # noqa: ARG002 - the simple path
        return None


class Letters:
    """Where dead letters go: their records are remembered, with the reasons."""

    def __init__(self) -> None:
        self.kept: list[tuple[int, str]] = []

    async def put(self, record: Record, source: str, reason: str) -> None:  # noqa: ARG002 - the whole protocol
        self.kept.append((record.sequence, "" if "messages" in reason else reason))


@given(
    values=st.lists(documents() | st.just(b""), max_size=7),
    together=st.integers(1, 4),
    is_patient=st.booleans(),
    part_bytes=st.sampled_from([1, 100, records._PART_BYTES]),
)
async def test_records_are_read_as_one_by_one(
    values: list[bytes], together: int, is_patient: bool, part_bytes: int
) -> None:
    """The messages, the dead letters, and the position where reading ends."""
    found = []
    with mock.patch.object(records, "_PART_BYTES", part_bytes):
        for kind in (Topic, OneByOne):
            letters = Letters()
            topic = kind(
                settings(dead_letters=letters if is_patient else None),
                [Record(value, "application/n-quads") for value in values],
            )
            topic.together = together
            elements, error = [], None
            try:
                async for element in topic.read(Start(), follow=False):
                    if element is not None:
                        elements.append(element)
                        assert topic.position == Checkpoint(element.sequence)
            except LogError as raised:
                error = raised.position
            found.append((elements, letters.kept, error, topic.position))
    (fast, *others), (simple, *same) = found
    assert others == same
    assert [each.sequence for each in fast] == [each.sequence for each in simple]
    for one, other in zip(fast, simple, strict=True):
        assert one.message.isomorphic(other.message)
        assert one.nquads.count(b"\n") == other.nquads.count(b"\n")
        assert one.generated == other.generated


async def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    topic = Topic(settings(dead_letters=DeadLetterFile(tmp_path)), [Record(LINE)])
    with pytest.raises(CannotWrite, match=tmp_path.name):
        await read(topic)


async def test_any_number_of_types_is_read() -> None:
    kept = [Record(LINE, f"text/turtle; a={n}") for n in range(200)]
    topic = Topic(settings(), kept)
    assert len(await read(topic)) == 200
    assert len(topic._readers) <= 32


def test_a_type_that_cannot_be_written() -> None:
    with pytest.raises(UsageError, match="image/png"):
        Topic(settings(media_type="image/png"))


def test_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "word")
    given = settings(options={"username": "ann", "password": "$SECRET"})
    assert option_values(given, {"username", "password"}) == {"username": "ann", "password": "word"}
    with pytest.raises(UsageError, match="no option username") as refused:
        option_values(given, {"password"})
    assert "ann" not in str(refused.value)
    monkeypatch.delenv("SECRET")
    with pytest.raises(UsageError, match="SECRET, which is not set"):
        option_values(given)

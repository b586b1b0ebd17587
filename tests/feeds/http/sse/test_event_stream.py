"""The parser of server-sent events, as WHATWG HTML, section 9.2.6 has it: whole, byte by byte, and hostile."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import LimitExceeded
from construct_messages.feeds.http.sse import EventParser, ServerSentEvent
from construct_messages.rdf.wire import Event as EventType
from construct_messages.server.http.sending import event

STREAMS: dict[str, tuple[bytes, list[tuple[str, str, bytes]]]] = {
    "nothing": (b"", []),
    "one": (b"data: a\n\n", [("message", "", b"a")]),
    "fields": (b"event: x\nid: 1\ndata: a\n\n", [("x", "1", b"a")]),
    "lines": (b"data: a\ndata: b\n\n", [("message", "", b"a\nb")]),
    "CR": (b"data: a\rdata: b\r\r", [("message", "", b"a\nb")]),
    "CR LF": (b"data: a\r\ndata: b\r\n\r\n", [("message", "", b"a\nb")]),
    "mixed ends": (b"data: a\rdata: b\r\ndata: c\n\r\n", [("message", "", b"a\nb\nc")]),
    "CR and LF part events": (b"data: a\r\rdata: b\n\n", [("message", "", b"a"), ("message", "", b"b")]),
    "byte order mark": (b"\xef\xbb\xbfdata: a\n\n", [("message", "", b"a")]),
    "a second byte order mark": (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
    "comments": (b": x\n:data: y\n\ndata: a\n: z\n\n", [("message", "", b"a")]),
    "without a colon": (b"data\n\ndata\ndata\n\n", [("message", "", b""), ("message", "", b"\n")]),
    "empty": (b"data:\n\n", [("message", "", b"")]),
    "one blank": (b"data:a\ndata: a\ndata:  a\n\n", [("message", "", b"a\na\n a")]),
    "colons": (b"data: a: b\n\n", [("message", "", b"a: b")]),
    "names in other cases": (b"Data: a\nDATA: b\n data: c\n\n", []),
    "no data": (b"event: x\nid: 5\n\ndata: a\n\n", [("message", "5", b"a")]),
    "the id stays": (b"id: 5\ndata: a\n\ndata: b\n\n", [("message", "5", b"a"), ("message", "5", b"b")]),
    "an empty id": (b"id: 5\ndata: a\n\nid\ndata: b\n\n", [("message", "5", b"a"), ("message", "", b"b")]),
    "an id with NUL": (b"id: 5\nid: 6\x007\ndata: a\n\n", [("message", "5", b"a")]),
    "the type does not stay": (b"event: x\ndata: a\n\ndata: b\n\n", [("x", "", b"a"), ("message", "", b"b")]),
    "cut": (b"data: a\n\ndata: b\n", [("message", "", b"a")]),
    "cut in a line": (b"data: a\n\ndata: b", [("message", "", b"a")]),
    "no UTF-8": (b"event: \xff\ndata: \xff\n\n", [("\ufffd", "", b"\xff")]),
    "no line ends": ("data: a\u2028b\x85\x0bc\n\n".encode(), [("message", "", "a\u2028b\x85\x0bc".encode())]),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
def test_events(name: str) -> None:
    stream, expected = STREAMS[name]
    assert list(EventParser(100).feed(stream)) == [ServerSentEvent(*each) for each in expected]


@pytest.mark.parametrize("name", STREAMS)
def test_events_byte_by_byte(name: str) -> None:
    stream, expected = STREAMS[name]
    parser = EventParser(100)
    assert [each for byte in stream for each in parser.feed(bytes([byte]))] == [
        ServerSentEvent(*each) for each in expected
    ]
    assert list(parser.feed(b"")) == []


@given(st.lists(st.binary(max_size=40), max_size=5), st.lists(st.integers(0, 400)))
def test_what_the_server_writes(documents: list[bytes], places: list[int]) -> None:
    """However it is cut; the server splits documents at all line ends, which are one to a client."""
    stream = b"".join(
        event(EventType.MESSAGE, document, number) for number, document in enumerate(documents, 1)
    )
    parser = EventParser(1000)
    cuts = sorted({0, len(stream), *(place for place in places if place < len(stream))})
    events = [each for start, end in pairwise(cuts) for each in parser.feed(stream[start:end])]
    joined = [b"\n".join(document.removesuffix(b"\n").splitlines()) for document in documents]
    assert events == [
        ServerSentEvent("rdf-message", str(number), data) for number, data in enumerate(joined, 1)
    ]


@pytest.mark.parametrize(
    ("stream", "retry"),
    [
        (b"retry: 20\n", 20),
        (b"retry: x\n", None),
        (b"retry: -1\n", None),
        (b"retry: 1" + b"0" * 20 + b"\n", None),
    ],
)
def test_retry(stream: bytes, retry: int | None) -> None:
    parser = EventParser(100)
    assert list(parser.feed(stream)) == []
    assert parser.retry == retry


@pytest.mark.parametrize(
    "piece", [b"x", b"data: x\n", b": x\n", b"id: x\n", b"data: " + b"x" * 300]
)
def test_an_event_without_end_is_refused(piece: bytes) -> None:
    parser = EventParser(1000)

    def feed_on() -> None:
        for _ in range(10_000):
            list(parser.feed(piece))

    with pytest.raises(LimitExceeded):
        feed_on()

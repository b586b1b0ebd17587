"""The test cases of RDF Messages (https://w3c-cg.github.io/rsp/messages/): every one about logs, in all it is about."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from itertools import combinations
from typing import Any, Final

import pyoxigraph as ox
import pytest

from construct_messages.errors import LogError
from construct_messages.logs import encoder_for
from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.rdf.formats import LOGS
from construct_messages.rdf.formats.lookup import find_format, find_syntax
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from tests.support.logs.kinds import Kind, Reading, blanks, isomorphic, read, single_bytes, write
from tests.support.places import shared_path

pytestmark = pytest.mark.suite

_ALL: Final = ("turtle", "trig", "n-triples", "n-quads")
_TURTLES: Final = ("turtle", "trig")

# kind → id → formats; `test_no_case_is_left_out` holds them against the suite
CASES: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "parse": {
        "1.2.1": _ALL,  # single message without delimiter
        "1.2.2": _ALL,  # two messages with MESSAGE
        "1.2.3": _TURTLES,  # two messages with @message .
        "1.2.4": _ALL,  # empty first message
        "1.2.5": _ALL,  # empty message between others
        "1.2.6": _ALL,  # a final delimiter gives no message more
        "1.2.7": ("n-quads",),  # graph names
        "1.2.8": ("trig",),  # default graph and named graph in one message
        "1.2.9": _ALL,  # blank node labels are their message's
        "1.2.10": _TURTLES,  # prefixes declared again
        "1.2.11": ("trig",),  # boundary after a graph block
        "1.3.1": ("ndjson-ld",),  # context, then data
        "1.3.2": ("ndjson-ld",),  # an empty message keeps the context
        "1.3.3": ("ndjson-ld",),  # another context
        "1.3.4": ("ndjson-ld",),  # a context within the active one
        "1.3.5": ("ndjson-ld",),  # data without a context
    },
    "error": {
        "1.5.1": _ALL,  # delimiter without announcement
        "1.5.2": _TURTLES,  # @message without its dot
        "1.5.3": ("trig",),  # delimiter within a graph block
    },
    "roundtrip": {
        "1.4a": _ALL,  # with an empty message
        "1.4b": ("trig", "n-quads"),  # with named graphs
    },
}
# of streams between programs, which are no logs
TRANSPORTS: Final = {*("1.1.1", "1.1.2", "1.1.3", "1.1.4", "1.1.5", "1.1.6", "1.1.7")}


@cache
def suite() -> dict[str, Any]:
    found = json.loads(shared_path("suites/rdf-messages/cases.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def case_of(id: str) -> dict[str, Any]:
    (case,) = (case for case in suite()["cases"] if case["id"] == id)
    assert isinstance(case, dict)
    return case


def messages_of(case: dict[str, Any]) -> list[Message]:
    return [
        to_message(ox.parse("\n".join(lines), ox.RdfFormat.N_QUADS)) for lines in case["messages"]
    ]


def each(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("id", "format"),
        [(id, format) for id, formats in CASES[kind].items() for format in formats],
    )


def test_no_case_is_left_out() -> None:
    here = {(id, kind): formats for kind, cases in CASES.items() for id, formats in cases.items()}
    there = {
        (case["id"], case["kind"]): tuple(case["formats"])
        for case in suite()["cases"]
        if not case["kind"].startswith("transport")
    }
    assert here == there
    assert len(here) == 21
    assert {case["id"] for case in suite()["cases"]} - {id for id, _ in here} == TRANSPORTS


def reading(log: Iterable[bytes], format: str, announced: str | None = None) -> Reading:
    found, own = find_format(format)
    syntax = find_syntax(announced) if announced else own
    kind = Kind(found, syntax or find_syntax("1.2-messages"))
    return read(log, kind, announced=syntax is not None, contexts=suite()["contexts"])


@each("parse")
@pytest.mark.parametrize(
    "announced", [None, "1.2-messages"], ids=["in the log", "by the media type, too"]
)
def test_parse(id: str, format: str, announced: str | None) -> None:
    case = case_of(id)
    log = case["input"].encode()
    announced = (
        announced if find_format(format)[1] is None else None
    )  # NDJSON-LD has nothing to announce
    whole, by_byte = (reading(chunks, format, announced) for chunks in ([log], single_bytes(log)))
    assert whole.error is None
    assert isomorphic(whole.messages, messages_of(case))
    assert by_byte == whole
    # which says nothing of two messages' nodes
    assert all(
        blanks(some).isdisjoint(blanks(other)) for some, other in combinations(whole.messages, 2)
    )


@each("error")
def test_error(id: str, format: str) -> None:
    log = case_of(id)["input"].encode()
    whole, by_byte = (reading(chunks, format) for chunks in ([log], single_bytes(log)))
    assert isinstance(whole.error, LogError)
    assert str(by_byte) == str(whole)
    assert by_byte.messages == whole.messages


@each("roundtrip")
def test_round_trip(id: str, format: str) -> None:
    messages = messages_of(case_of(id))
    for kind in (Kind(*log) for log in LOGS if log[0] is find_format(format)[0]):
        log = write(messages, kind)
        for chunks in ([log], single_bytes(log)):
            for announced in (True, False):
                came = read(chunks, kind, announced=announced)
                assert came.error is None
                assert isomorphic(came.messages, messages), kind


@pytest.mark.parametrize(
    ("id", "format"),
    [
        *(("1.4a", format) for format in ("ndjson-ld", "yaml-ld", "rdf/xml", "jelly")),
        *(
            ("1.4b", format) for format in ("ndjson-ld", "yaml-ld", "jelly")
        ),  # RDF/XML has no named graphs
    ],
)
def test_round_trip_in_the_other_formats(id: str, format: str) -> None:
    test_round_trip(id, format)


@pytest.mark.parametrize(
    ("id", "format"),
    [
        ("1.1.2", "n-triples"),  # WebSocket
        ("1.1.3", "n-triples"),  # Kafka
        ("1.1.4", "ndjson-ld"),  # MQTT 5, as application/ld+json
        ("1.1.5", "trig"),  # other brokers
        ("1.1.6", "jelly"),  # gRPC
    ],
)
def test_each_frame_is_a_document(id: str, format: str) -> None:
    """Frames of a transport, those of the case and our own, are read one by one, and share no blank node."""
    case = case_of(id)
    found, own = find_format(format)
    kind = Kind(found, own or find_syntax("1.2-messages"))
    encoder = encoder_for(*kind)
    written = [encoder.encode_document(message) for message in messages_of(case)]
    for frames in ([frame.encode() for frame in case.get("frames", ())] or written, written):
        readings = [read([frame], kind, announced=False, labels=Labels()) for frame in frames]
        assert not any(reading.error for reading in readings)
        messages = [message for reading in readings for message in reading.messages]
        assert isomorphic(messages, messages_of(case))
        assert all(
            blanks(some).isdisjoint(blanks(other)) for some, other in combinations(messages, 2)
        )

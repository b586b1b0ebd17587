"""Turtle and TriG logs, read: where messages end, what they hold, and where errors stand; whole and byte by byte."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from construct_messages.errors import LimitExceeded, LogError
from construct_messages.logs import DecoderOptions, decoder_for
from construct_messages.rdf.formats import TURTLE
from construct_messages.rdf.formats.lookup import find_syntax
from construct_messages.rdf.message import Message
from tests.support.logs.cases.turtle import (
    NEW,
    RDFM_TTL,
    READ,
    A,
    B,
    Chunks,
    chunked,
    decode,
    messages,
)
from tests.support.logs.kinds import cut

pytestmark = pytest.mark.usefixtures("reader")


@chunked
@pytest.mark.parametrize("case", READ)
def test_reads(case: str, chunks: Chunks) -> None:
    media_type, log, expected = READ[case]
    reading = decode(log, media_type, chunks)
    assert reading.error is None, reading
    assert [list(message) for message in reading.messages] == [
        list(message) for message in messages(*expected)
    ]


class Fault(NamedTuple):
    """The messages before the error, its position if it has one, and words that it says."""

    media_type: str
    log: str | bytes
    before: int
    position: tuple[int, int] | None
    words: list[str]


STATEMENT = "within a statement or an open graph block"
FAULTS = {
    "MESSAGE without an announcement": Fault(
        "ttl", f"{A}\nMESSAGE\n", 0, (2, 1), ["announces no messages", "VERSION"]
    ),
    "@message without an announcement": Fault(
        "ttl", f"{A}\n @message .\n", 0, (2, 2), ["announces no messages"]
    ),
    "MESSAGE among comments": Fault(
        "ttl", f"# @message\n{A}\nMESSAGE\n", 0, (3, 1), ["messages=rdfm", "# @message"]
    ),
    "MESSAGE under rdfm": Fault(RDFM_TTL, f"{A}\nMESSAGE\n", 0, (2, 1), ["messages=rdfm"]),
    "announced after statements": Fault(
        "ttl", f"{A}\n{NEW}", 0, (2, 1), ["after statements", "beginning"]
    ),
    "announced behind a delimiter": Fault(
        "ttl", f"# @message\n{A}# @message\n{NEW}", 1, (3, 1), ["in a log of rdfm"]
    ),
    "announced under rdfm": Fault(RDFM_TTL, NEW, 0, (1, 1), ["1.2-messages", "in a log of rdfm"]),
    "announced twice, differently": Fault(
        "ttl",
        f"{NEW}MESSAGE\nVERSION '1.1-messages'",
        1,
        (3, 1),
        ["1.1-messages", "in a log of 1.2-messages"],
    ),
    "announced otherwise than by media type": Fault(
        "text/turtle; version=1.1-messages",
        NEW,
        0,
        (1, 1),
        ["1.2-messages", "in a log of 1.1-messages"],
    ),
    "an unknown announcement": Fault(
        "ttl", 'VERSION "9-messages"', 0, (1, 1), ["9-messages", "1.2-messages"]
    ),
    "@message without a dot": Fault(
        "ttl", f"{NEW}{A}\n@message <a:x>", 0, (3, 1), ["without a dot", "@message ."]
    ),
    "@message at the end": Fault("ttl", f"{NEW}{A}\n@message # .", 0, (3, 1), ["without a dot"]),
    "MESSAGE with a dot": Fault(
        "ttl", f"{NEW}{A}\nMESSAGE .", 1, (3, 9), [". is not a valid subject"]
    ),
    "in an open graph block": Fault(
        "trig", f"{NEW}MESSAGE <a:g> {{ {A}\n MESSAGE\n{B} }}", 1, (3, 2), ["MESSAGE", STATEMENT]
    ),
    "in a graph block without its last dot": Fault(
        "trig", f"{NEW}{{<a:s> <a:p> <a:o> MESSAGE }}", 0, (2, 20), [STATEMENT]
    ),
    "behind the name of a graph": Fault(
        "trig", f"{NEW}<a:g>\nMESSAGE {{}}", 0, (3, 1), [STATEMENT]
    ),
    "behind GRAPH": Fault("trig", f"{NEW}GRAPH MESSAGE {{}}", 0, (2, 7), [STATEMENT]),
    "behind PREFIX": Fault("ttl", f"{NEW}PREFIX : MESSAGE", 0, (2, 10), [STATEMENT]),
    "behind @base and its IRI": Fault("ttl", f"{NEW}@base <a:> MESSAGE", 0, (2, 12), [STATEMENT]),
    "behind a type": Fault("ttl", f"{NEW}<a:s> <a:p> 'x'^^ MESSAGE", 0, (2, 19), [STATEMENT]),
    "in brackets": Fault(
        "ttl", f"{NEW}<a:s> <a:p> [ <a:q> 1 ;\nMESSAGE ] .", 0, (3, 1), [STATEMENT]
    ),
    "in a collection": Fault(
        "ttl", f"{NEW}<a:s> <a:p> ( <a:q>\n@message .\n) .", 0, (3, 1), [STATEMENT]
    ),
    "in an annotation": Fault(
        "ttl", f"{NEW}<a:s> <a:p> <a:o> {{| <a:q>\nMESSAGE |}} .", 0, (3, 1), [STATEMENT]
    ),
    "comments in a statement": Fault(
        "ttl", "#@message\n<a:s> <a:p> #@message\n <a:o> .", 0, (2, 13), ["# @message", STATEMENT]
    ),
    "comments in a graph block": Fault(
        "trig", f"<a:g> {{ {A}\n # @message\n}}", 0, (2, 2), ["# @message", STATEMENT]
    ),
    "an announcement in a statement": Fault(
        "ttl", f"<a:s> <a:p>\n{NEW} .", 0, (2, 1), ["VERSION", STATEMENT]
    ),
    "the end in a statement": Fault("ttl", f"{NEW}{A}MESSAGE\n<a:s> <a:p> é ,", 1, (3, 13), ["é"]),
    "the end before a dot": Fault(
        "ttl", f"{NEW}{A}MESSAGE\n<a:s> <a:p> 'é'", 1, (3, 16), ["the log ends", STATEMENT]
    ),
    "the end in a graph block": Fault(
        "trig", f"{A} # @message\n<a:g> {{ {A}", 1, (2, 28), ["the log ends", STATEMENT]
    ),
    "the end in a string": Fault(
        "ttl", f"{A} # @message\n<a:s> <a:p> '''\n# @message\n", 1, (2, 13), ["does not end"]
    ),
    "the end in an IRI": Fault("ttl", f"{NEW}MESSAGE\n<a:s> <a:", 1, (3, 7), ["does not end"]),
    "an error of Turtle": Fault(
        "ttl", f"{NEW}{A}MESSAGE {B}\r\nMESSAGE {A}\r\r x", 2, (5, 2), ["x is not"]
    ),
    "an error of Turtle on the line of a delimiter": Fault(
        "ttl", f"{NEW}{A}MESSAGE é{A}MESSAGE", 1, (2, 28), ["é"]
    ),
    "an error of Turtle ahead of a misplaced delimiter": Fault(
        "ttl", f"{A} <a:s> x .\nMESSAGE\n", 0, (1, 27), ["x is not"]
    ),
    "an unknown prefix": Fault(
        "ttl", f"{NEW}{A}MESSAGE\n:a :a :a .", 1, (3, 1), ["prefix : has not been declared"]
    ),
    "a relative IRI": Fault("ttl", f"{NEW}{A}MESSAGE\n <a> <a:p> 1 .", 1, (3, 2), ["absolute IRI"]),
    "a graph in Turtle": Fault("ttl", "<a:g> { <a:s> <a:p> <a:o> }", 0, (1, 7), ["{"]),
    "a string over two lines": Fault(
        "ttl", f"{NEW}<a:s> <a:p> 'x\ny' . MESSAGE", 0, (2, 15), ["Line jumps"]
    ),
    "a delimiter on the second line of a string": Fault(
        "ttl", f"{NEW}<a:s> <a:p> 'x\nMESSAGE ' .", 0, (2, 13), ["does not end"]
    ),
    "an escape on the second line of a token": Fault(
        "ttl", f"{NEW}MESSAGE\n <a:s> <a:p> <\né \\e> . MESSAGE", 1, (4, 3), ["escape"]
    ),
    "two bytes of three": Fault(
        "ttl", f"{NEW}{A}MESSAGE\n'é".encode() + b"\xe2\x82'", 1, (3, 3), ["UTF-8"]
    ),
    "no UTF-8 in a comment": Fault(
        "ttl", f"{NEW}{A}MESSAGE\n# ".encode() + b"\xff\n", 1, (3, 3), ["UTF-8"]
    ),
    "no UTF-8 in a delimiter": Fault(
        "ttl", f"{A}\n# @message ".encode() + b"\xff\n", 1, (2, 12), ["UTF-8"]
    ),
    "a byte order mark too late": Fault("ttl", f" \ufeff{A}", 0, (1, 2), [r"\ufeff"]),
    "UTF-16": Fault("ttl", A.encode("utf-16"), 0, (1, 1), ["UTF-8"]),
    "a triple term in basic": Fault(
        "ttl",
        f"VERSION '1.2-basic-messages' {A}MESSAGE <a:s> <a:p> <<( {A[:-1]} )>> .",
        1,
        (1, 56),
        ["triple terms"],
    ),
    "an annotation in basic": Fault(
        "ttl", f"VERSION '1.2-basic-messages' {A[:-1]} ~ <a:r> .", 0, (1, 1), ["triple terms"]
    ),
    "a reifier in 1.1": Fault(
        "ttl", "VERSION '1.1-messages' << <a:s> <a:p> <a:o> >> .", 0, (1, 1), ["triple terms"]
    ),
    "a direction in 1.1": Fault(
        "ttl", "VERSION '1.1-messages' <a:s> <a:p> 'x'@ar--rtl .", 0, (1, 1), ["base directions"]
    ),
    "a direction in rdfm of 1.1": Fault(
        "text/turtle; messages=rdfm; version=1.1",
        "<a:s> <a:p> 'x'@ar--rtl .",
        0,
        (1, 1),
        ["base directions"],
    ),
    "nested too deeply": Fault(
        "ttl",
        f"{NEW}{A}MESSAGE\n<a:s> <a:p> " + "<<( <a:s> <a:p> " * 2_000,
        1,
        (3, 1613),
        ["100 triple terms"],
    ),
}


@chunked
@pytest.mark.parametrize("case", FAULTS)
def test_errors_stand_where_they_are(case: str, chunks: Chunks) -> None:
    fault = FAULTS[case]
    reading = decode(fault.log, fault.media_type, chunks)
    assert isinstance(reading.error, LogError)
    assert (len(reading.messages), reading.error.number) == (fault.before, fault.before + 1)
    assert reading.error.position == fault.position
    assert all(word in str(reading.error) for word in fault.words), reading.error
    assert "urn:uuid" not in str(reading.error)


@chunked
def test_messages_that_are_too_long(chunks: Chunks) -> None:
    log = f"{NEW}{A}MESSAGE{B}{B}{B}MESSAGE"
    longest = len(B + B + B + "MESSAGE")
    assert decode(log, "ttl", chunks, message_bytes=longest).error is None
    reading = decode(log, "ttl", chunks, message_bytes=longest - 1)
    assert isinstance(reading.error, LimitExceeded)
    assert len(reading.messages) == 1
    assert "message 2 is longer than 63 bytes" in str(reading.error)


@chunked
def test_what_the_log_says_of_itself(chunks: Chunks) -> None:
    decoder = decoder_for(TURTLE, options=DecoderOptions(base="http://e/"))
    log = f"PREFIX : <a:> {NEW} PREFIX b: <#> MESSAGE PREFIX : <c:>".encode()
    assert (decoder.syntax, decoder.prefixes) == (None, {})
    found = [message for chunk in chunks(log) for message in decoder.feed(chunk)]
    assert decoder.syntax == find_syntax("1.2-messages")
    assert {**decoder.prefixes, "": ""} == {"": "", "b": "http://e/#"}
    assert found == [Message()]
    assert list(decoder.close()) == []
    assert decoder.prefixes == {"": "c:", "b": "http://e/#"}


def test_anonymous_nodes_of_a_log_without_scopes() -> None:
    reading = decode("[] <a:p> _:b . # @message\n [] <a:p> (_:b) .", "ttl")
    first, second = reading.messages
    assert {quad.object for quad in first} == {"_:b"}
    assert not {quad.subject for quad in first} & {quad.subject for quad in second}
    (b,) = messages("_:a <a:p> _:b .")
    assert first.isomorphic(b)


def test_a_message_comes_with_its_delimiter() -> None:
    decoder = decoder_for(TURTLE, find_syntax("1.2-messages"))
    assert list(decoder.feed(A.encode())) == []
    assert list(decoder.feed(b"\nMESSAGE")) == []  # it may go on
    assert list(decoder.feed(b"\n")) == messages(A)
    assert list(decoder.feed(f"{B} @message .".encode())) == messages(B)


@pytest.mark.slow
def test_a_literal_longer_than_the_parser_takes() -> None:
    reading = decode(f"{NEW}{A}MESSAGE <a:s> <a:p> '{'x' * (1 << 24)}' . MESSAGE {A}", "ttl")
    assert isinstance(reading.error, LimitExceeded)
    assert "message 2: a term is too long" in str(reading.error)
    assert reading.messages == messages(A)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [1 << 16, 7])
def test_many_empty_messages_and_many_prefixes(chunk: int) -> None:
    """A message costs what it holds, not what came before."""
    prefixes = "".join(f"PREFIX p{number}: <a:{number}>\n" for number in range(2000))
    log = f"{NEW}{prefixes}{'MESSAGE ' * 20_000}{'p7:a p8:b p9:c . MESSAGE ' * 100}"
    reading = decode(log, "trig", lambda data: cut(data, range(0, len(data), chunk)))
    assert reading.messages == [Message()] * 20_000 + messages("<a:7a> <a:8b> <a:9c> .") * 100

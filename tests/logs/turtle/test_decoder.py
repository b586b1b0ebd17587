"""Turtle and TriG logs, read: where messages end, what they hold, and where errors stand; whole and byte by byte."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyoxigraph as ox
import pytest
import rdflib

from construct_messages.errors import LimitExceeded, LogError
from construct_messages.formats import RDFM, TRIG, TURTLE, Format, find_format, find_syntax
from construct_messages.logs import decoder_for
from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.message import Message
from tests.support.engines.servers import NODE
from tests.support.logs.kinds import Kind, Reading, cut, isomorphic, read, single_bytes
from tests.support.places import absent, shared_path

Chunks = Callable[[bytes], list[bytes]]
CHUNKS: dict[str, Chunks] = {
    "whole": lambda log: [log],
    "byte by byte": single_bytes,
    "in threes": lambda log: cut(log, range(0, len(log), 3)),
}
chunked = pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)

FORMATS = {"ttl": TURTLE, "trig": TRIG}


def decode(log: str | bytes, media_type: str, chunks: Chunks = CHUNKS["whole"], **options: object) -> Reading:
    """Reads a log as its media type, or the extension of its file, says."""
    format, syntax = find_format(media_type)
    data = log.encode() if isinstance(log, str) else log
    return read(chunks(data), Kind(format, syntax or RDFM), announced=syntax is not None, **options)


def messages(*documents: str) -> list[Message]:
    """Of N-Quads, which here need no line each."""
    lines = [re.sub(r"(?<= \.) ?(?=[<_])", "\n", document) for document in documents]
    return [to_message(ox.parse(text, format=ox.RdfFormat.N_QUADS)) for text in lines]


NEW = 'VERSION "1.2-messages"\n'
RDFM_TTL = "text/turtle; messages=rdfm"
A, B = "<a:a> <a:a> <a:a> .", "<a:b> <a:b> <a:b> ."

READ = {
    # --- which syntax, and how many messages ---
    "nothing": ("ttl", "", []),
    "nothing but a comment": ("ttl", "# nothing", []),
    "nothing but prefixes": ("ttl", "PREFIX : <a:> @base <b:> .", []),
    "nothing but an empty graph": ("trig", "<a:g> {} {}", []),
    "a document": ("ttl", f"{A}{B}", [A + B]),
    "a document of labels": ("ttl", "_:x <a:p> _:y .", ["_:x <a:p> _:y ."]),
    "announced, no message": ("ttl", NEW, []),
    "announced, one without a delimiter": ("ttl", NEW + A, [A]),
    "announced, delimiters only": ("ttl", f"{NEW}MESSAGE\nMESSAGE\n", ["", ""]),
    "announced, the last delimiter at the end of the log": ("ttl", f"{NEW}{A}MESSAGE", [A]),
    "announced, an empty graph behind the last delimiter": ("trig", f"{NEW}{A}MESSAGE <a:g> {{}}", [A]),
    "announced, an empty graph between delimiters": ("trig", f"{NEW}{A}MESSAGE <a:g> {{}} MESSAGE", [A, ""]),
    "announced in any case": ("ttl", f'vErSiOn "1.2-messages" {A} mEsSaGe {B}', [A, B]),
    "announced as a directive": ("ttl", f"@version '1.2-messages'.{A}@message.{B}@message#\n\r\t .", [A, B]),
    "announced behind comments and prefixes": ("ttl", f"# log\n@prefix : <a:> . {NEW} :a :a :a . MESSAGE {B}", [A, B]),
    "announced between comments": ("ttl", f"VERSION # \"no\" 'no'\n#\n '1.2-messages' {A}@message #.\n. {B}", [A, B]),
    "announced again": ("ttl", f"{NEW}{A}MESSAGE\n{NEW}{B}", [A, B]),
    "announced again between statements": ("ttl", f"{NEW}{A}\n{NEW}{B} VERSION '1.2'", [A + B]),
    "announced by the media type": ("text/turtle; version=1.2-messages", f"{A} MESSAGE {B}", [A, B]),
    "announced by both": ("text/turtle; version=1.2-messages", f"{A}{NEW} MESSAGE {B}", [A, B]),
    "a version announces nothing": ("ttl", f'VERSION "1.2" VERSION "1.1" @version "1.2-basic" . {A}', [A]),
    "a version in a long string is none": ("ttl", f"{A} # VERSION '''1.2-messages'''", [A]),
    "comments of an announced log": ("ttl", f"{NEW}# @message\n{A} # @message\n{B}", [A + B]),
    "comments": ("ttl", f"{A} # @message one\n{B}\n#\t@messages two\n\n", [A, B, ""]),
    "comments, the first ahead of all": ("ttl", f"#@message\n{A}\n# @message", [A, ""]),
    "comments, the first behind prefixes": ("ttl", f"PREFIX : <a:> # @message\n:a :a :a . # @message\n{B}", [A, B]),
    "comments behind a space of another alphabet": ("ttl", f"#\u00a0@message\n{A}#\u2003@message\n{B}", [A, B]),
    "comments that are none": ("ttl", f"# message\n# @mess\n# @ message\n#@@message\n{A}# a @message\n{B}", [A + B]),
    "comments by media type": (RDFM_TTL, f"# @message\n# @message\n{A}", ["", A]),
    "comments by media type, no delimiter": (RDFM_TTL, A, [A]),
    "comments by media type, nothing": (RDFM_TTL, "", []),
    "comments in a graph's neighbourhood": ("trig", "<a:g> {} # @message\n{<a:a> <a:a> <a:a>}#@message", [A, ""]),
    "line ends": ("ttl", f"{NEW}{A}\rMESSAGE\r\n{B}\r\r# MESSAGE\rMESSAGE\r", [A, B]),
    "no spaces": ("ttl", f"VERSION'1.2-messages'{A}MESSAGE{B}MESSAGE#", [A, B]),
    "a byte order mark": ("ttl", f"\ufeff# @message\n{A}", [A]),
    "a byte order mark alone": ("ttl", "\ufeff", []),
    # --- what is no delimiter ---
    "in strings": (
        "ttl",
        f'{NEW}<a:s> <a:p> "MESSAGE" , \'MESSAGE\', \'\'\' MESSAGE\n MESSAGE \'\'\', """"\nMESSAGE\n""MESSAGE\\"""" .',
        [
            '<a:s> <a:p> "MESSAGE" . <a:s> <a:p> " MESSAGE\\n MESSAGE " .\n'
            '<a:s> <a:p> "\\"\\nMESSAGE\\n\\"\\"MESSAGE\\"" .'
        ],
    ),
    "in strings, comments": (
        "ttl",
        '<a:s> <a:p> "# @message" , """\n# @message\n""", "", \'\', "\'" , "\\"#@message" .',
        [
            '<a:s> <a:p> "# @message" . <a:s> <a:p> "\\n# @message\\n" . <a:s> <a:p> "" . <a:s> <a:p> "\'" .\n'
            '<a:s> <a:p> "\\"#@message" .'
        ],
    ),
    "in IRIs": ("ttl", f"{NEW}<a:MESSAGE> <a:#@message> <a:'MESSAGE> .", ["<a:MESSAGE> <a:#@message> <a:'MESSAGE> ."]),
    "in names": (
        "ttl",
        f"{NEW}PREFIX MESSAGE: <a:> PREFIX MESSAGE.x: <b:> PREFIX x-MESSAGE: <c:>\n"
        "MESSAGE:x MESSAGE.x:MESSAGE x-MESSAGE:y.MESSAGE, MESSAGE:, x-MESSAGE:MESSAGE-, _:MESSAGE.",
        [
            "<a:x> <b:MESSAGE> <c:y.MESSAGE> . <a:x> <b:MESSAGE> <a:> . <a:x> <b:MESSAGE> <c:MESSAGE-> .\n"
            "<a:x> <b:MESSAGE> _:x_m1b0 ."
        ],
    ),
    "in names with escapes": (
        "ttl",
        f"{NEW}PREFIX : <a:> :\\#\\'MESSAGE :\\.MESSAGE :a\\.#MESSAGE\n.",
        ["<a:#'MESSAGE> <a:.MESSAGE> <a:a.> ."],
    ),
    "in language tags": (
        "ttl",
        f'{NEW}<a:s> <a:p> "x"@message, "x" @message, "x"# @message\n @message-gb, """"""@message .',
        [
            '<a:s> <a:p> "x"@message . <a:s> <a:p> "x"@message-gb . <a:s> <a:p> ""@message .',
        ],
    ),
    "behind a comment that ends as a string does": ("ttl", f'{NEW}{A}# "x"\n@message . {B}', [A, B]),
    "behind a number, a keyword, a tag": (
        "ttl",
        f'{NEW}<a:s> <a:p> true.MESSAGE <a:s> <a:p> 1.MESSAGE <a:s> <a:p> "x"@en.MESSAGE <a:s> <a:p> 1.5.MESSAGE',
        [
            '<a:s> <a:p> "true"^^<http://www.w3.org/2001/XMLSchema#boolean> .',
            '<a:s> <a:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .',
            '<a:s> <a:p> "x"@en .',
            '<a:s> <a:p> "1.5"^^<http://www.w3.org/2001/XMLSchema#decimal> .',
        ],
    ),
    "behind every bracket": (
        "trig",
        f"{NEW}<a:g>{{<a:s> <a:p> <<( <a:s> <a:p> <<(<a:s> <a:p> 'x')>> )>>}}MESSAGE "
        "GRAPH<a:g>{<a:s><a:p><a:o>.}MESSAGE"
        "<< <a:s> <a:p> <a:o> ~ <a:r> >> <a:p> <a:o>.MESSAGE",
        [
            '<a:s> <a:p> <<( <a:s> <a:p> <<( <a:s> <a:p> "x" )>> )>> <a:g> .',
            "<a:s> <a:p> <a:o> <a:g> .",
            "<a:r> <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> <<( <a:s> <a:p> <a:o> )>> . "
            "<a:r> <a:p> <a:o> .",
        ],
    ),
    # --- what messages hold ---
    "labels are their message's": (
        "trig",
        f"{NEW}_:x <a:p> [ <a:q> _:x ] . MESSAGE _:x {{ _:y <a:p> _:x, <<( _:y <a:p> '_:x' )>> }}",
        [
            "_:x_m1b0 <a:q> _:x_m1b1 . _:x_m1b1 <a:p> _:x_m1b0 .",
            '_:x_m2b0 <a:p> _:x_m2b1 _:x_m2b1 . _:x_m2b0 <a:p> <<( _:x_m2b0 <a:p> "_:x" )>> _:x_m2b1 .',
        ],
    ),
    "labels are the log's": (
        "ttl",
        "_:x <a:p> _:y . # @message\n _:x <a:p> 'z' .",
        ["_:x <a:p> _:y .", '_:x <a:p> "z" .'],
    ),
    "prefixes and base": (
        "ttl",
        f"{NEW}@base <http://e/a/b> . PREFIX : <x#> :s :p <c> . MESSAGE BASE <../d/> :s :p <c> . MESSAGE\n"
        "@prefix : <x#> . :s :p <c> .",
        [
            "<http://e/a/x#s> <http://e/a/x#p> <http://e/a/c> .",
            "<http://e/a/x#s> <http://e/a/x#p> <http://e/d/c> .",
            "<http://e/d/x#s> <http://e/d/x#p> <http://e/d/c> .",
        ],
    ),
    "base ahead of the announcement": (
        "ttl",
        f"BASE <http://e/a/> BASE <b/> {NEW} <c> <c> <c> .",
        ["<http://e/a/b/c> " * 3 + "."],
    ),
    "directions": ("ttl", 'VERSION "1.2-basic-messages" <a:s> <a:p> "x"@ar--rtl .', ['<a:s> <a:p> "x"@ar--rtl .']),
    "literals beside graphs": (
        "trig",
        "<a:g> { <a:s> <a:p> '\" ', ' x'@en-gb, ' 1'^^<a:d>, _:b, <a:o>, <<( <a:s> <a:p> ' )>> ' )>> } "
        "_:g { <a:s> <a:p> 'x' }",
        [
            '<a:s> <a:p> "\\" " <a:g> . <a:s> <a:p> " x"@en-gb <a:g> . <a:s> <a:p> " 1"^^<a:d> <a:g> .\n'
            "<a:s> <a:p> _:b <a:g> .\n"
            '<a:s> <a:p> <a:o> <a:g> . <a:s> <a:p> <<( <a:s> <a:p> " )>> " )>> <a:g> . <a:s> <a:p> "x" _:g .'
        ],
    ),
    "twice the same": ("ttl", f"{NEW}{A}{A}MESSAGE {A}", [A, A]),
}


@chunked
@pytest.mark.parametrize("case", READ)
def test_reads(case: str, chunks: Chunks) -> None:
    media_type, log, expected = READ[case]
    reading = decode(log, media_type, chunks)
    assert reading.error is None, reading
    assert [list(message) for message in reading.messages] == [list(message) for message in messages(*expected)]


class Fault(NamedTuple):
    """The messages before the error, its position if it has one, and words that it says."""

    media_type: str
    log: str | bytes
    before: int
    position: tuple[int, int] | None
    words: list[str]


STATEMENT = "within a statement or an open graph block"
FAULTS = {
    "MESSAGE without an announcement": Fault("ttl", f"{A}\nMESSAGE\n", 0, (2, 1), ["announces no messages", "VERSION"]),
    "@message without an announcement": Fault("ttl", f"{A}\n @message .\n", 0, (2, 2), ["announces no messages"]),
    "MESSAGE among comments": Fault("ttl", f"# @message\n{A}\nMESSAGE\n", 0, (3, 1), ["messages=rdfm", "# @message"]),
    "MESSAGE under rdfm": Fault(RDFM_TTL, f"{A}\nMESSAGE\n", 0, (2, 1), ["messages=rdfm"]),
    "announced behind statements": Fault("ttl", f"{A}\n{NEW}", 0, (2, 1), ["behind statements", "beginning"]),
    "announced behind a delimiter": Fault("ttl", f"# @message\n{A}# @message\n{NEW}", 1, (3, 1), ["in a log of rdfm"]),
    "announced under rdfm": Fault(RDFM_TTL, NEW, 0, (1, 1), ["1.2-messages", "in a log of rdfm"]),
    "announced twice, differently": Fault(
        "ttl", f"{NEW}MESSAGE\nVERSION '1.1-messages'", 1, (3, 1), ["1.1-messages", "in a log of 1.2-messages"]
    ),
    "announced otherwise than by media type": Fault(
        "text/turtle; version=1.1-messages", NEW, 0, (1, 1), ["1.2-messages", "in a log of 1.1-messages"]
    ),
    "an unknown announcement": Fault("ttl", 'VERSION "9-messages"', 0, (1, 1), ["9-messages", "1.2-messages"]),
    "@message without a dot": Fault("ttl", f"{NEW}{A}\n@message <a:x>", 0, (3, 1), ["without a dot", "@message ."]),
    "@message at the end": Fault("ttl", f"{NEW}{A}\n@message # .", 0, (3, 1), ["without a dot"]),
    "MESSAGE with a dot": Fault("ttl", f"{NEW}{A}\nMESSAGE .", 1, (3, 9), [". is not a valid subject"]),
    "in an open graph block": Fault(
        "trig", f"{NEW}MESSAGE <a:g> {{ {A}\n MESSAGE\n{B} }}", 1, (3, 2), ["MESSAGE", STATEMENT]
    ),
    "in a graph block without its last dot": Fault(
        "trig", f"{NEW}{{<a:s> <a:p> <a:o> MESSAGE }}", 0, (2, 20), [STATEMENT]
    ),
    "behind the name of a graph": Fault("trig", f"{NEW}<a:g>\nMESSAGE {{}}", 0, (3, 1), [STATEMENT]),
    "behind GRAPH": Fault("trig", f"{NEW}GRAPH MESSAGE {{}}", 0, (2, 7), [STATEMENT]),
    "behind PREFIX": Fault("ttl", f"{NEW}PREFIX : MESSAGE", 0, (2, 10), [STATEMENT]),
    "behind @base and its IRI": Fault("ttl", f"{NEW}@base <a:> MESSAGE", 0, (2, 12), [STATEMENT]),
    "behind a type": Fault("ttl", f"{NEW}<a:s> <a:p> 'x'^^ MESSAGE", 0, (2, 19), [STATEMENT]),
    "in brackets": Fault("ttl", f"{NEW}<a:s> <a:p> [ <a:q> 1 ;\nMESSAGE ] .", 0, (3, 1), [STATEMENT]),
    "in a collection": Fault("ttl", f"{NEW}<a:s> <a:p> ( <a:q>\n@message .\n) .", 0, (3, 1), [STATEMENT]),
    "in an annotation": Fault("ttl", f"{NEW}<a:s> <a:p> <a:o> {{| <a:q>\nMESSAGE |}} .", 0, (3, 1), [STATEMENT]),
    "comments in a statement": Fault(
        "ttl", "#@message\n<a:s> <a:p> #@message\n <a:o> .", 0, (2, 13), ["# @message", STATEMENT]
    ),
    "comments in a graph block": Fault("trig", f"<a:g> {{ {A}\n # @message\n}}", 0, (2, 2), ["# @message", STATEMENT]),
    "an announcement in a statement": Fault("ttl", f"<a:s> <a:p>\n{NEW} .", 0, (2, 1), ["VERSION", STATEMENT]),
    "the end in a statement": Fault("ttl", f"{NEW}{A}MESSAGE\n<a:s> <a:p> é ,", 1, (3, 13), ["é"]),
    "the end before a dot": Fault("ttl", f"{NEW}{A}MESSAGE\n<a:s> <a:p> 'é'", 1, (3, 16), ["the log ends", STATEMENT]),
    "the end in a graph block": Fault("trig", f"{A} # @message\n<a:g> {{ {A}", 1, (2, 28), ["the log ends", STATEMENT]),
    "the end in a string": Fault("ttl", f"{A} # @message\n<a:s> <a:p> '''\n# @message\n", 1, (2, 13), ["does not end"]),
    "the end in an IRI": Fault("ttl", f"{NEW}MESSAGE\n<a:s> <a:", 1, (3, 7), ["does not end"]),
    "an error of Turtle": Fault("ttl", f"{NEW}{A}MESSAGE {B}\r\nMESSAGE {A}\r\r x", 2, (5, 2), ["x is not"]),
    "an error of Turtle on the line of a delimiter": Fault("ttl", f"{NEW}{A}MESSAGE é{A}MESSAGE", 1, (2, 28), ["é"]),
    "an error of Turtle ahead of a misplaced delimiter": Fault(
        "ttl", f"{A} <a:s> x .\nMESSAGE\n", 0, (1, 27), ["x is not"]
    ),
    "an unknown prefix": Fault("ttl", f"{NEW}{A}MESSAGE\n:a :a :a .", 1, (3, 1), ["prefix : has not been declared"]),
    "a relative IRI": Fault("ttl", f"{NEW}{A}MESSAGE\n <a> <a:p> 1 .", 1, (3, 2), ["absolute IRI"]),
    "a graph in Turtle": Fault("ttl", "<a:g> { <a:s> <a:p> <a:o> }", 0, (1, 7), ["{"]),
    "a string over two lines": Fault("ttl", f"{NEW}<a:s> <a:p> 'x\ny' . MESSAGE", 0, (2, 15), ["Line jumps"]),
    "a delimiter on the second line of a string": Fault(
        "ttl", f"{NEW}<a:s> <a:p> 'x\nMESSAGE ' .", 0, (2, 13), ["does not end"]
    ),
    "an escape on the second line of a token": Fault(
        "ttl", f"{NEW}MESSAGE\n <a:s> <a:p> <\né \\e> . MESSAGE", 1, (4, 3), ["escape"]
    ),
    "two bytes of three": Fault("ttl", f"{NEW}{A}MESSAGE\n'é".encode() + b"\xe2\x82'", 1, (3, 3), ["UTF-8"]),
    "no UTF-8 in a comment": Fault("ttl", f"{NEW}{A}MESSAGE\n# ".encode() + b"\xff\n", 1, (3, 3), ["UTF-8"]),
    "no UTF-8 in a delimiter": Fault("ttl", f"{A}\n# @message ".encode() + b"\xff\n", 1, (2, 12), ["UTF-8"]),
    "a byte order mark too late": Fault("ttl", f" \ufeff{A}", 0, (1, 2), ["\ufeff"]),
    "UTF-16": Fault("ttl", A.encode("utf-16"), 0, (1, 1), ["UTF-8"]),
    "a triple term in basic": Fault(
        "ttl", f"VERSION '1.2-basic-messages' {A}MESSAGE <a:s> <a:p> <<( {A[:-1]} )>> .", 1, (1, 56), ["triple terms"]
    ),
    "an annotation in basic": Fault(
        "ttl", f"VERSION '1.2-basic-messages' {A[:-1]} ~ <a:r> .", 0, (1, 1), ["triple terms"]
    ),
    "a reifier in 1.1": Fault("ttl", "VERSION '1.1-messages' << <a:s> <a:p> <a:o> >> .", 0, (1, 1), ["triple terms"]),
    "a direction in 1.1": Fault(
        "ttl", "VERSION '1.1-messages' <a:s> <a:p> 'x'@ar--rtl .", 0, (1, 1), ["base directions"]
    ),
    "a direction in rdfm of 1.1": Fault(
        "text/turtle; messages=rdfm; version=1.1", "<a:s> <a:p> 'x'@ar--rtl .", 0, (1, 1), ["base directions"]
    ),
    "nested too deeply": Fault(
        "ttl", f"{NEW}{A}MESSAGE\n<a:s> <a:p> " + "<<( <a:s> <a:p> " * 20_000, 1, (3, 1613), ["100 triple terms"]
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
    decoder = decoder_for(TURTLE, base="http://e/")
    log = f"PREFIX : <a:> {NEW} PREFIX b: <#> MESSAGE PREFIX : <c:>".encode()
    assert (decoder.syntax, decoder.prefixes) == (None, {})
    found = [message for chunk in chunks(log) for message in decoder.feed(chunk)]
    assert decoder.syntax == find_syntax("1.2-messages")
    assert decoder.prefixes == {"": "a:", "b": "http://e/#"}
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


def test_a_literal_longer_than_the_parser_takes() -> None:
    reading = decode(f"{NEW}{A}MESSAGE <a:s> <a:p> '{'x' * (1 << 24)}' . MESSAGE {A}", "ttl")
    assert isinstance(reading.error, LimitExceeded)
    assert "message 2: a term is too long" in str(reading.error)
    assert reading.messages == messages(A)


@pytest.mark.parametrize("chunk", [1 << 16, 7])
def test_many_empty_messages_and_many_prefixes(chunk: int) -> None:
    """A message costs what it holds, not what came before."""
    prefixes = "".join(f"PREFIX p{number}: <a:{number}>\n" for number in range(2000))
    log = f"{NEW}{prefixes}{'MESSAGE ' * 20_000}{'p7:a p8:b p9:c . MESSAGE ' * 100}"
    reading = decode(log, "trig", lambda data: cut(data, range(0, len(data), chunk)))
    assert reading.messages == [Message()] * 20_000 + messages("<a:7a> <a:8b> <a:9c> .") * 100


# --- another reader, and the suites ----------------------------------------------------------------------------------

COUNT = """
const N3 = require("n3");
let text = "";
process.stdin.on("data", chunk => text += chunk).on("end", async () => {
  const counts = {};
  for (const [name, format, log] of JSON.parse(text)) counts[name] = await new Promise(resolve => {
    const messages = [new Set()];
    const parser = new N3.Parser({format, directives: ["message"], parseUnsupportedVersions: true, baseIRI: "http://e/"});
    parser.parse(log, {
      onDirective: () => messages.push(new Set()),
      onQuad: (error, quad) => {
        if (error) resolve(String(error));
        else if (quad) messages[messages.length - 1].add(N3.termToId(quad));
        else resolve(messages.map(quads => quads.size));
      },
    });
  });
  process.stdout.write(JSON.stringify(counts));
  process.exit(0);
});
// what it throws behind the error that it has told
process.on("uncaughtException", () => {});
"""

# it takes 1.MESSAGE for one token
NOT_N3 = {"behind a number, a keyword, a tag"}


def test_another_reader_finds_the_same_boundaries() -> None:
    """npm's n3, which leaves an empty last message to its caller."""
    node = Path(os.environ.get(NODE, "nowhere"))
    if not (node / "node_modules" / "n3").exists():
        absent(f"npm's n3 is absent: set {NODE} to the folder that holds its node_modules")
    cases = [
        (name, find_format(media_type)[0].media_types[0], log)
        for name, (media_type, log, _) in READ.items()
        if NEW in log and name not in NOT_N3
    ]
    assert len(cases) > 20
    run = subprocess.run(
        ["node", "-e", COUNT], input=json.dumps(cases), cwd=node, capture_output=True, text=True, check=True, timeout=60
    )
    for name, counts in json.loads(run.stdout).items():
        expected = [len(message) for message in messages(*READ[name][2])]
        assert counts in (expected, [*expected, 0]), name


MANIFEST = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
SUITES = "https://w3c.github.io/rdf-tests/rdf/"


class Case(NamedTuple):
    name: str
    kind: str
    document: Path
    result: Path | None


def w3c_cases(format: Format) -> Iterator[Case]:
    suite = f"rdf-{format.name.lower()}"
    root = shared_path("suites/w3c/rdf")
    for folder in (f"rdf11/{suite}", f"rdf12/{suite}/eval", f"rdf12/{suite}/syntax"):
        tests = rdflib.Graph().parse(root / folder / "manifest.ttl")
        for test, action in sorted(tests.subject_objects(MANIFEST.action)):
            name = f"{folder}/{str(action).rpartition('/')[2]}"
            result = tests.value(test, MANIFEST.result)
            kind = str(tests.value(test, rdflib.RDF.type)).rpartition("#")[2]
            yield Case(name, kind, root / name, result and root / folder / str(result).rpartition("/")[2])


@chunked
@pytest.mark.parametrize(("extension", "positive", "negative"), [("ttl", 289, 127), ("trig", 290, 126)])
def test_w3c(extension: str, positive: int, negative: int, chunks: Chunks) -> None:
    """Each positive document is a log of one message, or of none where it is empty; each negative one is an error."""
    counts = {True: 0, False: 0}
    for case in w3c_cases(FORMATS[extension]):
        data, base = case.document.read_bytes(), SUITES + case.name
        reading = decode(data, extension, chunks, base=base)
        is_positive = "Negative" not in case.kind
        counts[is_positive] += 1
        if not is_positive:
            assert isinstance(reading.error, LogError), case.name
            continue
        assert reading.error is None, f"{case.name}: {reading.error}"
        if case.result:
            expected = to_message(ox.parse(path=str(case.result)))
        else:
            parsed = ox.RdfFormat.from_extension(extension)
            expected = to_message(ox.parse(data, format=parsed, base_iri=base))
        assert isomorphic(reading.messages, [expected] if len(expected) else []), case.name
    assert counts == {True: positive, False: negative}

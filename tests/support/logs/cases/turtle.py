"""Turtle and TriG logs as data, and reading them whole and byte by byte."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyoxigraph as ox
import pytest

from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.rdf.formats import RDFM, TRIG, TURTLE
from construct_messages.rdf.formats.lookup import find_format
from construct_messages.rdf.message import Message
from tests.support.logs.kinds import Kind, Reading, cut, read, single_bytes

Chunks = Callable[[bytes], list[bytes]]
CHUNKS: dict[str, Chunks] = {
    "whole": lambda log: [log],
    "byte by byte": single_bytes,
    "in threes": lambda log: cut(log, range(0, len(log), 3)),
}
chunked = pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)

FORMATS = {"ttl": TURTLE, "trig": TRIG}


def decode(
    log: str | bytes, media_type: str, chunks: Chunks = CHUNKS["whole"], **options: object
) -> Reading:
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
    "announced, an empty graph behind the last delimiter": (
        "trig",
        f"{NEW}{A}MESSAGE <a:g> {{}}",
        [A],
    ),
    "announced, an empty graph between delimiters": (
        "trig",
        f"{NEW}{A}MESSAGE <a:g> {{}} MESSAGE",
        [A, ""],
    ),
    "announced in any case": ("ttl", f'vErSiOn "1.2-messages" {A} mEsSaGe {B}', [A, B]),
    "announced as a directive": (
        "ttl",
        f"@version '1.2-messages'.{A}@message.{B}@message#\n\r\t .",
        [A, B],
    ),
    "announced behind comments and prefixes": (
        "ttl",
        f"# log\n@prefix : <a:> . {NEW} :a :a :a . MESSAGE {B}",
        [A, B],
    ),
    "announced between comments": (
        "ttl",
        f"VERSION # \"no\" 'no'\n#\n '1.2-messages' {A}@message #.\n. {B}",
        [A, B],
    ),
    "announced again": ("ttl", f"{NEW}{A}MESSAGE\n{NEW}{B}", [A, B]),
    "announced again between statements": ("ttl", f"{NEW}{A}\n{NEW}{B} VERSION '1.2'", [A + B]),
    "announced by the media type": (
        "text/turtle; version=1.2-messages",
        f"{A} MESSAGE {B}",
        [A, B],
    ),
    "announced by both": ("text/turtle; version=1.2-messages", f"{A}{NEW} MESSAGE {B}", [A, B]),
    "a version announces nothing": (
        "ttl",
        f'VERSION "1.2" VERSION "1.1" @version "1.2-basic" . {A}',
        [A],
    ),
    "a version in a long string is none": ("ttl", f"{A} # VERSION '''1.2-messages'''", [A]),
    "comments of an announced log": ("ttl", f"{NEW}# @message\n{A} # @message\n{B}", [A + B]),
    "comments": ("ttl", f"{A} # @message one\n{B}\n#\t@messages two\n\n", [A, B, ""]),
    "comments, the first ahead of all": ("ttl", f"#@message\n{A}\n# @message", [A, ""]),
    "comments, the first behind prefixes": (
        "ttl",
        f"PREFIX : <a:> # @message\n:a :a :a . # @message\n{B}",
        [A, B],
    ),
    "comments behind a space of another alphabet": (
        "ttl",
        f"#\u00a0@message\n{A}#\u2003@message\n{B}",
        [A, B],
    ),
    "comments that are none": (
        "ttl",
        f"# message\n# @mess\n# @ message\n#@@message\n{A}# a @message\n{B}",
        [A + B],
    ),
    "comments by media type": (RDFM_TTL, f"# @message\n# @message\n{A}", ["", A]),
    "comments by media type, no delimiter": (RDFM_TTL, A, [A]),
    "comments by media type, nothing": (RDFM_TTL, "", []),
    "comments in a graph's neighbourhood": (
        "trig",
        "<a:g> {} # @message\n{<a:a> <a:a> <a:a>}#@message",
        [A, ""],
    ),
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
    "in IRIs": (
        "ttl",
        f"{NEW}<a:MESSAGE> <a:#@message> <a:'MESSAGE> .",
        ["<a:MESSAGE> <a:#@message> <a:'MESSAGE> ."],
    ),
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
    "behind a comment that ends as a string does": (
        "ttl",
        f'{NEW}{A}# "x"\n@message . {B}',
        [A, B],
    ),
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
        f"{NEW}[ <a:q> _:x ] <a:p> _:x . MESSAGE _:x {{ _:x <a:p> _:y, <<( _:y <a:p> '_:x' )>> }}",
        [
            "_:x_m1b0 <a:q> _:x_m1b1 . _:x_m1b0 <a:p> _:x_m1b1 .",
            '_:x_m2b0 <a:p> _:x_m2b1 _:x_m2b0 . _:x_m2b0 <a:p> <<( _:x_m2b1 <a:p> "_:x" )>> _:x_m2b0 .',
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
    "directions": (
        "ttl",
        'VERSION "1.2-basic-messages" <a:s> <a:p> "x"@ar--rtl .',
        ['<a:s> <a:p> "x"@ar--rtl .'],
    ),
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

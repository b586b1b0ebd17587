"""N-Triples and N-Quads logs as data: what is read from them, the errors in them, and the limits."""

from __future__ import annotations

import codecs
from typing import NamedTuple

from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import Term, parse_term


def message(*lines: str) -> Message:
    """A message of statements, each as its terms with a blank between them."""
    return Message(Quad(*map(Term, line.split(" "))) for line in lines)


# --- both ways ------------------------------------------------------------------------------------------------------

A, B = "<urn:a> <urn:p> <urn:b>", "<urn:b> <urn:p> <urn:c>"
EMPTY, ONE, TWO = Message(), message(A), message(A, B)
GRAPH = message(f"{A} <urn:g>", A, f"{A} _:g")
BLANKS = message("_:x <urn:p> _:y", "_:y <urn:p> _:x")
TRIPLE = Message(
    [
        Quad(
            Term("<urn:a>"),
            Term("<urn:p>"),
            parse_term("<<( _:x <urn:p> <<( <urn:a> <urn:p> 'b c' )>> )>>"),
        )
    ]
)
DIRECTION = message('<urn:a> <urn:p> "x"@ar--rtl')
DELIMITERS = message(r'<urn:a> <urn:p> "\nMESSAGE\n#@message\nVERSION\"1.2\"\n"')


# --- reading --------------------------------------------------------------------------------------------------------


class Wrong(NamedTuple):
    """An error: the number of its message, its line and column, a word of its message and one of its hint."""

    number: int
    line: int
    column: int
    word: str
    hint: str = ""


V, V1, VB = 'VERSION "1.2-messages"\n', 'VERSION "1.1-messages"\n', 'VERSION "1.2-basic-messages"\n'
S, T, M, R = f"{A} .\n", f"{B} .\n", "MESSAGE\n", "# @message\n"
ON, TW = message(A), message(B)
TRIPLE_LINE = "<urn:a> <urn:p> <<( <urn:a> <urn:p> <urn:b> )>> .\n"

READ: dict[str, tuple[str | bytes, str | None, list[Message], Wrong | None]] = {
    # what a document is that says nothing
    "nothing": ("", None, [], None),
    "blank lines and a comment": ("\n \t\n# nothing\n", None, [], None),
    "a plain document": (S + T, None, [TWO], None),
    "a plain document without a last line end": (S + T[:-1], None, [TWO], None),
    "a plain document's labels": ("_:x <urn:p> _:y .\n", None, [message("_:x <urn:p> _:y")], None),
    "a statement twice": (S + S, None, [ONE], None),
    "plain versions": (
        'VERSION "1.1"\n' + S + 'VERSION "1.2"\nVERSION "1.2-basic"\n',
        None,
        [ONE],
        None,
    ),
    "a version of the future": ('VERSION "2.0"\n' + S, None, [ONE], None),
    # announcements
    "announced by the log": (V + S + M, None, [ON], None),
    "announced by the media type": (S + M, "1.2-messages", [ON], None),
    "announced by both": (V + S + M, "1.2-messages", [ON], None),
    "announced late, by both": (S + M + V + T + M, "1.2-messages", [ON, TW], None),
    "announced behind comments and a plain version": (
        '#\n\nVERSION "1.2"\n' + V + S + M,
        None,
        [ON],
        None,
    ),
    "two logs in one": ((V + S + M) * 2, None, [ON, ON], None),
    "an announcement within a message": (V + S + V + T + M, None, [TWO], None),
    "an announcement in odd spacing": (
        ' \tVERSION\t "1.2-messages" # yes\n' + S + M,
        None,
        [ON],
        None,
    ),
    "an announcement without a blank": ('VERSION"1.2-messages"\n' + S + M, None, [ON], None),
    "another announcement": (
        *(V + S + M + V1 + S, None, [ON]),
        Wrong(2, 4, 1, 'VERSION "1.1-messages" in a log of 1.2-messages', "logs of their own"),
    ),
    "another than the media type says": (
        V1 + S,
        "1.2-messages",
        [],
        Wrong(1, 1, 1, "1.1-messages", "logs of their"),
    ),
    "announced in an rdfm log": (R + S + V, None, [], Wrong(1, 3, 1, "in a log of rdfm")),
    "announced where the media type says rdfm": (
        V + S,
        "rdfm",
        [],
        Wrong(1, 1, 1, "in a log of rdfm"),
    ),
    "announced after a statement": (
        S + "  " + V,
        None,
        [],
        Wrong(1, 2, 3, "after a statement", "begin the log"),
    ),
    "an unknown announcement": (
        *('VERSION "1.3-messages"\n', None, []),
        Wrong(
            1,
            1,
            1,
            'VERSION "1.3-messages" is not known',
            "1.2-messages, 1.2-basic-messages, 1.1-messages",
        ),
    ),
    "an unquoted version": (
        "VERSION 1.2-messages\n",
        None,
        [],
        Wrong(1, 1, 1, "subject", "in double quotes"),
    ),
    "a version in lower case": (
        'version "1.2-messages"\n',
        None,
        [],
        Wrong(1, 1, 1, "subject", "in upper case"),
    ),
    # MESSAGE
    "no delimiter": (V + S, None, [ON], None),
    "a last message that is not delimited": (V + S + M + T, None, [ON, TW], None),
    "a last line without an end": (V + S + "MESSAGE", None, [ON], None),
    "a comment behind the last delimiter": (V + S + M + "# end\n", None, [ON], None),
    "delimiters in odd spacing": (
        V + " MESSAGE\t\n" + S + "\tMESSAGE # one\n" + T + "MESSAGE#",
        None,
        [EMPTY, ON, TW],
        None,
    ),
    "only delimiters": (V + M * 3, None, [EMPTY] * 3, None),
    "comments of the first draft under a label": (V + R + S + R + T + M, None, [TWO], None),
    "the last announcement has no message": (V, None, [], None),
    "MESSAGE without an announcement": (
        S + M,
        None,
        [],
        Wrong(1, 2, 1, "without an announcement", "VERSION"),
    ),
    "MESSAGE first, without an announcement": (
        f" {M}",
        None,
        [],
        Wrong(1, 1, 2, "without an announcement"),
    ),
    "MESSAGE in an rdfm log": (
        R + S + R + T + M,
        None,
        [ON],
        Wrong(2, 5, 1, "no delimiter of rdfm", "# @message"),
    ),
    "MESSAGE where the media type says rdfm": (
        S + M,
        "rdfm",
        [],
        Wrong(1, 2, 1, "no delimiter of rdfm"),
    ),
    "MESSAGE in lower case": (
        V + S + "message\n",
        None,
        [],
        Wrong(1, 3, 1, "subject", "in upper case"),
    ),
    "MESSAGE with a dot": (
        V + S + M + "MESSAGE .\n",
        None,
        [ON],
        Wrong(2, 4, 1, "subject", "on a line of its own"),
    ),
    "MESSAGE after a statement": (
        V + S[:-1] + M,
        None,
        [],
        Wrong(1, 2, 26, "subject", "on a line of its own"),
    ),
    # comments
    "the first draft's example": (
        *("# the first\n" + S + R[:-1] + " a next message\n" + T + R + R + S, None),
        *([ON, TW, EMPTY, ON], None),
    ),
    "comments in odd spacing": (
        "#@message\n" + S + " \t#\t @messages, too\n" + T,
        None,
        [ON, TW],
        None,
    ),
    "comments that are no delimiters": (
        S + "# a @message\n## @message\n# @Message\n# message\n" + T,
        None,
        [TWO],
        None,
    ),
    "a comment after a statement": (S[:-1] + "# @message\n" + T, None, [ON, TW], None),
    "a comment behind a hostile statement": (
        *('<urn:a#@message> <urn:p> "\\"# @message\\\\" . # @message <"\n' + T, None),
        *(
            [
                Message(
                    [Quad(Term("<urn:a#@message>"), Term("<urn:p>"), Term('"\\"# @message\\\\"'))]
                ),
                TW,
            ],
            None,
        ),
    ),
    "a comment behind a triple term": (
        *('<urn:a> <urn:p> <<( <urn:a> <urn:p> "# @message" )>> .#@message\n' + T, None),
        *(
            [
                Message(
                    [
                        Quad(
                            Term("<urn:a>"),
                            Term("<urn:p>"),
                            parse_term('<<( <urn:a> <urn:p> "# @message" )>>'),
                        )
                    ]
                ),
                TW,
            ],
            None,
        ),
    ),
    "a comment behind a version": ('VERSION "1.2"# @message\n' + S + R, None, [ON, EMPTY], None),
    "a delimiter first, and one last": (R + S + R, None, [ON, EMPTY], None),
    "delimiters only": (R * 3, None, [EMPTY] * 3, None),
    "nothing under rdfm": ("", "rdfm", [], None),
    "a statement before the first delimiter": (S + R + T, "rdfm", [ON, TW], None),
    # lines
    "CRLF": ((V + S + M + T).replace("\n", "\r\n"), None, [ON, TW], None),
    "CR": ((V + S + M + T).replace("\n", "\r"), None, [ON, TW], None),
    "mixed line ends": (
        V[:-1] + "\r" + S[:-1] + "\r\n\r\r\n\n" + M[:-1] + "\r" + T,
        None,
        [ON, TW],
        None,
    ),
    "an error behind mixed line ends": (
        V[:-1] + "\r\n\r\n\r" + S + "x",
        None,
        [],
        Wrong(1, 5, 1, "subject"),
    ),
    "a byte order mark": (codecs.BOM_UTF8 + (V + S + M).encode(), None, [ON], None),
    "a byte order mark alone": (codecs.BOM_UTF8, None, [], None),
    "a byte order mark within": (V + S + M + "\ufeff", None, [ON], Wrong(2, 4, 1, "subject")),
    "two byte order marks": (codecs.BOM_UTF8 * 2, None, [], Wrong(1, 1, 1, "subject")),
    "a piece of a byte order mark": (
        codecs.BOM_UTF8[:2],
        None,
        [],
        Wrong(1, 1, 1, "0xEF is not UTF-8", "UTF-8"),
    ),
    "other separators of lines": (
        V + '<urn:a> <urn:p> "\u2028\u0085" .\n',
        None,
        [message('<urn:a> <urn:p> "\u2028\u0085"')],
        None,
    ),
    "all kinds of characters": (
        V + '<urn:é> <urn:p> "€\U0001f600" .\n',
        None,
        [message('<urn:é> <urn:p> "€\U0001f600"')],
        None,
    ),
    "Latin-1": (
        (V + S + M + '<urn:a> <urn:p> "é').encode() + b'\xe9" .\n',
        None,
        [ON],
        Wrong(2, 4, 19, "0xE9 is not UTF-8"),
    ),
    "Latin-1 in a comment": (b"#\n# \xe9\n", None, [], Wrong(1, 2, 3, "0xE9 is not UTF-8")),
    "a surrogate": (
        b'<urn:a> <urn:p> "\xed\xa0\x80" .\n',
        None,
        [],
        Wrong(1, 1, 18, "0xED is not UTF-8"),
    ),
    "UTF-8 that breaks off": (
        (S + R).encode() + b"# \xe2\x82",
        None,
        [ON],
        Wrong(2, 3, 3, "0xE2 is not UTF-8"),
    ),
    # statements
    "a statement that breaks off": (
        V + S + M + S + "<urn:a> <urn:p>",
        None,
        [ON],
        Wrong(2, 5, 16, "Unexpected end", "on one line"),
    ),
    "a statement over two lines": (
        V + S + M + "<urn:a> <urn:p>\n<urn:b> .",
        None,
        [ON],
        Wrong(2, 4, 16, "Unexpected end", "on one line"),
    ),
    "two statements on a line": (V + S[:-1] + T, None, [], Wrong(1, 2, 26, "Only a single")),
    "a relative IRI": (
        V + S + M + T + " <a> <urn:p> <urn:b> .\n",
        None,
        [ON],
        Wrong(2, 5, 2, "No scheme"),
    ),
    "an error in the first line": ("<urn:a> x <urn:b> .\n", None, [], Wrong(1, 1, 9, "predicate")),
    "odd statements": (
        *(
            f"\t{A}.\n<urn:a>\t<urn:p>  '.\n".replace("'", '"x"@EN')
            + f'<urn:\\u0061><urn:p>"\\u0078"^^<{"http://www.w3.org/2001/XMLSchema#"}string>.',
            None,
        ),
        *([message(A, '<urn:a> <urn:p> "x"@en', '<urn:a> <urn:p> "x"')], None),
    ),
    # what a version has not
    "a triple term": (
        TRIPLE_LINE,
        "rdfm",
        [Message([Quad(Term("<urn:a>"), Term("<urn:p>"), parse_term(f"<<( {A} )>>"))])],
        None,
    ),
    "a triple term in basic": (
        VB + S + M + TRIPLE_LINE,
        None,
        [ON],
        Wrong(2, 4, 17, "1.2-basic-messages has no triple terms"),
    ),
    "a triple term below 1.2": (
        TRIPLE_LINE,
        "1.1-messages",
        [],
        Wrong(1, 1, 17, "1.1-messages has no triple terms"),
    ),
    "a direction in basic": (VB + '<urn:a> <urn:p> "x"@ar--rtl .\n', None, [DIRECTION], None),
    "a direction below 1.2": (
        V1 + '<urn:a> <urn:p> "x"@ar--rtl .\n',
        None,
        [],
        Wrong(1, 2, 17, "1.1-messages has no base directions"),
    ),
    "what looks like a direction": (
        V1 + '<urn:a> <urn:p> "x--rtl" .\n',
        None,
        [message('<urn:a> <urn:p> "x--rtl"')],
        None,
    ),
}


# --- limits ---------------------------------------------------------------------------------------------------------

LIMITS: dict[str, tuple[str, int, list[Message], tuple[int, int] | None]] = {
    # 26 bytes a statement, 8 a delimiter; the number of messages, and the number and line of the message too large
    "statements and their delimiter": (V + M + S + T + M + S + T + M, 60, [EMPTY, TWO, TWO], None),
    "a byte too much": (V + M + S + T + M + S + T + M, 59, [EMPTY], (2, 5)),
    "a byte too much in the first": (V + S + T + M, 82, [], (1, 4)),
    "a line end is one byte": ("\r\n\n\r" * 100 + S + "\n" * 100, 426, [ON], None),
    "13.15-blank lines count": ("\r\n\n\r" * 100 + S + "\n" * 100, 425, [], (1, 401)),
    "13.15-nothing but blank lines": ("\n" * 10_000, 9_999, [], (1, 10_000)),
    "comments count": ("# comment\n" + S, 35, [], (1, 2)),
    "a line without an end": (S + R + S[:-1], 37, [ON, ON], None),
    "a line without an end, too long": (R + S[:-1], 24, [], (1, 2)),
    "the byte order mark does not count": ("\ufeff" + S, 26, [ON], None),
    "a byte that is not UTF-8 comes later": (S + "\xe9" * 30, 26, [], (1, 2)),
}

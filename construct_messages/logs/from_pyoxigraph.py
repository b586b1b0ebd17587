"""What pyoxigraph's parsers get and give: texts with terms that they cannot read, quads as messages with labels for
blank nodes, and positions of syntax errors. No parsing here.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import inf
from typing import Final, TypeAlias

import pyoxigraph as ox

from construct_messages.errors import LimitExceeded, LogError, Position, TermError
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import RDF, Lenience, Term, from_pyoxigraph, has_blank, map_blanks
from construct_messages.rdf.terms.grammar import ECHAR, HEX, LANGTAG
from construct_messages.rdf.terms.wellformed import (
    AS_STRING,
    NO_CHARACTER,
    NO_LANGUAGE,
    OUT_OF_PLACE,
)

# --- line buffer ----------------------------------------------------------------------------------
# Splits bytes into lines, for formats in which a line is a document; decodes documents and limits their length.
#
# A line ends with LF; a byte order mark before the first one is dropped. The decoder of a syntax interprets the
# lines.


def too_long(number: int, message_bytes: int, position: Position | None = None) -> LimitExceeded:
    """Returns the error for a message that is too long.

    >>> print(too_long(3, 100))
    message 3 is longer than 100 bytes
      hint: allow larger messages
    """
    return LimitExceeded(
        f"message {number} is longer than {message_bytes} bytes",
        position=position,
        hint="allow larger messages",
    )


def decode_utf8(document: bytes | bytearray, number: int, line: int) -> str:
    try:
        return document.decode()
    except UnicodeDecodeError as error:
        *lines, last = document[: error.start].decode().split("\n")
        raise LogError(
            f"the byte 0x{document[error.start]:02X} is not UTF-8",
            number=number,
            position=Position(line + len(lines), len(last) + 1),
            hint="logs are UTF-8: recode it",
        ) from error


class WholeLines:
    """The lines of one log.

    >>> lines = WholeLines(100)
    >>> list(lines.feed(b"a\\nb\\nc")), list(lines.close())
    ([b'a', b'b'], [b'c'])
    """

    def __init__(self, message_bytes: int) -> None:
        self._message_bytes = message_bytes
        self._pending = bytearray()
        # number: the number of its message, from 1; the decoder increments it
        # line: the number of the current or incomplete line, from 1
        self.line = self.number = 1
        # whether all lines are one document, which `close` returns
        self.joined = False

    def join(self, line: bytes) -> None:
        """Takes back the first line, which is the beginning of a document over several lines."""
        self.joined = True
        self._pending += line + b"\n"

    def feed(self, data: bytes) -> Iterator[bytes]:
        start = 0
        while not self.joined and (end := data.find(b"\n", start)) >= 0:
            self._hold(data[start:end])
            yield from self._take()
            start = end + 1
        self._hold(data[start:])

    def close(self) -> Iterator[bytes]:
        """Returns the last line, if it has no end, or the document; a line that is taken back comes again."""
        while self._pending and not (self.line == 1 and self._pending == BOM_UTF8):
            yield from self._take()

    def _hold(self, piece: bytes) -> None:
        if len(self._pending) + len(piece) > self._message_bytes:
            raise too_long(self.number, self._message_bytes)
        self._pending += piece

    def _take(self) -> Iterator[bytes]:
        line = bytes(self._pending)
        self._pending.clear()
        yield line.removeprefix(BOM_UTF8) if self.line == 1 else line
        if not self.joined:
            self.line += 1


# --- from pyoxigraph ------------------------------------------------------------------------------

DEEPEST: Final = 100
"""The maximal nesting of triple terms: parsers and readers of terms use recursion."""

_LEAST: Final = 1 << 20
_TIMES: Final = 1 << 8

Rename: TypeAlias = Callable[[Term], Term]


def most_characters(size: int, message_bytes: int) -> int:
    """Returns the maximal number of characters that a message may have as N-Quads, for its size in the log.

    The limit also depends on the message's size, so that the cost of a log is linear in its length, not quadratic.

    >>> most_characters(100, 1 << 28), most_characters(1 << 16, 1 << 28), most_characters(1 << 20, 1 << 28)
    (1048576, 16777216, 268435456)
    """
    return max(_LEAST, min(message_bytes, _TIMES * size))


def too_much(number: int, characters: int) -> LimitExceeded:
    """Returns the error for a message that has too many characters as N-Quads; see `most_characters`.

    >>> print(too_much(3, 100))
    message 3 has more than 100 characters as N-Quads
      hint: allow larger messages, or split the message
    """
    return LimitExceeded(
        f"message {number} has more than {characters} characters as N-Quads",
        hint="allow larger messages, or split the message",
    )


_UNTAGGED: Final = (f"{RDF}langString", f"{RDF}dirLangString")
_UNTAGGED_END: Final = tuple(f"<{datatype}>" for datatype in _UNTAGGED)
_GROUND: Final = (ox.NamedNode, ox.Literal)


def to_message(
    quads: Iterable[ox.Quad],
    rename: Rename | None = None,
    lenience: Lenience | None = None,
    masked: Masked | None = None,
    *,
    number: int = 1,
    most: float = inf,
) -> Message:
    """Converts parsed quads to a message. `rename`: returns the label of each blank node, such as `labels.in_log`;
    None: labels are kept. `lenience`: accepts and counts terms that are not RDF, if the quads were parsed leniently,
    and leaves out the quads with others; see `from_pyoxigraph`. `masked`: the text that was parsed, if some terms were
    masked. `most`: the maximal number of characters of its terms as N-Quads.

    >>> from construct_messages.rdf.labels import Labels
    >>> quad = ox.Quad(ox.BlankNode("b"), ox.NamedNode("urn:p"), ox.Literal("o"))
    >>> to_message([quad], Labels("x").in_message(1).__getitem__)
    <Message of 1 quad: _:x_m1b0 <urn:p> "o" .>
    """

    # JSON-LD accepts any text as a label; a scope maps each to a label that N-Triples can write
    scope = "" if rename is None else "x"
    accepting = None if lenience is None or lenience.is_strict else lenience

    def term(parsed: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> Term:
        if accepting is None and isinstance(parsed, _GROUND):
            read = Term(str(parsed))  # same as `from_pyoxigraph`, for the most common terms
            if lenience is not None and read.endswith(_UNTAGGED_END):  # from JSON-LD
                read = from_pyoxigraph(parsed, scope, lenience)
        else:
            read = from_pyoxigraph(parsed, scope, accepting)
        if masked is not None:
            read = masked.unmasked(read)
        return map_blanks(read, rename) if rename is not None and has_blank(read) else read

    def read() -> Iterator[Quad]:
        left = most
        for quad in quads:
            name = quad.graph_name
            try:
                if masked is not None:
                    masked.check(quad)
                subject, predicate = term(quad.subject), term(quad.predicate)
                object = term(quad.object)
                graph = None if isinstance(name, ox.DefaultGraph) else term(name)
            except TermError as error:
                if accepting is None or not accepting.skips(error):
                    raise
                continue
            left -= len(subject) + len(predicate) + len(object) + (len(graph) if graph else 0)
            if left < 0:
                raise too_much(number, int(most))
            yield Quad(subject, predicate, object, graph)

    return Message(read())


# --- texts with terms that pyoxigraph cannot read --------------------------------------------------------------------

_TOKENS: Final = re.compile(
    r"""  \#[^\r\n]*+
        | \\.
        # of no statement: an error in it is one of the document
        | (?<![\w:])@?+(?i:base|prefix[ \t\r\n]++[^\s:<>"']*+:)[ \t\r\n]*+<[^<>]*+>
        | \^\^[ \t\r\n]*+(?:<[^<>]*?|[^\s:<>"']*+:)(?P<untagged>(?:l|dirL)angString)(?=>|[\s,;.)\]}])
        | <(?P<iri>[^<>\r\n]*+)>
        | (?P<quote>\"{3}|'{3}|["'])(?P<value>(?:(?!(?P=quote))[^\\]|\\.)*+)(?P=quote)(?P<tag>@[\w\-]*+)?+
    """,
    re.DOTALL | re.VERBOSE,
)
_ESCAPE: Final = re.compile(
    rf"\\u[dD][89abAB]{HEX}{{2}}\\u[dD][c-fC-F]{HEX}{{2}}|\\(?:u{HEX}{{4}}|U{HEX}{{8}}|.)",
    re.DOTALL,
)
_TAG: Final = rf"@{LANGTAG}(?:--(?:ltr|rtl))?"
_MAY_HAVE_OTHERS: Final = re.compile(
    # an escape of no character, or of one that only an IRI cannot have
    rf"""\\(?:[^tbnrf"'\\uU]|u(?!{HEX}{{4}})|U(?!{HEX}{{8}})|u[dD][89a-fA-F]|U(?!000|0010)|U0000[dD][89a-fA-F])"""
    r"""|<[^<>"\s]*\\(?:[^uU]|(?:u|U0000)00(?:3[cC]|0[aAdD]))"""
    rf"""|["'](?!{_TAG}(?![\w\-]))@"""
    r"""|(?:\A|[.{}]|<<\(?)\s*["']"""
)
_LANGUAGE: Final = re.compile(_TAG)
_LINE_END: Final = re.compile(r"[\r\n]")
_NO_LINE_END: Final = re.compile(r"[^\r\n]")
_KINDS: Final = (NO_CHARACTER, NO_LANGUAGE, OUT_OF_PLACE)
_BEFORE_SUBJECTS: Final = (".", "{", "}", "<<", "<<(")
_PRIVATE: Final = range(0xE000, 0xF900 - len(_KINDS))


class Masked:
    """A text in N-Triples, N-Quads, Turtle or TriG with masks of the terms that pyoxigraph cannot read; see `of`.

    A parser cannot skip one statement: before its error it may have returned another one (`"x"@en` of
    `"x"@en_US`), and after it nothing that can be trusted. So characters of private use that the text does not have
    take the place of such terms, one for each, so that positions of errors are right. The statements with such a
    character are skipped later. A strict parser also refuses literals of rdf:langString without a tag: for it, the
    last letter of their datatype is another one.
    """

    def __init__(self, text: str, lenience: Lenience, private: int, letter: str) -> None:
        self._given, self._lenience, self._letter = text, lenience, letter
        self._marks = {kind: chr(private + number) for number, kind in enumerate(_KINDS)}
        self._firsts: dict[str, TermError] = {}  # about the first term of a kind, by its mark
        self._before = 0  # the end of the last token
        self._datatype = re.compile(rf'"\^\^<([^<>"]*angStrin){letter}>')
        # what the parser gets
        self.text = _TOKENS.sub(self._mask, text)

    @classmethod
    def of(cls, text: str, lenience: Lenience | None) -> Masked | None:
        """Returns a text with masks; None: it needs none.

        >>> masked = Masked.of('<urn:a> <urn:p> "x"@en_US, "y"@en .', Lenience())
        >>> masked.text.encode("ascii", "replace")
        b'<urn:a> <urn:p> "x??????", "y"@en .'
        >>> Masked.of('<urn:a> <urn:p> "x"@en, "y"@en .', Lenience())
        """
        private, letter = 0, ""
        if lenience is None:
            return None
        if lenience.is_strict:
            if "angString" in text:
                letters = "abcdefhijklmnopqrstuvwxyz"
                letter = next((each for each in letters if f"angStrin{each}" not in text), "")
        elif _MAY_HAVE_OTHERS.search(text):
            digits, each = text.lower(), range(len(_KINDS))
            private = next(
                (
                    code
                    for code in _PRIVATE
                    if not any(chr(code + n) in text or f"{code + n:x}" in digits for n in each)
                ),
                0,
            )
        if not private and not letter:
            return None
        masked = cls(text, lenience, private, letter)
        return masked if masked.text != text else None

    def _mask(self, token: re.Match[str]) -> str:
        before, self._before = self._before, token.end()
        text, quote, tag = token.group(), token["quote"], token["tag"]
        if self._letter:
            end = token.end("untagged") - token.start() - 1
            changed = f"{text[:end]}{self._letter}{text[end + 1 :]}"
            return text if token["untagged"] is None else changed
        if token["iri"] is not None:
            return _ESCAPE.sub(partial(self._escape, in_iri=True), text)
        if quote is None or (len(quote) == 1 and _LINE_END.search(token["value"])):
            return text
        previous = self._given[before : token.start()].rstrip()
        if len(text) > 2 and (previous.endswith(_BEFORE_SUBJECTS) or not (previous or before)):
            mark = self._mark(OUT_OF_PLACE, f"{text} is a literal, and no subject")
            return f"<{_NO_LINE_END.sub(mark, text[1:-1])}>"
        value = _ESCAPE.sub(self._escape, token["value"])
        if tag is not None and not _LANGUAGE.fullmatch(tag):
            mark = self._mark(NO_LANGUAGE, f"{tag[1:]!r} is not a language tag")
            return f"{quote}{value}{mark * len(tag)}{quote}"
        return f"{quote}{value}{quote}{tag or ''}"

    def _escape(self, escape: re.Match[str], *, in_iri: bool = False) -> str:
        text = escape.group()
        if len(text) in (6, 10):
            code = int(text[2:], 16)
            bad = code > 0x10FFFF or 0xD800 <= code <= 0xDFFF or (in_iri and chr(code) in "<\r\n")
        else:  # a surrogate pair is a character to a lenient parser
            bad = len(text) == 2 and (in_iri or text[1] not in ECHAR)
        if not bad:
            return text
        return self._mark(NO_CHARACTER, f"{text} is not a character") * len(text)

    def _mark(self, kind: str, problem: str) -> str:
        mark = self._marks[kind]
        self._firsts.setdefault(mark, TermError(problem, kind=kind))
        return mark

    def check(self, quad: ox.Quad) -> None:
        """Checks that no term of a quad is masked, before the others are accepted."""
        if self._firsts:
            text = str(quad)
            for mark, error in self._firsts.items():
                if mark in text:
                    raise error

    def unmasked(self, term: Term) -> Term:
        """Returns a term with its own datatypes; literals without the language tag that theirs needs become strings."""
        return Term(self._datatype.sub(self._datatyped, term)) if self._letter else term

    def _datatyped(self, found: re.Match[str]) -> str:
        datatype = f"{found[1]}g"
        if datatype not in _UNTAGGED:
            return f'"^^<{datatype}>'
        self._lenience.count(AS_STRING, found.string.replace(found.group(), f'"^^<{datatype}>'))
        return '"'


# parts of pyoxigraph's errors about terms that a lenient reader accepts
_MALFORMED: Final = re.compile(
    r"Invalid IRI (?:percent|code point)|Invalid character '|\bsubtag\b|langString"
)
# the beginning of pyoxigraph's error messages; our errors have the position in the log instead
_PLACE: Final = re.compile(r"Parser error (?:at|between) line [^:]*+: ")


def log_error(error: SyntaxError, number: int, line: int = 1, hint: str | None = None) -> LogError:
    """Returns the error of the log for a parser's syntax error. `error`: pyoxigraph's error; its line and column are
    relative to the parsed text. `line`: the line of the log at which that text begins, from 1.

    >>> try:
    ...     list(ox.parse("_:a\\n <urn:p> _:b", format=ox.RdfFormat.TURTLE))
    ... except SyntaxError as error:
    ...     print(log_error(error, 3, line=10))
    line 11, column 13: message 3: Unexpected end
    """
    position = None
    if error.lineno is not None:
        position = Position(line + error.lineno - 1, error.offset or 1)
    message = _PLACE.sub("", error.msg, count=1)
    if hint is None and _MALFORMED.search(message):
        hint = "mend it, or read leniently to accept terms that are not RDF"
    return LogError(message, number=number, position=position, hint=hint)

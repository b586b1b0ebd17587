"""Finds the ends of messages in a Turtle or TriG log, in chunks of bytes that may be split anywhere.

It only recognizes the tokens that may contain text like a delimiter: strings, IRIs, names, language tags and comments
(RDF 1.2 Turtle, section 6.5; RDF Messages, section 3). The parser decides whether a delimiter is allowed in its
position, and whether the statements are legal: this module does not count brackets, and raises no errors.

A token that is split by the end of a chunk is not read again from its beginning: each mode continues at its position.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, NamedTuple

from construct_messages.errors import LimitExceeded, Position

# --- declarations ---------------------------------------------------------------------------------
# Limits the IRIs that declarations of a base and of prefixes expand to, before a parser reads them.
#
# A relative IRI in them is as long as the base before it, so a chain of short declarations takes quadratic time and
# memory. RDF 1.2 Turtle, section 2.4.

MOST_BASE: Final = 1 << 11
"""The maximal length of a base that messages share, in characters."""

_TIMES: Final = 16
_LEAST: Final = 1 << 16
_PART: Final = re.compile(
    rb'''"""(?:[^"\\]++|\\.|"{1,2}+(?!"))*+"""|"(?:[^"\\\r\n]++|\\.)*+"'''
    rb"""|'''(?:[^'\\]++|\\.|'{1,2}+(?!'))*+'''|'(?:[^'\\\r\n]++|\\.)*+'"""
    rb"""|\#[^\r\n]*+|(?P<keyword>\b(?:base|prefix)\b)|<(?P<iri>[^<>"{}|^`\x00-\x20]*+)>""",
    re.DOTALL | re.IGNORECASE,
)
_ABSOLUTE: Final = re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*+:")


def check_declarations(text: bytes, base: str | None, number: int) -> None:
    """Rejects declarations whose IRIs are much longer than their text.

    >>> check_declarations(b"BASE <http://example.org/> PREFIX : <#>", None, 1)
    >>> check_declarations(b"BASE <a/>\\n" * 1000, "http://example.org/", 1)
    Traceback (most recent call last):
    ...
    construct_messages.errors.LimitExceeded: message 1 declares IRIs of more than 160000 characters
      hint: write the IRIs of BASE and PREFIX in full
    """
    length = len(base) if base else 0
    if length > MOST_BASE:
        raise LimitExceeded(
            f"the base of message {number} is longer than {MOST_BASE} characters",
            hint="write the IRIs of BASE in full, and shorter",
        )
    most = max(_LEAST, _TIMES * len(text))
    lower = text.lower()
    bases = lower.count(b"base")
    # an upper bound of the result, which is small for nearly all messages
    if (bases + lower.count(b"prefix")) * (length + (len(text) if bases else 0)) <= most:
        return
    keyword = None
    for part in _PART.finditer(text):
        if part["keyword"]:
            keyword = part["keyword"].lower()
        elif part["iri"] is not None and keyword:
            made = len(part["iri"]) + (0 if _ABSOLUTE.match(part["iri"]) else length)
            most -= made
            if most < 0:
                raise LimitExceeded(
                    f"message {number} declares IRIs of more than {max(_LEAST, _TIMES * len(text))} characters",
                    hint="write the IRIs of BASE and PREFIX in full",
                )
            if keyword == b"base":
                length = made
            keyword = None


# --- scanner --------------------------------------------------------------------------------------


class MarkKind(Enum):
    MESSAGE = auto()  # MESSAGE, or @message with its dot
    COMMENT = auto()  # `# @message`, to the end of its line
    VERSION = auto()  # VERSION with its string; the dot of @version is not examined
    DOTLESS = auto()  # @message without a dot


class Mark(NamedTuple):
    """A mark at bytes `start` to `end` of the scanner's text; a version has its label."""

    kind: MarkKind
    start: int
    end: int
    label: str = ""


class _Mode(Enum):
    BETWEEN = auto()  # between two tokens
    WORD = auto()  # in a name, keyword or number
    DOTS = auto()  # after a dot in one, which continues if another of its characters follows
    TAG = auto()  # in a language tag, or in @prefix and the like
    IRI = auto()
    COMMENT = auto()
    SHORT = auto()  # in a string between single characters
    LONG = auto()


class _Last(Enum):
    """The last token, if it determines the meaning of the next one."""

    OTHER = auto()
    STRING = auto()  # so that @message is a language tag
    MESSAGE = auto()  # @message, which needs its dot
    VERSION = auto()  # VERSION, which needs its string


_NAME: Final = r"A-Za-z0-9_:%\-\x80-\xff"  # characters of names, in addition to dots and escapes
_DELIMITS: Final = re.compile(r"#\s*@message")


def _regex(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode("ascii"), re.DOTALL | re.VERBOSE)


def _short(quote: str) -> str:
    return rf"(?: [^\\\r\n{quote}]++ | \\. )*+"


def _long(quote: str) -> str:
    return rf"(?: [^\\{quote}]++ | \\. | {quote}{{1,2}}+ (?=[^{quote}]) )*+"


_COMMENT: Final = r"\# (?! [^A-Za-z@\r\n]*+ @message) [^\r\n]*+ [\r\n]"
_WORD: Final = rf"(?: [{_NAME}]++ | \\. | \.++ (?=[{_NAME}\\]) )*+"
_IRI: Final = r"""[^<>"{}|^`\x00-\x20]*+"""
_TAG: Final = r"[A-Za-z0-9\-]*+"

# Complete tokens other than marks, as many as possible: a faster way than reading them one by one by mode. Each
# alternative must therefore check the text after its token.
_TOKENS: Final = _regex(
    rf"""(?:
        [^\\"'<\#@{_NAME}]++
      | (?: [A-Za-z0-9_%\-\x80-\xff] [A-Za-z0-9_%\-\x80-\xff.]*+ )?+ : {_WORD} (?= \.*+ [^.\\{_NAME}] )
      | (?: [A-Za-z]{{1,6}}+ | [0-9\-]++ (?: \.[0-9]++ )?+ ) (?= [ \t\r\n,;)\]}}] )
      | < (?: < | {_IRI} > )
      | @ (?! message | version ) {_TAG} (?= [^A-Za-z0-9\-] )
      | (?: \"\"\" {_long('"')} \"\"\" | ''' {_long("'")} ''' | " (?!"") {_short('"')} " | ' (?!'') {_short("'")} ' )
        (?: [ \t\r\n]++ | {_COMMENT} )*+ (?: @ {_TAG} (?= [^A-Za-z0-9\-] ) | (?= [^@\# \t\r\n] ) )
      | {_COMMENT}
    )*+"""
)
# the extent of each mode, by the quote if it is a string
_REACH: Final = {
    (_Mode.BETWEEN, ""): _regex(r"[ \t\r\n]*+"),
    (_Mode.WORD, ""): _regex(rf"(?: [{_NAME}]++ | \\. )*+"),
    (_Mode.DOTS, ""): _regex(r"\.*+"),
    (_Mode.TAG, ""): _regex(_TAG),
    (_Mode.IRI, ""): _regex(_IRI),
    (_Mode.COMMENT, ""): _regex(r"[^\r\n]*+"),
    (_Mode.SHORT, '"'): _regex(_short('"')),
    (_Mode.SHORT, "'"): _regex(_short("'")),
    (_Mode.LONG, '"'): _regex(_long('"')),
    (_Mode.LONG, "'"): _regex(_long("'")),
}
_BEGINS_WORD: Final = _regex(rf"[{_NAME}\\]")
_KEYWORD: Final = re.compile(rb"(?:[^:\\]*\.)?(message|version)", re.IGNORECASE | re.DOTALL)
_WHOLE: Final = re.compile(rb"message(?=\s)", re.IGNORECASE)  # the most frequent form
_DOT, _BACKSLASH, _AT, _OPENS_COMMENT, _OPENS_IRI, _CLOSES_IRI, *_QUOTES = b".\\@#<>\"'"


def place_after(place: Position, text: bytes | bytearray) -> Position:
    """Returns the position after a text that begins at `place`; columns count characters.

    >>> place_after(Position(7, 3), b"ab"), place_after(Position(7, 3), b"ab\\r\\ncd")
    (Position(line=7, column=5), Position(line=8, column=3))
    """
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    lines = text.count(b"\n")
    column = len(text[text.rfind(b"\n") + 1 :].decode(errors="replace")) + 1
    return Position(place.line + lines, column if lines else place.column + column - 1)


class TurtleScanner:
    """Finds the marks of one log; the text between them is kept until it is cut off.

    >>> scanner = TurtleScanner()
    >>> for mark in scanner.feed(b'<urn:s> <urn:p> "MESSAGE" . MESSAGE <urn:t>'):
    ...     print(mark.kind, bytes(scanner.text[mark.start : mark.end]))
    ...     scanner.cut(mark.end)
    MarkKind.MESSAGE b'MESSAGE'
    >>> scanner.place, bytes(scanner.text)
    (Position(line=1, column=36), b' <urn:t>')
    """

    def __init__(self) -> None:
        # the text that was not cut off yet
        self.text = bytearray()
        # its position in the log
        self.place = Position(1, 1)
        # whether comments are marks
        self.comments = True
        self._mode, self._quote = _Mode.BETWEEN, ""
        # the end of the read text, and the start of the current token
        self._at = self._start = self._word_end = 0
        self._last, self._last_start = _Last.OTHER, 0

    def feed(self, data: bytes) -> Iterator[Mark]:
        """Yields the marks that are complete now; `cut` may be called after each."""
        self.text += data
        while (mark := self._next()) is not None:
            yield mark

    def close(self) -> Iterator[Mark]:
        """Yields the marks that the end of the log completes."""
        # text that ends any token except strings
        yield from self.feed(b"\n")
        del self.text[-1:]
        if self._last is _Last.MESSAGE:
            yield Mark(MarkKind.DOTLESS, self._last_start, len(self.text))

    def cut(self, end: int) -> None:
        """Removes the first `end` bytes of the text."""
        self.place = self.place_of(end)
        del self.text[:end]
        self._at -= end

    def skip(self, end: int) -> None:
        """Removes the first `end` bytes of the text and continues as between two messages."""
        self.cut(end)
        self._leave(_Last.OTHER, 0)

    def place_of(self, offset: int) -> Position:
        """Returns the position in the log of the byte at `offset` of the text; columns count characters."""
        return place_after(self.place, self.text[:offset])

    def _next(self) -> Mark | None:
        """Continues to the next mark; None: there is none yet."""
        text = self.text
        while True:
            quick = self._mode is _Mode.BETWEEN and self._last is _Last.OTHER
            self._at = _end(_TOKENS if quick else _REACH[self._mode, self._quote], text, self._at)
            if self._at == len(text):
                return None
            mark, byte = None, text[self._at]
            match self._mode:
                case _Mode.BETWEEN if quick and (whole := _WHOLE.match(text, self._at)):
                    mark, self._at = Mark(MarkKind.MESSAGE, *whole.span()), whole.end()
                case _Mode.BETWEEN if not quick and self._is_other(byte):
                    self._last = _Last.OTHER
                case _Mode.BETWEEN if self._last is _Last.MESSAGE and byte != _OPENS_COMMENT:
                    mark = self._message(byte)
                case _Mode.BETWEEN:
                    if not self._begin(byte):
                        return None
                case _Mode.WORD if byte == _DOT:
                    self._mode, self._word_end = _Mode.DOTS, self._at
                case _Mode.WORD | _Mode.SHORT | _Mode.LONG if byte == _BACKSLASH:
                    return None  # an escape whose second character is missing
                case _Mode.WORD:
                    mark = self._word(self._at)
                case _Mode.DOTS if _BEGINS_WORD.match(text, self._at):
                    self._mode = _Mode.WORD
                case _Mode.DOTS:
                    mark = self._word(self._word_end)
                case _Mode.TAG:
                    self._tag()
                case _Mode.IRI:
                    self._leave(_Last.OTHER, self._at + (byte == _CLOSES_IRI))
                case _Mode.COMMENT:
                    if self.comments and _DELIMITS.match(
                        text[self._start : self._at].decode(errors="replace")
                    ):
                        mark = Mark(MarkKind.COMMENT, self._start, self._at)
                    self._leave(self._last, self._at)
                case _Mode.SHORT:
                    mark = self._short_string(byte)
                case _Mode.LONG:
                    if text[self._at : self._at + 3] != self._quote.encode() * 3:
                        return None  # one or two quotes, of which a third may follow
                    self._leave(_Last.STRING, self._at + 3)
            if mark is not None:
                self._last = _Last.OTHER
                return mark

    def _enter(self, mode: _Mode, width: int, quote: str = "") -> None:
        self._mode, self._quote = mode, quote
        self._start, self._at = self._at, self._at + width

    def _leave(self, last: _Last, at: int) -> None:
        self._mode, self._quote = _Mode.BETWEEN, ""
        self._last, self._at = last, at

    def _is_other(self, byte: int) -> bool:
        """Returns whether the last token does not affect the next one, which begins with `byte`."""
        match self._last:
            case _Last.STRING:
                return byte not in (_AT, _OPENS_COMMENT)
            case _Last.VERSION:
                return byte not in (*_QUOTES, _OPENS_COMMENT)
        return False

    def _message(self, byte: int) -> Mark:
        self._at += byte == _DOT
        return Mark(
            MarkKind.MESSAGE if byte == _DOT else MarkKind.DOTLESS, self._last_start, self._at
        )

    def _begin(self, byte: int) -> bool:
        """Enters a token; returns whether its kind is determined by the text so far."""
        if byte in _QUOTES:
            quote = chr(byte)
            first = self.text[self._at : self._at + 3].decode("latin-1")
            if first in (quote, quote * 2):
                return False
            if first == quote * 3:
                self._enter(_Mode.LONG, 3, quote)
            else:
                self._enter(_Mode.SHORT, 1, quote)
        elif byte == _OPENS_IRI:
            if self._at + 1 == len(self.text):
                return False
            if self.text[self._at + 1] == _OPENS_IRI:
                self._at += 2
            else:
                self._enter(_Mode.IRI, 1)
        elif byte == _OPENS_COMMENT:
            self._enter(_Mode.COMMENT, 1)
        elif byte == _AT:
            self._enter(_Mode.TAG, 1)
        elif _BEGINS_WORD.match(self.text, self._at):
            self._enter(_Mode.WORD, 0)
        else:
            self._at += 1
        return True

    def _word(self, end: int) -> Mark | None:
        self._leave(_Last.OTHER, end)
        # the token before a dot need not be a name: it may be a number, true or false
        keyword = _KEYWORD.fullmatch(self.text, self._start, end)
        if keyword is None:
            return None
        if keyword[1].lower() == b"message":
            return Mark(MarkKind.MESSAGE, keyword.start(1), end)
        self._last, self._last_start = _Last.VERSION, keyword.start(1)
        return None

    def _tag(self) -> None:
        tag = self.text[self._start : self._at]
        directives = {b"@message": _Last.MESSAGE, b"@version": _Last.VERSION}
        last = (
            _Last.OTHER if self._last is _Last.STRING else directives.get(bytes(tag), _Last.OTHER)
        )
        self._leave(last, self._at)
        self._last_start = self._start

    def _short_string(self, byte: int) -> Mark | None:
        if byte != ord(self._quote):  # a line end, which is not allowed here
            self._leave(_Last.OTHER, self._at)
            return None
        label, of_version = self.text[self._start + 1 : self._at], self._last is _Last.VERSION
        self._leave(_Last.STRING, self._at + 1)
        if of_version:
            return Mark(
                MarkKind.VERSION, self._last_start, self._at, label.decode(errors="replace")
            )
        return None


def _end(pattern: re.Pattern[bytes], text: bytearray, start: int) -> int:
    match = pattern.match(text, start)
    assert match is not None  # every pattern here also matches the empty text
    return match.end()

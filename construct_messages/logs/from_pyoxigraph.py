"""Converts pyoxigraph's quads to messages, with labels for blank nodes and positions for syntax errors. No parsing
here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import Final, TypeAlias

import pyoxigraph as ox

from construct_messages.errors import LimitExceeded, LogError, Position
from construct_messages.message import Message, Quad
from construct_messages.terms import Lenience, Term, from_pyoxigraph, has_blank, map_blanks

DEEPEST: Final = 100
"""The maximal nesting of triple terms: parsers and readers of terms use recursion."""

_LEAST: Final = 1 << 20
_TIMES: Final = 1 << 8

Rename: TypeAlias = Callable[[Term], Term]


def most_characters(size: int, message_bytes: int) -> int:
    """Returns the maximal number of characters that a message may have as N-Quads, for its size in the log.

    The limit also depends on the message's size, so that the cost of a log is linear in its length, not quadratic.

    Args:
        size: its size in the log, in bytes.
        message_bytes: the maximal size of a message.

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


_GROUND: Final = (ox.NamedNode, ox.Literal)


def to_message(
    quads: Iterable[ox.Quad],
    rename: Rename | None = None,
    lenience: Lenience | None = None,
    *,
    number: int = 1,
    most: float = inf,
) -> Message:
    """Converts parsed quads to a message.

    Args:
        quads: pyoxigraph's quads.
        rename: returns the label of each blank node, such as `labels.in_log`; None: labels are kept.
        lenience: passes and counts malformed terms, if the quads were parsed leniently; see `from_pyoxigraph`.
        number: the number of the message, from 1.
        most: the maximal number of characters of its terms as N-Quads.

    Raises:
        LimitExceeded: the terms have more characters.
        TermError: with `lenience`, a term that cannot be passed.

    >>> from construct_messages.labels import Labels
    >>> quad = ox.Quad(ox.BlankNode("b"), ox.NamedNode("urn:p"), ox.Literal("o"))
    >>> to_message([quad], Labels("x").in_message(1).__getitem__)
    <Message of 1 quad: _:x_m1b0 <urn:p> "o" .>
    """

    # JSON-LD accepts any text as a label; a scope maps each to a label that N-Triples can write
    scope = "" if rename is None else "x"

    def term(parsed: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> Term:
        if lenience is None and isinstance(parsed, _GROUND):
            return Term(str(parsed))  # same as `from_pyoxigraph`, for the most common terms
        read = from_pyoxigraph(parsed, scope, lenience)
        return map_blanks(read, rename) if rename is not None and has_blank(read) else read

    def read() -> Iterator[Quad]:
        left = most
        for quad in quads:
            subject, predicate, object = term(quad.subject), term(quad.predicate), term(quad.object)
            graph = None if isinstance(quad.graph_name, ox.DefaultGraph) else term(quad.graph_name)
            left -= len(subject) + len(predicate) + len(object) + (len(graph) if graph else 0)
            if left < 0:
                raise too_much(number, int(most))
            yield Quad(subject, predicate, object, graph)

    return Message(read())


# parts of pyoxigraph's errors about terms that a lenient reader accepts
_MALFORMED: Final = re.compile(
    r"Invalid IRI (?:percent|code point)|Invalid character '|\bsubtag\b|langString"
)
# the beginning of pyoxigraph's error messages; our errors have the position in the log instead
_PLACE: Final = re.compile(r"Parser error (?:at|between) line [^:]*+: ")


def log_error(error: SyntaxError, number: int, line: int = 1, hint: str | None = None) -> LogError:
    """Returns the error of the log for a parser's syntax error.

    Args:
        error: pyoxigraph's error; its line and column are relative to the parsed text.
        number: the number of the message, from 1.
        line: the line of the log at which that text begins, from 1.
        hint: the fix.

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

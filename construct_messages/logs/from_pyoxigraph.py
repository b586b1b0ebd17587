"""Messages from pyoxigraph's quads: labels for blank nodes, and positions for syntax errors.

No bytes are read here.
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
"""How many triple terms may be nested: parsers and readers of terms use recursion."""

_LEAST: Final = 1 << 20
_TIMES: Final = 1 << 8

Rename: TypeAlias = Callable[[Term], Term]


def most_characters(size: int, message_bytes: int) -> int:
    """Returns the maximal number of characters that a message may have as N-Quads, for its size in the log.

    They are bounded by the message's size too, so that what a log costs grows with its length, and not with its square.

    Args:
        size: what it takes in the log, in bytes.
        message_bytes: how large a message may be.

    >>> most_characters(100, 1 << 28), most_characters(1 << 16, 1 << 28), most_characters(1 << 20, 1 << 28)
    (1048576, 16777216, 268435456)
    """
    return max(_LEAST, min(message_bytes, _TIMES * size))


def too_much(number: int, characters: int) -> LimitExceeded:
    """The error of a message that has too many characters as N-Quads; see `most_characters`.

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
    """Parsed quads as a message.

    Args:
        quads: of pyoxigraph.
        rename: returns the label of each blank node, such as `labels.in_log`; None: labels are kept.
        lenience: where the quads were parsed leniently, what passes and counts malformed terms; see `from_pyoxigraph`.
        number: of the message, from 1.
        most: how many characters its terms may have as N-Quads.

    Raises:
        LimitExceeded: they have more.
        TermError: with `lenience`, what cannot be passed.

    >>> from construct_messages.labels import Labels
    >>> quad = ox.Quad(ox.BlankNode("b"), ox.NamedNode("urn:p"), ox.Literal("o"))
    >>> to_message([quad], Labels("x").in_message(1).__getitem__)
    <Message of 1 quad: _:x_m1b0 <urn:p> "o" .>
    """

    # JSON-LD takes any text for a label; in a scope each has one that N-Triples can write
    scope = "" if rename is None else "x"

    def term(parsed: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> Term:
        if lenience is None and isinstance(parsed, _GROUND):
            return Term(str(parsed))  # as `from_pyoxigraph` does, for the terms that nearly all are
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


# pyoxigraph's errors about IRIs and language tags
_MALFORMED: Final = re.compile(r"Invalid IRI (?:percent|code point)|Invalid character '|\bsubtag\b")
# the beginning of pyoxigraph's error messages; the position is given in the log's lines instead
_PLACE: Final = re.compile(r"Parser error (?:at|between) line [^:]*+: ")


def log_error(error: SyntaxError, number: int, line: int = 1, hint: str | None = None) -> LogError:
    """A parser's syntax error as one of the log.

    Args:
        error: of pyoxigraph; its line and column count within the text that was parsed.
        number: of the message, from 1.
        line: where in the log that text begins, from 1.
        hint: how to mend it.

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
        hint = "mend it, or read leniently to pass malformed IRIs and language tags"
    return LogError(message, number=number, position=position, hint=hint)

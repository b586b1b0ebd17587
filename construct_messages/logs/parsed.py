"""What a library has parsed, as messages: blank nodes get their labels, and syntax errors their place in the log.

No bytes are read here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import pyoxigraph as ox

from construct_messages.errors import LogError, Position
from construct_messages.message import Message, Quad
from construct_messages.terms import Term, from_pyoxigraph, has_blank, map_blanks

DEEPEST: Final = 100
"""How many triple terms may stand in each other: parsers, and what reads terms, go down by recursion."""

Rename: TypeAlias = Callable[[Term], Term]


_GROUND: Final = (ox.NamedNode, ox.Literal)


def to_message(quads: Iterable[ox.Quad], rename: Rename | None = None) -> Message:
    """Parsed quads as a message.

    Args:
        quads: of pyoxigraph.
        rename: gives each blank node its label, such as `labels.in_log`; None: labels are kept.

    >>> from construct_messages.labels import Labels
    >>> quad = ox.Quad(ox.BlankNode("b"), ox.NamedNode("urn:p"), ox.Literal("o"))
    >>> to_message([quad], Labels("x").in_message(1).__getitem__)
    <Message of 1 quad: _:x_m1b0 <urn:p> "o" .>
    """

    # JSON-LD takes any text for a label; in a scope each has one that N-Triples can write
    scope = "" if rename is None else "x"

    def term(parsed: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> Term:
        if isinstance(parsed, _GROUND):
            return Term(str(parsed))  # as `from_pyoxigraph` does, for the terms that nearly all are
        read = from_pyoxigraph(parsed, scope)
        return map_blanks(read, rename) if rename is not None and has_blank(read) else read

    return Message(
        Quad(
            term(quad.subject),
            term(quad.predicate),
            term(quad.object),
            None if isinstance(quad.graph_name, ox.DefaultGraph) else term(quad.graph_name),
        )
        for quad in quads
    )


# how pyoxigraph begins its messages; the place is told in the log's lines instead
_PLACE: Final = re.compile(r"Parser error (?:at|between) line [^:]*+: ")


def log_error(error: SyntaxError, number: int, line: int = 1, column: int = 1, hint: str | None = None) -> LogError:
    """A parser's syntax error as one of the log.

    Args:
        error: of pyoxigraph; its line and column count within the text that was parsed.
        number: of the message, from 1.
        line, column: where in the log that text begins, from 1.
        hint: how to mend it.

    >>> try:
    ...     list(ox.parse("_:a\\n <urn:p> _:b", format=ox.RdfFormat.TURTLE))
    ... except SyntaxError as error:
    ...     print(log_error(error, 3, line=10))
    line 11, column 13: message 3: Unexpected end
    """
    position = None
    if error.lineno is not None:
        first = error.lineno == 1
        position = Position(line + error.lineno - 1, (error.offset or 1) + (column - 1 if first else 0))
    return LogError(_PLACE.sub("", error.msg, count=1), number=number, position=position, hint=hint)

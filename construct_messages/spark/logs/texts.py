"""A message in a DataFrame: its statements as canonical N-Quads lines, joined by LF without one at the end. No I/O.

The empty message is the empty text. Labels of blank nodes hold for a whole DataFrame, so those of a log are renamed
where they enter it. RDF 1.2 N-Quads; RDF Messages, section 3.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

from construct_messages.errors import LogError
from construct_messages.formats import N_QUADS, RDFM
from construct_messages.logs.lines_decoder import LinesDecoder
from construct_messages.message import Message, Quad
from construct_messages.terms import Term, map_blanks

_LABEL: Final = re.compile(r"_:(?:f([0-9a-f]{16}))?+(.*)")
_REMEMBERED: Final = 1 << 16
_UNBOUNDED: Final = 1 << 62  # the text is in memory already


class Labels(dict[Term, Term]):
    """The labels that the blank nodes of one log have in a DataFrame: `f`, 16 digits of a hash, and what it was before.

    They depend on the log's place and on nothing else. Of a label that is such a one already, the digits are replaced,
    so that labels do not grow by reading and writing.

    Args:
        origin: the log's place, or that of the part of it in which labels hold.

    >>> labels = Labels("file:///log.nq")
    >>> labels[Term("_:x")], Labels("file:///copy.nq")[labels[Term("_:x")]]
    ('_:f1e5b05dde0e26f74x', '_:f15a0165f44fa13c1x')
    """

    def __init__(self, origin: str) -> None:
        super().__init__()
        self._origin = origin

    def __missing__(self, label: Term) -> Term:
        match = _LABEL.fullmatch(label)
        assert match is not None  # it is a blank node
        digits = blake2b(f"{match[1] or ''} {self._origin}".encode(), digest_size=8).hexdigest()
        if len(self) >= _REMEMBERED:
            self.clear()
        renamed = self[label] = Term(f"_:f{digits}{match[2]}")
        return renamed


def to_text(message: Message, labels: Labels) -> str:
    """A message as text.

    Args:
        message: of a log.
        labels: what its blank nodes are called.

    >>> to_text(Message([Quad(Term("<urn:s>"), Term("<urn:p>"), Term('"o"'), Term("<urn:g>"))]), Labels(""))
    '<urn:s> <urn:p> "o" <urn:g> .'
    """
    text = _lines(message)
    if "_:" not in text:
        return text
    name = labels.__getitem__
    return _lines(
        Quad(map_blanks(s, name), p, map_blanks(o, name), None if g is None else map_blanks(g, name))
        for s, p, o, g in message
    )


def _lines(quads: Iterable[Quad]) -> str:
    return "\n".join([f"{s} {p} {o} ." if g is None else f"{s} {p} {o} {g} ." for s, p, o, g in quads])


def to_messages(texts: Sequence[str], first: int = 1) -> list[Message]:
    r"""The messages of some texts; what is not canonical in them becomes so.

    Args:
        texts: one a message.
        first: the number of the first, for errors.

    Raises:
        LogError: a text that is no statements of N-Quads, with its number and the place in it.

    >>> to_messages(["", '<urn:s> <urn:p> "o" .\n<urn:s> <urn:p> "o" <urn:g> .'])
    [<Message, empty>, <Message of 2 quads: <urn:s> <urn:p> "o" . <urn:s> <urn:p> "o" <urn:g> .>]
    """
    try:
        messages = _decode(texts)
    except LogError:
        messages = []  # the same is said below of one text
    if len(messages) == len(texts):
        return messages
    return [_only_message(text, number) for number, text in enumerate(texts, first)]


def _only_message(text: str, number: int) -> Message:
    try:
        messages = _decode([text])
    except LogError as error:
        # the delimiter has a line of its own
        position = error.position and error.position._replace(line=error.position.line - 1)
        raise LogError(error.message, number=number, position=position, hint=error.hint) from error
    if len(messages) > 1:
        raise LogError("a delimiter within a message", number=number, hint="give each message a text of its own")
    return messages[0]


def _decode(texts: Sequence[str]) -> list[Message]:
    """What stands in texts when each begins behind a delimiter."""
    decoder = LinesDecoder(N_QUADS, RDFM, message_bytes=_UNBOUNDED)
    log = "".join([f"{RDFM.delimiter}{text}\n" for text in texts])
    return [*decoder.feed(log.encode()), *decoder.close()]

"""Messages as text: statements as canonical N-Quads lines, joined by LF without a final one. No I/O.

The empty message is the empty text. Columns of DataFrames and rows of streams contain messages in this form; labels of
blank nodes are unchanged.

RDF 1.2 N-Quads; RDF Messages, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Final

from construct_messages.logs import DecoderOptions
from construct_messages.logs.lines.decoder import LinesDecoder, read_lines
from construct_messages.rdf import compiled
from construct_messages.rdf.errors import LogError
from construct_messages.rdf.formats import N_QUADS, RDFM
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import Lenience

_UNBOUNDED: Final = 1 << 62  # no limit: the text is already in memory
_LABELS: Final = Labels("x", keep=True)  # labels are unchanged


def to_text(message: Message) -> str:
    """Returns a message as text.

    >>> from construct_messages.rdf.message import Quad
    >>> from construct_messages.rdf.terms import Term
    >>> to_text(Message([Quad(Term("<urn:s>"), Term("<urn:p>"), Term('"o"'), Term("<urn:g>"))]))
    '<urn:s> <urn:p> "o" <urn:g> .'
    """
    return message.lines[:-1].decode()


def lines_read_back(message: Message) -> bytes | None:
    r"""The lines of a message that are read as the terms that it has, so that it is checked; None: it may not be RDF.

    This takes less time than `Checker`, which looks at each term, unless the terms were met before.

    >>> from construct_messages.rdf.message import Quad
    >>> from construct_messages.rdf.terms import Term
    >>> message = Message([Quad(Term("<urn:s>"), Term("<urn:p>"), Term('"o"'))])
    >>> lines_read_back(message), message.checked
    (b'<urn:s> <urn:p> "o" .\n', True)
    """
    if message.checked:
        return message.lines
    wire = compiled.wire
    lines = _lines_read_back(message) if wire is None else wire.lines_of(message.statements)
    message.checked = lines is not None
    return lines


def _lines_read_back(message: Message) -> bytes | None:
    try:
        lines = message.lines
    except UnicodeEncodeError:  # surrogates
        return None
    read = read_lines(lines, graphs=True)
    is_same = read.terms == list(chain.from_iterable(message.statements))
    return lines if is_same and not any(read.others) else None


def to_messages(
    texts: Sequence[str], first: int = 1, lenience: Lenience | None = None
) -> list[Message]:
    r"""Returns the messages of texts, with terms in canonical form.

    >>> to_messages(["", '<urn:s> <urn:p> "o" .\n<urn:s> <urn:p> "o" <urn:g> .'])
    [<Message, empty>, <Message of 2 quads: <urn:s> <urn:p> "o" . <urn:s> <urn:p> "o" <urn:g> .>]
    """
    try:
        messages = _decode(texts, lenience)
    except LogError:
        messages = []  # the same as below for one text
    if len(messages) == len(texts):
        return messages
    return [_only_message(text, number, lenience) for number, text in enumerate(texts, first)]


def _only_message(text: str, number: int, lenience: Lenience | None) -> Message:
    try:
        messages = _decode([text], lenience)
    except LogError as error:
        # the delimiter is on its own line
        position = error.position and error.position._replace(line=error.position.line - 1)
        raise LogError(error.message, number=number, position=position, hint=error.hint) from error
    if len(messages) > 1:
        raise LogError(
            "a delimiter within a message",
            number=number,
            hint="give each message a text of its own",
        )
    return messages[0]


def _decode(texts: Sequence[str], lenience: Lenience | None) -> list[Message]:
    """Returns the messages of texts, each of which begins after a delimiter."""
    decoder = LinesDecoder(
        N_QUADS, RDFM, DecoderOptions(message_bytes=_UNBOUNDED, labels=_LABELS, lenience=lenience)
    )
    log = "".join([f"{RDFM.delimiter}{text}\n" for text in texts])
    return [*decoder.feed(log.encode()), *decoder.close()]

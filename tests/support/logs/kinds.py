"""Every kind of log there is, and writing and reading one, whole or in pieces: what the tests across formats share."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from construct_messages.errors import LimitExceeded, LogError
from construct_messages.logs import DecoderOptions, EncoderOptions, decoder_for, encoder_for
from construct_messages.rdf.formats import FORMATS, RDFM, VARIANTS, Format, Syntax
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import Term, is_blank, is_triple, triple_parts


class Kind(NamedTuple):
    """A format, with one of the syntaxes that its messages can be delimited by."""

    format: Format
    syntax: Syntax

    def __str__(self) -> str:
        names = (self.format.extension, self.syntax.version, self.syntax.label)
        return "-".join(dict.fromkeys(name for name in names if name))

    @property
    def keeps_labels(self) -> bool:
        """Whether blank nodes are the log's, not their message's."""
        return self.syntax.label == RDFM.label


KINDS: Final = [
    Kind(format, syntax)
    for format in FORMATS
    for syntax in ([format.own] if format.own else VARIANTS)
]


@dataclass(frozen=True)
class Reading:
    """What came of reading a log: the messages, and the error that ended it if one did."""

    messages: list[Message]
    error: LogError | LimitExceeded | None

    def __str__(self) -> str:
        return f"{len(self.messages)} messages, {type(self.error).__name__}: {self.error}"


def write(
    messages: Iterable[Message], kind: Kind, prefixes: Mapping[str, str] | None = None
) -> bytes:
    """A whole log. That it has triple terms is known beforehand, as Jelly demands.

    Raises:
        UnsupportedByFormat: see `Encoder.encode`.
    """
    messages = list(messages)
    triple_terms = any(is_triple(quad.object) for message in messages for quad in message)
    encoder = encoder_for(
        kind.format, kind.syntax, EncoderOptions(prefixes, triple_terms=triple_terms)
    )
    return b"".join((encoder.start(), *map(encoder.encode, messages), encoder.finish()))


def read(chunks: Iterable[bytes], kind: Kind, *, announced: bool = True, **options: Any) -> Reading:
    """Reads a log to its end or to an error of ours; any other exception comes out as it is.

    Args:
        chunks: the log.
        kind: what it is read as.
        announced: whether its media type says the syntax; else the log tells.
        options: of `DecoderOptions`; unless told otherwise, labels are the same each time, and those of a log are kept.
    """
    messages: list[Message] = []
    try:
        for message in reading(chunks, kind, announced=announced, **options):
            messages.append(message)
    except (LogError, LimitExceeded) as error:
        return Reading(messages, error)
    return Reading(messages, None)


def reading(
    chunks: Iterable[bytes], kind: Kind, *, announced: bool = True, **options: Any
) -> Iterator[Message]:
    """The messages of a log, as they become complete.

    Raises:
        LogError, LimitExceeded: as `Decoder.feed` and `Decoder.close`.
    """
    decoding = DecoderOptions(**{"labels": Labels("x", keep=True), **options})
    decoder = decoder_for(kind.format, kind.syntax if announced else None, decoding)
    for chunk in chunks:
        yield from decoder.feed(chunk)
    yield from decoder.close()


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    """The data in pieces that end at some places.

    >>> cut(b"message", [2, 2, 99])
    [b'me', b'', b'ssage', b'']
    """
    return [data[start:end] for start, end in itertools.pairwise([0, *sorted(places), len(data)])]


def single_bytes(data: bytes) -> list[bytes]:
    """The data byte by byte."""
    return [data[place : place + 1] for place in range(len(data))]


def isomorphic(some: Sequence[Message], others: Sequence[Message]) -> bool:
    """Whether two sequences have the same messages in the same order, up to the labels of their blank nodes."""
    return len(some) == len(others) and all(
        a.isomorphic(b) for a, b in zip(some, others, strict=True)
    )


def blanks(message: Message) -> set[Term]:
    """The blank nodes of a message, those within triple terms among them."""
    found: set[Term] = set()
    left = [term for quad in message for term in quad if term is not None]
    while left:
        term = left.pop()
        if is_triple(term):
            left += triple_parts(term)
        elif is_blank(term):
            found.add(term)
    return found

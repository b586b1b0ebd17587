"""Splitting of N-Triples and N-Quads logs: the messages that belong to a range of bytes. No I/O, no Spark.

A range owns the messages after the delimiters whose lines begin in it; the first range also owns the text before the
first delimiter. So each message has one owner for every split of the log, even within a delimiter, a character or a
CRLF. A message that continues past the end of its range is read to its end. Lines are decoded by `LinesDecoder`; only
line ends are looked for here. RDF Messages, section 3, and the first draft, section 3.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from construct_messages.logs import MESSAGE_BYTES, DecoderOptions
from construct_messages.logs.lines.decoder import LinesDecoder
from construct_messages.rdf.formats import RDFM, Format, Syntax
from construct_messages.rdf.message import Message

_LINE_END: Final = re.compile(rb"\r\n?|\n")


def messages_of(
    chunks: Iterable[bytes],
    start: int,
    end: int,
    *,
    format: Format,
    syntax: Syntax | None = None,
    options: DecoderOptions | None = None,
) -> Iterator[Message]:
    r"""Yields the messages that a range of a log owns, in order.

    Args:
        chunks: the log from the byte before `start` on, or from its beginning if `start` is 0; chunks are read only as
            far as needed.
        start, end: the range in bytes, the end excluded.
        format: N-Triples or N-Quads.
        syntax: the syntax of the log; None: it announces none (`announced_in`).
        options: see `decoder_for`.

    Raises:
        LogError: malformed lines; numbers of messages and lines count from the first line that begins in the range.
        LimitExceeded: a message that is too large.

    >>> from construct_messages.rdf.formats import N_TRIPLES
    >>> log = b"# @message\n<urn:a> <urn:p> <urn:o> .\n# @message\n<urn:b> <urn:p> <urn:o> .\n"
    >>> for start, end in ((0, 20), (20, 60), (60, len(log))):
    ...     print(*messages_of([log[max(start - 1, 0) :]], start, end, format=N_TRIPLES))
    <Message of 1 quad: <urn:a> <urn:p> <urn:o> .>
    <Message of 1 quad: <urn:b> <urn:p> <urn:o> .>
    <BLANKLINE>
    """
    options = options or DecoderOptions()
    placed = _placed(chunks, max(start - 1, 0))
    if start == 0:
        return _read(LinesDecoder(format, syntax, options), placed, end)
    decoder = LinesDecoder(format, syntax or RDFM, options, continued=True)
    # the first is the rest of a message that began before the range, or of its delimiter
    return islice(_read(decoder, _from_line(placed, end), end, continued=True), 1, None)


def announced_in(
    chunks: Iterable[bytes], format: Format, *, message_bytes: int = MESSAGE_BYTES
) -> Syntax | None:
    r"""Returns the syntax that a log declares before its first statement; None: no syntax.

    Args:
        chunks: the log from its beginning; chunks are read only as far as needed.
        format: N-Triples or N-Quads.
        message_bytes: the maximal length of a line.

    Raises:
        LogError: the first line that is not empty or a comment is malformed.
        LimitExceeded: a line that is too long.

    >>> from construct_messages.rdf.formats import N_TRIPLES
    >>> announced_in([b'# log\nVERSION "1.2-mess', b'ages"\n'], N_TRIPLES).label
    '1.2-messages'
    """
    line = LinesDecoder(format, None, DecoderOptions(message_bytes=message_bytes))
    for _, chunk in _placed(chunks, 0):
        for piece in chunk.splitlines(keepends=True):
            messages = [*line.feed(_plain(piece))]
            if _LINE_END.search(piece):
                messages += line.close()
                if messages or line.syntax:
                    return line.syntax
                line = LinesDecoder(format, None, DecoderOptions(message_bytes=message_bytes))
    return None


def _read(
    decoder: LinesDecoder, placed: Iterator[tuple[int, bytes]], end: int, *, continued: bool = False
) -> Iterator[Message]:
    """Yields the messages up to the first delimiter on a line that begins at `end` or after it.

    Args:
        placed: chunks, each with its place in the log.
        continued: whether the log begins before the chunks; then no message is owned without a delimiter before `end`.
    """
    last: int | None = None  # the last delimiter before `end`, once that is reached
    for place, chunk in placed:
        rest = chunk
        if last is None:
            cut = _line_start(chunk, end - place)
            yield from decoder.feed(_plain(chunk[:cut]))
            if cut is None:
                continue
            last, rest = decoder.delimiter, chunk[cut:]
            if continued and not last:
                return
        for line in rest.splitlines(keepends=True):
            yield from decoder.feed(_plain(line))
            if decoder.delimiter != last:
                return
    yield from decoder.close()


def _line_start(chunk: bytes, place: int) -> int | None:
    """Returns the start of the first line of a chunk that begins at a place or after it, or None."""
    line_end = _LINE_END.search(chunk, max(place - 1, 0))
    return line_end.end() if line_end else None


def _from_line(placed: Iterator[tuple[int, bytes]], end: int) -> Iterator[tuple[int, bytes]]:
    """Yields the chunks after the first line end; nothing if that is at `end` or after it."""
    for place, chunk in placed:
        if (line_end := _LINE_END.search(chunk)) is None:
            continue
        place += line_end.end()
        if place < end:
            yield place, chunk[line_end.end() :]
            yield from placed
        return


def _placed(chunks: Iterable[bytes], place: int) -> Iterator[tuple[int, bytes]]:
    """Yields chunks with their places; none ends within a CRLF, and a missing line end is added to the last line."""
    held, lacks_end = b"", True
    for chunk in chunks:
        lacks_end = (
            not chunk.endswith(b"\n") if chunk else lacks_end
        )  # a second line end would count towards the size of a message
        chunk = held + chunk
        held = b"\r" if chunk.endswith(b"\r") else b""
        if held:
            chunk = chunk[:-1]
        yield place, chunk
        place += len(chunk)
    if lacks_end:
        yield place, held + b"\n"


def _plain(data: bytes) -> bytes:
    """Returns data with LF for each line end: after a CR, a decoder would wait for the next byte."""
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data

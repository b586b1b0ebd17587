"""Detects answers to CONSTRUCT or DESCRIBE that have the maximal number of triples that the source sends.

Virtuoso truncates such an answer at its `ResultSetMaxRows` plus one, with status 200 and no header. Only the number of
triples indicates truncation; a complete result of this size looks the same. Bytes pass unchanged, and the copy for
counting is limited.
"""

from __future__ import annotations

import zlib
from asyncio import get_running_loop
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor
from contextlib import aclosing
from itertools import islice
from typing import Final

import pyoxigraph as ox

from construct_messages.rdf.formats.documents import DocumentFormat, find_document_format

COUNTED_BYTES: Final = 8 << 20
"""The maximal size of an answer that is parsed in order to count its triples; larger ones are not counted. Formats
of lines are counted by lines.
"""

CODINGS: Final = ("gzip", "x-gzip", "deflate", "identity")
"""The content codings of answers that are counted."""

_PIECE: Final = 1 << 16  # bytes that are decompressed together
# an arbitrary base, because only the number of triples matters
_BASE: Final = "http://example.org/"


def counted_codings(accept_encoding: str) -> str:
    """Returns the value of Accept-Encoding (RFC 9110, section 12.5.3) with only the codings that can be counted.

    >>> counted_codings("zstd, br;q=0.9, gzip;q=0.8, *;q=0.1"), counted_codings("br")
    ('gzip;q=0.8', 'identity')
    """
    parts = (part.strip() for part in accept_encoding.split(","))
    return (
        ", ".join(part for part in parts if part.partition(";")[0].strip().lower() in CODINGS)
        or "identity"
    )


async def watched(
    chunks: AsyncGenerator[bytes],
    cap: int,
    content_type: str,
    coding: str | None,
    *,
    met: Callable[[int], None],
    refuses: bool,
    executor: Executor,
) -> AsyncGenerator[bytes]:
    """Yields the body of an answer, and counts its triples.

    Args:
        chunks: the body; closed at the end.
        cap: an answer with this number of triples, or one more, may be truncated.
        content_type: the content type of the answer; only RDF formats are counted.
        coding: its content coding.
        met: called with the number of triples if it reaches the cap; its errors are raised here.
        refuses: whether `met` raises. Each piece is then held back until the next one arrives, so that no client
            considers the answer complete.
        executor: threads for parsing.
    """
    format = find_document_format(content_type)
    is_counted = format is not None and (coding or "identity").strip().lower() in CODINGS
    counter = _Counter(format, cap + 2, coding) if format is not None and is_counted else None
    held = b""
    async with aclosing(chunks):
        async for chunk in chunks:
            if counter is not None:
                counter.feed(chunk)
            ready, held = (held, chunk) if refuses else (chunk, b"")
            if ready:
                yield ready
        if counter is not None:
            count = await get_running_loop().run_in_executor(executor, counter.count)
            if count in (cap, cap + 1):
                met(count)
        if held:
            yield held


class _Counter:
    """Counts the triples of one document, up to a number of them."""

    def __init__(self, format: DocumentFormat, most: int, coding: str | None) -> None:
        self._format, self._most = format, most
        is_packed = (coding or "identity").strip().lower() != "identity"
        self._inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32) if is_packed else None
        self._kept = bytearray()
        self._lines = 0  # lines of pieces that were not kept
        self._is_known = True

    def feed(self, data: bytes) -> None:
        """Adds the next bytes."""
        try:
            while data and self._is_known:
                piece = data if self._inflater is None else self._inflater.decompress(data, _PIECE)
                data = b"" if self._inflater is None else self._inflater.unconsumed_tail
                self._add(piece)
                if self._inflater is not None and self._inflater.unused_data:
                    self._is_known = False  # data after the end, which the client must judge
        except zlib.error:
            self._is_known = False

    def _add(self, piece: bytes) -> None:
        self._kept += piece
        if len(self._kept) > COUNTED_BYTES or (self._format.line_based and self._lines):
            end = self._kept.rfind(b"\n") + 1
            self._lines += self._kept.count(b"\n")
            del self._kept[:end]
            self._is_known = self._format.line_based and len(self._kept) <= COUNTED_BYTES
        if not self._is_known:
            self._kept.clear()

    def count(self) -> int | None:
        """Returns the number of triples; None: it is unknown, because the document is too large or damaged."""
        if not self._is_known:
            return None
        quads = ox.parse(
            bytes(self._kept), format=self._format.parsed_as, base_iri=_BASE, lenient=True
        )
        try:
            return self._lines + sum(1 for _ in islice(quads, self._most))
        except SyntaxError:
            return None

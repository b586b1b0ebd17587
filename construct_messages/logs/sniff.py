"""Detects the format of a log by its first bytes, if neither a name nor a media type determines it.

The record of a format has its beginning; its decoder checks whether the log is well-formed. The result does not depend
on the sizes of chunks: it is None until it is certain, and then stays the same for every longer beginning. If several
formats match, the most general one is chosen: N-Quads for N-Triples, TriG for Turtle.
"""

from __future__ import annotations

import re
from typing import Final

import pyoxigraph as ox

from construct_messages.logs import sniffer_of
from construct_messages.rdf.formats import FORMATS, N_QUADS, READ, TRIG, Format

SNIFF_BYTES: Final = 1 << 12
"""The number of bytes to examine if the first statement is not sufficient."""
# the maximal size of lines without a statement, and of the first one with one
_MOST_BYTES: Final = 1 << 20

# the possible beginning: a byte order mark, white space and, in text, comments
_FRONT: Final = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s++|#[^\r\n]*+[\r\n])*+")
_BEGINNINGS: Final = tuple(
    (format, re.compile(format.beginning)) for format in READ if format.beginning is not None
)
_MEMBER_NAME: Final = re.compile(rb"[^\0-\x20<>\"{}|^`]++(?:\0.*+)?", re.DOTALL)
_STATEMENT: Final = re.compile(rb"[ \t\r]*+[^\s#]")
# a line that is not a statement, but may be between statements of N-Quads
_DELIMITER: Final = re.compile(
    rb"[ \t]*+(?:MESSAGE|VERSION[ \t]*+[\"'][^\"'\r\n]*+[\"'])[ \t]*+(?:#.*+)?\r?\n?\Z"
)


def sniff(head: bytes, *, whole: bool = False) -> Format | None:
    """Returns the format of a log that begins with `head`; None: more bytes are needed.

    >>> [sniff(head).name for head in (b'{"@id": "urn:a"}', b"--- {}", b"<rdf:RDF xmlns=", b"PREFIX : <urn:>")]
    ['NDJSON-LD', 'YAML-LD', 'RDF/XML', 'TriG']
    >>> line = b"<urn:s> <urn:p> <urn:o> <urn:g> ."
    >>> sniff(line), sniff(line, whole=True).name, sniff(b"", whole=True).name
    (None, 'N-Quads', 'TriG')
    """
    results = [(format, is_it(head)) for format in FORMATS if (is_it := sniffer_of(format))]
    for format, begins in results:
        if begins:
            return format
    if not whole and any(begins is None for _, begins in results):
        return None
    front = _FRONT.match(head)
    assert front is not None  # it also matches the empty text
    for format, beginning in _BEGINNINGS:
        if beginning.match(head, front.end()):
            return format
    lines = _statements(head, whole)
    if lines is None:
        return None
    try:
        return N_QUADS if list(ox.parse(lines, format=ox.RdfFormat.N_QUADS)) else TRIG
    except SyntaxError:
        return TRIG


def _statements(head: bytes, whole: bool) -> bytes | None:
    """Returns the lines with statements that begin in the first `SNIFF_BYTES`, at least one; None: more bytes are
    needed.
    """
    found: list[bytes] = []
    place = 0
    while place < (SNIFF_BYTES if found else _MOST_BYTES):
        end = head.find(b"\n", place) + 1
        if not end:
            if not whole and len(head) - place < _MOST_BYTES:
                return None
            end = len(head)
        line = head[place:end]
        if _STATEMENT.match(line) and not _DELIMITER.match(line):
            found.append(line)
        if end == len(head) and whole:
            break
        place = end
    return b"".join(found)


def is_archive(head: bytes) -> bool | None:
    """Returns whether `head` begins a tar archive (POSIX ustar, including GNU and pax); None: more bytes are needed.

    >>> is_archive(b"0000000000.ttl" + bytes(243) + b"ustar"), is_archive(b"<urn:s>"), is_archive(b"0000000000.t")
    (True, False, None)
    """
    # a member's name with zeros or the next field after it; the first statement of a log has a space or a bracket
    if head and not _MEMBER_NAME.fullmatch(head[:512]):
        return False
    return head[257:262] == b"ustar" if len(head) >= 262 else None

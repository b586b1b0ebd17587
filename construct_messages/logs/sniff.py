"""The format of a log by its first bytes, if neither a name nor a media type determines it.

What a format begins with is in its record; whether the log is well-formed is for its decoder. The answer does not
depend on the sizes of chunks: it is None until it is certain, and then stays the same for every longer beginning. Where
several formats begin so, the one that reads them all is taken: N-Quads for N-Triples, TriG for Turtle.
"""

from __future__ import annotations

import re
from typing import Final

import pyoxigraph as ox

from construct_messages.formats import FORMATS, N_QUADS, READ, TRIG, Format
from construct_messages.logs import sniffer_of

SNIFF_BYTES: Final = 1 << 12
"""How much is looked at if the first statement is not enough."""
_MOST_BYTES: Final = 1 << 20  # of lines without a statement, and of the first with one

# What may come first: a byte order mark, white space and, in text, comments.
_FRONT: Final = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s++|#[^\r\n]*+[\r\n])*+")
_BEGINNINGS: Final = tuple(
    (format, re.compile(format.beginning)) for format in READ if format.beginning is not None
)
_MEMBER_NAME: Final = re.compile(rb"[^\0-\x20<>\"{}|^`]++(?:\0.*+)?", re.DOTALL)
_STATEMENT: Final = re.compile(rb"[ \t\r]*+[^\s#]")
# a line that is not N-Quads, but may be between its statements
_DELIMITER: Final = re.compile(
    rb"[ \t]*+(?:MESSAGE|VERSION[ \t]*+[\"'][^\"'\r\n]*+[\"'])[ \t]*+(?:#.*+)?\r?\n?\Z"
)


def sniff(head: bytes, *, whole: bool = False) -> Format | None:
    """The format of a log that begins with `head`; None: more bytes are needed.

    Args:
        head: unpacked.
        whole: whether nothing follows.

    >>> [sniff(head).name for head in (b'{"@id": "urn:a"}', b"--- {}", b"<rdf:RDF xmlns=", b"PREFIX : <urn:>")]
    ['NDJSON-LD', 'YAML-LD', 'RDF/XML', 'TriG']
    >>> line = b"<urn:s> <urn:p> <urn:o> <urn:g> ."
    >>> sniff(line), sniff(line, whole=True).name, sniff(b"", whole=True).name
    (None, 'N-Quads', 'TriG')
    """
    told = [(format, is_it(head)) for format in FORMATS if (is_it := sniffer_of(format))]
    for format, begins in told:
        if begins:
            return format
    if not whole and any(begins is None for _, begins in told):
        return None
    front = _FRONT.match(head)
    assert front is not None  # it matches nothing as well
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
    """The lines that begin among the first `SNIFF_BYTES` and hold a statement, at least one; None: they go on."""
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
    """Whether `head` begins a tar archive (POSIX ustar, which GNU's and pax's are); None: more bytes are needed.

    >>> is_archive(b"0000000000.ttl" + bytes(243) + b"ustar"), is_archive(b"<urn:s>"), is_archive(b"0000000000.t")
    (True, False, None)
    """
    # a member's name with zeros or the next field after it; a log has a blank or a bracket in its first statement
    if head and not _MEMBER_NAME.fullmatch(head[:512]):
        return False
    return head[257:262] == b"ustar" if len(head) >= 262 else None

"""The format of a log by its first bytes, where neither a name nor a media type says it.

What is looked for is listed here; whether the log is well-formed is for its decoder. The answer does not depend on how
many bytes come at once: it is None until it can be told, and then stays the same for every longer beginning. Where a
beginning is of several formats, the one that reads them all is taken: N-Quads for N-Triples, TriG for Turtle.
"""

from __future__ import annotations

import re
from typing import Final

import pyoxigraph as ox

from construct_messages.formats import JELLY, N_QUADS, NDJSON_LD, RDF_XML, TRIG, YAML_LD, Format

SNIFF_BYTES: Final = 1 << 12
"""How much is looked at where the first statement does not tell."""
_MOST_BYTES: Final = 1 << 20  # of lines without a statement, and of the first with one

# What stands in front: a byte order mark, blanks and, if it is text, comments.
_FRONT: Final = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s++|#[^\r\n]*+[\r\n])*+")
# The first that fits. No statement of RDF begins with a literal, a hyphen or a percent sign, an IRI holds no blank, and
# the names in a JSON object are in double quotes.
_BEGINNINGS: Final[tuple[tuple[Format, re.Pattern[bytes]], ...]] = (
    (YAML_LD, re.compile(rb"---|%(?:YAML|TAG)|[\"']")),
    (NDJSON_LD, re.compile(rb"\{\s*+[\"}]|\[\s*+\{")),
    (RDF_XML, re.compile(rb"<(?:\?xml|!--|!DOCTYPE|[A-Za-z_][\w.\-]*+(?::[\w.\-]++)?)\s")),
    (TRIG, re.compile(rb"@?(?:prefix|base)\s|@version\s|@message\s", re.IGNORECASE)),
)
_MEMBER_NAME: Final = re.compile(rb"[^\0-\x20<>\"{}|^`]++(?:\0.*+)?", re.DOTALL)
_STATEMENT: Final = re.compile(rb"[ \t\r]*+[^\s#]")
# a line that is no N-Quads, but may stand between its statements
_DELIMITER: Final = re.compile(rb"[ \t]*+(?:MESSAGE|VERSION[ \t]*+[\"'][^\"'\r\n]*+[\"'])[ \t]*+(?:#.*+)?\r?\n?\Z")


def sniff(head: bytes, *, whole: bool = False) -> Format | None:
    """The format of a log that begins with `head`; None: it takes more bytes to tell.

    Args:
        head: unpacked.
        whole: whether nothing follows.

    >>> [sniff(head).name for head in (b'{"@id": "urn:a"}', b"--- {}", b"<rdf:RDF xmlns=", b"PREFIX : <urn:>")]
    ['NDJSON-LD', 'YAML-LD', 'RDF/XML', 'TriG']
    >>> line = b"<urn:s> <urn:p> <urn:o> <urn:g> ."
    >>> sniff(line), sniff(line, whole=True).name, sniff(b"", whole=True).name
    (None, 'N-Quads', 'TriG')
    """
    jelly = _is_jelly(head)
    if jelly:
        return JELLY
    if jelly is None and not whole:
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
    """Whether `head` begins a tar archive (POSIX ustar, which GNU's and pax's are); None: too few bytes to tell.

    >>> is_archive(b"0000000000.ttl" + bytes(243) + b"ustar"), is_archive(b"<urn:s>"), is_archive(b"0000000000.t")
    (True, False, None)
    """
    # a member's name with zeros or the next field behind; a log has a blank or a bracket in its first statement
    if head and not _MEMBER_NAME.fullmatch(head[:512]):
        return False
    return head[257:262] == b"ustar" if len(head) >= 262 else None


def _is_jelly(head: bytes) -> bool | None:
    """Whether `head` begins with a frame, delimited or not, whose first row is stream options; None: not told yet."""
    empty = len(head) - len(head.lstrip(b"\0"))  # delimited frames without a row
    length = _varint(head, empty)
    delimited = _is_options(head, length[1]) if length else None if len(head) < empty + 10 else False
    answers = (_is_options(head, 0), delimited)
    return True if True in answers else None if None in answers else False


def _is_options(head: bytes, place: int) -> bool | None:
    if head[place : place + 1] not in (b"\n", b""):  # field 1 of a frame: a row
        return False
    row = _varint(head, place + 1)
    if row is None:
        return None if len(head) < place + 10 else False
    length, place = row
    if head[place : place + 1] not in (b"\n", b""):  # field 1 of a row: options
        return False
    options = _varint(head, place + 1)
    if options is None:
        return None if len(head) < place + 10 else False
    size, start = options
    if start + size != place + length:
        return False
    if b"\x10" in head[start : start + size]:  # field 2 of options: the physical type, which none can do without
        return True
    return None if len(head) < start + size else False


def _varint(head: bytes, place: int) -> tuple[int, int] | None:
    """The number at a place, and the place behind it; None: it does not end."""
    value = 0
    for index, byte in enumerate(head[place : place + 10]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, place + index + 1
    return None

"""Detects Jelly logs: a frame whose first row is stream options.

Jelly 1.1, "Delimited variant of Jelly" and "Stream options" (rdf.proto). Nothing is decoded beyond the options' length.
"""

from __future__ import annotations


def begins_stream(head: bytes) -> bool | None:
    """Returns whether `head` begins with a frame, delimited or not, whose first row is stream options; None: more bytes
    are needed.

    >>> begins_stream(bytes.fromhex("0a060a04100170010000")), begins_stream(b"<urn:s>"), begins_stream(b"\\n")
    (True, False, None)
    """
    empty = len(head) - len(head.lstrip(b"\0"))  # delimited frames without a row
    length = _varint(head, empty)
    delimited = (
        _is_options(head, length[1]) if length else None if len(head) < empty + 10 else False
    )
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
    if (
        b"\x10" in head[start : start + size]
    ):  # field 2 of options: the physical type, which is required
        return True
    return None if len(head) < start + size else False


def _varint(head: bytes, place: int) -> tuple[int, int] | None:
    """Returns the number at a place, and the place after it; None: it is truncated."""
    value = 0
    for index, byte in enumerate(head[place : place + 10]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, place + index + 1
    return None

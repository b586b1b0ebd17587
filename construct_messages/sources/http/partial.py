"""Detects partial responses by their status and headers (RFC 9110; Virtuoso's own headers).

Reads no body: `results/completeness.py` checks the result itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from construct_messages.regex import regex
from construct_messages.results.completeness import tells_of_a_part

_RANGE: Final = regex(r"[!-~]+ ([0-9]{1,20})-([0-9]{1,20})/([0-9]{1,20})")


def partial_reason(status: int, header: Callable[[str], str | None]) -> str | None:
    """Returns the header that marks a response as partial; the empty string for the status alone; else None.

    Partial responses have status 206, a `Content-Range` of less than the whole (RFC 9110, section 14.4), or Virtuoso's
    header for a result that ran out of time.

    >>> partial_reason(200, {"X-SQL-Message": "Returning incomplete results"}.get)
    'Returning incomplete results'
    >>> partial_reason(200, {"Content-Range": "bytes 0-99/100"}.get)
    """
    state, message, range = (
        header("X-SQL-State"),
        header("X-SQL-Message") or "",
        header("Content-Range"),
    )
    if status == 206 or (status == 200 and (state or (message and tells_of_a_part(message)))):
        return message or state or ""
    if status == 200 and range is not None and not _is_whole(range):
        return f"Content-Range: {range}"
    return None


def _is_whole(content_range: str) -> bool:
    match = _RANGE.fullmatch(content_range.strip())
    return match is not None and int(match[1]) == 0 and int(match[2]) + 1 == int(match[3])

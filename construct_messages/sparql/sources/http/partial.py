"""Detects partial responses by their status and headers (RFC 9110; Virtuoso's own headers), and reads engines' errors.

`sparql/results/completeness.py` checks the result itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from construct_messages.rdf.regex import regex
from construct_messages.sparql.client.responses import OK
from construct_messages.sparql.results.completeness import tells_of_a_part

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
    if status == 206 or (status in OK and (state or (message and tells_of_a_part(message)))):
        return message or state or ""
    if status in OK and range is not None and not _is_whole(range):
        return f"Content-Range: {range}"
    return None


def _is_whole(content_range: str) -> bool:
    match = _RANGE.fullmatch(content_range.strip())
    return match is not None and int(match[1]) == 0 and int(match[2]) + 1 == int(match[3])


# what engines append to a result that they cannot finish: QLever; Blazegraph, with the query
_TAILS: Final = regex(r"!!!!>># An error has occurred|SPARQL-QUERY: queryStr=")
_QLEVER: Final = "The error message was:"
# of Java's exceptions, each within the one before: the last one says the reason
_WRAPPERS: Final = regex(
    r"(?:SPARQL-QUERY: queryStr=)?\s*(?:[\w.$]+(?:Exception|Error): (?=[\w.$]+(?:Exception|Error)\b))*"
)


def explained_at(body: str) -> int | None:
    """Returns the place in the end of a body where an engine begins to say why the result ends there, or None.

    >>> explained_at('{"results": {"bindings": [ !!!!>># An error has occurred while exporting the query result.')
    27
    """
    found = _TAILS.search(body)
    return None if found is None else found.start()


def reason_of(error: str) -> str:
    r"""Returns what a user needs of an engine's error: no frames of a stack, and no exceptions around another one.

    >>> reason_of("java.util.ExecutionException: a.b.QueryTimeoutException: Query deadline is expired.\n\tat a.b.C")
    'a.b.QueryTimeoutException: Query deadline is expired.'
    """
    reason = error.partition(_QLEVER)[2] or error
    reason = reason.partition("\n\tat ")[0]
    match = _WRAPPERS.match(reason)
    assert match is not None  # it can be empty
    return reason[match.end() :].strip() or error

"""Detects members by which various servers mark a result as failed or partial.

The results formats define no such member, and the protocol no status, so the members are detected by their words. Reads
no bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from construct_messages.rdf.errors import IncompleteResult, shown

_FAILURES: Final = frozenset(("error", "errors", "exception", "exceptions"))
_DEPTH_OF_FAILURES: Final = 2  # deeper members named error may be about something else
_OF_A_RESULT: Final = r"(?:is|are|was|were|has|have|results?|rows?|bindings|solutions|data)*"
_PARTIAL: Final = re.compile(
    rf"{_OF_A_RESULT}(?:partial|incomplete|truncated|timedout|capped|cutoff|more){_OF_A_RESULT}"
)
_WHOLE: Final = re.compile(rf"{_OF_A_RESULT}(?:complete|completed|exhaustive){_OF_A_RESULT}")
_STATE: Final = re.compile(r"status|state|warnings?")
_SAID: Final = re.compile(
    r"\b(?:incomplete|partial|truncat|timed[ _-]?out|cancel+ed)", re.IGNORECASE
)
_NO: Final = ("", "0", "false", "no", "none", "null")


def announces_partial_result(text: str) -> bool:
    """Whether a text of a server means that a result is incomplete.

    >>> announces_partial_result("RC...: Returning incomplete results, query interrupted by result timeout.")
    True
    >>> announces_partial_result("the query was completed")
    False
    """
    return _SAID.search(text) is not None


def check_members(kind: str, members: Mapping[str, Any]) -> None:
    """Raises `IncompleteResult` if a member beside the solutions, at any depth, marks a result as failed or incomplete.

    >>> check_members("JSON", {"head": {}, "meta": {"partial": False, "complete": True}})
    >>> check_members("JSON", {"results": {"hasMore": True}})
    Traceback (most recent call last):
    construct_messages.rdf.errors.IncompleteResult: the JSON result is declared incomplete: hasMore: true
      hint: ask for less, or give the endpoint more time
    """
    for depth, name, value in _members(members):
        if depth < _DEPTH_OF_FAILURES and name.lower() in _FAILURES and value:
            raise IncompleteResult(f"the {kind} result reports a failure: {_quoted(name, value)}")
        if _says_incomplete(re.sub(r"[^a-z]", "", name.lower()), value):
            raise IncompleteResult(
                f"the {kind} result is declared incomplete: {_quoted(name, value)}",
                hint="ask for less, or give the endpoint more time",
            )


def _says_incomplete(name: str, value: Any) -> bool:
    if _STATE.fullmatch(name):
        return announces_partial_result(str(value))
    if _PARTIAL.fullmatch(name):
        return _is_yes(value)
    return (
        _WHOLE.fullmatch(name) is not None
        and not isinstance(value, dict | list)
        and not _is_yes(value)
    )


def _is_yes(value: Any) -> bool:
    return value.strip().lower() not in _NO if isinstance(value, str) else bool(value)


def _quoted(name: str, value: Any) -> str:
    import json  # imported here because results of other formats do not need it

    return f"{shown(name)}: {shown(json.dumps(value))}"


def _members(members: Mapping[str, Any]) -> Iterator[tuple[int, str, Any]]:
    """The members of an object and of all nested objects, each with its depth."""
    objects = [(0, members)]
    while objects:
        depth, inner = objects.pop()
        for name, value in inner.items():
            yield depth, name, value
            if isinstance(value, dict):
                objects.append((depth + 1, value))

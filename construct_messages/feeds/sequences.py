"""Checks sequences of elements from servers: their form, and their order. No I/O."""

from __future__ import annotations

from typing import Final

from construct_messages.rdf.errors import SourceError

_DIGITS: Final = 20  # more digits than sequences have
_GONE: Final = 410


def is_sequence(text: str) -> bool:
    """Returns whether a text is the sequence of an element.

    >>> is_sequence("12"), is_sequence("1.2"), is_sequence("")
    (True, False, False)
    """
    return text.isascii() and text.isdigit() and len(text) < _DIGITS


def check_next(stream: str, last: int, sequence: int) -> None:
    """Raises `SourceError` (410, as for elements that retention removed) if elements are missing between two sequences.

    >>> check_next("https://example.org/streams/a", 7, 8)
    >>> check_next("https://example.org/a", 7, 10)
    Traceback (most recent call last):
    construct_messages.rdf.errors.SourceError: https://example.org/a: elements 8 to 9 are missing between 7 and 10
      hint: they may have been removed before they were read; begin again after 9
    """
    if sequence > last + 1:
        missing = (
            f"elements {last + 1} to {sequence - 1} are"
            if sequence > last + 2
            else f"element {last + 1} is"
        )
        raise SourceError(
            f"{stream}: {missing} missing between {last} and {sequence}",
            status=_GONE,
            hint=f"they may have been removed before they were read; begin again after {sequence - 1}",
        )


def same_stream(stream: str, known: str, answered: str) -> str:
    """Returns the identity of a stream, which an answer may repeat; empty: unknown.

    Raises `SourceError` (410) if the answer is of another stream, so that the position is meaningless.

    >>> same_stream("https://example.org/streams/a", "", "7"), same_stream("https://example.org/streams/a", "7", "")
    ('7', '7')
    """
    if known and answered and known != answered:
        raise SourceError(
            f"{stream} is another stream than the one that was read before",
            status=_GONE,
            hint="it was deleted and created again: begin again, without the state",
        )
    return answered or known


def begin_after(stream: str, sequence: int | None, after: int) -> int:
    """Returns the sequence after which an answer begins; the server chooses it if none was requested.

    Raises `SourceError` if the answer begins at another position than requested.

    >>> begin_after("https://example.org/streams/a", None, 7)
    7
    """
    if sequence is None:
        return after
    check_next(stream, sequence, after + 1)
    if after < sequence:
        raise SourceError(f"{stream} begins after element {after}, and not after {sequence}")
    return sequence

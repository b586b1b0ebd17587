"""Limits the IRIs that declarations of a base and of prefixes expand to, before a parser reads them.

A relative IRI in them is as long as the base before it, so a chain of short declarations takes quadratic time and
memory. RDF 1.2 Turtle, section 2.4.
"""

from __future__ import annotations

import re
from typing import Final

from construct_messages.rdf.errors import LimitExceeded

MOST_BASE: Final = 1 << 11
"""The maximal length of a base that messages share, in characters."""

_TIMES: Final = 16
_LEAST: Final = 1 << 16
_PART: Final = re.compile(
    rb'''"""(?:[^"\\]++|\\.|"{1,2}+(?!"))*+"""|"(?:[^"\\\r\n]++|\\.)*+"'''
    rb"""|'''(?:[^'\\]++|\\.|'{1,2}+(?!'))*+'''|'(?:[^'\\\r\n]++|\\.)*+'"""
    rb"""|\#[^\r\n]*+|(?P<keyword>\b(?:base|prefix)\b)|<(?P<iri>[^<>"{}|^`\x00-\x20]*+)>""",
    re.DOTALL | re.IGNORECASE,
)
_ABSOLUTE: Final = re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*+:")


def check_declarations(text: bytes, base: str | None, number: int) -> None:
    """Rejects declarations whose IRIs are much longer than their text.

    Args:
        text: a message in Turtle or TriG.
        base: the base of its first relative IRI.
        number: the number of the message, from 1.

    Raises:
        LimitExceeded: their IRIs are 16 times as long as the text, and more than 64 KiB, or the base is too long.

    >>> check_declarations(b"BASE <http://example.org/> PREFIX : <#>", None, 1)
    >>> check_declarations(b"BASE <a/>\\n" * 1000, "http://example.org/", 1)
    Traceback (most recent call last):
    ...
    construct_messages.rdf.errors.LimitExceeded: message 1 declares IRIs of more than 160000 characters
      hint: write the IRIs of BASE and PREFIX in full
    """
    length = len(base) if base else 0
    if length > MOST_BASE:
        raise LimitExceeded(
            f"the base of message {number} is longer than {MOST_BASE} characters",
            hint="write the IRIs of BASE in full, and shorter",
        )
    most = max(_LEAST, _TIMES * len(text))
    lower = text.lower()
    bases = lower.count(b"base")
    # an upper bound of the result, which is small for nearly all messages
    if (bases + lower.count(b"prefix")) * (length + (len(text) if bases else 0)) <= most:
        return
    keyword = None
    for part in _PART.finditer(text):
        if part["keyword"]:
            keyword = part["keyword"].lower()
        elif part["iri"] is not None and keyword:
            made = len(part["iri"]) + (0 if _ABSOLUTE.match(part["iri"]) else length)
            most -= made
            if most < 0:
                raise LimitExceeded(
                    f"message {number} declares IRIs of more than {max(_LEAST, _TIMES * len(text))} characters",
                    hint="write the IRIs of BASE and PREFIX in full",
                )
            if keyword == b"base":
                length = made
            keyword = None

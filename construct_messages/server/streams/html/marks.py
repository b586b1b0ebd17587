"""Marks for invisible characters and for those that change the direction of text, as views show them.

Unicode Technical Report 36, section 2 (visual security): a text must not look like another one. The page does the same
(`pages/static/marks.js`), and one table of cases tests both.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final, NamedTuple

_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0"
    "\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e01ff]|\\A +| +\\Z"
)
_JOINERS: Final = "\u200c\u200d"
_NAMES: Final = {
    "\x85": "next line",
    "\u2028": "line separator",
    "\u2029": "paragraph separator",
    "\ufeff": "byte order mark",
}


class Piece(NamedTuple):
    """A part of a text.

    Args:
        text: the text to show.
        name: the name of the replaced character; empty: the text is shown unchanged.
    """

    text: str
    name: str = ""


def pieces(text: str) -> list[Piece]:
    """Returns the parts of a text, with separate parts for marks.

    >>> pieces("a\\u202eb")
    [Piece(text='a', name=''), Piece(text='U+202E', name='U+202E right-to-left override'), Piece(text='b', name='')]
    """
    return list(_pieces(text))


def _pieces(text: str) -> Iterator[Piece]:
    shown = 0
    for found in _HIDDEN.finditer(text):
        hidden = found[0]
        if hidden in _JOINERS and _joins(text, found.start()):
            continue
        if found.start() > shown:
            yield Piece(text[shown : found.start()])
        shown = found.end()
        if hidden.startswith(" "):
            name = "a space" if len(hidden) == 1 else f"{len(hidden):,} spaces"
            yield Piece("␠" * min(len(hidden), 3), name)
        else:
            code = f"U+{ord(hidden):04X}"
            name = _NAMES.get(hidden) or unicodedata.name(hidden, "").lower()
            yield Piece(code, f"{code} {name}".rstrip())
    if shown < len(text):
        yield Piece(text[shown:])


def _joins(text: str, place: int) -> bool:
    """Returns whether a joiner is between letters or emoji, where it is a normal part of the text."""
    before, after = text[place - 1 : place], text[place + 1 : place + 2]
    return (
        before != ""
        and after != ""
        and unicodedata.category(before)[0] in "LMS"
        and unicodedata.category(after)[0] in "LS"
    )

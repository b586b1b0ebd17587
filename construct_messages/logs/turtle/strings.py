r"""Strings of plain Turtle as literals: cut from quote to quote, which is quick, and checked afterwards.

An expression that looks at each character of a string takes ten times as long as one that looks for the next quote.
What is cut so is canonical already if it has no control character, and no escape but those of canonical form.

RDF 1.2 Turtle, section 6.4 (escapes); RDF 1.2 N-Triples, section 4 (canonical form).
"""

from __future__ import annotations

import re
from typing import Final

from construct_messages.errors import TermError
from construct_messages.terms import literal, unescape
from construct_messages.terms.grammar import CANONICAL_ECHAR, ECHAR, UCHAR

QUICK_STRING: Final = r'"[^"]*+(?:(?<=\\)"[^"]*+)*+"'
"""From a quote to the next that no backslash stands before."""

_ESCAPE: Final = rf"\\[{ECHAR}]|{UCHAR}"
_SHORT: Final = rf'"(?:[^"\\\r\n]++|{_ESCAPE})*+"'
ANY_STRING: Final = rf'"""(?:[^"\\]++|{_ESCAPE}|"{{1,2}}+(?!"))*+"""|{_SHORT}'
"""A well-formed string in three quotes or in one."""

_is_short_string: Final = re.compile(_SHORT).fullmatch
_CONTROLS: Final = bytes(range(0x20)) + b"\x7f"
_OTHER_ESCAPE: Final = re.compile(rf"\\(?![{CANONICAL_ECHAR}])")


def make_canonical(strings: list[str | None], stop: int) -> int:
    r"""Makes strings canonical, in place; returns the index of the first that is not well-formed, or `stop`.

    Args:
        strings: as `QUICK_STRING` cuts them, each with its language where that is canonical already.
        stop: how many are looked at.

    >>> strings = ["\"a\"", None, r'"\u0061\""@en', r'"\q"']
    >>> make_canonical(strings, 4), strings[2]
    (3, '"a\\""@en')
    """
    together = "".join(filter(None, strings))
    is_rare = _has_rare(together)
    if is_rare or "\\" in together:
        for index, string in enumerate(strings[:stop]):
            if string is None:
                continue
            if (is_rare and _has_rare(string)) or ("\\" in string and not _is_canonical(string)):
                end = string.rindex('"') + 1
                made = literal_of(string[:end]) if _is_short_string(string, 0, end) else None
                if made is None:
                    return index
                strings[index] = made + string[end:]
    return stop


def literal_of(token: str) -> str | None:
    r"""The literal of a well-formed string between one quote or three; None: it has an escape of no character.

    >>> literal_of(r'"\u0061"'), literal_of(r'"\uD800"')
    ('"a"', None)
    """
    quotes = 3 if token.startswith('"""') else 1
    try:
        return literal(unescape(token[quotes:-quotes]))
    except TermError:
        return None


def _has_rare(text: str) -> bool:
    """Whether a text has a character that canonical form escapes, other than a quote or a backslash."""
    data = text.encode()
    return len(data.translate(None, _CONTROLS)) < len(data) or "\ufffe" in text or "\uffff" in text


def _is_canonical(literal: str) -> bool:
    """Whether a literal without rare characters has canonical escapes only, and a quote in no other place."""
    rest = literal.replace(r"\\", "").replace(r"\"", "")
    return rest.find('"', 1) == rest.rindex('"') and not _OTHER_ESCAPE.search(rest)

r"""Converts strings of plain Turtle to literals: splits them from quote to quote, and checks them afterwards.

An expression that examines each character of a string takes ten times as long as one that searches the next quote. The
result is canonical if it has no control characters, and only the escapes of canonical form.

RDF 1.2 Turtle, section 6.4 (escapes); RDF 1.2 N-Triples, section 4 (canonical form).
"""

from __future__ import annotations

import re
from typing import Final

from construct_messages.rdf.errors import TermError
from construct_messages.rdf.terms import literal, unescape
from construct_messages.rdf.terms.grammar import CANONICAL_ECHAR, ECHAR, UCHAR

QUICK_STRING: Final = r'"[^"]*+(?:(?<=\\)"[^"]*+)*+"'
"""From a quote to the next one without a backslash before it."""

_ESCAPE: Final = rf"\\[{ECHAR}]|{UCHAR}"
_SHORT: Final = rf'"(?:[^"\\\r\n]++|{_ESCAPE})*+"'
ANY_STRING: Final = rf'"""(?:[^"\\]++|{_ESCAPE}|"{{1,2}}+(?!"))*+"""|{_SHORT}'
"""A well-formed string in three quotes or in one."""

_is_short_string: Final = re.compile(_SHORT).fullmatch
_CONTROLS: Final = bytes(range(0x20)) + b"\x7f"
_OTHER_ESCAPE: Final = re.compile(rf"\\(?![{CANONICAL_ECHAR}])")


def make_canonical(strings: list[str | None], stop: int) -> int:
    r"""Makes strings canonical, in place; returns the index of the first malformed one, or `stop`.

    Args:
        strings: the matches of `QUICK_STRING`, each with its language if that is already canonical.
        stop: the number of strings to examine.

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
    r"""Returns the literal of a well-formed string in one quote or three; None: it has an invalid escape.

    >>> literal_of(r'"\u0061"'), literal_of(r'"\uD800"')
    ('"a"', None)
    """
    quotes = 3 if token.startswith('"""') else 1
    try:
        return literal(unescape(token[quotes:-quotes]))
    except TermError:
        return None


def _has_rare(text: str) -> bool:
    """Returns whether a text has a character that canonical form escapes, other than a quote or a backslash."""
    data = text.encode()
    return len(data.translate(None, _CONTROLS)) < len(data) or "\ufffe" in text or "\uffff" in text


def _is_canonical(literal: str) -> bool:
    """Returns whether a literal without rare characters only has canonical escapes, and no other quotes."""
    rest = literal.replace(r"\\", "").replace(r"\"", "")
    return rest.find('"', 1) == rest.rindex('"') and not _OTHER_ESCAPE.search(rest)

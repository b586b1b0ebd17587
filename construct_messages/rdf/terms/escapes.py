"""Escapes in the text of literals and IRIs: writes those of canonical N-Triples, and reads all.

RDF 1.2 N-Triples, sections 4 (canonical form) and 7 (grammar).
"""

from __future__ import annotations

import re
from typing import Final

from construct_messages.rdf.errors import TermError
from construct_messages.rdf.terms.grammar import ECHAR, HEX, NEVER_PLAIN, NO_XML

_SHORT_ESCAPES: Final = {
    "\\": "\\\\",  # first: the others add backslashes
    "\t": "\\t",
    "\b": "\\b",
    "\n": "\\n",
    "\r": "\\r",
    "\f": "\\f",
    '"': '\\"',
}
# canonical N-Triples also escapes characters that XML 1.1 does not have
_LONG_ESCAPES: Final = str.maketrans(
    {chr(c): f"\\u{c:04X}" for c in (*range(0x20), 0x7F, 0xFFFE, 0xFFFF)}
)
_AT_ONCE: Final = 1 << 16  # characters
NEEDS_ESCAPE: Final = re.compile(f"[{NEVER_PLAIN}]|[{NO_XML}]")
"""Finds the characters in the text of a literal that canonical N-Triples escapes."""

_UNESCAPE: Final = re.compile(rf"\\(?:u({HEX}{{4}})|U({HEX}{{8}})|([{ECHAR}]))|\\")
_SHORT_UNESCAPES: Final = {escape[1]: char for char, escape in _SHORT_ESCAPES.items()} | {"'": "'"}


def escape(text: str) -> str:
    r"""Returns the characters of a literal as canonical N-Triples writes them between its quotes.

    >>> print(escape('a "b"\n'))
    a \"b\"\n
    """
    if len(text) <= _AT_ONCE:
        return _escaped(text)
    # a part at a time, so that other threads can run during a long text
    parts = (text[start : start + _AT_ONCE] for start in range(0, len(text), _AT_ONCE))
    return "".join(map(_escaped, parts))


def _escaped(text: str) -> str:
    # most have few escapes, and searching for each is faster than checking each character
    for character, escape in _SHORT_ESCAPES.items():
        text = text.replace(character, escape)
    return text if text.isprintable() else text.translate(_LONG_ESCAPES)


def unescape(text: str) -> str:
    r"""Decodes the escapes of SPARQL, Turtle and N-Triples; the inverse of `escape`.

    >>> unescape(r'caf\u00E9')
    'café'
    """
    if "\\" not in text:
        return text

    def one(match: re.Match[str]) -> str:
        four, eight, short = match.groups()
        if short is not None:
            return _SHORT_UNESCAPES[short]
        if four is None and eight is None:
            raise TermError(
                f"unknown escape {text[match.start() : match.start() + 2]!r} in {text!r}",
                kind="an escape of no character",
            )
        code = int(four or eight, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise TermError(f"{match.group()} is not a character", kind="an escape of no character")
        return chr(code)

    return _UNESCAPE.sub(one, text)

r"""The terminals of N-Triples as regular expressions, from which readers build their own.

Each is a string for Python's `re` without groups. `CANONICAL_…` are of canonical form: they match nearly all terms in
that form and no invalid ones; other terms are left to a parser. They are possessive where that keeps them linear.
Classes of characters are written without brackets; those and single terminals also work in Java
(`spark/quads/malformed.py`). Expressions with many of them are compiled on first use, by `compiled`.

RDF 1.2 N-Triples, sections 4 (canonical form) and 7 (grammar); RFC 3987, section 2.2; RFC 5646, section 2.1.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from construct_messages.errors import TermError

# --- grammar --------------------------------------------------------------------------------------

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

NOT_A_DATATYPE: Final = (f"<{XSD}string>", f"<{RDF}langString>", f"<{RDF}dirLangString>")
"""The datatypes that are not written in canonical form: the first is omitted, the others need a language tag."""

HEX: Final = "[0-9A-Fa-f]"
UCHAR: Final = rf"\\u{HEX}{{4}}|\\U{HEX}{{8}}"
"""An escape of any character by its number; decoders detect those of surrogates."""
ECHAR: Final = r"""tbnrf"'\\"""
"""The characters after the backslash of a short escape."""
CANONICAL_ECHAR: Final = r'tbnrf"\\'
NEVER_PLAIN: Final = r'\x00-\x1f\x7f"\\'
"""The characters that canonical form escapes in literals, except for the two of `NO_XML`."""
NO_XML: Final = r"\ufffe\uffff"
"""The characters that it escapes because XML 1.1 does not have them."""
SURROGATES: Final = r"\ud800-\udfff"

_BEYOND_ASCII: Final = re.compile("[^\0-\x7f](?:-[^\0-\x7f])?")


@cache
def compiled(pattern: str, is_ascii: bool) -> re.Pattern[str]:
    """The compiled expression of a grammar, for texts of ASCII or for any. `pattern`: with characters beyond ASCII only
    in classes, each of which also contains other characters. `is_ascii`: whether it is for texts of ASCII only:
    `text.isascii()`.

    Each class of characters with ranges beyond ASCII takes a millisecond to compile, and most texts need none.

    >>> compiled("[a-z\u00c0-\u02ff]", True)
    re.compile('[a-z]')
    """
    return re.compile(_BEYOND_ASCII.sub("", pattern) if is_ascii else pattern)


# --- blank nodes ----------------------------------------------------------------------------------------------------

PN_BASE: Final = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
"""The characters that names begin with."""
PN_CHARS: Final = PN_BASE + "_0-9\\-\u00b7\u0300-\u036f\u203f-\u2040"
"""The characters of names."""
BLANK_LABEL: Final = f"[{PN_BASE}_0-9](?:[{PN_CHARS}.]*[{PN_CHARS}])?"
"""BLANK_NODE_LABEL after its `_:`."""

CANONICAL_BLANK: Final = r"_:[A-Za-z0-9_](?:[A-Za-z0-9_\-.]*[A-Za-z0-9_\-])?"
"""A blank node with a label of ASCII."""

# --- IRIs -----------------------------------------------------------------------------------------------------------

NOT_IN_IRIREF: Final = r'\x00-\x20<>"{}|^`\\'
"""The characters that are not allowed between `<` and `>` in N-Triples, Turtle and SPARQL."""
IRIREF: Final = f"(?:[^{NOT_IN_IRIREF}]|{UCHAR})*+"
"""The other characters."""

UNRESERVED: Final = "-._~"
SUB_DELIMS: Final = "!$&'()*+,;="
"""In addition to letters and digits, unescaped: not for a class of characters, where `-` has another meaning."""
ASCII_CHARS: Final = rf"A-Za-z0-9\-._~{SUB_DELIMS}:@/"
"""The characters of ASCII that are allowed anywhere in the path of an IRI."""
UCSCHAR: Final = r"\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef"
"""Those beyond ASCII, of the first plane, that are allowed anywhere in an IRI."""
OTHER_CHARS: Final = rf"{UCSCHAR}\U00010000-\U0001fffd"
"""Those of the first two planes."""

SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.\-]*+:"
_AUTHORITY: Final = (
    r"//[A-Za-z0-9\-._~]*+(?:/|(?::[0-9]*+)?+(?=[/?#>\n]|\Z))"  # no user, no address in brackets
)


def _part(other_chars: str) -> str:
    """Returns the expression for the part after the authority; queries and fragments also allow question marks."""
    return rf"[{ASCII_CHARS}?]*+(?:(?:%{HEX}{{2}}{other_chars and f'|[{other_chars}]++'})[{ASCII_CHARS}?]*+)*+"


def _iri(other_chars: str) -> str:
    part = _part(other_chars)
    return rf"{SCHEME}(?:{_AUTHORITY}|(?!//)){part}(?:\#{part})?+"


USUAL_IRI: Final = _iri(OTHER_CHARS)
"""Nearly all IRIs, in `<…>` or alone on a line: a subset of `is_iri`."""
USUAL_ASCII_IRI: Final = _iri("")
"""The same of ASCII only, which can also match bytes."""


def _canonical_iri(other_chars: str) -> str:
    """The same in angle brackets; the first alternative matches most of them, and is fast."""
    chars, part = f"[{ASCII_CHARS}?]*+", _part(other_chars)
    return rf"<http://[A-Za-z0-9\-._~]++/{chars}>|<{SCHEME}(?:{_AUTHORITY}|(?!//)){chars}(?:>|\#{chars}>|{part}(?:\#{part})?+>)"


CANONICAL_IRI: Final = _canonical_iri(OTHER_CHARS)
CANONICAL_ASCII_IRI: Final = _canonical_iri("")

# --- literals -------------------------------------------------------------------------------------------------------

LANGTAG: Final = "[A-Za-z]+(?:-[A-Za-z0-9]+)*"
"""The text that is allowed after the `@` of a literal in N-Triples, Turtle and SPARQL."""
USUAL_LANGUAGE: Final = "[a-z]{2,3}(?:-[a-z]{4})?(?:-(?:[a-z]{2}|[0-9]{3}))?"
"""Nearly all language tags in canonical form: a subset of `is_language`."""


def _canonical_literal(iri: str, never_plain: str) -> str:
    """A string with its language tag or datatype, if it has one; no base direction."""
    plain = f"[^{never_plain}]*+"
    # a class of ASCII is faster than one of all characters
    string = rf'"[ !#-\[\]-~]*+{plain}(?:"|(?:\\[{CANONICAL_ECHAR}]{plain})++")'
    # most datatypes are of XML Schema
    datatype = rf"<{re.escape(XSD)}(?!string>)[A-Za-z]++>|(?!{'|'.join(map(re.escape, NOT_A_DATATYPE))})(?:{iri})"
    # three alternatives are faster than an optional part
    return rf"{string}(?:\^\^(?:{datatype})|@(?:[a-z]{{2,3}}+(?!-)|{USUAL_LANGUAGE})|(?![@^]))"


CANONICAL_LITERAL: Final = _canonical_literal(CANONICAL_IRI, NEVER_PLAIN + NO_XML + SURROGATES)
CANONICAL_ASCII_LITERAL: Final = _canonical_literal(CANONICAL_ASCII_IRI, NEVER_PLAIN)
"""For bytes, which are of ASCII."""


# --- escapes --------------------------------------------------------------------------------------
# Escapes in the text of literals and IRIs: writes those of canonical N-Triples, and reads all.
#
# RDF 1.2 N-Triples, sections 4 (canonical form) and 7 (grammar).

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

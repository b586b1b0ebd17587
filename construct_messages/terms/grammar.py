r"""The terminals of N-Triples as regular expressions, stated once; readers build theirs of these.

Each piece is a string for Python's `re`, without groups and possessive, so that it can be repeated within another and
takes linear time. The pieces of canonical form know less than RDF allows and nothing that it refuses: whatever they do
not match is left to a parser. `CANONICAL` holds them for text, `CANONICAL_UTF8` for bytes that are known to be UTF-8.

RDF 1.2 N-Triples, sections 4 (canonical form) and 7 (grammar); RFC 3987, section 2.2; RFC 5646, section 2.1.
"""

from __future__ import annotations

from typing import Final

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

NOT_A_DATATYPE: Final = (f"{XSD}string", f"{RDF}langString", f"{RDF}dirLangString")
"""The datatypes that no canonical literal states: the first is left out, the others need a language tag."""

LANGUAGE: Final = "[a-z]{2,3}(?:-[a-z]{4})?(?:-(?:[a-z]{2}|[0-9]{3}))?"
"""Nearly all language tags in canonical form: a language, a script and a region."""

BLANK_NODE: Final = r"_:[A-Za-z0-9_](?:[A-Za-z0-9_\-.]*[A-Za-z0-9_\-])?"
"""Blank nodes with labels of ASCII."""

ASCII_CHARS: Final = r"A-Za-z0-9\-._~!$&'()*+,;=:@/"
"""The characters of ASCII that may stand anywhere in the path of an IRI, to stand in a character class."""

_ENCODED: Final = "%[0-9A-Fa-f]{2}"
_SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.\-]*+:"
_AUTHORITY: Final = r"//[A-Za-z0-9\-._~]*+(?:/|(?::[0-9]*+)?+(?=[/?#>\n]|\Z))"
"""A name and a port; user names and addresses in brackets are left to parsers."""

_BEYOND_ASCII: Final = r"[\u00a0-\ud7ff\uf900-\ufdcf]++|[\ufdf0-\uffef\U00010000-\U0001fffd]++"
"""The characters of RFC 3987 that stand anywhere in an IRI; of the planes beyond the first, one.

In two classes: `re` compiles a class of more than two ranges beyond ASCII into a large table.
"""


def _part(beyond_ascii: str) -> str:
    """What stands behind the authority; a query and a fragment hold what a path does, and question marks."""
    return f"(?:[{ASCII_CHARS}?]++|{_ENCODED}{beyond_ascii and f'|{beyond_ascii}'})*+"


def _iri(beyond_ascii: str) -> str:
    part = _part(beyond_ascii)
    return rf"{_SCHEME}(?:{_AUTHORITY}|(?!//)){part}(?:\#{part})?+"


USUAL_IRI: Final = _iri(_BEYOND_ASCII)
"""Nearly all IRIs, in `<…>` or alone on a line: it takes less than `is_iri` and nothing else."""
USUAL_ASCII_IRI: Final = _iri("")
"""The same of ASCII only, which bytes can be held against."""


def _bracketed_iri() -> str:
    """`USUAL_IRI` in angle brackets; that most are of ASCII and unencoded makes it quick."""
    chars = f"[{ASCII_CHARS}?]*+"
    part = _part(_BEYOND_ASCII)
    return rf"<{_SCHEME}(?:{_AUTHORITY}|(?!//)){chars}(?:>|\#{chars}>|{part}(?:\#{part})?+>)"


CANONICAL_IRI: Final = _bracketed_iri()

_PLAIN: Final = r'[^"\\\x00-\x1f\x7f\ufffe\uffff]*+'
CANONICAL_STRING: Final = rf'"{_PLAIN}(?:"|(?:\\[tbnrf"\\]{_PLAIN})++")'
"""Characters in double quotes, with the short escapes; canonical form writes control characters in another way."""

_DATATYPE: Final = rf"\^\^(?!<(?:{'|'.join(NOT_A_DATATYPE)})>){CANONICAL_IRI}"
CANONICAL_LITERAL: Final = rf"{CANONICAL_STRING}(?:@{LANGUAGE}|{_DATATYPE})?+"
"""A string with its language tag or datatype, if it has one; no base direction."""

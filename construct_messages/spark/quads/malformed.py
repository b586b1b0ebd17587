"""SQL of the number of terms that are not RDF in a term that was read leniently.

RFC 3986 over the characters of RFC 3987; RFC 5646. The patterns of Java accept the same as pyoxigraph. They are
possessive where a stack could overflow; there, sets of single characters are faster than ranges.
"""

from __future__ import annotations

import re
import string
from typing import Final

from construct_messages.rdf.terms.grammar import (
    HEX,
    NOT_A_DATATYPE,
    SUB_DELIMS,
    UCSCHAR,
    UNRESERVED,
)
from construct_messages.spark.dialect import case, literal

# --- IRIs -----------------------------------------------------------------------------------------------------------


def _set(chars: str) -> str:
    """Returns a set of single characters of ASCII, which Java looks up in one table."""
    return "[" + "".join(char if char.isalnum() else f"\\x{ord(char):02x}" for char in chars) + "]"


_ALPHANUMERIC: Final = string.ascii_letters + string.digits
_UNRESERVED: Final = _ALPHANUMERIC + UNRESERVED
_UCSCHAR: Final = UCSCHAR + "".join(
    f"\\x{{{plane:x}{'1000' if plane == 14 else '0000'}}}-\\x{{{plane:x}fffd}}"
    for plane in range(1, 15)
)
_PRIVATE: Final = "\\ue000-\\uf8ff\\x{f0000}-\\x{ffffd}\\x{100000}-\\x{10fffd}"


def _chars(more: str, others: str = _UCSCHAR) -> str:
    ascii = _set(_UNRESERVED + SUB_DELIMS + more)
    return f"{ascii}*(?:(?:%{HEX}{{2}}|[{others}]+){ascii}*)*+"


_SCHEME: Final = f"{_set(string.ascii_letters)}{_set(_ALPHANUMERIC + '+.-')}*:"
_PORT: Final = f"(?::{_set(string.digits)}*)?+"
_FRAGMENT: Final = f"(?:#{_chars(':@/?')})?+"
_OCTET: Final = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_LAST: Final = f"(?:{HEX}{{1,4}}:{HEX}{{1,4}}|{_OCTET}(?:\\.{_OCTET}){{3}})"
_IP_V6: Final = "|".join(
    [f"(?:{HEX}{{1,4}}:){{6}}{_LAST}", f"::(?:{HEX}{{1,4}}:){{5}}{_LAST}"]
    + [
        f"(?:(?:{HEX}{{1,4}}:){{0,{before}}}{HEX}{{1,4}})?::(?:{HEX}{{1,4}}:){{{4 - before}}}{_LAST}"
        for before in range(5)
    ]
    + [
        f"(?:(?:{HEX}{{1,4}}:){{0,5}}{HEX}{{1,4}})?::{HEX}{{1,4}}",
        f"(?:(?:{HEX}{{1,4}}:){{0,6}}{HEX}{{1,4}})?::",
    ]
)
_IP: Final = f"\\[(?:{_IP_V6}|[vV]{HEX}+\\.{_set(_UNRESERVED + SUB_DELIMS + ':')}+)\\]"
IRI: Final = (
    f"{_SCHEME}(?://(?:{_chars(':')}@)?(?:{_IP}|{_chars('')}){_PORT}(?=[/?#>]|\\z)|(?!//))"
    f"{_chars(':@/')}(?:\\?{_chars(':@/?', _UCSCHAR + _PRIVATE)})?+{_FRAGMENT}"
)
"""A pattern of absolute IRIs, as pyoxigraph accepts them."""
# matches IRIs with common hosts and characters quickly; the complete pattern is tried after it
_USUAL: Final = _set(_UNRESERVED + SUB_DELIMS + ":@/?")
_USUAL_CHARS: Final = f"{_USUAL}*(?:(?:%{HEX}{{2}}|[\\u00a0-\\ud7ff]+){_USUAL}*)*+"
USUAL_IRI: Final = (
    f"(?:https?://{_set(_UNRESERVED)}*{_PORT}/|{_SCHEME}(?!//)){_USUAL_CHARS}(?:#{_USUAL_CHARS})?+"
)

# --- language tags --------------------------------------------------------------------------------------------------

_GRANDFATHERED: Final = (
    "en-gb-oed|i-ami|i-bnn|i-default|i-enochian|i-hak|i-klingon|i-lux|i-mingo|i-navajo|i-pwn|i-tao|i-tay|i-tsu|"
    "sgn-be-fr|sgn-be-nl|sgn-ch-de|art-lojban|cel-gaulish|no-bok|no-nyn|zh-guoyu|zh-hakka|zh-min|zh-min-nan|zh-xiang"
)
# RFC 5646, section 2.1
LANGUAGE: Final = (
    "(?i:(?:[a-z]{2,3}(?:-[a-z]{3}){0,3}|[a-z]{4,8})(?:-[a-z]{4})?(?:-(?:[a-z]{2}|[0-9]{3}))?"
    "(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*(?:-[a-wy-z0-9](?:-[a-z0-9]{2,8})+)*(?:-x(?:-[a-z0-9]{1,8})+)?"
    f"|x(?:-[a-z0-9]{{1,8}})+|{_GRANDFATHERED})"
)

# --- terms ----------------------------------------------------------------------------------------------------------

_QUOTED: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_TOKEN: Final = rf"(?s)<<\(|\)>>|<[^>]*+>|_:[^ ]++|{_QUOTED}(?:@[^ ]++|\^\^<[^>]*+>)?+"


def malformed(term: str) -> str:
    """The number of malformed IRIs and language tags, and of literals without the tag of their datatype, in a term (or
    NULL) that was read leniently.
    """
    iri, suffix = f"<(?:{IRI})>", f"@{LANGUAGE}(?:--(?:ltr|rtl))?"
    tagged = "|".join(map(re.escape, NOT_A_DATATYPE[1:]))
    sound = literal(
        rf"(?s)^(?:<<\(|\)>>|_:.*+|{iri}|{_QUOTED}(?:{suffix}|\^\^(?!{tagged}){iri})?)\z"
    )
    tokens = f"regexp_extract_all({term}, {literal(_TOKEN)}, 0)"
    usual = literal(rf"(?s)^(?:<{USUAL_IRI}>|_:.*+|{_QUOTED}(?:@[a-z]{{2,3}})?)\z")
    found = f"size(filter({tokens}, t -> NOT t RLIKE {sound}))"
    return case((f"{term} IS NULL OR {term} RLIKE {usual}", "0"), otherwise=found)

"""Well-formed IRIs and language tags: checks them, and passes malformed ones leniently.

An IRI is absolute and of RFC 3987, section 2.2 (RDF 1.2 Concepts, section 3.2); a language tag is of RFC 5646, section
2.1 (RDF 1.2 Concepts, section 3.4). pyoxigraph checks both strictly, and the same rules apply here, so that every
reader built on it accepts the output. See docs/decisions/028-what-is-an-iri.md. No terms are created here.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Final

import pyoxigraph as ox

from construct_messages.regex import regex
from construct_messages.terms import grammar

# --- IRIs -----------------------------------------------------------------------------------------------------------

NOT_IN_IRIREF: Final = regex(f"[{grammar.NOT_IN_IRIREF}]|[{grammar.SURROGATES}]")
"""Finds characters that are not allowed between `<` and `>` in N-Triples, Turtle and SPARQL (IRIREF), or in UTF-8."""
SCHEME: Final = regex(grammar.SCHEME)


@cache
def _legacy() -> re.Pattern[str]:
    """Finds the characters of legacy extended IRIs (https://www.w3.org/TR/leiri/, section 3) that IRIs do not have.

    A private character may stay in a query, where an IRI may have it. Takes a millisecond to compile, and is rare.
    """
    return re.compile(
        r'[\x00-\x20<>"{}|^`\\\x7f-\x9f\ufdd0-\ufdef\ufff0-\uffff\U000e0000-\U000e0fff]'
        + "".join(f"|[\\U{plane:04x}fffe\\U{plane:04x}ffff]" for plane in range(1, 17))
        + r"|[\ue000-\uf8ff\U000f0000-\U0010fffd]"
    )


def is_iri(value: str) -> bool:
    """Whether a text is an absolute IRI.

    >>> is_iri("http://example.org/é"), is_iri("http://example.org/100%"), is_iri("a")
    (True, False, False)
    """
    return fault_of_iri(value) is None


def fault_of_iri(value: str) -> str | None:
    """Returns the reason why a text is not an absolute IRI; None: it is one.

    >>> fault_of_iri("http://example.org/100%")
    "Invalid IRI percent encoding '%'"
    """
    try:
        ox.NamedNode(value)
    except ValueError as error:  # surrogates, too, which are not valid Unicode
        return str(error)
    return None


def percent_encoded(value: str) -> str:
    """Converts a legacy extended IRI to an IRI: percent-encodes the UTF-8 of each character that IRIs do not allow.

    Other malformed parts, such as a lone `%`, are unchanged.

    >>> percent_encoded("http://example.org/a b%")
    'http://example.org/a%20b%'
    """
    value, hash, fragment = value.partition("#")
    path, mark, query = value.partition("?")
    return "".join((_encode(path), mark, _encode(query, private=True), hash, _encode(fragment)))


def _encode(part: str, *, private: bool = False) -> str:
    def one(match: re.Match[str]) -> str:
        char = match.group()
        if private and is_iri(f"urn:?{char}"):
            return char
        return "".join(f"%{byte:02X}" for byte in char.encode())

    return _legacy().sub(one, part)


# --- language tags --------------------------------------------------------------------------------------------------

LANGTAG: Final = regex(grammar.LANGTAG)


@lru_cache(maxsize=1024)
def is_language(tag: str) -> bool:
    """Whether a text is a language tag, of any case.

    >>> is_language("zh-Hant-TW"), is_language("a"), is_language("zh-classical")
    (True, False, False)
    """
    try:
        ox.Literal("", language=tag)
    except ValueError:
        return False
    return True


# --- malformed IRIs and language tags --------------------------------------------------------------------------------


class Lenience:
    """Passes malformed IRIs and language tags of one log or one source unchanged, and counts them.

    Only terms that the syntax of N-Triples can represent are passed, and no relative IRIs, whose meaning depends on the
    document. Each occurrence counts, except in formats that write repeated terms once (Jelly).

    Attributes:
        iris: the number of passed IRIs.
        languages: the number of passed language tags.
        first: the first of either, in N-Triples.

    >>> lenience = Lenience()
    >>> lenience.passes_iri("http://example.org/100%"), lenience.passes_language("zh-classical")
    (True, True)
    >>> lenience.passes_iri("a"), lenience.passes_iri("http://example.org/a b")
    (False, False)
    >>> print(lenience)
    passed as found: 1 malformed IRI and 1 malformed language tag; the first is <http://example.org/100%>
    """

    def __init__(self) -> None:
        self.iris = self.languages = 0
        self.first = ""

    def __str__(self) -> str:
        counts = [
            f"{count} malformed {what}{'' if count == 1 else 's'}"
            for count, what in ((self.iris, "IRI"), (self.languages, "language tag"))
            if count
        ]
        return (
            f"passed as found: {' and '.join(counts)}; the first is {self.first}"
            if counts
            else "passed nothing"
        )

    @property
    def passed(self) -> int:
        """The number of IRIs and language tags that were passed."""
        return self.iris + self.languages

    def passes_iri(self, value: str) -> bool:
        """Whether a malformed IRI can be passed; if so, it is counted."""
        if NOT_IN_IRIREF.search(value) or not SCHEME.match(value):
            return False
        self.iris += 1
        self.first = self.first or f"<{value}>"
        return True

    def passes_language(self, tag: str) -> bool:
        """Whether a malformed language tag can be passed; if so, it is counted."""
        if not LANGTAG.fullmatch(tag):
            return False
        self.languages += 1
        self.first = self.first or f"@{tag}"
        return True

    def report(self, name: str = "") -> None:
        """Logs a warning with the number of passed terms for this name, if there were any."""
        if self.passed:
            import logging  # imported here because most programs do not need it

            logging.getLogger(__name__).warning("%s%s", f"{name}: " if name else "", self)

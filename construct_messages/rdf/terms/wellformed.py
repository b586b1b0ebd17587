"""Well-formed IRIs and language tags: checks them, and passes malformed ones leniently.

An IRI is absolute and of RFC 3987, section 2.2 (RDF 1.2 Concepts, section 3.2); a language tag is of RFC 5646, section
2.1 (RDF 1.2 Concepts, section 3.4). pyoxigraph checks both strictly, and the same rules apply here, so that every
reader built on it accepts the output. See docs/decisions/028-what-is-an-iri.md. No terms are created here.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache, lru_cache
from typing import Final, Literal, TypeAlias

import pyoxigraph as ox

from construct_messages.errors import TermError, shown
from construct_messages.rdf.terms import grammar

# --- IRIs -----------------------------------------------------------------------------------------------------------

NOT_IN_IRIREF: Final = re.compile(f"[{grammar.NOT_IN_IRIREF}]|[{grammar.SURROGATES}]")
"""Finds characters that are not allowed between `<` and `>` in N-Triples, Turtle and SPARQL (IRIREF), or in UTF-8."""
SCHEME: Final = re.compile(grammar.SCHEME)
SURROGATE: Final = re.compile(f"[{grammar.SURROGATES}]")


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


def resolved(reference: str, base: str, *, lenient: bool = False) -> str:
    """Resolves a relative reference against an absolute IRI; see `resolution.resolve`."""
    escaped = "".join(f"\\U{ord(char):08X}" for char in reference)
    text = f"<{escaped}> <x:p> <x:o> ."
    try:
        triple = next(
            iter(ox.parse(text, format=ox.RdfFormat.TURTLE, base_iri=base, lenient=lenient))
        )
    except (SyntaxError, ValueError) as problem:
        raise TermError(
            f"<{reference}> cannot be resolved against the base <{base}>: {problem}"
        ) from None
    return str(triple.subject)[1:-1]


# --- language tags --------------------------------------------------------------------------------------------------

LANGTAG: Final = re.compile(grammar.LANGTAG)


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


# --- terms that are not RDF -----------------------------------------------------------------------------------------


Lenient: TypeAlias = bool | Literal["skip"]
"""Whether terms that are not RDF are accepted; `"skip"`: the solutions with them are skipped."""
UNENDED: Final = re.compile(f"[<\r\n{grammar.SURROGATES}]")
"""Finds characters that show that an IRI does not end, and surrogates."""
UNREADABLE: Final = "\0"
"""Replaces a term in a solution that is skipped; no term contains this character."""

MALFORMED_IRI: Final = ("passed as found", "malformed IRI")
MALFORMED_LANGUAGE: Final = ("passed as found", "malformed language tag")
UNTAGGED: Final = ("passed as found", "literal without the language tag of its datatype")
AS_STRING: Final = ("read as a string", UNTAGGED[1])
RELATIVE: Final = ("resolved", "relative IRI")
ENCODED: Final = ("percent-encoded", "IRI with a character that no IRI may hold")
_LEFT_OUT: Final = ("left out", "solution with a term that is not RDF")
OUT_OF_PLACE: Final = "a term in a position that RDF does not allow"
NO_CHARACTER: Final = "an escape of no character"
NO_LANGUAGE: Final = "a malformed language tag"
"""The kinds of terms that no log can hold, which several readers find."""


class Lenience:
    """Accepts terms of one log or one source that are not RDF, and counts them by kind.

    Malformed IRIs and language tags, and literals of rdf:langString without a tag, are passed unchanged. IRIs that the
    syntax of N-Triples cannot represent are percent-encoded, and relative ones are resolved. Each occurrence counts,
    except in formats that write repeated terms once (Jelly).

    >>> lenience = Lenience()
    >>> lenience.iri("http://example.org/100%"), lenience.passes_language("zh-classical")
    ('http://example.org/100%', True)
    >>> lenience.iri("a"), lenience.iri("http://example.org/a b")
    (None, 'http://example.org/a%20b')
    >>> print(lenience)  # doctest: +NORMALIZE_WHITESPACE
    passed as found: 1 malformed IRI (the first: <http://example.org/100%>), 1 malformed language tag (the first:
    @zh-classical); percent-encoded: 1 IRI with a character that no IRI may hold (the first: <http://example.org/a b>)
    """

    def __init__(
        self,
        # `"pass"` does this; `"skip"` accepts none of them: the solutions with them are skipped; `"strict"`
        # only reads a literal of rdf:langString without a tag as a string
        how: Literal["pass", "skip", "strict"] = "pass",
        *,
        # resolves relative IRIs; None: they are errors, as their meaning depends on the document
        base: str | None = None,
        # False: passes terms unchanged or not at all, and skips no statement, as Spark does
        mends: bool = True,
    ) -> None:
        self.how, self.base, self.mends = how, base, mends
        # the number of terms by what was done with them and their kind
        self.counts: Counter[tuple[str, str]] = Counter()
        # the first of each
        self.firsts: dict[tuple[str, str], str] = {}

    @classmethod
    def of(cls, lenient: Lenient | None, *, base: str | None = None) -> Lenience:
        """Creates that of a source by the option of a caller."""
        return cls("skip" if lenient == "skip" else "pass" if lenient else "strict", base=base)

    def __str__(self) -> str:
        actions: dict[str, list[str]] = {}
        for kind, count in self.counts.items():
            action, (one, *rest) = kind[0], kind[1].partition(" with")
            what = f"{count} {one}{'' if count == 1 else 's'}{''.join(rest)}"
            actions.setdefault(action, []).append(f"{what} (the first: {shown(self.firsts[kind])})")
        return "; ".join(f"{action}: {', '.join(found)}" for action, found in actions.items())

    @property
    def is_strict(self) -> bool:
        """Whether terms that are not RDF are errors, except literals of rdf:langString without a tag."""
        return self.how == "strict"

    @property
    def passed(self) -> int:
        """The number of terms that were accepted, and of solutions and statements that were skipped."""
        return self.counts.total()

    @property
    def leaves_some_out(self) -> bool:
        """Whether the solution of some term was skipped."""
        return _LEFT_OUT in self.firsts

    def iri(self, value: str) -> str | None:
        """Returns the IRI that a text which is none is accepted as; if there is one, it is counted."""
        if self.how != "pass" or UNENDED.search(value):
            return None
        if not SCHEME.match(value):
            return self._resolved(value)
        if not NOT_IN_IRIREF.search(value):
            self.count(MALFORMED_IRI, f"<{value}>")
            return value
        if not self.mends:
            return None
        self.count(ENCODED, f"<{value}>")
        return percent_encoded(value)

    def _resolved(self, value: str) -> str | None:
        if self.base is None:
            return None
        try:
            found = resolved(value, self.base, lenient=True)
        except TermError:
            return None
        self.count(RELATIVE, f"<{value}>")
        return percent_encoded(found)

    def passes_language(self, tag: str) -> bool:
        """Whether a malformed language tag can be passed; if so, it is counted."""
        if self.how != "pass" or not LANGTAG.fullmatch(tag):
            return False
        self.count(MALFORMED_LANGUAGE, f"@{tag}")
        return True

    def leaves_out(self, error: TermError) -> bool:
        """Whether the solution of a term that cannot be accepted is skipped; `left_out` counts it."""
        if self.is_strict:
            return False
        self.firsts.setdefault(_LEFT_OUT, error.message)
        return True

    def skips(self, error: TermError, *, ended: bool = True) -> bool:
        """Whether the statement of a document with a term that cannot be accepted is skipped; if so, it is counted.
        `ended`: whether the term surely ends where its reader found an end; in Turtle, an IRI may have other terms.

        >>> lenience = Lenience()
        >>> lenience.skips(TermError("IRI <a> is relative", kind="a relative IRI")), str(lenience)
        (True, 'left out: 1 statement with a relative IRI (the first: IRI <a> is relative)')
        """
        if self.is_strict or not self.mends or not (error.kind or ended):
            return False
        kind = error.kind or f"an {ENCODED[1]}"
        self.count(("left out", f"statement with {kind}"), error.message)
        return True

    def left_out(self, count: int) -> None:
        """Counts skipped solutions."""
        if count:
            self.counts[_LEFT_OUT] += count

    def count(self, kind: tuple[str, str], term: str) -> None:
        """Counts a term of a kind."""
        self.counts[kind] += 1
        self.firsts.setdefault(kind, term)

    def report(self, name: str = "") -> None:
        """Logs a warning with the number of terms of each kind for this name, if there were any."""
        if self.passed:
            import logging  # imported here because most programs do not need it

            logging.getLogger(__name__).warning("%s%s", f"{name}: " if name else "", self)

r"""Converts tokens of plain Turtle to terms: creates and checks each once, and looks up repeated ones.

`plain.py` splits a text into tokens. A token that is not plain may still be a term for pyoxigraph: rare IRIs and names,
or those that need a base or an escape.

RDF 1.2 Turtle, section 6.5 (grammar) and section 7 (parsing).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from construct_messages.logs.turtle.scanner import literal_of
from construct_messages.rdf.terms import (
    PN_BASE,
    PN_CHARS,
    RDF,
    XSD,
    is_language,
)
from construct_messages.rdf.terms.grammar import (
    CANONICAL_IRI,
    HEX,
    NOT_A_DATATYPE,
    compiled,
)

_REMEMBERED: Final = 1 << 14
"""The number of cached terms after which all are cleared, which limits their memory."""

_LONGEST_NAMESPACE: Final = 1 << 8
"""The maximal length of a namespace, which every name with it has at least."""

# --- grammar --------------------------------------------------------------------------------------------------------

# `plain.py` does not match a dot at the end of a name
_LOCAL: Final = rf"(?:(?:[{PN_BASE}_:0-9]|%{HEX}{{2}})(?:[{PN_CHARS}.:]++|%{HEX}{{2}})*+)?"
_is_simple_local: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:\-]*+").fullmatch


@cache
def _iri() -> re.Pattern[str]:
    return re.compile(CANONICAL_IRI)


# --- tokens ---------------------------------------------------------------------------------------------------------


class Namespaces(dict[str, str]):
    """The namespaces by their prefixes, if they form an IRI with any simple name; empty for others.

    Attributes:
        has_others: whether another one was looked up.
    """

    has_others = False

    def __missing__(self, prefix: str) -> str:
        self.has_others = True
        return ""


class Tokens(dict[str | None, str | None]):
    """Terms by their tokens, for the same prefixes; created on first lookup. None for tokens that are not plain.

    The value of a datatype or a language is its addition to a string. None maps to None.

    Args:
        prefixes: the declared prefixes.

    Attributes:
        prefixes: the declared prefixes.
        namespaces: see `Namespaces`, by prefixes with their colons.
        longest: an upper bound of the lengths of terms.

    >>> tokens = Tokens({"": "urn:x:"})
    >>> tokens[":a"], tokens["^^:b"], tokens["@EN"], tokens.are_plain([":a", "@EN"], [":", None])
    ('<urn:x:a>', '^^<urn:x:b>', '@en', True)
    >>> tokens[":%"], tokens["_:a"], tokens.are_plain([":%", "_:a"], []), tokens.are_plain([], ["x:"])
    (None, '_:a', False, False)
    """

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        super().__init__()
        self.prefixes = prefixes
        self.namespaces = Namespaces(
            {
                f"{prefix}:": f"<{namespace}"
                for prefix, namespace in prefixes.items()
                # its end is not within a host, a port or an escape
                if len(namespace) <= _LONGEST_NAMESPACE
                and all(_iri().fullmatch(f"<{namespace}{local}>") for local in ("x", "a:b"))
            }
        )
        self._forget()

    def _forget(self) -> None:
        self.clear()
        self.longest = 64
        self.update({word: f'"{word}"^^<{XSD}boolean>' for word in ("true", "false")})
        self.update({None: None, "a": f"<{RDF}type>"})

    def begin(self) -> None:
        """Clears tokens that are not plain, and all terms if they are many."""
        if len(self) > _REMEMBERED:
            self._forget()
        self._has_others = self.namespaces.has_others = False

    @property
    def have_others(self) -> bool:
        """Whether a token that is not plain was looked up since `begin`."""
        return self._has_others or self.namespaces.has_others

    def are_plain(self, tokens: Iterable[str | None], prefixes: Iterable[str | None]) -> bool:
        """Returns whether some tokens, and prefixes with their colons, are plain; all were looked up."""
        return self.keys() >= set(tokens) and self.namespaces.keys() >= {*prefixes} - {None}

    def __missing__(self, token: str) -> str | None:
        prefix, colon, local = token.partition(":")
        namespace = self.namespaces.get(prefix + colon)
        # the most frequent form of tokens that are not repeated
        if namespace is not None and _is_simple_local(local):
            term: str | None = f"{namespace}{local}>"
        else:
            term = self._make(token)
        if term is None:
            self._has_others = True
            return None
        self[token] = term
        if len(term) > self.longest:
            self.longest = len(term)
        return term

    def _make(self, token: str) -> str | None:
        match token[0]:
            case "<":
                return token if _iri().fullmatch(token) else None
            case '"':
                return literal_of(token)
            case "^":
                datatype = self[token[2:]]
                if datatype == f"<{XSD}string>":
                    return ""
                return None if datatype in (None, *NOT_A_DATATYPE) else f"^^{datatype}"
            case "@":
                return token.lower() if is_language(token[1:]) else None
            case "_":
                return token
        if token[0] in "+-0123456789" and ":" not in token:
            kind = "double" if "e" in token.lower() else "decimal" if "." in token else "integer"
            return f'"{token}"^^<{XSD}{kind}>'
        return self._name(token)

    def _name(self, name: str) -> str | None:
        prefix, _, local = name.partition(":")
        namespace = self.prefixes.get(prefix)
        if namespace is None or len(namespace) > _LONGEST_NAMESPACE:
            return None
        iri = f"<{namespace}{local}>"
        is_name = compiled(_LOCAL, local.isascii()).fullmatch(local)
        return iri if is_name and _iri().fullmatch(iri) else None

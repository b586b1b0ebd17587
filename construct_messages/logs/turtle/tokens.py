r"""Tokens of plain Turtle as terms: each is made and checked once, and looked up when it comes again.

Tokens are what `plain.py` cuts a text into. What is not plain here may still be a term for pyoxigraph: IRIs and names
that are rare, or that only a base or an escape makes valid.

RDF 1.2 Turtle, section 6.5 (grammar) and section 7 (parsing).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from construct_messages.logs.turtle.strings import literal_of
from construct_messages.terms import (
    PN_BASE,
    PN_CHARS,
    RDF,
    XSD,
    is_language,
)
from construct_messages.terms.grammar import (
    CANONICAL_IRI,
    HEX,
    NOT_A_DATATYPE,
    compiled,
)

_REMEMBERED: Final = 1 << 14
"""How many terms are kept before all are forgotten, which bounds what they take."""

_LONGEST_NAMESPACE: Final = 1 << 8
"""How long a namespace may be: each name with it becomes as long."""

# --- grammar --------------------------------------------------------------------------------------------------------

# `plain.py` takes no dot at the end of a name
_LOCAL: Final = rf"(?:(?:[{PN_BASE}_:0-9]|%{HEX}{{2}})(?:[{PN_CHARS}.:]++|%{HEX}{{2}})*+)?"
_is_simple_local: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:\-]*+").fullmatch


@cache
def _iri() -> re.Pattern[str]:
    return re.compile(CANONICAL_IRI)


# --- tokens ---------------------------------------------------------------------------------------------------------


class Namespaces(dict[str, str]):
    """The beginnings of IRIs by their prefixes, where any simple name after it makes an IRI; empty for others.

    Attributes:
        has_others: whether another was looked up.
    """

    has_others = False

    def __missing__(self, prefix: str) -> str:
        self.has_others = True
        return ""


class Tokens(dict[str | None, str | None]):
    """Terms by their tokens, under the same prefixes; made when they are first looked up. None for what is not plain.

    The token of a datatype or a language has what it adds to a string. None by None.

    Args:
        prefixes: those that are declared.

    Attributes:
        prefixes: those that are declared.
        namespaces: see `Namespaces`, by prefixes with their colons.
        longest: no term among them has more characters.

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
                # it does not end within a host, a port or an escape
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
        """Forgets what was looked up that is not plain, and all terms if they are many."""
        if len(self) > _REMEMBERED:
            self._forget()
        self._has_others = self.namespaces.has_others = False

    @property
    def have_others(self) -> bool:
        """Whether something was looked up since `begin` that is not plain."""
        return self._has_others or self.namespaces.has_others

    def are_plain(self, tokens: Iterable[str | None], prefixes: Iterable[str | None]) -> bool:
        """Whether some tokens, and prefixes with their colons, are plain; all were looked up."""
        return self.keys() >= set(tokens) and self.namespaces.keys() >= {*prefixes} - {None}

    def __missing__(self, token: str) -> str | None:
        prefix, colon, local = token.partition(":")
        namespace = self.namespaces.get(prefix + colon)
        if namespace is not None and _is_simple_local(local):  # as most are that come once
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

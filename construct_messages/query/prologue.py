"""The prologue: resolves IRIs by BASE and PREFIX, and adds declarations from outside.

SPARQL 1.2 Query, section 4.1 (IRI syntax), [4] Prologue. No query forms and no templates here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from construct_messages.errors import QueryError, TermError, UsageError
from construct_messages.query.tokens import Token, decoded, error, tokenize
from construct_messages.rdf.terms import Term, iri, is_iri, resolve, unescape

_LOCAL_ESCAPE: Final = re.compile(r"\\(.)")
_EXPANDED: Final = 1 << 20  # characters, and this number for each character of the query
_EXPANDED_EACH: Final = 256


class Expansion:
    """Limits the length of expanded prefixed names and relative IRIs."""

    def __init__(self, length: int = 0) -> None:
        self._left = _EXPANDED + _EXPANDED_EACH * length

    def spend(self, text: str, offset: int, characters: int) -> None:
        """Counts an IRI that is about to be written in full."""
        self._left -= characters
        if self._left < 0:
            message = (
                f"the IRIs of the query are more than {_EXPANDED_EACH} times as long as "
                f"the query, written in full"
            )
            raise error(text, offset, message, "declare shorter prefixes and a shorter base")


@dataclass(frozen=True, slots=True)
class Prologue:
    """The declarations that hold for the template."""

    base: str | None  # the base IRI in effect, None if there is none
    prefixes: Mapping[str, str]  # IRI by prefix (without colon), of those whose IRI is known
    unusable: Mapping[str, str]  # the reason, for each prefix whose IRI is not known
    declared: frozenset[str]  # the prefixes that the text itself declares
    # limits the length of expanded IRIs
    expansion: Expansion = field(default_factory=Expansion, compare=False, repr=False)

    @classmethod
    def read(
        cls,
        text: str,
        tokens: Sequence[Token],
        *,
        base: str | None,
        prefixes: Mapping[str, str],
        expansion: Expansion | None = None,
    ) -> Prologue:
        """Reads the declarations among the tokens before the query form; they override those from outside."""
        expansion = expansion or Expansion(len(text))
        known, unusable, declared = dict(prefixes), dict[str, str](), set[str]()
        for index, token in enumerate(tokens):
            following = tokens[index + 1 : index + 3]
            match token.keyword, [part.kind for part in following]:
                case "BASE", ["iri", *_]:
                    expansion.spend(text, following[0].start, len(base or ""))
                    try:
                        base = resolve(unescape(following[0].text[1:-1]), base)[1:-1]
                    except TermError:
                        base = None  # the engine refuses it, and so does the first relative IRI of the template
                case "PREFIX", ["pname", "iri"]:
                    prefix = decoded(text, following[0])[:-1]
                    declared.add(prefix)
                    expansion.spend(text, following[1].start, len(base or ""))
                    known.pop(prefix, None)
                    unusable.pop(prefix, None)
                    try:
                        known[prefix] = resolve(unescape(following[1].text[1:-1]), base)[1:-1]
                    except TermError as problem:
                        unusable[prefix] = problem.message
        return cls(base, known, unusable, frozenset(declared), expansion)

    def iri(self, text: str, name: str, offset: int) -> Term:
        """The IRI that a name means.

        >>> Prologue(None, {"ex": "http://example.org/"}, {}, frozenset()).iri("ex:a", "ex:a", 0)
        '<http://example.org/a>'
        """
        try:
            if name.startswith("<"):
                self.expansion.spend(text, offset, len(self.base or ""))
                return resolve(unescape(name[1:-1]), self.base)
            prefix, _, local = decoded(text, Token("pname", name, offset)).partition(":")
            if prefix not in self.prefixes:
                raise self._unknown(text, offset, prefix)
            self.expansion.spend(text, offset, len(self.prefixes[prefix]))
            return iri(self.prefixes[prefix] + _LOCAL_ESCAPE.sub(r"\1", local))
        except TermError as problem:
            raise error(text, offset, problem.message, problem.hint) from None

    def _unknown(self, text: str, offset: int, prefix: str) -> QueryError:
        if prefix in self.unusable:
            message = f"prefix {prefix}: cannot be used: {self.unusable[prefix]}"
            return error(
                text, offset, message, "give a base IRI, or declare the prefix with an absolute IRI"
            )
        message = f"prefix {prefix}: is not declared"
        return error(text, offset, message, f"add PREFIX {prefix}: <...> or give it as an option")


def undeclared(text: str, known: Collection[str] = ()) -> str | None:
    """The first prefix, without colon, that a query uses and neither declares nor has in `known`.

    >>> undeclared("PREFIX a: <urn:a> ASK { a:a b:b c:c }")
    'b'
    """
    declared = set(known)
    before = Token("mark", "", 0)
    for token in tokenize(text):
        if token.kind == "pname":
            prefix = decoded(text, token).partition(":")[0]
            if before.keyword == "PREFIX":
                declared.add(prefix)
            elif prefix not in declared:
                return prefix
        before = token
    return None


def check_prefixes(prefixes: Mapping[str, str] | None) -> dict[str, str]:
    """Checks prefixes that are declared outside of the query, and returns them.

    >>> check_prefixes({"ex": "http://example.org/"})
    {'ex': 'http://example.org/'}
    """
    for prefix, namespace in (prefixes or {}).items():
        if not _is_prefix(prefix):
            raise UsageError(f"{prefix!r} is not a prefix", hint="give it without colon, as in ex")
        _absolute(namespace, f"prefix {prefix}:")
    return dict(prefixes or {})


def usable_prefixes(prefixes: Mapping[str, str] | None) -> dict[str, str]:
    """Returns the prefixes of an engine that SPARQL can write; an rdflib graph may bind others.

    >>> usable_prefixes({"ex": "http://example.org/", "1.": "http://example.org/", "rel": "#"})
    {'ex': 'http://example.org/'}
    """
    given = (prefixes or {}).items()
    return {
        prefix: namespace for prefix, namespace in given if _is_prefix(prefix) and is_iri(namespace)
    }


def _is_prefix(text: str) -> bool:
    return (
        ":" not in text
        and "\\" not in text
        and tokenize(f"{text}:") == [Token("pname", f"{text}:", 0)]
    )


def check_base(base: str | None) -> str | None:
    """Checks a base that is declared outside of the query, and returns it."""
    return base if base is None else _absolute(base, "the base")


def _absolute(value: str, what: str) -> str:
    try:
        iri(value)
    except TermError as problem:
        raise UsageError(f"{what}: {problem.message}", hint="give an absolute IRI") from None
    return value


def insert(
    tokens: Sequence[Token], base: str | None, prefixes: Mapping[str, str]
) -> tuple[int, str]:
    """The position for declarations from outside among the tokens before the form, and the text of these declarations.

    The position is at the head, so that declarations in the text override them, but after Virtuoso's DEFINE pragmas,
    which must be first. The declarations have no line break, so that the lines of the engine's errors are those of the
    text.

    >>> insert([], None, {"ex": "http://example.org/"})
    (0, 'PREFIX ex: <http://example.org/> ')
    """
    declarations = [f"BASE <{base}>"] if base is not None else []
    declarations += [f"PREFIX {prefix}: <{namespace}>" for prefix, namespace in prefixes.items()]
    pragmas = 0
    while len(tokens) >= pragmas + 3 and tokens[pragmas].keyword == "DEFINE":
        pragmas += 3  # DEFINE name value, value
        while len(tokens) >= pragmas + 2 and tokens[pragmas].is_mark(","):
            pragmas += 2
    place = tokens[pragmas - 1].end if pragmas else 0
    if not declarations:
        return place, ""
    return place, f"{' ' if pragmas else ''}{' '.join(declarations)} "

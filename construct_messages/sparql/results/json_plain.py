"""Decodes the solutions of a short JSON result by the standard library.

`import msgspec` takes longer than everything else that reading some solutions needs. Only solutions that certainly mean
what `json_structs.py` reads in them are decoded here; it reads all others, and raises the errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from construct_messages.rdf.regex import regex
from construct_messages.rdf.terms import UNBOUND, Lenience, Term, blank, iri, literal
from construct_messages.sparql.results import accepted, checked_iri
from construct_messages.sparql.results.json_frame import load

_SURROGATE: Final = regex(rb"\\u[dD]")
"""The escape of a half of a character, which the standard library accepts without the other half."""

_ANY: Final = ("type", "value")
_LITERAL: Final = ("datatype", "xml:lang", "its:dir")


class PlainReader:
    """See `SolutionReader`."""

    def __init__(
        self,
        variables: Sequence[str],
        declared: Sequence[str],
        scope: str,
        lenience: Lenience | None,
    ) -> None:
        self._variables, self._names = variables, {*variables, *declared}
        self._scope, self._lenience = scope, lenience

    def read(self, text: bytes) -> list[Any] | None:
        """See `SolutionReader.read`; None: the other reader decides."""
        if _SURROGATE.search(text):
            return None
        try:
            solutions = load(text, pairs=_distinct)
        except (ValueError, RecursionError):
            return None
        return solutions if all(map(self._is_plain, solutions)) else None

    def _is_plain(self, solution: object) -> bool:
        return (
            isinstance(solution, dict)
            and solution.keys() <= self._names
            and all(_is_plain_term(solution.get(name)) for name in self._variables)
        )

    def terms(self, solutions: list[Any], column: int) -> Iterable[Term]:
        """See `SolutionReader.terms`."""
        name = self._variables[column]
        return (accepted(self._lenience, self._term, solution.get(name)) for solution in solutions)

    def _term(self, value: dict[str, Any] | None) -> Term:
        if value is None:
            return UNBOUND
        text = value["value"]
        match value["type"]:
            case "uri":
                return checked_iri(iri(text, encode=True, lenience=self._lenience))
            case "bnode":
                return blank(text, self._scope)
            case _:
                datatype, language, direction = map(value.get, _LITERAL)
                return literal(
                    text,
                    datatype=datatype,
                    language=language,
                    direction=direction,
                    lenience=self._lenience,
                )


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a member is repeated")
    return made


def _is_plain_term(value: object) -> bool:
    """Whether a value is unbound, or a term other than a triple term."""
    if value is None:
        return True
    if not isinstance(value, dict) or not isinstance(value.get("value"), str):
        return False
    match value.get("type"):
        case "uri" | "bnode":
            return len(value) == len(_ANY)
        case "literal" | "typed-literal":
            return value.keys() <= {*_ANY, *_LITERAL} and all(
                isinstance(value.get(name), str | None) for name in _LITERAL
            )
    return False

"""Decodes SPARQL results from bytes to batches of solutions: incrementally, strictly, and without I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pkgutil import resolve_name
from typing import Any, Final, Protocol, TypeVar

from construct_messages.errors import IncompleteResult, TermError, shown
from construct_messages.rdf.formats.results import ResultsFormat
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import UNREADABLE, Lenience, Term

# --- completeness ---------------------------------------------------------------------------------
# Detects members by which various servers mark a result as failed or partial.
#
# The results formats define no such member, and the protocol no status, so the members are detected by their words.
# Reads no bytes.

_FAILURES: Final = frozenset(("error", "errors", "exception", "exceptions"))
_DEPTH_OF_FAILURES: Final = 2  # deeper members named error may be about something else
_OF_A_RESULT: Final = r"(?:is|are|was|were|has|have|results?|rows?|bindings|solutions|data)*"
_PARTIAL: Final = re.compile(
    rf"{_OF_A_RESULT}(?:partial|incomplete|truncated|timedout|capped|cutoff|more){_OF_A_RESULT}"
)
_WHOLE: Final = re.compile(rf"{_OF_A_RESULT}(?:complete|completed|exhaustive){_OF_A_RESULT}")
_STATE: Final = re.compile(r"status|state|warnings?")
_SAID: Final = re.compile(
    r"\b(?:incomplete|partial|truncat|timed[ _-]?out|cancel+ed)", re.IGNORECASE
)
_NO: Final = ("", "0", "false", "no", "none", "null")


def announces_partial_result(text: str) -> bool:
    """Whether a text of a server means that a result is incomplete.

    >>> announces_partial_result("RC...: Returning incomplete results, query interrupted by result timeout.")
    True
    >>> announces_partial_result("the query was completed")
    False
    """
    return _SAID.search(text) is not None


def check_members(kind: str, members: Mapping[str, Any]) -> None:
    """Raises `IncompleteResult` if a member beside the solutions, at any depth, marks a result as failed or incomplete.

    >>> check_members("JSON", {"head": {}, "meta": {"partial": False, "complete": True}})
    >>> check_members("JSON", {"results": {"hasMore": True}})
    Traceback (most recent call last):
    construct_messages.errors.IncompleteResult: the JSON result is declared incomplete: hasMore: true
      hint: ask for less, or give the endpoint more time
    """
    for depth, name, value in _members(members):
        if depth < _DEPTH_OF_FAILURES and name.lower() in _FAILURES and value:
            raise IncompleteResult(f"the {kind} result reports a failure: {_quoted(name, value)}")
        if _says_incomplete(re.sub(r"[^a-z]", "", name.lower()), value):
            raise IncompleteResult(
                f"the {kind} result is declared incomplete: {_quoted(name, value)}",
                hint="ask for less, or give the endpoint more time",
            )


def _says_incomplete(name: str, value: Any) -> bool:
    if _STATE.fullmatch(name):
        return announces_partial_result(str(value))
    if _PARTIAL.fullmatch(name):
        return _is_yes(value)
    return (
        _WHOLE.fullmatch(name) is not None
        and not isinstance(value, dict | list)
        and not _is_yes(value)
    )


def _is_yes(value: Any) -> bool:
    return value.strip().lower() not in _NO if isinstance(value, str) else bool(value)


def _quoted(name: str, value: Any) -> str:
    import json  # imported here because results of other formats do not need it

    return f"{shown(name)}: {shown(json.dumps(value))}"


def _members(members: Mapping[str, Any]) -> Iterator[tuple[int, str, Any]]:
    """The members of an object and of all nested objects, each with its depth."""
    objects = [(0, members)]
    while objects:
        depth, inner = objects.pop()
        for name, value in inner.items():
            yield depth, name, value
            if isinstance(value, dict):
                objects.append((depth + 1, value))


# --- results --------------------------------------------------------------------------------------

DEEPEST: Final = 100
"""The most nested triple terms."""

MOST_COLUMNS: Final = 1000
"""The maximal number of variables of a result, in addition to the requested ones."""


class ResultsDecoder(Protocol):
    """Decodes one results document; created by a `NewDecoder`."""

    def feed(self, data: bytes) -> list[Solutions]:
        """Decodes the next bytes, and returns the solutions that they complete.

        Raises:
            IncompleteResult: the bytes cannot be part of such a document, or it has other variables.
        """
        ...

    def close(self) -> list[Solutions]:
        """Ends the document, and returns the solutions that `feed` has not returned.

        A decoder may buffer bytes to save work, so this may return further solutions of the result.

        Raises:
            IncompleteResult: the document is truncated, there is data after it, or it has other variables.
        """
        ...


class NewDecoder(Protocol):
    """A factory of the decoders of one format: their class."""

    def __call__(
        self,
        variables: tuple[str, ...],
        *,
        response: int = 0,
        scope: str = "d",
        lenience: Lenience | None = None,
    ) -> ResultsDecoder:
        """Creates a decoder for one document.

        Args:
            variables: the names, without `?`, of the columns to return, in that order. The document may declare others,
                which are ignored. If it declares its variables, these must be among them.
            response: the number of the response, for `Solutions.response`.
            scope: the prefix of every blank node label (see `terms.blank`).
            lenience: accepts and counts terms that are not RDF (see `Lenience`); None: they are errors. `UNREADABLE`
                takes the place of those in a solution that is left out.
        """
        ...


def decoder_of(format: ResultsFormat) -> NewDecoder:
    """Returns the decoder of a format, imported on first use."""
    assert format.decoder is not None, f"{format.name} cannot be read"
    decoder: NewDecoder = resolve_name(f"{__name__}.{format.decoder}")
    return decoder


def check_head(kind: str, declared: Collection[str], variables: Sequence[str]) -> None:
    """Checks that a result is for these variables, and not for too many others.

    Args:
        kind: the name of the format, for errors.
        declared: the variables that the result declares.
        variables: the requested variables.

    Raises:
        IncompleteResult: a variable is missing, so this is the answer to another query; or see `MOST_COLUMNS`.

    >>> check_head("JSON", ["o", "s", "p"], ["s", "o"])
    >>> check_head("JSON", ["?s", "O"], ["s", "o"])
    Traceback (most recent call last):
    construct_messages.errors.IncompleteResult: the JSON result is not for ?s ?o: its variables are '?s', 'O'
    """
    if any(variable not in declared for variable in variables):
        wanted = shown(" ".join(f"?{name}" for name in variables))
        given = shown(", ".join(map(repr, list(declared)[:20]))) or "none"
        raise IncompleteResult(f"the {kind} result is not for {wanted}: its variables are {given}")
    if len(declared) > len(variables) + MOST_COLUMNS:
        raise IncompleteResult(
            f"the {kind} result has {len(declared)} variables, and {len(variables)} were requested"
        )


_Value = TypeVar("_Value")


def accepted(lenience: Lenience | None, read: Callable[[_Value], Term], value: _Value) -> Term:
    """Reads a term; `UNREADABLE` if its solution is to be left out.

    Raises:
        TermError: it is not a term, and its solution is not left out.

    >>> from construct_messages.rdf.terms import parse_term
    >>> accepted(Lenience("skip"), parse_term, "<a>"), accepted(Lenience("skip"), parse_term, "<urn:a>")
    ('\\x00', '<urn:a>')
    """
    try:
        return read(value)
    except TermError as error:
        if lenience is None or not lenience.leaves_out(error):
            raise
        return Term(UNREADABLE)


OPAQUE: Final = "<urn:rdf4j:triple:"
"""The beginning of the IRIs by which RDF4J and GraphDB replace triple terms in most formats."""


def checked_iri(term: Term) -> Term:
    """Returns an IRI of a result, or any other term.

    Raises:
        TermError: the IRI stands for a triple term.

    >>> checked_iri(Term("<urn:rdf4j:triple:PDx1cm46YT4->"))
    Traceback (most recent call last):
    construct_messages.errors.TermError: <urn:rdf4j:triple:PDx1cm46YT4-> stands for a triple term
      hint: ask RDF4J and GraphDB for JSON results, the only format in which they write triple terms: results="json"
    """
    if term.startswith(OPAQUE):
        raise TermError(
            f"{term} stands for a triple term",
            hint="ask RDF4J and GraphDB for JSON results, the only format in which they write triple terms: "
            'results="json"',
        )
    return term


def excerpt(data: bytes) -> str:
    """The beginning of some bytes, for errors.

    >>> excerpt(b"!TIMEDOUT!")
    "'!TIMEDOUT!'"
    """
    text = data[:80].decode(errors="replace")
    return repr(f"{text}…" if len(data) > 80 else text)

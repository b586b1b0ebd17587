"""SPARQL results bytes in, batches of solutions out: incremental, strict, and without I/O."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pkgutil import resolve_name
from typing import Final, Protocol

from construct_messages.errors import IncompleteResult, shown
from construct_messages.formats.results import ResultsFormat
from construct_messages.solutions import Solutions
from construct_messages.terms import Lenience

DEEPEST: Final = 100
"""How many triple terms may be nested."""

MOST_COLUMNS: Final = 1000
"""How many variables a result may have beyond those asked for."""


class ResultsDecoder(Protocol):
    """One results document on its way in; made by a `NewDecoder`."""

    def feed(self, data: bytes) -> list[Solutions]:
        """Takes the next bytes, and returns every solution that they complete.

        Raises:
            IncompleteResult: the bytes cannot be part of such a document, or it has other variables.
        """
        ...

    def close(self) -> list[Solutions]:
        """Ends the document, and returns the solutions that `feed` has not returned.

        A decoder may hold bytes back to spare work. So what it returns here belongs to the result as well.

        Raises:
            IncompleteResult: the document is not whole, something follows it, or it has other variables.
        """
        ...


class NewDecoder(Protocol):
    """A factory of decoders of one format: their class."""

    def __call__(
        self,
        variables: tuple[str, ...],
        *,
        response: int = 0,
        scope: str = "d",
        lenience: Lenience | None = None,
    ) -> ResultsDecoder:
        """A decoder for one document.

        Args:
            variables: the names, without `?`, of the columns to return, in that order. The document may declare others,
                which are ignored. If it declares its variables, these must be among them.
            response: the number of the response, handed on in `Solutions.response`.
            scope: goes in front of every blank node label (see `terms.blank`).
            lenience: passes and counts malformed IRIs and language tags (see `terms.iri`); None: they are errors.
        """
        ...


def decoder_of(format: ResultsFormat) -> NewDecoder:
    """The decoder of a format that is read, imported when it is first asked for."""
    assert format.decoder is not None, f"{format.name} is not read"
    decoder: NewDecoder = resolve_name(f"{__name__}.{format.decoder}")
    return decoder


def check_head(kind: str, declared: Collection[str], variables: Sequence[str]) -> None:
    """Nothing, where a result is for these variables, and not for too many others.

    Args:
        kind: the format, as errors name it.
        declared: the variables that the result declares.
        variables: those asked for.

    Raises:
        IncompleteResult: one is missing, so that this is the answer to another query; or see `MOST_COLUMNS`.

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
            f"the {kind} result has {len(declared)} variables, and {len(variables)} were asked for"
        )


def excerpt(data: bytes) -> str:
    """The beginning of some bytes, as errors show it.

    >>> excerpt(b"!TIMEDOUT!")
    "'!TIMEDOUT!'"
    """
    text = data[:80].decode(errors="replace")
    return repr(f"{text}…" if len(data) > 80 else text)

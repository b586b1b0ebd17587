"""Decodes SPARQL results from bytes to batches of solutions: incrementally, strictly, and without I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pkgutil import resolve_name
from typing import Final, Protocol, TypeVar

from construct_messages.rdf.errors import IncompleteResult, TermError, shown
from construct_messages.rdf.formats.results import ResultsFormat
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import UNREADABLE, Lenience, Term

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
    construct_messages.rdf.errors.IncompleteResult: the JSON result is not for ?s ?o: its variables are '?s', 'O'
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
    construct_messages.rdf.errors.TermError: <urn:rdf4j:triple:PDx1cm46YT4-> stands for a triple term
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

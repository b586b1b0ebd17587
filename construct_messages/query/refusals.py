"""Errors for queries that a SPARQL parser rejects, with the position in the query and a hint.

The parser is that of pyoxigraph, which the embedded engine and the algebra use. Nothing is evaluated here.
"""

from __future__ import annotations

import re
from typing import Final

from construct_messages.query.prologue import relative_iri, undeclared
from construct_messages.rdf.errors import Position, QueryError

REWRITTEN: Final = "lines are those of your query; on the line of CONSTRUCT, columns are those of the rewritten SELECT"
"""The hint about an engine's own position in a query that it refuses."""

# strings, as most queries are not refused: `re` compiles and keeps them when they are used
_AT: Final = r"(?:error )?at (\d+):(\d+)(?:-\d+:\d+)?: "
# tokens and keywords; the others are classes of characters
_EXPECTED: Final = r"\"(?:[^\"\\]|\\.)+\"|\b[A-Z][A-Za-z_0-9]+\b(?! [a-z])"
_CLASSES: Final = r"\[(?:'(?:\\.[^']*|[^'])'|[^'\]])*\]"
_NO_IRI: Final = "IRI parsing failed"
# among the expected tokens, the engine's message may hold a sentence with the reason
_SENTENCE: Final = r"(?:expected (?:one of )?|, )([A-Z][A-Za-z]*(?: [A-Za-z]+)+)"


def refusal(error: SyntaxError, text: str, hint: str | None, refused: str) -> QueryError:
    """A syntax error of pyoxigraph's SPARQL parser, with its position and a readable reason.

    Args:
        error: the exception of pyoxigraph.
        text: the query.
        hint: the hint of the error, unless a prefix or a base is missing.
        refused: the beginning of the message.

    >>> import pyoxigraph as ox
    >>> try:
    ...     ox.Store().query("SELECT * { ?s rdfs:label ?o }")
    ... except SyntaxError as error:
    ...     print(refusal(error, "SELECT * { ?s rdfs:label ?o }", None, "the query is not SPARQL"))
    line 1, column 25: the query is not SPARQL: prefix rdfs: is not declared
      hint: add PREFIX rdfs: <...> or give it as an option
    >>> try:
    ...     ox.Store().query("SELECT * { GRAPH <g> { ?s ?p ?o } }")
    ... except SyntaxError as error:
    ...     print(refusal(error, "SELECT * { GRAPH <g> { ?s ?p ?o } }", None, "the query is not SPARQL"))
    line 1, column 21: the query is not SPARQL: IRI <g> is relative
      hint: give a base IRI, or write the IRI in full
    """
    place = re.search(_AT, str(error), re.IGNORECASE)
    found = re.search(_SENTENCE, str(error))
    message = found[1] if found else _unexpected(str(error))
    if message == "Prefix not found" and (prefix := undeclared(text)) is not None:
        message, hint = (
            f"prefix {prefix}: is not declared",
            f"add PREFIX {prefix}: <...> or give it as an option",
        )
    if message == _NO_IRI and (relative := relative_iri(text)) is not None:
        message, hint = f"IRI {relative} is relative", "give a base IRI, or write the IRI in full"
    return QueryError(
        f"{refused}: {message}",
        position=Position(int(place[1]), int(place[2])) if place else None,
        hint=hint,
    )


def _unexpected(message: str) -> str:
    """The tokens that the engine expected, by its message, without classes of characters.

    >>> _unexpected("error at 1:9: expected one of \\",\\", OFFSET, ['0'..='9'], [_]")
    'unexpected token, expected one of "," OFFSET'
    """
    _, _, expected = message.partition("expected ")
    kept = re.sub(_CLASSES, "", expected, flags=re.DOTALL)
    tokens = list(dict.fromkeys(re.findall(_EXPECTED, kept)))
    if not tokens:
        return "unexpected token"
    return f"unexpected token, expected {'one of ' if len(tokens) > 1 else ''}{' '.join(tokens)}"

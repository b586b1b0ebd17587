"""SELECT and ASK queries by themselves, as a `Select` whose solutions can be asked for: an ASK has one, or none.

SPARQL 1.2 Query, section 19.8, [9] SelectClause, [12] AskQuery. Spliced as `rewrite.py` does it for CONSTRUCT.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from construct_messages.errors import Position, QueryError
from construct_messages.query.prologue import given_base, given_prefixes, insert
from construct_messages.query.select import Select
from construct_messages.query.tokens import QueryText, Token, check_braces, decoded, error, outer

_FORMS: Final = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")


def read_results(
    query: str, *, base: str | None = None, prefixes: Mapping[str, str] | None = None
) -> Select:
    """A SELECT or ASK query as it is asked for.

    Args:
        query: its text.
        base, prefixes: see `ConstructQuery.parse`.

    Raises:
        QueryError: another form of query, or a SELECT that does not name its variables.
        UsageError: a malformed base or prefix.

    >>> str(read_results("SELECT (MAX(?t) AS ?latest) { ?s <urn:modified> ?t }"))
    'SELECT (MAX(?t) AS ?latest) { ?s <urn:modified> ?t }'
    >>> read_results("SELECT (MAX(?t) AS ?latest) { ?s <urn:modified> ?t }").variables
    ('latest',)
    >>> str(read_results("ASK { ?s ?p 1 }"))
    'SELECT (1 AS ?answer) { ?s ?p 1 }\\nLIMIT 1'
    """
    read = QueryText.of(query)
    text, tokens = read.text, read.tokens
    head = next(
        (place for place in outer(tokens, 0, len(tokens)) if tokens[place].keyword in _FORMS), None
    )
    if head is None or tokens[head].keyword not in ("SELECT", "ASK"):
        position = None if head is None else Position.at(text, tokens[head].start)
        raise QueryError(
            "expected a SELECT or ASK query", position=position, hint="its result is compared"
        )
    check_braces(text, tokens)
    own = given_prefixes(prefixes)
    used = {decoded(text, token).partition(":")[0] for token in tokens if token.kind == "pname"}
    declared = {
        decoded(text, following)[:-1]
        for token, following in pairwise(tokens[:head])
        if token.keyword == "PREFIX"
    }
    undeclared = {prefix: own[prefix] for prefix in own if prefix in used - declared}
    place, inserted = insert(tokens[:head], given_base(base), undeclared)
    prologue = text[:place] + inserted + text[place : tokens[head].start]
    if tokens[head].keyword == "ASK":
        rest = text[tokens[head].end :].lstrip()
        return Select(
            prologue, "SELECT (1 AS ?answer) ", ("answer",), "", rest, slice="\nLIMIT 1", limit=1
        )
    behind, variables = _projection(text, tokens, head)
    return Select(prologue, text[tokens[head].start : behind], variables, "", text[behind:])


def _projection(text: str, tokens: Sequence[Token], head: int) -> tuple[int, tuple[str, ...]]:
    """Where the projection of a SELECT ends, and its variables."""
    variables: list[str] = []
    for place in outer(tokens, head + 1, len(tokens)):
        token = tokens[place]
        if token.text == "*":
            raise error(text, token.start, "the variables are not named", "name them instead of *")
        if token.keyword in ("FROM", "WHERE") or token.is_mark("{"):
            if not variables:
                raise error(text, token.start, f"expected a variable, found {token.text}")
            return token.start, tuple(variables)
        if token.kind == "variable":
            variables.append(decoded(text, token)[1:])
        elif token.is_mark(")") and tokens[place - 1].kind == "variable":  # (… AS ?v)
            variables.append(decoded(text, tokens[place - 1])[1:])
    raise error(text, len(text), "there is no WHERE group", "add WHERE { ... }")

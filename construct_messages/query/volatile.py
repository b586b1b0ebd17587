"""Variables whose values are new each time a query is evaluated: NOW, RAND, UUID, STRUUID, BNODE.

SPARQL 1.2 Query, section 17.4. Two requests for parts of one result cannot be compared by such variables, nor ordered.
Read from tokens, without a parser. Nothing here changes a query.
"""

from __future__ import annotations

import re
from typing import Final

from construct_messages.query.scope import closings
from construct_messages.query.select import Select
from construct_messages.query.tokens import decoded, tokenize

_FUNCTIONS: Final = frozenset(("NOW", "RAND", "UUID", "STRUUID", "BNODE"))
# Virtuoso's own
_NAMES: Final = frozenset(("bif:now", "bif:rnd", "bif:uuid", "bif:curdatetime"))
# most queries have none of them, and need not be tokenised
_MAY_CALL: Final = re.compile("|".join([*_FUNCTIONS, *_NAMES]), re.IGNORECASE)


def volatile(select: Select) -> frozenset[str]:
    """Returns the variables that an expression assigns to, at any depth, which calls one of these functions.

    An expression over such a variable makes another one. Aggregates are not among them: engines that evaluate them in
    the same order twice return the same value.

    >>> text = "{ ?s ?p ?o BIND(UUID() AS ?id) BIND(STR(?id) AS ?name) BIND(STR(?s) AS ?same) }"
    >>> sorted(volatile(Select("", "SELECT * ", ("s",), "WHERE ", text)))
    ['id', 'name']
    """
    text = str(select)
    if not _MAY_CALL.search(text):
        return frozenset()
    tokens = tokenize(text)
    expressions: list[tuple[str, frozenset[str]]] = []
    found: set[str] = set()
    for opening, end in closings(tokens, 0).items():
        alias, keyword = tokens[end - 1], tokens[end - 2]
        if not tokens[end].is_mark(")") or alias.kind != "variable" or keyword.keyword != "AS":
            continue
        inside = tokens[opening + 1 : end - 2]
        name = decoded(text, alias)[1:]
        calls = (token.keyword in _FUNCTIONS or token.text.lower() in _NAMES for token in inside)
        if any(calls):
            found.add(name)
        used = frozenset(decoded(text, token)[1:] for token in inside if token.kind == "variable")
        expressions.append((name, used))
    while more := {name for name, used in expressions if name not in found and used & found}:
        found |= more
    return frozenset(found)

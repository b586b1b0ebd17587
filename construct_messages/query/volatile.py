"""Finds variables whose values differ in each evaluation of a query: NOW, RAND, UUID, STRUUID, BNODE.

SPARQL 1.2 Query, section 17.4. Two requests for parts of one result cannot be compared by such variables, nor ordered.
Queries are not changed here.
"""

from __future__ import annotations

import re
from typing import Any, Final

from construct_messages.query.select import Select
from construct_messages.query.syntax.nodes import (
    AliasNode,
    CallNode,
    IriNode,
    Unknown,
    VariableNode,
)
from construct_messages.query.syntax.parser import parse
from construct_messages.query.syntax.tree import walk
from construct_messages.rdf.regex import regex

_FUNCTIONS: Final = frozenset(("NOW", "RAND", "UUID", "STRUUID", "BNODE"))
# Virtuoso's own
_NAMES: Final = frozenset(("bif:now", "bif:rnd", "bif:uuid", "bif:curdatetime"))
# most queries have none of them, and need not be parsed
_MAY_CALL: Final = regex("|".join([*_FUNCTIONS, *_NAMES]), re.IGNORECASE)


def volatile(select: Select) -> frozenset[str]:
    """Returns the variables, at any depth, that are assigned an expression with one of these functions.

    A variable that is assigned an expression over such a variable is volatile, too. Aggregates are not among them:
    engines that evaluate them in the same order twice return the same value.

    >>> text = "{ ?s ?p ?o BIND(UUID() AS ?id) BIND(STR(?id) AS ?name) BIND(STR(?s) AS ?same) }"
    >>> sorted(volatile(Select("", "SELECT * ", ("s",), "WHERE ", text)))
    ['id', 'name']
    """
    text = str(select)
    if not _MAY_CALL.search(text):
        return frozenset()
    expressions: list[tuple[str, set[str]]] = []
    found: set[str] = set()
    for alias in walk(parse(text).form):
        if isinstance(alias, AliasNode):
            name, inside = alias.variable.name, list(walk(alias.expression))
            if any(_is_volatile(node, text) for node in inside):
                found.add(name)
            used = {node.name for node in inside if isinstance(node, VariableNode)}
            expressions.append((name, used))
    while more := {name for name, used in expressions if name not in found and used & found}:
        found |= more
    return frozenset(found)


def _is_volatile(node: Any, text: str) -> bool:
    match node:
        case CallNode(function=str(keyword)):
            return keyword in _FUNCTIONS
        case CallNode(function=IriNode() as name):
            return name.written.lower() in _NAMES
        case Unknown(start, end):
            return _MAY_CALL.search(text, start, end) is not None
    return False

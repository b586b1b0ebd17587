"""Windows over a SELECT: LIMIT and OFFSET by which a source that caps its results is read in pages.

SPARQL 1.2 Query, section 15 (solution sequence modifiers): a page is only defined under an order, so every projected
variable is a sort key. All pages of a result have the same form, since an engine may order two forms differently. The
source decides when to page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from construct_messages.query.select import Select
from construct_messages.query.syntax.nodes import (
    AliasNode,
    CallNode,
    IriNode,
    OrderCondition,
    Unknown,
    VariableNode,
    walk,
)
from construct_messages.rdf.errors import UsageError
from construct_messages.rdf.terms import literal

BY_TEXT: Final = ("STR(?{0})", "?{0}")
"""Sort keys of a variable, as format strings: its text, then its value, for engines that compare all values of a text.

By value alone, the order of terms of several types depends on the plan of some engines, and is no order in others.
"""

BY_TEXT_ONLY: Final = (
    *(f'COALESCE({name}(?{{0}}), "")' for name in ("STR", "DATATYPE", "LANG")),
    'COALESCE(IF(isBlank(?{0}), ?{0}, ""), "")',
)
"""Only texts and blank nodes: for engines that fail to compare some values, as most do."""


def page(
    select: Select, limit: int, offset: int, *, wrap: bool = False, keys: Sequence[str] = BY_TEXT
) -> Select | None:
    """A window into the query's own result, which its own LIMIT and OFFSET bound.

    None: the query's own LIMIT ends before it. `wrap` puts the window around the ordered query, for engines that refuse
    ORDER BY with a large OFFSET.

    Terms that ORDER BY cannot tell apart may change places between two pages; SPARQL has no finer order. Values that
    are new in each evaluation, as those of UUID(), are no sort keys: they would make a new order for each page.

    >>> select = Select("", "SELECT ?s ", ("s",), "WHERE ", "{ ?s ?p ?o }", slice=" LIMIT 15", limit=15)
    >>> str(page(select, 10, 10))
    'SELECT ?s WHERE { ?s ?p ?o } ORDER BY STR(?s) ?s LIMIT 5 OFFSET 10'
    >>> str(page(select, 10, 10, wrap=True))
    'SELECT ?s WHERE { { SELECT ?s WHERE { ?s ?p ?o } ORDER BY STR(?s) ?s } } LIMIT 5 OFFSET 10'
    >>> page(select, 10, 20) is None
    True
    """
    if limit < 1 or offset < 0:
        raise UsageError(f"there is no page of {limit} solutions at offset {offset}")
    _check_own(select)
    if select.limit is not None:
        limit = min(limit, select.limit - offset)
    if limit < 1:
        return None
    return _slice(_ordered(select, keys), limit, select.offset + offset, wrap=wrap)


def by_key(
    select: Select, key: str, limit: int, *, least: str | None = None, offset: int = 0
) -> Select:
    """The first solutions in the order of the strings of a key, starting at one of these strings.

    The query has no order or window of its own.

    >>> select = Select("", "SELECT ?s ", ("s",), "WHERE ", "{ ?s ?p ?o }")
    >>> str(by_key(select, "s", 10, least="urn:a"))
    'SELECT ?s WHERE { { SELECT ?s WHERE { ?s ?p ?o } } FILTER(STR(?s) >= "urn:a") } ORDER BY STR(?s) LIMIT 10'
    """
    if select.order or select.slice:
        clause = (select.order or select.slice).split()[0]
        raise UsageError(
            f"the query has {clause}, and pages by ?{key} have an order of their own",
            hint="remove one",
        )
    if key not in select.variables or key in volatile(select):
        listed = ", ".join(f"?{name}" for name in select.variables)
        raise UsageError(
            f"?{key} is no key of the solutions",
            hint=f"use one that is an IRI in each of them: {listed}",
        )
    nested = select.nested()
    group = nested.group
    if least is not None:
        group = f"{group[:-1]}FILTER(STR(?{key}) >= {literal(least)}) }}"
    window = f" LIMIT {limit}" + (f" OFFSET {offset}" if offset else "")
    return replace(
        nested,
        group=group,
        order=f" ORDER BY STR(?{key})",
        slice=window,
        limit=limit,
        offset=offset,
        parsed=None,
    )


def beyond(select: Select, count: int, *, wrap: bool = False) -> Select:
    """The one solution after the first `count`, to test whether it exists; no order is added for this.

    `wrap` as in `page`.

    >>> select = Select("", "SELECT ?s ", ("s",), "WHERE ", "{ ?s ?p ?o }", slice=" OFFSET 5", offset=5)
    >>> str(beyond(select, 10))
    'SELECT ?s WHERE { ?s ?p ?o } LIMIT 1 OFFSET 15'
    """
    _check_own(select)
    return _slice(select, 1, select.offset + count, wrap=wrap and bool(select.order))


def _ordered(select: Select, keys: Sequence[str]) -> Select:
    unordered = volatile(select)
    # some engines fail on a repeated key, which has no effect anyway
    given = {f"?{name}" for name in _plain_keys(select)}
    added = (key.format(name) for name in select.variables if name not in unordered for key in keys)
    ties = "".join(f" {key}" for key in added if key not in given)
    if not ties:
        return select
    return replace(select, order=f"{select.order or ' ORDER BY'}{ties}{_gap(select)}", parsed=None)


def _plain_keys(select: Select) -> set[str]:
    """The variables that are sort keys by themselves.

    >>> select = Select("", "SELECT * ", ("s",), "WHERE ", "{}", order=" ORDER BY ?a DESC(?b) (?c) STR(?d) (?e + 1)")
    >>> sorted(_plain_keys(select))
    ['a', 'b', 'c']
    """
    clauses = select.tree.form.clauses
    keys = (node.expression for node in walk(clauses) if isinstance(node, OrderCondition))
    return {key.name for key in keys if isinstance(key, VariableNode)}


def _slice(select: Select, limit: int, start: int, *, wrap: bool) -> Select:
    gap = _gap(select)
    whole = replace(select, slice="", limit=None, offset=0, parsed=None)
    if wrap:
        whole, gap = whole.nested(), ""
    return replace(whole, slice=f" LIMIT {limit} OFFSET {start}{gap}", limit=limit, offset=start)


def _gap(select: Select) -> str:
    return "" if select.values[:1].isspace() or not select.values else " "


def _check_own(select: Select) -> None:
    """Checks that adding or removing a clause does not turn an illegal query into a legal one."""
    tree = select.tree
    for clause in tree.form.clauses:
        if isinstance(clause, Unknown):
            raise tree.refusal(clause)


# --- volatile -------------------------------------------------------------------------------------
# Finds variables whose values differ in each evaluation of a query: NOW, RAND, UUID, STRUUID, BNODE.
#
# SPARQL 1.2 Query, section 17.4. Two requests for parts of one result cannot be compared by such variables, nor
# ordered. Queries are not changed here.

_FUNCTIONS: Final = frozenset(("NOW", "RAND", "UUID", "STRUUID", "BNODE"))
# Virtuoso's own
_NAMES: Final = frozenset(("bif:now", "bif:rnd", "bif:uuid", "bif:curdatetime"))
# in the text of a dialect
_MAY_CALL: Final = re.compile("|".join([*_FUNCTIONS, *_NAMES]), re.IGNORECASE)


def volatile(select: Select) -> frozenset[str]:
    """Returns the variables, at any depth, that are assigned an expression with one of these functions.

    A variable that is assigned an expression over such a variable is volatile, too. Aggregates are not among them:
    engines that evaluate them in the same order twice return the same value.

    >>> text = "{ ?s ?p ?o BIND(UUID() AS ?id) BIND(STR(?id) AS ?name) BIND(STR(?s) AS ?same) }"
    >>> sorted(volatile(Select("", "SELECT * ", ("s",), "WHERE ", text)))
    ['id', 'name']
    """
    tree = select.tree
    expressions: list[tuple[str, set[str]]] = []
    found: set[str] = set()
    for alias in walk(tree.form):
        if isinstance(alias, AliasNode):
            name, inside = alias.variable.name, list(walk(alias.expression))
            if any(_is_volatile(node, tree.text) for node in inside):
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

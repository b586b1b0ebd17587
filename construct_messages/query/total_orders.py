"""ORDER BY for the embedded engine, pyoxigraph 0.5, whose own order of different kinds of values ends the process.

It compares literals of two kinds by their texts and numbers by their values. This is no total order: 9 < 10 and
"10" < "5" < "9". Where the sort notices, the process ends. So each sort key becomes several, each of which only
compares values of one kind (SPARQL 1.2 Query, section 15.1). They are computed once for each solution, in a group
around the query.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any, Final

from construct_messages.query.syntax import nodes as syntax
from construct_messages.query.syntax.nodes import (
    aggregates,
    group_keys,
    in_scope,
    values_variables,
    walk,
)
from construct_messages.query.syntax.parser import Query
from construct_messages.query.tokens import QueryText, error

ORDER: Final = re.compile(r"(?i)\border\b")
_DIRECTION: Final = re.compile(r"(?i)(?:asc|desc)\b")

# functions whose results the engine compares by a total order: texts, which IRIs come before, and integers
_TEXTS: Final = frozenset(
    ("STR", "LANG", "LANGDIR", "DATATYPE", "IRI", "URI", "UCASE", "LCASE", "CONCAT", "GROUP_CONCAT")
)
_INTEGERS: Final = frozenset(("COUNT", "STRLEN", "YEAR"))
_NAMESPACES: Final = {
    "<xsd:": "<http://www.w3.org/2001/XMLSchema#",
    "<rdf:": "<http://www.w3.org/1999/02/22-rdf-syntax-ns#",
}
_KEY_VARIABLE: Final = re.compile(r"\?([a-z]+)")
# By the name of each further key: its expression, of ?key, and of those before it. Triple terms (only they have a
# ?subject) are the last and compared by their parts, where triple terms within triple terms are equal.
_KEYS: Final[Mapping[str, str]] = {
    "subject": "SUBJECT(?key)",
    "predicate": "PREDICATE(?key)",
    "term": "IF(isTRIPLE(?key), OBJECT(?key), ?key)",
    # Blank nodes and IRIs as they are, numbers as doubles, times as an instant in UTC, all others as texts. The engine
    # has no integers above 64 bits. A year is where it begins; durations count from a day of XML Schema's definition of
    # their order, and by a difference since the engine can only subtract them.
    "value": """IF(isLITERAL(?term),
        IF(DATATYPE(?term) IN (<xsd:string>, <rdf:langString>), STR(?term), COALESCE(
            IF(isNUMERIC(?term), <xsd:double>(?term), ?none),
            IF(DATATYPE(?term) IN (<xsd:integer>, <xsd:nonNegativeInteger>, <xsd:positiveInteger>,
                <xsd:nonPositiveInteger>, <xsd:negativeInteger>, <xsd:unsignedLong>, <xsd:decimal>),
                <xsd:double>(STR(?term)), ?none),
            ADJUST(COALESCE(
                IF(DATATYPE(?term) IN (<xsd:dateTime>, <xsd:date>), <xsd:dateTime>(?term), ?none),
                IF(DATATYPE(?term) = <xsd:time>, <xsd:dateTime>(CONCAT("1972-12-31T", STR(?term))), ?none),
                IF(DATATYPE(?term) = <xsd:gYear>,
                    <xsd:dateTime>(REPLACE(STR(?term), "^(-?[0-9]+)", "$1-01-01T00:00:00")), ?none),
                IF(DATATYPE(?term) = <xsd:gYearMonth>,
                    <xsd:dateTime>(REPLACE(STR(?term), "^(-?[0-9]+-[0-9]+)", "$1-01T00:00:00")), ?none),
                "1696-09-01T00:00:00Z"^^<xsd:dateTime> - ("PT0S"^^<xsd:dayTimeDuration> - ?term)
            ), "PT0S"^^<xsd:dayTimeDuration>),
            STR(?term))),
        IF(isTRIPLE(?term), ?none, ?term))""",
    "kind": """IF(isLITERAL(?value),
        IF(isNUMERIC(?value), 1,
        IF(DATATYPE(?value) = <xsd:string>, 4,
        IF(DATATYPE(?term) IN (<xsd:duration>, <xsd:yearMonthDuration>, <xsd:dayTimeDuration>), 3, 2))), ?none)""",
    # doubles do not tell all integers and decimals apart, and other literals are equal if all of them is
    "rest": """IF(isLITERAL(?term), IF(isNUMERIC(?value), COALESCE(<xsd:decimal>(?term), <xsd:decimal>(STR(?term))),
        CONCAT(STR(DATATYPE(?term)), " ", LANG(?term), " ", LANGDIR(?term))), ?none)""",
}
_SORTED: Final = ("subject", "predicate", "kind", "value", "rest")


class TotalOrders:
    """Rewrites the queries and sub-selects of a text that sort by keys of several kinds."""

    def __init__(self, query: Query) -> None:
        self._text = query.text
        inside = [
            node
            for node in walk(query.form, closed=(syntax.ServicePattern,))  # another engine's
            if isinstance(node, syntax.FormNode)
        ]
        self._check(query)
        self._forms = [
            (form, order)
            for form in inside
            for order in form.clauses
            if isinstance(order, syntax.OrderClause)
            and any(_total(each.expression) is None for each in order.conditions)
        ]
        for item in (item for form, _ in self._forms for item in _items(form)):
            if isinstance(item, syntax.Unknown):
                raise query.refusal(item)
        self._starts = [form.start for form, _ in self._forms]
        names = {node.name for node in walk(query.form) if isinstance(node, syntax.VariableNode)}
        self._prefix = next(
            prefix
            for prefix in ("order" + "_" * length for length in count())
            if not any(name.startswith(prefix) for name in names)
        )
        self._numbers = count(1)

    def text(self) -> str:
        """The whole text."""
        return self._copied(0, len(self._text))

    def _check(self, query: Query) -> None:
        """Refuses text that may hold an ORDER BY which is not in the tree."""
        tokens = QueryText(self._text).tokens
        known = [
            (node.start, node.end)
            for node in walk(query.form)
            if isinstance(node, syntax.OrderClause | syntax.ServicePattern)
        ]
        for token, following in pairwise(tokens):
            if (token.keyword, following.keyword) != ("ORDER", "BY"):
                continue
            if not any(start <= token.start < end for start, end in known):
                raise query.unknown() or error(
                    self._text, token.start, "ORDER BY is not allowed here"
                )

    def _copied(self, start: int, end: int, instead: Mapping[int, tuple[int, str]] = {}) -> str:
        """The text between two offsets, rewritten; `instead` has ends and other texts by starts."""
        pieces, done = [], start
        places = {
            form.start: (form.end, form, order)
            for form, order in self._forms[bisect_left(self._starts, start) :]
            if form.end <= end
        }
        for place in sorted({*places, *instead}):
            if place < done:
                continue
            pieces.append(self._text[done:place])
            if place in instead:
                done, text = instead[place]
            else:
                done, form, order = places[place]
                text = self._ordered(form, order)
            pieces.append(text)
        return "".join((*pieces, self._text[done:end]))

    def _of(self, node: Any) -> str:
        return self._copied(node.start, node.end)

    def _ordered(self, form: Any, order: syntax.OrderClause) -> str:
        """A form that sorts by the keys: around its solutions, from a sub-select with all that the keys need."""
        level = _Level.of(form)
        # without names, all solutions are equal
        if level is None or not level.names:
            outside = self._copied(form.start + 1, order.start), self._copied(order.end, form.end)
            return self._text[form.start] + "".join(outside)
        items = [self._of(item) for item in level.items] or [f"?{name}" for name in level.names]
        bindings, sorts = [], []
        for condition in order.conditions:
            key = self._new()
            bindings.append(f"BIND({self._expression(condition, level, items)} AS ?{key})")
            names = [key]
            if _total(condition.expression) is None:
                names = self._keys(key, bindings)
            sorts += [f"DESC(?{name})" if condition.descending else f"?{name}" for name in names]
        aggregation = self._clauses(form, (syntax.GroupClause, syntax.HavingClause))
        values, slices = (
            self._clauses(form, syntax.ValuesPattern),
            self._clauses(form, syntax.SliceClause),
        )
        return (
            f"{self._head(form, level.names)}WHERE {{ {{ SELECT {' '.join(items)} WHERE {self._of(form.where)}"
            f"{aggregation}{values} }} {' '.join(bindings)} }} ORDER BY {' '.join(sorts)}{slices}"
        )

    def _head(self, form: Any, names: Sequence[str]) -> str:
        dataset = "".join(f"{self._of(each)} " for each in form.dataset)
        if isinstance(form, syntax.SelectForm):
            projection = " ".join(f"?{name}" for name in names)
            return f"SELECT {form.modifier and form.modifier + ' '}{projection} {dataset}"
        if isinstance(
            form, syntax.ConstructForm
        ):  # the pattern of the short form is also its template
            return f"CONSTRUCT {self._of(form.template or form.where)} {dataset}"
        targets = [self._of(each) for each in form.targets or ()] or [f"?{name}" for name in names]
        return f"DESCRIBE {' '.join(targets)} {dataset}"

    def _clauses(self, form: Any, kind: type | tuple[type, ...]) -> str:
        return "".join(f" {self._of(each)}" for each in form.clauses if isinstance(each, kind))

    def _expression(self, condition: syntax.OrderCondition, level: _Level, items: list[str]) -> str:
        """The expression of a condition, outside of the sub-select, whose projection gets what it needs."""
        instead: dict[int, tuple[int, str]] = {}
        if level.keys is None:
            missing: list[syntax.AggregateNode | syntax.VariableNode] = [
                node for node in walk(condition) if isinstance(node, syntax.VariableNode)
            ]
        else:
            missing = [
                node
                for node in walk(condition, closed=(syntax.AggregateNode, syntax.GroupPattern))
                if isinstance(node, syntax.AggregateNode | syntax.VariableNode)
            ]
        for node in missing:
            if isinstance(node, syntax.AggregateNode):
                added, value = self._new(), self._of(node)
            elif node.name in level.projected or node.name not in level.bound:
                continue
            elif level.keys is None or node.name in level.keys:
                level.projected.add(node.name)
                items.append(f"?{node.name}")
                continue
            else:  # section 18.2.4.1: a variable that is no key is a sample of the group
                added, value = self._new(), f"SAMPLE(?{node.name})"
            items.append(f"({value} AS ?{added})")
            instead[node.start] = (node.end, f"?{added}")
        start = condition.start
        if _DIRECTION.match(self._text, start):
            start = self._text.index("(", start)
        return self._copied(start, condition.end, instead)

    def _keys(self, key: str, bindings: list[str]) -> list[str]:
        """Binds the further keys of a key; returns the names of those to sort by."""
        names = {"key": key, "none": f"{self._prefix}0"}
        for name, expression in _KEYS.items():
            names[name] = self._new()
            text = _KEY_VARIABLE.sub(lambda found: f"?{names[found[1]]}", expression)
            for prefix, namespace in _NAMESPACES.items():
                text = text.replace(prefix, namespace)
            bindings.append(f"BIND({text} AS ?{names[name]})")
        return [names[name] for name in _SORTED]

    def _new(self) -> str:
        return f"{self._prefix}{next(self._numbers)}"


@dataclass(frozen=True, slots=True)
class _Level:
    """A query or sub-select."""

    names: tuple[str, ...]  # the variables of its solutions
    items: tuple[
        syntax.VariableNode | syntax.AliasNode, ...
    ]  # the projection; empty for all of these
    projected: set[str]  # the names that its sub-select projects
    bound: Collection[str]  # the variables of the pattern
    keys: Collection[str] | None  # those of its groups; None: it does not group

    @classmethod
    def of(cls, form: Any) -> _Level | None:
        """The level of a form; None if sorting it has no meaning."""
        if isinstance(form, syntax.AskForm) or form.where is None:
            return None
        added = values_variables(form.clauses)
        bound = in_scope(form.where) | dict.fromkeys(added)
        keys = group_keys(form.clauses)
        items = _items(form)
        if items and keys is None and next(aggregates(*items), None) is not None:
            keys = ()
        if keys is not None and not items:
            return None
        names = tuple(
            item.name if isinstance(item, syntax.VariableNode) else item.variable.name
            for item in items
        )
        names = names or tuple(bound)
        return cls(names, items, set(names), bound, None if keys is None else {*keys, *added})


def _items(form: Any) -> tuple[Any, ...]:
    """The projection; empty for all variables."""
    return form.projection or () if isinstance(form, syntax.SelectForm) else ()


def _total(expression: syntax.ExpressionNode) -> str | None:
    """What an expression can only be, if the engine compares this by a total order; None: anything."""
    match expression:
        case (
            syntax.CallNode(function="COALESCE", arguments=parts)
            | syntax.CallNode(function="IF", arguments=(_, *parts))
        ):
            kinds = {_total(part) for part in parts}
            return kinds.pop() if len(kinds) == 1 else None
        case syntax.CallNode(function=name) | syntax.AggregateNode(name=name) if name in _TEXTS:
            return "texts"
        case syntax.CallNode(function=name) | syntax.AggregateNode(name=name) if name in _INTEGERS:
            return "integers"
        case syntax.LiteralNode(datatype=None):
            return "texts"
    return None

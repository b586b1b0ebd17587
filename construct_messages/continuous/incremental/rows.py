"""Applies steps to rows: conditions and expressions, by `expressions.py` if their value is certain, else by the engine.

The engine evaluates all rows of a change at once: each row is a node of a small store, and its values are the objects
of that node. SPARQL 1.1 Query, section 18.6 (Filter, Extend). There is no state between calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import pyoxigraph as ox

from construct_messages.continuous.incremental.expressions import (
    Native,
    Undecided,
    native,
    term_of,
)
from construct_messages.continuous.incremental.plan import FilterStep, Row, Step
from construct_messages.query.algebra.nodes import Call, Constant, Exists, Expression, Var
from construct_messages.rdf.terms import Term, to_pyoxigraph
from construct_messages.sparql.engine import StoreQuery

Counted: TypeAlias = "tuple[Row, int]"
"""A row, and the change of its count."""

_ROW: Final = "urn:row:"
_COLUMN: Final = "urn:column:"
_IS: Final = ox.NamedNode("urn:is")
_INFIX: Final = frozenset(("=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "&&", "||"))


class Steps:
    """A sequence of steps.

    Args:
        steps: the steps.
        variables: the names of the columns of rows.

    Attributes:
        variables: the variables of the resulting rows: the same, and one for each Extend.

    >>> from construct_messages.continuous.incremental.plan import ExtendStep
    >>> from construct_messages.rdf.terms import number
    >>> is_more = FilterStep(Call(">", (Var("x"), Constant(number("5")))))
    >>> steps = Steps([is_more, ExtendStep(Var("y"), Call("/", (Var("x"), Constant(number("2")))))], ("x",))
    >>> [row for row, _ in steps.made([((number("7"),), 1), ((number("3"),), 1)])]
    [('"7"^^<http://www.w3.org/2001/XMLSchema#integer>', '"3.5"^^<http://www.w3.org/2001/XMLSchema#decimal>')]
    """

    def __init__(self, steps: Sequence[Step], variables: Sequence[str]) -> None:
        known = list(variables)
        self._native: list[tuple[bool, Native | None]] = []
        for step in steps:
            columns = {name: place for place, name in enumerate(known)}
            if isinstance(step, FilterStep):
                self._native.append((True, native(step.condition, columns)))
            else:
                self._native.append((False, _copied(step.expression, columns)))
                known.append(step.variable.name)
        self._steps, self._width = steps, len(variables)
        self._before = tuple(variables)
        self.variables = tuple(known)
        self._engine: _RowQuery | None = None

    def made(self, rows: Iterable[Counted]) -> list[Counted]:
        """Returns the resulting rows, with the added values."""
        if not self._native:
            return list(rows)
        made, undecided = list[Counted](), list[Counted]()
        for row, count in rows:
            try:
                if (found := self._made(row)) is not None:
                    made.append((found, count))
            except Undecided:
                undecided.append((row, count))
        if undecided:
            if self._engine is None:
                self._engine = _RowQuery(self._steps, self._before)
            made += (
                (undecided[number][0] + added, undecided[number][1])
                for number, added in self._engine.answers([row for row, _ in undecided])
            )
        return made

    def _made(self, row: Row) -> Row | None:
        """Returns a row after all steps; None if it is left out.

        Raises:
            Undecided: see `native`.
        """
        for is_filter, value in self._native:
            if value is None:
                raise Undecided
            if not is_filter:
                added = value(row)
                row = (*row, added if type(added) is str else term_of(added))
                continue
            decided = value(row)
            if decided is not True:
                if decided is None or decided is False:
                    return None
                raise Undecided
        return row


def _copied(expression: Expression, columns: Mapping[str, int]) -> Native | None:
    """Like `native`, but a variable has its term, of any kind."""
    if isinstance(expression, Var) and (place := columns.get(expression.name)) is not None:
        return lambda row: row[place]
    return native(expression, columns)


class _RowQuery:
    """Returns the query to the engine for some steps."""

    def __init__(self, steps: Sequence[Step], variables: Sequence[str]) -> None:
        names = {name: f"?v{number}" for number, name in enumerate(variables)}
        read = {name for step in steps for name in read_by(step)}
        self._columns = [
            (place, ox.NamedNode(f"{_COLUMN}{place}"))
            for place, name in enumerate(variables)
            if name in read
        ]
        group = f"{{ ?row <{_IS.value}> ?number"
        for place, column in self._columns:
            group += f" OPTIONAL {{ ?row <{column.value}> ?v{place} }}"
        group += " }"
        added: list[str] = []
        for step in steps:
            if isinstance(step, FilterStep):
                group = f"{{ {group} FILTER({text_of(step.condition, names)}) }}"
            else:
                text = text_of(step.expression, names)
                name = names[step.variable.name] = f"?w{len(added)}"
                added.append(name)
                group = f"{{ {group} BIND({text} AS {name}) }}"
        self._query = StoreQuery(f"SELECT ?number {' '.join(added)} {group}")

    def answers(self, rows: Sequence[Row]) -> list[tuple[int, Row]]:
        """Returns the numbers of the resulting rows, and the values that each step adds.

        Raises:
            SourceError: the evaluation failed.
        """
        quads = []
        for number, row in enumerate(rows):
            node = ox.NamedNode(f"{_ROW}{number}")
            quads.append(ox.Quad(node, _IS, ox.NamedNode(f"{_ROW}{number}")))
            quads += (
                ox.Quad(node, column, to_pyoxigraph(Term(row[place])))
                for place, column in self._columns
                if row[place]
            )
        store = ox.Store()
        store.extend(quads)
        found = self._query.solve(store).solutions
        begin = len(_ROW) + 1
        return [(int(row[0][begin:-1]), row[1:]) for row in found or ()]


def read_by(step: Step) -> set[str]:
    """Returns the variables that a step reads."""
    left = [step.condition if isinstance(step, FilterStep) else step.expression]
    names = set()
    while left:
        match left.pop():
            case Var(name):
                names.add(name)
            case Call(_, arguments):
                left += arguments
    return names


def text_of(expression: Expression, names: dict[str, str]) -> str:
    """Returns an expression as text of SPARQL.

    Args:
        expression: without EXISTS.
        names: the names of the variables, with `?`; others are unbound.

    >>> text_of(Call("IN", (Var("x"), Constant(Term('"a"')))), {"x": "?v0"})
    '(?v0 IN ("a"))'
    """
    match expression:
        case Var(name):
            return names.get(name, "?unbound")
        case Constant(term):
            return term
        case Call("IN", (needle, *members)):
            return f"({text_of(needle, names)} IN ({_listed(members, names)}))"
        case Call("!" | "u-" | "u+" as name, (only,)):
            return f"({name[-1]} {text_of(only, names)})"
        case Call(name, (left, right)) if name in _INFIX:
            return f"({text_of(left, names)} {name} {text_of(right, names)})"
        case Call(name, arguments):
            return f"{name}({_listed(arguments, names)})"
        case Exists():
            raise AssertionError("EXISTS is not an expression on a row")


def _listed(expressions: Sequence[Expression], names: dict[str, str]) -> str:
    return ", ".join(text_of(one, names) for one in expressions)

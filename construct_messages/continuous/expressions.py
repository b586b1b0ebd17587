"""Evaluates expressions of SPARQL on solutions of texts if their value is certain without the engine.

SPARQL 1.1 Query, section 17.3 (operators). Integers, decimals, doubles, booleans, times in UTC, plain strings without
escapes, IRIs and blank nodes, in the forms in which a store returns them. Other values raise `Undecided`, and the
engine evaluates them (`Steps`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from operator import add, eq, ge, gt, le, lt, mul, ne, sub
from typing import Any, Final, NamedTuple, TypeAlias

import pyoxigraph as ox

from construct_messages.continuous.dataset import PLAIN_FORMS, StoredTerms
from construct_messages.query.algebra.calls import mentioned
from construct_messages.query.algebra.nodes import Call, Constant, Exists, Expression, Var
from construct_messages.rdf.terms import XSD, Term, from_pyoxigraph, to_pyoxigraph
from construct_messages.sparql.engine import StoreQuery

Row: TypeAlias = "tuple[str, ...]"
"""The values of some variables, as terms; the empty string is unbound."""
Counted: TypeAlias = "tuple[Row, int]"
"""A row, and the change of its count."""
Step: TypeAlias = "tuple[Var | None, Expression]"
"""Binds the variable to the value of an expression, or without a variable, keeps rows for which it is true."""

Native: TypeAlias = Callable[[Row], Any]
"""The value of an expression for a row: `int`, `bool`, `Decimal`, `float`, `Moment`, `Text`, `Resource` or None."""


class NotMaintained(Exception):
    """Raised if solutions can no longer be maintained, with the reason."""


class Undecided(Exception):
    """Raised if the value of an expression is not certain here."""


class Text(NamedTuple):
    """A plain string."""

    text: str


class Moment(NamedTuple):
    """An xsd:dateTime in UTC with a year of four digits, without its Z, so that texts have the order of times."""

    text: str


class Resource(NamedTuple):
    """An IRI or a blank node."""

    term: str


_INTEGER_END: Final = f'"^^<{XSD}integer>'
_DECIMAL_END: Final = f'"^^<{XSD}decimal>'
_DOUBLE_END: Final = f'"^^<{XSD}double>'
_DATE_TIME_END: Final = f'"^^<{XSD}dateTime>'
_BOOLEAN_END: Final = f'"^^<{XSD}boolean>'
_TRUE: Final = f'"true{_BOOLEAN_END}'
_BOOLEANS: Final = (_TRUE, f'"false{_BOOLEAN_END}')
_INTEGER_TAIL: Final = len(_INTEGER_END)
_DECIMAL_TAIL: Final = len(_DECIMAL_END)
_INTEGER: Final = re.compile(PLAIN_FORMS["integer"]).fullmatch
_DECIMAL: Final = re.compile(PLAIN_FORMS["decimal"]).fullmatch
_DOUBLE_TAIL: Final = len(_DOUBLE_END)
_DATE_TIME_TAIL: Final = len(_DATE_TIME_END)
_DOUBLE: Final = re.compile(PLAIN_FORMS["double"]).fullmatch
_DATE_TIME: Final = re.compile(PLAIN_FORMS["dateTime"]).fullmatch
_EXACT: Final = 2**53  # integers up to it are doubles
_MOST: Final = 10**18  # integers below it do not overflow in the engine

_COMPARED: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge,
}  # fmt: skip
_COMPUTED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {"+": add, "-": sub, "*": mul}


@lru_cache(maxsize=1 << 14)
def value_of(term: str) -> Any:
    """Returns the value of a term; None if it is unbound. Raises `Undecided` for other kinds of terms.

    >>> value_of(f'"5"^^<{XSD}integer>'), value_of('"a"'), value_of("")
    (5, Text(text='a'), None)
    """
    if term.endswith(_INTEGER_END):
        if _INTEGER(text := term[1:-_INTEGER_TAIL]):
            return int(text)
    elif term.endswith('"'):
        if "\\" not in term:
            return Text(term[1:-1])
    elif term.startswith(("<", "_:")):
        if not term.startswith("<<("):
            return Resource(term)
    elif not term:
        return None
    elif term.endswith(_DECIMAL_END):
        if _DECIMAL(text := term[1:-_DECIMAL_TAIL]):
            return Decimal(text)
    elif term.endswith(_DATE_TIME_END):
        if _DATE_TIME(text := term[1:-_DATE_TIME_TAIL]):
            return Moment(text[:-1])
    elif term.endswith(_DOUBLE_END):
        if _DOUBLE(text := term[1:-_DOUBLE_TAIL]):
            return float(text)
    elif term in _BOOLEANS:
        return term == _TRUE
    raise Undecided


def term_of(value: Any) -> str:
    """Returns the term of a value; unbound without a value. Raises `Undecided` if it depends on its computation.

    >>> term_of(Text("a")), term_of(None), term_of(True)
    ('"a"', '', '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>')
    """
    match value:
        case None:
            return ""
        case bool():
            return f'"{str(value).lower()}{_BOOLEAN_END}'
        case int():
            return f'"{value}{_INTEGER_END}'
        case float() if _DOUBLE(text := repr(value).removesuffix(".0")):
            return f'"{text}{_DOUBLE_END}'
        case Moment(text):
            return f'"{text}Z{_DATE_TIME_END}'
        case Text(text):
            return f'"{text}"'
        case Resource(term):
            return term
    raise Undecided


def native(expression: Expression, columns: Mapping[str, int]) -> Native | None:
    """Returns a function for the value of an expression without EXISTS; None if only the engine can evaluate it.

    Variables without a column are unbound.


    >>> x = Var("x")
    >>> is_more = native(Call(">", (x, Constant(Term(f'"5"^^<{XSD}integer>')))), {"x": 0})
    >>> is_more((f'"7"^^<{XSD}integer>',)), is_more(("",))
    (True, None)
    """
    match expression:
        case Var(name):
            return _variable(name, columns)
        case Constant(term):
            return _constant(term)
        case Call("BOUND", (Var(name),)):
            place = columns.get(name)
            return (lambda _: False) if place is None else (lambda row: row[place] != "")
        case Call(("&&" | "||" | "!") as name, arguments):
            inner = [native(argument, columns) for argument in arguments]
            known = [one for one in inner if one is not None]
            return _logical(name, known) if len(known) == len(inner) else None
        case Call("IN", (needle, *members)):
            equal = [native(Call("=", (needle, member)), columns) for member in members]
            known = [one for one in equal if one is not None]
            return _logical("||", known) if len(known) == len(equal) > 0 else None
        case Call(name, (left, right)) if name in _COMPARED:
            return _comparison(name, left, right, columns)
        case Call(name, (left, right)) if name in _COMPUTED:
            first, second = native(left, columns), native(right, columns)
            return first and second and _computation(_COMPUTED[name], first, second)
    return None


def _variable(name: str, columns: Mapping[str, int]) -> Native:
    place = columns.get(name)
    return (lambda _: None) if place is None else (lambda row: value_of(row[place]))


def _constant(term: Term) -> Native | None:
    try:
        value = value_of(from_pyoxigraph(StoredTerms().term(to_pyoxigraph(term))))
    except Undecided:
        return None
    return lambda _: value


def _comparison(
    name: str, left: Expression, right: Expression, columns: Mapping[str, int]
) -> Native | None:
    compare = _COMPARED[name]
    first, second = native(left, columns), native(right, columns)
    if first is None or second is None:
        return None
    if isinstance(left, Var) and isinstance(right, Constant) and left.name in columns:
        limit = second(())
        if type(limit) is int:  # the most common filters
            return _limit(compare, columns[left.name], limit)
    is_equality = name in ("=", "!=")

    def compared_values(one: Any, other: Any) -> bool | None:
        if one is None or other is None:
            return None
        kind, kind_other = type(one), type(other)
        if kind is kind_other or {kind, kind_other} == {int, Decimal}:
            if not is_equality and kind in (Resource, bool):
                raise Undecided
            return compare(one, other)
        if {kind, kind_other} == {int, float} and max(abs(one), abs(other)) <= _EXACT:
            return compare(one, other)
        if is_equality and Resource in (kind, kind_other):
            return compare is ne
        raise Undecided

    if not (
        isinstance(left, Var)
        and isinstance(right, Var)
        and left.name in columns
        and right.name in columns
    ):
        return lambda row: compared_values(first(row), second(row))
    place, place_other = columns[left.name], columns[right.name]

    def compared(row: Row) -> bool | None:
        one, other = value_of(row[place]), value_of(row[place_other])
        if type(one) is int and type(other) is int:  # a shortcut for joins of many with many
            return compare(one, other)
        return compared_values(one, other)

    return compared


def _limit(compare: Callable[[Any, Any], bool], place: int, limit: int) -> Native:
    def compared(row: Row) -> bool | None:
        term = row[place]
        if term.endswith(_INTEGER_END):
            text = term[1:-_INTEGER_TAIL]
            if len(text) < 19 and text.isdigit() and text.isascii():  # a shortcut
                return compare(int(text), limit)
        value = value_of(term)
        if value is None:
            return None
        if type(value) is Decimal or (type(value) is float and abs(limit) <= _EXACT):
            return compare(value, limit)
        if type(value) is Resource and compare in (eq, ne):
            return compare is ne
        raise Undecided

    return compared


def _computation(compute: Callable[[Any, Any], Any], first: Native, second: Native) -> Native:
    def computed(row: Row) -> int | float | None:
        one, other = first(row), second(row)
        if one is None or other is None:
            return None
        if float in (type(one), type(other)) and {type(one), type(other)} <= {int, float}:
            if abs(one) <= _EXACT and abs(other) <= _EXACT:
                return float(compute(float(one), float(other)))
            raise Undecided
        if type(one) is int and type(other) is int:
            found: int = compute(one, other)
            if -_MOST < found < _MOST:
                return found
        raise Undecided

    return computed


def _truth(value: Any) -> bool | None:
    if value is None or type(value) is bool:
        return value
    raise Undecided  # other values have effective boolean values, too


def _logical(name: str, inner: list[Native]) -> Native:
    if name == "!":
        (only,) = inner

        def negated(row: Row) -> bool | None:
            value = _truth(only(row))
            return None if value is None else not value

        return negated
    decisive = name == "||"

    def joined(row: Row) -> bool | None:
        result: bool | None = not decisive
        for one in inner:
            value = _truth(one(row))
            if value is decisive:
                return decisive
            if value is None:
                result = None
        return result

    return joined


def is_about(condition: Expression, variables: Collection[str]) -> bool:
    """Whether a condition only reads these variables.

    >>> is_about(Call("!", (Var("x"),)), ("x", "y"))
    True
    """
    return all(variable.name in variables for variable in mentioned(condition))


def certain(condition: Expression, variables: Sequence[str]) -> Callable[[Row], bool]:
    """The test of a condition, which `native` knows.

    It raises `NotMaintained` for values that only the engine can compare: a question to it for each pair of rows would
    cost more than to ask it for all solutions.
    """
    test = native(condition, {name: place for place, name in enumerate(variables)})
    assert test is not None  # the planner refuses others

    def passes(row: Row) -> bool:
        try:
            value = test(row)
        except Undecided:
            raise NotMaintained("a FILTER of OPTIONAL, MINUS or EXISTS of unusual values") from None
        if value is None or type(value) is bool:
            return value is True
        raise NotMaintained("a FILTER of OPTIONAL, MINUS or EXISTS without comparison")

    return passes


def necessary(
    conditions: Iterable[Expression], variables: Sequence[str]
) -> Callable[[Row], bool] | None:
    """The test of those of some conditions that only read these variables; None: none can be tested here.

    A row that fails it is in no solution. One that passes it may still fail in the engine. So may one that leaves a
    variable of a condition unbound, which the rest of the query may bind.
    """
    columns = {name: place for place, name in enumerate(variables)}
    every = [
        _passing(test, [columns[variable.name] for variable in mentioned(condition)])
        for condition in conditions
        if is_about(condition, columns) and (test := native(condition, columns)) is not None
    ]
    if len(every) < 2:
        return every[0] if every else None
    return lambda row: all(passes(row) for passes in every)


def _passing(test: Native, places: Sequence[int]) -> Callable[[Row], bool]:
    """Returns whether a row may fulfil a condition on the values in these places."""

    def passes(row: Row) -> bool:
        for place in places:
            if not row[place]:
                return True
        try:
            value = test(row)
        except Undecided:
            return True
        return value is not None and value is not False

    return passes


# --- steps ----------------------------------------------------------------------------------------
# Applies conditions and expressions to rows: here if their value is certain, else by the engine.
#
# The engine evaluates all rows of a change at once: each row is a node of a small store, and its values are the objects
# of that node. SPARQL 1.1 Query, section 18.6 (Filter, Extend). There is no state between calls.

_ROW: Final = "urn:row:"
_COLUMN: Final = "urn:column:"
_IS: Final = ox.NamedNode("urn:is")
_INFIX: Final = frozenset(("=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "&&", "||"))


class Steps:
    """A sequence of steps on rows with some columns. Those of the result are `names`.


    >>> from construct_messages.rdf.terms import number
    >>> is_more = Call(">", (Var("x"), Constant(number("5"))))
    >>> steps = Steps([(None, is_more), (Var("y"), Call("/", (Var("x"), Constant(number("2")))))], ("x",))
    >>> [row for row, _ in steps.made([((number("7"),), 1), ((number("3"),), 1)])]
    [('"7"^^<http://www.w3.org/2001/XMLSchema#integer>', '"3.5"^^<http://www.w3.org/2001/XMLSchema#decimal>')]
    """

    def __init__(self, steps: Sequence[Step], names: Sequence[str]) -> None:
        known = list(names)
        self._native: list[tuple[bool, Native | None]] = []
        for variable, expression in steps:
            columns = {name: place for place, name in enumerate(known)}
            if variable is None:
                self._native.append((True, native(expression, columns)))
            else:
                self._native.append((False, _copied(expression, columns)))
                known.append(variable.name)
        self._steps, self._before = steps, tuple(names)
        self.names = tuple(known)
        self._engine: _RowQuery | None = None

    def made(self, rows: list[Counted]) -> list[Counted]:
        """Returns the resulting rows, with the added values."""
        if not self._native:
            return rows
        made: list[Counted] = []
        undecided: list[Counted] = []
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
        """Returns a row after all steps; None if it fails one. Raises `Undecided`, see `native`."""
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
    """The query to the engine for some steps."""

    def __init__(self, steps: Sequence[Step], variables: Sequence[str]) -> None:
        names = {name: f"?v{number}" for number, name in enumerate(variables)}
        read = {variable.name for _, expression in steps for variable in mentioned(expression)}
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
        for variable, expression in steps:
            text = text_of(expression, names)
            if variable is None:
                group = f"{{ {group} FILTER({text}) }}"
            else:
                name = names[variable.name] = f"?w{len(added)}"
                added.append(name)
                group = f"{{ {group} BIND({text} AS {name}) }}"
        self._query = StoreQuery(f"SELECT ?number {' '.join(added)} {group}")

    def answers(self, rows: Sequence[Row]) -> list[tuple[int, Row]]:
        """Returns the numbers of the resulting rows, and the values that each step adds."""
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


def text_of(expression: Expression, names: dict[str, str]) -> str:
    """Returns an expression without EXISTS as text of SPARQL. `names` are those of variables, with `?`.


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

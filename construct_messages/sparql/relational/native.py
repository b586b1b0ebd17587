"""Expressions as native SQL, where it is exact: over terms as canonical N-Triples strings.

Native SQL decides an expression for some terms, such as the comparison of integers of up to 18 digits: those for which
`Native.decided` is true. The others are evaluated by `expressions`. The text is the common subset of the
engines' SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import product
from math import isfinite
from types import MappingProxyType
from typing import Any, Final

from construct_messages.query.algebra.nodes import (
    Aggregation,
    Call,
    Constant,
    Expression,
    Var,
    Vars,
)
from construct_messages.rdf.terms import RDF, XSD, Term, boolean, literal, number
from construct_messages.sparql.relational.dialects import Dialect
from construct_messages.sparql.relational.relation import column
from construct_messages.sparql.relational.values import (
    KEY_DIGITS,
    KEY_END,
    NUMERIC,
    TEMPORAL,
    PlainString,
    Tagged,
    TimePoint,
    value_of,
)

ALWAYS: Final = "TRUE"

_XSD: Final = re.escape(XSD)
_EXACT: Final = (
    rf"(?:[+-]?[0-9]{{1,18}}(?:\"\^\^<{_XSD}(?:integer|long)>|(?:[.][0-9]{{1,9}})?\"\^\^<{_XSD}decimal>)"
    rf"|[+-]?[0-9]{{1,9}}\"\^\^<{_XSD}int>|[0-9]{{1,18}}\"\^\^<{_XSD}nonNegativeInteger>)"
)
_DOUBLE: Final = (
    rf"[+-]?[0-9]{{1,18}}(?:[.][0-9]{{1,18}})?(?:[eE][+-]?[0-9]{{1,2}})?\"\^\^<{_XSD}double>"
)
_EXACT_TYPE: Final = "DECIMAL(28,9)"
_DAY: Final = (
    "[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    "|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
_TIME: Final = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:[.][0-9]*[1-9])?"
# points in time whose order is that of their lexical forms without the zone, within each
_MOMENTS: Final = (
    rf"{_DAY}T{_TIME}Z\"\^\^<{_XSD}dateTime>",
    rf"{_DAY}T{_TIME}\"\^\^<{_XSD}dateTime>",
    rf"{_DAY}\"\^\^<{_XSD}date>",
)
_BOOLEANS: Final = tuple(boolean(form) for form in ("false", "true"))  # in their order
_ZONELESS: Final = rf"[1-9][0-9]{{3}}(?:-[0-9]{{2}}){{0,2}}\"\^\^<{_XSD}(?:date|gYear|gYearMonth)>"
_COMPARISONS: Final = ("=", "!=", "<", "<=", ">", ">=")
_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_STRINGS: Final = frozenset({"STR", "UCASE", "LCASE"})  # equal strings are equal terms
_ORDERED: Final = "'n', 'nd', 's', 'tz', 't', 'd', 'b'"  # kinds whose values have an order
_TESTS: Final = ("STRSTARTS", "STRENDS", "CONTAINS")
_DATATYPE: Final = r"\"\^\^(<[^\"<>]*>)$"
_AS_PATTERN: Final = re.compile(r"(\^?)([A-Za-z0-9 _:/#%&'<>=;,@!~-]+)")


@dataclass(frozen=True)
class Native:
    """SQL of a value, and SQL of whether it is the right one; the SQL of a condition is NULL for an error."""

    sql: str
    decided: str = ALWAYS


Kinds = Mapping[Var, frozenset[str]]
"""The kinds of all terms that a variable may be bound to, see `comparand`."""


def condition(
    expression: Expression,
    dialect: Dialect,
    sides: Mapping[Var, str] | None = None,
    kinds: Kinds = MappingProxyType({}),
) -> Native | None:
    """Returns SQL of whether a condition is true, which may be false or NULL for an error; None if there is none.

    `sides` are the names of the tables that variables are columns of; without them, all are of `t`. What is compared
    with variables has the columns of `comparand`.
    """
    return _Writer(dialect, sides, kinds).condition(expression, strict=False)


def unless(test: str, condition: Native | None) -> Native:
    """Returns SQL of a condition that is true, too, where a test is, which is never NULL."""
    if condition is None:
        return Native(f"({test})", f"({test})")
    decided = (
        condition.decided if condition.decided == ALWAYS else f"({test} OR {condition.decided})"
    )
    return Native(f"({test} OR {condition.sql})", decided)


def term(expression: Expression, dialect: Dialect) -> Native | None:
    """Returns SQL of the term of an expression; None if there is none."""
    return _Writer(dialect).term(expression)


def comparands(expressions: Iterable[Expression]) -> Vars:
    """Returns the variables that are compared with variables, for which SQL needs the columns of `comparand`."""
    found: set[Var] = set()
    for one in expressions:
        if isinstance(one, Call):
            compared = one.name in _COMPARISONS or one.name == "IN"
            if compared and sum(isinstance(part, Var) for part in one.arguments) > 1:
                found.update(part for part in one.arguments if isinstance(part, Var))
            found |= comparands(one.arguments)
    return frozenset(found)


def comparand(
    variable: Var, dialect: Dialect, kinds: Kinds
) -> tuple[dict[Var, str], dict[Var, str]]:
    """Returns hidden variables for comparisons of a variable, and their SQL; that of the last three needs the first.

    The kind: `n` a number in decimal digits, `nd` an xsd:double, `s` a string, `se` one with escapes, `l` one with a
    language, `tz` and `t` dateTimes in UTC and without a zone, `d` a date, `b` a boolean, `x` no literal, `?` any other
    literal. Then text, exact number and double, by which values of one kind are compared.
    """
    writer = _Writer(dialect)
    x, (kind, text, exact, double) = writer.column(variable), _comparand(variable)
    k = f"t.{column(kind)}"
    point = f"WHEN {k} IN ('tz', 't', 'd') THEN {writer.point(x)}"
    texts = f"CASE WHEN {k} = 's' THEN {writer.lexical(x)} {point} ELSE {x} END"
    only = kinds.get(variable, frozenset())
    kind_of = kind_of_terms(x, dialect)
    if len(only) == 1:
        kind_of = f"CASE WHEN {x} IS NOT NULL THEN '{next(iter(only))}' END"
    return {kind: kind_of}, {
        text: texts,
        exact: f"CASE WHEN {k} = 'n' THEN {writer.exact(x)} END",
        double: f"CASE WHEN left({k}, 1) = 'n' THEN {writer.double(x)} END",
    }


def kind_of_terms(x: str, dialect: Dialect) -> str:
    """Returns SQL of the kind of a term, see `comparand`."""
    return _Writer(dialect).kind(x)


def _decides(kind: str, other: str, equality: bool) -> bool:
    """Whether SQL compares terms of two kinds, as in `of_variables`."""
    if "?" in (kind, other):
        return False
    if kind[0] != other[0] or kind[0] not in ("s", "l", "t"):
        return True
    if equality:
        return kind == other or kind[0] != "t"
    return kind == other and f"'{kind}'" in _ORDERED


def _comparand(variable: Var) -> tuple[Var, ...]:
    return tuple(Var(f".{letter}.{variable.name}") for letter in "ktxd")


def join_key(variable: Var, dialect: Dialect) -> str:
    """Returns SQL of a string that equal values share: an engine joins by it, and `=` decides for the pairs.

    Numbers of any type have the same key if they are the same xsd:float. Dates without a zone have the key of their
    terms; all other dates and times have one key.
    """
    return _Writer(dialect).join_key(variable)


@dataclass(frozen=True)
class Aggregate:
    """SQL of the value of a group, and of the terms that it leaves out (for `expressions.aggregates`) or NULL."""

    sql: str
    rest: str | None = None


def aggregate(
    one: Aggregation,
    argument: str | None,
    key: str | None,
    visible: Sequence[str],
    dialect: Dialect,
) -> Aggregate:
    """Returns SQL of an aggregate of a group.

    Args:
        one: no AVG, which is SUM by COUNT.
        argument: the column of the aggregated terms, in which NULL is an error; None for `COUNT(*)`.
        key: for MIN and MAX, the column of their `values.order_key`.
        visible: the columns of the variables in the group.
    """
    distinct = "DISTINCT " if one.distinct else ""
    match one.name:
        case "COUNT":
            counted = argument or "*"
            if argument is None and one.distinct:
                texts = ", ".join(f"coalesce({name}, '')" for name in visible)
                line_feed = dialect.text("\n")
                counted = f"concat_ws({line_feed}, {texts})" if texts else "''"
            integer = dialect.text(f'"^^<{XSD}integer>')
            return Aggregate(f"""concat('"', count({distinct}{counted}), {integer})""")
        case "SAMPLE":
            return Aggregate(f"min({argument})")
        case "MIN" | "MAX":
            # of equal values the same one in each run
            chosen = f"{one.name.lower()}_by({argument}, concat({key}, ' ', {argument}))"
            return Aggregate(f"CASE WHEN count(*) = count({argument}) THEN {chosen} END")
        case "SUM" if not one.distinct and argument:
            return _Writer(dialect).total(argument)
    empty = literal("") if one.name == "GROUP_CONCAT" else number("0")
    terms = f"string_agg({distinct}concat('1 ', {argument}), {dialect.text(chr(10))})"
    return Aggregate(
        f"CASE WHEN count(*) = 0 THEN {dialect.text(empty)} END",
        f"CASE WHEN count(*) = count({argument}) THEN {terms} END",
    )


@dataclass(frozen=True)
class _Writer:
    dialect: Dialect
    sides: Mapping[Var, str] | None = None
    kinds: Kinds = field(default_factory=dict)

    def side(self, variable: Var) -> str:
        return "t" if self.sides is None else self.sides[variable]

    def column(self, variable: Var) -> str:
        return f"{self.side(variable)}.{column(variable)}"

    def text(self, value: str) -> str:
        return self.dialect.text(value)

    # --- terms ------------------------------------------------------------------------------------------------------

    def term(self, expression: Expression) -> Native | None:
        match expression:
            case Var():
                return Native(self.column(expression))
            case Constant(constant):
                return Native(self.text(constant))
            case Call("IF", (test, yes, no)):
                condition = self.condition(test, strict=True)
                return self.chosen(condition, self.term(yes), self.term(no))
            case Call("COALESCE", arguments):
                found = [self.term(one) for one in arguments]
                known = [one for one in found if one is not None]
                if not known or len(known) < len(found):
                    return None
                return Native(f"coalesce({', '.join(one.sql for one in known)})", _all(*known))
            case Call("ORDERKEY", (Var() as variable,)):
                return self.order_key(self.column(variable))
            case Call("DATATYPE", (Var() as variable,)):
                return self.datatype_of(self.column(variable))
            case Call("STR", (Var() as variable,)):
                x = self.column(variable)
                suffix = self.text(r"\"(?:@[A-Za-z0-9-]+|\^\^<[^\"<>]*>)$")
                quote = self.text('"')
                return Native(
                    f"CASE WHEN {_is_iri(x)} THEN concat({quote}, {_inside(x)}, {quote}) "
                    f"WHEN {_is_literal(x)} THEN regexp_replace({x}, {suffix}, {quote}) END"
                )
            case Call("UCASE" | "LCASE" as name, (argument,)):
                return self.in_case(name, argument)
            case Call("LANG", (Var() as variable,)):
                quote = self.text('"')
                x = self.column(variable)
                return Native(
                    f"CASE WHEN {_is_literal(x)} THEN concat({quote}, {self.language(x)}, {quote}) END"
                )
        condition = self.condition(expression, strict=True)
        false, true = (Native(self.text(value)) for value in _BOOLEANS)
        return self.chosen(condition, true, false)

    def chosen(self, test: Native | None, yes: Native | None, no: Native | None) -> Native | None:
        if test is None or yes is None or no is None:
            return None
        sql = f"CASE WHEN {test.sql} THEN {yes.sql} WHEN NOT ({test.sql}) THEN {no.sql} END"
        return Native(sql, _all(test, yes, no))

    def datatype_of(self, x: str) -> Native:
        quote, string = self.text('"'), self.text(f"<{XSD}string>")
        tagged = f"right({x}, 5) IN ('--ltr', '--rtl')"
        of_language = f"CASE WHEN {tagged} THEN {self.text(f'<{RDF}dirLangString>')} "
        of_language += f"ELSE {self.text(f'<{RDF}langString>')} END"
        found = f"regexp_extract({x}, {self.text(_DATATYPE)}, 1)"
        return Native(
            f"CASE WHEN {_is_literal(x)} THEN CASE WHEN right({x}, 1) = {quote} THEN {string} "
            f"WHEN right({x}, 1) = '>' THEN {found} ELSE {of_language} END END"
        )

    def in_case(self, name: str, argument: Expression) -> Native | None:
        """UCASE or LCASE of a variable or its STR, of characters of ASCII."""
        texts = self.texts(argument)
        if texts is None:
            return None
        x, parts = texts
        quote, function = self.text('"'), "upper" if name == "UCASE" else "lower"
        branches = " ".join(
            f"WHEN {test} THEN concat({quote}, {function}({text}), {end})"
            for test, text, end in parts
        )
        plain = self.dialect.matches(x, r"[ -\[\]-~]*")
        return Native(f"CASE {branches} END", f"({x} IS NULL OR {plain})")

    def texts(self, argument: Expression) -> tuple[str, list[tuple[str, str, str]]] | None:
        """The column of a variable or its STR, and for each kind of its terms that are strings there: a test, the
        characters without escapes, and the rest of the literal."""
        quote = self.text('"')
        match argument:
            case Var():
                x = self.column(argument)
                rest = f"substring({x}, length({self.lexical(x)}) + 2)"
                return x, [(self.is_text(x), self.lexical(x), rest)]
            case Call("STR", (Var() as variable,)):
                x = self.column(variable)
                return x, [
                    (_is_iri(x), _inside(x), quote),
                    (_is_literal(x), self.lexical(x), quote),
                ]
        return None

    def language(self, x: str) -> str:
        tag = self.text(r"\"@([A-Za-z0-9-]+?)(?:--(?:ltr|rtl))?$")
        return f"regexp_extract({x}, {tag}, 1)"

    def order_key(self, x: str) -> Native:
        """See `values.order_key`."""
        end, plain = self.text(KEY_END), f"({self.is_text(x)} AND {self.plain(x)})"
        tag = f"""split_part(substring({x}, 2), {self.text('"')}, 2)"""
        cases = [
            (_is_iri(x), f"concat('1', {_inside(x)})"),
            (_is_blank(x), f"concat('0', {x})"),
            (plain, f"concat('3', {self.lexical(x)}, {end}, {tag})"),
            (self.form(x, _EXACT), self.number_key(self.lexical(x))),
            (self.is_boolean(x), f"concat('4', {x})"),
            *(
                (self.form(x, form), f"concat('5', {self.lexical(x)}, {rest})")
                for form, rest in zip(_MOMENTS[1:], ("''", "'T00:00:00'"), strict=True)
            ),
            (
                self.form(x, _MOMENTS[0]),
                f"concat('5', split_part({self.lexical(x)}, 'Z', 1))",
            ),
        ]
        branches = " ".join(f"WHEN {test} THEN {key}" for test, key in cases)
        decided = " OR ".join([f"{x} IS NULL", *(test for test, _ in cases)])
        return Native(f"CASE {branches} END", f"({decided})")

    def number_key(self, text: str) -> str:
        digits = f"trim(LEADING '+-0' FROM {text})"
        shortest = f"trim(TRAILING '.' FROM trim(TRAILING '0' FROM {digits}))"
        shortest = f"CASE WHEN position('.' IN {text}) > 0 THEN {shortest} ELSE {digits} END"
        whole = f"CAST(position('.' IN concat({digits}, '.')) - 1 AS STRING)"
        key = f"concat(lpad({whole}, {KEY_DIGITS}, '0'), {shortest})"
        negative = f"left({text}, 1) = '-' AND trim(LEADING '+-0.' FROM {text}) <> ''"
        complement = f"translate({key}, '0123456789', '9876543210')"
        return f"CASE WHEN {negative} THEN concat('2N', {complement}, '~') ELSE concat('2P', {key}) END"

    # --- conditions -------------------------------------------------------------------------------------------------

    def condition(self, expression: Expression, *, strict: bool) -> Native | None:
        """`strict`: an error is not the same as false."""
        match expression:
            case Var():
                return self.truth(self.column(expression))
            case Call("IF", (test, yes, no)):
                return self.chosen(
                    self.condition(test, strict=True),
                    self.condition(yes, strict=strict),
                    self.condition(no, strict=strict),
                )
            case Call("&&" | "||" as name, (left, right)):
                one = self.condition(left, strict=strict)
                other = self.condition(right, strict=strict)
                if one is None or other is None:
                    return None
                operator = "AND" if name == "&&" else "OR"
                return Native(f"({one.sql} {operator} {other.sql})", _all(one, other))
            case Call("!", (inner,)):
                found = self.condition(inner, strict=True)
                return None if found is None else Native(f"(NOT {found.sql})", found.decided)
            case Call("IN", (needle, *members)) if members:
                return self.among(needle, members, strict=strict)
            case Call("SAMEKEY", (Var() as left, Var() as right)):
                return Native(f"({self.join_key(left)} = {self.join_key(right)})")
            case Call("SAMEKEY"):
                return Native("TRUE")  # `=` decides
            case Call("BOUND", (Var() as variable,)):
                return Native(f"({self.column(variable)} IS NOT NULL)")
            case Call("SAMETERM", (left, right)):
                sides = self.known(left), self.known(right)
                return None if None in sides else Native(f"({sides[0]} = {sides[1]})")
            case Call("ISIRI" | "ISBLANK" | "ISLITERAL" as name, (Var() as variable,)):
                kind = {"ISIRI": _is_iri, "ISBLANK": _is_blank, "ISLITERAL": _is_literal}[name]
                return Native(f"({kind(self.column(variable))})")
            case Call("ISNUMERIC", (Var() as variable,)):
                return self.is_numeric(self.column(variable))
            case Call("LANGMATCHES", (Call("LANG", (Var() as variable,)), Constant(range))):
                return self.language_matches(variable, range)
            case Call(name, (left, right)) if name in _COMPARISONS:
                return self.compared(name, left, right, strict=strict)
            case Call(name, (text, Constant(part))) if name in _TESTS:
                known = value_of(part)
                return self.tested(name, text, known) if type(known) is PlainString else None
            case Call("REGEX", (text, Constant(pattern))):
                known = value_of(pattern)
                plain = _AS_PATTERN.fullmatch(known) if type(known) is PlainString else None
                if plain is None:
                    return None
                return self.tested("STRSTARTS" if plain[1] else "CONTAINS", text, plain[2])
        return None

    def truth(self, x: str) -> Native:
        """The effective boolean value."""
        exact, false = self.form(x, _EXACT), self.text(_BOOLEANS[0])
        untyped = f"NOT {self.is_typed(x)}"
        text = f"CASE WHEN {_is_literal(x)} THEN left({x}, 2) <> {self.text(chr(34) * 2)} END"
        return Native(
            f"CASE WHEN {untyped} THEN {text} WHEN {self.is_boolean(x)} THEN {x} <> {false} "
            f"WHEN {exact} THEN {self.exact(x)} <> 0 END",
            f"({x} IS NULL OR {untyped} OR {self.is_boolean(x)} OR {exact})",
        )

    def is_numeric(self, x: str) -> Native:
        number = f"({self.form(x, _EXACT)} OR {self.form(x, _DOUBLE)})"
        untyped = f"NOT {self.is_typed(x)}"
        return Native(
            f"CASE WHEN {untyped} THEN FALSE WHEN {number} THEN TRUE END",
            f"({x} IS NULL OR {untyped} OR {number})",
        )

    def among(
        self, needle: Expression, members: Sequence[Expression], *, strict: bool
    ) -> Native | None:
        found = [self.compared("=", needle, one, strict=strict) for one in members]
        known = [one for one in found if one is not None]
        if len(known) < len(found):
            return None
        return Native(f"({' OR '.join(one.sql for one in known)})", _all(*known))

    def known(self, side: Expression) -> str | None:
        match side:
            case Var():
                return self.column(side)
            case Constant(constant):
                return self.text(constant)
        return None

    def join_key(self, variable: Var) -> str:
        """See the function."""
        x = self.column(variable)

        def has_type(names: Iterable[str]) -> str:
            return self.dialect.matches(x, rf"\"[^\"]*\"\^\^<{_XSD}(?:{'|'.join(sorted(names))})>")

        true = f"({self.lexical(x)} IN ('true', '1'))"
        number = f"TRY_CAST({self.lexical(x)} AS DOUBLE)"
        single = f"CAST(least(greatest({number}, -3e38), 3e38) AS FLOAT) + CAST(0 AS FLOAT)"
        return (
            f"CASE WHEN right({x}, 1) <> '>' OR left({x}, 1) <> {self.text(chr(34))} THEN {x} "
            f"WHEN {has_type(NUMERIC)} THEN concat('n', coalesce(CAST({single} AS STRING), '')) "
            f"WHEN {has_type(['boolean'])} THEN CASE WHEN {true} THEN 't' ELSE 'f' END "
            f"WHEN {has_type(TEMPORAL)} AND NOT {self.form(x, _ZONELESS)} THEN 'd' ELSE {x} END"
        )

    def language_matches(self, variable: Var, range: Term) -> Native | None:
        known, x = value_of(range), self.column(variable)
        if type(known) is not PlainString:
            return None
        tag = self.language(x)
        test = f"{tag} <> ''"
        if known != "*":
            prefix = f"{known.lower()}-"
            test = f"left(concat({tag}, '-'), {len(prefix)}) = {self.text(prefix)}"
        return Native(f"CASE WHEN {_is_literal(x)} THEN {test} END")

    def tested(self, name: str, text: Expression, part: str) -> Native | None:
        """STRSTARTS, STRENDS or CONTAINS of a variable or its STR, and a plain string."""
        texts = self.texts(text)
        if texts is None:
            return None
        x, parts = texts
        branches = " ".join(
            f"WHEN {test} THEN {self.test(name, chars, part)}" for test, chars, _ in parts
        )
        return Native(f"CASE {branches} END", f"({x} IS NULL OR {self.plain(x)})")

    def test(self, name: str, text: str, part: str) -> str:
        literal = self.text(part)
        if name == "CONTAINS":
            return f"(position({literal} IN {text}) > 0)" if part else "TRUE"
        side = "left" if name == "STRSTARTS" else "right"
        return f"({side}({text}, {len(part)}) = {literal})" if part else "TRUE"

    def lexical(self, x: str) -> str:
        """The characters of a literal without escapes."""
        return f"""split_part(substring({x}, 2), {self.text('"')}, 1)"""

    def plain(self, x: str) -> str:
        """Whether a literal has no escapes."""
        return f"position({self.text(chr(92))} IN {x}) = 0"

    def is_text(self, x: str) -> str:
        """Whether a term is a string, with or without a language."""
        return f"({_is_literal(x)} AND right({x}, 1) <> '>')"

    def is_typed(self, x: str) -> str:
        """Whether a term is a literal of a datatype other than that of strings."""
        return f"({_is_literal(x)} AND right({x}, 1) = '>')"

    def is_plain(self, x: str) -> str:
        """Whether a term is a string without language and escapes."""
        quote = self.text('"')
        return f"({_is_literal(x)} AND right({x}, 1) = {quote} AND {self.plain(x)})"

    def is_boolean(self, x: str) -> str:
        return f"{x} IN ({', '.join(map(self.text, _BOOLEANS))})"

    def exact(self, x: str) -> str:
        """The value of a number in decimal digits."""
        return f"TRY_CAST({self.lexical(x)} AS {_EXACT_TYPE})"

    def double(self, x: str) -> str:
        return f"TRY_CAST({self.lexical(x)} AS DOUBLE)"

    # --- comparisons ------------------------------------------------------------------------------------------------

    def compared(
        self, operator: str, left: Expression, right: Expression, *, strict: bool
    ) -> Native | None:
        match left, right:
            case Constant(), Var():
                return self.compared(_TURNED.get(operator, operator), right, left, strict=strict)
            case Call("LANG", (Var() as variable,)), Constant(constant) if operator in ("=", "!="):
                known, x = value_of(constant), self.column(variable)
                if type(known) is not PlainString:
                    return None
                test = f"{self.language(x)} {_sql(operator)} {self.text(known)}"
                return Native(f"CASE WHEN {_is_literal(x)} THEN {test} END")
            case Call("DATATYPE", (Var() as variable,)), Constant(constant) if operator in (
                "=",
                "!=",
            ):
                return self.datatype(operator, variable, constant)
            case Call(name), Constant(constant) if operator in ("=", "!=") and name in _STRINGS:
                found = self.term(left)
                if type(value_of(constant)) is not PlainString or found is None:
                    return None
                test = f"({found.sql} {_sql(operator)} {self.text(constant)})"
                return Native(test, found.decided)
            case Call(one), Call(other) if operator in ("=", "!=") and {one, other} <= _STRINGS:
                found, second = self.term(left), self.term(right)
                if found is None or second is None:
                    return None
                test = f"({found.sql} {_sql(operator)} {second.sql})"
                return Native(test, _all(found, second))
            case Var(), Constant(constant):
                return self.with_constant(operator, self.column(left), constant, strict=strict)
            case Var(), Var():
                return self.of_variables(operator, left, right)
        return None

    def datatype(self, operator: str, variable: Var, constant: Term) -> Native | None:
        x = self.column(variable)
        if not constant.startswith("<") or constant == f"<{RDF}dirLangString>":
            return None
        if constant == f"<{XSD}string>":
            test = f"""right({x}, 1) = {self.text('"')}"""
        elif constant == f"<{RDF}langString>":
            test = f"NOT right({x}, 1) IN ({self.text(chr(34))}, '>') AND right({x}, 5) NOT IN ('--ltr', '--rtl')"
        else:
            suffix = f'"^^{constant}'
            test = f"right({x}, {len(suffix)}) = {self.text(suffix)}"
        negated = "NOT " if operator == "!=" else ""
        return Native(f"CASE WHEN {_is_literal(x)} THEN {negated}({test}) END")

    def with_constant(
        self, operator: str, x: str, constant: Term, *, strict: bool
    ) -> Native | None:
        known: Any = value_of(constant)
        equality = operator in ("=", "!=")
        if equality:
            always = not constant.startswith('"') or type(known) is Tagged
            same = f"({x} {_sql(operator)} {self.text(constant)})"
            if always:
                return Native(same)
            if type(known) is PlainString:
                if operator == "=" and not strict:
                    return Native(same)
                return Native(same, f"({x} IS NULL OR NOT {self.is_typed(x)})")
        found = self.same_kind(operator, x, constant, known)
        if found is None:
            return None
        sql, decided = found
        # a term that is no literal equals none, and has no order
        other = f"{_sql_truth(operator)}" if equality else "NULL"
        return Native(
            f"CASE WHEN {decided} THEN {sql} WHEN NOT {_is_literal(x)} THEN {other} END",
            f"({x} IS NULL OR NOT {_is_literal(x)} OR {decided})",
        )

    def same_kind(
        self, operator: str, x: str, constant: Term, known: Any
    ) -> tuple[str, str] | None:
        """Returns SQL of the comparison with a constant, and of the terms that it is right for."""
        sql, kind = _sql(operator), type(known)
        if kind in (int, Decimal, float):
            return self.with_number(sql, x, known)
        if kind is TimePoint:
            forms = [form for form in _MOMENTS if re.fullmatch(r"\"" + form, constant)]
            if not forms:
                return None
            text = self.text(known.text.removesuffix("Z"))
            return f"{self.point(x)} {sql} {text}", self.form(x, forms[0])
        if kind is bool and constant in _BOOLEANS:
            return f"{x} {sql} {self.text(constant)}", self.is_boolean(x)
        if kind is PlainString and operator not in ("=", "!=") and "\\" not in constant:
            return f"{self.lexical(x)} {sql} {self.text(known)}", self.is_plain(x)
        return None

    def with_number(self, sql: str, x: str, known: Any) -> tuple[str, str] | None:
        is_exact, is_double = self.form(x, _EXACT), self.form(x, _DOUBLE)
        compared = f"{self.double(x)} {sql} CAST('{float(known)!r}' AS DOUBLE)"
        if type(known) is float:
            if not isfinite(known):
                return None
        else:
            digits = _exact_text(known)
            if digits is None:
                return None
            exact = f"{self.exact(x)} {sql} CAST('{digits}' AS {_EXACT_TYPE})"
            compared = f"CASE WHEN {is_exact} THEN {exact} ELSE {compared} END"
        return compared, f"({is_exact} OR {is_double})"

    def point(self, x: str) -> str:
        """A point in time of one of the forms of `_MOMENTS`, without its zone."""
        return f"split_part({self.lexical(x)}, 'Z', 1)"

    def of_variables(self, operator: str, left: Var, right: Var) -> Native:
        """A comparison of two variables, by the columns of `comparand`."""
        equality, sql = operator in ("=", "!="), _sql(operator)
        k, text, exact, double = (
            tuple(
                f"{self.side(one)}.{column(hidden[n])}" for one, hidden in ((left, a), (right, b))
            )
            for a, b in [(_comparand(left), _comparand(right))]
            for n in range(4)
        )
        family = f"left({k[0]}, 1) = left({k[1]}, 1)"
        order = "" if equality else f"WHEN NOT {k[0]} IN ({_ORDERED}) THEN NULL "
        same = (
            f"CASE WHEN {k[0]} = 'n' THEN {exact[0]} {sql} {exact[1]} "
            f"WHEN {k[0]} = 'nd' THEN {double[0]} {sql} {double[1]} "
            f"{order}ELSE {text[0]} {sql} {text[1]} END"
        )
        other = _sql_truth(operator) if equality else "NULL"
        if equality:
            open = f"({k[0]} <> {k[1]} AND {family} AND left({k[0]}, 1) = 't')"
        else:
            open = (
                f"({family} AND left({k[0]}, 1) IN ('s', 'l', 't') "
                f"AND NOT ({k[0]} = {k[1]} AND {k[0]} IN ({_ORDERED})))"
            )
        decided = f"({k[0]} IS NULL OR {k[1]} IS NULL OR NOT ('?' IN ({k[0]}, {k[1]}) OR {open}))"
        if left in self.kinds and right in self.kinds:
            pairs = product(self.kinds[left], self.kinds[right])
            decided = ALWAYS if all(_decides(*pair, equality) for pair in pairs) else decided
        return Native(
            f"CASE WHEN {k[0]} = {k[1]} THEN {same} "
            f"WHEN {family} AND left({k[0]}, 1) = 'n' THEN {double[0]} {sql} {double[1]} "
            f"WHEN {k[0]} IS NOT NULL AND {k[1]} IS NOT NULL THEN {other} END",
            decided,
        )

    def kind(self, x: str) -> str:
        """See `comparand`."""
        kinds = [
            (self.form(x, _EXACT), "n"),
            (self.form(x, _DOUBLE), "nd"),
            *zip((self.form(x, form) for form in _MOMENTS), ("tz", "t", "d"), strict=True),
            (self.is_boolean(x), "b"),
        ]
        typed = " ".join(f"WHEN {test} THEN '{kind}'" for test, kind in kinds)
        return (
            f"CASE WHEN {x} IS NULL THEN {self.dialect.null} WHEN NOT {_is_literal(x)} THEN 'x' "
            f"WHEN {self.is_plain(x)} THEN 's' WHEN right({x}, 1) = {self.text(chr(34))} THEN 'se' "
            f"WHEN right({x}, 1) <> '>' THEN 'l' {typed} ELSE '?' END"
        )

    # --- aggregates -------------------------------------------------------------------------------------------------

    def total(self, x: str) -> Aggregate:
        """SUM of the terms of a group that are exact numbers."""
        exact, zero = self.form(x, _EXACT), self.text(f'"0"^^<{XSD}integer>')
        total = f"sum(CASE WHEN {exact} THEN {self.exact(x)} END)"
        size = f"CAST(abs({total}) AS DECIMAL(36,9))"
        # Spark writes numbers below 1e-6 with an exponent in one of its modes
        digits = f"concat(CAST(floor({size}) AS STRING), '.', split_part(CAST({size} + 1 AS STRING), '.', 2))"
        digits = f"trim(TRAILING '.' FROM trim(TRAILING '0' FROM {digits}))"
        sign = f"CASE WHEN {total} < 0 THEN '-' ELSE '' END"
        of_type = (self.text(f'"^^<{XSD}{name}>') for name in ("integer", "decimal"))
        integer = f"bool_and(right({x}, 9) <> '#decimal>')"
        datatype = f"CASE WHEN {integer} THEN {next(of_type)} ELSE {next(of_type)} END"
        rest = f"string_agg(CASE WHEN NOT {exact} THEN concat('1 ', {x}) END, {self.text(chr(10))})"
        return Aggregate(
            f"""CASE WHEN count(*) = 0 THEN {zero} WHEN count(*) = count({x}) AND {total} IS NOT NULL """
            f"""THEN concat('"', {sign}, {digits}, {datatype}) END""",
            f"CASE WHEN count(*) = count({x}) THEN {rest} END",
        )

    def form(self, x: str, pattern: str) -> str:
        return self.dialect.matches(x, r"\"" + pattern)


def _exact_text(value: Any) -> str | None:
    """The digits of a number that `_EXACT_TYPE` holds."""
    number = Decimal(value)
    if abs(number) >= Decimal(10) ** 18 or number != round(number, 9):
        return None
    return f"{number:f}"


def _sql(operator: str) -> str:
    return "<>" if operator == "!=" else operator


def _sql_truth(operator: str) -> str:
    return "TRUE" if operator == "!=" else "FALSE"


def _all(*parts: Native) -> str:
    conditions = dict.fromkeys(part.decided for part in parts if part.decided != ALWAYS)
    return " AND ".join(conditions) or ALWAYS


def _is_iri(x: str) -> str:
    return f"(left({x}, 1) = '<' AND left({x}, 3) <> '<<(')"


def _is_blank(x: str) -> str:
    return f"(left({x}, 2) = '_:')"


def _is_literal(x: str) -> str:
    return f"""(left({x}, 1) = '"')"""


def _inside(x: str) -> str:
    return f"substring({x}, 2, length({x}) - 2)"

"""Expressions as native SQL, where it is exact: over terms as canonical N-Triples strings.

Native SQL decides an expression for some terms, such as the comparison of integers of up to 18 digits: those for which
`Native.decided` is true. The others are evaluated by `expressions.Evaluator`. The text is the common subset of the
engines' SQL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from construct_messages.query.algebra.nodes import Call, Constant, Expression, Var
from construct_messages.rdf.terms import RDF, XSD, Term, boolean
from construct_messages.sparql.relational.dialects import Dialect
from construct_messages.sparql.relational.relation import column
from construct_messages.sparql.relational.values import PlainString, Tagged, TimePoint, value_of

ALWAYS: Final = "TRUE"

_XSD: Final = re.escape(XSD)
_DECIMAL: Final = (
    rf"[+-]?[0-9]{{1,18}}(?:\"\^\^<{_XSD}integer>|(?:[.][0-9]{{1,9}})?\"\^\^<{_XSD}decimal>)"
)
_DOUBLE: Final = (
    rf"[+-]?[0-9]{{1,18}}(?:[.][0-9]{{1,18}})?(?:[eE][+-]?[0-9]{{1,2}})?\"\^\^<{_XSD}double>"
)
_EXACT_TYPE: Final = "DECIMAL(28,9)"
_DAY: Final = (
    "[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    "|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
_TIME: Final = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_MOMENTS: Final = {
    "dateTime": rf"\"{_DAY}T{_TIME}Z\"\^\^<{_XSD}dateTime>",
    "date": rf"\"{_DAY}\"\^\^<{_XSD}date>",
}
_COMPARISONS: Final = ("=", "!=", "<", "<=", ">", ">=")
_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TESTS: Final = ("STRSTARTS", "STRENDS", "CONTAINS")
_AS_PATTERN: Final = re.compile(r"(\^?)([A-Za-z0-9 _:/#%&'<>=;,@!~-]+)")


@dataclass(frozen=True)
class Native:
    """SQL of a value, and SQL of whether it is the right one; the SQL of a condition is NULL for an error."""

    sql: str
    decided: str = ALWAYS


def condition(
    expression: Expression, dialect: Dialect, sides: Mapping[Var, str] | None = None
) -> Native | None:
    """Returns SQL of whether a condition is true, which may be false or NULL for an error; None if there is none.

    `sides` are the names of the tables that variables are columns of; without them, all are of `t`.
    """
    return _Writer(dialect, sides).condition(expression, strict=False)


def term(expression: Expression, dialect: Dialect) -> Native | None:
    """Returns SQL of the term of an expression; None if there is none."""
    return _Writer(dialect, None).term(expression)


@dataclass(frozen=True)
class _Writer:
    dialect: Dialect
    sides: Mapping[Var, str] | None

    def column(self, variable: Var) -> str:
        return f"{'t' if self.sides is None else self.sides[variable]}.{column(variable)}"

    def text(self, value: str) -> str:
        return self.dialect.text(value)

    # --- terms ------------------------------------------------------------------------------------------------------

    def term(self, expression: Expression) -> Native | None:
        match expression:
            case Call("STR", (Var() as variable,)):
                x = self.column(variable)
                suffix = self.text(r"\"(?:@[A-Za-z0-9-]+|\^\^<[^\"<>]*>)$")
                quote = self.text('"')
                return Native(
                    f"CASE WHEN {_is_iri(x)} THEN concat({quote}, {_inside(x)}, {quote}) "
                    f"WHEN {_is_literal(x)} THEN regexp_replace({x}, {suffix}, {quote}) END"
                )
            case Call("LANG", (Var() as variable,)):
                quote = self.text('"')
                x = self.column(variable)
                return Native(
                    f"CASE WHEN {_is_literal(x)} THEN concat({quote}, {self.language(x)}, {quote}) END"
                )
        found = self.condition(expression, strict=True)
        if found is None:
            return None
        true, false = (self.text(boolean(value)) for value in ("true", "false"))
        sql = f"CASE WHEN {found.sql} THEN {true} WHEN NOT ({found.sql}) THEN {false} END"
        return Native(sql, found.decided)

    def language(self, x: str) -> str:
        tag = self.text(r"\"@([A-Za-z0-9-]+?)(?:--(?:ltr|rtl))?$")
        return f"regexp_extract({x}, {tag}, 1)"

    # --- conditions -------------------------------------------------------------------------------------------------

    def condition(self, expression: Expression, *, strict: bool) -> Native | None:
        """`strict`: an error is not the same as false."""
        match expression:
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
            case Call("SAMEKEY"):
                return Native("TRUE")  # `=` decides
            case Call("BOUND", (Var() as variable,)):
                return Native(f"({self.column(variable)} IS NOT NULL)")
            case Call("SAMETERM", (left, right)):
                sides = self.known(left), self.known(right)
                return None if None in sides else Native(f"({sides[0]} = {sides[1]})")
            case Call("ISIRI" | "ISBLANK" | "ISLITERAL" as name, (Var() as variable,)):
                test = {"ISIRI": _is_iri, "ISBLANK": _is_blank, "ISLITERAL": _is_literal}[name]
                return Native(f"({test(self.column(variable))})")
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
        match text:
            case Var():
                x = self.column(text)
                is_string = f"{_is_literal(x)} AND right({x}, 1) <> '>'"
                branches = f"WHEN {is_string} THEN {self.test(name, self.lexical(x), part)}"
            case Call("STR", (Var() as variable,)):
                x = self.column(variable)
                branches = (
                    f"WHEN {_is_iri(x)} THEN {self.test(name, _inside(x), part)} "
                    f"WHEN {_is_literal(x)} THEN {self.test(name, self.lexical(x), part)}"
                )
            case _:
                return None
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
            case Call("STR", (Var() as variable,)), Constant(constant) if operator in ("=", "!="):
                known = value_of(constant)
                found = self.term(left)
                if type(known) is not PlainString or found is None:
                    return None
                return Native(f"({found.sql} {_sql(operator)} {self.text(constant)})")
            case Var(), Constant(constant):
                return self.with_constant(operator, self.column(left), constant, strict=strict)
            case Var(), Var():
                return self.of_variables(operator, self.column(left), self.column(right))
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
                return Native(
                    same, f"({x} IS NULL OR NOT ({_is_literal(x)} AND right({x}, 1) = '>'))"
                )
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
        sql = _sql(operator)
        if type(known) in (int, Decimal):
            exact = _exact_text(known)
            if exact is None:
                return None
            is_exact, is_double = self.form(x, _DECIMAL), self.form(x, _DOUBLE)
            compared = (
                f"CAST({self.lexical(x)} AS {_EXACT_TYPE}) {sql} CAST('{exact}' AS {_EXACT_TYPE})"
            )
            double = f"CAST({self.lexical(x)} AS DOUBLE) {sql} CAST('{float(known)!r}' AS DOUBLE)"
            return (
                f"CASE WHEN {is_exact} THEN {compared} ELSE {double} END",
                f"({is_exact} OR {is_double})",
            )
        if type(known) is TimePoint and known.kind in _MOMENTS:
            pattern = _MOMENTS[known.kind]
            if not re.fullmatch(pattern.replace('\\"', '"'), constant):
                return None
            return f"{x} {sql} {self.text(constant)}", self.dialect.matches(x, pattern)
        if type(known) is PlainString and operator not in ("=", "!=") and "\\" not in constant:
            is_plain = (
                f"""({_is_literal(x)} AND right({x}, 1) = {self.text('"')} AND {self.plain(x)})"""
            )
            return f"{self.lexical(x)} {sql} {self.text(known)}", is_plain
        return None

    def of_variables(self, operator: str, x: str, y: str) -> Native:
        sql = _sql(operator)
        exact = f"({self.form(x, _DECIMAL)} AND {self.form(y, _DECIMAL)})"
        number = f"CAST({self.lexical(x)} AS {_EXACT_TYPE}) {sql} CAST({self.lexical(y)} AS {_EXACT_TYPE})"
        if operator not in ("=", "!="):
            return Native(
                f"CASE WHEN {exact} THEN {number} END", f"({x} IS NULL OR {y} IS NULL OR {exact})"
            )
        untyped = " AND ".join(f"NOT ({_is_literal(z)} AND right({z}, 1) = '>')" for z in (x, y))
        return Native(
            f"CASE WHEN {exact} THEN {number} WHEN {untyped} THEN {x} {sql} {y} END",
            f"({x} IS NULL OR {y} IS NULL OR {exact} OR ({untyped}))",
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

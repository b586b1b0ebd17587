"""Translation of expressions to calls of the algebra.

SPARQL 1.1 Query, section 17 and grammar rules [110] to [128]. What an expression needs of its surroundings comes as
callbacks: a number for BNODE, the group of an aggregate, the body of EXISTS. Functions that SPARQL 1.1 does not have
are refused by name. No patterns here, and no evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import rdflib
from rdflib.plugins.sparql.parserutils import CompValue

from construct_messages.query.algebra.nodes import (
    Aggregation,
    Call,
    Constant,
    Exists,
    Expression,
    Node,
    Var,
)
from construct_messages.query.algebra.parse_tree import ParseTree
from construct_messages.terms import XSD, Term, literal

FUNCTIONS: Final = frozenset(
    (
        *(
            "STR",
            "LANG",
            "LANGMATCHES",
            "DATATYPE",
            "BOUND",
            "IRI",
            "BNODE",
            "RAND",
            "ABS",
            "CEIL",
            "FLOOR",
        ),
        *(
            "ROUND",
            "CONCAT",
            "SUBSTR",
            "STRLEN",
            "REPLACE",
            "UCASE",
            "LCASE",
            "ENCODE_FOR_URI",
            "CONTAINS",
        ),
        *(
            "STRSTARTS",
            "STRENDS",
            "STRBEFORE",
            "STRAFTER",
            "YEAR",
            "MONTH",
            "DAY",
            "HOURS",
            "MINUTES",
        ),
        *(
            "SECONDS",
            "TIMEZONE",
            "TZ",
            "NOW",
            "UUID",
            "STRUUID",
            "MD5",
            "SHA1",
            "SHA256",
            "SHA384",
            "SHA512",
        ),
        *(
            "COALESCE",
            "IF",
            "STRLANG",
            "STRDT",
            "SAMETERM",
            "ISIRI",
            "ISBLANK",
            "ISLITERAL",
            "ISNUMERIC",
        ),
        "REGEX",
    )
)
_SAME: Final = {"URI": "IRI", "ISURI": "ISIRI"}
_AGGREGATES: Final = {
    "Aggregate_Count": "COUNT",
    "Aggregate_Sum": "SUM",
    "Aggregate_Min": "MIN",
    "Aggregate_Max": "MAX",
    "Aggregate_Avg": "AVG",
    "Aggregate_Sample": "SAMPLE",
    "Aggregate_GroupConcat": "GROUP_CONCAT",
}
CASTS: Final = frozenset(
    Term(f"<{XSD}{name}>")
    for name in ("boolean", "double", "float", "decimal", "integer", "dateTime", "string", "date")
)
"""The datatypes of casts: those of SPARQL 1.1, section 17.5, and xsd:date, which most engines have, too."""


_NEW: Final = frozenset(("RAND", "UUID", "STRUUID", "BNODE", "FRESH"))
FALSE: Final = Term(f'"false"^^<{XSD}boolean>')


@dataclass
class ExpressionTranslator:
    """Translates expressions that are evaluated for the same solutions.

    Args:
        tree: of the query.
        now: the value of NOW().
        number: the variable of the `Number` node below, for BNODE.
        site: gives each FRESH call an integer of its own.
        exists: translates the group of an EXISTS.
        aggregate: takes an aggregate of the group below and gives its variable; None where no aggregate may stand.
    """

    tree: ParseTree
    now: Term
    number: Var
    site: Callable[[], int]
    exists: Callable[[CompValue], Node]
    aggregate: Callable[[CompValue], Var] | None = None
    numbered: bool = False

    def expression(self, part: Any) -> Expression:
        """An expression of the tree.

        Raises:
            QueryError: an aggregate where none may stand; see also `ParseTree.term`.
            UnsupportedQuery: a function or an operator that is not supported.
        """
        match part:
            case rdflib.Variable():
                return self.tree.variable(part)
            case rdflib.URIRef() if part == rdflib.RDF.nil:
                raise self.tree.error(part, "() is no expression")
            case rdflib.Literal() if self.tree.is_signed(part):
                return Constant(
                    self.tree.unsigned(part)
                )  # the sign has been read as the operator before it
            case rdflib.URIRef() | rdflib.Literal() | CompValue(name="literal"):
                return Constant(self.tree.term(part))
            case CompValue():
                return self._operator(part, dict(dict.items(part)))
        raise self.tree.unsupported(part, "this is no expression of SPARQL 1.1", str(part))

    def _operator(self, part: CompValue, of: dict[str, Any]) -> Expression:
        match part.name:
            case "ConditionalOrExpression":
                return self._associative("||", of)
            case "ConditionalAndExpression":
                return self._associative("&&", of)
            case "RelationalExpression":
                return self._relation(of)
            case "AdditiveExpression" | "MultiplicativeExpression":
                expression = self.expression(of["expr"])
                for operator, other in zip(of.get("op", ()), of.get("other", ()), strict=True):
                    expression = Call(str(operator), (expression, self.expression(other)))
                return expression
            case "UnaryNot":
                return Call("!", (self.expression(of["expr"]),))
            case "UnaryPlus" | "UnaryMinus":
                if self.tree.is_signed(of["expr"]):
                    return Constant(self.tree.term(of["expr"]))
                return Call(
                    "u+" if part.name == "UnaryPlus" else "u-", (self.expression(of["expr"]),)
                )
            case "Function":
                return self._cast(part, of)
            case "Builtin_EXISTS":
                return Exists(self.exists(of["graph"]))
            case "Builtin_NOTEXISTS":
                return Call("!", (Exists(self.exists(of["graph"])),))
            case name if name in _AGGREGATES:
                if self.aggregate is None:
                    raise self.tree.error(
                        part,
                        f"{_AGGREGATES[name]} may not stand here",
                        "aggregate in SELECT, HAVING or ORDER BY",
                    )
                return self.aggregate(part)
            case name if name.startswith("Builtin_"):
                return self._function(part, name.removeprefix("Builtin_").upper(), of)
        raise self.tree.unsupported(part, f"{part.name} is not supported", part.name)

    def _associative(self, operator: str, of: dict[str, Any]) -> Expression:
        """A chain of && or ||, as a tree of little depth."""

        def tree(operands: list[Expression]) -> Expression:
            if len(operands) == 1:
                return operands[0]
            middle = len(operands) // 2
            return Call(operator, (tree(operands[:middle]), tree(operands[middle:])))

        return tree([self.expression(operand) for operand in (of["expr"], *of.get("other", ()))])

    def _relation(self, of: dict[str, Any]) -> Expression:
        left = self.expression(of["expr"])
        match of.get("op"):
            case None:
                return left
            case "IN" | "NOT IN" as operator:
                found = Call("IN", (left, *self._list(of["other"])))
                return found if operator == "IN" else Call("!", (found,))
            case operator:
                return Call(str(operator), (left, self.expression(of["other"])))

    def _list(self, part: Any) -> Iterator[Expression]:
        if not isinstance(part, rdflib.URIRef):  # else it is (), which rdflib reads as rdf:nil
            yield from (self.expression(member) for member in part)

    def _function(self, part: CompValue, name: str, of: dict[str, Any]) -> Expression:
        name = _SAME.get(name, name)
        if name not in FUNCTIONS:
            raise self.tree.unsupported(part, f"the function {name} is not supported", name)
        if name in ("CONCAT", "COALESCE"):
            return Call(name, tuple(self._list(of["arg"])))
        arguments = tuple(self.expression(argument) for argument in of.values())
        match name:
            case "NOW":
                return Constant(self.now)
            case "BNODE":
                self.numbered = True
                if arguments:
                    return Call(name, (*arguments, self.number))
                return Call(
                    "FRESH", (Constant(Term(f'"{self.site()}"^^<{XSD}integer>')), self.number)
                )
            case "IRI" if self.tree.prologue.base is not None:
                return Call(name, (*arguments, Constant(literal(self.tree.prologue.base))))
        return Call(name, arguments)

    def _cast(self, part: CompValue, of: dict[str, Any]) -> Expression:
        name = self.tree.term(of["iri"])
        if name not in CASTS:
            raise self.tree.unsupported(
                part,
                f"the function {name} is not supported",
                name,
                "use the functions and casts of SPARQL 1.1",
            )
        arguments = of.get("expr", [])
        if len(arguments) != 1 or of.get("distinct"):
            raise self.tree.error(part, f"the cast {name} takes one argument")
        return Call(name, (self.expression(arguments[0]),))


def aggregation(
    tree: ParseTree, part: CompValue, argument: Callable[[Any], Expression]
) -> Aggregation:
    """An aggregate of the tree.

    Args:
        argument: reads its expression, in the place of the group's own solutions.

    Raises:
        QueryError: see `ParseTree.text_of`.
    """
    of = dict(dict.items(part))
    separator = of.get("separator")
    return Aggregation(
        _AGGREGATES[part.name],
        None if of["vars"] == "*" else argument(of["vars"]),
        bool(of.get("distinct")),
        " " if separator is None else tree.text_of(separator),
    )


def aggregates(part: Any) -> bool:
    """Whether an expression of the tree has aggregates of its own, not of a sub-query in it."""
    match part:
        case CompValue(name="Builtin_EXISTS" | "Builtin_NOTEXISTS"):
            return False
        case CompValue():
            return part.name in _AGGREGATES or any(aggregates(value) for value in dict.values(part))
        case str():
            return False
        case None:
            return False
    return any(aggregates(value) for value in part)


def substituted(expression: Expression, replacements: Mapping[Var, Expression]) -> Expression:
    """An expression with others in the place of variables, but not of those in an EXISTS.

    BOUND of such a variable asks whether its expression has a value: an error of it leaves the variable unbound.
    """
    match expression:
        case Var() as variable:
            return replacements.get(variable, variable)
        case Call("BOUND", (Var() as variable,)) if variable in replacements:
            value = replacements[variable]
            return Call("COALESCE", (Call("SAMETERM", (value, value)), Constant(FALSE)))
        case Call(name, arguments):
            return Call(name, tuple(substituted(argument, replacements) for argument in arguments))
    return expression


def is_repeatable(expression: Expression) -> bool:
    """Whether an expression has the same value each time that it is evaluated for a solution."""
    match expression:
        case Call(name, arguments):
            return name not in _NEW and all(map(is_repeatable, arguments))
    return True


def mentioned(expression: Expression) -> Iterator[Var]:
    """The variables of an expression that its own text names, not those of an EXISTS in it."""
    left = [expression]
    while left:
        match left.pop():
            case Var() as variable:
                yield variable
            case Call(_, arguments):
                left.extend(arguments)

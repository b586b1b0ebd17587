"""EXISTS: solutions under conditions, and expressions, that may have bodies of EXISTS in them.

SPARQL 1.1 Query, section 18.6, substitutes each solution into the body. Here a body is evaluated once and joined on the
shared variables, as a semi-join, if the result is the same by `correlation`; any other is evaluated once for all
distinct bindings of the variables that it needs. Nodes are evaluated by `evaluation`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from construct_messages.query.algebra.correlation import correlated_variables, mentions
from construct_messages.query.algebra.expressions import (
    conjunction,
    conjuncts,
    exists_in,
    is_volatile,
    replace_exists,
)
from construct_messages.query.algebra.join_order import contains_path
from construct_messages.query.algebra.nodes import Call, Exists, Expression, Filter, Node, Var, Vars
from construct_messages.rdf.terms import boolean
from construct_messages.spark.frames.joins import compatible_pairs, mark_join, semi_join
from construct_messages.spark.frames.solutions import Solutions
from construct_messages.spark.sql import expressions

_TRUE: Final = boolean("true")
_FALSE: Final = boolean("false")


@dataclass(frozen=True)
class OuterBindings:
    """The bindings for which a correlated body of EXISTS is evaluated, all at once.

    Args:
        solutions: the distinct bindings, and `key`.
        key: a variable that distinguishes them, which all solutions of the body bind.
        variables: of the bindings.
    """

    solutions: Solutions
    key: Var
    variables: Vars


def path_starts(left: Solutions, right: Node) -> tuple[Solutions, tuple[Solutions, ...]]:
    """Returns the left side of a join, and the solutions from which paths on the right side may begin.

    The latter is the left side, if the right side has paths; the left side is then materialized, as it is read twice.
    """
    if not contains_path(right):
        return left, ()
    left = left.materialize()
    return left, (left,)


def is_join_condition(condition: Expression) -> bool:
    """Returns whether Spark can join on a condition."""
    return not exists_in(condition) and not is_volatile(condition)


def _is_uncorrelated(solutions: Solutions, body: Node) -> bool:
    """Returns whether a body can be evaluated without the solutions, and joined with them directly."""
    shared = body.possible & solutions.possible
    return not correlated_variables(body) & solutions.possible and shared <= body.certain


@dataclass(frozen=True)
class Conditions:
    """Evaluates conditions and expressions over solutions.

    Args:
        evaluate: returns the solutions of a node; paths in it may begin from the solutions of the second argument.
        evaluate_for: returns the solutions of a node for outer bindings.
        fresh: returns a new variable whose name begins with a dot and the letter.
    """

    evaluate: Callable[[Node, tuple[Solutions, ...]], Solutions]
    evaluate_for: Callable[[Node, OuterBindings], Solutions]
    fresh: Callable[[str], Var]

    def filter(self, solutions: Solutions, conditions: tuple[Expression, ...]) -> Solutions:
        """Returns the solutions for which all conditions are true."""
        plain = conjunction(one for one in conditions if not exists_in(one))
        if plain is not None:
            wide = solutions.with_columns_of(mentions(plain))
            wide = replace(wide, frame=wide.frame.filter(expressions.condition(plain)))
            deterministic = solutions.deterministic and not is_volatile(plain)
            solutions = replace(
                wide.without(wide.possible - solutions.possible), deterministic=deterministic
            )
        for one in conditions:
            match one:
                case Exists(body):
                    solutions = self._exists(solutions, body, keep=True)
                case Call("!", (Exists(body),)):
                    solutions = self._exists(solutions, body, keep=False)
                case _ if exists_in(one):
                    marked, condition = self.with_marks(solutions, one)
                    solutions = self.filter(marked, (condition,)).without(
                        marked.possible - solutions.possible
                    )
        return solutions

    def with_marks(
        self, solutions: Solutions, expression: Expression
    ) -> tuple[Solutions, Expression]:
        """Returns the solutions with a boolean for each EXISTS in an expression, and the expression over these.

        The solutions have a column for each variable of the expression.
        """
        variables: dict[Exists, Var] = {}
        for exists in dict.fromkeys(exists_in(expression)):
            variables[exists] = marked = self.fresh("e")
            left, right = self._partners(solutions, exists.pattern, keys=True)
            keys = left.possible - solutions.possible
            solutions = mark_join(left, right, marked, _TRUE, _FALSE).without(keys)
        value = replace_exists(expression, variables.__getitem__)
        return solutions.with_columns_of(mentions(value)), value

    def _exists(self, solutions: Solutions, body: Node, keep: bool) -> Solutions:
        """Returns the solutions for which the body has a solution, or, if `keep` is False, those for which
        it has none.
        """
        match body:
            case Filter(pattern, condition) if _is_uncorrelated(solutions, pattern):
                conditions = conjuncts(condition)
                own = tuple(
                    one
                    for one in conditions
                    if mentions(one) & solutions.possible <= pattern.certain
                )
                across = conjunction(one for one in conditions if one not in own)
                if across is not None and is_join_condition(across):
                    shared = mentions(across) & pattern.possible & solutions.possible
                    if shared <= solutions.certain:
                        left, starts = path_starts(solutions, pattern)
                        right = self.filter(self.evaluate(pattern, starts), own)
                        wide = left.with_columns_of(mentions(across) - right.possible)
                        found = semi_join(wide, right, keep, expressions.condition(across))
                        return found.without(wide.possible - left.possible)
        if not correlated_variables(body) & solutions.possible and not _is_uncorrelated(
            solutions, body
        ):
            left, starts = path_starts(solutions, body)
            right = self.evaluate(body, starts).only(solutions.possible).distinct()
            pairs = compatible_pairs(left, right, self.fresh("t"))
            return pairs.semi_join() if keep else pairs.anti_join()
        left, right = self._partners(solutions, body)
        return semi_join(left, right, keep).without(left.possible - solutions.possible)

    def _partners(
        self, solutions: Solutions, body: Node, keys: bool = False
    ) -> tuple[Solutions, Solutions]:
        """Returns two sides of a join: a left solution has a partner if the body has a solution for it.

        Args:
            solutions: the solutions for which the body is evaluated.
            body: the body of an EXISTS.
            keys: whether the two must share a variable, and each bind all that they share.
        """
        shared = body.possible & solutions.possible
        if _is_uncorrelated(solutions, body) and (
            not keys or (shared and shared <= solutions.certain)
        ):
            left, starts = path_starts(solutions, body)
            return left, self.evaluate(body, starts).only(shared)
        variables = (body.possible | correlated_variables(body)) & solutions.possible
        key = self.fresh("t")
        left = solutions.materialize().with_key(variables, key)
        bindings = left.only(variables | {key})
        outer = OuterBindings(replace(bindings, frame=bindings.frame.distinct()), key, variables)
        return left, self.evaluate_for(body, outer).only(frozenset({key}))

"""What a part of a query must know of its surroundings, beside being joined with them.

SPARQL 1.1 Query, section 18.6, substitutes a solution into the EXISTS body that it is asked about. Most bodies need
no substitution: evaluated once on their own and joined on the shared variables, they give the same answer.
`dependent` names the variables for which that is not so; the evaluator hands their values down to the leaves.
Sub-selects keep their scope: a variable that they do not project is another one, even of the same name. And a path
of any length between two variables begins where its partners in a join bind one of them. Pure algebra: no SQL and no
pyspark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final, assert_never

from construct_messages.query.algebra.nodes import (
    Bgp,
    Call,
    Constant,
    Distinct,
    Exists,
    Expression,
    Extend,
    Filter,
    Graphs,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    Number,
    OrderBy,
    Path,
    Project,
    Slice,
    Star,
    Union,
    Unit,
    Values,
    Var,
    Vars,
)

NOTHING: Final[Vars] = frozenset()

_VOLATILE: Final = {"RAND", "UUID", "STRUUID"}


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """The conditions that must all be true for `expression` to be.

    >>> x, y, z = map(Var, "xyz")
    >>> conjuncts(Call("&&", (Call("&&", (x, y)), z))) == (x, y, z)
    True
    """
    if isinstance(expression, Call) and expression.name == "&&":
        return tuple(conjunct for argument in expression.arguments for conjunct in conjuncts(argument))
    return (expression,)


def conjunction(conditions: tuple[Expression, ...]) -> Expression | None:
    """The inverse of `conjuncts`; None for no condition."""
    together = None
    for condition in conditions:
        together = condition if together is None else Call("&&", (together, condition))
    return together


def mentions(expression: Expression | None) -> Vars:
    """The variables that an expression can see; of an EXISTS body all that are in its scope.

    >>> sorted(var.name for var in mentions(Call("<", (Var("x"), Call("STRLEN", (Var("y"),))))))
    ['x', 'y']
    """
    match expression:
        case None | Constant():
            return NOTHING
        case Var():
            return frozenset({expression})
        case Call():
            return NOTHING.union(*map(mentions, expression.arguments))
        case Exists(pattern):
            return pattern.possible | dependent(pattern)
        case other:
            assert_never(other)


def exists_in(expression: Expression) -> tuple[Exists, ...]:
    """The EXISTS in an expression, but for those in their bodies."""
    match expression:
        case Constant() | Var():
            return ()
        case Exists():
            return (expression,)
        case Call():
            return tuple(exists for argument in expression.arguments for exists in exists_in(argument))
        case other:
            assert_never(other)


def replaced(expression: Expression, by: Callable[[Exists], Var]) -> Expression:
    """The expression with each EXISTS replaced by a variable that holds its boolean."""
    match expression:
        case Constant() | Var():
            return expression
        case Exists():
            return by(expression)
        case Call():
            return Call(expression.name, tuple(replaced(argument, by) for argument in expression.arguments))
        case other:
            assert_never(other)


def volatile(expression: Expression) -> bool:
    """Whether evaluating the expression twice may give two values.

    >>> volatile(Call("+", (Var("x"), Call("RAND", ())))), volatile(Var("x"))
    (True, False)
    """
    return isinstance(expression, Call) and (expression.name in _VOLATILE or any(map(volatile, expression.arguments)))


def parts(node: Node) -> tuple[Node, ...]:
    """The nodes that a node is made of, but for the bodies of EXISTS."""
    match node:
        case Unit() | Bgp() | Star() | Path() | Graphs() | Values():
            return ()
        case Join(left, right) | LeftJoin(left, right) | Union(left, right) | Minus(left, right):
            return (left, right)
        case (
            Filter(pattern)
            | Extend(pattern)
            | Number(pattern)
            | Group(pattern)
            | Project(pattern)
            | Distinct(pattern)
            | OrderBy(pattern)
            | Slice(pattern)
        ):
            return (pattern,)
        case other:
            assert_never(other)


def with_parts(node: Node, below: tuple[Node, ...]) -> Node:
    """The node with other nodes below, in the order of `parts`."""
    match node:
        case Unit() | Bgp() | Star() | Path() | Graphs() | Values():
            return node
        case Join() | LeftJoin() | Union() | Minus():
            return replace(node, left=below[0], right=below[1])
        case Filter() | Extend() | Number() | Group() | Project() | Distinct() | OrderBy() | Slice():
            return replace(node, pattern=below[0])
        case other:
            assert_never(other)


def expressions_of(node: Node) -> tuple[Expression, ...]:
    """The expressions that a node itself holds."""
    match node:
        case LeftJoin(condition=condition) if condition is not None:
            return (condition,)
        case Filter(condition=condition):
            return (condition,)
        case Extend(expression=expression):
            return (expression,)
        case Group(aggregates=aggregates):
            arguments = (aggregation.argument for _, aggregation in aggregates)
            return tuple(argument for argument in arguments if argument is not None)
        case OrderBy(conditions=conditions):
            return tuple(condition for condition, _ in conditions)
    return ()


def with_expressions(node: Node, change: Callable[[Expression], Expression]) -> Node:
    """The node with each expression that it itself holds changed."""
    match node:
        case LeftJoin(condition=condition) if condition is not None:
            return replace(node, condition=change(condition))
        case Filter(condition=condition):
            return replace(node, condition=change(condition))
        case Extend(expression=expression):
            return replace(node, expression=change(expression))
        case OrderBy(conditions=conditions):
            return replace(node, conditions=tuple((change(one), descending) for one, descending in conditions))
        case Group(aggregates=aggregates):
            changed = (
                (variable, replace(one, argument=None if one.argument is None else change(one.argument)))
                for variable, one in aggregates
            )
            return replace(node, aggregates=tuple(changed))
    return node


def with_bodies(expression: Expression, change: Callable[[Node], Node]) -> Expression:
    """The expression with the body of each EXISTS in it changed."""
    match expression:
        case Constant() | Var():
            return expression
        case Exists(pattern):
            return Exists(change(pattern))
        case Call(name, arguments):
            return Call(name, tuple(with_bodies(argument, change) for argument in arguments))
        case other:
            assert_never(other)


def dependent(node: Node) -> Vars:
    """The variables whose values from outside must be known inside `node`, not only compared with what it gives.

    They are those that a condition or expression reads where the pattern below need not bind them, and those of the
    optional, subtracted or counted parts, which matter also where they have no solution.

    >>> from construct_messages.query.algebra.nodes import Triple
    >>> from construct_messages.terms import iri
    >>> p, (x, y, z) = iri("urn:p"), map(Var, "xyz")
    >>> dependent(Filter(Bgp((Triple(x, p, y),)), Call("<", (y, z)))) == {z}
    True
    """
    match node:
        case Unit() | Bgp() | Star() | Path() | Graphs() | Values():
            return NOTHING
        case Join(left, right) | Union(left, right):
            return dependent(left) | dependent(right)
        case LeftJoin(left, right, condition):
            inside = right.possible | mentions(condition)
            return dependent(left) | dependent(right) | (inside - left.certain)
        case Minus(left, right):
            return dependent(left) | dependent(right) | (right.possible - left.certain)
        case Filter(pattern, condition):
            return dependent(pattern) | (mentions(condition) - pattern.certain)
        case Extend(pattern, _, expression):
            return dependent(pattern) | (mentions(expression) - pattern.certain)
        case Number(pattern, _) | Distinct(pattern):
            return dependent(pattern)
        case Group(pattern, keys, aggregates):
            read = NOTHING.union(keys, *(mentions(aggregation.argument) for _, aggregation in aggregates))
            return dependent(pattern) | (read - pattern.certain)
        case Project(pattern, variables):
            return dependent(pattern) & frozenset(variables)
        case OrderBy(pattern, conditions):
            read = NOTHING.union(*(mentions(condition) for condition, _ in conditions))
            return dependent(pattern) | (read - pattern.certain)
        case Slice(pattern):
            return dependent(pattern) | pattern.possible
        case other:
            assert_never(other)


# --- paths --------------------------------------------------------------------------------------------------------


def holds_path(node: Node) -> bool:
    """Whether a property path is evaluated somewhere in a node: what it is joined with tells it where to begin."""
    return isinstance(node, Path) or any(map(holds_path, parts(node)))


def begins_nowhere(node: Node, bound: Vars) -> bool:
    """Whether a path in a node has no end to begin from, if its partners in a join bind these variables.

    >>> from construct_messages.query.algebra.property_paths import Closure, Link
    >>> from construct_messages.terms import iri
    >>> node = Path(Var("x"), Closure(Link(iri("urn:p")), "+"), Var("y"))
    >>> begins_nowhere(node, frozenset()), begins_nowhere(node, frozenset({Var("y")}))
    (True, False)
    """
    match node:
        case Path(subject, _, object):
            return isinstance(subject, Var) and isinstance(object, Var) and not {subject, object} & bound
        case Unit() | Bgp() | Star() | Graphs() | Values():
            return False
        case Join(left, right):
            return begins_nowhere(left, bound | right.certain) or begins_nowhere(right, bound | left.certain)
        case Union(left, right):
            return begins_nowhere(left, bound) or begins_nowhere(right, bound)
        case LeftJoin(left) | Minus(left):
            return begins_nowhere(left, bound)
        case Filter(pattern) | Extend(pattern) | Number(pattern) | Distinct(pattern):
            return begins_nowhere(pattern, bound)
        case Project(pattern, kept):
            return begins_nowhere(pattern, bound & frozenset(kept))
        case Group(pattern) | OrderBy(pattern) | Slice(pattern):
            return begins_nowhere(pattern, NOTHING)
        case other:
            assert_never(other)


def arranged(join: Join, bound: Vars = NOTHING, links: Iterable[tuple[Vars, Vars]] = ()) -> list[Node]:
    """What a tree of joins joins, in the order of joining, without units, which change nothing.

    Paths wait until something binds an end of theirs, and what has no link to the others waits, too.

    Args:
        bound: what is known where the join is evaluated.
        links: what is linked beside shared variables; see `equalities.links`.

    >>> from construct_messages.query.algebra.nodes import Triple
    >>> from construct_messages.query.algebra.property_paths import Closure, Link
    >>> from construct_messages.terms import iri
    >>> path = Path(Var("x"), Closure(Link(iri("urn:p")), "+"), Var("y"))
    >>> begin = Bgp((Triple(Var("y"), iri("urn:p"), Var("z")),))
    >>> arranged(Join(path, begin)) == [begin, path]
    True
    """
    waiting = [operand for operand in operands(join) if not isinstance(operand, Unit)]
    if not waiting:
        return [Unit()]
    order: list[Node] = []
    there = NOTHING
    while waiting:
        certain = bound.union(*(operand.certain for operand in order))

        def rank(one: Node, certain: Vars = certain, there: Vars = there) -> tuple[bool, bool]:
            return begins_nowhere(one, certain), bool(there) and not linked(there, one.possible, links)

        first = min(waiting, key=rank)
        waiting.remove(first)
        order.append(first)
        there |= first.possible
    return order


def linked(left: Vars, right: Vars, links: Iterable[tuple[Vars, Vars]]) -> bool:
    """Whether two parts of a query share a variable, or bind the sides of a link."""
    return bool(left & right) or any(
        (one <= left and other <= right) or (one <= right and other <= left) for one, other in links
    )


def operands(node: Node) -> Iterator[Node]:
    """What a tree of joins joins."""
    if isinstance(node, Join):
        yield from operands(node.left)
        yield from operands(node.right)
    else:
        yield node

"""Filter pushdown, and the simplification of OPTIONAL that filters allow.

SPARQL 1.1 Query, section 18.5: each rule keeps the bag of solutions. An OPTIONAL whose variable a filter requires is a
join; one whose variable a filter requires to be unbound (negation before SPARQL 1.1) is NOT EXISTS. In the body of an
EXISTS a variable may be bound from outside, so such an OPTIONAL is kept. Joined patterns become one `Bgp`. `optimize`
chooses the order of joins.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import assert_never

from construct_messages.query.algebra.calls import (
    conjunction,
    conjuncts,
    exists_in,
    is_volatile,
    map_bodies,
)
from construct_messages.query.algebra.correlation import correlated_variables, mentions
from construct_messages.query.algebra.join_order import connected_patterns, join_operands
from construct_messages.query.algebra.nodes import (
    NOTHING,
    Bgp,
    Call,
    Constant,
    Distinct,
    Exists,
    Expression,
    Extend,
    Filter,
    Group,
    Join,
    Leaf,
    LeftJoin,
    Minus,
    Node,
    Number,
    OrderBy,
    Project,
    Slice,
    Union,
    Unit,
    Var,
    Vars,
)

_LENIENT = {"BOUND", "COALESCE", "IF", "IN", "&&", "||"}
"""Functions that may have a value although an argument is an error."""


def push_down_filters(node: Node, outside: Vars = NOTHING) -> Node:
    """Moves each filter to the lowest node that binds its variables, also in the bodies of EXISTS.

    `outside` are variables that may be bound from outside, in the body of an EXISTS.
    """
    inside = outside & frozenset(node.variables) if isinstance(node, Project) else outside
    node = node.with_children(tuple(push_down_filters(part, inside) for part in node.children))
    around = outside.union(*(part.possible for part in node.children))
    node = node.map_expressions(
        lambda one: map_bodies(
            one, lambda body: _prune_optionals(push_down_filters(body, around), NOTHING)
        )
    )
    match node:
        case Filter(pattern, condition):
            return apply_filters(pattern, conjuncts(condition), outside)
        case LeftJoin(left, right, condition) if condition is not None:
            conditions = conjuncts(condition)
            own = [
                one
                for one in conditions
                if mentions(one) & left.possible <= right.certain and not _must_stay(one)
            ]
            rest = conjunction(one for one in conditions if one not in own)
            return LeftJoin(left, apply_filters(right, own, outside), rest)
        case Join():
            return merge_bgps(node)
    return node


def apply_filters(node: Node, conditions: Iterable[Expression], outside: Vars = NOTHING) -> Node:
    """The node with conditions pushed down into it; the other conditions are one filter on top."""
    stay = []
    for one in conditions:
        lower = None if _must_stay(one) else _pushed_down(node, one, outside)
        if lower is None:
            stay.append(one)
        else:
            node = lower
    if stay and isinstance(node, Filter):
        stay = [*conjuncts(node.condition), *stay]
        node = node.pattern
    rest = conjunction(stay)
    return node if rest is None else Filter(node, rest)


def merge_bgps(join: Node) -> Node:
    """A join with the triple patterns among its operands in one `Bgp`."""
    joined = list(join_operands(join))
    patterns = tuple(
        one for operand in joined if isinstance(operand, Bgp) for one in operand.patterns
    )
    nodes: list[Node] = [Bgp(patterns)] if patterns else []
    # a filter over one of the operands need not come before the join
    nodes += (operand for operand in joined if not isinstance(operand, Bgp | Unit))
    return reduce(Join, nodes) if nodes else Unit()


def _must_stay(condition: Expression) -> bool:
    return is_volatile(condition) or bool(exists_in(condition))


def _pushed_down(node: Node, condition: Expression, outside: Vars) -> Node | None:
    """The node with a condition pushed down below it, or None if the condition has to stay on top."""
    read = mentions(condition)

    def under(below: Node) -> Node:
        lower = _pushed_down(below, condition, outside)
        return Filter(below, condition) if lower is None else lower

    match node:
        case Join(Bgp(patterns) as left, right) if read and read <= left.certain:
            group = next(
                group for group in connected_patterns(patterns) if Bgp(tuple(group)).possible & read
            )
            concerned = Bgp(tuple(one for one in patterns if one in group))
            # over several operands it would be over their product, before a node that connects them (a path) is joined
            if not read <= concerned.certain:
                return Join(left, under(right)) if read <= right.certain else None
            apart = tuple(one for one in patterns if one not in concerned.patterns)
            return (
                Join(Join(Bgp(apart), right), under(concerned))
                if apart
                else Join(under(left), right)
            )
        case Join(left, right):
            # if every solution of a side binds the variables that are read, the merged solution has the same values
            if read <= left.certain:
                return Join(under(left), right)
            return Join(left, under(right)) if read <= right.certain else None
        case LeftJoin(left, right, own):
            if read <= left.certain:
                return LeftJoin(under(left), right, own)
            new = right.possible - left.possible - outside
            if _required_for_truth(condition) & new:
                conditions = (condition,) if own is None else (*conjuncts(own), condition)
                return apply_filters(merge_bgps(Join(left, right)), conditions, outside)
            if _required_unbound(condition) & new & right.certain and _is_anti_join(
                left, right, own
            ):
                body = right if own is None else Filter(right, own)
                return Filter(left, Call("!", (Exists(body),)))
            return None
        case Minus(left, right):
            return node.with_children((under(left), right))
        case Extend(_, variable) | Number(_, variable) if variable in read:
            return None
        case Project(pattern, variables):
            # inside, a variable that is not projected is a different variable
            kept = frozenset(variables)
            return (
                Project(apply_filters(pattern, (condition,), outside & kept), variables)
                if read <= kept
                else None
            )
        case Union() | Extend() | Number() | Distinct() | OrderBy():
            return node.with_children(tuple(map(under, node.children)))
        case Filter(pattern, other):
            lower = _pushed_down(pattern, condition, outside)
            return None if lower is None else apply_filters(lower, conjuncts(other), outside)
        case Leaf() | Group() | Slice():
            return None
        case _:
            assert_never(node)


def _prune_optionals(node: Node, read: Vars) -> Node:
    """The body of an EXISTS without the OPTIONALs that cannot decide whether it has a solution.

    `read` are the variables whose values decide whether the solutions of the node count.

    >>> from construct_messages.query.algebra.nodes import Triple
    >>> from construct_messages.rdf.terms import iri
    >>> left, right = (Bgp((Triple(Var("x"), iri("urn:p"), Var(name)),)) for name in "yz")
    >>> optional = LeftJoin(left, right)
    >>> _prune_optionals(optional, NOTHING) == left, _prune_optionals(optional, frozenset({Var("z")})) == left
    (True, False)
    """
    match node:
        case LeftJoin(left, right) if not (right.possible - left.certain) & read:
            return _prune_optionals(left, read)
        case LeftJoin(left, right, condition):
            return LeftJoin(
                _prune_optionals(left, read | right.possible | mentions(condition)),
                right,
                condition,
            )
        case Join(left, right):
            left, right = (
                _prune_optionals(left, read | right.possible),
                _prune_optionals(right, read | left.possible),
            )
            return merge_bgps(Join(left, right))
        case Union(left, right):
            return Union(_prune_optionals(left, read), _prune_optionals(right, read))
        case Minus(left, right):
            return node.with_children((_prune_optionals(left, read | right.possible), right))
        case Filter(pattern, condition):
            return Filter(_prune_optionals(pattern, read | mentions(condition)), condition)
        case Extend(pattern, variable, expression):
            return Extend(
                _prune_optionals(pattern, read | mentions(expression) | {variable}),
                variable,
                expression,
            )
        case Distinct(pattern) | OrderBy(pattern):
            return _prune_optionals(pattern, read)
    return node


def _required_for_truth(condition: Expression) -> Vars:
    """Variables that must be bound for a condition to be true.

    >>> x, y = Var("x"), Var("y")
    >>> _required_for_truth(Call("=", (x, Call("STR", (y,))))) == {x, y}, _required_for_truth(Call("COALESCE", (x, y)))
    (True, frozenset())
    """
    match condition:
        case Call("BOUND", (Var() as variable,)):
            return frozenset({variable})
        case Var():
            return frozenset({condition})
        case Call(name, arguments) if name not in _LENIENT:
            return NOTHING.union(*(_required_for_value(argument) for argument in arguments))
    return NOTHING


def _required_for_value(expression: Expression) -> Vars:
    """Variables that must be bound for an expression to have a value."""
    match expression:
        case Var():
            return frozenset({expression})
        case Call(name, arguments) if name not in _LENIENT:
            return NOTHING.union(*map(_required_for_value, arguments))
        case Constant() | Exists() | Call():
            return NOTHING
        case _:
            assert_never(expression)


def _required_unbound(condition: Expression) -> Vars:
    """The variable that must be unbound for a condition to be true."""
    match condition:
        case Call("!", (Call("BOUND", (Var() as variable,)),)):
            return frozenset({variable})
    return NOTHING


def _is_anti_join(left: Node, right: Node, condition: Expression | None) -> bool:
    """Whether an OPTIONAL, as the body of a NOT EXISTS, can be evaluated once and joined on the shared variables."""
    shared = left.possible & right.possible
    conditions = () if condition is None else conjuncts(condition)
    return (
        not correlated_variables(right) & left.possible
        and shared <= right.certain
        and all(
            not _must_stay(one) and mentions(one) & shared <= left.certain for one in conditions
        )
    )

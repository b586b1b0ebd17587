"""Filter pushdown, the simplification of OPTIONAL that filters allow, and equalities as keys of joins.

SPARQL 1.1 Query, section 18.5: each rule keeps the bag of solutions. An OPTIONAL whose variable a filter requires is a
join; one whose variable a filter requires to be unbound (negation before SPARQL 1.1) is NOT EXISTS. In the body of an
EXISTS a variable may be bound from outside, so such an OPTIONAL is kept. Joined patterns become one `Bgp`. `optimize`
chooses the order of joins.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Final, TypeAlias, assert_never

from construct_messages.query.algebra.calls import (
    conjunction,
    conjuncts,
    exists_in,
    is_volatile,
    map_bodies,
)
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
    Graphs,
    Group,
    Join,
    Leaf,
    LeftJoin,
    Minus,
    Node,
    Number,
    OrderBy,
    Path,
    Project,
    Slice,
    Star,
    Unary,
    Union,
    Unit,
    Values,
    Var,
    VarOrTerm,
    Vars,
    connected_patterns,
    correlated_variables,
    join_operands,
    mentions,
    variables,
)
from construct_messages.rdf.terms import is_literal

# --- equalities -----------------------------------------------------------------------------------
# Equalities as join keys: `=` as sameTerm where neither side can be a literal, and with SAMEKEY if one can.
#
# SPARQL 1.1 Query, sections 17.3 and 17.4.1.7 (RDFterm-equal). A subject, predicate or graph is no literal, and
# equals the same term only. `SAMEKEY` is added to any other `=` that links two operands of a join. It is true if `=`
# is: an engine can join by keys, and evaluate `=` for the joined pairs only. The engine defines the keys.

Links: TypeAlias = tuple[tuple[Vars, Vars], ...]
"""The variables of the two sides of each equality that operands can be joined by."""

_JOINING: Final = ("SAMEKEY", "SAMETERM")


def add_join_keys(node: Node, outside: Vars = NOTHING) -> Node:
    """Turns equalities into join keys, also in the bodies of EXISTS.

    `outside` are variables that are always bound from outside, and never to a literal, in the body of an EXISTS.

    >>> from construct_messages.query.algebra.nodes import Triple
    >>> from construct_messages.rdf.terms import iri
    >>> s, n, p = Var("s"), Var("n"), iri("urn:p")
    >>> add_join_keys(Filter(Bgp((Triple(s, p, n),)), Call("=", (s, n)))).condition
    Call(name='SAMETERM', arguments=(Var(name='s'), Var(name='n')))
    """
    inside = outside & frozenset(node.variables) if isinstance(node, Project) else outside
    node = node.with_children(tuple(add_join_keys(part, inside) for part in node.children))
    sure = outside.union(*map(resources, node.children))
    node = node.map_expressions(lambda one: _compared_by_term(one, sure))
    match node:
        case Filter(pattern, condition):
            condition = _with_keys(condition, node)
            return Filter(_with_keys_below(pattern, conjuncts(condition), sure), condition)
        case LeftJoin(left, right, condition) if condition is not None:
            return LeftJoin(left, right, _with_keys(condition, node))
    return node


def _compared_by_term(expression: Expression, sure: Vars) -> Expression:
    """The expression with sameTerm for each `=` and `!=` of a variable that is never bound to a literal."""
    match expression:
        case Var() | Constant():
            return expression
        case Exists(pattern):
            return Exists(add_join_keys(pattern, sure))
        case Call(("=" | "!=") as name, (Var() as left, Var() as right)) if {left, right} & sure:
            same = Call("SAMETERM", (left, right))
            return same if name == "=" else Call("!", (same,))
        case Call(name, arguments):
            return Call(name, tuple(_compared_by_term(argument, sure) for argument in arguments))
        case _:
            assert_never(expression)


def _with_keys(condition: Expression, node: Node) -> Expression:
    """A condition of a node with SAMEKEY added to each `=` that links operands of the node."""
    conditions: list[Expression] = []
    for one in conjuncts(condition):
        match one:
            case Call("=", (left, right)) if not (
                is_volatile(one) or exists_in(one)
            ) and _links_operands((left, right), node.children):
                conditions.append(Call("SAMEKEY", (left, right)))
        conditions.append(one)
    return conjunction(conditions) or condition


def _with_keys_below(node: Node, conditions: tuple[Expression, ...], sure: Vars) -> Node:
    """Moves the keys of equalities with the variable of a BIND below the BIND, where they can join."""
    match node:
        case Extend(pattern, variable, expression) if not (
            is_volatile(expression) or exists_in(expression)
        ):
            keys = tuple(
                Call("SAMEKEY", sides)
                for one in conditions
                if isinstance(one, Call) and variable in one.arguments
                # one NaN is the same term as another, and has no key
                if one.name == "SAMEKEY"
                or (one.name == "SAMETERM" and sure.intersection(one.arguments))
                for sides in [
                    tuple(expression if side == variable else side for side in one.arguments)
                ]
                if _links_operands(sides, (pattern,))
            )
            if (condition := conjunction(keys)) is not None:
                return Extend(
                    Filter(_with_keys_below(pattern, keys, sure), condition), variable, expression
                )
    return node


def _links_operands(expressions: tuple[Expression, ...], nodes: tuple[Node, ...]) -> bool:
    """Whether no single operand of some nodes binds all variables of two expressions."""
    left, right = map(mentions, expressions)
    together = (group for node in nodes for group in _bound_together(node))
    return (
        bool(left and right)
        and not left & right
        and not any(left | right <= group for group in together)
    )


def _bound_together(node: Node) -> Iterator[Vars]:
    """Sets of variables that are bound without a join, or joined by their subject."""
    if isinstance(node, Bgp):
        subjects = defaultdict[VarOrTerm, Vars](frozenset)
        for pattern in node.patterns:
            subjects[pattern.subject] |= pattern.variables
        yield from subjects.values()
    elif below := node.children:
        for part in below:
            yield from _bound_together(part)
    else:
        yield node.possible


def links(conditions: tuple[Expression, ...]) -> Links:
    """The links among the conditions of a filter.

    >>> links((Call("SAMEKEY", (Var("x"), Var("y"))), Call("<", (Var("x"), Var("y")))))
    ((frozenset({Var(name='x')}), frozenset({Var(name='y')})),)
    """
    return tuple(
        (mentions(one.arguments[0]), mentions(one.arguments[1]))
        for one in conditions
        if isinstance(one, Call) and one.name in _JOINING and all(map(mentions, one.arguments))
    )


def resources(node: Node) -> Vars:
    """Variables that every solution binds, and none of them to a literal."""
    match node:
        case Bgp(patterns) | Star(_, patterns):
            return variables(
                place for one in patterns for place in (one.subject, one.predicate, one.graph)
            )
        case Path(graph=graph) | Graphs(graph):
            return variables((graph,))
        case Unit():
            return NOTHING
        case Values(names, solutions):
            return frozenset(
                name
                for index, name in enumerate(names)
                if all(
                    (term := one[index]) is not None and not is_literal(term) for one in solutions
                )
            )
        case Join(left, right):
            return resources(left) | resources(right)
        case LeftJoin(left) | Minus(left):
            return resources(left)
        case Union(left, right):
            return resources(left) & resources(right)
        case Extend(pattern, variable, expression):
            found = resources(pattern)
            return found | {variable} if expression in found else found
        case Group(pattern, keys):
            return resources(pattern) & frozenset(keys)
        case Project(pattern, kept):
            return resources(pattern) & frozenset(kept)
        case Unary(pattern):
            return resources(pattern)
        case _:
            assert_never(node)


# --- push down ------------------------------------------------------------------------------------

_LENIENT = {"BOUND", "COALESCE", "IF", "IN", "&&", "||"}
"""Functions that may have a value although an argument is an error."""


def rewritten_below(
    node: Node, rewrite: Callable[[Node, Vars], Node], outside: Vars = NOTHING
) -> Node:
    """The node with its operands and the bodies of its EXISTS rewritten.

    The rewriting function gets the variables that may be bound from outside, in the body of an EXISTS.
    """
    inside = outside & frozenset(node.variables) if isinstance(node, Project) else outside
    node = node.with_children(tuple(rewrite(part, inside) for part in node.children))
    around = outside.union(*(part.possible for part in node.children))
    return node.map_expressions(lambda one: map_bodies(one, lambda body: rewrite(body, around)))


def push_down_filters(node: Node, outside: Vars = NOTHING) -> Node:
    """Moves each filter to the lowest node that binds its variables, also in the bodies of EXISTS.

    `outside` are variables that may be bound from outside, in the body of an EXISTS.
    """
    node = rewritten_below(node, push_down_filters, outside)
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

"""Translation of triple patterns, property paths and expressions to the algebra.

SPARQL 1.1 Query, section 17 and grammar rules [110] to [128]. The surroundings of an expression (the number of a BNODE,
the group of an aggregate, the body of an EXISTS) are passed as callbacks. Functions that SPARQL 1.1 does not define are
rejected by name. No groups here, and no evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar, assert_never, cast

from construct_messages.errors import UnsupportedQuery
from construct_messages.query.algebra.nodes import (
    Aggregation,
    Alternative,
    Bgp,
    Call,
    Closure,
    Constant,
    Exists,
    Expression,
    Filter,
    Inverse,
    Join,
    Link,
    Negated,
    Node,
    Path,
    PathExpression,
    Triple,
    Union,
    Unit,
    Var,
    VarOrTerm,
)
from construct_messages.query.algebra.nodes import Sequence as Steps
from construct_messages.query.syntax import nodes as syntax
from construct_messages.query.syntax.parser import Query
from construct_messages.rdf.terms import XSD, Term, literal

# --- patterns -------------------------------------------------------------------------------------
# Translation of triple patterns and property paths to the algebra.
#
# SPARQL 1.1 Query, sections 18.2.2.3 (property path expressions) and 18.2.2.4 (property path patterns): sequences
# become joins, inverses swapped triples and alternatives unions, which keep duplicates; only `?`, `*`, `+` and
# negated sets become a `Path`. No groups and no expressions here.


# The leaves of a syntax tree in the algebra: variables, terms, and hidden variables for blank nodes.
#
# SPARQL 1.1 Query, section 4. The terms that SPARQL 1.2 adds are rejected by name. No patterns and no expressions
# here.

_T = TypeVar("_T")

HINT_1_1: Final = "write the query in SPARQL 1.1"


class Leaves:
    """Translates the leaves of one query."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self._blanks: dict[str, Var] = {}

    def position(self, node: syntax.TermNode) -> VarOrTerm:
        """Returns the variable or term of a triple pattern; a blank node is a hidden variable, one for each label."""
        match node:
            case syntax.VariableNode():
                return self.variable(node)
            case syntax.BlankNode(label=label):
                return self._blanks.setdefault(label, Var(f".b{len(self._blanks)}"))
            case _:
                return self.term(node)

    def variable(self, node: syntax.VariableNode) -> Var:
        """Returns the variable of a node."""
        return Var(node.name)

    def term(self, node: syntax.TermNode) -> Term:
        """Returns an IRI or literal. Triple terms and literals with a base direction are not supported."""
        if isinstance(node, syntax.TripleTermNode) or (
            isinstance(node, syntax.LiteralNode) and "--" in (node.language or "")
        ):
            message = "triple terms and base directions belong to SPARQL 1.2, which is not supported in WHERE"
            raise self.query.unsupported(node, message, hint=HINT_1_1)
        return self.query.term(node)

    def unknown(self, node: syntax.SyntaxNode) -> UnsupportedQuery:
        """Returns the error for a part of the query that SPARQL 1.1 does not have."""
        return self.query.unsupported(node, "this is not part of SPARQL 1.1", hint=HINT_1_1)


# --- patterns -------------------------------------------------------------------------------------

Fresh: TypeAlias = Callable[[str], Var]
"""A new hidden variable whose name begins with a dot and a letter."""


def triples(
    leaves: Leaves, block: Iterable[syntax.TripleNode], graph: VarOrTerm | None, fresh: Fresh
) -> Node:
    """The triples of one basic graph pattern, paths among them.

    `fresh` makes the variables between the steps of a path.
    """
    found = _Conjunction(graph, fresh)
    for triple in block:
        start, end = leaves.position(triple.subject), leaves.position(triple.object)
        if isinstance(triple.predicate, syntax.VariableNode):
            found.patterns.append(Triple(start, leaves.variable(triple.predicate), end, graph))
        else:
            found.connect(start, _path(leaves, triple.predicate), end)
    return found.node()


def join(left: Node, right: Node) -> Node:
    """Both, without needless units."""
    if isinstance(left, Unit):
        return right
    return left if isinstance(right, Unit) else Join(left, right)


def union(nodes: Sequence[Node]) -> Node:
    return _balanced(Union, nodes)


def _balanced(combined: Callable[[_T, _T], _T], parts: Sequence[_T]) -> _T:
    """All of them, as a tree of little depth."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return combined(_balanced(combined, parts[:middle]), _balanced(combined, parts[middle:]))


class _Conjunction:
    """Collects the leaves that paths are translated to: plain triples, and the nodes to join with them."""

    def __init__(self, graph: VarOrTerm | None, fresh: Fresh) -> None:
        self.patterns: list[Triple] = []
        self._others: list[Node] = []
        self._graph, self._fresh = graph, fresh

    def connect(self, start: VarOrTerm, path: PathExpression, end: VarOrTerm) -> None:
        match path:
            case Link(predicate):
                self.patterns.append(Triple(start, predicate, end, self._graph))
            case Inverse(inner):
                self.connect(end, inner, start)
            case Steps(paths):
                for step in paths[:-1]:
                    stop = self._fresh("p")
                    self.connect(start, step, stop)
                    start = stop
                self.connect(start, paths[-1], end)
            case Alternative(paths):
                ways = []
                for way in paths:
                    found = _Conjunction(self._graph, self._fresh)
                    found.connect(start, way, end)
                    ways.append(found.node())
                self._others.append(union(ways))
            case Closure() | Negated():
                self._others.append(Path(start, path, end, self._graph))

    def node(self) -> Node:
        node: Node = Bgp(tuple(self.patterns)) if self.patterns else Unit()
        for other in self._others:
            node = join(node, other)
        return node


def _path(leaves: Leaves, node: syntax.PathNode) -> PathExpression:
    match node:
        case syntax.IriNode():
            return Link(leaves.term(node))
        case syntax.PathAlternative(paths=ways):
            return Alternative(tuple(_path(leaves, way) for way in ways))
        case syntax.PathSequence(paths=steps):
            return Steps(tuple(_path(leaves, step) for step in steps))
        case syntax.PathInverse(path=path):
            return Inverse(_path(leaves, path))
        case syntax.PathRepetition(path=path, modifier=modifier):
            return Closure(_path(leaves, path), cast(Literal["?", "*", "+"], modifier))
        case syntax.PathNegation(members=members):
            inverse = (one.path for one in members if isinstance(one, syntax.PathInverse))
            backward = tuple(leaves.term(one) for one in inverse if isinstance(one, syntax.IriNode))
            forward = tuple(leaves.term(one) for one in members if isinstance(one, syntax.IriNode))
            return Negated(forward if forward or not backward else None, backward or None)
        case other:
            assert_never(other)


# --- expressions ----------------------------------------------------------------------------------
# Expressions of the algebra: their conjunctions, and the EXISTS in them.
#
# SPARQL 1.1 Query, section 17. No query text here, and no evaluation.

_VOLATILE: Final = {"RAND", "UUID", "STRUUID"}


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """The conditions that must all be true for `expression` to be.

    >>> x, y, z = map(Var, "xyz")
    >>> conjuncts(Call("&&", (Call("&&", (x, y)), z))) == (x, y, z)
    True
    """
    if isinstance(expression, Call) and expression.name == "&&":
        return tuple(
            conjunct for argument in expression.arguments for conjunct in conjuncts(argument)
        )
    return (expression,)


def filtered(node: Filter) -> tuple[Node, tuple[Expression, ...]]:
    """The pattern below a filter and those directly below it, and their conditions, the innermost first."""
    pattern, conditions = node.pattern, conjuncts(node.condition)
    while isinstance(pattern, Filter):
        conditions = (*conjuncts(pattern.condition), *conditions)
        pattern = pattern.pattern
    return pattern, conditions


def conjunction(conditions: Iterable[Expression]) -> Expression | None:
    """The inverse of `conjuncts`; None for no condition."""
    together: Expression | None = None
    for condition in conditions:
        together = condition if together is None else Call("&&", (together, condition))
    return together


def exists_in(expression: Expression) -> tuple[Exists, ...]:
    """The EXISTS in an expression, except for those in their bodies."""
    match expression:
        case Constant() | Var():
            return ()
        case Exists():
            return (expression,)
        case Call():
            return tuple(
                exists for argument in expression.arguments for exists in exists_in(argument)
            )
        case other:
            assert_never(other)


def replace_exists(expression: Expression, by: Callable[[Exists], Expression]) -> Expression:
    """The expression with each EXISTS in it replaced."""
    match expression:
        case Constant() | Var():
            return expression
        case Exists():
            return by(expression)
        case Call(name, arguments):
            return Call(name, tuple(replace_exists(argument, by) for argument in arguments))
        case other:
            assert_never(other)


def map_bodies(expression: Expression, change: Callable[[Node], Node]) -> Expression:
    """The expression with the body of each EXISTS in it changed."""
    return replace_exists(expression, lambda exists: Exists(change(exists.pattern)))


def is_volatile(expression: Expression) -> bool:
    """Whether two evaluations of the expression for one solution may have different values.

    >>> is_volatile(Call("+", (Var("x"), Call("RAND", ())))), is_volatile(Var("x"))
    (True, False)
    """
    match expression:
        case Call(name, arguments):
            return name in _VOLATILE or any(map(is_volatile, arguments))
    return False


# --- calls ----------------------------------------------------------------------------------------

FUNCTIONS: Final = frozenset(
    """
    STR LANG LANGMATCHES DATATYPE BOUND IRI BNODE RAND ABS CEIL FLOOR ROUND CONCAT SUBSTR STRLEN REPLACE UCASE LCASE
    ENCODE_FOR_URI CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER YEAR MONTH DAY HOURS MINUTES SECONDS TIMEZONE TZ NOW
    UUID STRUUID MD5 SHA1 SHA256 SHA384 SHA512 COALESCE IF STRLANG STRDT SAMETERM ISIRI ISBLANK ISLITERAL ISNUMERIC
    REGEX
    """.split()  # noqa: SIM905  # reads better as words
)
_SAME: Final = {"URI": "IRI", "ISURI": "ISIRI"}
CASTS: Final = frozenset(
    Term(f"<{XSD}{name}>")
    for name in ("boolean", "double", "float", "decimal", "integer", "dateTime", "string", "date")
)
"""The datatypes of casts: those of SPARQL 1.1, section 17.5, and xsd:date, which most engines have, too."""

_NEW: Final = frozenset(("RAND", "UUID", "STRUUID", "BNODE", "FRESH"))
FALSE: Final = Term(f'"false"^^<{XSD}boolean>')


@dataclass
class ExpressionTranslator:
    """Translates expressions that are evaluated for the same solutions."""

    leaves: Leaves
    now: Term
    number: Var  # the variable of the `Number` node below, for BNODE
    site: Callable[[], int]  # returns a different integer for each FRESH call
    exists: Callable[[syntax.GroupPattern], Node]  # translates the group of an EXISTS
    # adds an aggregate to the group below and returns its variable; None where aggregates are not allowed
    aggregate: Callable[[syntax.AggregateNode], Var] | None = None
    numbered: bool = False

    def expression(self, node: syntax.ExpressionNode) -> Expression:
        """Translates an expression."""
        match node:
            case syntax.VariableNode():
                return self.leaves.variable(node)
            case syntax.OperationNode(operator="||" | "&&" as operator, operands=operands):
                return _balanced(
                    lambda one, other: Call(operator, (one, other)), self._all(operands)
                )
            case syntax.OperationNode(operator="NOT IN", operands=operands):
                return Call("!", (Call("IN", self._all(operands)),))
            case syntax.OperationNode(operator=operator, operands=operands):
                return Call(operator, self._all(operands))
            case syntax.CallNode(function=function):
                if isinstance(function, syntax.IriNode):
                    return self._cast(node, self.leaves.term(function))
                return self._function(node, _SAME.get(function, function))
            case syntax.AggregateNode() if self.aggregate is not None:
                return self.aggregate(node)
            case syntax.ExistsNode(negated=negated, group=group):
                exists = Exists(self.exists(group))
                return Call("!", (exists,)) if negated else exists
            case syntax.Unknown() | syntax.AggregateNode():
                raise self.leaves.unknown(node)
            case _:
                return Constant(self.leaves.term(node))

    def _all(self, nodes: Sequence[syntax.ExpressionNode]) -> tuple[Expression, ...]:
        return tuple(map(self.expression, nodes))

    def _function(self, node: syntax.CallNode, name: str) -> Expression:
        if name not in FUNCTIONS:
            message = f"the function {name} is not supported"
            raise self.leaves.query.unsupported(node, message, name, HINT_1_1)
        arguments = self._all(node.arguments)
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
            case "IRI" if (base := self.leaves.query.prologue.base) is not None:
                return Call(name, (*arguments, Constant(literal(base))))
        return Call(name, arguments)

    def _cast(self, node: syntax.CallNode, name: Term) -> Expression:
        if name not in CASTS:
            raise self.leaves.query.unsupported(
                node,
                f"the function {name} is not supported",
                name,
                "use the functions and casts of SPARQL 1.1",
            )
        if len(node.arguments) != 1 or node.distinct:
            raise self.leaves.query.error(node, f"the cast {name} takes one argument")
        return Call(name, self._all(node.arguments))


def aggregation(
    leaves: Leaves,
    node: syntax.AggregateNode,
    argument: Callable[[syntax.ExpressionNode], Expression],
) -> Aggregation:
    """Translates an aggregate. `argument` translates its expression, in the place of the group's own solutions."""
    separator = " " if node.separator is None else leaves.query.string(node.separator)
    of = None if node.argument is None else argument(node.argument)
    return Aggregation(node.name, of, node.distinct, separator)


def substituted(expression: Expression, replacements: Mapping[Var, Expression]) -> Expression:
    """Replaces variables of an expression, except those in an EXISTS, with other expressions.

    BOUND of a replaced variable tests whether its expression has a value, since an error leaves the variable unbound.
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

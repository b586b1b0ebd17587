"""The syntax tree of a query: tuples with named parts, each with the offsets of its first character and after its last.

SPARQL 1.2 Query, section 19.8. The short notations of triples (`;`, `,`, `[]`, `()`, reifiers, annotations) are
expanded by section 4; names and literals stay as written, and `Query.term` resolves them. Text that the grammar does
not know becomes an `Unknown`. No text is read here, and the nodes have no semantics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

# --- tree -----------------------------------------------------------------------------------------
# A walk through a syntax tree of tuples, independent of their classes.


def walk(*nodes: Any, closed: tuple[type, ...] = ()) -> Iterator[Any]:
    """Yields nodes and all nodes in them, those of `SyntaxNode`, each before its parts, in the order of the text.

    The parts of nodes of the classes in `closed` are not visited.

    >>> from construct_messages.query.syntax.nodes import AliasNode, BindPattern, VariableNode
    >>> alias = AliasNode(4, 9, VariableNode(5, 7, "a"), VariableNode(8, 9, "b"))
    >>> [node.name for node in walk(BindPattern(0, 9, alias)) if isinstance(node, VariableNode)]
    ['a', 'b']
    """
    left: list[Any] = [nodes]
    while left:
        node = left.pop()
        if type(node) is not tuple:
            yield node
        if not isinstance(node, closed):
            left.extend([part for part in reversed(node) if isinstance(part, tuple)])


# --- unknown text ---------------------------------------------------------------------------------------------------


class Unknown(NamedTuple):
    """Text of a dialect, or an error, with the reason and position, and the parts that could be read."""

    start: int
    end: int
    message: str
    offset: int
    hint: str | None
    parts: tuple[SyntaxNode, ...]


# --- terms ----------------------------------------------------------------------------------------------------------


class VariableNode(NamedTuple):
    """`?name` or `$name`; the name without its mark."""

    start: int
    end: int
    name: str


class IriNode(NamedTuple):
    """`<iri>`, `prefix:local` or `a`, as written; names that `()` and reifiers expand to are `<iri>`."""

    start: int
    end: int
    written: str


class BlankNode(NamedTuple):
    """A blank node: the label without `_:`, or `.` and a number where the text has none."""

    start: int
    end: int
    label: str


class LiteralNode(NamedTuple):
    """A string as written, with its quotes, and its language tag (without `@`, with direction) or datatype."""

    start: int
    end: int
    quoted: str
    language: str | None
    datatype: IriNode | None


class NumberNode(NamedTuple):
    """A number as written; its sign is part of it unless it is an operator between two operands."""

    start: int
    end: int
    written: str


class BooleanNode(NamedTuple):
    """`true` or `false`, in any case."""

    start: int
    end: int
    written: str


class TripleTermNode(NamedTuple):
    """`<<( subject predicate object )>>`."""

    start: int
    end: int
    subject: TermNode
    predicate: VariableNode | IriNode
    object: TermNode


TermNode: TypeAlias = (
    VariableNode | IriNode | BlankNode | LiteralNode | NumberNode | BooleanNode | TripleTermNode
)


# --- triples and property paths -------------------------------------------------------------------------------------


class TripleNode(NamedTuple):
    """A triple pattern; the triples of a short notation all have the offsets of the notation."""

    start: int
    end: int
    subject: TermNode
    predicate: VariableNode | PathNode
    object: TermNode


class PathSequence(NamedTuple):
    """`a / b / …`, at least two."""

    start: int
    end: int
    paths: tuple[PathNode, ...]


class PathAlternative(NamedTuple):
    """`a | b | …`, at least two."""

    start: int
    end: int
    paths: tuple[PathNode, ...]


class PathInverse(NamedTuple):
    """`^path`."""

    start: int
    end: int
    path: PathNode


class PathRepetition(NamedTuple):
    """`path?`, `path*` or `path+`."""

    start: int
    end: int
    path: PathNode
    modifier: str


class PathNegation(NamedTuple):
    """`!a` or `!(a | ^b | …)`; members are names and inverse names."""

    start: int
    end: int
    members: tuple[IriNode | PathInverse, ...]


PathNode: TypeAlias = (
    IriNode | PathSequence | PathAlternative | PathInverse | PathRepetition | PathNegation
)


# --- patterns -------------------------------------------------------------------------------------------------------


class GroupPattern(NamedTuple):
    """`{ … }`; a sub-select is a group whose one element is a `SelectForm`."""

    start: int
    end: int
    elements: tuple[PatternNode, ...]


class TriplesBlock(NamedTuple):
    """Triples in a row, without other elements between them."""

    start: int
    end: int
    triples: tuple[TripleNode, ...]


class OptionalPattern(NamedTuple):
    """`OPTIONAL { … }`."""

    start: int
    end: int
    group: GroupPattern


class UnionPattern(NamedTuple):
    """`{ … } UNION { … }`, at least two groups."""

    start: int
    end: int
    groups: tuple[GroupPattern, ...]


class MinusPattern(NamedTuple):
    """`MINUS { … }`."""

    start: int
    end: int
    group: GroupPattern


class GraphPattern(NamedTuple):
    """`GRAPH name { … }`; in templates the name may be a blank node."""

    start: int
    end: int
    name: VariableNode | IriNode | BlankNode
    group: GroupPattern


class ServicePattern(NamedTuple):
    """`SERVICE [SILENT] name { … }`."""

    start: int
    end: int
    silent: bool
    name: VariableNode | IriNode
    group: GroupPattern


class FilterPattern(NamedTuple):
    """`FILTER condition`."""

    start: int
    end: int
    condition: ExpressionNode


class BindPattern(NamedTuple):
    """`BIND(expression AS ?variable)`."""

    start: int
    end: int
    alias: AliasNode


class ValuesPattern(NamedTuple):
    """`VALUES … { … }`, in a group or after the query; None is UNDEF."""

    start: int
    end: int
    variables: tuple[VariableNode, ...]
    solutions: tuple[tuple[TermNode | None, ...], ...]


class WindowPattern(NamedTuple):
    """`WINDOW name { … }` of RSP-QL, and `STREAM name [ … ] { … }` of CQELS, by its keyword in upper case.

    Only `query.continuous` reads these. STREAM has `stream`, its name, and `window`, the contents of its brackets.
    """

    start: int
    end: int
    keyword: str
    name: VariableNode | IriNode | None
    stream: str
    window: Any
    group: GroupPattern


# --- expressions ----------------------------------------------------------------------------------------------------


class OperationNode(NamedTuple):
    """An operator and its operands.

    `||` and `&&` have two or more operands, `IN` and `NOT IN` one and the list, `!`, `u+` and `u-` one, all others two.
    """

    start: int
    end: int
    operator: str
    operands: tuple[ExpressionNode, ...]


class CallNode(NamedTuple):
    """A function by its keyword in upper case, of SPARQL or of a dialect, or by its IRI, and its arguments."""

    start: int
    end: int
    function: str | IriNode
    arguments: tuple[ExpressionNode, ...]
    distinct: bool


class AggregateNode(NamedTuple):
    """An aggregate by its keyword in upper case; the argument None is `*`."""

    start: int
    end: int
    name: str
    distinct: bool
    argument: ExpressionNode | None
    separator: LiteralNode | None


class ExistsNode(NamedTuple):
    """`EXISTS { … }` or `NOT EXISTS { … }`."""

    start: int
    end: int
    negated: bool
    group: GroupPattern


class AliasNode(NamedTuple):
    """`expression AS ?variable`, with the brackets around it."""

    start: int
    end: int
    expression: ExpressionNode
    variable: VariableNode


ExpressionNode: TypeAlias = (
    TermNode | OperationNode | CallNode | AggregateNode | ExistsNode | Unknown
)


# --- clauses and forms ----------------------------------------------------------------------------------------------


class FromClause(NamedTuple):
    """`FROM <graph>` or `FROM NAMED <graph>`."""

    start: int
    end: int
    named: bool
    name: IriNode


class GroupClause(NamedTuple):
    """`GROUP BY …`."""

    start: int
    end: int
    conditions: tuple[ExpressionNode | AliasNode, ...]


class HavingClause(NamedTuple):
    """`HAVING …`."""

    start: int
    end: int
    conditions: tuple[ExpressionNode, ...]


class OrderCondition(NamedTuple):
    """A sort key."""

    start: int
    end: int
    expression: ExpressionNode
    descending: bool


class OrderClause(NamedTuple):
    """`ORDER BY …`."""

    start: int
    end: int
    conditions: tuple[OrderCondition, ...]


class SliceClause(NamedTuple):
    """`LIMIT number` or `OFFSET number`, by its keyword; the digits as written, since they may be very many."""

    start: int
    end: int
    keyword: str
    number: str


ClauseNode: TypeAlias = (
    GroupClause | HavingClause | OrderClause | SliceClause | ValuesPattern | Unknown
)


class SelectForm(NamedTuple):
    """A SELECT, or a sub-select, which has no dataset.

    `modifier` is DISTINCT, REDUCED or empty; `projection` is None for `*`; `clauses` are those after WHERE, as written.
    """

    start: int
    end: int
    modifier: str
    projection: tuple[VariableNode | AliasNode | Unknown, ...] | None
    dataset: tuple[FromClause | Unknown, ...]
    where: GroupPattern
    clauses: tuple[ClauseNode, ...]


class ConstructForm(NamedTuple):
    """A CONSTRUCT; the template is None in the short form, where it is the WHERE group.

    The elements of a template are `TriplesBlock`, and of Jena's dialect `GraphPattern` and `GroupPattern`.
    """

    start: int
    end: int
    template: GroupPattern | None
    dataset: tuple[FromClause | Unknown, ...]
    where: GroupPattern
    clauses: tuple[ClauseNode, ...]


class AskForm(NamedTuple):
    """An ASK."""

    start: int
    end: int
    dataset: tuple[FromClause | Unknown, ...]
    where: GroupPattern
    clauses: tuple[ClauseNode, ...]


class DescribeForm(NamedTuple):
    """A DESCRIBE; the targets are None for `*`, and the group is None without WHERE."""

    start: int
    end: int
    targets: tuple[VariableNode | IriNode, ...] | None
    dataset: tuple[FromClause | Unknown, ...]
    where: GroupPattern | None
    clauses: tuple[ClauseNode, ...]


FormNode: TypeAlias = SelectForm | ConstructForm | AskForm | DescribeForm

PatternNode: TypeAlias = (
    TriplesBlock
    | GroupPattern
    | OptionalPattern
    | UnionPattern
    | MinusPattern
    | GraphPattern
    | ServicePattern
    | FilterPattern
    | BindPattern
    | ValuesPattern
    | WindowPattern
    | SelectForm
    | Unknown
)

SyntaxNode: TypeAlias = (
    PatternNode
    | ExpressionNode
    | PathNode
    | TripleNode
    | AliasNode
    | ClauseNode
    | OrderCondition
    | FromClause
    | FormNode
)


# --- scope ----------------------------------------------------------------------------------------
# Variable scope: finds the variables that the solutions of a group, GROUP BY, and VALUES clauses can bind.
#
# SPARQL 1.2 Query, section 18.2.1 (variable scope) and section 11 (aggregates). In unknown text, every variable
# counts. Queries are not changed here.


def in_scope(*nodes: Any) -> dict[str, None]:
    """Returns the names of the variables that solutions of patterns may bind, in the order of the text.

    Variables only in FILTER, MINUS, the expression of a BIND, or a sub-select that does not project them are left out.

    >>> from construct_messages.query.syntax.parser import parse
    >>> text = "ASK { ?a ?b 1 BIND(?c AS ?d) FILTER(?e) { SELECT ?f (MAX(?g) AS ?h) { ?f ?g ?i } GROUP BY ?f } }"
    >>> list(in_scope(parse(text).form.where))
    ['a', 'b', 'd', 'f', 'h']
    """
    return _variables(nodes, binding=True)


def reached(*nodes: Any) -> dict[str, None]:
    """Returns the variables that bindings at the start of a group apply to: all except those local to sub-selects.

    >>> from construct_messages.query.syntax.parser import parse
    >>> text = "ASK { ?a ?b 1 FILTER(?c) { SELECT ?d { ?d ?e 1 } } { SELECT * { ?f ?g 1 } } }"
    >>> list(reached(parse(text).form.where))
    ['a', 'b', 'c', 'd', 'f', 'g']
    """
    return _variables(nodes, binding=False)


def assigned(group: GroupPattern) -> frozenset[str]:
    """Returns the variables that a group itself assigns by BIND; nested groups do not count.

    >>> from construct_messages.query.syntax.parser import parse
    >>> sorted(assigned(parse("ASK { BIND(1 AS ?a) { BIND(2 AS ?b) } }").form.where))
    ['a']
    """
    return frozenset(
        element.alias.variable.name
        for element in group.elements
        if isinstance(element, BindPattern)
    )


def group_keys(clauses: Sequence[ClauseNode]) -> tuple[str, ...] | None:
    """Returns the variables with one value in each group, in order; None if the query does not group.

    HAVING, or an aggregate in ORDER BY, makes one group of all solutions, without keys.
    """
    for clause in clauses:
        if isinstance(clause, GroupClause):
            keys = (
                each.variable if isinstance(each, AliasNode) else each for each in clause.conditions
            )
            return tuple(dict.fromkeys(key.name for key in keys if isinstance(key, VariableNode)))
    grouping = any(
        isinstance(clause, HavingClause)
        or (isinstance(clause, OrderClause) and next(aggregates(clause), None) is not None)
        for clause in clauses
    )
    return () if grouping else None


def values_variables(clauses: Sequence[ClauseNode]) -> tuple[str, ...]:
    """The variables of the VALUES clause after a query."""
    return tuple(
        dict.fromkeys(
            variable.name
            for clause in clauses
            if isinstance(clause, ValuesPattern)
            for variable in clause.variables
        )
    )


def aggregates(*nodes: Any) -> Iterator[AggregateNode]:
    """Yields the aggregates of expressions, except those in other aggregates or in groups.

    >>> from construct_messages.query.syntax.parser import parse
    >>> [found.name for found in aggregates(parse("ASK {} ORDER BY ?a DESC(COUNT(?b))").form.clauses)]
    ['COUNT']
    """
    inside = walk(*nodes, closed=(AggregateNode, GroupPattern))
    return (node for node in inside if isinstance(node, AggregateNode))


def _variables(nodes: tuple[Any, ...], *, binding: bool) -> dict[str, None]:
    names: dict[str, None] = {}
    left: list[Any] = [nodes]
    while left:
        node = left.pop()
        if isinstance(node, VariableNode):
            names[node.name] = None
        elif isinstance(node, SelectForm) and node.projection is not None:
            left += [
                item.variable if isinstance(item, AliasNode) else item
                for item in reversed(node.projection)
            ]
        elif binding and isinstance(node, SelectForm):
            left += [
                *(each for each in node.clauses if isinstance(each, ValuesPattern)),
                node.where,
            ]
        elif binding and isinstance(node, FilterPattern | MinusPattern):
            continue
        elif binding and isinstance(node, AliasNode):
            left.append(node.variable)
        else:
            left.extend([part for part in reversed(node) if isinstance(part, tuple)])
    return names

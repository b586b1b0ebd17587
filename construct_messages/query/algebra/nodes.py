"""The algebra of a query, as frozen nodes: what `plan` makes, `optimize` rewrites and `relations` evaluates.

SPARQL 1.1 Query, section 18. Each node tells which variables it binds: `possible` in some solution, `certain` in
every solution. GRAPH is gone here: each leaf carries the graph it matches in, so evaluation knows no active graph.
Variables whose names begin with a dot are the plan's own (blank nodes of the query, graphs, aggregates, marks): no
query can name them and none is projected. No query text here, no SQL and no pyspark.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from construct_messages.query.algebra.property_paths import PathExpression
from construct_messages.terms import Term

Vars: TypeAlias = "frozenset[Var]"


@dataclass(frozen=True, slots=True, order=True)
class Var:
    """A variable, without `?`; `hidden` if the plan made it.

    >>> Var("x").hidden, Var(".b0").hidden
    (False, True)
    """

    name: str

    @property
    def hidden(self) -> bool:
        return self.name.startswith(".")


Position: TypeAlias = Var | Term
"""A place in a pattern: a variable, or a term (a `str`)."""


def variables(positions: Iterable[Position | None]) -> Vars:
    """The variables among some positions.

    >>> sorted(variables([Var("s"), Term("<urn:p>"), Var("o"), None]))
    [Var(name='o'), Var(name='s')]
    """
    return frozenset(position for position in positions if isinstance(position, Var))


# --- expressions --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constant:
    """A term in an expression."""

    term: Term


@dataclass(frozen=True, slots=True)
class Call:
    """An operator, function or cast.

    Args:
        name: an operator as SPARQL writes it (`=`, `!=`, `<`, `>`, `<=`, `>=`, `+`, `-`, `*`, `/`, `&&`, `||`, `!`, and
            `IN` with the needle first; the unary ones are `u+` and `u-`); a function in capitals (`STRLEN`, `IF`,
            `BOUND`, …); or the IRI of a cast as a term (`<http://www.w3.org/2001/XMLSchema#integer>`). NOT IN is `!`
            of `IN`, and NOW() is a `Constant`. BNODE() is `FRESH(site, number)` and BNODE(label) is
            `BNODE(label, number)`, where `site` is an integer that no other call of the query has and `number` the
            `Var` of a `Number` node below. IRI has the query's base, if there is one, as its second argument. No
            query has `SAMEKEY`, which is true wherever `=` is, and quick to join by: see `value_keys`.
        arguments: in order.
    """

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Exists:
    """EXISTS; NOT EXISTS is `Call("!", (Exists(…),))`."""

    pattern: Node


Expression: TypeAlias = Var | Constant | Call | Exists


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One aggregate of a group.

    Args:
        name: `COUNT`, `SUM`, `MIN`, `MAX`, `AVG`, `SAMPLE` or `GROUP_CONCAT`.
        argument: what is aggregated; None for `COUNT(*)`.
        distinct: whether equal terms (for `COUNT(DISTINCT *)`: equal solutions) count once.
        separator: of `GROUP_CONCAT`.
    """

    name: str
    argument: Expression | None
    distinct: bool = False
    separator: str = " "


# --- leaves -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Triple:
    """A triple pattern; `graph` is None for the default graph, a term or a variable for named graphs."""

    subject: Position
    predicate: Position
    object: Position
    graph: Position | None = None

    @property
    def positions(self) -> tuple[Position | None, ...]:
        return (self.subject, self.predicate, self.object, self.graph)


class _Node:
    """What all nodes tell of their variables."""

    @property
    def possible(self) -> Vars:
        """The variables that some solution binds."""
        raise NotImplementedError

    @property
    def certain(self) -> Vars:
        """The variables that every solution binds."""
        return self.possible


@dataclass(frozen=True)
class Unit(_Node):
    """One solution that binds nothing."""

    @property
    def possible(self) -> Vars:
        return frozenset()


@dataclass(frozen=True)
class Bgp(_Node):
    """A basic graph pattern: triple patterns, at least one, in the order in which they are to be joined."""

    patterns: tuple[Triple, ...]

    @cached_property
    def possible(self) -> Vars:
        return variables(position for pattern in self.patterns for position in pattern.positions)


@dataclass(frozen=True)
class Star(_Node):
    """Triple patterns with one subject (a variable) and constant predicates, evaluated in one pass: see `stars`.

    Args:
        subject: what they share.
        patterns: at least two, or one beside `optional` ones, each with `subject`, a term as predicate and the same
            graph.
        optional: patterns of the same kind that bind their object where they can (OPTIONAL of one triple each); their
            objects are variables that occur nowhere else in the star.
    """

    subject: Var
    patterns: tuple[Triple, ...]
    optional: tuple[Triple, ...] = ()

    @cached_property
    def certain(self) -> Vars:
        return variables(position for pattern in self.patterns for position in pattern.positions)

    @cached_property
    def possible(self) -> Vars:
        return self.certain | variables(position for pattern in self.optional for position in pattern.positions)


@dataclass(frozen=True)
class Path(_Node):
    """A property path between two positions that is no plain predicate."""

    subject: Position
    path: PathExpression
    object: Position
    graph: Position | None = None

    @cached_property
    def possible(self) -> Vars:
        return variables((self.subject, self.object, self.graph))


@dataclass(frozen=True)
class Graphs(_Node):
    """The names of the dataset's named graphs, each once; for a term: one empty solution if it is such a name."""

    graph: Position

    @cached_property
    def possible(self) -> Vars:
        return variables((self.graph,))


@dataclass(frozen=True)
class Values(_Node):
    """Inline data; None is UNDEF."""

    variables: tuple[Var, ...]
    solutions: tuple[tuple[Term | None, ...], ...]

    @cached_property
    def possible(self) -> Vars:
        return frozenset(self.variables)

    @cached_property
    def certain(self) -> Vars:
        return frozenset(
            variable
            for index, variable in enumerate(self.variables)
            if all(solution[index] is not None for solution in self.solutions)
        )


# --- operators ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Join(_Node):
    """Compatible solutions of both sides, merged."""

    left: Node
    right: Node

    @cached_property
    def possible(self) -> Vars:
        return self.left.possible | self.right.possible

    @cached_property
    def certain(self) -> Vars:
        return self.left.certain | self.right.certain


@dataclass(frozen=True)
class LeftJoin(_Node):
    """OPTIONAL; `condition` sees the variables of both sides."""

    left: Node
    right: Node
    condition: Expression | None = None

    @cached_property
    def possible(self) -> Vars:
        return self.left.possible | self.right.possible

    @cached_property
    def certain(self) -> Vars:
        return self.left.certain


@dataclass(frozen=True)
class Union(_Node):
    """The solutions of both sides."""

    left: Node
    right: Node

    @cached_property
    def possible(self) -> Vars:
        return self.left.possible | self.right.possible

    @cached_property
    def certain(self) -> Vars:
        return self.left.certain & self.right.certain


@dataclass(frozen=True)
class Minus(_Node):
    """The left solutions without those that share a bound variable with a compatible right one.

    Args:
        within: variables (graphs) that must agree but do not count as shared.
    """

    left: Node
    right: Node
    within: Vars = frozenset()

    @property
    def possible(self) -> Vars:
        return self.left.possible

    @property
    def certain(self) -> Vars:
        return self.left.certain


@dataclass(frozen=True)
class Filter(_Node):
    """The solutions whose condition has the effective boolean value true."""

    pattern: Node
    condition: Expression

    @property
    def possible(self) -> Vars:
        return self.pattern.possible

    @property
    def certain(self) -> Vars:
        return self.pattern.certain


@dataclass(frozen=True)
class Extend(_Node):
    """BIND: one more variable, unbound where the expression fails."""

    pattern: Node
    variable: Var
    expression: Expression

    @cached_property
    def possible(self) -> Vars:
        return self.pattern.possible | {self.variable}

    @cached_property
    def certain(self) -> Vars:
        match self.expression:
            case Constant():
                return self.pattern.certain | {self.variable}
            case Var() as other if other in self.pattern.certain:
                return self.pattern.certain | {self.variable}
        return self.pattern.certain


@dataclass(frozen=True)
class Number(_Node):
    """Gives each solution letters and digits that no other has, of any Number, in any evaluation.

    BNODE takes its labels from them.
    """

    pattern: Node
    variable: Var

    @cached_property
    def possible(self) -> Vars:
        return self.pattern.possible | {self.variable}

    @cached_property
    def certain(self) -> Vars:
        return self.pattern.certain | {self.variable}


@dataclass(frozen=True)
class Group(_Node):
    """GROUP BY: one solution a group, of its keys and aggregates.

    Args:
        keys: variables (an expression as key is an `Extend` below); unbound is a key too, also where `pattern` never
            binds the variable. Without keys there is one group, even of no solution.
        aggregates: variables and what they are bound to.
    """

    pattern: Node
    keys: tuple[Var, ...]
    aggregates: tuple[tuple[Var, Aggregation], ...]

    @cached_property
    def possible(self) -> Vars:
        return frozenset(self.keys) | {variable for variable, _ in self.aggregates}

    @cached_property
    def certain(self) -> Vars:
        counts = {variable for variable, aggregation in self.aggregates if aggregation.name == "COUNT"}
        return (frozenset(self.keys) & self.pattern.certain) | counts


@dataclass(frozen=True)
class Project(_Node):
    """Only these variables, in this order; one that the pattern does not know is unbound."""

    pattern: Node
    variables: tuple[Var, ...]

    @cached_property
    def possible(self) -> Vars:
        return frozenset(self.variables) & self.pattern.possible

    @cached_property
    def certain(self) -> Vars:
        return frozenset(self.variables) & self.pattern.certain


@dataclass(frozen=True)
class Distinct(_Node):
    """Each solution once (REDUCED too, which allows it)."""

    pattern: Node

    @property
    def possible(self) -> Vars:
        return self.pattern.possible

    @property
    def certain(self) -> Vars:
        return self.pattern.certain


@dataclass(frozen=True)
class OrderBy(_Node):
    """The solutions in order; `conditions` are expressions and whether each is descending."""

    pattern: Node
    conditions: tuple[tuple[Expression, bool], ...]

    @property
    def possible(self) -> Vars:
        return self.pattern.possible

    @property
    def certain(self) -> Vars:
        return self.pattern.certain


@dataclass(frozen=True)
class Slice(_Node):
    """OFFSET and LIMIT; `within` are graph variables: each of their values has a slice of its own."""

    pattern: Node
    offset: int
    limit: int | None
    within: tuple[Var, ...] = ()

    @property
    def possible(self) -> Vars:
        return self.pattern.possible

    @property
    def certain(self) -> Vars:
        return self.pattern.certain


Node: TypeAlias = (
    Unit
    | Bgp
    | Star
    | Path
    | Graphs
    | Values
    | Join
    | LeftJoin
    | Union
    | Minus
    | Filter
    | Extend
    | Number
    | Group
    | Project
    | Distinct
    | OrderBy
    | Slice
)


@dataclass(frozen=True)
class Dataset:
    """FROM and FROM NAMED: names of the graphs that are merged as the default graph, and of the named graphs.

    Both None: the dataset is that of the quads. If only one was written, the other is empty.
    """

    default: tuple[Term, ...] | None = None
    named: tuple[Term, ...] | None = None


@dataclass(frozen=True)
class Demand:
    """A triple pattern, and conditions on one variable each; what it matches is of use only where all are true."""

    pattern: Triple
    conditions: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class Plan:
    """A query, ready to be evaluated.

    Args:
        form: `"SELECT"` or `"ASK"`.
        pattern: its solutions; for SELECT a `Project` stands on top but for `Distinct` and `Slice`.
        variables: the projected names, in order.
        dataset: what FROM and FROM NAMED say.
        ordered: whether the order of the solutions was asked for.
        gathered: of which quads are to be read once, together, before each pattern takes its own; see `gathering`.
    """

    form: Literal["SELECT", "ASK"]
    pattern: Node
    variables: tuple[str, ...]
    dataset: Dataset = Dataset()
    ordered: bool = False
    gathered: tuple[Demand, ...] = ()


def column(variable: Var) -> str:
    """The name of a variable's column: injective also where case does not count, and never in need of quotes.

    >>> column(Var("company")), column(Var("aName")), column(Var(".g0"))
    ('v_company', 'v_a_4e_ame', 'v__2e_g0')
    """
    return "v_" + "".join(
        char if char.isascii() and (char.islower() or char.isdigit()) else f"_{ord(char):x}_" for char in variable.name
    )

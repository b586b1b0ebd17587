"""Composes the operators that maintain a query from its SPARQL algebra, or gives the reason why that is impossible.

SPARQL 1.1 Query, section 18.5. Each part of the pattern is evaluated by itself, bottom up: so a FILTER sees what its
own group binds, in MINUS and OPTIONAL, too (section 8.3.3). Only EXISTS takes values from outside (section 18.6).
What depends on more than the quads of the windows (NOW, RAND), on an order (LIMIT), or on paths of any length is not
maintained.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, cast

from construct_messages.continuous.dataset import Contents, QuadReader, TextQuad
from construct_messages.continuous.expressions import (
    NotMaintained,
    Row,
    Step,
    certain,
    is_about,
    native,
    necessary,
)
from construct_messages.continuous.operators import (
    CountedRows,
    Dependence,
    DependentRows,
    DistinctRows,
    GroupedRows,
    JoinedRows,
    Names,
    ScannedRows,
    SteppedRows,
    TableRows,
    Test,
    UnitedRows,
    netted,
    picking,
    projection,
)
from construct_messages.errors import ConstructMessagesError
from construct_messages.query.algebra import nodes as algebra
from construct_messages.query.algebra.calls import conjunction, conjuncts, exists_in, mentioned
from construct_messages.query.algebra.nodes import (
    NOTHING,
    Bgp,
    Call,
    Constant,
    Dataset,
    Exists,
    Expression,
    Extend,
    Filter,
    Graphs,
    LeftJoin,
    Minus,
    Node,
    Project,
    Triple,
    Union,
    Unit,
    Values,
    Var,
    Vars,
    correlated_variables,
    mentions,
)
from construct_messages.query.algebra.translation import translate
from construct_messages.query.continuous.values import MEMBER, ContinuousQuery
from construct_messages.query.syntax.nodes import SelectForm, walk
from construct_messages.query.syntax.parser import Query
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Quad
from construct_messages.rdf.terms import Term

# --- maintained -----------------------------------------------------------------------------------
# Maintains the solutions of a plan as elements enter windows and leave them.
#
# SPARQL 1.1 Query, section 18.5: the solutions of a query are a multiset, and so are their changes. The selection and
# time of the output are not decided here.

# Matches quads with the triple patterns of a plan.


class Match(NamedTuple):
    """A match of a pattern: the pattern's number, and the values of its variables."""

    pattern: int
    row: Row


class _CompiledPattern:
    """A triple pattern: the required terms of a quad, and the positions of variables."""

    def __init__(
        self, number: int, pattern: Triple, conditions: Iterable[Expression], reader: QuadReader
    ) -> None:
        self.number = number
        self.constants: list[tuple[int, str]] = []
        self.equal: list[tuple[int, int]] = []
        self.named = isinstance(pattern.graph, Var)
        columns: dict[str, int] = {}
        for place, position in enumerate(pattern.positions):
            if not isinstance(position, Var):
                text = "" if position is None else reader.stored(position)
                if place != 1:
                    self.constants.append((place, text))
            elif position.name in columns:
                self.equal.append((columns[position.name], place))
            else:
                columns[position.name] = place
        self.variables = tuple(columns)
        self.row = picking(list(columns.values()))
        self._test = necessary(conditions, self.variables)

    def matches(self, quad: TextQuad) -> bool:
        """Whether a quad with its predicate matches."""
        for place, text in self.constants:
            if quad[place] != text:
                return False
        if self.named and not quad[3]:
            return False
        for place, other in self.equal:
            if quad[place] != quad[other]:
                return False
        return self._test is None or self._test(self.row(quad))


class PatternMatcher:
    """Finds the triple patterns that a quad matches.

    A quad that fails a condition of a pattern, which only reads its variables, does not match it.


    >>> from construct_messages.rdf.terms import Term
    >>> matcher = PatternMatcher([Triple(Var("s"), Term("<urn:p>"), Var("o"))])
    >>> matcher.matches(("<urn:s>", "<urn:p>", '"o"', ""))
    [Match(pattern=0, row=('<urn:s>', '"o"'))]
    """

    def __init__(
        self, patterns: Sequence[Triple], conditions: Sequence[Iterable[Expression]] | None = None
    ) -> None:
        named = {p.predicate for p in patterns if not isinstance(p.predicate, Var)}
        every = any(isinstance(pattern.predicate, Var) for pattern in patterns)
        self.reader = QuadReader(None if every else frozenset(map(str, named)))
        compiled = [
            _CompiledPattern(number, pattern, conditions[number] if conditions else (), self.reader)
            for number, pattern in enumerate(patterns)
        ]
        self.variables = [one.variables for one in compiled]
        self._of = {
            predicate: [
                one
                for one, pattern in zip(compiled, patterns, strict=True)
                if isinstance(pattern.predicate, Var) or pattern.predicate == predicate
            ]
            for predicate in map(str, named)
        }
        self._others = [
            one
            for one, pattern in zip(compiled, patterns, strict=True)
            if isinstance(pattern.predicate, Var)
        ]

    def matched(self, quads: Iterable[TextQuad]) -> list[TextQuad]:
        """Returns the quads that match a pattern."""
        patterns, others = self._of, self._others
        found: list[TextQuad] = []
        for quad in quads:
            for one in patterns.get(quad[1], others):
                if one.matches(quad):
                    found.append(quad)
                    break
        return found

    def matches(self, quad: TextQuad) -> list[Match]:
        """Returns the matches of a quad."""
        return [
            Match(one.number, one.row(quad))
            for one in self._of.get(quad[1], self._others)
            if one.matches(quad)
        ]


# --- solutions ------------------------------------------------------------------------------------


class SolutionChanges(NamedTuple):
    """Added and removed solutions, with repetitions."""

    appeared: list[Row]
    vanished: list[Row]


class MaintainedSolutions:
    """The solutions of a query over windows, by a plan."""

    def __init__(
        self, plan: MaintenancePlan, query: ContinuousQuery, static: Iterable[Quad], labels: Labels
    ) -> None:
        composed = Composition(plan.pattern, plan.windows)
        self._matcher = PatternMatcher(composed.patterns, composed.conditions)
        matcher = self._matcher
        self.contents = Contents(
            query, static, labels, matcher.reader, matcher.matched, keep=plan.may_end
        )
        self._scans, self._root = composed.scans, composed.root
        self._project = projection(self._root.names, plan.variables)
        self._has_begun = False  # the first difference is also that of inline data

    @property
    def are_current(self) -> bool:
        """Whether `difference` would return no changes, because no matching quad has entered or left."""
        return self._has_begun and not self.contents.are_changed

    def difference(self) -> SolutionChanges:
        """Returns the changes since the last call; raises `NotMaintained` if some values make that impossible."""
        self._has_begun = True
        matcher, scans = self._matcher, self._scans
        for sign, quads in zip((1, -1), self.contents.changes(), strict=True):
            for quad in quads:
                for number, row in matcher.matches(quad):
                    scans[number].pending.append((row, sign))
        found, project = SolutionChanges([], []), self._project
        for row, count in netted(self._root):
            solution = row if project is None else project(row)
            if count > 0:
                found.appeared.extend([solution] * count)
            else:
                found.vanished.extend([solution] * -count)
        return found


# --- planner --------------------------------------------------------------------------------------

_NOW: Final = Term('"now"')
"""The value of NOW(), which cannot occur in the text of a query."""

_MEMBER: Final = f"<{MEMBER}>"
_NEW: Final = frozenset(("RAND", "UUID", "STRUUID", "BNODE", "FRESH"))
_AGGREGATES: Final = frozenset(("COUNT", "SUM", "AVG", "MIN", "MAX"))
_OTHERS: Final[dict[type, str]] = {
    algebra.Path: "a property path of any length",
    Graphs: "GRAPH without a pattern in it",
    algebra.Slice: "LIMIT or OFFSET",
    algebra.OrderBy: "ORDER BY",
    algebra.Number: "BNODE",
}


@dataclass(frozen=True)
class MaintenancePlan:
    """A query whose solutions can be maintained, and whether some values may end that."""

    pattern: Node
    windows: frozenset[str]
    variables: Names
    description: str
    may_end: bool


def plan_of(select: Query, windows: Iterable[str]) -> MaintenancePlan | str:
    """Returns the plan of a SELECT query, or the reason why it is evaluated as a whole.

    >>> from construct_messages.query.syntax.parser import parse
    >>> plan_of(parse("SELECT ?s { GRAPH <urn:w> { ?s <urn:p> ?o } }"), ["urn:w"]).description
    'join of 1 triple pattern'
    >>> plan_of(parse("SELECT ?s { GRAPH <urn:w> { ?s <urn:p>* ?o } }"), ["urn:w"])
    'a property path of any length'
    """
    selects = (node for node in walk(select.form) if isinstance(node, SelectForm))
    if any(node.modifier == "REDUCED" for node in selects):
        return "REDUCED"
    names = frozenset(f"<{window}>" for window in windows)
    try:
        query = translate(select, now=_NOW)
        composed = Composition(query.pattern, names)
    except (NotMaintained, ConstructMessagesError) as reason:
        return str(reason)
    if query.dataset != Dataset():
        return "FROM"
    return MaintenancePlan(
        query.pattern, names, query.variables, composed.description, composed.may_end
    )


class Composition:
    """The operators of a query.

    Attributes:
        root: returns the changes of the solutions.
        patterns: the triple patterns.
        conditions: of each pattern, which only read its variables: matches that fail one are in no solution.
        scans: the operators to pass the matches of each pattern to.
        may_end: whether some values make maintaining the solutions impossible.

    Raises:
        NotMaintained: the query cannot be maintained.
    """

    def __init__(self, pattern: Node, windows: frozenset[str]) -> None:
        self._windows = windows
        self.patterns = list[Triple]()
        self.conditions = list[Sequence[Expression]]()
        self.scans = list[ScannedRows]()
        self.may_end = False
        self._parts: dict[str, None] = {}
        self.root = self._operator(pattern, pattern.possible, ())

    @property
    def description(self) -> str:
        """The kinds of operators."""
        count = len(self.patterns)
        joined = f"join of {count} triple pattern{'' if count == 1 else 's'}"
        return ", ".join((joined, *self._parts))

    def _operator(self, node: Node, needed: Vars, conditions: Sequence[Expression]) -> CountedRows:
        """The operator of a pattern.

        Only the variables `needed` are read of its rows: others may be missing, so that more rows are equal and counted
        together. A row that binds all variables of one of the conditions and fails it is in no solution, and may be
        missing.
        """
        match node:
            case Unit():
                return TableRows((), frozenset(), [()])
            case Values(variables, solutions):
                self._parts["VALUES"] = None
                stored = QuadReader(None).stored
                rows = [tuple("" if t is None else stored(t) for t in row) for row in solutions]
                return TableRows(_names(variables), _set(node.certain), rows)
            case Bgp() | algebra.Join():
                return self._join(node, needed, conditions)
            case Union(left, right):
                self._parts["UNION"] = None
                operands = [self._operator(each, needed, conditions) for each in (left, right)]
                names = tuple(dict.fromkeys(name for each in operands for name in each.names))
                return UnitedRows(operands, names, _set(node.certain))
            case Filter() | Extend():
                return self._stepped(node, needed, conditions)
            case LeftJoin():
                return self._optional(node, needed, conditions)
            case Minus(left, right, within):
                shared = left.possible & right.possible
                if not shared - within:  # without a shared variable, it excludes nothing
                    return self._operator(left, needed, conditions)
                self._parts["MINUS"] = None
                return DependentRows(
                    Dependence.MINUS,
                    self._operator(left, needed | shared, conditions),
                    self._operator(right, shared, ()),
                    sharing=_set(shared - within),
                )
            case Project(pattern, variables):
                kept = [each for each in conditions if is_about(each, _set(variables))]
                wanted = [each for each in variables if each in needed & pattern.possible]
                operand = self._operator(pattern, frozenset(wanted), kept)
                if operand.names == (names := _names(wanted)):
                    return operand
                return UnitedRows([operand], names, _set(node.certain))
            case algebra.Distinct(pattern):
                self._parts["DISTINCT"] = None
                return DistinctRows(self._operator(pattern, pattern.possible, conditions))
            case algebra.Group():
                return self._group(node)
        raise NotMaintained(_OTHERS.get(type(node), type(node).__name__))

    # --- joins ---

    def _join(self, node: Node, needed: Vars, conditions: Sequence[Expression]) -> CountedRows:
        """The join of triple patterns and other operands.

        Patterns that share their graph's variable or their subject are joined first, as a quad changes few rows of
        these joins in a window; then the results of these joins are joined.
        """
        operands = self._flattened(node)
        triples = [one for each in operands if isinstance(each, Bgp) for one in each.patterns]
        others = [each for each in operands if not isinstance(each, Bgp)]
        stars: dict[str, list[ScannedRows]] = {}
        for pattern in triples:
            stars.setdefault(_hub(pattern), []).append(self._scan(pattern, conditions))
        # other conditions than those that are tested on the matches of a pattern
        scanned = [frozenset(scan.names) for scans in stars.values() for scan in scans]
        left = [one for one in conditions if not any(is_about(one, names) for names in scanned)]
        joined: list[CountedRows] = []
        kept = None if others or len(stars) > 1 else _set(needed)
        for scans in stars.values():
            is_whole = len(scans) == 1
            joined.append(
                scans[0] if is_whole else JoinedRows(scans, partial(_necessary, left), kept)
            )
        for place, each in enumerate(others):
            outside = NOTHING.union(
                *(one.possible for one in (*others[:place], *others[place + 1 :]))
            )
            outside |= NOTHING.union(*(pattern.variables for pattern in triples))
            _check_reads(each, outside)
            read = (needed | outside) & each.possible
            joined.append(self._operator(each, read, conditions))
        if len(joined) == 1:
            return joined[0]
        return JoinedRows(joined, partial(_necessary, left), _set(needed))

    def _flattened(self, node: Node) -> list[Node]:
        match node:
            case algebra.Join(Graphs(graph), other) | algebra.Join(other, Graphs(graph)):
                # the engine ignores a graph in which no triple is matched
                if graph not in self._windows or not _matches_triples(other):
                    raise NotMaintained("GRAPH without a pattern in it")
                return self._flattened(other)
            case algebra.Join(left, right):
                return [*self._flattened(left), *self._flattened(right)]
        return [node]

    def _scan(self, pattern: Triple, conditions: Sequence[Expression]) -> ScannedRows:
        scan = ScannedRows(_names(one for one in pattern.positions if isinstance(one, Var)))
        self.patterns.append(pattern)
        self.conditions.append([one for one in conditions if is_about(one, scan.names)])
        self.scans.append(scan)
        return scan

    # --- FILTER, BIND, OPTIONAL and EXISTS ---

    def _stepped(
        self, node: Filter | Extend, needed: Vars, conditions: Sequence[Expression]
    ) -> CountedRows:
        """FILTERs and BINDs, up to the first FILTER with EXISTS."""
        if isinstance(node, Filter):
            parts = conjuncts(node.condition)
            if tests := [part for part in parts if _exists(part) is not None]:
                own = conjunction(part for part in parts if part not in tests)
                pattern = node.pattern if own is None else Filter(node.pattern, own)
                return self._existing(pattern, tests, needed, conditions)
        steps, below = list[Step](), cast(Node, node)
        while isinstance(below, Filter | Extend):
            if isinstance(below, Filter):
                own_conditions = conjuncts(below.condition)
                if any(_exists(part) is not None for part in own_conditions):
                    break
                self._parts["FILTER"] = None
                steps.insert(0, (None, _checked(below.condition)))
                conditions = [*conditions, *own_conditions]
                needed |= frozenset(mentioned(below.condition))
            else:
                bound = below.variable
                if bound in below.pattern.possible:
                    raise NotMaintained("BIND of a variable that is bound")
                if not isinstance(below.expression, Var):
                    self._parts["BIND"] = None
                steps.insert(0, (bound, _checked(below.expression)))
                conditions = [one for one in conditions if bound not in mentioned(one)]
                needed = (needed - {bound}) | frozenset(mentioned(below.expression))
            below = below.pattern
        operand = self._operator(below, needed & below.possible, conditions)
        return SteppedRows(operand, steps, _set(node.certain))

    def _optional(
        self, node: LeftJoin, needed: Vars, conditions: Sequence[Expression]
    ) -> CountedRows:
        self._parts["OPTIONAL"] = None
        left, right = node.left, node.right
        right, pairs = _with_own(right, () if node.condition is None else [node.condition])
        _check_reads(right, left.possible)
        needed = needed.union(*(mentioned(one) for one in pairs))
        made = self._paired(
            Dependence.OPTIONAL,
            self._operator(left, (needed | right.possible) & left.possible, conditions),
            self._operator(right, (needed | left.possible) & right.possible, ()),
            pairs,
        )
        made.certain = _set(node.certain).intersection(made.names)
        return made

    def _existing(
        self,
        pattern: Node,
        tests: Sequence[Expression],
        needed: Vars,
        conditions: Sequence[Expression],
    ) -> CountedRows:
        """FILTER with EXISTS or NOT EXISTS: a FILTER in it sees the solution outside, too (section 18.6)."""
        bodies = []
        for test in tests:
            kind, body = _exists(test) or (Dependence.EXISTS, pattern)
            self._parts[f"{'NOT ' * (kind is Dependence.MINUS)}EXISTS"] = None
            outer = list[Expression]()
            while isinstance(body, Filter):
                outer.append(body.condition)
                body = body.pattern
            body, pairs = _with_own(body, outer)
            if correlated_variables(body) & pattern.possible:
                raise NotMaintained("EXISTS of a pattern that depends on values outside of it")
            if _assigned(body) & pattern.possible:
                # SPARQL does not say what becomes of a BIND whose variable is substituted
                raise NotMaintained("EXISTS with a BIND of a variable that is bound outside of it")
            bodies.append((kind, body, pairs))
            needed |= body.possible.union(*(mentioned(one) for one in pairs))
        operator = self._operator(pattern, needed & pattern.possible, conditions)
        for kind, body, pairs in bodies:
            read = pattern.possible.union(*(mentioned(one) for one in pairs)) & body.possible
            operator = self._paired(kind, operator, self._operator(body, read, ()), pairs)
        return operator

    def _paired(
        self,
        kind: Dependence,
        rows: CountedRows,
        others: CountedRows,
        conditions: Sequence[Expression],
    ) -> DependentRows:
        names = dict.fromkeys((*rows.names, *others.names))
        columns = {name: place for place, name in enumerate(names)}
        if any(native(one, columns) is None for one in conditions):
            raise NotMaintained(f"{kind.value} with a FILTER between both sides for the engine")
        condition = conjunction(conditions)
        if condition is None:
            return DependentRows(kind, rows, others)
        self.may_end = True
        return DependentRows(kind, rows, others, partial(certain, condition))

    # --- groups ---

    def _group(self, node: algebra.Group) -> CountedRows:
        read = set(node.keys)
        for _, aggregate in node.aggregates:
            argument = aggregate.argument
            if aggregate.name not in _AGGREGATES:
                raise NotMaintained(f"the aggregate {aggregate.name}")
            if argument is not None:
                read.update(mentioned(_checked(argument)))
            elif aggregate.distinct:
                raise NotMaintained("COUNT(DISTINCT *)")
        names = ", ".join(dict.fromkeys(one.name for _, one in node.aggregates))
        self._parts[f"GROUP BY{' with ' * bool(names)}{names}"] = None
        self.may_end |= any(one.name != "COUNT" for _, one in node.aggregates)
        operand = self._operator(node.pattern, node.pattern.possible & read, ())
        return GroupedRows(operand, node.keys, node.aggregates, _set(node.certain))


def _names(variables: Iterable[Var]) -> Names:
    return tuple(dict.fromkeys(variable.name for variable in variables))


def _set(variables: Iterable[Var]) -> frozenset[str]:
    return frozenset(variable.name for variable in variables)


def _necessary(conditions: Sequence[Expression], names: Names) -> Test | None:
    return necessary(conditions, names)


def _with_own(pattern: Node, conditions: Iterable[Expression]) -> tuple[Node, list[Expression]]:
    """A pattern with those of some conditions that it decides alone, and the others, on pairs of solutions.

    A question to the engine for each pair would cost more than to ask the whole query.
    """
    own, pairs = list[Expression](), list[Expression]()
    for condition in conditions:
        for each in conjuncts(condition):
            is_own = exists_in(each) or is_about(each, _set(pattern.certain))
            (own if is_own else pairs).append(each)
    together = conjunction(own)
    return pattern if together is None else Filter(pattern, together), list(map(_checked, pairs))


def _check_reads(pattern: Node, outside: Vars) -> None:
    """Refuses expressions that read a variable which their own part may leave unbound, and another part binds.

    By section 18.6 they do not see that value. But the engine passes it down in some plans of joins.
    """
    if _read(pattern) & outside:
        raise NotMaintained("an expression with a variable that is bound elsewhere")


def _read(node: Node) -> Vars:
    """The variables that expressions read although their own part may leave them unbound."""
    below = NOTHING.union(*map(_read, node.children))
    if isinstance(node, Project):
        return below.intersection(node.variables)
    own = NOTHING.union(*map(mentions, node.expressions))
    return below | own.difference(*(child.certain for child in node.children))


def _hub(pattern: Triple) -> str:
    """The variable on which a pattern is joined first."""
    if isinstance(pattern.graph, Var):
        return pattern.graph.name
    if isinstance(pattern.subject, Var):
        return pattern.subject.name
    if pattern.predicate == _MEMBER and isinstance(pattern.object, Var):
        return pattern.object.name
    return ""


def _matches_triples(node: Node) -> bool:
    """Whether each solution of a pattern is that of some triple."""
    match node:
        case Bgp() | algebra.Path():
            return True
        case algebra.Join(left, right):
            return _matches_triples(left) or _matches_triples(right)
        case Union(left, right):
            return _matches_triples(left) and _matches_triples(right)
        case LeftJoin(left) | Minus(left):
            return _matches_triples(left)
        case algebra.Group(pattern, keys):
            return bool(keys) and _matches_triples(pattern)
        case algebra.Unary(pattern):
            return _matches_triples(pattern)
    return False


def _assigned(node: Node) -> Vars:
    """The variables that BIND assigns in a pattern."""
    own = frozenset({node.variable}) if isinstance(node, Extend) else NOTHING
    return own.union(*map(_assigned, node.children))


def _exists(condition: Expression) -> tuple[Dependence, Node] | None:
    """The body of a condition that is EXISTS or NOT EXISTS."""
    match condition:
        case Exists(pattern):
            return Dependence.EXISTS, pattern
        case Call("!", (Exists(pattern),)):
            return Dependence.MINUS, pattern
    return None


def _checked(expression: Expression) -> Expression:
    """Returns an expression whose value depends on the solution alone; refuses others."""
    if exists_in(expression):
        raise NotMaintained("EXISTS within an expression")
    left = [expression]
    while left:
        match left.pop():
            case Constant(term) if term is _NOW:
                raise NotMaintained("NOW()")
            case Call("IRI", (_, _)):
                raise NotMaintained("IRI() with a base")
            case Call(name, arguments):
                if name in _NEW:
                    raise NotMaintained(f"{'BNODE' if name == 'FRESH' else name}()")
                left += arguments
    return expression

"""A plain evaluator of the algebra over a set of quads: what each node means, as short as can be said.

SPARQL 1.1 Query, section 18. Solutions are dictionaries, bags of them lists; nothing is planned, and nothing is fast.
Functions and operators are pyoxigraph's, asked one call at a time: this tells of plans, not of functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cmp_to_key, lru_cache
from itertools import count

import pyoxigraph as ox

from construct_messages.query.algebra.nodes import (
    Aggregation,
    Alternative,
    Bgp,
    Call,
    Closure,
    Constant,
    Dataset,
    Distinct,
    Exists,
    Expression,
    Extend,
    Filter,
    Graphs,
    Group,
    Inverse,
    Join,
    LeftJoin,
    Link,
    Minus,
    Negated,
    Node,
    Number,
    OrderBy,
    Path,
    PathExpression,
    Plan,
    Project,
    Slice,
    Star,
    Triple,
    Union,
    Unit,
    Values,
    Var,
    VarOrTerm,
)
from construct_messages.query.algebra.nodes import Sequence as Steps
from construct_messages.rdf.message import Quad
from construct_messages.rdf.terms import (
    Term,
    blank,
    from_pyoxigraph,
    is_blank,
    is_literal,
    literal,
    literal_parts,
    to_pyoxigraph,
)

Solution = dict[Var, Term]
TRUE, FALSE = (
    Term(f'"{value}"^^<http://www.w3.org/2001/XMLSchema#boolean>') for value in ("true", "false")
)
NOTHING: Mapping[Var, Term] = {}


def solutions(plan: Plan, quads: Iterable[Quad]) -> list[Solution]:
    """The solutions of a plan, in order where it says so, with hidden variables where nothing projects them away."""
    return _Evaluation(frozenset(quads), plan.dataset).node(plan.pattern)


def leaves(node: object) -> Iterator[Triple]:
    """The triple patterns anywhere in a node, those of an EXISTS too."""
    if isinstance(node, Triple):
        yield node
    elif isinstance(node, tuple):
        for member in node:
            yield from leaves(member)
    elif is_dataclass(node):
        for part in fields(node):
            yield from leaves(getattr(node, part.name))


def _compatible(left: Mapping[Var, Term], right: Mapping[Var, Term]) -> bool:
    return all(left.get(variable, term) == term for variable, term in right.items())


def _merged(left: Iterable[Solution], right: Sequence[Solution]) -> list[Solution]:
    return [one | other for one in left for other in right if _compatible(one, other)]


@dataclass
class _Evaluation:
    """One evaluation.

    Args:
        quads: the data.
        dataset: which of the graphs count.
        outer: what an EXISTS is asked for.
    """

    quads: frozenset[Quad]
    dataset: Dataset
    outer: Mapping[Var, Term] = field(default_factory=dict)

    def names(self) -> list[Term]:
        named = {quad.graph for quad in self.quads if quad.graph is not None}
        return sorted(
            named if self.dataset.named is None else named.intersection(self.dataset.named)
        )

    def graph(self, name: Term | None) -> set[tuple[Term, Term, Term]]:
        if name is not None:
            wanted: set[Term | None] = {name} & {*self.names()}
        else:
            wanted = {None} if self.dataset.default is None else {*self.dataset.default}
        return {
            (quad.subject, quad.predicate, quad.object)
            for quad in self.quads
            if quad.graph in wanted
        }

    def node(self, node: Node) -> list[Solution]:
        match node:
            case Unit():
                return [{}]
            case Bgp(patterns):
                return self._joined(patterns)
            case Star(_, patterns, optional):
                found = self._joined(patterns)
                for pattern in optional:
                    more = self._triple(pattern)
                    found = [both for one in found for both in _merged([one], more) or [one]]
                return found
            case Path():
                return self._path(node)
            case Graphs(graph):
                return [
                    bound
                    for name in self.names()
                    if (bound := self._bind([(graph, name)])) is not None
                ]
            case Values(variables, rows):
                bound = (
                    [(v, term) for v, term in zip(variables, row, strict=True) if term]
                    for row in rows
                )
                return [one for pairs in bound if (one := self._bind(pairs)) is not None]
            case Join(left, right):
                return _merged(self.node(left), self.node(right))
            case LeftJoin(left, right, condition):
                others = self.node(right)
                return [
                    both
                    for one in self.node(left)
                    for both in [
                        m
                        for m in _merged([one], others)
                        if condition is None or self.holds(condition, m)
                    ]
                    or [one]
                ]
            case Union(left, right):
                return self.node(left) + self.node(right)
            case Minus(left, right, within):
                others = self.node(right)
                return [
                    one
                    for one in self.node(left)
                    if not any(
                        _compatible(one, other) and (one.keys() & other.keys()) - within
                        for other in others
                    )
                ]
            case Filter(pattern, condition):
                return [one for one in self.node(pattern) if self.holds(condition, one)]
            case Extend(pattern, variable, expression):
                return [
                    one | self._extension(variable, expression, one) for one in self.node(pattern)
                ]
            case Number(pattern, variable):
                return [
                    one | {variable: Term(f'"{number}"')}
                    for number, one in enumerate(self.node(pattern))
                ]
            case Group(pattern, keys, aggregates):
                return self._group(pattern, keys, aggregates)
            case Project(pattern, variables):
                outer = {
                    variable: term for variable, term in self.outer.items() if variable in variables
                }
                inner = _Evaluation(self.quads, self.dataset, outer)
                return [{v: one[v] for v in variables if v in one} for one in inner.node(pattern)]
            case Distinct(pattern):
                return [
                    dict(one)
                    for one in dict.fromkeys(
                        tuple(one.items()) for one in map(_sorted, self.node(pattern))
                    )
                ]
            case OrderBy(pattern, conditions):
                return self._ordered(self.node(pattern), conditions)
            case Slice(pattern, offset, limit, within):
                sliced: dict[tuple[Term | None, ...], list[Solution]] = {}
                for one in self.node(pattern):
                    sliced.setdefault(tuple(one.get(v) for v in within), []).append(one)
                end = None if limit is None else offset + limit
                return [one for slice in sliced.values() for one in slice[offset:end]]

    # --- leaves -----------------------------------------------------------------------------------------------------

    def _bind(self, pairs: Iterable[tuple[VarOrTerm | None, Term]]) -> Solution | None:
        """The solution in which each place holds its term, if there is one that an EXISTS is asked for."""
        solution: Solution = {}
        for place, term in pairs:
            if isinstance(place, Var):
                if solution.setdefault(place, term) != term or self.outer.get(place, term) != term:
                    return None
            elif place is not None and place != term:
                return None
        return solution

    def _joined(self, patterns: Sequence[Triple]) -> list[Solution]:
        found: list[Solution] = [{}]
        for pattern in patterns:
            found = _merged(found, self._triple(pattern))
        return found

    def _graphs(self, graph: VarOrTerm | None) -> Sequence[Term | None]:
        return [None] if graph is None else self.names()

    def _triple(self, pattern: Triple) -> list[Solution]:
        found = []
        for name in self._graphs(pattern.graph):
            for triple in self.graph(name):
                places = zip(pattern.positions, (*triple, name or Term("")), strict=True)
                if (bound := self._bind(places)) is not None:
                    found.append(bound)
        return found

    def _path(self, path: Path) -> list[Solution]:
        found = []
        for name in self._graphs(path.graph):
            triples = self.graph(name)
            ends = {place for place in (path.subject, path.object) if not isinstance(place, Var)}
            nodes = {end for subject, _, object in triples for end in (subject, object)} | ends
            # a variable of an EXISTS's solution stands for its term
            nodes |= {
                self.outer[v]
                for v in (path.subject, path.object)
                if isinstance(v, Var) and v in self.outer
            }
            for start, end in _pairs(path.path, triples, nodes):
                places = [(path.subject, start), (path.object, end), (path.graph, name or Term(""))]
                if (bound := self._bind(places)) is not None:
                    found.append(bound)
        return found

    # --- operators --------------------------------------------------------------------------------------------------

    def _extension(self, variable: Var, expression: Expression, solution: Solution) -> Solution:
        value = self.value(expression, solution)
        return {} if value is None else {variable: value}

    def _group(
        self, pattern: Node, keys: Sequence[Var], aggregates: Sequence[tuple[Var, Aggregation]]
    ) -> list[Solution]:
        groups: dict[tuple[Term | None, ...], list[Solution]] = {} if keys else {(): []}
        for one in self.node(pattern):
            groups.setdefault(tuple(one.get(key) for key in keys), []).append(one)
        found = []
        for key, members in groups.items():
            solution = {
                variable: term for variable, term in zip(keys, key, strict=True) if term is not None
            }
            for variable, what in aggregates:
                value = self._aggregate(what, members)
                if value is not None:
                    solution[variable] = value
            found.append(solution)
        return found

    def _aggregate(self, what: Aggregation, members: list[Solution]) -> Term | None:
        if what.argument is None:
            kept = {tuple(_sorted(one).items()) for one in members} if what.distinct else members
            return Term(f'"{len(kept)}"^^<http://www.w3.org/2001/XMLSchema#integer>')
        values = [self.value(what.argument, one) for one in members]
        if what.distinct:
            values = list(dict.fromkeys(values))
        known = [value for value in values if value is not None]
        match what.name:
            case "COUNT":
                return Term(f'"{len(known)}"^^<http://www.w3.org/2001/XMLSchema#integer>')
            case "SAMPLE":
                return next(iter(known), None)
            case "MIN" | "MAX":
                return (min if what.name == "MIN" else max)(known, key=_KEY, default=None)
            case "GROUP_CONCAT":
                texts = [_call("STR", (value,)) for value in values if value is not None]
                return literal(
                    what.separator.join(
                        literal_parts(text)[0] for text in texts if text is not None
                    )
                )
        # SUM and AVG: a blank node is as little a number as any string
        data = " ".join(
            "UNDEF" if value is None else '""' if is_blank(value) else value for value in values
        )
        return _first(f"SELECT ({what.name}(?v) AS ?r) {{ VALUES ?v {{ {data} }} }}", {})

    def _ordered(
        self, found: list[Solution], conditions: Sequence[tuple[Expression, bool]]
    ) -> list[Solution]:
        for expression, descending in reversed(conditions):
            values = [self.value(expression, one) for one in found]
            order = sorted(
                range(len(found)), key=lambda index: _KEY(values[index]), reverse=descending
            )
            found = [found[index] for index in order]
        return found

    # --- expressions ------------------------------------------------------------------------------------------------

    def holds(self, condition: Expression, solution: Solution) -> bool:
        return self._truth(condition, solution) is True

    def _truth(self, condition: Expression, solution: Solution) -> bool | None:
        """The effective boolean value; None is an error."""
        value = self.value(condition, solution)
        truth = None if value is None else _call("&&", (value, TRUE))
        return None if truth is None else truth == TRUE

    def value(self, expression: Expression, solution: Solution) -> Term | None:
        match expression:
            case Constant(term):
                return term
            case Var():
                return solution.get(expression, self.outer.get(expression))
            case Exists(pattern):
                outer = {**self.outer, **solution}
                return TRUE if _Evaluation(self.quads, self.dataset, outer).node(pattern) else FALSE
            case Call("BOUND", (argument,)):
                return FALSE if self.value(argument, solution) is None else TRUE
            case Call("COALESCE", arguments):
                values = (self.value(argument, solution) for argument in arguments)
                return next((value for value in values if value is not None), None)
            case Call("IF", (condition, then, otherwise)):
                truth = self._truth(condition, solution)
                return None if truth is None else self.value(then if truth else otherwise, solution)
            case Call("&&" | "||" as operator, arguments):
                return _logical(
                    operator == "||", [self._truth(argument, solution) for argument in arguments]
                )
            case Call("IN", (needle, *members)):
                equal = [self._truth(Call("=", (needle, member)), solution) for member in members]
                return _logical(True, equal)
            case Call("FRESH" | "BNODE" as name, arguments):
                given = [self.value(argument, solution) for argument in arguments]
                if None in given or (
                    name == "BNODE" and literal_parts(given[0] or Term('""'))[1:] != (None,) * 3
                ):
                    return None
                return blank(repr((name, given)), "s")
            case Call(name, arguments):
                values = tuple(self.value(argument, solution) for argument in arguments)
                return None if None in values else _call(name, values)  # type: ignore[arg-type]  # none is None


def _sorted(solution: Solution) -> Solution:
    return dict(sorted(solution.items()))


def _logical(decisive: bool, operands: Sequence[bool | None]) -> Term | None:
    """`||` if true is decisive, `&&` if false is; an error is not decisive, and none the less no answer."""
    if decisive in operands:
        return TRUE if decisive else FALSE
    if None in operands:
        return None
    return FALSE if decisive else TRUE


_OPERATORS = {"=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "&&"}


def _call(name: str, arguments: tuple[Term, ...]) -> Term | None:
    return _cached(name, arguments) if arguments else _cached.__wrapped__(name, arguments)


@lru_cache(maxsize=100_000)
def _cached(name: str, arguments: tuple[Term, ...]) -> Term | None:
    head = ""
    match name, arguments:
        case "SAMEKEY", _:  # true at least where `=` is, and never asked for alone
            name = "="
        case "SAMETERM", (one, other):  # the engine has only canonical numbers
            return TRUE if one == other else FALSE
        case "STR", (one,) if is_literal(one):
            return literal(literal_parts(one)[0])
        case "IRI", (_, base):
            head, arguments = f"BASE <{literal_parts(base)[0]}> ", arguments[:1]
    names = [f"?v{index}" for index in range(len(arguments))]
    if name in _OPERATORS:
        body = f" {name} ".join(names)
    elif name in ("!", "u+", "u-"):
        body = f"{name[-1]} {names[0]}"
    else:
        body = f"{name}({', '.join(names)})"
    if any(map(is_blank, arguments)):
        return _first(
            f"{head}SELECT {' '.join(names)} ({body} AS ?r) {{}}",
            dict(zip(names, arguments, strict=True)),
        )
    return _first(
        f"{head}SELECT ({body} AS ?r) {{ VALUES ({' '.join(names)}) {{ ({' '.join(arguments)}) }} }}",
        {},
    )


def _first(text: str, bound: Mapping[str, Term]) -> Term | None:
    """The value of ?r; blank nodes, which no text can name, are bound from outside."""
    substitutions = {ox.Variable(name[1:]): to_pyoxigraph(term) for name, term in bound.items()}
    (solution,) = ox.Store().query(text, substitutions=substitutions)  # type: ignore[misc]  # a SELECT
    value = solution["r"]
    return None if value is None else from_pyoxigraph(value)


def _rank(term: Term | None) -> int:
    return 0 if term is None else 1 if is_blank(term) else 3 if is_literal(term) else 2


def _compare(one: Term | None, other: Term | None) -> int:
    if _rank(one) != _rank(other):
        return _rank(one) - _rank(other)
    if one is None or other is None or is_blank(one):
        return 0
    if not is_literal(one):
        return (one > other) - (one < other)
    return (_call(">", (one, other)) == TRUE) - (_call("<", (one, other)) == TRUE)


_KEY = cmp_to_key(_compare)


# --- property paths -------------------------------------------------------------------------------------------------

Pairs = list[tuple[Term, Term]]


def _pairs(path: PathExpression, triples: set[tuple[Term, Term, Term]], nodes: set[Term]) -> Pairs:
    """The ends of a path, as often as there are ways between them; those of a closure once."""
    match path:
        case Link(predicate):
            return [(s, o) for s, p, o in triples if p == predicate]
        case Inverse(inner):
            return [(end, start) for start, end in _pairs(inner, triples, nodes)]
        case Steps(paths):
            first, *others = (_pairs(step, triples, nodes) for step in paths)
            for other in others:
                first = [
                    (start, end)
                    for start, middle in first
                    for again, end in other
                    if middle == again
                ]
            return first
        case Alternative(paths):
            return [pair for way in paths for pair in _pairs(way, triples, nodes)]
        case Negated(forward, backward):
            found = [] if forward is None else [(s, o) for s, p, o in triples if p not in forward]
            return found + (
                [] if backward is None else [(o, s) for s, p, o in triples if p not in backward]
            )
        case Closure(inner, kind):
            return list(_closure(set(_pairs(inner, triples, nodes)), kind, nodes))


def _closure(
    steps: set[tuple[Term, Term]], kind: str, nodes: set[Term]
) -> Iterator[tuple[Term, Term]]:
    reached = set(steps)
    for _ in count():
        more = (
            {(a, d) for a, b in reached for c, d in steps if b == c} - reached
            if kind != "?"
            else set()
        )
        if not more:
            break
        reached |= more
    yield from reached | ({(node, node) for node in nodes} if kind != "+" else set())

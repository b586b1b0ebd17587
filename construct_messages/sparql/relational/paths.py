"""Property paths as SELECTs of pairs of nodes. SPARQL 1.1 Query, sections 9 and 18.4.

Links, sequences and alternatives are bags of pairs; a path of any length is a set, found by recursion from a bound end,
and computed at once.
"""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import dataclass
from typing import assert_never

from construct_messages.query.algebra.nodes import (
    Alternative,
    Closure,
    Inverse,
    Link,
    Negated,
    Path,
    PathExpression,
    Sequence,
    Triple,
    Var,
    VarOrTerm,
    first_part,
    is_nullable,
    outward,
    step,
    variables,
    written,
)
from construct_messages.rdf.terms import Term
from construct_messages.sparql.relational.dialects import Engine
from construct_messages.sparql.relational.relation import SolutionBag, column
from construct_messages.sparql.relational.scans import Quads


@dataclass(frozen=True)
class _Seeds:
    """The distinct values of a bound end of a path: a SELECT of `node`, and `graph` where that is bound, too."""

    sql: str
    graph: bool


_Bound = Term | _Seeds | None


def path(node: Path, quads: Quads, engine: Engine, known: Several[SolutionBag]) -> SolutionBag:
    """Returns the solutions of a path.

    The caller joins them with the known relations: solutions that are compatible with none of theirs may be missing.
    """
    seeds: SolutionBag | None = None
    for relation in known:
        if ends := variables((node.subject, node.object)) & relation.certain:
            seeds = relation.only(ends | (variables((node.graph,)) & relation.certain)).distinct()
            break

    def bound(end: VarOrTerm) -> _Bound:
        if not isinstance(end, Var):
            return end
        if seeds is None or end not in seeds.possible:
            return None
        graph = isinstance(node.graph, Var) and node.graph in seeds.possible
        names = [f"{column(end)} AS node"]
        names += [f"{column(node.graph)} AS graph"] if graph and isinstance(node.graph, Var) else []
        return _Seeds(f"SELECT DISTINCT {', '.join(names)} FROM {seeds.source} AS t", graph)

    expression, start, end = outward(node.path), bound(node.subject), bound(node.object)
    matching = _Matching(quads, engine, node.graph)
    if node.subject == node.object and isinstance(expression, Closure) and is_nullable(expression):
        # each node reaches itself; no other pairs are needed
        return _named(matching.itself(start), node)
    return _named(matching.pairs(expression, start, end), node)


def _named(pairs: str, node: Path) -> SolutionBag:
    """Returns the pairs as solutions; ends that are the same variable must be the same node."""
    places: dict[Var, str] = {}
    conditions = []
    for name, position in (("start", node.subject), ("end", node.object), ("graph", node.graph)):
        if isinstance(position, Var):
            if position in places:
                conditions.append(f"t.{_quoted(name)} = t.{places[position]}")
            places.setdefault(position, _quoted(name))
    names = ", ".join(f"t.{place} AS {column(var)}" for var, place in sorted(places.items()))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    sql = f"SELECT {names or '1 AS one'} FROM ({pairs}) AS t{where}"
    return SolutionBag(sql, node.possible, node.certain)


def _quoted(name: str) -> str:
    return {"start": "s", "end": "e"}.get(name, name)


@dataclass(frozen=True)
class _Matching:
    """Paths as pairs: SELECTs of the columns `s` and `e`, and `graph` where the graph is a variable."""

    quads: Quads
    engine: Engine
    graph: VarOrTerm | None

    @property
    def keys(self) -> list[str]:
        return ["graph"] if isinstance(self.graph, Var) else []

    @property
    def pair(self) -> str:
        return ", ".join([*self.keys, "s", "e"])

    def pairs(self, path: PathExpression, start: _Bound, end: _Bound) -> str:
        """Returns the pairs that the path joins; with a term as an end, only those that have it.

        Where an end is bound by seeds, the result may contain pairs with other nodes.
        """
        match path:
            case Link(predicate):
                return self.with_ends(self.links(predicate), start, end)
            case Inverse(inner):
                return self.swapped(self.pairs(inner, end, start))
            case Negated(forward, backward):
                return self.with_ends(self.negated(forward, backward), start, end)
            case Alternative(paths):
                ways = (self.pairs(part, start, end) for part in paths)
                return " UNION ALL ".join(f"SELECT {self.pair} FROM ({way}) AS t" for way in ways)
            case Sequence(paths):
                return self.sequence(paths, start, end)
            case Closure(inner, kind):
                forwards = isinstance(start, str) or (
                    isinstance(start, _Seeds) and not isinstance(end, str)
                )
                if forwards or end is None:
                    return self.with_ends(self.closure(path, start), start, end)
                turned = Closure(outward(inner, inverse=True), kind)
                return self.with_ends(self.swapped(self.closure(turned, end)), start, end)
            case _:
                assert_never(path)

    def links(self, predicate: VarOrTerm) -> str:
        """Returns the pairs of a predicate; for a variable also the column `p`."""
        places = {"s": Var("s"), "e": Var("e")}
        if isinstance(predicate, Var):
            places["p"] = predicate
        if isinstance(self.graph, Var):
            places["graph"] = Var("graph")
        graph = places.get("graph", self.graph)
        found = self.quads.scan(Triple(places["s"], predicate, places["e"], graph))
        names = ", ".join(f"{column(var)} AS {name}" for name, var in places.items())
        return f"SELECT {names} FROM {found.source} AS t"

    def negated(self, forward: tuple[Term, ...] | None, backward: tuple[Term, ...] | None) -> str:
        every = self.links(Var("p"))

        def but(predicates: tuple[Term, ...]) -> str:
            listed = ", ".join(map(self.quads.dialect.text, predicates))
            where = f" WHERE p NOT IN ({listed})" if predicates else ""
            return f"SELECT {self.pair} FROM ({every}) AS t{where}"

        if backward is None:
            return but(forward or ())
        turned = self.swapped(but(backward))
        return (
            turned
            if forward is None
            else f"{but(forward)} UNION ALL SELECT {self.pair} FROM ({turned}) AS t"
        )

    def sequence(self, paths: tuple[PathExpression, ...], start: _Bound, end: _Bound) -> str:
        """Joins the parts, from a bound end or from a part that needs none on, so that closures between have seeds."""
        last = len(paths) - 1
        first = first_part(paths, start is not None, end is not None)

        def part(index: int, left: _Bound, right: _Bound) -> str:
            return self.pairs(
                paths[index], start if index == 0 else left, end if index == last else right
            )

        relation = part(first, None, None)
        for index in range(first + 1, last + 1):
            relation = self.kept(relation, paths[index])
            relation = self.joined(relation, part(index, self.seeds(relation, "e"), None))
        for index in range(first - 1, -1, -1):
            relation = self.kept(relation, paths[index])
            relation = self.joined(part(index, None, self.seeds(relation, "s")), relation)
        return relation

    def kept(self, relation: str, next: PathExpression) -> str:
        """Computes pairs that a closure begins from, as they are read twice."""
        if isinstance(next, Link) or (isinstance(next, Inverse) and isinstance(next.path, Link)):
            return relation
        return f"SELECT * FROM {self.engine.table(relation)}"

    def joined(self, left: str, right: str) -> str:
        """Returns the pairs from the start of `left` to the end of `right`."""
        keys = "".join(f" AND l.{key} = r.{key}" for key in self.keys)
        names = ", ".join([*(f"l.{key}" for key in self.keys), "l.s", "r.e"])
        return f"SELECT {names} FROM ({left}) AS l JOIN ({right}) AS r ON l.e = r.s{keys}"

    def seeds(self, relation: str, end: str) -> _Seeds:
        names = ", ".join([f"{end} AS node", *self.keys])
        return _Seeds(f"SELECT DISTINCT {names} FROM ({relation}) AS t", bool(self.keys))

    # --- closures ---------------------------------------------------------------------------------------------------

    def closure(self, path: Closure, start: _Bound) -> str:
        """Returns the pairs of a closure from its start, each once."""
        pair = self.pair
        if path.kind == "?":
            once = self.pairs(path.path, start, None)
            return f"SELECT {pair} FROM ({self.itself(start)}) AS t UNION SELECT {pair} FROM ({once}) AS t"
        begin = (
            self.itself(start)
            if path.kind == "*"
            else _from_seeds(self.pairs(path.path, start, None), start)
        )
        steps = f"SELECT {pair} FROM ({self.pairs(step(path.path), None, None)}) AS t"
        found = self.engine.reached(begin, steps, self.keys, written(path))
        return f"SELECT {pair} FROM {found} AS t"

    # --- zero length ------------------------------------------------------------------------------------------------

    def itself(self, start: _Bound) -> str:
        """Each start with itself: a term also if the graph does not hold it, otherwise nodes of the graph."""
        keys = ", ".join([*self.keys, ""])
        if isinstance(start, str):
            term = self.quads.dialect.text(start)
            source = ""
            if self.graph is not None:
                found = self.quads.graphs(self.graph)
                graph = (
                    f"{column(self.graph)} AS graph" if isinstance(self.graph, Var) else "1 AS one"
                )
                source = f" FROM (SELECT {graph} FROM {found.source} AS t) AS t"
            return f"SELECT {keys}{term} AS s, {term} AS e{source}"
        nodes = _from_seeds(self.nodes(), start)
        return f"SELECT {keys}s, s AS e FROM ({nodes}) AS t"

    def nodes(self) -> str:
        """Returns the subjects and objects of the graph, each once, as `s`."""
        every = self.links(Var("p"))
        keys = ", ".join([*self.keys, ""])
        sides = (f"SELECT {keys}{end} AS s FROM ({every}) AS t" for end in ("s", "e"))
        return " UNION ".join(sides)

    def swapped(self, pairs: str) -> str:
        keys = ", ".join([*self.keys, ""])
        return f"SELECT {keys}e AS s, s AS e FROM ({pairs}) AS t"

    def with_ends(self, pairs: str, start: _Bound, end: _Bound) -> str:
        """Returns the pairs with the ends that are terms."""
        conditions = [
            f"{name} = {self.quads.dialect.text(bound)}"
            for name, bound in (("s", start), ("e", end))
            if isinstance(bound, str)
        ]
        if not conditions:
            return pairs
        return f"SELECT {self.pair} FROM ({pairs}) AS t WHERE {' AND '.join(conditions)}"


def _from_seeds(pairs: str, start: _Bound) -> str:
    """Returns the pairs that begin at a seed, where there are seeds."""
    if not isinstance(start, _Seeds):
        return pairs
    graph = " AND t.graph = n.graph" if start.graph else ""
    seeds = f"SELECT 1 FROM ({start.sql}) AS n WHERE t.s = n.node{graph}"
    return f"SELECT * FROM ({pairs}) AS t WHERE EXISTS ({seeds})"

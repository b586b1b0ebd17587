"""Triple patterns over a table of quads: the columns `subject`, `predicate`, `object` and `graph`, NULL for the default
graph, of canonical N-Triples terms. SPARQL 1.1 Query, sections 13 (dataset) and 18.3.1.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final

from construct_messages.query.algebra.nodes import (
    NOTHING,
    Closure,
    Dataset,
    Graphs,
    Link,
    Negated,
    Plan,
    Star,
    Triple,
    Var,
    VarOrTerm,
    variables,
)
from construct_messages.rdf.terms import Term
from construct_messages.sparql.relational.dialects import Dialect
from construct_messages.sparql.relational.relation import SolutionBag, column

COLUMNS: Final = ("subject", "predicate", "object", "graph")


@dataclass(frozen=True)
class Quads:
    """A table of quads, and the dataset of a query over it."""

    table: str  # the name for FROM
    distinct: bool  # whether it has each quad once
    dataset: Dataset
    dialect: Dialect
    # the predicates of quads that it may have twice, if known
    repeated: frozenset[Term] | None = None
    union: bool = False  # whether the default graph is the merge of all graphs
    # whether to ask for the kinds of terms that joins compare, which then need no stage: those of Spark cost much
    asks: bool = False

    def scan(self, pattern: Triple) -> SolutionBag:
        """Returns the solutions of a triple pattern."""
        places: dict[Var, str] = {}
        conditions = [self.in_graph(pattern.graph)]
        for name, position in zip(COLUMNS, pattern.positions, strict=True):
            if isinstance(position, Var):
                if position in places:
                    conditions.append(f"{name} = {places[position]}")
                places.setdefault(position, name)
            elif position is not None and name != "graph":
                conditions.append(f"{name} = {self.dialect.text(position)}")
        named = ", ".join(f"{name} AS {column(var)}" for var, name in sorted(places.items()))
        distinct = "" if self.is_distinct(pattern) or not named else "DISTINCT "
        table = self.table_of(pattern)
        sql = (
            f"SELECT {distinct}{named or '1 AS one'} FROM {table} WHERE {' AND '.join(conditions)}"
        )
        sql += "" if named else " LIMIT 1"  # a pattern without variables has one solution or none
        found = SolutionBag(sql, pattern.variables, pattern.variables, light=True)
        variable = pattern.object
        if not self.asks or not isinstance(variable, Var) or isinstance(pattern.predicate, Var):
            return found
        return replace(found, values={variable: found.selected([f"{column(variable)} AS value"])})

    def table_of(self, pattern: Triple) -> str:  # noqa: ARG002  # tables of other engines
        """The table of a pattern, of all quads or of some that have all of its matches."""
        return self.table

    def star(self, node: Star) -> SolutionBag:  # noqa: ARG002
        """Returns the solutions of a star, which the optimizer plans only for an engine that has them."""
        raise AssertionError("stars are planned for Spark only")

    def in_graph(self, graph: VarOrTerm | None) -> str:
        """Returns SQL that selects the quads that a pattern sees; `graph` as in `Triple`."""
        match graph:
            case None if self.union:
                return "TRUE"
            case None:
                names = self.dataset.default
                return "graph IS NULL" if names is None else self._one_of(names)
            case Var():
                names = self.dataset.named
                return "graph IS NOT NULL" if names is None else self._one_of(names)
        known = self.dataset.named is None or graph in self.dataset.named
        return f"graph = {self.dialect.text(graph)}" if known else "FALSE"

    def is_distinct(self, pattern: Triple) -> bool:
        """Whether no triple is selected twice: the table may hold it twice, and so may graphs that FROM merges."""
        if pattern.graph is None and (self.union or len(set(self.dataset.default or ())) > 1):
            return False
        predicate, repeated = pattern.predicate, self.repeated
        once = repeated is not None and not isinstance(predicate, Var) and predicate not in repeated
        return self.distinct or once or repeated == frozenset()

    def graphs(self, graph: VarOrTerm) -> SolutionBag:
        """Returns the names of named graphs, or for a term one empty solution if it is such a name, or none.

        FROM NAMED lists them, with or without quads; otherwise they are those that hold quads.
        """
        bound = variables((graph,))
        if self.dataset.named is None:
            names = f"SELECT DISTINCT graph FROM {self.table} WHERE graph IS NOT NULL"
        else:
            rows = (
                f"SELECT {self.dialect.text(name)} AS graph"
                for name in dict.fromkeys(self.dataset.named)
            )
            names = " UNION ALL ".join(rows) or f"SELECT {self.dialect.null} AS graph WHERE FALSE"
        if isinstance(graph, Var):
            return SolutionBag(f"SELECT graph AS {column(graph)} FROM ({names}) AS t", bound, bound)
        where = f"graph = {self.dialect.text(graph)}"
        return SolutionBag(
            f"SELECT 1 AS one FROM ({names}) AS t WHERE {where} LIMIT 1", NOTHING, NOTHING
        )

    def _one_of(self, names: tuple[Term, ...]) -> str:
        return f"graph IN ({', '.join(map(self.dialect.text, names))})" if names else "FALSE"


def predicates(plan: Plan) -> frozenset[Term] | None:
    """Returns the predicates of all quads that the solutions of a plan depend on; None: any.

    >>> from construct_messages.query.algebra.nodes import Bgp
    >>> from construct_messages.rdf.terms import iri
    >>> sorted(predicates(Plan("ASK", Bgp((Triple(Var("s"), iri("urn:p"), Var("o")),)), ())))
    ['<urn:p>']
    """
    found: set[Term] = set()
    waiting: list[Any] = [plan.pattern]
    while waiting:
        match part := waiting.pop():
            case Triple(_, Var()) | Negated() | Graphs() | Closure(_, "?" | "*"):
                return None  # a path of length zero begins at the terms of any quad
            case Triple(predicate=str(predicate)) | Link(predicate):
                found.add(Term(predicate))
            case tuple():
                waiting += part
            case _ if is_dataclass(part):
                waiting += [getattr(part, field.name) for field in fields(part)]
    return frozenset(found)

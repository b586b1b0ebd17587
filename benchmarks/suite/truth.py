"""The reference evaluator: one set of triples for each solution. Imports nothing of construct_messages.

pyoxigraph answers the SELECT that has the CONSTRUCT's pattern, rdflib parses the template, and the instantiation below
follows SPARQL 1.1, section 16.2: what is unbound or no triple is left out, blank nodes of the template are new for each
solution. Solutions of which nothing remains give no result. Written to be read, and not to be fast.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyoxigraph as ox
from rdflib import BNode, Literal, URIRef, Variable
from rdflib.plugins.sparql import prepareQuery

from benchmarks.suite.records import Group

Solution = Mapping[str, str]  # a term in N-Triples for each bound variable
Template = list[tuple[Any, Any, Any]]

_TOKEN = re.compile(r"""<[^<>\s]*>|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\#[^\n]*|[{}]|\w+""")


class Reference:
    """The truth about a data set, loaded once."""

    def __init__(self, data: Path) -> None:
        self._store = ox.Store()
        self._store.bulk_load(path=data, format=ox.RdfFormat.N_TRIPLES)

    def solutions(self, query: str) -> Iterator[Solution]:
        """The solutions of a CONSTRUCT query."""
        found = self._store.query(select(query))
        assert isinstance(found, ox.QuerySolutions)
        names = [variable.value for variable in found.variables]
        for solution in found:
            yield {
                name: str(term)
                for name, term in zip(names, solution, strict=True)
                if term is not None
            }

    def groups(self, query: str) -> list[Group]:
        """The result of each solution."""
        return list(instantiate(query, self.solutions(query)))

    def counts(self, query: str) -> tuple[int, int]:
        """How many solutions there are, and how many have a result."""
        solutions = list(self.solutions(query))
        return len(solutions), sum(1 for _ in instantiate(query, solutions))


def select(query: str, projection: str = "*") -> str:
    """The SELECT with the pattern of a CONSTRUCT.

    >>> select("PREFIX ex: <urn:{> CONSTRUCT { ?s ex:p '}' } WHERE { ?s ?p ?o } LIMIT 1")
    'PREFIX ex: <urn:{> SELECT * WHERE { ?s ?p ?o } LIMIT 1'
    """
    start, depth = None, 0
    for token in _TOKEN.finditer(query):
        if start is None:
            if token[0].upper() == "CONSTRUCT":
                start = token.start()
        elif token[0] == "{":
            depth += 1
        elif token[0] == "}":
            depth -= 1
            if not depth:
                return f"{query[:start]}SELECT {projection}{query[token.end() :]}"
    raise ValueError("this is no CONSTRUCT query with a template")


def root(query: str) -> str:
    """The variable that the template of a CONSTRUCT query begins with."""
    template: Template = prepareQuery(query).algebra.template
    return next(str(term) for triple in template for term in triple if isinstance(term, Variable))


def instantiate(query: str, solutions: Iterable[Solution]) -> Iterator[Group]:
    """The triples of a CONSTRUCT query's template for each solution."""
    template: Template = prepareQuery(query).algebra.template
    for number, solution in enumerate(solutions):
        triples = []
        for triple in template:
            s, p, o = (_term(term, solution, number) for term in triple)
            if s and p and o and s[0] in "<_" and p[0] == "<":
                triples.append((s, p, o))
        if triples:
            yield frozenset(triples)


def _term(term: object, solution: Solution, number: int) -> str | None:
    match term:
        case Variable():
            return solution.get(str(term))
        case URIRef():
            return f"<{term}>"
        case BNode():
            return f"_:template{number}x{term}"
        case Literal():
            datatype = None if term.datatype is None else ox.NamedNode(term.datatype)
            return str(ox.Literal(str(term), language=term.language, datatype=datatype))
    raise TypeError(f"a template does not hold {term!r}")

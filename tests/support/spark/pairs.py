"""Queries that join two sides by a condition which SQL decides for some terms only, and data for them.

What pyoxigraph has otherwise than the specification is left out, see docs/reference/engines.md: NaN, durations, `!=` of
dates with and without a zone, and terms that have no order, each of which it takes to be neither less nor greater than
itself, where that is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

import pyoxigraph as ox

from construct_messages.query.algebra.nodes import Call, Var
from construct_messages.rdf.terms import Term, as_term
from construct_messages.sparql.relational.expressions import truths
from tests.support.spark.random_queries import CONSTANTS, PREFIXES

LITERALS: Final = tuple(
    one
    for one in CONSTANTS
    if "NaN" not in one
    and "Duration" not in one
    and not one.endswith('00"^^<http://www.w3.org/2001/XMLSchema#dateTime>')
)
_ITSELF: Final = Call("<=", (Var("x"), Var("x")))
ORDERED: Final = tuple(one for one in LITERALS if truths(_ITSELF, ["x"], [(one,)]) == [True])
FORMS: Final = (
    "SELECT ?s ?t {{ {left} OPTIONAL {{ {right} FILTER ({condition}) }} }}",
    "SELECT ?s {{ {left} FILTER EXISTS {{ {right} FILTER ({condition}) }} }}",
    "SELECT ?s {{ {left} FILTER NOT EXISTS {{ {right} FILTER ({condition}) }} }}",
    "SELECT ?s {{ {left} OPTIONAL {{ {right} FILTER ({condition}) }} FILTER (!BOUND(?t)) }}",
    "SELECT ?s ?e {{ {left} BIND (EXISTS {{ {right} FILTER ({condition}) }} AS ?e) }}",
    "SELECT ?s {{ {left} MINUS {{ {left2} {right} FILTER ({condition}) }} }}",
)
CONDITIONS: Final = (
    *(f"?a {operator} ?b" for operator in ("=", "!=", "<", "<=", ">", ">=")),
    "?a <= ?b && ?b != ?a",
    "!(?a < ?b)",
    "?a < ?b || STR(?a) = STR(?b)",
    "STR(?a) = STR(?b)",
    "LCASE(STR(?a)) = LCASE(STR(?b)) && ?s != ?t",
    "STRLEN(STR(?a)) < STRLEN(STR(?b))",
    "CONTAINS(STR(?a), STR(?b))",
    "?a + 1 = ?b + 1",
    "?a * 2 > ?b",
    "LANG(?a) = LANG(?b) && DATATYPE(?a) = DATATYPE(?b)",
    "sameTerm(?a, ?b)",
    "?b IN (?a, 1, 'one')",
    "IF(?a < ?b, ?s != ?t, false)",
    "COALESCE(?a < ?b, true)",
    "BOUND(?a) && ?b > 0.5",
    "?a = ?b && EXISTS { ?t :q ?a }",
)
LEFTS: Final = (
    "?s :p ?a .",
    "?s :p ?a ; :in ?g .",
    "?s :in ?g OPTIONAL { ?s :p ?a }",
)


def asked(random: Random) -> Iterator[tuple[str, list[tuple[Term | None, ...]]]]:
    """A query of each form with each condition, over sides that share a variable, or none; and quads for it."""
    all_kinds, ordered = quads_of(random, LITERALS), quads_of(random, ORDERED)
    for form in FORMS:
        for condition in CONDITIONS:
            has_order = any(part in condition for part in ("<=", ">=", "!("))
            quads = ordered if has_order else all_kinds
            left = random.choice(LEFTS)
            right = "?t :q ?b ; :in ?g ." if ":in" in left else "?t :q ?b ."
            query = form.format(left=left, left2=left, right=right, condition=condition)
            yield PREFIXES + query, quads


def quads_of(random: Random, literals: Sequence[str]) -> list[tuple[Term | None, ...]]:
    """Some subjects of the left side and of the right side, a few of both; not all have a literal."""
    literals = random.sample(literals, 10)
    rows = []
    for side, predicate in (("l", "p"), ("r", "q")):
        for number in range(14):
            subject = f"<http://example.org/{'b' if number < 2 else side}{number}>"
            group = f"<http://example.org/g{random.randrange(3)}>"
            rows.append((subject, "<http://example.org/in>", group, None))
            for literal in random.sample(literals, random.choice((0, 1, 1, 2))):
                rows.append((subject, f"<http://example.org/{predicate}>", literal, None))
    return [tuple(part and Term(part) for part in row) for row in dict.fromkeys(rows)]


def read_by_pyoxigraph(
    query: str, quads: Sequence[tuple[Term | None, ...]]
) -> Counter[tuple[str, ...]]:
    store = ox.Store()
    text = "".join(f"{subject} {predicate} {object} .\n" for subject, predicate, object, _ in quads)
    store.load(text.encode(), format=ox.RdfFormat.N_TRIPLES)
    solutions = store.query(query)
    assert isinstance(solutions, ox.QuerySolutions)
    names = [one.value for one in solutions.variables]
    return Counter(
        tuple("" if one[name] is None else str(as_term(one[name])) for name in names)
        for one in solutions
    )

"""Optimised plans: the same solutions, by the rules that their rooms tell of."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import reduce
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from construct_messages.errors import UsageError
from construct_messages.query.algebra.nodes import (
    Bgp,
    Call,
    Constant,
    Dataset,
    Distinct,
    Exists,
    Expression,
    Extend,
    Filter,
    Join,
    LeftJoin,
    Minus,
    Node,
    Plan,
    Project,
    Triple,
    Union,
    Var,
)
from construct_messages.query.optimizer.optimize import (
    Hints,
    PredicateStatistics,
    Statistics,
    explanation,
    optimize,
)
from construct_messages.rdf.message import Quad
from construct_messages.rdf.terms import RDF, XSD, Term, from_pyoxigraph, iri, literal
from tests.support.queries.algebra_reference import solutions
from tests.support.queries.algebra_text import NOW, cases, text, translate_query
from tests.support.queries.algebra_trees import GRAPH, QUADS, TERMS, P, Q
from tests.support.spark.random_queries import dataset, query_over

_FIGURES = Statistics(
    2000,
    True,
    {
        iri("u:label"): PredicateStatistics(1000, 1000, 900),
        iri("u:knows"): PredicateStatistics(500, 100, 100),
        iri("u:boss"): PredicateStatistics(10, 10, 2),
        iri(f"{RDF}type"): PredicateStatistics(1000, 1000, 4),
    },
)
_NOTHING_KNOWN = Statistics()

# --- the same solutions -------------------------------------------------------------------------------------------

_WAYS = [
    (_NOTHING_KNOWN, Hints()),
    (_NOTHING_KNOWN, Hints(join="star", order="as-written")),
    (
        Statistics(9, True, {P: PredicateStatistics(4, 3, 2), Q: PredicateStatistics(5, 3, 3)}),
        Hints(),
    ),
]


def _assert_same(planned: Plan, quads: list[Quad]) -> None:
    def bag(plan: Plan) -> Counter[frozenset[tuple[Var, Term]]]:
        return Counter(
            frozenset(
                (variable, term) for variable, term in solution.items() if not variable.hidden
            )
            for solution in solutions(plan, quads)
        )

    wanted = bag(planned)
    for statistics, hints in _WAYS:
        optimized = optimize(planned, statistics, hints=hints)
        assert bag(optimized) == wanted, text(optimized.pattern)
        assert optimized.pattern.certain >= planned.pattern.certain
        # what must be unbound is not there at all
        assert optimized.pattern.possible <= planned.pattern.possible


_VARIABLES = tuple(map(Var, ("x", "y", "z", "fresh")))
_variables = st.sampled_from(_VARIABLES)
_LITERALS = (literal("1"), literal("a", language="en"), literal("NaN", datatype=f"{XSD}double"))
_LITERALS += tuple(literal(form, datatype=f"{XSD}integer") for form in ("1", "01", "many"))
_LITERALS += (literal("1.0", datatype=f"{XSD}decimal"), literal("-0", datatype=f"{XSD}float"))
_VALUED = tuple(Quad(TERMS[n % 3], (P, Q)[n % 2], literal) for n, literal in enumerate(_LITERALS))
_constants = st.builds(Constant, st.sampled_from((*TERMS, *_LITERALS)))
_places = _variables | st.sampled_from(TERMS)
_graphs = st.sampled_from((None, None, None, GRAPH))
_patterns = st.builds(Triple, _variables, st.sampled_from((P, Q)), _places, _graphs)
_bgps = st.builds(Bgp, st.lists(_patterns, min_size=1, max_size=3).map(tuple))
_tests = st.builds(Call, st.just("BOUND"), st.tuples(_variables)) | st.builds(
    Call, st.sampled_from(("=", "!=")), st.tuples(_variables, _variables | _constants)
)
_conditions = _tests | st.builds(
    Call, st.sampled_from(("&&", "||", "!")), st.tuples(_tests, _tests)
).map(lambda call: Call("!", call.arguments[:1]) if call.name == "!" else call)


_kept = st.sets(_variables).map(lambda kept: tuple(sorted(kept)))


def _under_filters(node: Node, conditions: list[Expression]) -> Node:
    return reduce(Filter, conditions, node)


def _extended(node: Node, variable: Var, expression: Expression) -> Node:
    return node if variable in node.possible else Extend(node, variable, expression)


def _filtered(nodes: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    return st.builds(_under_filters, nodes, st.lists(_conditions, max_size=2))


def _over(nodes: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    """What rules look for: filters over operators over filters, and optional patterns over all of that."""
    optional = st.builds(LeftJoin, nodes, st.builds(lambda pattern: Bgp((pattern,)), _patterns))
    return _filtered(
        optional
        | optional
        | st.builds(LeftJoin, nodes, nodes, st.none() | _conditions)
        | st.builds(Join, nodes, nodes)
        | st.builds(Join, _bgps, st.builds(Union, nodes, nodes))
        | st.builds(Union, nodes, nodes)
        | st.builds(Minus, nodes, nodes)
        | st.builds(_extended, nodes, _variables, _tests)
        | st.builds(Project, nodes, _kept)
        | st.builds(Distinct, nodes)
        | st.builds(lambda node, kept: Distinct(Project(node, kept)), nodes, _kept)
        | st.builds(Filter, nodes, st.builds(Exists, nodes))
    )


_small = _filtered(_bgps)
_trees = _over(_small | _over(_small))


@pytest.mark.slow
@given(_trees)
@settings(max_examples=3 * settings.default.max_examples)
def test_random_trees_keep_their_solutions(tree: Node) -> None:
    _assert_same(Plan("SELECT", tree, ()), [*QUADS, *_VALUED])


_joined = st.builds(Bgp, st.lists(_patterns, min_size=2, max_size=5).map(tuple))
_sets = st.builds(
    lambda node, kept: Distinct(Project(node, kept)),
    _filtered(
        _joined
        | st.builds(Join, _joined, _small)
        | st.builds(Union, _filtered(_joined), _filtered(_joined))
    ),
    _kept,
)


@pytest.mark.slow
@given(_sets)
@settings(max_examples=3 * settings.default.max_examples)
def test_random_sets_keep_their_solutions(tree: Node) -> None:
    _assert_same(Plan("SELECT", tree, ()), [*QUADS, *_VALUED])


@pytest.mark.parametrize("seed", range(60))
def test_random_queries_keep_their_solutions(seed: int) -> None:
    random = Random(seed)
    quads = dataset(random)
    query = query_over(random, quads)
    named = [
        Quad(
            from_pyoxigraph(quad.subject),
            from_pyoxigraph(quad.predicate),
            from_pyoxigraph(quad.object),
            from_pyoxigraph(quad.graph_name) if str(quad.graph_name) != "DEFAULT" else None,
        )
        for quad in quads
    ]
    _assert_same(translate_query(query.text, now=NOW), named)


# --- by these rules -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("query", "wanted"), cases("sunk"))
def test_filters_sink_and_patterns_meet(query: str, wanted: str) -> None:
    hints = Hints(join="joins", order="as-written")
    assert (
        text(optimize(translate_query(query, now=NOW), _NOTHING_KNOWN, hints=hints).pattern)
        == wanted
    )


@pytest.mark.parametrize(("query", "wanted"), [*cases("equalities"), *cases("unions")])
def test_equalities_join_and_ways_begin_from_little(query: str, wanted: str) -> None:
    """Issue 13, 27; issue 19."""
    assert (
        text(
            optimize(
                translate_query(query, now=NOW), _NOTHING_KNOWN, hints=Hints(join="joins")
            ).pattern
        )
        == wanted
    )


@pytest.mark.parametrize(("query", "wanted"), cases("stars"))
def test_stars_where_nothing_is_known(query: str, wanted: str) -> None:
    assert text(optimize(translate_query(query, now=NOW), _NOTHING_KNOWN).pattern) == wanted


@pytest.mark.parametrize(("query", "wanted"), cases("orders"))
def test_orders_by_figures(query: str, wanted: str) -> None:
    assert text(optimize(translate_query(query, now=NOW), _FIGURES).pattern) == wanted


_QUERY = "SELECT * { ?s <u:label> ?l ; <u:boss> ?b OPTIONAL { ?s <u:knows> ?k } }"
_JOINS = "(project (leftjoin (bgp [[?s <u:{}> ?{}] [?s <u:{}> ?{}]]) (bgp [[?s <u:knows> ?k]])) [?s ?l ?b ?k])"
_STAR = "(project (star ?s [[?s <u:label> ?l] [?s <u:boss> ?b]] [[?s <u:knows> ?k]]) [?s ?l ?b ?k])"
HINTS = [
    ("figures", _FIGURES, Hints(), _JOINS.format("boss", "b", "label", "l")),
    (
        "figures, as written",
        _FIGURES,
        Hints(order="as-written"),
        _JOINS.format("label", "l", "boss", "b"),
    ),
    ("figures, but a star", _FIGURES, Hints(join="star", order="as-written"), _STAR),
    ("nothing known", _NOTHING_KNOWN, Hints(), _STAR),
    (
        "nothing known, but joins",
        _NOTHING_KNOWN,
        Hints(join="joins"),
        _JOINS.format("label", "l", "boss", "b"),
    ),
]


@pytest.mark.parametrize(
    ("statistics", "hints", "wanted"), [pytest.param(*case, id=name) for name, *case in HINTS]
)
def test_hints(statistics: Statistics, hints: Hints, wanted: str) -> None:
    assert (
        text(optimize(translate_query(_QUERY, now=NOW), statistics, hints=hints).pattern) == wanted
    )


def test_an_unknown_hint_is_named() -> None:
    with pytest.raises(UsageError, match="order='random'"):
        Hints(order="random")  # type: ignore[arg-type]  # what the test is about


def test_what_is_not_the_pattern_stays() -> None:
    planned = translate_query("ASK FROM <u:g> { ?s <u:p> ?o }", now=NOW)
    optimized = optimize(planned, _NOTHING_KNOWN)
    assert optimized == planned
    assert optimized.dataset == Dataset((iri("u:g"),), ())


# --- and says so ----------------------------------------------------------------------------------------------------

_EXPLAINED = """\
SELECT ?s ?n FROM <u:g> {
  ?s <u:label> ?l ; <u:boss> ?b . ?c <u:label> ?d
  OPTIONAL { ?s <u:knows> ?k . ?k <u:label> ?m FILTER(?m != ?l) }
  MINUS { ?s a <u:Robot> }
  { VALUES ?l { 1 2 } } UNION { ?s <u:knows>+ <u:x> }
  BIND(STR(?l) AS ?n) FILTER(?n != "")
} ORDER BY ?n LIMIT 3
"""
_WITH_FIGURES = """\
estimates: statistics of 2000 quads and 4 predicates
duplicates: none in the table
dataset: default graph of <u:g>; named graphs nothing
slice: offset 0, limit 3
  project ?s ?n
    order
      filter on ?n
        bind ?n from ?l
          join on ?l ?s
            minus on ?s
              optional on ?s, with a condition on ?l ?m
                cross product (no shared variable)
                  patterns, joined in this order
                    1. ?s <u:boss> ?b (10 matches): about 10 solutions
                    2. ?s <u:label> ?l (1000 matches): about 10 solutions
                  patterns, joined in this order
                    1. ?c <u:label> ?d (1000 matches): about 1000 solutions
                patterns, joined in this order
                  1. ?s <u:knows> ?k (500 matches): about 500 solutions
                  2. ?k <u:label> ?m (1000 matches): about 500 solutions
              patterns, joined in this order
                1. ?s <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <u:Robot> (250 matches): about 250 solutions
            union
              inline data of ?l: 2 solutions
              path from ?s to <u:x>"""
_WITHOUT = """\
estimates: guesses (the table has no statistics)
duplicates: removed pattern by pattern
quads: read once for 3 patterns, and shuffled by subject
project ?s ?l ?b ?k
  star of ?s: objects collected subject by subject
    1. ?s <u:label> ?l (50000 matches): about 50000 solutions
    2. ?s <u:boss> ?b (50000 matches): about 100000 solutions
    -. ?s <u:knows> ?k: where there is one"""


_LINKED = "SELECT * { ?s <u:label> ?l . ?t <u:knows> ?k FILTER(?l = ?k) FILTER NOT EXISTS { ?s <u:boss> ?b } }"
_LINKS = """\
estimates: statistics of 2000 quads and 4 predicates
duplicates: none in the table
project ?s ?l ?t ?k
  filter on ?b ?k ?l ?s
    join on ?k ?l
      patterns, joined in this order
        1. ?t <u:knows> ?k (500 matches): about 500 solutions
      patterns, joined in this order
        1. ?s <u:label> ?l (1000 matches): about 1000 solutions
    the body of EXISTS
      patterns, joined in this order
        1. ?s <u:boss> ?b (10 matches): about 10 solutions"""


@pytest.mark.parametrize(
    ("query", "statistics", "wanted"),
    [
        pytest.param(_LINKED, _FIGURES, _LINKS, id="links"),
        pytest.param(_EXPLAINED, _FIGURES, _WITH_FIGURES, id="figures"),
        pytest.param(_QUERY, _NOTHING_KNOWN, _WITHOUT, id="guesses"),
    ],
)
def test_explanation(query: str, statistics: Statistics, wanted: str) -> None:
    planned = translate_query(query, now=NOW)
    assert explanation(optimize(planned, statistics), statistics) == wanted


def test_everything_has_an_explanation() -> None:
    query = """SELECT DISTINCT (BNODE() AS ?n) (COUNT(*) AS ?c) { GRAPH ?g {} GRAPH <u:g> {} } GROUP BY ?g"""
    planned = translate_query(query, now=NOW)
    lines = explanation(
        replace(planned, pattern=optimize(planned, _FIGURES).pattern), _FIGURES
    ).splitlines()
    heads = [line.split(None, 1)[0] for line in lines]
    assert heads[2:4] == ["distinct", "project"]
    assert {"number", "group", "named", "bind"} <= set(heads)

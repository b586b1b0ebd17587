"""Plans of the W3C's queries and of queries found in the wild: what they mean, and which are refused.

What a plan means is told by `algebra_reference`, a plain evaluator of the algebra; no Spark is needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

import pyoxigraph as ox
import pytest

from construct_messages.errors import QueryError, UnsupportedQuery
from construct_messages.query.algebra.nodes import Plan, Var
from construct_messages.query.rewrite import ConstructQuery, query_form
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import UNBOUND, from_pyoxigraph
from tests.support.conformance.wild import BASE, VOLATILE, invented, wild
from tests.support.places import shared_path
from tests.support.queries.algebra_reference import solutions
from tests.support.queries.algebra_text import NOW, translate_query
from tests.support.queries.w3c import Answer, Case, agree, cases, expected

pytestmark = [pytest.mark.suite, pytest.mark.slow]

SUITES = "suites/w3c/sparql"

# Not the plan's fault.
OTHERWISE = {
    "sparql10/open-world/date-2": "dates without and with time zones can be compared since XPath 3",
    "sparql10/optional-filter/dawg-optional-filter-005-simplified": "not in the manifest, which has it otherwise",
}


def answer(planned: Plan, quads: Sequence[Quad]) -> Answer:
    """What a plan gives over some quads; on the way, that it told the truth of its variables."""
    found = solutions(planned, quads)
    assert all(planned.pattern.certain <= one.keys() <= planned.pattern.possible for one in found)
    if planned.form == "ASK":
        return Answer(truth=bool(found))
    rows = (tuple(one.get(Var(name), UNBOUND) for name in planned.variables) for one in found)
    return Answer(planned.variables, tuple(rows), ordered=planned.ordered)


def planned(case: Case) -> Plan:
    if query_form(case.text) == "CONSTRUCT":
        return translate_query(
            ConstructQuery.parse(case.text, base=case.base).select, now=NOW, base=case.base
        )
    return translate_query(case.text, now=NOW, base=case.base)


def test_plans_of_the_evaluation_tests_are_right() -> None:
    wrong = set()
    found = cases(shared_path(SUITES))
    for case in found:
        given = answer(planned(case), case.quads())
        if query_form(case.text) != "CONSTRUCT" and not agree(given, expected(case), lax=case.lax):
            wrong.add(case.name)
    assert len(found) > 500
    assert wrong == OTHERWISE.keys() & {case.name for case in found}


# --- syntax tests ---------------------------------------------------------------------------------------------------

_MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

REFUSED = {
    "functions of the author's own": {
        *(
            "sparql10/syntax-sparql1/syntax-expr-05.rq",
            "sparql10/syntax-sparql1/syntax-order-05.rq",
        ),
        *(
            "sparql10/syntax-sparql1/syntax-order-06.rq",
            "sparql10/syntax-sparql2/syntax-function-01.rq",
        ),
        *(
            "sparql10/syntax-sparql2/syntax-function-02.rq",
            "sparql10/syntax-sparql2/syntax-function-03.rq",
        ),
        *(
            "sparql10/syntax-sparql2/syntax-function-04.rq",
            "sparql11/syntax-query/syntax-select-expr-04.rq",
        ),
    },
    "SERVICE": {f"sparql11/syntax-fed/syntax-service-0{number}.rq" for number in (1, 2, 3)},
    "DESCRIBE": {f"sparql10/syntax-sparql2/syntax-form-describe0{number}.rq" for number in (1, 2)},
}
TAKEN = {
    "sparql11/construct/constructwhere06.rq": "graphs in templates are no part of SPARQL 1.1, and known here"
}


def syntax_tests(kind: str) -> Iterator[tuple[str, str]]:
    """Names and queries of the positive or negative syntax tests."""
    root = shared_path(SUITES)
    for manifest in sorted(root.glob("sparql1[01]/*/manifest.ttl")):
        quads = list(ox.parse(path=str(manifest), format=ox.RdfFormat.TURTLE, base_iri="file:///"))
        types = {f"<{_MF}{kind}SyntaxTest>", f"<{_MF}{kind}SyntaxTest11>"}
        tests = {
            quad.subject
            for quad in quads
            if quad.predicate.value == _RDF + "type" and str(quad.object) in types
        }
        for quad in quads:
            if quad.subject in tests and quad.predicate.value == _MF + "action":
                assert isinstance(quad.object, ox.NamedNode)
                path = manifest.parent / quad.object.value.removeprefix("file:///")
                yield (
                    str(path.relative_to(root)),
                    path.read_text(encoding="utf-8", errors="replace"),
                )


def refusal(text: str) -> QueryError | None:
    """What is said of a query, CONSTRUCT or other, that is not planned."""
    try:
        if query_form(text) == "CONSTRUCT":
            text = ConstructQuery.parse(text, base="http://example.org/").select
        translate_query(text, now=NOW, base="http://example.org/")
    except QueryError as refused:
        return refused
    return None


def test_legal_queries_are_planned_or_refused_by_name() -> None:
    refusals = {name: said for name, text in syntax_tests("Positive") if (said := refusal(text))}
    assert refusals.keys() == {name for names in REFUSED.values() for name in names}
    assert all(
        isinstance(said, UnsupportedQuery)
        for name, said in refusals.items()
        if name not in REFUSED["DESCRIBE"]
    )


def test_illegal_queries_are_refused() -> None:
    taken = {name for name, text in syntax_tests("Negative") if refusal(text) is None}
    assert taken == TAKEN.keys()


# --- queries found in the wild --------------------------------------------------------------------------------------


def test_queries_found_in_the_wild_are_planned_or_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    counts = Counter(
        type(query.outcome).__name__
        if not isinstance(query.outcome, UnsupportedQuery)
        else f"{type(query.outcome).__name__}: {query.outcome.fragment}"
        for query in wild()
    )
    with capsys.disabled():
        print("", *(f"{number:5} {what}" for what, number in counts.most_common()), sep="\n")
    assert counts["Plan"] >= 280
    for query in wild():
        if query.kind in ("standard", "quads") and isinstance(query.outcome, QueryError):
            # what is not refused by name is illegal, and pyoxigraph says so too
            legal = "SERVICE" in query.select.upper() or _is_read_by_pyoxigraph(query.select)
            assert isinstance(query.outcome, UnsupportedQuery) == legal, query.name


def _is_read_by_pyoxigraph(text: str) -> bool:
    try:
        ox.Store().query(text, base_iri=BASE)
    except SyntaxError:
        return False
    except RuntimeError:
        return True  # an unknown function
    return True


MANY = 1000


def test_plans_of_queries_found_in_the_wild_mean_what_pyoxigraph_says() -> None:
    compared, with_solutions, wrong = 0, 0, []
    for query in wild():
        if not isinstance(query.outcome, Plan) or any(
            word in query.select.upper() for word in VOLATILE
        ):
            continue
        quads = invented(query.outcome)
        store = ox.Store()
        store.extend(Message(quads).to_pyoxigraph())
        try:
            results = store.query(query.select, base_iri=BASE)
        except SyntaxError:
            continue
        assert isinstance(results, ox.QuerySolutions)
        # no blank nodes here, so bags of solutions can be compared as they are
        names = [variable.value for variable in results.variables]
        wanted = Counter(
            tuple(
                UNBOUND if (term := one[name]) is None else from_pyoxigraph(term) for name in names
            )
            for one in islice(results, MANY)
        )
        if wanted.total() == MANY:
            continue  # a product of patterns, which the reference would take long for
        given = answer(query.outcome, quads)
        assert given.solutions is not None
        compared += 1
        with_solutions += bool(wanted)
        if list(given.variables) != names or Counter(given.solutions) != wanted:
            wrong.append(query.name)
    assert wrong == []
    assert compared > 200
    assert with_solutions > 150

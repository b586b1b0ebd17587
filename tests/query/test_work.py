"""Work that grows with the query and no faster: counted in lines run, comparisons and characters, never in seconds.

What C code does for a line does not show in the lines, so what is known to be costly there is counted by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any, Final

import pytest

from construct_messages.errors import QueryError
from construct_messages.query import prologue
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.rdf.template import Constant, Nested, Pattern, Slot, Template, Variable
from construct_messages.rdf.terms import Term

pytestmark = pytest.mark.slow

MOST: Final = 2.3
"""How much more work twice the input may be."""


def lines_run(work: Callable[[], object]) -> int:
    count = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def times(n: int, text: str, between: str = " ") -> str:
    return between.join(text.replace("%", str(i)) for i in range(n))


def template(text: str) -> str:
    return f"CONSTRUCT {{ {text} }} WHERE {{ ?s ?p ?o }}"


def behind(text: str) -> str:
    return f"CONSTRUCT {{ ?s ?p ?o }} {text}"


KINDS: Final[dict[str, Callable[[int], str]]] = {
    "constants": lambda n: template(times(n, "<urn:s%> <urn:p%> <urn:o%> .")),
    "variables": lambda n: template(times(n, "?s% ?p% ?o% .")),
    "blank nodes": lambda n: template(times(n, "_:s% <urn:p> [] .")),
    "literals": lambda n: template(times(n, '?s ?p "%"@en, %, "x"^^<urn:%> .')),
    "predicates": lambda n: template("?s " + times(n, "<urn:p%> ?o", ";")),
    "objects": lambda n: template("?s ?p " + times(n, "<urn:o%>", ",")),
    "a list": lambda n: template(f"?s ?p ({times(n, '?v%')})"),
    "lists": lambda n: template(times(n, "?s ?p (1 2) .")),
    "brackets": lambda n: template(times(n, "[ ?p [ ?q ?o ] ] .")),
    "triple terms": lambda n: template(times(n, "?s ?p <<( ?s <urn:%> ?o )>> .")),
    "annotations": lambda n: template(times(n, "?s ?p ?o ~ _:r% {| ?p ?o |} .")),
    "graphs": lambda n: template(times(n, "GRAPH <urn:%> { ?s ?p ?o }")),
    "prefixes": lambda n: times(n, "PREFIX p%: <urn:p%:>") + template(times(n, "?s p%:x ?o .")),
    "relative prefixes": lambda n: (
        "BASE <http://e/>" + times(n, "PREFIX p%: <p%:>") + template("?s ?p ?o")
    ),
    "one prefix again": lambda n: times(n, "PREFIX p: <urn:p%:>") + template("?s p:p ?o"),
    "bases": lambda n: times(n, "BASE <http://e/%/>") + template("?s ?p ?o"),
    "relative bases": lambda n: "BASE <http://e/>" + times(n, "BASE <a/>") + template("?s ?p ?o"),
    "comments": lambda n: times(n, "# comment %\n") + template("?s ?p ?o"),
    "datasets": lambda n: behind(
        times(n, "FROM <urn:%> FROM NAMED <urn:%>") + " WHERE { ?s ?p ?o }"
    ),
    "groups": lambda n: behind("WHERE { " + times(n, "{ ?s ?p ?o }", " UNION ") + " }"),
    "nested groups": lambda n: behind(
        "WHERE " + times(n, "{ ?s ?p% ?o OPTIONAL") + " { }" + " }" * n
    ),
    "sub-selects": lambda n: behind(
        "WHERE { " + times(n, "{ SELECT ?s (1 AS ?v%) { ?s ?p ?o } }") + " }"
    ),
    "nested sub-selects": lambda n: behind(
        "WHERE " + times(n, "{ SELECT *") + " { ?s ?p ?o }" + " }" * n
    ),
    "filters": lambda n: behind("WHERE { ?s ?p ?o " + times(n, "FILTER (?o = ?v%)") + " }"),
    "exists": lambda n: behind(
        "WHERE { ?s ?p ?o " + times(n, "FILTER EXISTS { ?s ?p ?v% }") + " }"
    ),
    "values": lambda n: behind("WHERE { ?s ?p ?o } VALUES (?s) { " + times(n, "(<urn:%>)") + " }"),
    "brackets in a filter": lambda n: behind(
        "WHERE { ?s ?p ?o FILTER" + "(" * n + "?s" + ")" * n + " }"
    ),
    "grouping": lambda n: behind("WHERE { ?s ?p ?o } GROUP BY ?s " + times(n, "(STR(?o) AS ?k%)")),
    "having": lambda n: behind(
        "WHERE { ?s ?p ?o } GROUP BY ?s HAVING " + times(n, "(COUNT(?o) > %)")
    ),
    "ordering": lambda n: behind("WHERE { ?s ?p ?o } ORDER BY " + times(n, "DESC(?o + %)")),
    # text that is no SPARQL is read again, but not the groups in it
    "nested errors": lambda n: behind(
        "WHERE { ?s ?p ?o " + times(n, "FILTER(EXISTS {") + times(n, "} no %)") + " }"
    ),
    "errors in a row": lambda n: behind(
        "WHERE { ?s ?p ?o " + times(n, "OPTION (t_in(?v%)) .") + " }"
    ),
    "brackets that stay open": lambda n: behind(
        "WHERE { ?s ?p ?o " + times(n, "BIND( FILTER( ?v%") + " }"
    ),
    "clauses in disorder": lambda n: behind("WHERE { ?s ?p ?o } " + times(n, "LIMIT % ORDER BY")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_twice_the_query_is_twice_the_work(kind: str) -> None:
    """Issue 13, 15."""
    texts = (KINDS[kind](size) for size in (150, 300))
    one, two = (lines_run(partial(ConstructQuery.parse, text, group_by=("s",))) for text in texts)
    assert two <= MOST * one


@pytest.mark.parametrize("nested", [False, True], ids=["plain", "in triple terms"])
def test_comparisons_of_the_constants_of_a_template(nested: bool) -> None:
    """Issue 13, 15: each constant was looked for among all that came before, in C."""
    count = 0

    class Counting(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            nonlocal count
            count += 1
            return str.__eq__(self, other)  # type: ignore[arg-type]

        __hash__ = str.__hash__

    def comparisons(size: int) -> int:
        nonlocal count
        s, p = Variable(0), Constant(Term("<urn:p>"))
        objects: list[Slot] = [Constant(Term(Counting(f"<urn:o{i}>"))) for i in range(size)]
        patterns = tuple(
            Pattern(s, p, Nested(s, p, object) if nested else object) for object in objects
        )
        count = 0
        Template(("s",), patterns)
        return count + size

    assert comparisons(400) <= MOST * comparisons(200)


EXPANDING: Final[dict[str, Callable[[int], str]]] = {
    "relative bases": lambda n: "BASE <http://e/>" + times(n, "BASE <a/>") + template("?s ?p ?o"),
    "bases that go back to the root": lambda n: (
        f"BASE <http://e/{'a' * n}>" + times(n, "BASE <>") + template("?s ?p ?o")
    ),
    "relative prefixes": lambda n: (
        f"BASE <http://e/{'a' * n}/>" + times(n, "PREFIX p%: <p>") + template("?s ?p ?o")
    ),
    "a long namespace": lambda n: (
        f"PREFIX p: <http://e/{'a' * n}/>" + template(times(n, "?s p:% ?o."))
    ),
    "a long base": lambda n: f"BASE <http://e/{'a' * n}/>" + template(times(n, "?s <%> ?o.")),
}


@pytest.mark.parametrize("kind", EXPANDING)
def test_characters_of_iris_in_full(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 13, 15: chains of relative BASE, and what else makes long IRIs of short names."""
    count = 0
    resolve, iri = prologue.resolve, prologue.iri

    def counting_resolve(reference: str, base: str | None) -> Term:
        nonlocal count
        count += len(reference) + len(base or "")
        return resolve(reference, base)

    def counting_iri(value: str) -> Term:
        nonlocal count
        count += len(value)
        return iri(value)

    monkeypatch.setattr(prologue, "resolve", counting_resolve)
    monkeypatch.setattr(prologue, "iri", counting_iri)

    def characters(size: int) -> int:
        nonlocal count
        count = 0
        with pytest.raises(QueryError, match="256 times as long as the query"):
            ConstructQuery.parse(EXPANDING[kind](size))
        return count

    assert characters(12_000) <= MOST * characters(6_000)

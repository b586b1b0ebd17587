"""Variables whose values are new in each evaluation, and pages that are not ordered by them."""

from __future__ import annotations

import pyoxigraph as ox
import pytest

from construct_messages.query.rewrite import ConstructQuery
from construct_messages.query.select import BY_TEXT, BY_TEXT_ONLY, page, volatile

E = "PREFIX : <http://e/> "


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ("{ ?s ?p ?o }", ""),
        ("{ ?s ?p ?o BIND(uuid() AS ?x) }", "x"),
        (
            "{ ?s ?p ?o BIND(STR(STRUUID()) AS ?x) BIND(CONCAT(?x, ?s) AS ?y) BIND(STR(?s) AS ?z) }",
            "x y",
        ),
        ("{ ?s ?p ?o BIND(STR(?y) AS ?z) BIND(RAND() AS ?y) }", "y z"),
        ("{ { SELECT ?s (NOW() AS ?x) { ?s ?p ?o } } BIND(YEAR(?x) AS ?y) }", "x y"),
        ("{ ?s ?p ?o BIND(BNODE(STR(?s)) AS $x) }", "x"),
        ("{ ?s ?p ?o BIND(<bif:rnd>(10) AS ?x) BIND(bif:rnd(10) AS ?y) }", "y"),
        ("{ ?s ?p ?o BIND('NOW()' AS ?x) BIND(:NOW(?s) AS ?y) # BIND(NOW() AS ?z)\n }", ""),
        ("{ ?s ?p ?o } GROUP BY ?s (UUID() AS ?x)", "x"),
        ("{ ?s ?p ?o FILTER(RAND() > 0.5 && ?o < NOW()) }", ""),
    ],
)
def test_volatile(where: str, names: str) -> None:
    query = ConstructQuery.parse(f"{E}CONSTRUCT {{ ?s :x ?x }} WHERE {where}").rewritten
    assert volatile(query) == frozenset(names.split())


@pytest.mark.parametrize("keys", [BY_TEXT, BY_TEXT_ONLY])
def test_pages_are_not_ordered_by_them(keys: tuple[str, ...]) -> None:
    """Issue 26, 0: ordered by a UUID, two pages would hold solutions of two orders."""
    store = ox.Store()
    store.extend(
        ox.Quad(ox.NamedNode(f"http://e/{n}"), ox.NamedNode("http://e/p"), ox.Literal(n))
        for n in range(100)
    )
    text = "CONSTRUCT { ?id :of ?s ; :at ?now } WHERE { ?s :p ?n BIND(STRUUID() AS ?id) BIND(NOW() AS ?now) }"
    query = ConstructQuery.parse(E + text).rewritten
    found = []
    for offset in range(0, 100, 7):
        window = page(query, 7, offset, keys=keys)
        assert window is not None
        found += [solution["s"].value for solution in store.query(str(window))]
    assert sorted(found) == sorted(f"http://e/{n}" for n in range(100))


def test_what_is_only_new_has_no_order() -> None:
    query = ConstructQuery.parse(
        f"{E}CONSTRUCT {{ ?id a :X }} WHERE {{ ?s ?p ?o BIND(UUID() AS ?id) }}"
    ).rewritten
    assert "ORDER BY" not in str(page(query, 7, 0))

"""`benchmarks/suite/competitors/construct.py`: the pieces that users write by hand, and how groups are read."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from rdflib import Graph, URIRef

from benchmarks.suite.competitors.cbd import describe
from benchmarks.suite.competitors.construct import handwritten
from benchmarks.suite.competitors.printing import SLOT, instantiate, printed_groups

EX = "PREFIX ex: <http://example.org/>\n"


def query(template: str, where: str, rest: str = "") -> str:
    return f"{EX}CONSTRUCT {{ {template} }} WHERE {{ {where} }}{rest}"


@pytest.mark.parametrize(
    ("text", "select"),
    [
        (query("?s ex:p ?o", "?s ex:p ?o"), "SELECT ?s ?o WHERE { ?s ex:p ?o }"),
        (
            query("?s ex:p '}'", "?s ex:p ?o # {\n", " LIMIT 1"),
            "SELECT ?s WHERE { ?s ex:p ?o # {\n } LIMIT 1",
        ),
        (f"{EX}CONSTRUCT WHERE {{ ?s ex:p ?o }}", "SELECT ?s ?o WHERE { ?s ex:p ?o }"),
    ],
    ids=["plain", "brackets elsewhere", "short"],
)
def test_the_select_has_the_same_where_clause(text: str, select: str) -> None:
    assert " ".join(handwritten(text)["select"].removeprefix(EX).split()) == " ".join(
        select.split()
    )


@pytest.mark.parametrize(
    ("text", "certain"),
    [
        (query("?s ex:p ?o", "?s ex:p ?o OPTIONAL { ?s ex:q ?q }"), ["?o", "?s"]),
        (query("?s ex:p ?q", "?s ex:p ?o OPTIONAL { ?s ex:q ?q }"), ["?s"]),
        (query("?s ex:p ?o, ?q", "{ ?s ex:p ?o } UNION { ?s ex:q ?q }"), ["?s"]),
        (
            query("?s ex:p ?n", "{ SELECT ?s (COUNT(*) AS ?n) { ?s ex:p ?o } GROUP BY ?s }"),
            ["?n", "?s"],
        ),
        (query("?s ex:p ?n", "?s ex:p ?o BIND (STR(?o) AS ?n) VALUES ?s { ex:a }"), ["?n", "?s"]),
    ],
    ids=["not used", "optional", "union", "aggregate", "bind"],
)
def test_variables_that_every_solution_binds(text: str, certain: list[str]) -> None:
    assert handwritten(text)["certain"] == certain


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        (query("?s ex:p ?o", "?s ex:p ?o FILTER (?o > 1)"), "?s <ex/p> ?o . FILTER (?o > 1)"),
        (
            query("?s ex:p ?o ; ex:q ?q", "?s ex:p ?o OPTIONAL { ?s ex:q ?q FILTER (?q > ?o) }"),
            "?s <ex/p> ?o . OPTIONAL { ?s <ex/q> ?q . FILTER (?q > ?o) }",
        ),
        (
            query("?s ex:p ?o . ?o ex:of ?s", "?s ex:p ?o FILTER NOT EXISTS { ?o ex:q ?s }"),
            "?s <ex/p> ?o . OPTIONAL { ?o <ex/of> ?s . }",
        ),
        (query("_:b ex:p ?s", "?s ex:p ?o"), "?blank_b <ex/p> ?s ."),
    ],
    ids=["filter", "optional", "may be a literal", "blank node"],
)
def test_the_template_is_found_again(text: str, pattern: str) -> None:
    found = handwritten(text)["rematch"]
    inside = found[found.index("{") + 1 : found.rindex("}")].replace("http://example.org/", "ex/")
    assert " ".join(inside.split()) == pattern


def test_one_query_for_an_entity() -> None:
    pieces = handwritten(query("?s ex:p ?o", "?s ex:p ?o", " ORDER BY ?s LIMIT 3"))
    assert pieces["key"] == "?s"
    assert " ".join(pieces["entities"].split()).endswith(
        "SELECT DISTINCT ?s WHERE { ?s ex:p ?o } ORDER BY ?s LIMIT 3"
    )
    assert " ".join(pieces["entity"].split()).endswith(f"WHERE {{ {SLOT} ?s ex:p ?o }}")


def test_a_shape_follows_paths_there_and_back() -> None:
    shape = handwritten(
        query("?a ex:p ?b . ?c ex:q ?b . ?b ex:r ?d", "?a ex:p ?b . ?c ex:q ?b . ?b ex:r ?d")
    )["shape"]
    assert "<urn:shape:root> a sh:NodeShape ; sh:closed true" in shape
    assert "sh:path [ sh:inversePath <http://example.org/q> ]" in shape
    assert len(list(ox.parse(shape, ox.RdfFormat.TURTLE))) == 12


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (query("?s ex:p ?o", "?s ex:p ?o FILTER (?o > ?s)"), "one property at a time: ?o > ?s"),
        (
            query("?s ex:p ?o", "?s ex:p ?o FILTER NOT EXISTS { ?s ex:q ?o }"),
            "no place for NOTEXISTS",
        ),
        (query("?s ex:p ?o", "?s ex:p/ex:q ?o"), "no property paths"),
        (query("?s ?p ?o", "?s ?p ?o"), "no variable predicates"),
        (query("?s ex:q ?o", "?s ex:p ?o"), "another graph"),
        (query("?s ex:p ex:o", "?s ex:p ex:o"), "no constant objects"),
        (query("?a ex:p ?b . ?c ex:q ?b", "?a ex:p ?b . ?c ex:q ?b"), "a tree of properties"),
    ],
    ids=["filter", "negation", "path", "predicate", "template", "object", "two roots"],
)
def test_what_a_schema_cannot_say(text: str, reason: str) -> None:
    assert reason in handwritten(text)["ldkit_reason"]


def test_a_schema() -> None:
    where = '?s a ex:C ; ex:p ?o . OPTIONAL { ?o ex:q ?q } FILTER (LANG(?q) = "en" && ?o != ex:o)'
    text = query("?s a ex:C ; ex:p ?o . ?o ex:q ?q", where)
    below = {"p2": {"@id": "http://example.org/q", "@array": True, "@optional": True}}
    pieces = handwritten(text)
    assert pieces["ldkit_where"] == {
        "p1": {
            "$filter": "?value != <http://example.org/o>",
            "p2": {"$filter": 'LANG(?value) = "en"'},
        }
    }
    assert pieces["ldkit"] == {
        "@type": ["http://example.org/C"],
        "p1": {"@id": "http://example.org/p", "@array": True, "@schema": below},
    }


def test_a_template_leaves_out_what_is_no_triple() -> None:
    template = [
        ("?s", "<urn:p>", "?o"),
        ("?o", "<urn:q>", "?s"),
        ("_:b", "<urn:r>", "?s"),
        ("?s", "?o", "?s"),
    ]
    assert instantiate(template, {"?s": "<urn:s>", "?o": '"o"'}, 3) == [
        '<urn:s> <urn:p> "o" .\n',
        "_:own_b_3 <urn:r> <urn:s> .\n",
    ]
    assert instantiate(template, {"?o": "<urn:o>"}, 0) == []


@pytest.mark.parametrize(
    "output",
    [
        b'<urn:s> <urn:p> "\\u00e9" .\n<urn:s> <urn:p> "\xc3\xa9" .\n# group\n# group\n_:b <urn:p> _:b .\n# group\n',
        b'# @message\n<urn:s> <urn:p> "\xc3\xa9" .\n# @message\n# @message\n_:b <urn:p> _:b .\n',
    ],
    ids=["groups", "log"],
)
def test_groups_are_read(output: bytes) -> None:
    assert list(printed_groups(output)) == [
        frozenset({("<urn:s>", "<urn:p>", '"é"')}),
        frozenset({("_:b", "<urn:p>", "_:b")}),
    ]


def test_descriptions_are_those_of_rdflib() -> None:
    turtle = (
        f"""{EX} ex:a ex:p ex:b, _:one, "x" . _:one ex:q _:two ; ex:r ex:b . """
        f"""_:two ex:back _:one . ex:b ex:p ex:a ."""
    )
    graph = Graph().parse(data=turtle, format="turtle")
    root = "http://example.org/a"
    triples = [(f"{s.n3()}", f"{p.n3()}", f"{o.n3()}") for s, p, o in graph]
    (found,) = describe([f"<{root}>"], triples, symmetric=False)
    assert set(found) == {f"{s.n3()} {p.n3()} {o.n3()} .\n" for s, p, o in graph.cbd(URIRef(root))}
    (found,) = describe([f"<{root}>"], triples, symmetric=True)
    assert len(found) == len(graph.cbd(URIRef(root))) + 1

"""Random shapes and messages: the same results as pySHACL's, and the same with a part of static data as with all."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pyoxigraph as ox
import pyshacl
import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

from construct_messages.construct.shapes import Shapes
from construct_messages.construct.shapes.engine import StaticData
from construct_messages.construct.shapes.graph import ShapesGraph
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import from_pyoxigraph
from tests.support.conformance.shapes import PREFIXES, found, message, results_in

NODES = st.sampled_from(["ex:a", "ex:b", "ex:c", "_:x", "_:y"])
CLASSES = st.sampled_from(["ex:C", "ex:D", "ex:E"])
PROPERTIES = st.sampled_from(["ex:p", "ex:q", "ex:r"])
LITERALS = st.sampled_from(
    [
        "1",
        "2",
        "-3",
        "1.5",
        "true",
        '"a"',
        '"ab"',
        '"a"@en',
        '"ab"@en',
        '"b"@de',
        '"2026-01-01"^^xsd:date',
    ]
)
VALUES = NODES | LITERALS
TRIPLES = st.one_of(
    st.builds("{} {} {} .".format, NODES, PROPERTIES, VALUES),
    st.builds("{} a {} .".format, NODES, CLASSES),
    st.builds("{} rdfs:subClassOf {} .".format, CLASSES, CLASSES),
)
GRAPHS = st.lists(TRIPLES, max_size=10).map("\n".join)
GROUND = st.sampled_from(["ex:a", "ex:b", "1", '"a"', '"a"@en'])
LISTS = st.lists(GROUND, max_size=3).map(lambda terms: f"({' '.join(terms)})")

PATHS = st.recursive(
    PROPERTIES | st.just("rdf:type"),
    lambda inner: st.one_of(
        st.builds("[ sh:inversePath {} ]".format, PROPERTIES),
        st.builds(
            "[ sh:{} {} ]".format,
            st.sampled_from(["zeroOrMorePath", "oneOrMorePath", "zeroOrOnePath"]),
            PROPERTIES,
        ),
        st.lists(inner, min_size=2, max_size=2).map(lambda paths: f"({' '.join(paths)})"),
        st.lists(inner, min_size=2, max_size=2).map(
            lambda paths: f"[ sh:alternativePath ({' '.join(paths)}) ]"
        ),
    ),
    max_leaves=3,
)
COUNTS = st.integers(0, 2)
# a sh:closed of pySHACL counts values differently, and lists of languages are compared in test_w3c
ON_VALUES = st.one_of(
    st.builds("sh:class {}".format, CLASSES),
    st.builds(
        "sh:datatype {}".format, st.sampled_from(["xsd:integer", "xsd:string", "rdf:langString"])
    ),
    st.builds(
        "sh:nodeKind sh:{}".format,
        st.sampled_from(["IRI", "Literal", "BlankNode", "BlankNodeOrIRI"]),
    ),
    st.builds(
        "sh:{} {}".format, st.sampled_from(["minInclusive", "maxExclusive"]), st.integers(-3, 2)
    ),
    st.builds("sh:{} {}".format, st.sampled_from(["minLength", "maxLength"]), COUNTS),
    st.just('sh:pattern "^a"'),
    st.builds("sh:hasValue {}".format, GROUND),
    st.builds("sh:in {}".format, LISTS),
    st.builds("sh:{} {}".format, st.sampled_from(["equals", "disjoint"]), PROPERTIES),
)
ON_PATHS = ON_VALUES | st.one_of(
    st.builds("sh:{} {}".format, st.sampled_from(["minCount", "maxCount"]), COUNTS),
    st.just("sh:uniqueLang true"),
)


def properties(constraints: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds("sh:property [ sh:path {} ; {} ]".format, PATHS, constraints)


NESTED = st.recursive(
    ON_VALUES,
    lambda inner: st.one_of(
        st.builds("sh:{} [ {} ]".format, st.sampled_from(["node", "not"]), inner),
        st.builds(
            "sh:{} ([ {} ] [ {} ])".format, st.sampled_from(["and", "or", "xone"]), inner, inner
        ),
        properties(ON_PATHS),
    ),
    max_leaves=4,
)
TARGETS = st.one_of(
    st.builds("sh:targetClass {}".format, CLASSES),
    st.builds(
        "sh:{} {}".format, st.sampled_from(["targetSubjectsOf", "targetObjectsOf"]), PROPERTIES
    ),
    st.just("sh:targetNode ex:a"),
)
SHAPES = st.lists(
    st.builds("sh:node [ {} ]".format, NESTED) | properties(ON_PATHS) | NESTED,
    min_size=1,
    max_size=3,
).flatmap(
    lambda constraints: st.builds(
        lambda target: (
            f"ex:S a sh:NodeShape ; {target} .\n"
            + "\n".join(f"ex:S {constraint} ." for constraint in _once(constraints))
        ),
        TARGETS,
    )
)


def _once(constraints: list[str]) -> list[str]:
    """Constraints of one kind may be on a shape once."""
    kinds = {each.split()[0]: each for each in constraints}
    return list(kinds.values())


def made(turtle: str, data: str = "") -> Shapes:
    with TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("shapes.ttl", "data.ttl")]
        for path, text in zip(paths, (turtle, data), strict=True):
            path.write_text(PREFIXES + text)
        return Shapes(paths[0], data=paths[1:] if data else [])


@pytest.mark.slow
@settings(deadline=None)
@given(SHAPES, GRAPHS)
def test_the_same_as_pyshacl(turtle: str, data: str) -> None:
    report = made(turtle).validate(message(data))
    assert report.failure is None
    shapes = rdflib.Graph().parse(data=PREFIXES + turtle, format="turtle")
    graph = rdflib.Graph().parse(data=PREFIXES + data, format="turtle")
    conforms, theirs, _ = pyshacl.validate(graph, shacl_graph=shapes)
    assert report.conforms == conforms, theirs
    assert found(report) == results_in(theirs.serialize(format="nt"))


@settings(deadline=None)
@given(SHAPES, GRAPHS, GRAPHS)
def test_a_part_of_static_data_is_enough(turtle: str, data: str, static: str) -> None:
    """The library gets what is reachable; the whole gives the same results but for nodes that only the rest has."""
    static = static.replace("_:x", "ex:x").replace("_:y", "ex:y") or "ex:z ex:z ex:z ."
    one, rest = message(data), message(static)
    nodes, others = ({term for s, _, o, _ in each for term in (s, o)} for each in (one, rest))
    whole = made(turtle).validate(Message([*one, *rest]))
    part = made(turtle, static).validate(one)
    assert [result.as_json() | {"place": None} for result in part.results] == [
        result.as_json() | {"place": None}
        for result in whole.results
        if result.focus_node not in others - nodes
    ]


def test_static_data_is_pruned(tmp_path: Path) -> None:
    path = tmp_path / "shapes.ttl"
    path.write_text(
        f"{PREFIXES}ex:S sh:targetClass ex:C ; sh:property [ sh:path ex:p ; sh:class ex:D ] ."
    )
    triples = "\n".join(
        f"ex:a{n} rdfs:subClassOf ex:a{n + 1} . ex:a{n} ex:other ex:a{n + 1} . ex:b{n} a ex:a{n} ."
        for n in range(50)
    )
    quads = ox.parse(PREFIXES + triples, format=ox.RdfFormat.TURTLE)
    terms = [tuple(map(from_pyoxigraph, (q.subject, q.predicate, q.object))) for q in quads]
    static = StaticData(terms, ShapesGraph.read([path]))
    (node,) = {s for s, _, _, _ in message("ex:b48 ex:p 1 .").statements}
    assert static.lines([node]).count("\n") == 3  # its type, and two steps up

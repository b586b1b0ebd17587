"""Shapes graphs that are refused, with the place and the fix."""

from collections.abc import Callable
from pathlib import Path

import pytest

from construct_messages.construct.shapes import Shapes
from construct_messages.errors import ConstructMessagesError, Position, ShapesError, UsageError
from tests.support.conformance.shapes import PREFIXES

LINES = PREFIXES.count("\n")
REFUSED = [
    (
        "count",
        'ex:S sh:targetNode ex:a ;\n  sh:property [ sh:path ex:p ;\n    sh:minCount "x" ] .',
        (3, 5),
        'sh:minCount "x": sh:minCount is not a non-negative integer',
        "correct this",
    ),
    (
        "negative",
        "ex:S sh:targetNode ex:a ;\n  sh:property [ sh:path ex:p ; sh:minCount -1 ] .",
        (2, 32),
        "sh:minCount -1: sh:minCount is not a non-negative integer",
        "correct this",
    ),
    (
        "misspelt",
        "ex:S sh:targetNode ex:a ;\n  sh:property [ sh:path ex:p ; sh:mincount 1 ] .",
        (2, 32),
        "sh:mincount is not a known property",
        "write sh:minCount",
    ),
    (
        "misspelt target, of a shape without a type",
        "ex:R sh:targetNode ex:a .\nex:S sh:tragetNode ex:a ;\n  sh:property [ sh:path ex:p ] .",
        (2, 6),
        "sh:tragetNode is not a known property",
        "write sh:targetNode",
    ),
    (
        "no path",
        "ex:S sh:targetNode ex:a ;\n  sh:property [ sh:minCount 1 ] .",
        (2, 3),
        "has no sh:path",
        "add sh:path",
    ),
    (
        "count without path",
        "ex:S sh:targetNode ex:a ;\n  sh:minCount 1 .",
        (2, 3),
        "needs an sh:path in the same shape",
        "sh:property",
    ),
    (
        "typed node shape with path",
        "ex:S a sh:NodeShape ; sh:targetNode ex:a ; sh:path ex:p .",
        (1, 6),
        "has no sh:path",
        "sh:PropertyShape",
    ),
    (
        "property shape without path",
        "ex:S a sh:PropertyShape ; sh:targetNode ex:a .",
        (1, 6),
        "has no sh:path",
        "add sh:path",
    ),
    (
        "undefined",
        "ex:S sh:targetNode ex:a ;\n  sh:node ex:T .",
        (2, 3),
        "<http://example.org/T> is not defined",
        "--shapes",
    ),
    (
        "undefined in or",
        "ex:S sh:targetNode ex:a ;\n  sh:or ( [ sh:class ex:C ] ex:T ) .",
        (2, 3),
        "<http://example.org/T> is not defined",
        "--shapes",
    ),
    (
        "no list",
        "ex:S sh:targetNode ex:a ; sh:in ex:b .",
        (1, 27),
        "sh:in is not a well-formed list",
        "correct this",
    ),
    (
        "broken list",
        "ex:S sh:targetNode ex:a ; sh:in [ rdf:first 1 ] .",
        (1, 27),
        "sh:in is not a well-formed list",
        "correct this",
    ),
    (
        "node kind",
        "ex:S sh:targetNode ex:a ; sh:nodeKind sh:Iri .",
        (1, 27),
        "sh:nodeKind sh:Iri: sh:nodeKind is not a known node kind",
        "correct this",
    ),
    (
        "two datatypes",
        "ex:S sh:targetNode ex:a ; sh:property [ sh:path ex:p ; sh:datatype xsd:int, xsd:long ] .",
        (1, 56),
        "2 values of sh:datatype",
        "sh:or",
    ),
    (
        "boolean",
        'ex:S sh:targetNode ex:a ; sh:closed "yes" .',
        (1, 27),
        'sh:closed is "yes"',
        "true or false",
    ),
    ("target", 'ex:S sh:targetClass "C" .', (1, 6), 'sh:targetClass is "C"', "write an IRI"),
    (
        "empty path",
        "ex:S sh:targetNode ex:a ; sh:property [ sh:path () ] .",
        (1, 41),
        "an empty list",
        "inversePath",
    ),
    (
        "two paths in one node",
        "ex:S sh:targetNode ex:a ; sh:property [\n sh:path [ sh:inversePath ex:p ; sh:zeroOrMorePath ex:q ] ] .",
        (2, 2),
        "2 paths in one node",
        "inversePath",
    ),
    (
        "no list of shapes",
        "ex:S sh:targetNode ex:a ; sh:or ex:b .",
        (1, 27),
        "sh:or is not a list",
        "in parentheses",
    ),
    (
        "unknown path",
        "ex:S sh:targetNode ex:a ; sh:property [ sh:path [ ex:back ex:p ] ] .",
        (1, 41),
        "sh:path […]: blank node is not a valid property path",
        "correct this",
    ),
    (
        "literal path",
        'ex:S sh:targetNode ex:a ; sh:property [ sh:path "p" ] .',
        (1, 41),
        'sh:path is "p"',
        "IRI",
    ),
    (
        "pattern",
        'ex:S sh:targetNode ex:a ;\n  sh:property [ sh:path ex:p ;\n    sh:pattern "(" ] .',
        (3, 5),
        "unclosed group",
        "correct this",
    ),
    (
        "query",
        'ex:S sh:targetNode ex:a ;\n  sh:sparql [ sh:select "SELECT broken" ] .',
        (2, 3),
        "SPARQL error",
        "correct this",
    ),
    (
        "JavaScript",
        'ex:S sh:targetNode ex:a ; sh:js [ sh:jsFunctionName "f" ] .',
        (1, 27),
        "sh:js is not supported",
        "sh:sparql",
    ),
    (
        "no target",
        "ex:S a sh:NodeShape ; sh:class ex:C .",
        None,
        "no shape has a target",
        "add sh:targetClass",
    ),
    ("no Turtle", "ex:S sh:targetNode ,", (1, 20), "is not TURTLE", "correct the file"),
]


@pytest.mark.parametrize(
    ("turtle", "place", "message", "hint"),
    [case[1:] for case in REFUSED],
    ids=[c[0] for c in REFUSED],
)
def test_refused(
    shapes_of: Callable[..., Shapes],
    turtle: str,
    place: tuple[int, int] | None,
    message: str,
    hint: str,
) -> None:
    with pytest.raises(ShapesError) as caught:
        shapes_of(turtle)
    error = caught.value
    assert error.position == (None if place is None else Position(place[0] + LINES, place[1]))
    assert "shapes.ttl" in error.message
    assert message.lower() in error.message.lower()
    assert error.hint is not None
    assert hint in error.hint
    if "ex:S sh:target" in turtle and "," not in turtle[-2:]:
        assert "shape <http://example.org/S>" in error.message


def test_accepted(shapes_of: Callable[..., Shapes]) -> None:
    """What is legal, however unusual."""
    for turtle in (
        "ex:S a rdfs:Class, sh:NodeShape ; sh:property ex:P . ex:P sh:path ex:p ; sh:minCount 1 .",
        "ex:S sh:targetNode ex:a ; sh:property [ sh:path ( [ sh:inversePath ex:p ] [ sh:zeroOrMorePath ex:q ] ) ] .",
        "ex:S sh:targetNode ex:a ; sh:in () ; sh:deactivated true ; ex:note 1 ; sh:order 2.5 .",
        'ex:S sh:targetNode ex:a ; sh:message "a"@en, "b"@de ; sh:node [ sh:class ex:C, ex:D ] .',
        "ex:S sh:targetNode ex:a ; sh:property [ sh:path ex:p ; sh:node ex:S ] .",
    ):
        shapes_of(turtle)


def test_files(tmp_path: Path) -> None:
    """Several files are one graph; other formats are read, without positions."""
    (tmp_path / "a.ttl").write_text(
        f"{PREFIXES}ex:S sh:targetNode ex:a ; sh:property _:p . _:p sh:path ex:p ."
    )
    (tmp_path / "b.nt").write_text(
        "_:p <http://www.w3.org/ns/shacl#path> <urn:q> .\n"  # another node than that of the same label
    )
    Shapes([tmp_path / "a.ttl", tmp_path / "b.nt"])
    (tmp_path / "c.jsonld").write_text(
        '{"@id": "urn:S", "http://www.w3.org/ns/shacl#targetNode": {"@id": "urn:a"},'
        ' "http://www.w3.org/ns/shacl#minCount": 1}'
    )
    with pytest.raises(
        ShapesError, match=r"c\.jsonld: shape <urn:S>: sh:minCount needs an sh:path"
    ) as caught:
        Shapes(tmp_path / "c.jsonld")
    assert caught.value.position is None
    broken = tmp_path / "d.jsonld"
    broken.write_text("{")
    with pytest.raises(ShapesError, match=r"d\.jsonld"):
        Shapes(broken)
    for place in ("missing.ttl", "missing.jsonld", "shapes.docx"):
        with pytest.raises(UsageError, match=place):
            Shapes(tmp_path / place)
    with pytest.raises(ConstructMessagesError, match="no shapes file"):
        Shapes([])

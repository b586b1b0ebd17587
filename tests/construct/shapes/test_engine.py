"""Reports of single messages."""

import json
from collections.abc import Callable

import pytest

from construct_messages import Message, Quad, Term, iri, literal, triple
from construct_messages.construct.shapes import (
    Shapes,
    Validation,
    ValidationReport,
    dead_letter,
    without_report,
)
from construct_messages.construct.shapes.report import REPORT_GRAPH
from construct_messages.errors import DoesNotConform
from tests.support.conformance.shapes import SH, message, results_in

CITY = """
ex:City a sh:NodeShape ; sh:targetClass ex:City ;
  sh:property [ sh:path ex:population ; sh:maxCount 1 ; sh:datatype xsd:integer ; sh:message "no number"@en ] ;
  sh:property [ sh:path [ sh:inversePath ex:capital ] ; sh:minCount 1 ; sh:severity sh:Warning ] .
"""
EX = "http://example.org/"


def test_results(shapes_of: Callable[..., Shapes]) -> None:
    report = shapes_of(CITY).validate(message('ex:a a ex:City ; ex:population "many" .'), number=7)
    assert not report
    assert report.conforms is False
    by_path = {result.path: result for result in report.results}
    assert set(by_path) == {f"<{EX}population>", f"^<{EX}capital>"}
    result = by_path[f"<{EX}population>"]
    assert result.focus_node == iri(f"{EX}a")
    assert result.value == literal("many")
    assert (result.constraint, result.severity) == ("sh:datatype xsd:integer", f"<{SH}Violation>")
    assert result.messages == (literal("no number", language="en"),)
    assert (result.shape, result.source_shape) == (f"<{EX}City>", None)
    assert result.place is not None
    assert result.place.endswith("shapes.ttl:8")
    document = json.loads(json.dumps(report.as_json()))
    assert (document["message"], document["conforms"], len(document["results"])) == (7, False, 2)
    assert {
        "focusNode": f"<{EX}a>",
        "value": '"many"',
        "path": f"<{EX}population>",
    }.items() <= next(each for each in document["results"] if "value" in each).items()
    assert "message 7: " in str(report)
    assert '"no number"@en' in str(report)
    assert "sh:Warning: " in str(report)


def test_report_as_rdf(shapes_of: Callable[..., Shapes]) -> None:
    report = shapes_of(CITY).validate(message('ex:a a ex:City ; ex:population "many" .'), number=7)
    rdf = report.as_message()
    assert results_in(rdf.lines.decode()) == {
        (
            f"<{EX}a>",
            f"<{EX}population>",
            '"many"',
            f"<{SH}DatatypeConstraintComponent>",
            f"<{SH}Violation>",
            None,
        ): 1,
        (f"<{EX}a>", "_", None, f"<{SH}MinCountConstraintComponent>", f"<{SH}Warning>", None): 1,
    }
    assert Quad(Term("_:p"), iri(f"{SH}inversePath"), iri(f"{EX}capital")) in {
        quad._replace(subject=Term("_:p")) for quad in rdf
    }
    assert rdf.value(predicate=iri("urn:x-construct-messages:message")) == 7
    assert rdf == report.as_message()  # the same report has the same labels


def test_blank_nodes_keep_the_labels_of_the_message(shapes_of: Callable[..., Shapes]) -> None:
    shapes = shapes_of(
        "ex:S sh:targetSubjectsOf ex:p ; sh:closed true ; sh:property [ sh:path ex:p ; sh:nodeKind sh:IRI ] ."
    )
    nodes = [Term(f"_:{label}") for label in ("zz", "b0", "A.b-c", "q_1")]
    quads = [
        Quad(subject, iri(f"{EX}p"), object)
        for subject, object in zip(nodes, [*nodes[1:], Term('"_:zz"')], strict=True)
    ]
    report = shapes.validate(Message([Quad(nodes[2], iri(f"{EX}other"), nodes[0]), *quads]))
    assert {
        (result.focus_node, result.value)
        for result in report.results
        if result.constraint != "sh:closed true"
    } == {(quad.subject, quad.object) for quad in quads}
    assert {
        (result.focus_node, result.value)
        for result in report.results
        if result.constraint == "sh:closed true"
    } >= {(nodes[2], nodes[0])}


def test_all_graphs_are_one(shapes_of: Callable[..., Shapes]) -> None:
    shapes = shapes_of(
        "ex:S sh:targetSubjectsOf ex:p ; sh:property [ sh:path ex:q ; sh:minCount 1 ; sh:maxCount 1 ] ."
    )
    assert shapes.validate(message("ex:a ex:p 1 . ex:g { ex:a ex:q 2 } ex:h { ex:a ex:q 2 }"))
    assert not shapes.validate(message("ex:a ex:p 1 . ex:g { ex:a ex:q 2 } ex:h { ex:a ex:q 3 }"))
    assert shapes.validate(Message())


def test_target_nodes(shapes_of: Callable[..., Shapes]) -> None:
    """A named node is validated also where the message does not have it, with static data or without."""
    shapes = "ex:S sh:targetNode ex:a ; sh:property [ sh:path ex:p ; sh:minCount 1 ] ."
    for static, conforms in (("", False), ("ex:z ex:p 1 .", False), ("ex:a ex:q 1 .", True)):
        report = shapes_of(shapes, static).validate(message("ex:b ex:p 1 ."))
        assert report.conforms is conforms, static
        assert shapes_of(shapes, static).validate(message("ex:a ex:p 1 ."))


def test_warnings(shapes_of: Callable[..., Shapes]) -> None:
    one = message("ex:a a ex:City ; ex:population 3 .")
    assert not shapes_of(CITY).validate(one)
    report = shapes_of(CITY, allow_warnings=True).validate(one)
    assert report.conforms
    assert [result.severity for result in report.results] == [f"<{SH}Warning>"]
    seen: list[ValidationReport] = []
    validation = Validation(
        shapes_of(CITY, allow_warnings=True),
        on_invalid="stop",
        on_report=lambda _, each: seen.append(each),
    )
    assert list(validation.passed([one])) == [one]
    assert (validation.invalid, validation.results, len(seen)) == (0, 1, 1)


def test_what_cannot_be_validated(shapes_of: Callable[..., Shapes]) -> None:
    """It does not conform, and the report has the reason."""
    shapes = shapes_of("ex:S sh:targetNode ex:n0 ; sh:property [ sh:path ex:p ; sh:node ex:S ] .")
    chain = "".join(f"ex:n{n} ex:p ex:n{n + 1} ." for n in range(100))
    deep = shapes.validate(message(chain), number=2)
    assert deep.failure is not None
    assert "recursion limit" in deep.failure
    assert deep.as_json()["failure"] == deep.failure
    assert str(deep).startswith("message 2: cannot be validated: ")
    assert shapes.validate(message("ex:n0 ex:p ex:n0 ."))
    term = iri("urn:o")
    for _ in range(200):
        term = triple(iri("urn:s"), iri("urn:p"), term)
    nested = shapes.validate(Message([Quad(iri("urn:s"), iri("urn:p"), term)]))
    assert "triple terms" in (nested.failure or "")
    lenient = shapes.validate(Message([Quad(Term("<urn:a b>"), iri("urn:p"), term)]))
    assert lenient.failure is not None


def test_triple_terms(shapes_of: Callable[..., Shapes]) -> None:
    shapes = shapes_of(
        "ex:S sh:targetSubjectsOf ex:p ; sh:property [ sh:path ex:p ; sh:nodeKind sh:IRI ] ."
    )
    term = triple(Term("_:x"), iri("urn:p"), literal("a"))
    (result,) = shapes.validate(Message([Quad(Term("_:y"), iri(f"{EX}p"), term)])).results
    assert (result.focus_node, result.value) == ("_:y", term)


def test_passing_dropping_and_stopping(shapes_of: Callable[..., Shapes]) -> None:
    shapes = shapes_of(
        "ex:S sh:targetSubjectsOf ex:p ; sh:property [ sh:path ex:p ; sh:minInclusive 3 ] ."
    )
    messages = [message(f"ex:a ex:p {n} .") for n in (5, 1, 4, 2)]
    letters: list[Message] = []
    dropping = Validation(
        shapes, on_invalid="drop", on_report=lambda *given: letters.append(dead_letter(*given))
    )
    assert list(dropping.passed(messages)) == [messages[0], messages[2]]
    assert [without_report(letter) for letter in letters] == [messages[1], messages[3]]
    assert all(REPORT_GRAPH in {quad.graph for quad in letter} for letter in letters)
    assert list(Validation(shapes).passed(letters)) == [messages[1], messages[3]]
    stopping = Validation(shapes, on_invalid="stop").passed(messages)
    assert next(stopping) == messages[0]
    with pytest.raises(
        DoesNotConform, match=r"message 2 does not conform.*sh:minInclusive 3"
    ) as caught:
        next(stopping)
    assert (caught.value.number, caught.value.status) == (2, 422)
    assert caught.value.report["message"] == 2


async def test_asyncio(shapes_of: Callable[..., Shapes]) -> None:
    shapes = shapes_of(
        "ex:S sh:targetSubjectsOf ex:p ; sh:property [ sh:path ex:p ; sh:minInclusive 3 ] ."
    )
    messages = [message(f"ex:a ex:p {n} .") for n in (5, 1, 4)]

    async def each():
        for one in messages:
            yield one

    assert [one async for one in Validation(shapes, on_invalid="drop").apassed(each())] == messages[
        ::2
    ]

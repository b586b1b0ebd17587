"""NDJSON-LD by a layout of the template equals NDJSON-LD message by message, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from benchmarks import jsonld
from construct_messages.errors import UnsupportedByFormat
from construct_messages.formats import NDJSON_LD
from construct_messages.logs import EncoderOptions, encoder_for
from construct_messages.logs.jsonld.nodes import RDF_TYPE
from construct_messages.message import Message
from construct_messages.solutions import Solutions
from construct_messages.template import Blank, Constant, Pattern, Template, Variable
from construct_messages.terms import XSD, Term, iri, literal
from tests.support.strategies import SOLUTIONS, templates

PREFIXES = st.sampled_from(
    [
        {},
        {},
        {"ex": "http://example.org/"},
        {"ex": "http://example.org/a", "http": "urn:"},
        {"e": "http://example.org/", "x": XSD},
    ]
)


def slow(template: Template, solutions: list[tuple[Term, ...]], prefixes: dict[str, str]) -> bytes | str:
    encoder, written = encoder_for(NDJSON_LD, NDJSON_LD.own, EncoderOptions(prefixes)), b""
    try:
        for number, solution in enumerate(solutions, 5):
            written += encoder.encode(Message(template.instantiate(solution, number)))
    except UnsupportedByFormat as error:
        return str(error)
    return written


def fast(template: Template, solutions: list[tuple[Term, ...]], prefixes: dict[str, str], cut: int) -> bytes | str:
    encoder, written, number = (
        encoder_for(NDJSON_LD, NDJSON_LD.own, EncoderOptions(prefixes)).for_template(template),
        b"",
        5,
    )
    try:
        for part in (solutions[:cut], solutions[cut:]):
            if part:
                written += bytes(encoder.encode(Solutions(Solutions.of(part).utf8), number))
                number += len(part)
    except UnsupportedByFormat as error:
        return str(error)
    return written


@settings(max_examples=300)
@given(templates(), SOLUTIONS, PREFIXES, st.integers(0, 6))
def test_fast_equals_slow(
    template: Template, solutions: list[tuple[Term, ...]], prefixes: dict[str, str], cut: int
) -> None:
    expected = slow(template, solutions, prefixes)
    event("refused" if isinstance(expected, str) else "written")
    assert fast(template, solutions, prefixes, cut) == expected


def constant(local: str) -> Constant:
    return Constant(iri(f"http://example.org/{local}"))


A, B, C, D = (Variable(index) for index in range(4))
TYPE = Constant(RDF_TYPE)
TEMPLATES = {
    "one subject": [Pattern(A, TYPE, constant("T")), Pattern(A, constant("p"), B), Pattern(A, constant("p"), C)],
    "two subjects": [Pattern(A, constant("p"), B), Pattern(B, constant("p"), C), Pattern(A, constant("q"), D)],
    "a type that may be a literal": [Pattern(A, TYPE, B), Pattern(A, TYPE, constant("T"))],
    "a type that is one": [Pattern(A, TYPE, Constant(literal("50%s"))), Pattern(A, TYPE, constant("T%41"))],
    "a predicate that may be rdf:type": [Pattern(A, B, constant("T")), Pattern(A, B, C)],
    "predicates that may be equal": [Pattern(A, B, constant("o")), Pattern(A, constant("p"), C), Pattern(A, C, D)],
    "graphs": [Pattern(A, constant("p"), B, C), Pattern(A, constant("p"), B, constant("g")), Pattern(A, B, C)],
    "blank nodes": [Pattern(Blank(0), constant("p"), Blank(1)), Pattern(A, TYPE, Blank(0)), Pattern(A, B, C, Blank(1))],
    "the same twice": [Pattern(A, constant("p"), B), Pattern(A, constant("p"), B)],
    "only constants": [Pattern(constant("s"), constant("p"), Constant(literal("%d")))],
    "no pattern": [],
}
VALUES = [iri("http://example.org/a"), iri("http://example.org/p"), RDF_TYPE, Term("_:da"), literal("urn:x"), Term("")]
REGULAR = tuple(iri(f"http://example.org/{name}") for name in "wxyz")


@pytest.mark.parametrize("prefixes", [{}, {"ex": "http://example.org/"}], ids=["without prefixes", "with prefixes"])
@pytest.mark.parametrize("case", TEMPLATES)
def test_every_pair_of_equal_terms(case: str, prefixes: dict[str, str]) -> None:
    template = Template(("a", "b", "c", "d"), tuple(TEMPLATES[case]))
    for one in VALUES:
        for other in [*VALUES, REGULAR[0]]:
            few = [(one, other), (other, one)]
            solutions = [REGULAR, *((x, y, x, y) for x, y in few), REGULAR, *((x, x, y, y) for x, y in few), REGULAR]
            assert fast(template, solutions, prefixes, 3) == slow(template, solutions, prefixes)


def test_an_error_counts_the_messages_before_it() -> None:
    template = Template(("a",), (Pattern(A, constant("p"), A),))
    solutions = [(REGULAR[0],), (Term(""),), (REGULAR[1],), (Term("<urn:x%zz>"),)]
    expected = slow(template, solutions, {})
    assert isinstance(expected, str)
    assert expected.startswith("message 4: ")
    assert [fast(template, solutions, {}, cut) for cut in range(4)] == [expected] * 4


@pytest.mark.parametrize("patterns", [100, 101])
def test_templates_of_many_patterns(patterns: int) -> None:
    template = Template(("a",), tuple(Pattern(A, constant(f"p{number}"), A) for number in range(patterns)))
    assert fast(template, [(REGULAR[0],)], {}, 0) == slow(template, [(REGULAR[0],)], {})


def test_the_benchmark_runs() -> None:
    title, figures = jsonld.measure(60, rounds=1)
    assert title == "NDJSON-LD logs of 60 messages, 300 quads"
    assert all(figure.seconds > 0 for figure in figures)

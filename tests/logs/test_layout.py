"""Layouts of templates in the formats that have them: which equal terms share a text_encoder, and when one is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from construct_messages.errors import UnsupportedByFormat
from construct_messages.logs import EncoderOptions, encoder_for, text_encoder
from construct_messages.logs.jsonld.encoder import RDF_TYPE
from construct_messages.logs.text_encoder import LayoutEncoder
from construct_messages.rdf.formats import NDJSON_LD, RDF_XML, RDFM, YAML_LD, Format
from construct_messages.rdf.message import Message
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Blank, Constant, Pattern, Template, Variable
from construct_messages.rdf.terms import RDF, XSD, Term, iri, literal

Solution = tuple[Term, ...]

EX = {"ex": "http://example.org/"}


def new_encoder(format: Format, prefixes: Mapping[str, str] = EX) -> LayoutEncoder:
    encoder = encoder_for(format, format.own or RDFM, EncoderOptions(prefixes))
    assert isinstance(encoder, LayoutEncoder)
    return encoder


def slow(
    format: Format,
    template: Template,
    solutions: Sequence[Solution],
    prefixes: Mapping[str, str] = EX,
) -> object:
    encoder, written = new_encoder(format, prefixes), []
    try:
        for number, solution in enumerate(solutions, 5):
            written.append(encoder.encode(Message(template.instantiate(solution, number))))
    except UnsupportedByFormat as error:
        return str(error)
    return written


def fast(
    format: Format,
    template: Template,
    batches: Sequence[Sequence[Solution]],
    prefixes: Mapping[str, str] = EX,
) -> object:
    encoder, written, number = (
        new_encoder(format, prefixes).for_template(template),
        list[bytes](),
        5,
    )
    try:
        for solutions in batches:
            if solutions:
                written += encoder.encode(Solutions(Solutions.of(solutions).utf8), number)
                number += len(solutions)
    except UnsupportedByFormat as error:
        return str(error)
    return written


def constant(local: str) -> Constant:
    return Constant(iri(f"http://example.org/{local}"))


A, B, C, D = (Variable(index) for index in range(4))
TYPE = Constant(RDF_TYPE)
TEMPLATES = {
    "one subject": [
        Pattern(A, TYPE, constant("T")),
        Pattern(A, constant("p"), B),
        Pattern(A, constant("p"), C),
    ],
    "two subjects": [
        Pattern(A, constant("p"), B),
        Pattern(B, constant("p"), C),
        Pattern(A, constant("q"), D),
    ],
    "a type that may be a literal": [Pattern(A, TYPE, B), Pattern(A, TYPE, constant("T"))],
    "a type that is one": [
        Pattern(A, TYPE, Constant(literal("50%s"))),
        Pattern(A, TYPE, constant("T%41")),
    ],
    "a predicate that may be rdf:type": [Pattern(A, B, constant("T")), Pattern(A, B, C)],
    "predicates that may be equal": [
        Pattern(A, B, constant("o")),
        Pattern(A, constant("p"), C),
        Pattern(A, C, D),
    ],
    "objects of predicates that may be equal": [
        Pattern(A, B, C),
        Pattern(A, D, C),
        Pattern(C, B, A),
    ],
    "subjects that may be equal": [Pattern(A, constant("p"), C), Pattern(B, constant("p"), D)],
    "subjects that may be equal, and their predicates": [
        Pattern(A, C, A),
        Pattern(B, D, B),
        Pattern(A, C, B),
    ],
    "graphs": [
        Pattern(A, constant("p"), B, C),
        Pattern(A, constant("p"), B, constant("g")),
        Pattern(A, B, C),
    ],
    "blank nodes": [
        Pattern(Blank(0), constant("p"), Blank(1)),
        Pattern(A, TYPE, Blank(0)),
        Pattern(A, B, C, Blank(1)),
    ],
    "the same twice": [Pattern(A, constant("p"), B), Pattern(A, constant("p"), B)],
    "only constants": [Pattern(constant("s"), constant("p"), Constant(literal("%d")))],
    "no pattern": [],
}
VALUES = [
    *(
        iri("http://example.org/a"),
        iri("http://example.org/p"),
        RDF_TYPE,
        iri(f"{RDF}li"),
    ),  # the last is no predicate
    *(Term("_:da"), literal("urn:x"), Term("")),
]
REGULAR = tuple(iri(f"http://example.org/{name}") for name in "wxyz")


# graphs are for two of these; what the other refuses is the same, too
each_format = pytest.mark.parametrize(
    "format", [NDJSON_LD, YAML_LD, RDF_XML], ids=lambda format: format.name
)


@pytest.mark.one_in(2)
@each_format
@pytest.mark.parametrize(
    "prefixes",
    [
        pytest.param({}, marks=pytest.mark.slow, id="none"),
        pytest.param(EX, id="one"),
        pytest.param({"http": "urn:", "x": XSD}, marks=pytest.mark.slow, id="ambiguous"),
    ],
)
@pytest.mark.parametrize("case", TEMPLATES)
def test_every_pair_of_equal_terms(format: Format, case: str, prefixes: dict[str, str]) -> None:
    template = Template(("a", "b", "c", "d"), tuple(TEMPLATES[case]))
    for one in VALUES:
        for other in [*VALUES, REGULAR[0]]:
            few = [(one, other), (other, one)]
            solutions = [
                REGULAR,
                *((x, y, x, y) for x, y in few),
                REGULAR,
                *((x, x, y, y) for x, y in few),
                REGULAR,
            ]
            # in the last batch, no message is the first of its shape
            batches = [solutions[:3], solutions[3:], solutions]
            assert fast(format, template, batches, prefixes) == slow(
                format, template, solutions * 2, prefixes
            )


SOME = Template(
    ("a", "b"),
    (Pattern(A, constant("p"), B), Pattern(A, TYPE, constant("T")), Pattern(Blank(0), TYPE, A)),
)
X, Y, Z = (iri(f"http://example.org/{name}") for name in "xyz")
UNBOUND = Term("")
TRIPLE = "<<( <urn:s> <urn:p> <urn:o> )>>"


@pytest.mark.parametrize(
    ("format", "bad"),
    [(NDJSON_LD, TRIPLE), (YAML_LD, TRIPLE), (RDF_XML, '"\\u0001"')],
    ids=lambda value: getattr(value, "name", None),
)
@pytest.mark.parametrize("cut", range(5))
def test_an_error_counts_the_messages_before_it(format: Format, bad: str, cut: int) -> None:
    solutions = [(X, Y), (X, UNBOUND), (X, Z), (Y, Term(bad)), (Z, Y)]
    expected = slow(format, SOME, solutions)
    assert str(expected).startswith("message 4: ")
    assert fast(format, SOME, [solutions[:cut], solutions[cut:]]) == expected


@each_format
def test_a_layout_is_made_once_for_each_shape(
    format: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages of the same shape are not written by the plain encoder again."""
    shapes = [(X, Y), (X, literal("1")), (X, UNBOUND), (literal("1"), Y)]
    solutions = [solution for solution in shapes for _ in range(50)]
    expected = slow(format, SOME, [*solutions, *solutions])
    encoder = new_encoder(format)
    messages: list[Message] = []
    write = encoder.write_by
    monkeypatch.setattr(
        encoder,
        "write_by",
        lambda message, place: messages.append(message) or write(message, place),
    )
    batches = encoder.for_template(SOME)
    written = [
        *batches.encode(Solutions.of(solutions), 5),
        *batches.encode(Solutions.of(solutions), 205),
    ]
    assert written == expected
    assert len(messages) == len(shapes)


@each_format
def test_more_shapes_and_terms_than_are_remembered(
    format: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_encoder, "_MOST_LAYOUTS", 2)
    monkeypatch.setattr(text_encoder, "_MOST_TEXTS", 2)
    monkeypatch.setattr(text_encoder, "_LONGEST", 22)
    solutions = [
        (X, Y),
        (X, literal("1")),
        (X, UNBOUND),
        (literal("1"), Y),
        (iri("http://example.org/longer"), Y),
    ] * 3
    assert fast(format, SOME, [solutions, solutions[::-1]]) == slow(
        format, SOME, solutions + solutions[::-1]
    )


def test_predicates_of_rdf_xml_belong_to_the_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    template = Template(("s", "p", "o"), (Pattern(A, B, C),))
    predicates = [iri(f"http://example.org/{name}#p") for name in "abc"]
    solutions = [(X, predicate, Y) for predicate in predicates for _ in range(9)]
    expected = slow(RDF_XML, template, solutions)
    written: list[Message] = []
    encoder = new_encoder(RDF_XML)
    write = encoder.write_by
    monkeypatch.setattr(
        encoder, "write_by", lambda message, place: written.append(message) or write(message, place)
    )
    assert list(encoder.for_template(template).encode(Solutions.of(solutions), 5)) == expected
    assert len(written) == 3


@each_format
def test_no_solution(format: Format) -> None:
    assert bytes(new_encoder(format).for_template(SOME).encode(Solutions([[], []]), 0)) == b""

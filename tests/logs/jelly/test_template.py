"""Jelly logs written by template equal those of the plain encoder, byte for byte."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from construct_messages.errors import UnsupportedByFormat
from construct_messages.logs import DecoderOptions, EncoderOptions, decoder_for, encoder_for
from construct_messages.logs.jelly.options import JellyOptions, LogicalType, PhysicalType
from construct_messages.rdf.formats import JELLY
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Constant, Pattern, Template, Variable
from construct_messages.rdf.terms import XSD, Term, iri, literal
from tests.support.strategies import JELLY_OPTIONS, SOLUTIONS, templates


def outcome(encode: Callable[[], bytes]) -> bytes | str:
    try:
        return encode()
    except UnsupportedByFormat as error:
        return str(error)


@given(
    template=templates(),
    solutions=SOLUTIONS,
    cut=st.integers(0, 6),
    options=JELLY_OPTIONS,
    times=st.integers(1, 3),
)
def test_batches_equal_messages(
    template: Template,
    solutions: list[tuple[Term, ...]],
    cut: int,
    options: JellyOptions,
    times: int,
) -> None:
    plain, special = (encoder_for(JELLY, JELLY.own, EncoderOptions(own=options)) for _ in range(2))
    frames = special.for_template(template)
    number = 5
    for _ in range(times):
        for part in (solutions[:cut], solutions[cut:]):
            if part:
                messages = [
                    Message(template.instantiate(one, number + place))
                    for place, one in enumerate(part)
                ]
                expected = outcome(lambda messages=messages: b"".join(map(plain.encode, messages)))
                assert (
                    outcome(
                        lambda part=part, at=number: bytes(frames.encode(Solutions.of(part), at))
                    )
                    == expected
                )
                number += len(part)
                event("refused" if isinstance(expected, str) else "written")


P = [Constant(iri(f"http://example.org/ns#p{number}")) for number in range(6)]
STAR = Template(
    ("s", "a", "b", "c"),
    (
        Pattern(Variable(0), P[0], Constant(iri("http://example.org/C"))),
        Pattern(Variable(0), P[1], Constant(iri("http://example.com/D"))),
        Pattern(Variable(0), P[2], Variable(1)),
        Pattern(Variable(0), P[3], Variable(2)),
        Pattern(Variable(0), P[4], Constant(literal("1", datatype=XSD + "integer"))),
        Pattern(Variable(0), P[5], Variable(3)),
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize("names", [64, 200, 4000])
@pytest.mark.parametrize("datatypes", [2, 32])
def test_long_logs_outlive_their_tables(names: int, datatypes: int) -> None:
    """What is prepared is given up in time when the tables lose it, and prepared again."""
    options = JellyOptions(
        PhysicalType.QUADS,
        LogicalType.DATASETS,
        max_name_table_size=names,
        max_prefix_table_size=40,
        max_datatype_table_size=datatypes,
    )
    plain, special = (encoder_for(JELLY, JELLY.own, EncoderOptions(own=options)) for _ in range(2))
    frames = special.for_template(STAR)
    solutions = [
        (
            iri(f"http://example.org/thing/{number}"),
            iri(f"http://example.org/{number % 53}/{number % 7}"),
            literal(str(number % 5), datatype=f"urn:dt:{number % 90 // 30}"),
            [literal(f"value {number}"), iri(f"urn:x:{number % 11}"), Term(f"_:b{number}")][
                number % 3
            ],
        )
        for number in range(1500)
    ]
    expected = b"".join(
        plain.encode(Message(STAR.instantiate(one, number))) for number, one in enumerate(solutions)
    )
    log = b"".join(
        bytes(frames.encode(Solutions.of(solutions[start : start + 100]), start))
        for start in range(0, len(solutions), 100)
    )
    assert log == expected
    decoder = decoder_for(
        JELLY, options=DecoderOptions(shared_labels=True, labels=Labels("x", keep=True))
    )
    assert [*decoder.feed(log), *decoder.close()] == [
        Message(STAR.instantiate(one, number)) for number, one in enumerate(solutions)
    ]


def test_batches_and_messages_in_turn() -> None:
    options = JellyOptions(
        PhysicalType.QUADS,
        LogicalType.DATASETS,
        max_name_table_size=80,
        max_prefix_table_size=40,
        max_datatype_table_size=4,
    )
    plain, special = (encoder_for(JELLY, JELLY.own, EncoderOptions(own=options)) for _ in range(2))
    frames = special.for_template(STAR)
    solutions = [
        (iri(f"urn:{number}"), literal(str(number)), iri(f"urn:x/{number % 9}"), literal("x"))
        for number in range(60)
    ]
    for number, solution in enumerate(solutions):
        message = Message(STAR.instantiate(solution, number))
        expected = plain.encode(message)
        written = (
            special.encode(message)
            if number % 3 == 2
            else bytes(frames.encode(Solutions.of([solution]), number))
        )
        assert written == expected


@pytest.mark.parametrize("names", [24, 4000])
@pytest.mark.parametrize("size", [1, 7, 100])
def test_columns_of_literals(names: int, size: int) -> None:
    """Rows made a column at a time: of any length, that repeat an object, and behind IRIs that shorten what follows."""
    options = JellyOptions(
        PhysicalType.TRIPLES,
        LogicalType.GRAPHS,
        max_name_table_size=names,
        max_prefix_table_size=40,
        max_datatype_table_size=4,
    )
    one = Constant(literal("1"))
    objects: tuple[Constant | Variable, ...] = (
        one,
        Variable(1),
        Variable(2),
        one,
        Variable(3),
        Variable(4),
        Variable(4),
        Variable(5),
    )
    template = Template(
        ("s", "a", "b", "iri", "c", "d"),
        tuple(
            Pattern(Variable(0), Constant(iri(f"http://example.org/ns#q{number}")), object)
            for number, object in enumerate(objects)
        ),
    )
    solutions = [
        (
            iri(f"http://example.org/thing/{number}"),
            literal("x" * (number * 7 % 150)),
            literal(str(number % 3)),
            iri(
                ["http://example.org/ns#q4", "http://example.org/ns#q3", f"urn:x:{number % 5}"][
                    number // 3 % 3
                ]
            ),
            literal("é" * (number % 90) * (number % 40), language="fr"),
            literal("2" if number % 11 else "", datatype=XSD + "integer"),
        )
        for number in range(400)
    ]
    plain, special = (encoder_for(JELLY, JELLY.own, EncoderOptions(own=options)) for _ in range(2))
    frames = special.for_template(template)
    for start in range(0, len(solutions), size):
        part = solutions[start : start + size]
        expected = b"".join(
            plain.encode(Message(template.instantiate(each, start))) for each in part
        )
        assert bytes(frames.encode(Solutions.of(part), start)) == expected

"""What encoders specialised for templates write equals what plain ones write message by message, byte for byte."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from construct_messages.errors import UnsupportedByFormat
from construct_messages.logs import EncoderOptions, encoder_for
from construct_messages.rdf.formats import (
    JSON_DOCUMENTS,
    N_QUADS,
    N_TRIPLES,
    NDJSON_LD,
    RDF_XML,
    TRIG,
    TURTLE,
    VARIANTS,
    YAML_LD,
    Format,
    Syntax,
)
from construct_messages.rdf.formats.lookup import find_syntax
from construct_messages.rdf.message import Message
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Blank, Constant, Pattern, Template, Variable
from construct_messages.rdf.terms import RDF, XSD, Term
from tests.support.strategies import SOLUTIONS, templates


def _outcome(encode: object) -> object:
    try:
        return encode()  # type: ignore[operator]
    except UnsupportedByFormat as error:
        return str(error)


# namespaces of the strategies' terms, the shorter ones too
PREFIXES = st.dictionaries(
    st.sampled_from(["", "ex", "a", "MESSAGE", "http"]),  # the last makes IRIs of JSON-LD ambiguous
    st.sampled_from(["http://example.org/", "http://example.org/a", XSD, RDF, "urn:"]),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "format",
    [N_TRIPLES, N_QUADS, TURTLE, TRIG, NDJSON_LD, YAML_LD, RDF_XML, JSON_DOCUMENTS],
    ids=lambda format: format.name,
)
@given(
    template=templates(),
    solutions=SOLUTIONS,
    cut=st.integers(0, 6),
    syntax=st.sampled_from(VARIANTS),
    prefixes=PREFIXES,
    made=st.sampled_from([Solutions.of, lambda part: Solutions(Solutions.of(part).utf8)]),
)
def test_fast_equals_slow(
    format: Format,
    template: Template,
    solutions: list[tuple[Term, ...]],
    cut: int,
    syntax: Syntax,
    prefixes: dict[str, str],
    made: Callable[..., Solutions],
) -> None:
    plain, special = (
        encoder_for(format, format.own or syntax, EncoderOptions(prefixes)) for _ in range(2)
    )
    fast_encoder = special.for_template(template)

    def slow() -> bytes:
        return b"".join(
            plain.encode(Message(template.instantiate(solution, number)))
            for number, solution in enumerate([*solutions, *solutions], 5)
        )

    def fast() -> bytes:
        out, number = b"", 5
        # the second time, no message is the first of its shape, for which there is no layout yet
        for part in (solutions[:cut], solutions[cut:], solutions):
            if part:
                out += bytes(fast_encoder.encode(made(part), number))
                number += len(part)
        return out

    expected = _outcome(slow)
    assert _outcome(fast) == expected
    event("refused" if isinstance(expected, str) else "written")


@pytest.mark.parametrize(
    "format",
    [N_QUADS, TRIG, NDJSON_LD, YAML_LD, RDF_XML, JSON_DOCUMENTS],
    ids=lambda format: format.name,
)
@pytest.mark.parametrize("patterns", [99, 100, 101, 3000])
def test_templates_of_many_patterns(patterns: int, format: Format) -> None:
    predicates = [Constant(Term(f"<urn:p{number % 70}>")) for number in range(patterns)]
    template = Template(("s", "o"), tuple(Pattern(Variable(0), p, Variable(1)) for p in predicates))
    solutions = [(Term("<urn:s>"), Term('"o"')), (Term("<urn:t>"), Term(""))]
    encoder = encoder_for(format, format.own or find_syntax("rdfm"))
    slow = b"".join(
        encoder.encode(Message(template.instantiate(s, n))) for n, s in enumerate(solutions)
    )
    assert bytes(encoder.for_template(template).encode(Solutions.of(solutions), 0)) == slow
    assert len(re.findall(rb"[:\"]p\d", slow)) >= 70


@pytest.mark.slow
@pytest.mark.parametrize("graphs", [False, True])
def test_the_property_meets_what_it_is_about(graphs: bool) -> None:
    """Each of these happens in at least a tenth of the examples: else the property above would say little."""
    counts = {"unbound": 0, "literal subject": 0, "duplicate": 0, "shared blank": 0}
    examples = 0

    @settings(max_examples=200, derandomize=True)
    @given(templates(graphs=graphs), SOLUTIONS)
    def count(template: Template, solutions: list[tuple[Term, ...]]) -> None:
        nonlocal examples
        examples += 1
        used = {
            slot.index
            for pattern in template.patterns
            for slot in pattern
            if isinstance(slot, Variable)
        }
        subjects = {p.subject.index for p in template.patterns if isinstance(p.subject, Variable)}
        blanks = [
            slot
            for pattern in template.patterns
            for slot in set(pattern)
            if isinstance(slot, Blank)
        ]
        counts["unbound"] += any(not solution[index] for solution in solutions for index in used)
        counts["literal subject"] += any(
            solution[index][:1] == '"' for solution in solutions for index in subjects
        )
        counts["shared blank"] += len(blanks) > len(set(blanks))
        counts["duplicate"] += any(
            len(template.instantiate(solution, 0))
            < sum(
                len(Template(template.variables, (p,)).instantiate(solution, 0))
                for p in template.patterns
            )
            for solution in solutions
        )

    count()
    assert all(number >= examples / 10 for number in counts.values()), (counts, examples)

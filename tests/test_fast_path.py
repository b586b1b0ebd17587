"""The fast path of the line formats equals the slow path, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from construct_messages.errors import CannotCarry
from construct_messages.formats import FORMATS, SYNTAXES, Format, Syntax, find_format, find_syntax
from construct_messages.logs.lines import LinesEncoder
from construct_messages.message import Message
from construct_messages.solutions import Solutions
from construct_messages.template import Blank, Constant, Pattern, Template, Variable
from construct_messages.terms import Term
from tests.strategies import SOLUTIONS, templates


def _outcome(encode: object) -> object:
    try:
        return encode()  # type: ignore[operator]
    except CannotCarry as error:
        return str(error)


@given(
    template=templates(),
    solutions=SOLUTIONS,
    cut=st.integers(0, 6),
    format=st.sampled_from([format for format in FORMATS if format.extension in ("nt", "nq")]),
    syntax=st.sampled_from(SYNTAXES),
    as_bytes=st.booleans(),
)
def test_fast_equals_slow(
    template: Template, solutions: list[tuple[Term, ...]], cut: int, format: Format, syntax: Syntax, as_bytes: bool
) -> None:
    plain, special = LinesEncoder(format, syntax), LinesEncoder(format, syntax)
    lines = special.for_template(template)

    def slow() -> bytes:
        return b"".join(
            plain.encode(Message(template.instantiate(solution, number)))
            for number, solution in enumerate(solutions, 5)
        )

    def fast() -> bytes:
        out, number = b"", 5
        for part in (solutions[:cut], solutions[cut:]):
            if part:
                batch = Solutions.of(part)
                out += lines.encode(Solutions(batch.utf8) if as_bytes else batch, number)
                number += len(part)
        return out

    expected = _outcome(slow)
    assert _outcome(fast) == expected
    event("refused" if isinstance(expected, str) else "written")


@pytest.mark.parametrize("patterns", [99, 100, 101, 3000])
def test_templates_of_many_patterns(patterns: int) -> None:
    predicates = [Constant(Term(f"<urn:p{number % 70}>")) for number in range(patterns)]
    template = Template(("s", "o"), tuple(Pattern(Variable(0), p, Variable(1)) for p in predicates))
    solutions = [(Term("<urn:s>"), Term('"o"')), (Term("<urn:t>"), Term(""))]
    encoder = LinesEncoder(find_format("nq")[0], find_syntax("rdfm"))
    slow = b"".join(encoder.encode(Message(template.instantiate(s, n))) for n, s in enumerate(solutions))
    assert encoder.for_template(template).encode(Solutions.of(solutions), 0) == slow
    assert slow.count(b"\n") == 72


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
        used = {slot.index for pattern in template.patterns for slot in pattern if isinstance(slot, Variable)}
        subjects = {p.subject.index for p in template.patterns if isinstance(p.subject, Variable)}
        blanks = [slot for pattern in template.patterns for slot in set(pattern) if isinstance(slot, Blank)]
        counts["unbound"] += any(not solution[index] for solution in solutions for index in used)
        counts["literal subject"] += any(solution[index][:1] == '"' for solution in solutions for index in subjects)
        counts["shared blank"] += len(blanks) > len(set(blanks))
        counts["duplicate"] += any(
            len(template.instantiate(solution, 0))
            < sum(len(Template(template.variables, (p,)).instantiate(solution, 0)) for p in template.patterns)
            for solution in solutions
        )

    count()
    assert all(number >= examples / 10 for number in counts.values()), (counts, examples)

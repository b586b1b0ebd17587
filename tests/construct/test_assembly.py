"""The bytes that batches of solutions add to a log, and their bound."""

from __future__ import annotations

import pytest

from construct_messages.construct.assembly import Assembly, Options, Writing
from construct_messages.errors import LimitExceeded
from construct_messages.logs import EncoderOptions, encoder_for
from construct_messages.rdf.message import Message
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Constant, Pattern, Template, Variable
from construct_messages.rdf.terms import iri, literal
from tests.support.logs.kinds import KINDS, Kind

PREFIXES = {"ex": "http://example.org/"}
TEMPLATE = Template(
    ("s", "o"), (Pattern(Variable(0), Constant(iri("http://example.org/p")), Variable(1)),)
)
# the names of the first are long, and those of the largest stand in it: an encoder with tables writes them once
SOLUTIONS = [
    (iri(f"http://example.org/{'x' * 90}"), literal("1")),
    (iri(f"http://example.org/{'x' * 90}"), literal("o" * 150)),
    (iri("http://example.org/b"), literal("2")),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(
    "options", [Options(), Options(skip_empty=True)], ids=["by batch", "by message"]
)
def test_the_bound_of_a_message_is_of_what_stands_in_the_log(kind: Kind, options: Options) -> None:
    encoder = encoder_for(kind.format, kind.syntax, EncoderOptions(PREFIXES, graphs=False))
    encoder.start()
    encoded = [
        encoder.encode(Message(TEMPLATE.instantiate(solution, number)))
        for number, solution in enumerate(SOLUTIONS)
    ]
    largest = max(map(len, encoded))

    def feed(bound: int) -> bytes:
        bounded = Options(skip_empty=options.skip_empty, message_bytes=bound)
        writing = Writing(Assembly(TEMPLATE, bounded, False), TEMPLATE, *kind, PREFIXES)
        return b"".join(
            writing.feed(Solutions.of(batch)) for batch in (SOLUTIONS[:1], SOLUTIONS[1:])
        )

    assert feed(largest).endswith(b"".join(encoded))
    with pytest.raises(
        LimitExceeded, match=f"a message of {largest} bytes, where {largest - 1} are allowed"
    ):
        feed(largest - 1)


@pytest.mark.parametrize("skip_empty", [False, True], ids=["by batch", "by message"])
@pytest.mark.parametrize(
    ("most", "limit", "batches", "passed"),
    [
        (2, None, 1, False),
        (5, None, 2, False),
        (None, 2, 1, True),
        (None, 5, 2, True),
        (3, 3, 2, False),
    ],
    ids=[
        "max_messages",
        "in the second batch",
        "message_limit",
        "in the second batch, too",
        "both",
    ],
)
def test_bounds_of_messages(
    skip_empty: bool, most: int | None, limit: int | None, batches: int, passed: bool
) -> None:
    assembly = Assembly(
        TEMPLATE, Options(skip_empty=skip_empty, max_messages=most, message_limit=limit), False
    )
    messages: list[Message] = []

    def feed() -> None:
        for _ in range(batches):
            messages.extend(assembly.feed(Solutions.of(SOLUTIONS)))

    if passed:
        with pytest.raises(LimitExceeded, match=f"more than {limit} messages"):
            feed()
        assert assembly.message_count == (limit or 0) + 1
    else:
        feed()
        assert len(messages) == assembly.message_count == most

"""JSON numbers are in RDF what they are to PyLD and jsonld.js, in every path that reads JSON-LD.

JSON-LD 1.1 API, section 8.6 (data round tripping).
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache
from math import isfinite

import pytest

from construct_messages import read_log
from construct_messages.rdf.formats import YAML_LD
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import XSD
from construct_messages.server.streams.publishing import read_messages
from tests.support.logs.cases.jsonld import parse
from tests.support.logs.json_ld import by_jsonld_js, by_pyld

pytestmark = pytest.mark.slow

TYPES = [None, None, f"{XSD}double", f"{XSD}integer", f"{XSD}decimal", f"{XSD}float"]


def tokens() -> Iterator[str]:
    """JSON numbers without end: about edges, of few digits, of all doubles, integers with a fraction of 0."""
    drawn = random.Random(26)
    edges = [
        0,
        10**15,
        2**53,
        10**16,
        2**63,
        2**64,
        10**19,
        10**20,
        123456789012345680000,
        10**21,
        10**22,
        10**30,
    ]
    yield from [
        "1e20",
        "123456789012345680000",
        "12345678901234567890.0",
        "-0.0",
        "-0",
        "1E+2",
        "0.1e1",
        "5e-324",
    ]
    while True:
        sign = drawn.choice(["", "-"])
        yield f"{sign}{drawn.choice(edges) + drawn.randint(-2, 2)}".replace("--", "")
        yield f"{sign}{drawn.randrange(10 ** drawn.randint(1, 22))}{drawn.choice(['', '.0', '.5', '.000'])}"
        yield f"{sign}{drawn.randrange(10**4)}e{drawn.randint(-30, 30)}"
        yield repr(drawn.choice(edges) * drawn.uniform(-2, 2))
        (double,) = struct.unpack("<d", drawn.randbytes(8))
        if isfinite(double):
            yield repr(double)


@cache
def document() -> str:
    """A document with 10,000 numbers, each as the value of its own property."""
    drawn = random.Random(26)
    numbers = [token for token, _ in zip(tokens(), range(10_000), strict=False)]
    assert len(numbers) == 10_000
    values = (
        token if datatype is None else f'{{"@value": {token}, "@type": "{datatype}"}}'
        for token in numbers
        for datatype in [drawn.choice(TYPES)]
    )
    members = ", ".join(f'"urn:p{number}": {value}' for number, value in enumerate(values))
    return f'{{"@id": "urn:s", {members}}}'


def untyped(text: str) -> str:
    return json.dumps(
        {name: value for name, value in json.loads(text).items() if not isinstance(value, dict)}
    )


def by_name(message: Message) -> dict[str, str]:
    return {quad.predicate: quad.object for quad in message}


def in_a_log(text: str) -> Message:
    (message,) = read_log([text.encode() + b"\n"], format="ndjsonld")
    return message


def under_terms(text: str) -> Message:
    context = b'{"@context": {"p": {"@id": "urn:other"}}}\n'
    (message,) = read_log([context + text.encode() + b"\n"], format="ndjsonld")
    return message


def in_yaml(text: str) -> Message:
    (message,) = read_log([b"---\n" + text.encode() + b"\n...\n"], format=YAML_LD.name)
    return message


def in_an_inbox(text: str) -> Message:
    (message,) = read_messages(
        "application/ld+json", text.encode(), base="http://e/", message_bytes=1 << 24, most=1
    )
    return message


PATHS: dict[str, Callable[[str], Message]] = {
    "a log": in_a_log,
    "a log under a context of terms": under_terms,
    "a YAML-LD log": in_yaml,
    "the body of a request": in_an_inbox,
}


@cache
def of_pyld() -> dict[str, str]:
    (quads,) = by_pyld([json.loads(document())])
    return by_name(parse(quads))


@pytest.mark.parametrize("path", PATHS)
def test_numbers_are_those_of_pyld(path: str) -> None:
    assert len(of_pyld()) == 10_000
    assert by_name(PATHS[path](document())) == of_pyld()


def test_untyped_numbers_take_the_short_way() -> None:
    came = by_name(in_a_log(untyped(document())))
    assert len(came) > 3_000
    assert came == {name: object for name, object in of_pyld().items() if name in came}


def test_numbers_are_those_of_jsonld_js() -> None:
    """But where JavaScript takes them for other numbers: see `is_another_in_js`."""
    given = {
        name: value
        for name, value in json.loads(document()).items()
        for number in [value["@value"] if isinstance(value, dict) else value]
        if name != "@id" and not is_another_in_js(number)
    }
    assert len(given) > 7_000
    (quads,) = by_jsonld_js([{"@id": "urn:s", **given}])
    came = by_name(in_a_log(json.dumps({"@id": "urn:s", **given})))
    assert came == by_name(parse(quads))


def is_another_in_js(number: int | float) -> bool:
    """Whether JavaScript has no such number, rounds it up halfway between two of 16 digits, or jsonld.js makes it 0."""
    if isinstance(number, int):
        return abs(number) > 2**53
    if number == 0:
        return True  # -0.0, which has no sign there
    digits = "".join(map(str, Decimal(number).as_tuple().digits)).rstrip("0")
    # jsonld.js takes for an integer whatever it shows without a point, as it does 1e-7
    return (len(digits) == 17 and digits.endswith("5")) or (
        number % 1 != 0 and "." not in repr(number)
    )

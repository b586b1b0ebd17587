"""Logs twice as long take about twice the work, and few bytes do not make much: work is counted, not timed."""

from __future__ import annotations

import gzip
import json
from typing import Final

import pytest

from construct_messages import read_log
from construct_messages.errors import LimitExceeded
from tests.support.logs.counted_work import work_of
from tests.support.logs.growing import GROWING
from tests.support.logs.hostile import ALIKE, PREDICATE, field, jelly

pytestmark = pytest.mark.slow

_TIMES: Final = 2.3
_NUMBER: Final = 200


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", GROWING)
def test_twice_the_length_is_twice_the_work(name: str) -> None:
    """Issue 13, 15: for every kind of input, what it is made of may come many times, be long, or make much."""
    format, log = GROWING[name]
    work_of(log(2), format)  # what is loaded and compiled once
    once, twice = log(_NUMBER), log(2 * _NUMBER)
    assert work_of(twice, format) <= max(_TIMES, 1.15 * len(twice) / len(once)) * work_of(
        once, format
    )


@pytest.mark.parametrize("text", ["\n", " \n", "\r\n", "# comment\n"])
def test_lines_that_say_nothing_take_little(text: str) -> None:
    """Issue 13, 15: a few bytes of a packed log are millions of blank lines."""
    log = text.encode() * 20_000
    # what patterns pass is about the text; a step for each line would be 40,000 and more
    assert work_of(log, "nq") < len(log) * 1.5


BOMBS: Final[dict[str, tuple[str, bytes]]] = {
    "13.15-a list": ("ttl", b"<urn:s> <urn:p> (" + b" 1" * 200_000 + b" ) ."),
    "13.15-a list in a graph": ("trig", b"<urn:g> { <urn:s> <urn:p> (" + b" 1" * 200_000 + b" ) }"),
    "13.15-contexts in an array": (
        "ndjsonld",
        json.dumps(
            {"@context": [{f"t{i}": "urn:t"} for i in range(20_000)], "@id": "urn:a", "t0": 1}
        ).encode(),
    ),
    "13.15-blank lines": ("nq", gzip.compress(b"\n" * (1 << 25))),
    "an active context of an array": (
        "ndjsonld",
        json.dumps({"@context": [{f"t{i}": "urn:t"} for i in range(20_000)]}).encode(),
    ),
    "a list in JSON": (
        "ndjsonld",
        json.dumps({"@id": "urn:a", "urn:p": {"@list": [1] * 200_000}}).encode(),
    ),
    "values of a long node": (
        "ndjsonld",
        json.dumps({"@id": "urn:" + "a" * 100_000, "urn:p": list(range(20_000))}).encode(),
    ),
    "names of a long vocabulary": (
        "ndjsonld",
        json.dumps(
            {"@context": {"@vocab": "urn:" + "a" * 100_000}, **{f"k{i}": 1 for i in range(9000)}}
        ).encode(),
    ),
    "names of a long prefix": (
        "ndjsonld",
        json.dumps(
            {"@context": {"p": "urn:" + "a" * 100_000 + "/"}, **{f"p:{i}": 1 for i in range(9000)}}
        ).encode(),
    ),
    "a chain of prefixes": (
        "ndjsonld",
        json.dumps(
            {
                "@context": {
                    "t0": "http://e/",
                    **{f"t{i}": f"t{i - 1}:{'a' * 50}" for i in range(1, 900)},
                },
                "@included": [{"@id": "t899:a", "t899:b": "c"}] * 5000,
            }
        ).encode(),
    ),
    "a chain of bases in contexts": (
        "ndjsonld",
        json.dumps(
            {"@context": [{"@base": "http://e/"}, *[{"@base": "a/" * 100}] * 200], "@id": "a"}
        ).encode(),
    ),
    "aliases": (
        "yamlld",
        b"---\nurn:q: &x {urn:p: [" + b"1, " * 9000 + b"]}\nurn:p:\n" + b"- *x\n" * 9000,
    ),
    "directives": (
        "yamlld",
        b"".join(b"%%TAG !e%d! tag:e:\n" % i for i in range(9000)) + b"--- {}\n",
    ),
    "blank lines between documents": ("yamlld", gzip.compress(b"\n" * (3 << 21) + b"--- {}\n")),
    "a collection": (
        "rdfxml",
        b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="urn:"><rdf:Description>'
        b'<e:p rdf:parseType="Collection">'
        + b"<e:c/>" * 200_000
        + b"</e:p></rdf:Description></rdf:RDF>",
    ),
    "properties of a long subject": (
        "rdfxml",
        b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="urn:">'
        b'<rdf:Description rdf:about="urn:'
        + b"a" * 100_000
        + b'">'
        + b"<e:c/>" * 9000
        + b"</rdf:Description></rdf:RDF>",
    ),
    "names of a long namespace": (
        "ttl",
        b"PREFIX : <urn:" + b"a" * 100_000 + b"> :a :b" + b" :c ," * 9000 + b" :d .",
    ),
    "objects of a long subject": (
        "ttl",
        b"<urn:" + b"a" * 100_000 + b"> <urn:b>" + b" 1 ," * 9000 + b" 2 .",
    ),
    "triples of a long graph": (
        "trig",
        b"<urn:" + b"a" * 100_000 + b"> { <urn:a> <urn:b>" + b" 1 ," * 9000 + b" 2 }",
    ),
    "statements that repeat all terms": (
        "jelly",
        jelly(PREDICATE, field(2, ALIKE + field(10, b"b")), *[field(2, b"")] * ((1 << 20) + 1)),
    ),
    "a chain of bases": ("ttl", b"BASE <http://e/>\n" + b"BASE <a/>\n" * 20_000),
    "a chain of bases in messages": (
        "ttl",
        b"BASE <http://e/>\n" + b"# @message\nBASE <a/>\n" * 9000,
    ),
    "prefixes of a long base": (
        "trig",
        b"BASE <http://" + b"e" * 100_000 + b"/>\n" + b"PREFIX p: <a>\n" * 9000,
    ),
    "bases within a long one": (
        "rdfxml",
        b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xml:base="http://'
        + b"e" * 9000
        + b'"/>',
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_few_bytes_do_not_make_much(name: str) -> None:
    """Issue 13, 15: messages of 4 MiB are allowed, and each of these would be more, or take as long."""
    format, log = BOMBS[name]
    with pytest.raises(LimitExceeded, match=r"message [0-9]+"):
        list(read_log(log, format, message_bytes=1 << 22))


def test_what_is_large_and_no_more_is_read() -> None:
    """The bound is what it is said to be: what a message is as N-Quads."""
    log = b"<urn:s> <urn:p> (" + b" 1" * 50_000 + b" ) ."
    (message,) = read_log(log, "ttl")
    characters = sum(len(term) for quad in message for term in quad if term is not None) + 3 * len(
        message
    )
    assert len(list(read_log(log, "ttl", message_bytes=2 * characters))) == 1
    with pytest.raises(LimitExceeded, match="as N-Quads"):
        list(read_log(log, "ttl", message_bytes=characters // 2))

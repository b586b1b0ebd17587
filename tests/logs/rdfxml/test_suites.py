"""RDF/XML logs: the W3C's suite, what rdflib reads, and what is written is read again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import LogError
from construct_messages.logs import DecoderOptions
from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.logs.rdfxml.decoder import read_document
from construct_messages.rdf.formats import RDF_XML
from construct_messages.rdf.message import Message
from tests.support.logs.cases.rdfxml import KIND, log, messages, prefixes, rdflib_agrees
from tests.support.logs.kinds import cut, isomorphic, read
from tests.support.places import shared_path

# --- the suites, other readers, and properties ---


class Case(NamedTuple):
    name: str
    document: Path
    result: Path | None

    @property
    def base(self) -> str:
        return f"https://w3c.github.io/rdf-tests/rdf/{self.name}"

    def expected(self) -> Message:
        assert self.result is not None
        return to_message(ox.parse(path=str(self.result), format=ox.RdfFormat.N_TRIPLES))


MANIFEST = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")


def w3c_cases() -> Iterator[Case]:
    """The RDF/XML suites' cases; one with a result is positive."""
    for folder in ("rdf11/rdf-xml", "rdf12/rdf-xml/eval"):
        manifest = shared_path(f"suites/w3c/rdf/{folder}/manifest.ttl")
        tests = rdflib.Graph().parse(manifest)
        for test, action in sorted(tests.subject_objects(MANIFEST.action)):
            result = tests.value(test, MANIFEST.result)
            name = f"{folder}/{str(action).partition(f'{folder}/')[2]}"
            yield Case(
                name,
                *(
                    path and manifest.parent / str(path).partition(f"{folder}/")[2]
                    for path in (action, result)
                ),
            )


def commented_out() -> Iterator[Case]:
    """Approved tests that the manifest of RDF 1.1 leaves out: XML literals and exclusive canonical XML decide them."""
    folder = "rdf11/rdf-xml"
    manifest = shared_path(f"suites/w3c/rdf/{folder}/manifest.ttl")
    text = manifest.read_text(encoding="utf-8")
    for action, result in re.findall(
        r"^#  mf:action <(.+?)>(?:;\n#  mf:result <(.+?)>)? \.?$", text, re.MULTILINE
    ):
        yield Case(
            f"{folder}/{action}",
            manifest.parent / action,
            manifest.parent / result if result else None,
        )


@pytest.mark.suite
def test_w3c() -> None:
    """Each positive document, its lines joined, is a log of one message, and each negative one an error."""
    counts = {True: 0, False: 0}
    for case in w3c_cases():
        line = re.sub(rb"\r?\n", b" ", case.document.read_bytes().strip())
        reading = read([line + b"\n"], KIND, base=case.base)
        counts[case.result is not None] += 1
        if case.result is None:
            assert isinstance(reading.error, LogError), case.name
            continue
        assert reading.error is None, f"{case.name}: {reading.error}"
        (found,) = reading.messages
        assert found.isomorphic(case.expected()), case.name
    assert counts == {True: 155, False: 42}


@pytest.mark.suite
def test_w3c_documents() -> None:
    """As they are, over many lines; and those that the manifest leaves out."""
    counts = {True: 0, False: 0}
    for case in (*w3c_cases(), *commented_out()):
        document = case.document.read_bytes()
        counts[case.result is not None] += 1
        if case.result is None:
            with pytest.raises(LogError):
                list(read_document(RDF_XML, document, DecoderOptions(base=case.base)))
        else:
            (found,) = read_document(RDF_XML, document, DecoderOptions(base=case.base))
            assert found.isomorphic(case.expected()), case.name
    assert counts == {True: 161, False: 43}


@given(st.lists(messages, max_size=4), prefixes, st.lists(st.integers(0, 2000)))
def test_round_trip(messages: list[Message], prefixes: dict[str, str], places: list[int]) -> None:
    text = log(*messages, prefixes=prefixes)
    assert text.count(b"\n") == len(messages)
    reading = read(cut(text, [min(place, len(text)) for place in places]), KIND)
    assert reading.error is None
    assert isomorphic(reading.messages, messages)


@given(messages)
def test_rdflib_reads_the_same(written: Message) -> None:
    assert rdflib_agrees(written)

"""The Jelly project's own test suite, all of it, through `read_log` and `write_log` (issue 13, 10).

A case's frames are its files. Statements are compared in order, each once, and blank nodes by one mapping over a case,
as labels are shared by its files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import pytest
import rdflib
from pyjelly.integrations.generic.parse import parse_jelly_grouped
from rdflib.collection import Collection
from rdflib.namespace import RDF, Namespace

from construct_messages import read_log, write_log
from construct_messages.errors import LogError, TermError, UnsupportedByFormat, UsageError
from construct_messages.logs.reading import LogReader
from construct_messages.options import JellyOptions
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import Term, is_blank, is_triple, parse_term, triple, triple_parts
from tests.support.places import shared_path

pytestmark = pytest.mark.suite

MF = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
JELLYT = Namespace("https://w3id.org/jelly/dev/tests/vocab#")
BASE = "https://w3id.org/jelly/dev/tests/rdf/"
ROOT = "suites/jelly/test/rdf"


class Case(NamedTuple):
    """One entry of a manifest."""

    name: str
    positive: bool
    action: list[Path]
    result: list[Path]


@cache
def cases(direction: str) -> list[Case]:
    folder = shared_path(f"{ROOT}/{direction}")
    graph = rdflib.Graph().parse(folder / "manifest.ttl")

    def paths(node: rdflib.term.Node | None) -> list[Path]:
        if node is None:
            return []
        nodes = list(Collection(graph, node)) if (node, RDF.first, None) in graph else [node]
        return [folder / str(each).removeprefix(f"{BASE}{direction}/") for each in nodes]

    (entries,) = graph.objects(None, MF.entries)
    return [
        Case(
            str(entry).removeprefix(f"{BASE}{direction}/"),
            (entry, RDF.type, JELLYT.TestPositive) in graph,
            paths(graph.value(entry, MF.action)),
            paths(graph.value(entry, MF.result)),
        )
        for entry in Collection(graph, entries)
    ]


def names(direction: str) -> Sequence[object]:
    """The cases as parameters; one that skips where there is no suite."""
    try:
        return [pytest.param(case, id=case.name) for case in cases(direction)]
    except pytest.skip.Exception as absent:
        return [pytest.param(None, id=direction, marks=pytest.mark.skip(str(absent)))]


# --- what the suite's statements are written in: N-Quads, generalized, with quoted triples ---------------------------

TOKEN = re.compile(
    r'\s*(<<|>>|<[^>]*>|_:[^\s<>]+|"(?:[^"\\]|\\.)*"(?:@[\w\-]+|\^\^<[^>]*>)?|\.)\s*'
)


def statements(text: str) -> Iterator[Quad]:
    terms: list[Term] = []
    open_at: list[int] = []
    place = 0
    while place < len(text.rstrip()):
        match = TOKEN.match(text, place)
        assert match, text[place : place + 80]
        place = match.end()
        token = match[1]
        if token == "<<":
            open_at.append(len(terms))
        elif token == ">>":
            start = open_at.pop()
            terms[start:] = [triple(*terms[start:], generalized=True)]
        elif token == ".":
            yield Quad(*terms)
            terms = []
        else:
            terms.append(parse_term(token))


def read(path: Path) -> Message:
    return Message(statements(path.read_text(encoding="utf-8")))


class Nodes:
    """A mapping of blank nodes to blank nodes, one to one, that grows as it is asked for."""

    def __init__(self) -> None:
        self.there: dict[Term, Term] = {}
        self.back: dict[Term, Term] = {}

    def same(self, one: Message, other: Message) -> bool:
        if len(one) != len(other):
            return False
        return all(
            (a is None) is (b is None) and (a is None or b is None or self.match(a, b))
            for p, q in zip(one, other, strict=True)
            for a, b in zip(p, q, strict=True)
        )

    def match(self, one: Term, other: Term) -> bool:
        if is_triple(one) and is_triple(other):
            return all(map(self.match, triple_parts(one), triple_parts(other)))
        if is_blank(one) and is_blank(other):
            return (
                self.there.setdefault(one, other) == other
                and self.back.setdefault(other, one) == one
            )
        return one == other


def decode(data: bytes, size: int = 1 << 20) -> tuple[list[Message], LogReader]:
    """The messages as the suite has them: of generalized RDF, with labels that mean the same in all files of a case."""
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    reader = read_log(pieces, "jelly", jelly_conformance=True)
    return list(reader), reader


@pytest.mark.parametrize("size", [1, 1 << 20], ids=["byte by byte", "whole"])
@pytest.mark.parametrize("case", names("from_jelly"))
def test_from_jelly(case: Case, size: int) -> None:
    data = case.action[0].read_bytes()
    if not case.positive:
        with pytest.raises(LogError, match=r"^message \d+: byte \d+: "):
            decode(data, size)
        return
    messages, _ = decode(data, size)
    # a frame with nothing in it has a file only in some cases
    expected = [read(path) for path in case.result]
    if len(messages) != len(expected):
        messages, expected = [m for m in messages if len(m)], [m for m in expected if len(m)]
    assert len(messages) == len(expected)
    nodes = Nodes()
    for message, wanted in zip(messages, expected, strict=True):
        assert nodes.same(message, wanted)


@pytest.mark.parametrize("case", names("to_jelly"))
def test_to_jelly(case: Case) -> None:
    options_file, *inputs = case.action
    messages = [read(path) for path in inputs]

    def encode() -> tuple[JellyOptions | None, bytes]:
        _, reader = decode(options_file.read_bytes())
        out = BytesIO()
        write_log(messages, out, "jelly", options=reader.options)
        return reader.options, out.getvalue()

    if not case.positive:
        with pytest.raises((UnsupportedByFormat, LogError, TermError, UsageError)):
            encode()
        return
    options, log = encode()
    again, reader = decode(log)
    assert options is not None
    assert reader.options == options
    nodes = Nodes()
    assert [
        nodes.same(message, wanted) for message, wanted in zip(again, messages, strict=True)
    ] == [True] * len(again)
    # and as the project's own Python library reads it
    peer = list(parse_jelly_grouped(BytesIO(log)))
    assert [len(sink) for sink in peer] == [len(message) for message in messages]


def test_all_there_is() -> None:
    counts = [len(cases(direction)) for direction in ("from_jelly", "to_jelly")]
    assert counts == [110, 77]

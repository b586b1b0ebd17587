"""CSRBench (Dell'Aglio et al. 2013): its queries and streams, and the answers of three engines that were recorded.

https://www.w3.org/wiki/CSRBench. Which of the answers follow from the queries is data here, with a reason for each that
does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyoxigraph as ox

from construct_messages.continuous import Bounds, WindowedQuery, WindowOptions
from construct_messages.query.continuous.parse import parse_continuous
from construct_messages.query.continuous.values import Report
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import Term, is_literal, literal_parts
from construct_messages.streams.element import Element

SECOND = 1_000_000

_CONTINUATION = re.compile(r"\\[ \t]*\n")
_QUERY = re.compile(r"(SELECT\b.*?)WHERE\s*(\{.*)", re.DOTALL)


class Relation(NamedTuple):
    """The solutions that an engine gave at a time, in seconds; each as its values in the order of their names."""

    time: float
    solutions: list[tuple[str, ...]]


@dataclass(frozen=True)
class Reading:
    """How an engine reads a query.

    Args:
        operator: the relation-to-stream operator, as RSP-QL writes it.
        report: its report policy.
        range, step: of the window, in seconds; None: as the benchmark says.
        origin: where windows begin, in seconds behind the first element: when the engine started.
        bounds: of its windows.
        empty: whether relations without solutions are recorded.
    """

    operator: str = "RSTREAM"
    report: Report = Report.NON_EMPTY_CONTENT
    range: int | None = None
    step: int | None = None
    origin: int = 0
    bounds: Bounds = Bounds.CLOSED_OPEN
    empty: bool = False


_CSPARQL = Reading(empty=True)
_CQELS = Reading("ISTREAM", Report.CONTENT_CHANGE)

READINGS = {
    ("csparql", 1): _CSPARQL,
    ("csparql", 2): Reading(bounds=Bounds.OPEN_CLOSED, empty=True),
    ("csparql", 4): _CSPARQL,
    ("csparql", 6): Reading(range=5, step=5, empty=True),
    ("csparql", 7): _CSPARQL,
    ("sparqlstream", 1): Reading(origin=2),
    ("sparqlstream", 2): Reading(),
    ("sparqlstream", 3): Reading(origin=3),
    ("sparqlstream", 5): Reading(),
    ("sparqlstream", 6): Reading(range=5, step=5, origin=3),
    ("sparqlstream", 7): Reading(origin=4),
    ("cqels", 1): _CQELS,
    ("cqels", 2): _CQELS,
    ("cqels", 5): _CQELS,
}
"""The answers that follow from the queries, and how they are read then."""

REASONS = {
    ("csparql", 3): "an element at the beginning or end of a window is in it, or not, by chance",
    ("csparql", 5): "an element at the beginning or end of a window is in it, or not, by chance",
    (
        "sparqlstream",
        4,
    ): "the average of nothing is null, where SPARQL says 0, and goes on when the stream has ended",
    ("cqels", 3): "each solution is a relation, also where one element gives several",
    ("cqels", 4): "its window is three or four seconds wide, by chance, instead of four",
    ("cqels", 6): "it was asked over 50 seconds, and 13 solutions are missing",
    ("cqels", 7): "it gives every observation of a temperature, so it neither joins nor filters",
}
"""Why the others do not."""


class Benchmark:
    """The benchmark.

    Args:
        folder: where it is.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        text = _CONTINUATION.sub(" ", (folder / "srbench-queries.properties").read_text())
        lines = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
        self._properties = {name.strip(): value.strip() for name, _, value in lines}
        files = sorted((folder / "data").glob("data_*.ttl"))
        self.elements = [
            Element("s", number + 1, number * SECOND, _nquads(path))
            for number, path in enumerate(files)
        ]

    def answer(self, engine: str, query: int) -> list[Relation]:
        """What an engine answered."""
        recorded = json.loads(
            (self._folder / "answers" / f"{engine}-answer-{query}.json").read_text()
        )
        return [
            Relation(
                relation["timestamp"] / 1000,
                sorted(
                    _values(solution["binding"]) for solution in relation["results"]["bindings"]
                ),
            )
            for relation in recorded["relations"]
        ]

    def evaluate(self, query: int, reading: Reading) -> Iterator[Relation]:
        """What this package answers."""
        width = reading.range or int(self._property(query, "window.size")) // 1000
        step = (
            reading.step
            if reading.step is not None
            else int(self._property(query, "window.slide")) // 1000
        )
        text = self._property(query, "booleanquery")
        prologue = text[: text.index("SELECT")]
        found = _QUERY.search(text)
        assert found
        window = f"[RANGE PT{width}S STEP PT{step}S]" if step else f"[RANGE PT{width}S]"
        parsed = parse_continuous(
            f"REGISTER {reading.operator} <urn:out> AS {prologue} {found[1]}"
            f" FROM NAMED WINDOW <urn:w> ON <urn:s> {window} WHERE {{ WINDOW <urn:w> {found[2]} }}"
        )
        options = WindowOptions(
            bounds=reading.bounds,
            origin=reading.origin * SECOND,
            report=reading.report,
            empty=reading.empty,
        )
        engine = WindowedQuery(parsed, options)
        firings = [firing for element in self.elements for firing in engine.take("urn:s", element)]
        for firing in (*firings, *engine.end("urn:s")):
            names = sorted(range(len(firing.variables)), key=firing.variables.__getitem__)
            solutions = sorted(
                tuple(_value(solution[index]) for index in names) for solution in firing.solutions
            )
            yield Relation(firing.time / SECOND, solutions)

    def _property(self, query: int, name: str) -> str:
        return self._properties[f"srb.query{query}.{name}"]


def _nquads(path: Path) -> bytes:
    message = Message.from_pyoxigraph(ox.parse(path.read_bytes(), format=ox.RdfFormat.TURTLE))
    return message.lines[:-1]


def _values(binding: dict[str, Any]) -> tuple[str, ...]:
    return tuple(_number(binding[name]["value"]) for name in sorted(binding))


def _value(term: Term) -> str:
    return _number(literal_parts(term)[0]) if is_literal(term) else term[1:-1]


def _number(value: str) -> str:
    """A number in one form: the engines give `90.`, `90.0` and `90.0e0`, and 24 digits of a third."""
    try:
        return f"{float(value):.9f}"
    except ValueError:
        return value

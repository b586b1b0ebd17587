"""Continuous queries over windows: messages of five quads, a window of 1,000, a step of 100; beside npm's rsp-js.

`python -m benchmarks micro continuous`; rsp-js is asked the same queries in SELECT form, where NODE_PATH or
CONSTRUCT_MESSAGES_NODE holds it. The ratio is of CPU seconds a message, rsp-js to this package.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks import harness
from benchmarks.harness import Figure, report
from construct_messages.continuous import Bounds, WindowedQuery, WindowOptions
from construct_messages.query.continuous.parse import parse_continuous
from construct_messages.streams.element import Element

PEER = Path(__file__).with_name("rsp.cjs")
MILLISECOND = 1000

PREFIX = "PREFIX : <http://example.org/>\n"
QUERIES = {
    "a filter": ("?s :high ?v", "?s ?v", "?s :value ?v . FILTER(?v > 950)"),
    "a join": (
        "?s :near ?t",
        "?s ?t",
        "?s :sensor ?x ; :value ?v . ?t :sensor ?x ; :value 999 . FILTER(?v > 900)",
    ),
    "50 averages": (
        "?x :average ?a",
        "?x ?a",
        "{ SELECT ?x (AVG(?v) AS ?a) WHERE { ?s :sensor ?x ; :value ?v } GROUP BY ?x }",
    ),
}
"""What to construct, what to select, and the pattern in the window."""


def continuous_query(construct: str, pattern: str, operator: str) -> str:
    """The query as this package takes it."""
    return f"""{PREFIX}REGISTER {operator} <urn:out> AS CONSTRUCT {{ {construct} }}
FROM NAMED WINDOW :w ON :in [RANGE PT1S STEP PT0.1S]
WHERE {{ WINDOW :w {{ {pattern} }} }}"""


TIMED = f"""{PREFIX}PREFIX prov: <http://www.w3.org/ns/prov#>
REGISTER ISTREAM <urn:out> AS CONSTRUCT {{ ?s :late ?t }}
FROM NAMED WINDOW :w ON :in [RANGE PT1S STEP PT0.1S]
WHERE {{ WINDOW :w {{ GRAPH ?m {{ ?s :value ?v }} ?m prov:generatedAtTime ?t FILTER(?v > 900) }} }}"""
"""A query over single messages and their times."""


def of_peer(select: str, pattern: str) -> str:
    """The query as rsp-js takes it: each clause on a line of its own."""
    return f"""{PREFIX}REGISTER RStream <output> AS
SELECT {select}
FROM NAMED WINDOW :w ON STREAM :in [RANGE 1000 STEP 100]
WHERE{{
WINDOW :w {{ {pattern} }}
}}"""


def elements(count: int) -> list[Element]:
    """Messages of five quads, one each millisecond."""
    example, xsd = "http://example.org/", "http://www.w3.org/2001/XMLSchema#"
    made = []
    for number in range(count):
        subject = f"<{example}observation/{number}>"
        lines = (
            f"{subject} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{example}Observation> .",
            f"{subject} <{example}sensor> <{example}sensor/{number % 50}> .",
            f'{subject} <{example}value> "{number * 7919 % 1000}"^^<{xsd}integer> .',
            f'{subject} <{example}at> "2026-01-01T00:{number // 60 % 60:02}:{number % 60:02}Z"^^<{xsd}dateTime> .',
            f"{subject} <{example}unit> <{example}celsius> .",
        )
        made.append(Element("in", number + 1, number * MILLISECOND, "\n".join(lines).encode()))
    return made


class Run(NamedTuple):
    """What one run over a stream came to; seconds are of CPU time."""

    seconds: float
    messages: int
    given: int
    firings: Sequence[float]


def run(query: str, sent: Sequence[Element]) -> Run:
    """A query over all elements."""
    engine = WindowedQuery(parse_continuous(query), WindowOptions(bounds=Bounds.CLOSED_OPEN))
    given, firings = 0, []
    started = time.process_time()
    for element in sent:
        before = time.process_time()
        fired = engine.take("http://example.org/in", element)
        if fired:
            firings.append(time.process_time() - before)
            given += sum(len(firing.messages) for firing in fired)
    return Run(time.process_time() - started, len(sent), given, sorted(firings))


def peer(query: str, sent: Sequence[Element], folder: Path) -> Run | None:
    """The same with rsp-js; None where it is not installed."""
    (folder / "query.rq").write_text(query)
    log = b"".join(b"# @message\n" + element.nquads + b"\n" for element in sent)
    (folder / "log.nq").write_bytes(log)
    modules = os.environ.get("CONSTRUCT_MESSAGES_NODE", "")
    path = os.pathsep.join(
        filter(None, (os.environ.get("NODE_PATH", ""), modules and f"{modules}/node_modules"))
    )
    command = ["node", str(PEER), str(folder / "query.rq"), str(folder / "log.nq")]
    done = harness.run(command, env=os.environ | {"NODE_PATH": path})
    if done.code:
        return None
    found = json.loads(done.stdout)
    return Run(done.cpu_seconds, found["messages"], found["solutions"], [0.0] * found["firings"])


def figures(count: int, for_peer: int, folder: Path) -> Iterator[Figure]:
    """Each query over the stream, and over a shorter one with rsp-js."""
    sent = elements(count)
    for what, (construct, select, pattern) in QUERIES.items():
        for operator in ("RSTREAM", "ISTREAM"):
            ours = run(continuous_query(construct, pattern, operator), sent)
            theirs = (
                peer(of_peer(select, pattern), sent[:for_peer], folder)
                if operator == "RSTREAM"
                else None
            )
            ratio = (
                None
                if theirs is None
                else (theirs.seconds / theirs.messages) / (ours.seconds / ours.messages)
            )
            yield figure(f"{what}, {operator}", ours, ratio)
            if theirs is not None:
                peers = f"{theirs.messages / theirs.seconds:,.0f}/s: {what}, rsp-js, {len(theirs.firings)} firings"
                yield Figure(peers, theirs.seconds)
    yield figure("single messages with their times, GRAPH ?m, ISTREAM", run(TIMED, sent))


def figure(what: str, ours: Run, ratio: float | None = None) -> Figure:
    """The line of one of our runs."""
    rate, slowest = ours.messages / ours.seconds, ours.firings[len(ours.firings) * 99 // 100]
    label = f"{rate:,.0f}/s: {what}, 99 % of {len(ours.firings)} firings in {slowest * 1e3:.1f} ms"
    return Figure(label, ours.seconds, ratio, "10,000/s, 20 ms")


def main() -> None:
    """`python -m benchmarks micro continuous`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--peer", type=int, default=3_000, help="messages for rsp-js")
    options = parser.parse_args()
    with TemporaryDirectory() as place:
        found = list(figures(options.messages, options.peer, Path(place)))
    report(
        "continuous", "windows of 1,000 messages of five quads, a step of 100; CPU seconds", found
    )

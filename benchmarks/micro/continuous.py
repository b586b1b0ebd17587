"""Continuous queries over windows: messages of five quads, a window of 1,000, a step of 100; beside npm's rsp-js.

`python -m benchmarks micro continuous`; with `--growth`, what a message costs in windows of 100 to 100,000 messages
with a small step, of queries that are maintained and asked as a whole; with `--ways`, both ways for queries that are
dear to maintain, in windows that overlap more or less. rsp-js is asked the same queries in SELECT form,
where NODE_PATH or CONSTRUCT_MESSAGES_NODE holds it. The ratio is of CPU seconds a message, rsp-js to this package.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Sequence
from itertools import product
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

DATE_TIME = "<http://www.w3.org/2001/XMLSchema#dateTime>"
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


GROWTH = {
    "a filter": ("?s :high ?v", "?s :value ?v . FILTER(?v > 950)"),
    "a join of two patterns": (
        "?s :high ?v ; :sensor ?x",
        "?s :sensor ?x ; :value ?v . FILTER(?v > 950)",
    ),
    "a join": ("?s :near ?t", QUERIES["a join"][2]),
    "50 averages": ("?x :average ?a", QUERIES["50 averages"][2]),
    "GRAPH ?m": (
        "?s :late ?t",
        "GRAPH ?m { ?s :value ?v } ?m prov:generatedAtTime ?t FILTER(?v > 900)",
    ),
}
"""What to construct, and the pattern in the window, for windows of several sizes."""


_LATER = "FILTER NOT EXISTS { ?s2 :sensor ?x ; :at ?t2 FILTER(%s) }"
_GROUPED = "{ SELECT ?x (%s AS ?a) WHERE { %s } GROUP BY ?x }"
WAYS = {
    "the latest of each sensor": (
        "?x :latest ?t",
        f"?s :sensor ?x ; :at ?t {_LATER % '?t2 > ?t'}",
    ),
    "the same by a function": (
        "?x :latest ?t",
        f"?s :sensor ?x ; :at ?t {_LATER % 'STR(?t2) > STR(?t)'}",
    ),
    "OPTIONAL of later ones": (
        "?s :next ?t2",
        "?s :sensor ?x ; :at ?t ; :value 999 OPTIONAL { ?s2 :sensor ?x ; :at ?t2 FILTER(?t2 > ?t) }",
    ),
    "FILTER of times": (
        "?s :late ?t",
        f'?s :at ?t FILTER(?t > "2026-01-01T00:30:00Z"^^{DATE_TIME})',
    ),
    "FILTER of doubles": ("?s :high ?d", "?s :level ?d FILTER(?d > 9.5e2)"),
    "FILTER by a function": ("?s :high ?v", '?s :value ?v FILTER(STRSTARTS(STR(?v), "95"))'),
    "BIND of doubles": ("?s :twice ?e", "?s :level ?d BIND(?d * 2 AS ?e)"),
    "AVG of doubles": ("?x :average ?a", _GROUPED % ("AVG(?d)", "?s :sensor ?x ; :level ?d")),
    "MAX of doubles": ("?x :highest ?a", _GROUPED % ("MAX(?d)", "?s :sensor ?x ; :level ?d")),
    "COUNT of pairs": ("?x :pairs ?a", _GROUPED % ("COUNT(*)", "?s :sensor ?x . ?t :sensor ?x")),
    "pairs": (
        "?s :with ?t",
        "?s :sensor ?x ; :value ?v . ?t :sensor ?x ; :value ?w FILTER(?v < ?w)",
    ),
}
"""Queries that cost much where solutions are maintained: FILTERs on pairs of rows, joins of many with many, doubles."""


def growing_query(construct: str, pattern: str, size: int, step: int) -> str:
    """A query over so many messages, evaluated after so many."""
    return f"""{PREFIX}PREFIX prov: <http://www.w3.org/ns/prov#>
REGISTER ISTREAM <urn:out> AS CONSTRUCT {{ {construct} }}
FROM NAMED WINDOW :w ON :in [RANGE PT{size / 1000}S STEP PT{step / 1000}S]
WHERE {{ WINDOW :w {{ {pattern} }} }}"""


def elements(count: int, quads: int = 5, first: int = 0) -> list[Element]:
    """Messages of five quads or more, one each millisecond."""
    return list(each_element(count, quads, first))


def each_element(count: int, quads: int = 5, first: int = 0) -> Iterator[Element]:
    """The same, one by one."""
    example, xsd = "http://example.org/", "http://www.w3.org/2001/XMLSchema#"
    for number in range(first, first + count):
        subject = f"<{example}observation/{number}>"
        lines = (
            f"{subject} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{example}Observation> .",
            f"{subject} <{example}sensor> <{example}sensor/{number % 50}> .",
            f'{subject} <{example}value> "{number * 7919 % 1000}"^^<{xsd}integer> .',
            f'{subject} <{example}at> "2026-01-01T00:{number // 60 % 60:02}:{number % 60:02}Z"^^<{xsd}dateTime> .',
            f"{subject} <{example}unit> <{example}celsius> .",
        )
        more = (f'{subject} <{example}more/{place}> "{number}" .' for place in range(quads - 5))
        nquads = "\n".join((*lines, *more)).encode()
        yield Element("in", number + 1, number * MILLISECOND, nquads)


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


def growth(sizes: Sequence[int], whole: int, sent: int) -> Iterator[Figure]:
    """What a message costs in a window of each size, once it is full.

    Args:
        sizes: how many messages windows hold.
        whole: the largest of them for queries that are asked as a whole.
        sent: how many messages are measured.
    """
    for what, (construct, pattern) in GROWTH.items():
        for quads, step, maintain in product((5, 30), (1, 10), (True, False)):
            first: float | None = None
            for size in sizes if maintain else (each for each in sizes if each <= whole):
                query = parse_continuous(growing_query(construct, pattern, size, step))
                options = WindowOptions(bounds=Bounds.CLOSED_OPEN)
                engine = WindowedQuery(query, options, maintain=maintain)
                for element in each_element(size, quads):
                    engine.take("http://example.org/in", element)
                count = sent if maintain else sent // 10
                measured = elements(count, quads, size)
                started = time.process_time()
                for element in measured:
                    engine.take("http://example.org/in", element)
                cost = (time.process_time() - started) / count
                first = first or cost
                way = "maintained" if maintain else "as a whole"
                label = f"{cost * 1e6:,.1f} µs: {what}, {way}, {size:,} messages of {quads} quads, step {step}"
                yield Figure(label, cost, cost / first, "growth ≤ 1.3 ×")


def ways(size: int) -> Iterator[Figure]:
    """What a message costs both ways, the best of three turns; windows share no message, nine of ten, or 99 of 100."""
    example, xsd = "http://example.org/", "http://www.w3.org/2001/XMLSchema#"

    def measured(count: int, first: int = 0) -> Iterator[Element]:
        for number, element in enumerate(each_element(count, 5, first), first):
            level = f'"{number * 7919 % 1000}.5"^^<{xsd}double>'
            line = f"\n<{example}observation/{number}> <{example}level> {level} ."
            yield element._replace(nquads=element.nquads + line.encode())

    for (what, (construct, pattern)), part in product(WAYS.items(), (1, 10, 100)):
        costs = []
        query = parse_continuous(growing_query(construct, pattern, size, size // part))
        for maintain in (True, False):
            options = WindowOptions(bounds=Bounds.CLOSED_OPEN)
            engine = WindowedQuery(query, options, maintain=maintain)
            for element in measured(size + 1):
                engine.take(f"{example}in", element)
            count, best = size // min(part, 20), float("inf")
            for turn in range(3):
                sent = list(measured(count, size + 1 + turn * count))
                started = time.process_time()
                for element in sent:
                    engine.take(f"{example}in", element)
                best = min(best, (time.process_time() - started) / count)
            costs.append(best)
        label = f"{costs[0] * 1e6:,.0f} µs, as a whole {costs[1] * 1e6:,.0f} µs: {what}, step {size // part:,}"
        yield Figure(label, costs[0], costs[0] / costs[1], "≤ 1.2 ×")


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
    parser.add_argument("--growth", action="store_true", help="windows of several sizes")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1_000, 10_000, 100_000])
    parser.add_argument("--whole", type=int, default=1_000, help="largest window asked as a whole")
    parser.add_argument("--ways", action="store_true", help="both ways, where it is dear")
    options = parser.parse_args()
    if options.ways:
        print("windows of 1,000; CPU seconds a message, maintained and as a whole", flush=True)
        for found in ways(1_000):
            print(f"{found.ratio:5.2f} ×  {found.what}", flush=True)
        return
    if options.growth:
        print("windows with a small step; CPU seconds a message, and growth", flush=True)
        for found in growth(options.sizes, options.whole, 5_000):
            print(f"{found.ratio:5.2f} ×  {found.what}", flush=True)
        return
    with TemporaryDirectory() as place:
        lines = list(figures(options.messages, options.peer, Path(place)))
    report(
        "continuous", "windows of 1,000 messages of five quads, a step of 100; CPU seconds", lines
    )

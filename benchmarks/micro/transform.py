"""Stateless transformation: messages of five quads, each through a CONSTRUCT alone; together and one by one.

`python -m benchmarks micro transform`; the ratio is of CPU seconds, one by one to together.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from functools import partial
from itertools import islice

from benchmarks.harness import Figure, alternate, report
from benchmarks.micro.streams import messages
from construct_messages.continuous.transform import BATCH, Transformation

PROPERTY = "http://example.org/property/"
QUERIES = {
    "two of five properties": f"?s <{PROPERTY}1> ?a ; <{PROPERTY}2> ?b",
    "all five, a message each": "?s ?a ?b",
    "none": f"?s <{PROPERTY}7> ?a , ?b",
}
ROUNDS = 5


def together(query: str, lines: list[bytes]) -> int:
    """How many messages come of those of some lines, a thousand at a time."""
    transformation = Transformation(query)
    assert transformation.batches
    batches = iter(lines)
    count = 0
    while batch := list(islice(batches, BATCH)):
        count += sum(1 for _ in transformation.batch(batch))
    return count


def singly(query: str, lines: list[bytes]) -> int:
    """The same with a store for each."""
    return sum(1 for _ in Transformation(query).plain(lines))


def figures(count: int) -> Iterator[Figure]:
    """Each query over so many messages."""
    lines = [message.lines for message in messages(count)]
    few = lines[: count // 5]
    for what, pattern in QUERIES.items():
        query = f"CONSTRUCT {{ ?s <urn:a> ?a ; <urn:b> ?b }} WHERE {{ {pattern} }}"
        fast, slow = alternate(
            ROUNDS,
            [partial(together, query, lines), partial(singly, query, few)],
            clock=time.process_time,
        )
        ratio = slow / len(few) / (fast / count)
        yield Figure(
            f"{count / fast:,.0f}/s: {what}",
            fast,
            ratio,
            "80,000/s" if pattern.startswith("?s <") else "",
        )
        yield Figure(f"{len(few) / slow:,.0f}/s: {what}, one by one", slow)


def main() -> None:
    """`python -m benchmarks micro transform`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=50_000)
    options = parser.parse_args()
    report("transform", "messages of five quads; CPU seconds", list(figures(options.messages)))

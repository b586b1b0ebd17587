"""N-Quads logs, read and written, against npm's n3: `python -m benchmarks micro lines [--messages N] [--rounds N]`.

A message is a sensor's observation of five quads: IRIs, a date, a decimal, a string with a language; every tenth has a
blank node. Each run is a fresh process, ours and n3's in turn; its time is that from bytes in memory to messages whose
quads are counted, or back. As our messages make their quads when asked, reading is also measured with a look at the
four terms of each quad; n3 has made its by then.
n3 has to be installed in the folder that CONSTRUCT_MESSAGES_NODE names (`npm install n3@2.13.12`).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from benchmarks.harness import Figure, completed, report
from construct_messages.logs import decoder_for, encoder_for
from construct_messages.rdf.formats import N_QUADS
from construct_messages.rdf.formats.lookup import find_syntax

PEER = Path(__file__).with_name("n3.cjs")
CHUNK = 1 << 16
SYNTAX = find_syntax("1.2-messages")


def main() -> None:
    """Measures reading and writing, or (with --run) does one of them once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        print(json.dumps(run(arguments.run[0], Path(arguments.run[1]))))
        return
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.nq"
        log.write_text("".join(generate(arguments.messages)), encoding="utf-8")
        figures = measure(log, arguments.messages, arguments.rounds)
    report(
        "lines",
        f"N-Quads logs of {arguments.messages} messages, {5 * arguments.messages} quads",
        figures,
    )


def generate(messages: int, seed: int = 42) -> Iterator[str]:
    """The lines of a log.

    >>> sum(line.endswith(" .\\n") for line in generate(10))
    50
    """
    chance = random.Random(seed)
    rdf, sosa, xsd = (
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
        "http://www.w3.org/ns/sosa/",
        "http://www.w3.org/2001/XMLSchema#",
    )
    yield SYNTAX.announcement
    for number in range(messages):
        observation, graph = (
            f"<http://example.org/observation/{number:07}>",
            f"<http://example.org/day/{number // 1000}>",
        )
        sensor = (
            f"<http://example.org/sensor/{chance.randrange(500)}>"
            if number % 10
            else f"_:sensor{number}"
        )
        when = f"2026-01-{chance.randrange(1, 29):02}T{chance.randrange(24):02}:{chance.randrange(60):02}:00Z"
        yield f"{observation} <{rdf}type> <{sosa}Observation> {graph} .\n"
        yield f"{observation} <{sosa}madeBySensor> {sensor} {graph} .\n"
        yield f'{observation} <{sosa}resultTime> "{when}"^^<{xsd}dateTime> {graph} .\n'
        yield f'{observation} <{sosa}hasSimpleResult> "{chance.uniform(-20, 40):.2f}"^^<{xsd}decimal> .\n'
        yield f'{observation} <http://www.w3.org/2000/01/rdf-schema#label> "Température à Liège, № {number}"@fr .\n'
        yield SYNTAX.delimiter


def measure(log: Path, messages: int, rounds: int) -> list[Figure]:
    """Runs all four in turn, checks what each counted, and compares the medians."""
    figures = []
    sides = {
        "n3": ["node", str(PEER)],
        "ours": [sys.executable, "-m", "benchmarks", "micro", "lines", "--run"],
    }
    seconds: dict[tuple[str, str], list[float]] = {}
    runs = [(what, side) for what in ("read", "write") for side in sides]
    for _ in range(rounds):
        for what, side in [*runs, ("look", "ours")]:
            seconds.setdefault((what, side), []).append(
                _fresh([*sides[side], what, str(log)], messages)
            )
    for what in ("read", "write"):
        peer, ours = (statistics.median(seconds[what, side]) for side in sides)
        rate = 5 * messages / ours
        figures.append(Figure(f"npm n3, {what}", peer))
        goal = "≥ 1.5" if what == "read" else "≥ 2"
        # n3 against ours: how many times as many quads we take in the same time
        figures.append(Figure(f"ours, {what}: {rate:,.0f} quads a second", ours, peer / ours, goal))
        if what == "read":
            looked = statistics.median(seconds["look", "ours"])
            figures.append(Figure("ours, read, with a look at each quad", looked, peer / looked))
    return figures


def _fresh(command: Sequence[str], messages: int) -> float:
    modules = Path(os.environ["CONSTRUCT_MESSAGES_NODE"]) / "node_modules"
    done = completed(command, env=os.environ | {"NODE_PATH": str(modules)})
    run = json.loads(done.stdout)
    if (run["messages"], run["quads"]) != (messages, 5 * messages):
        raise SystemExit(f"{command}: {run['messages']} messages with {run['quads']} quads")
    return float(run["seconds"])


def run(what: str, path: Path) -> dict[str, float]:
    """Reads a log, reads it with a look at each quad, or reads it unmeasured and writes it."""
    data = path.read_bytes()
    list(decoder_for(N_QUADS).close())  # loads the syntax, as n3 is loaded
    started = time.perf_counter()
    messages = quads = 0
    held = []
    decoder = decoder_for(N_QUADS)
    pieces = (decoder.feed(data[start : start + CHUNK]) for start in range(0, len(data), CHUNK))
    for piece in chain(pieces, [decoder.close()]):
        for message in piece:
            messages, quads = messages + 1, quads + len(message)
            if what == "look":
                for _subject, _predicate, _object, _graph in message:
                    pass
            elif what == "write":
                held.append(message)
    if what == "write":
        started = time.perf_counter()
        encoder = encoder_for(N_QUADS, SYNTAX)
        log = b"".join((encoder.start(), *map(encoder.encode, held), encoder.finish()))
        if abs(len(log) - len(data)) > len(data) / 10:
            raise SystemExit(f"wrote {len(log)} bytes")
    return {"seconds": time.perf_counter() - started, "messages": messages, "quads": quads}

"""Peak memory of reading, writing and converting 10,000 and 1,000,000 messages.

`python -m benchmarks micro log_memory`. Every run is a fresh process. Messages have two quads, one in ten has none;
what is read is made as it is asked for, so that neither a log nor a list of messages is anywhere in memory.
Converting reads N-Quads and writes the format. Logs of nothing but empty messages are read as well.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Iterable, Iterator

from benchmarks.harness import Figure, completed, report
from construct_messages.logs import decoder_for, encoder_for
from construct_messages.rdf.formats import FORMATS, N_QUADS, SYNTAXES, Format
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import XSD, iri, literal

SIZES = (10_000, 1_000_000)
WAYS = ("read", "write", "convert", "read empty messages")
_CHUNK = 1 << 16


def main() -> None:
    """Measures each format, or (with --messages) one run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--how", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument(
        "formats", nargs="*", metavar="FORMAT", help="file extensions (default all)"
    )
    arguments = parser.parse_args()
    formats = [f for f in FORMATS if not arguments.formats or f.extension in arguments.formats]
    if arguments.messages:
        _run(formats[0], arguments.how, arguments.messages)
        return
    figures = [figure for format in formats for how in WAYS for figure in _measure(format, how)]
    report(
        "log_memory",
        "seconds, and peak resident memory of the process (the ratio is of memory)",
        figures,
    )


def _measure(format: Format, how: str) -> list[Figure]:
    figures, peaks = [], []
    for size in SIZES:
        command = [
            sys.executable,
            "-m",
            "benchmarks",
            "micro",
            "log_memory",
            format.extension,
            "--how",
            how,
        ]
        done = completed([*command, "--messages", str(size)])
        run = json.loads(done.stdout)
        if run["messages"] != size:
            raise SystemExit(f"{format.name}, {how}: {run['messages']} messages instead of {size}")
        peaks.append(done.peak_bytes)
        ratio, goal = (peaks[-1] / peaks[0], "≤ 1.2") if len(peaks) > 1 else (None, "")
        figures.append(
            Figure(
                f"{format.name}, {how}, {size}: {peaks[-1] / 2**20:.0f} MiB",
                run["seconds"],
                ratio,
                goal,
            )
        )
    return figures


def messages(count: int) -> Iterator[Message]:
    """Messages that differ, one in ten empty.

    >>> [len(message) for message in messages(3)]
    [0, 2, 2]
    """
    p, q = iri("http://example.org/p"), iri("http://example.org/ns#q")
    for number in range(count):
        if number % 10 == 0:
            yield Message()
            continue
        subject = iri(f"http://example.org/s{number % 5000}/{number}")
        object = (
            literal(str(number), datatype=f"{XSD}integer")
            if number % 3
            else literal(f"№ {number}", language="en")
        )
        yield Message(
            [Quad(subject, p, object), Quad(subject, q, iri(f"http://example.org/{number}"))]
        )


def _log(format: Format, logged: Iterable[Message]) -> Iterator[bytes]:
    """A log in pieces, that end anywhere."""
    encoder = encoder_for(format, format.own or SYNTAXES[1])
    held = bytearray(encoder.start())
    for piece in itertools.chain(map(encoder.encode, logged), [encoder.finish()]):
        held += piece
        if len(held) >= _CHUNK:
            yield bytes(held[:_CHUNK])
            del held[:_CHUNK]
    yield bytes(held)


def _read(format: Format, chunks: Iterable[bytes]) -> Iterator[Message]:
    decoder = decoder_for(format)
    for chunk in chunks:
        yield from decoder.feed(chunk)
    yield from decoder.close()


def _run(format: Format, how: str, size: int) -> None:
    started = time.perf_counter()
    found = 0
    logged = itertools.repeat(Message(), size) if how == "read empty messages" else messages(size)
    if how == "write":
        for _ in _log(format, logged):
            pass
        found = size
    else:
        source = N_QUADS if how == "convert" else format
        encoder = encoder_for(format, format.own or SYNTAXES[1])
        for message in _read(source, _log(source, logged)):
            found += 1
            if how == "convert":
                encoder.encode(message)
    print(json.dumps({"messages": found, "seconds": time.perf_counter() - started}))

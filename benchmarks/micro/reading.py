"""Logs of several shapes read and written, in CPU seconds: `python -m benchmarks micro reading [--quads N] [FORMAT …]`.

N-Quads and TriG beside npm's n3 and pyoxigraph, Jelly beside pyjelly and rdfjs-jelly. Each run is a new process, all
in turn: from bytes in memory to messages whose quads are counted (pyoxigraph and pyjelly: to their quads or graphs,
without messages), or, for TriG and Jelly, from messages to bytes. The start of the process is not counted. n3 has to be
installed in the folder that CONSTRUCT_MESSAGES_NODE names (`npm install n3@2.13.12`). rdfjs-jelly is on GitHub only
(pietercolpaert/rdfjs-jelly), and left out where it is not among the `node_modules` of that folder.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.harness import Figure, completed, report
from benchmarks.micro import shapes
from construct_messages.logs import EncoderOptions, decoder_for, encoder_for
from construct_messages.rdf.formats import JELLY, N_QUADS, RDFM, TRIG, Format
from construct_messages.rdf.formats.lookup import find_syntax
from construct_messages.rdf.message import Message

PEERS = {"n3": "n3.cjs", "rdfjs-jelly": "rdfjs_jelly.cjs"}
"""Programs that read a log, by the names of their packages."""
CHUNK = 1 << 16
SYNTAX = find_syntax("1.2-messages")
FORMATS = {format.extension: format for format in (N_QUADS, TRIG, JELLY)}


def main() -> None:
    """Measures all shapes and formats, or (with --run) does one thing once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help="nq, trig, jelly; all without")
    parser.add_argument("--quads", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        side, extension, path = arguments.run
        print(json.dumps(run(side, FORMATS[extension], Path(path).read_bytes())))
        return
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        for extension in arguments.formats or FORMATS:
            for shape in shapes.SHAPES:
                log = Path(folder) / f"log.{extension}"
                held = shapes.messages(shape, arguments.quads)
                log.write_bytes(write(held, FORMATS[extension]))
                name = f"{FORMATS[extension].name}, {shape}"
                figures += measure(name, extension, log, sum(map(len, held)), arguments.rounds)
                print(figures[-1], file=sys.stderr)
    report("reading", f"Logs of about {arguments.quads} quads, CPU seconds", figures)


def write(messages: Sequence[Message], format: Format) -> bytes:
    """A log, with prefixes where the format has them."""
    syntax = format.syntax(RDFM) if format is JELLY else SYNTAX
    encoder = encoder_for(format, syntax, EncoderOptions(prefixes=shapes.PREFIXES))
    return b"".join((encoder.start(), *map(encoder.encode, messages), encoder.finish()))


def measure(name: str, extension: str, log: Path, quads: int, rounds: int) -> list[Figure]:
    """Runs all sides in turn; ratios are of what others take to what we take."""
    ours = [sys.executable, "-m", "benchmarks", "micro", "reading", "--run"]
    names = ["read", "pyoxigraph"]
    if extension == "jelly":
        names = ["read", "pyjelly", "write", "pyjelly writes"]
    sides = {side: [*ours, side, extension, str(log)] for side in names}
    arguments = [str(log), FORMATS[extension].media_types[0]]
    if extension != "jelly":
        sides["n3"] = [*_node("n3"), "read", *arguments]
    elif (_modules() / "rdfjs-jelly").exists():
        sides["rdfjs-jelly"] = [*_node("rdfjs-jelly"), str(log)]
    if extension == "trig":
        sides["write"] = [*ours, "write", extension, str(log)]
        sides["n3 writes"] = [*_node("n3"), "write", *arguments]
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side, command in sides.items():
            found = _fresh(command)
            if found["quads"] != quads:
                raise SystemExit(f"{command}: {found['quads']} quads, not {quads}")
            seconds[side].append(found["cpu"])
    medians = {side: statistics.median(each) for side, each in seconds.items()}
    figures = [Figure(f"{name}: read", medians["read"])]
    if extension == "jelly":
        figures.append(_beside(name, "pyjelly reads", medians["pyjelly"], medians["read"], "≥ 2.5"))
        if "rdfjs-jelly" in medians:
            peer = medians["rdfjs-jelly"]
            figures.append(_beside(name, "rdfjs-jelly reads", peer, medians["read"], "≥ 1"))
        figures.append(Figure(f"{name}: written", medians["write"]))
        writing = medians["pyjelly writes"]
        figures.append(_beside(name, "pyjelly writes", writing, medians["write"], "≥ 4"))
        return figures
    small = " 5 quads" in name
    goal = "≥ 1" if extension == "trig" else "≥ 2" if small else "≥ 1.2"
    figures.append(_beside(name, "n3", medians["n3"], medians["read"], goal))
    parsing, goal = medians["pyoxigraph"], "" if small or extension == "trig" else "≥ 1"
    figures.append(_beside(name, "pyoxigraph, without messages", parsing, medians["read"], goal))
    if extension == "trig":
        figures.append(Figure(f"{name}: written message by message", medians["write"]))
        writing = medians["n3 writes"]
        figures.append(_beside(name, "n3 writes", writing, medians["write"], "≥ 2"))
    return figures


def _beside(name: str, what: str, peer: float, ours: float, goal: str) -> Figure:
    return Figure(f"{name}: {what}", peer, peer / ours, goal)


def _node(peer: str) -> list[str]:
    return ["node", str(Path(__file__).with_name(PEERS[peer]))]


def _modules() -> Path:
    return Path(os.environ["CONSTRUCT_MESSAGES_NODE"]) / "node_modules"


def _fresh(command: Sequence[str]) -> dict[str, float]:
    done = completed(command, env=os.environ | {"NODE_PATH": str(_modules())})
    found: dict[str, float] = json.loads(done.stdout)
    return found


def run(side: str, format: Format, data: bytes) -> dict[str, float]:
    """CPU seconds and quads of one run."""
    decoder_for(format)  # loads what belongs to the format, as the peers are loaded
    work = _work(side, format, data)
    started = time.process_time()
    quads = work()
    return {"cpu": time.process_time() - started, "quads": quads}


def _work(side: str, format: Format, data: bytes) -> Callable[[], int]:
    if side == "read":
        return lambda: sum(map(len, _read(format, data)))
    if side == "write":
        held = [*_read(format, data)]
        for message in held:
            for _ in message:  # makes its quads
                pass
        return lambda: sum(map(len, held)) if write(held, format) else 0
    if side == "pyoxigraph":
        return _by_pyoxigraph(format, data)
    return _by_pyjelly(side, data)


def _read(format: Format, data: bytes) -> Iterator[Message]:
    decoder = decoder_for(format)
    for start in range(0, len(data), CHUNK):
        yield from decoder.feed(data[start : start + CHUNK])
    yield from decoder.close()


def _by_pyoxigraph(format: Format, data: bytes) -> Callable[[], int]:
    import pyoxigraph as ox

    document = data.replace(b"\nMESSAGE\n", b"\n").removeprefix(SYNTAX.announcement.encode())
    parsed = ox.RdfFormat.from_extension(format.extension)
    quads = sum(1 for _ in ox.parse(document, format=parsed))

    def parse() -> int:
        deque(ox.parse(document, format=parsed), maxlen=0)
        return quads

    return parse


def _by_pyjelly(side: str, data: bytes) -> Callable[[], int]:
    from pyjelly import jelly
    from pyjelly.integrations.generic.parse import parse_jelly_grouped
    from pyjelly.integrations.generic.serialize import grouped_stream_to_file
    from pyjelly.options import StreamParameters
    from pyjelly.serialize.streams import SerializerOptions

    if side == "pyjelly":
        return lambda: sum(map(len, parse_jelly_grouped(io.BytesIO(data))))
    sinks = [*parse_jelly_grouped(io.BytesIO(data))]
    options = SerializerOptions(
        logical_type=jelly.LOGICAL_STREAM_TYPE_DATASETS, params=StreamParameters(rdf_star=True)
    )

    def serialize() -> int:
        grouped_stream_to_file(iter(sinks), io.BytesIO(), options=options)
        return sum(map(len, sinks))

    return serialize

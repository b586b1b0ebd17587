"""Logs as other people write them, read beside others: `python -m benchmarks micro shapes [SHAPE …] [--format NAME …]`.

Each shape of message, short (5 quads) and long (30), in each format where it can be written. All sides have a process
of their own, read each log once unmeasured, and then in turn, so that compilers and caches are warm; figures are
medians of CPU seconds of reading, and ratios are those of the others to ours: above 1, ours is faster. All sides must
find the same quads up to the labels of blank nodes, message by message where they know messages, or nothing is printed.
n3, jsonld and rdfjs-jelly are those in the folder that CONSTRUCT_MESSAGES_NODE names (`npm install n3 jsonld`;
rdfjs-jelly is on GitHub only, and left out where it is not there).

With --write, messages in memory are written as logs, beside the writers of n3, rdflib and pyjelly. Their texts differ;
the shapes count only by what is in a message.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pyoxigraph as ox
from rich.console import Console
from rich.table import Table

from benchmarks.harness import RESULTS, record
from benchmarks.micro import readers, texts
from construct_messages.rdf import compiled

SHAPES = {
    "plain": "subjects with predicates, as riot, n3 and rdflib write them",
    "blank": "`[ … ]`: a result of a SOSA observation",
    "half": "`[ … ]` in every second message",
    "list": "`( … )`, `@list`",
    "single": "literals in single quotes",
    "long": 'texts over several lines in `"""`',
    "prefix": "`prefix` in lower case, in each message",
    "base": "BASE with relative IRIs",
    "triple": "a triple term in each observation",
    "names": "local names with escapes: `obs:2026\\/1`",
    "hosts": "IRIs with a user, or an IPv6 address",
    "language": 'language tags with upper case: `"x"@en-US`',
    "escapes": "letters as `\\u00E9`",
    "tabs": "lines with tabs",
    "dots": "lines without a space before the dot",
    "string": "lines with an explicit `xsd:string`",
    "quads": "named graphs in lines, and in Jelly's rows of QUADS",
    "graphs": "named graphs as blocks, and Jelly's GRAPHS",
    "named": "`https://schema.org/` named in each line, a context of 157 kB",
    "terms": "a context of 13 terms in each line",
    "document": "one document of 300,000 quads without delimiters",
}
JELLY = dict.fromkeys(("plain", "blank", "triple"), "TRIPLES")
JELLY |= {"quads": "QUADS", "graphs": "GRAPHS"}
"""The shapes of Jelly, and the rows they are written in."""
PEERS = {
    "nq": ("n3", "pyoxigraph"),
    "ttl": ("n3", "pyoxigraph"),
    "trig": ("n3", "pyoxigraph"),
    "ndjsonld": ("jsonld.js", "PyLD", "pyoxigraph"),
    "jelly": ("pyjelly", "rdfjs-jelly"),
    "rdfxml": ("rdflib", "pyoxigraph"),
}
WRITERS = {
    "nq": ("n3",),
    "ttl": ("n3",),
    "trig": ("n3",),
    "ndjsonld": ("rdflib",),
    "jelly": ("pyjelly",),
    "rdfxml": ("rdflib",),
}
WRITTEN = ("plain", "blank", "triple", "quads", "graphs")
"""The shapes that differ in writing."""
NODE = ("n3", "jsonld.js", "rdfjs-jelly")
WITHOUT_NAMED = ("pyoxigraph", "PyLD")
"""pyoxigraph fetches no contexts; PyLD processes a large one again for each line, and takes minutes."""
QUADS = {"ndjsonld": 5_000, "rdfxml": 10_000}
"""How many are read each time, where it is not 40,000."""
LENGTHS = {"short": 1, "long": 6}
"""Observations in a message, each of five quads."""


@dataclass(frozen=True)
class Row:
    """What one log took: microseconds a message, and what the others took by that. `do`: "read" or "write"."""

    do: str
    format: str
    shape: str
    length: str
    messages: int
    quads: int
    microseconds: float
    quads_per_second: float
    peak_mebibytes: float
    ratios: dict[str, float]


def main() -> None:
    """Measures the shapes and formats that are chosen, or (with --side) is one of the readers."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"{shape:10}{what}" for shape, what in SHAPES.items()),
    )
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help="all without")
    known = f"{', '.join(PEERS)}; all without"
    parser.add_argument("--format", nargs="+", choices=PEERS, metavar="NAME", help=known)
    parser.add_argument("--length", nargs="+", choices=LENGTHS, help="of messages; all without")
    parser.add_argument("--write", action="store_true", help="write logs instead of reading them")
    parser.add_argument(
        "--page", action="store_true", help="print the last figures as Markdown, for the docs"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--side", choices=readers.READ, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        readers.serve(arguments.side)
        return
    if arguments.page:
        print("\n".join(page()))
        return
    if unknown := set(arguments.shapes) - set(SHAPES):
        parser.error(f"no shape {', '.join(sorted(unknown))}; there are {', '.join(SHAPES)}")
    do = "write" if arguments.write else "read"
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for extension in arguments.format or PEERS:
            for shape in arguments.shapes or (WRITTEN if arguments.write else SHAPES):
                if shape in shapes_of(extension):
                    lengths = arguments.length or [*LENGTHS]
                    what = do, extension, shape
                    rows += measure(Path(folder), what, lengths, arguments.rounds)
                    print(f"{extension}, {shape}", file=sys.stderr)
            of_format = [row for row in rows if row.format == extension]
            if of_format:
                show(of_format)
                record(f"shapes-{do}-{extension}", of_format)


def shapes_of(extension: str) -> set[str]:
    """The shapes that a format can have."""
    return {
        "nq": {*texts.N_QUADS},
        "ttl": {*texts.TURTLE} - {"graphs"},
        "trig": {*texts.TURTLE},
        "ndjsonld": {*texts.JSON_LD},
        "jelly": {*JELLY},
        "rdfxml": {*texts.RDF_XML},
    }[extension]


def measure(
    folder: Path, what: tuple[str, str, str], lengths: Sequence[str], rounds: int
) -> Iterator[Row]:
    """One row for each length; a document has none. `what`: whether to read or write, the format and the shape."""
    do, extension, shape = what
    peers = (WRITERS if do == "write" else PEERS)[extension]
    with ExitStack() as running:
        sides = {
            side: running.enter_context(Side(side))
            for side in ("ours", *peers)
            if is_there(side) and not (shape == "named" and side in WITHOUT_NAMED)
        }
        for length in ["short"] if shape == "document" else lengths:
            size = LENGTHS[length]
            if do == "read":
                small = folder / f"small.{extension}"
                small.write_bytes(log(shape, extension, size, 8))
                dumps = {side: at.ask("dump", small)["messages"] for side, at in sides.items()}
                compare(f"{shape}, {extension}", dumps)
            quads = 300_000 if shape == "document" else QUADS.get(extension, 40_000)
            count = quads // size // 5
            whole = folder / f"log.{extension}"
            whole.write_bytes(log(shape, extension, size, count))
            yield row(sides, whole, (do, extension, shape, length, count), rounds)


def is_there(side: str) -> bool:
    """Whether the package is installed."""
    return side != "rdfjs-jelly" or (modules() / side).exists()


def modules() -> Path:
    """Where the packages of Node.js are."""
    return Path(os.environ["CONSTRUCT_MESSAGES_NODE"]) / "node_modules"


def log(shape: str, extension: str, size: int, count: int) -> bytes:
    """A log of the shape. `size`: observations in each message."""
    if extension != "jelly":
        return texts.log(shape, extension, size, count)
    source = "graphs" if shape == "quads" else shape
    head = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in texts.NAMES.items())
    written = texts.messages(source, "trig", size, count)
    messages = [[*ox.parse(head + text, ox.RdfFormat.TRIG)] for text in written]
    return readers.jelly(messages, JELLY[shape])


def row(
    sides: dict[str, Side], log: Path, what: tuple[str, str, str, str, int], rounds: int
) -> Row:
    """Reads or writes a log on all sides in turn."""
    do, extension, shape, _, messages = what
    first = {side: at.ask(do, log) for side, at in sides.items()}  # unmeasured
    counts = {side: found["quads"] for side, found in first.items()}
    if len({*counts.values()}) > 1:
        raise SystemExit(f"{shape}, {extension}: different numbers of quads: {counts}")
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    peak = 0.0
    for _ in range(rounds):
        for side, at in sides.items():
            found = at.ask(do, log)
            seconds[side].append(found["cpu"])
            peak = found["peak"] / 1024 if side == "ours" else peak
    medians = {side: median(each) for side, each in seconds.items()}
    ours, count = medians["ours"], counts["ours"]
    ratios = {side: each / ours for side, each in medians.items() if side != "ours"}
    if shape == "document":
        messages = 1
    each = ours / messages * 1e6
    return Row(*what[:-1], messages, count, each, count / ours, peak, ratios)


def compare(what: str, dumps: dict[str, list[str]]) -> None:
    """Ends the benchmark where a side has other messages than ours, or, of one document, other quads."""
    ours = dumps.pop("ours")
    for side, theirs in dumps.items():
        pairs = [*zip(ours, theirs, strict=True)] if len(ours) == len(theirs) else []
        pairs = pairs or [("".join(ours), "".join(theirs))]
        for number, (one, other) in enumerate(pairs, 1):
            if canonical(one) != canonical(other):
                raise SystemExit(
                    f"{what}, message {number}: ours and {side}'s differ\n{one}\n{other}"
                )


def canonical(lines: str) -> set[str]:
    """The quads of N-Quads with labels of blank nodes that do not depend on who read them."""
    dataset = ox.Dataset(ox.parse(lines, ox.RdfFormat.N_QUADS))
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return set(map(str, dataset))


class Side:
    """A process that reads logs, one at a time."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> Side:
        command = [sys.executable, "-m", "benchmarks", "micro", "shapes", "--side", self._name]
        if self._name in NODE:
            command = ["node", str(Path(__file__).with_name("peers.cjs")), self._name]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=os.environ | {"NODE_PATH": str(modules())},
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def ask(self, do: str, log: Path) -> dict[str, Any]:
        """Reads a log or writes its messages, for CPU seconds and quads, or dumps it: the N-Quads of each message, or
        of the document where the side knows no messages.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        extension = log.suffix[1:]
        asked: dict[str, object] = {"do": do, "path": str(log), "extension": extension}
        asked["type"] = readers.FORMATS[extension].media_types[0]
        if extension == "ndjsonld":
            asked["contexts"] = readers.CONTEXTS
        if do == "write":
            asked["prefixes"] = texts.NAMES
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._name} ended: {log.name}")
        found: dict[str, Any] = json.loads(line)
        return found


def show(rows: Sequence[Row]) -> None:
    """Prints the table of a format."""
    if not rows:
        return
    done = {"read": "read", "write": "written"}[rows[0].do]
    peers = dict.fromkeys(peer for each in rows for peer in each.ratios)
    name = readers.FORMATS[rows[0].format].name
    how = "" if compiled.wire else ", by Python alone"
    table = Table(title=f"{name}: {done}{how}, CPU seconds of others by ours")
    for column in ("shape", "µs a message", "quads/s", "MiB", *peers):
        table.add_column(column, justify="left" if column == "shape" else "right")
    for each in rows:
        name = each.shape if each.shape == "document" else f"{each.shape}, {each.length}"
        ratios = [f"{each.ratios[peer]:.2f} ×" if peer in each.ratios else "" for peer in peers]
        figures = (each.microseconds, each.quads_per_second, each.peak_mebibytes)
        written = (
            f"{figure:,.{places}f}" for figure, places in zip(figures, (1, 0, 0), strict=True)
        )
        table.add_row(name, *written, *ratios)
    Console(width=120).print(table)


def page() -> Iterator[str]:
    """The table of the docs, from the last figures of reading: short and long messages, beside one peer a format."""
    rows = {
        extension: [Row(**each) for each in json.loads(file.read_text())["figures"]]
        for extension in PEERS
        if (file := RESULTS / f"shapes-read-{extension}.json").exists()
    }
    yield f"| shape | {' | '.join(f'{readers.FORMATS[each].name}, {PEERS[each][0]}' for each in rows)} |"
    yield f"|---|{'--:|' * len(rows)}"
    for shape, what in SHAPES.items():
        cells = [
            ", ".join(
                f"{ratio:.1f}" if (ratio := row.ratios[PEERS[each][0]]) >= 1 else f"**{ratio:.2f}**"
                for row in of_format
                if row.shape == shape
            )
            for each, of_format in rows.items()
        ]
        if any(cells):
            yield f"| {shape}: {what} | {' | '.join(cells)} |"
    yield ""
    for each, of_format in rows.items():
        for peer in PEERS[each][1:]:
            ratios = [row.ratios[peer] for row in of_format if peer in row.ratios]
            if ratios:
                yield f"{readers.FORMATS[each].name}, {peer}: {min(ratios):.2f} to {max(ratios):.1f} ×"

"""Peak memory of reading and of converting one large message, as a multiple of its size in the log.

`python -m benchmarks micro message_memory [--quads N] [FORMAT …]`. Every run is a fresh process. The message has many
small quads, or one literal of the same length; converting writes it as N-Quads, or N-Quads as TriG. What a process
takes that reads a message of one quad is taken off.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.harness import Figure, completed, report, run
from construct_messages import Message, Quad, iri, literal, write_log
from construct_messages.rdf.formats import FORMATS, Format

SHAPES = ("quads", "literal")
_CHARACTERS = 80  # of the literal for each quad
_READ = """
import sys
from construct_messages import read_log
for message in read_log(sys.argv[1]):
    pass
"""


def main() -> None:
    """Measures each format and shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quads", type=int, default=400_000, help="of the message (default 400,000: 10 to 30 MB)"
    )
    parser.add_argument(
        "formats", nargs="*", metavar="FORMAT", help="file extensions (default all)"
    )
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--shape", choices=SHAPES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write:
        write_log([large(arguments.shape, arguments.quads)], arguments.write)
        return
    formats = [
        format
        for format in FORMATS
        if not arguments.formats or format.extension in arguments.formats
    ]
    with TemporaryDirectory() as folder:
        figures = [
            figure
            for shape in SHAPES
            for format in formats
            for figure in _measure(format, shape, arguments.quads, Path(folder))
        ]
    report(
        "message_memory",
        "seconds, and peak memory beyond that of a small message (the ratio is to the log)",
        figures,
    )


def large(shape: str, quads: int) -> Message:
    """The message.

    >>> len(large("quads", 20)), len(large("literal", 20))
    (20, 1)
    """
    if shape == "literal":
        return Message([Quad(iri("urn:s"), iri("urn:p"), literal("x" * _CHARACTERS * quads))])
    return Message(
        Quad(
            iri(f"http://example.org/thing/{number // 10}"),
            iri(f"http://example.org/p{number % 10}"),
            literal(f"value {number}", language="en"),
        )
        for number in range(quads)
    )


def _measure(format: Format, shape: str, quads: int, folder: Path) -> list[Figure]:
    small, log = folder / f"small.{format.extension}", folder / f"{shape}.{format.extension}"
    # this process stays small, as those that it starts begin with its memory
    for file, name, count in ((small, "quads", 1), (log, shape, quads)):
        write = ["--write", str(file), "--shape", name, "--quads", str(count)]
        completed([sys.executable, "-m", "benchmarks", "micro", "message_memory", *write])
    size = log.stat().st_size
    converted = str(folder / ("converted.trig" if format.extension == "nq" else "converted.nq"))
    figures = []
    for how, command in (
        ("read", [sys.executable, "-c", _READ]),
        ("convert", [sys.executable, "-m", "construct_messages", "convert"]),
    ):
        more = [converted] if how == "convert" else []
        least, most = (run([*command, str(file), *more]) for file in (small, log))
        what = f"{format.name}, {shape}, {how}: {size / 2**20:.0f} MiB"
        if most.ending != "ok":  # a term that a parser does not take
            reason = most.stderr.strip().splitlines()
            print(
                f"{what}: {next((line for line in reversed(reason) if 'too long' in line or 'longer' in line), '')}"
            )
            continue
        beyond = most.peak_bytes - least.peak_bytes
        figures.append(
            Figure(f"{what}, {beyond / 2**20:.0f} MiB of memory", most.seconds, beyond / size)
        )
    log.unlink()
    return figures

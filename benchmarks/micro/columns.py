"""Columns beside pyarrow: typed columns of solutions, quads and nested messages, as Parquet.

`python -m benchmarks micro columns`. Solutions are made before the clock starts, as a decoder of SPARQL results returns
them: columns of N-Triples terms in UTF-8. pyarrow writes the same terms raw: `pa.array` of each column and a row group
for as many rows, with the same compression. For quads, it gets their columns ready made. Two shapes, with short and
with long values. `--solutions N --memory` writes one Parquet file and shows the peak of memory instead. `--table` gets
the typed columns of a SELECT over a table of quads, beside SQL that was written by hand for it over the same Parquet.
"""

from __future__ import annotations

import argparse
import io
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import Figure, alternate, report
from construct_messages import ConstructQuery, select
from construct_messages.logs import EncoderOptions, encoder_for
from construct_messages.logs.columns.options import BATCH_ROWS
from construct_messages.logs.columns.quads import NUMBER, SPLIT
from construct_messages.logs.columns.solutions import MOST_FIELDS
from construct_messages.options import ColumnOptions
from construct_messages.rdf.formats import PARQUET
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Template
from construct_messages.rdf.terms import XSD
from construct_messages.sparql.relational.quads import load
from construct_messages.sparql.sources.duckdb import DuckDbSource

EX = "http://example.org/"
BATCH = 4096  # solutions, as of a source
LONG = " and so on, for a long description of what this is about" * 4


@dataclass(frozen=True)
class Shape:
    """Solutions of one shape."""

    name: str
    template: Template
    batches: Sequence[Solutions]

    @property
    def count(self) -> int:
        """The number of solutions."""
        return sum(map(len, self.batches))


def main() -> None:
    """Measures all shapes, or the memory of a long result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--solutions", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if arguments.memory:
        _memory(arguments.solutions)
    elif arguments.table:
        report("columns-of-table", *of_table(arguments.solutions, arguments.rounds))
    else:
        report("columns", *measure(arguments.solutions, arguments.rounds))


def measure(solutions: int, rounds: int) -> tuple[str, list[Figure]]:
    """The table's title and its lines."""
    figures = []
    for width in (5, 30):
        for long in (False, True):
            figures += _measured(
                shape(width, long, solutions * 5 // width // (3 if long else 1)), rounds
            )
    return "Columns as Parquet", figures


def shape(width: int, long: bool, solutions: int) -> Shape:
    """Messages of some width: a node with values of several datatypes."""
    template = _template(width)
    batches = [
        _batch(template.variables, range(start, min(start + BATCH, solutions)), long)
        for start in range(0, solutions, BATCH)
    ]
    return Shape(f"{width} quads, {'long' if long else 'short'} values", template, batches)


def _template(width: int) -> Template:
    values = " ; ".join(f":p{place} ?v{place}" for place in range(width))
    text = f"PREFIX : <{EX}> CONSTRUCT {{ ?s {values} }} WHERE {{ ?s {values} }}"
    return ConstructQuery.parse(text).template


def _batch(variables: Sequence[str], numbers: range, long: bool) -> Solutions:
    return Solutions([[_term(name, number, long) for number in numbers] for name in variables])


def _term(name: str, number: int, long: bool) -> bytes:
    if name == "s":
        return f"<{EX}thing/{number}>".encode()
    kind = int(name[1:]) % 5
    if kind == 0:
        return f'"name {number}{LONG if long else ""}"@en'.encode()
    if kind == 1:
        return f'"{number % 1000}"^^<{XSD}integer>'.encode()
    if kind == 2:
        return f"<{EX}place/{number % 100}>".encode()
    if kind == 3:
        return f'"2024-{number % 12 + 1:02}-{number % 28 + 1:02}"^^<{XSD}date>'.encode()
    return f'"{number}.5"^^<{XSD}double>'.encode()


def _write(shape: Shape, options: ColumnOptions) -> bytes:
    assert PARQUET.own is not None
    encoder = encoder_for(
        PARQUET, PARQUET.own, EncoderOptions(own=options, template=shape.template)
    )
    batches = encoder.for_template(shape.template)
    parts, first = [], 0
    for solutions in shape.batches:
        parts.append(bytes(batches.encode(solutions, first)))
        first += len(solutions)
    return b"".join([*parts, encoder.finish()])


def _by_pyarrow(names: Sequence[str], tables: Sequence[Sequence[Sequence[object]]]) -> bytes:
    """Writes columns of row groups raw."""
    sink = io.BytesIO()
    schema = pa.schema(
        [pa.field(name, pa.int64() if name == "message" else pa.string()) for name in names]
    )
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        for columns in tables:
            arrays = [
                pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return sink.getvalue()


def _row_groups(shape: Shape) -> Iterator[list[list[bytes]]]:
    """The columns of solutions, in the sizes of our row groups."""
    width = len(shape.template.variables)
    per_group = min(BATCH_ROWS, MOST_FIELDS // width) // BATCH or 1
    for start in range(0, len(shape.batches), per_group):
        part = shape.batches[start : start + per_group]
        yield [
            list(chain.from_iterable(each.utf8[place] for each in part)) for place in range(width)
        ]


def _quads(shape: Shape) -> Iterator[list[list[object]]]:
    """The columns of quads with the number of their message."""
    first = 0
    per_group = max(1, BATCH_ROWS // len(shape.template.patterns) // BATCH)
    for start in range(0, len(shape.batches), per_group):
        rows: list[tuple[object, ...]] = []
        for solutions in shape.batches[start : start + per_group]:
            for number, quads in enumerate(
                shape.template.instantiate_all(solutions.text, first), first + 1
            ):
                rows += [(number, *quad) for quad in quads]
            first += len(solutions)
        yield [list(column) for column in zip(*rows, strict=True)]


def _measured(shape: Shape, rounds: int) -> list[Figure]:
    names = shape.template.variables
    solutions, quads = list(_row_groups(shape)), list(_quads(shape))
    parts = ["message", "subject", "predicate", "object", "graph"]
    values = [
        [column.to_pylist() for column in group.columns]
        for group in pq.ParquetFile(io.BytesIO(_write(shape, ColumnOptions("quads")))).iter_batches(
            BATCH_ROWS
        )
    ]
    raw = pq.read_table(io.BytesIO(_write(shape, ColumnOptions("quads", raw=True))))
    if not raw.equals(pq.read_table(io.BytesIO(_by_pyarrow(parts, quads))).cast(raw.schema)):
        raise SystemExit("the columns are not the same")
    runs: list[Callable[[], object]] = [
        lambda: _by_pyarrow(names, solutions),
        lambda: _write(shape, ColumnOptions("solutions")),
        lambda: _write(shape, ColumnOptions("solutions", raw=True)),
        lambda: _by_pyarrow(parts, quads),
        lambda: _write(shape, ColumnOptions("quads", raw=True)),
        lambda: _by_pyarrow([NUMBER, *SPLIT], values),
        lambda: _write(shape, ColumnOptions("quads")),
        lambda: _write(shape, ColumnOptions("nested")),
    ]
    seconds = alternate(rounds, runs, time.process_time)
    whats = [
        "pyarrow, terms of solutions",
        "solutions, typed",
        "solutions, raw",
        "pyarrow, terms of quads",
        "quads, raw",
        "pyarrow, values of quads",
        "quads",
        "nested",
    ]
    bases = [seconds[0]] * 3 + [seconds[3]] * 2 + [seconds[5]] * 3
    return [
        Figure(
            f"{shape.name}: {what}, {shape.count / own:,.0f} solutions/s",
            own,
            None if what.startswith("pyarrow") else base / own,
            "" if what.startswith("pyarrow") else "≥ 0.8",
        )
        for what, own, base in zip(whats, seconds, bases, strict=True)
    ]


SELECT = "SELECT ?s ?n ?d ?p { ?s <urn:staff> ?n ; <urn:founded> ?d ; <urn:in> ?p }"
SQL = """SELECT n.subject[2:-2] AS s, CAST(split_part(n.object, '"', 2) AS BIGINT) AS n,
  CAST(split_part(d.object, '"', 2) AS DATE) AS d, p.object[2:-2] AS p
FROM (SELECT subject, object FROM quads WHERE predicate = '<urn:staff>') AS n
JOIN (SELECT subject, object FROM quads WHERE predicate = '<urn:founded>') AS d ON n.subject = d.subject
JOIN (SELECT subject, object FROM quads WHERE predicate = '<urn:in>') AS p ON n.subject = p.subject"""


def of_table(solutions: int, rounds: int) -> tuple[str, list[Figure]]:
    """The table's title, and its lines for integers, dates and IRIs of as many subjects; each on one thread."""
    with tempfile.TemporaryDirectory() as name:
        dump, table = Path(name) / "dump.nt", Path(name) / "dump.quads"
        with dump.open("w") as file:
            for number in range(solutions):
                date = f"{1900 + number % 120}-{number % 12 + 1:02}-{number % 28 + 1:02}"
                file.write(
                    f'<{EX}{number}> <urn:staff> "{number % 5000}"^^<{XSD}integer> .\n'
                    f'<{EX}{number}> <urn:founded> "{date}"^^<{XSD}date> .\n'
                    f"<{EX}{number}> <urn:in> <{EX}place/{number % 1000}> .\n"
                )
        load([dump], table)
        source, connection = DuckDbSource(table, threads=1), duckdb.connect()
        connection.execute("SET threads = 1")
        connection.execute(f"CREATE VIEW quads AS FROM read_parquet('{table}/*.parquet')")

        def own() -> pa.Table:
            return select(SELECT, source).to_arrow().read_all()

        def by_hand() -> pa.Table:
            return connection.sql(SQL).to_arrow_table()

        if not own().sort_by("s").cast(by_hand().schema).equals(by_hand().sort_by("s")):
            raise SystemExit("the columns are not the same")
        ours, theirs = alternate(rounds, [own, by_hand], time.process_time)
        source.close()
    whats = f"{solutions:,} solutions of a table, integers, dates and IRIs"
    return "Columns of a SELECT over a table of quads, CPU seconds", [
        Figure(f"{whats}: SQL by hand", theirs),
        Figure(f"{whats}: select(…).to_arrow()", ours, ours / theirs, "≤ 3"),
    ]


def _memory(solutions: int) -> None:
    """Writes a long result, and prints the peak of memory after each tenth of it."""
    template = _template(5)
    assert PARQUET.own is not None
    for layout in ("solutions", "quads", "nested"):
        encoder = encoder_for(
            PARQUET, PARQUET.own, EncoderOptions(own=ColumnOptions(layout), template=template)
        )
        batches = encoder.for_template(template)
        with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "x", "wb") as file:
            for start in range(0, solutions, BATCH):
                numbers = range(start, min(start + BATCH, solutions))
                batch = _batch(template.variables, numbers, False)
                file.write(bytes(batches.encode(batch, start)))
                if start * 10 // solutions != (start + BATCH) * 10 // solutions:
                    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                    print(
                        f"{layout}: {start + BATCH:,} solutions, at most {peak:.0f} MiB", flush=True
                    )
            file.write(encoder.finish())
            print(f"{layout}: {file.tell():,} bytes")


if __name__ == "__main__":
    main()

"""CONSTRUCT over a dump on one machine: `python -m benchmarks micro dumps [--triples N …] [--only NAME …]`.

The data have the shape of DBpedia (`suite/datasets.py`). The query has five patterns, a join, an OPTIONAL and three
filters, and a template of six triples. Each run is a cold process, and writes an N-Quads log: from text, and from a
table of quads in Parquet. Beside this package stands SQL that was written by hand for this one query over the same
DuckDB; it checks each line by one regular expression, removes duplicates, and writes the log by itself. All logs must
have the same messages, or nothing is printed. Ratios are of CPU seconds to those of the embedded engine.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from hashlib import blake2b
from pathlib import Path

import duckdb

from benchmarks.harness import Figure, Run, completed, report
from benchmarks.suite.datasets import dbpedia_shaped

SIZES = (1_000_000, 3_000_000, 10_000_000, 30_000_000)

_LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_DBO = "http://dbpedia.org/ontology/"
_XSD = "http://www.w3.org/2001/XMLSchema#"
QUERY = f"""PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX dbo: <{_DBO}>
PREFIX xsd: <{_XSD}>
CONSTRUCT {{
  ?person a dbo:Person ; rdfs:label ?name ; dbo:birthDate ?born ; dbo:birthPlace ?place ; dbo:deathDate ?died .
  ?place rdfs:label ?where .
}} WHERE {{
  ?person a dbo:Person ; rdfs:label ?name ; dbo:birthDate ?born ; dbo:birthPlace ?place .
  ?place rdfs:label ?where .
  OPTIONAL {{ ?person dbo:deathDate ?died }}
  FILTER (LANG(?name) = "en" && LANG(?where) = "en" && ?born >= "1950-01-01"^^xsd:date)
}}"""

_LINE = (
    r"(<[^<>\"{}|^`\\\x00-\x20]*>|_:[^ ]+) <[^<>\"{}|^`\\\x00-\x20]*> (<[^<>\"{}|^`\\\x00-\x20]*>|_:[^ ]+|"
    r'"([^"\\\n\r]|\\[tbnrf"\'\\]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*"'
    r"(@[A-Za-z]+(-[A-Za-z0-9]+)*|\^\^<[^<>\"{}|^`\\\x00-\x20]*>)?) \."
)
_FROM_TEXT = """CREATE TABLE quads AS SELECT DISTINCT subject, predicate,
  substr(line, length(subject) + length(predicate) + 3, length(line) - length(subject) - length(predicate) - 4)
  AS object
FROM (
  SELECT line, split_part(line, ' ', 1) AS subject, split_part(line, ' ', 2) AS predicate
  FROM read_csv('{source}', columns = {{'line': 'VARCHAR'}}, delim = '\x01', quote = '', escape = '', header = FALSE)
  WHERE CASE WHEN regexp_full_match(line, '{line}') THEN TRUE ELSE error('malformed: ' || line) END
)"""
_FROM_TABLE = (
    "CREATE VIEW quads AS SELECT * FROM read_parquet('{source}/*.parquet') WHERE graph IS NULL"
)
_SQL = f"""COPY (
  WITH labels AS (
    SELECT DISTINCT subject, object FROM quads WHERE predicate = '{_LABEL}' AND ends_with(object, '"@en')
  ), born AS (
    SELECT DISTINCT subject, object FROM quads
    WHERE predicate = '<{_DBO}birthDate>' AND CAST(split_part(object, '"', 2) AS DATE) >= DATE '1950-01-01'
  )
  SELECT concat_ws(chr(10), '# @message',
    concat(p.subject, ' {_TYPE} <{_DBO}Person> .'), concat(p.subject, ' {_LABEL} ', n.object, ' .'),
    concat(p.subject, ' <{_DBO}birthDate> ', b.object, ' .'), concat(p.subject, ' <{_DBO}birthPlace> ', l.object, ' .'),
    CASE WHEN d.object IS NOT NULL THEN concat(p.subject, ' <{_DBO}deathDate> ', d.object, ' .') END,
    concat(l.object, ' {_LABEL} ', w.object, ' .'))
  FROM (SELECT DISTINCT subject FROM quads WHERE predicate = '{_TYPE}' AND object = '<{_DBO}Person>') p
  JOIN labels n ON n.subject = p.subject
  JOIN born b ON b.subject = p.subject
  JOIN (SELECT DISTINCT subject, object FROM quads WHERE predicate = '<{_DBO}birthPlace>') l ON l.subject = p.subject
  JOIN labels w ON w.subject = l.object
  LEFT JOIN (SELECT DISTINCT subject, object FROM quads WHERE predicate = '<{_DBO}deathDate>') d
    ON d.subject = p.subject
) TO '{{log}}' (FORMAT csv, HEADER FALSE, QUOTE '', ESCAPE '', DELIMITER '\x01')"""


def main() -> None:
    """Measures each size, or (with --by-hand) is the process of the hand-written SQL."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--triples", type=int, nargs="+", default=SIZES)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--only",
        nargs="+",
        choices=NAMES,
        default=NAMES,
        help="some of the ways; `load` is for those from the table",
    )
    parser.add_argument("--memory-limit", help="of DuckDB, as in 4GB; this package's and by hand")
    parser.add_argument("--by-hand", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.by_hand:
        _by_hand(*arguments.by_hand)
        return
    figures: list[Figure] = []
    for triples in arguments.triples:
        dump = dbpedia_shaped(triples)
        with tempfile.TemporaryDirectory() as name:
            figures += _measure(
                triples, dump, Path(name), arguments.rounds, arguments.only, arguments.memory_limit
            )
    report("dumps", "from a dump to an N-Quads log, cold processes, wall seconds", figures)


NAMES = {
    "embedded": "embedded Oxigraph, text to log",
    "engine": "--engine duckdb, text to log",
    "sql-text": "SQL by hand, text to log",
    "load": "text to a table",
    "table": "table to log",
    "sql-table": "SQL by hand, table to log",
}


def _commands(dump: Path, folder: Path, limit: str | None) -> dict[str, tuple[str, ...]]:
    query, table = str(folder / "query.rq"), str(folder / "dump.quads")
    limits = ("--memory-limit", limit) if limit else ()
    program = (sys.executable, "-m", "construct_messages")
    by_hand = (sys.executable, "-m", "benchmarks", "micro", "dumps", "--by-hand")

    def run(name: str, source: str, *options: str) -> tuple[str, ...]:
        log = str(folder / f"{name}.nq")
        return *program, "run", query, "--source", source, *options, "--output", log, "--quiet"

    return {
        "embedded": run("embedded", str(dump)),
        "engine": run("engine", str(dump), "--engine", "duckdb", *limits),
        "sql-text": (*by_hand, "text", str(dump), str(folder / "sql-text.nq"), limit or ""),
        "load": (*program, "load", str(dump), "--output", table, "--quiet", *limits),
        "table": run("table", table, *limits),
        "sql-table": (*by_hand, "table", table, str(folder / "sql-table.nq"), limit or ""),
    }


def _measure(
    triples: int, dump: Path, folder: Path, rounds: int, only: list[str], limit: str | None
) -> list[Figure]:
    (folder / "query.rq").write_text(QUERY)
    commands = {name: line for name, line in _commands(dump, folder, limit).items() if name in only}
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for _ in range(rounds):  # in turn, so that what the machine does meanwhile meets all alike
        for name, command in commands.items():
            (folder / f"{name}.nq").unlink(missing_ok=True)
            runs[name].append(completed(command))
    contents = {path.stem: _contents(path) for path in sorted(folder.glob("*.nq"))}
    if len(set(contents.values())) != 1:
        raise SystemExit(f"{triples}: the logs differ in messages: {contents}")
    messages = next(iter(contents.values()))[0]
    cpu = {name: statistics.median(run.cpu_seconds for run in runs[name]) for name in runs}

    def figure(name: str) -> Figure:
        seconds = statistics.median(run.seconds for run in runs[name])
        peak = max(run.peak_bytes for run in runs[name]) / 2**30
        ratio = cpu[name] / cpu["embedded"] if "embedded" in cpu and name != "embedded" else None
        goal = {"engine": "≤ 0.5", "table": "≤ 0.15"}.get(name, "") if ratio else ""
        what = f"{triples / 1e6:g}M, {messages:,} messages, {NAMES[name]}"
        return Figure(f"{what}: {cpu[name]:.1f} CPU s, {peak:.2f} GiB", seconds, ratio, goal)

    return list(map(figure, commands))


def _by_hand(kind: str, source: str, log: str, limit: str) -> None:
    with tempfile.TemporaryDirectory() as spill:
        connection = duckdb.connect(
            config={"temp_directory": spill, "preserve_insertion_order": False}
        )
        if limit:
            connection.execute(f"SET memory_limit = '{limit}'")
        begin = _FROM_TEXT if kind == "text" else _FROM_TABLE
        connection.execute(begin.format(source=source, line=_LINE.replace("'", "''")))
        connection.execute(_SQL.format(log=log))


def _contents(log: Path) -> tuple[int, int]:
    """The number of the messages of a log, and a number that is the same for the same messages in another order."""
    count = total = 0
    message = blake2b(digest_size=8)
    with log.open("rb") as lines:
        for line in lines:
            if line == b"# @message\n":
                count, total = count + 1, total + int.from_bytes(message.digest())
                message = blake2b(digest_size=8)
            else:
                message.update(line)
    return count, (total + int.from_bytes(message.digest())) % (1 << 64)

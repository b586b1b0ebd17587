"""The command `load`: RDF dumps as a table of quads, which `run` and the Python API query."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from construct_messages.cli.arguments import Commands, add_lenient, add_reports, add_table, option
from construct_messages.cli.examine import counted
from construct_messages.errors import UsageError
from construct_messages.rdf.terms import Lenience

_STATUSES: Final = (
    "Exit status: 0 complete, 1 not written, 2 wrong usage, or no DuckDB, 3 malformed data."
)


def add(commands: Commands) -> None:
    """Adds the command."""
    load = commands.add_parser(
        "load",
        help="write a table of RDF dumps, for many queries",
        description="Read RDF dumps, check each statement, and write their quads as a table in Parquet, which takes a "
        "fraction of the space and is queried without loading it again. Files that the table has already are replaced; "
        "the others stay as they are.",
        examples=[
            "construct-messages load dump/*.nt.bz2 --output dump.quads",
            "construct-messages load dirty.nt --output dump.quads --skip-invalid",
            "construct-messages run query.rq --source dump.quads --output log.nq.gz",
        ],
        epilog=_STATUSES,
    )
    load.set_defaults(command=_load)
    load.add_argument("paths", metavar="FILE", nargs="+", help="RDF files, also compressed")
    option(load, "-o, --output TABLE", "the folder of the table", required=True)
    add_table(
        load,
        """
        --memory-limit SIZE   the memory of DuckDB while it sorts, as in 1500MB; default: four fifths of all
        --threads N   the threads of DuckDB; default: one for each core
        --spill DIR   the folder for data beyond the memory; default: one in the table
        """,
    )
    add_lenient(load, "statements")
    add_reports(load)


def _load(options: argparse.Namespace) -> int:
    try:
        from construct_messages.sparql.relational.quads import load
    except ModuleNotFoundError as error:
        raise UsageError(
            f"tables of quads are written by DuckDB: {error}",
            hint="install the extra duckdb: pip install 'construct-messages[duckdb]'",
        ) from error

    def loaded(name: str, rows: int, lenience: Lenience) -> None:
        if not options.quiet:
            found = f"; {lenience}" if lenience.passed else ""
            print(f"{name}: {counted(rows, 'quad')}{found}", file=sys.stderr, flush=True)

    statistics = load(
        options.paths,
        options.output,
        memory_limit=options.memory_limit,
        threads=options.threads,
        spill=options.spill,
        lenient=options.lenient,
        report=loaded,
    )
    if not options.quiet:
        print(f"{options.output}: {counted(statistics.rows or 0, 'quad')}", file=sys.stderr)
    return 0

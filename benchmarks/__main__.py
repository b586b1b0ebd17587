"""`python -m benchmarks`: arguments of the benchmarks, and nothing else."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.micro import NAMES

_PROFILES = ("smoke", "default", "million", "full")


def main(arguments: Sequence[str]) -> None:
    """Runs one subcommand.

    Raises:
        SystemExit: for arguments that are wrong, and for a benchmark that found something wrong.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    micro = commands.add_parser(
        "micro",
        help="measure one part of this package",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"{name:14}{what}" for name, what in NAMES.items()),
    )
    micro.add_argument("name", choices=NAMES, metavar="NAME", help="one of those below")
    micro.add_argument(
        "arguments", nargs=argparse.REMAINDER, help="of that benchmark; --help names them"
    )
    run = commands.add_parser("run", help="run the suite: every competitor over every query")
    run.add_argument("--profile", choices=_PROFILES, default="default", help="how much is run")
    run.add_argument(
        "--output",
        type=Path,
        metavar="FILE.json",
        help="rows of results; a CSV file goes beside it",
    )
    run.add_argument("--seed", type=int, default=42, help="of the generated data")
    run.add_argument(
        "--only", nargs="+", metavar="COMPETITOR", help="names of competitors; all without it"
    )
    run.add_argument(
        "--queries", nargs="+", metavar="QUERY", help="names of queries; all without it"
    )
    run.add_argument(
        "--sizes", nargs="+", type=int, metavar="TRIPLES", help="those of the profile without it"
    )
    run.add_argument(
        "--real",
        metavar="FOLDER|URL",
        help="also run over real DBpedia files of this folder or mirror",
    )
    run.add_argument(
        "--endpoint",
        metavar="URL",
        help="ask a live endpoint alone: few queries, one request a second",
    )
    run.add_argument(
        "--contact", metavar="ADDRESS", help="mail or web address that the live endpoint is told"
    )
    run.add_argument(
        "--every",
        type=float,
        default=1.0,
        metavar="SECONDS",
        help="between requests to a live endpoint",
    )
    run.add_argument(
        "--check",
        action="store_true",
        help="fail unless all of this package is right and others run",
    )
    run.add_argument(
        "--fresh", action="store_true", help="forget the rows that the output file has"
    )
    data = commands.add_parser(
        "data", help="write the data sets of a profile, and check what the queries find"
    )
    data.add_argument("--profile", choices=_PROFILES, default="default")
    data.add_argument("--seed", type=int, default=42, help="of the generated data")
    values = commands.add_parser(
        "values", help="JSON documents and rows, beside scripts: what is right, rates, memory"
    )
    values.add_argument("--triples", type=int, default=1_500_000, help="of the generated data")
    values.add_argument("--seed", type=int, default=42, help="of the generated data")
    values.add_argument(
        "--check", action="store_true", help="fail unless all of this package is right"
    )
    report = commands.add_parser(
        "report", help="write tables, plots and pages from the rows of a run"
    )
    report.add_argument(
        "results", nargs="?", type=Path, metavar="FILE.json", help="those of the docs without it"
    )
    report.add_argument("--output", type=Path, metavar="FOLDER", help="docs/benchmarks without it")
    known = parser.parse_args(arguments)
    # modules are imported where they are needed: a benchmark of memory shall not hold what the suite imports
    match known.command:
        case "micro":
            sys.argv = [f"{parser.prog} micro {known.name}", *known.arguments]
            importlib.import_module(f"benchmarks.micro.{known.name}").main()
        case "run":
            importlib.import_module("benchmarks.suite.commands").run(known)
        case "data":
            importlib.import_module("benchmarks.suite.commands").data(known)
        case "values":
            importlib.import_module("benchmarks.suite.values.table").run(
                known.triples, known.seed, check=known.check
            )
        case "report":
            paths = {"source": known.results, "output": known.output}
            given = {name: path for name, path in paths.items() if path is not None}
            importlib.import_module("benchmarks.suite.report").report(**given)


if __name__ == "__main__":
    main(sys.argv[1:])

"""The command `spark verify`, which reads the logs that `spark run` and `spark convert` wrote. It starts no session."""

from __future__ import annotations

import argparse
import json
from typing import Final

from construct_messages.cli.arguments import Commands, add_reports, option
from construct_messages.cli.examine import counted
from construct_messages.cli.report import report, warn
from construct_messages.rdf.errors import IncompleteResult
from construct_messages.spark.session import require

_DAMAGED: Final = 3


def add(steps: Commands) -> None:
    """Adds the command."""
    verify = steps.add_parser(
        "verify",
        help="check that folders of logs are complete",
        description="Read all logs in the folders that spark run and convert have written, and compare them with "
        "_SUCCESS and the records of their runs. This does not start Spark.",
        examples=["construct-messages spark verify messages"],
        epilog="Exit status: 0 all folders are whole, 2 wrong usage, 3 a log is missing or damaged.",
    )
    verify.set_defaults(command=_verify)
    verify.add_argument(
        "folders",
        metavar="FOLDER",
        nargs="+",
        help="folders, on any filesystem that pyarrow reaches",
    )
    option(verify, "--lenient", "pass malformed IRIs and language tags")
    option(verify, "--json", "print a JSON object for each folder, for programs")
    add_reports(verify, quiet=None)


def _verify(options: argparse.Namespace) -> int:
    require(java=False)
    from construct_messages.spark.logs.verification import verify_folder

    status = 0
    for name in options.folders:
        found = verify_folder(name, lenient=options.lenient)
        if options.json:
            print(json.dumps(found._asdict(), ensure_ascii=False), flush=True)
        elif not found.problems:
            figures = (
                counted(found.messages, "message"),
                counted(found.quads, "quad"),
                counted(found.logs, "log"),
                *(f"run {run}" for run in found.runs),
            )
            print(f"{name}: ok, {', '.join(figures)}", flush=True)
        if not options.json:
            for note in found.notes:
                warn(f"{name}: {note}")
        for problem in found.problems:
            report(IncompleteResult(f"{name}: {problem}"), debug=options.debug)
            status = _DAMAGED
    return status

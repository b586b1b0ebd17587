"""The commands `spark load`, `run`, `convert` and `verify`."""

from __future__ import annotations

from construct_messages.cli.arguments import Commands
from construct_messages.cli.spark import commands as jobs
from construct_messages.cli.spark import verification


def add(commands: Commands) -> None:
    """Adds the commands."""
    spark = commands.add_parser(
        "spark",
        help="load, query and convert large data on Spark",
        description="Write message logs of RDF dumps, or of other logs, on Apache Spark.",
    )
    steps = spark.add_subparsers(title="commands", metavar="COMMAND", required=True)
    jobs.add(steps)
    verification.add(steps)

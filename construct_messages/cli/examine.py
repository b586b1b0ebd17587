"""The commands that tell something about logs: `validate`, `inspect` and `diff`."""

from __future__ import annotations

import argparse

from construct_messages.cli.arguments import Commands
from construct_messages.cli.logs import add_input, add_reports, open_log
from construct_messages.cli.report import report
from construct_messages.errors import ConstructMessagesError, LimitExceeded, LogError


def add(commands: Commands) -> None:
    """Adds the commands."""
    validate = commands.add_parser(
        "validate",
        help="tell whether logs are well-formed",
        description="Read logs of RDF Messages to their end, and report the first error of each.",
        epilog="Exit status: 0 all are well-formed, 1 one is not, or has a message that is too large, 2 bad usage.",
        allow_abbrev=False,
    )
    validate.set_defaults(command=_validate)
    validate.add_argument("logs", metavar="LOG", nargs="+", help="the logs to read; - for standard input")
    add_input(validate)
    add_reports(validate, progress=False)


def _validate(options: argparse.Namespace) -> int:
    status = 0
    for name in options.logs:
        quads = 0
        try:
            with open_log(name, options) as reader:
                for message in reader:
                    quads += len(message)
        except ConstructMessagesError as error:
            report(error, debug=options.debug)
            status = max(status, 1 if isinstance(error, (LogError, LimitExceeded)) else 2)
        else:
            print(f"{name}: ok, {counted(reader.messages, 'message')}, {counted(quads, 'quad')}", flush=True)
    return status


def counted(number: int, noun: str) -> str:
    """A number of things, in words.

    >>> counted(1, "quad"), counted(1200, "message")
    ('1 quad', '1,200 messages')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

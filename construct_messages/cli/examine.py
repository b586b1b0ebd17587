"""The commands that report on logs: `validate`, `inspect` and `diff`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from itertools import chain, repeat
from typing import Any, Final

from construct_messages.cli.arguments import Commands, add_reports, option
from construct_messages.cli.logs import add_input, open_log, watched
from construct_messages.cli.terminal import STANDARD, report
from construct_messages.errors import (
    ConstructMessagesError,
    LimitExceeded,
    LogError,
    UsageError,
)
from construct_messages.logs import FormatOptions
from construct_messages.logs.inspection import Inspection, Surplus, compare
from construct_messages.logs.reading import LogReader
from construct_messages.rdf.formats import FORMATS

_TROUBLE: Final = 2  # 1 is a result
_BAR: Final = 40
_MOST_PREFIXES: Final = 20


def add(commands: Commands) -> None:
    """Adds the commands."""
    validate = commands.add_parser(
        "validate",
        help="check that logs are well-formed",
        description="Read logs of RDF Messages and report the first error of each.",
        examples=["construct-messages validate *.nq.gz"],
        epilog="Exit status: 0 all are well-formed, 2 wrong usage, 3 one is malformed, 4 one has a message that is too "
        "large.",
    )
    validate.set_defaults(command=_validate)
    validate.add_argument(
        "logs", metavar="LOG", nargs="+", help="the logs to read; - for standard input"
    )
    add_input(validate)
    add_reports(validate)

    inspect = commands.add_parser(
        "inspect",
        help="print statistics of a log",
        description="Read a log of RDF Messages and print numbers, sizes and contents of its messages.",
        examples=[
            "construct-messages inspect log.jelly",
            "construct-messages inspect log.nq.gz --json",
        ],
        epilog="Exit status: 0 done, 1 not written, 2 wrong usage, 3 malformed log, 4 beyond a limit.",
    )
    inspect.set_defaults(command=_inspect)
    inspect.add_argument("log", metavar="LOG", help="the log to read; - for standard input")
    option(inspect, "--json", "print a JSON object, for programs")
    add_input(inspect)
    add_reports(inspect)

    diff = commands.add_parser(
        "diff",
        help="compare two logs, message by message",
        description="Compare two logs message by message. Labels of blank nodes are ignored.",
        examples=["construct-messages diff before.nq after.trig"],
        epilog="Exit status: 0 the same messages, 1 different messages, 2 wrong usage, 3 malformed log, 4 beyond a "
        "limit.",
    )
    diff.set_defaults(command=_diff, trouble=_TROUBLE)
    diff.add_argument("first", metavar="A", help="a log; - for standard input")
    diff.add_argument("second", metavar="B", help="the log to compare it with")
    add_input(diff)
    add_reports(diff)


def _validate(options: argparse.Namespace) -> int:
    status = 0
    for name in options.logs:
        quads = 0
        try:
            with open_log(name, options) as reader, watched(options, reader) as step:
                for message in reader:
                    quads += len(message)
                    step()
        except ConstructMessagesError as error:
            report(error, debug=options.debug)
            known = {LogError: 3, LimitExceeded: 4}
            found = (each for kind, each in known.items() if isinstance(error, kind))
            status = max(status, next(found, _TROUBLE))
        else:
            print(
                f"{name}: ok, {counted(reader.message_count, 'message')}, {counted(quads, 'quad')}",
                flush=True,
            )
    return status


def _inspect(options: argparse.Namespace) -> int:
    inspection, started = Inspection(), time.monotonic()
    with open_log(options.log, options) as reader, watched(options, reader) as step:
        for message in reader:
            inspection.add(message)
            step()
        figures = _figures(reader, inspection, time.monotonic() - started)
    if options.json:
        print(json.dumps(figures, ensure_ascii=False), flush=True)
    else:
        _show(options.log, figures, reader.options)
    return 0


def _figures(reader: LogReader, inspection: Inspection, seconds: float) -> dict[str, Any]:
    own = reader.options and reader.options.as_dict()
    return {
        "format": reader.format and reader.format.name,
        "syntax": reader.syntax and (reader.syntax.label or None),
        "version": reader.syntax and (reader.syntax.version or None),
        "packing": (reader.packing or "").removeprefix(".") or None,
        "archive": reader.archive,
        "bytes": reader.bytes_read,
        "seconds": round(seconds, 6),
        **inspection.as_dict(),
        "prefixes": dict(reader.prefixes),
        **{
            each.extension: own if each == reader.format else None
            for each in FORMATS
            if each.options is not None
        },
    }


def _show(log: str, figures: dict[str, Any], options: FormatOptions | None) -> None:
    # imported here because no other command needs it
    from rich.console import Console
    from rich.filesize import decimal
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)

    def line(label: str, text: str) -> None:
        console.print(Text(f"{label:<14}", style="bold"), text, markup=False)

    def within(messages: int) -> str:
        return f"in {counted(messages, 'message')}"

    sizes, seconds = figures["sizes"], max(figures["seconds"], 1e-6)
    how = (
        figures["syntax"],
        figures["syntax"] == "rdfm" and f"RDF {figures['version']}",
        figures["packing"] and f"packed as .{figures['packing']}",
        figures["archive"] and "an archive",
    )
    line("log", log)
    line("format", ", ".join(filter(None, (figures["format"], *how))))
    if options is not None:
        line("stream", options.in_words())
    line(
        "read",
        f"{counted(figures['bytes'], 'byte')} in {seconds:.3f} s: "
        f"{figures['messages'] / seconds:,.0f} messages/s, {decimal(int(figures['bytes'] / seconds))}/s",
    )
    line("messages", f"{figures['messages']:,}, of which {figures['empty']:,} empty")
    line("quads", f"{figures['quads']:,}")
    if figures["messages"]:
        line(
            "in a message",
            f"{sizes['smallest']:,} to {sizes['largest']:,}, median {sizes['median']:,}, mean {sizes['mean']:,.1f}; "
            f"the largest is message {sizes['largest_message']:,}",
        )
    most = max((each["messages"] for each in figures["histogram"]), default=0)
    for label, each in zip(chain(["sizes"], repeat("")), figures["histogram"], strict=False):
        low, high, count = each["from"], each["to"], each["messages"]
        width = round(_BAR * count / most)
        line(
            label,
            f"{f'{low:,}' if low == high else f'{low:,} to {high:,}':<14} {count:>10,} {'█' * width}".rstrip(),
        )
    more = "more than " if figures["more_graphs"] else ""
    names = f", {more}{counted(figures['graphs'], 'name')}" if figures["graphs"] else ""
    line("named graphs", within(figures["with_named_graphs"]) + names)
    line("blank nodes", within(figures["with_blank_nodes"]))
    line("triple terms", within(figures["with_triple_terms"]))
    prefixes = list(figures["prefixes"].items())
    for label, (prefix, iri) in zip(
        chain(["prefixes"], repeat("")), prefixes[:_MOST_PREFIXES], strict=False
    ):
        line(label, f"{prefix}: <{iri}>")
    if len(prefixes) > _MOST_PREFIXES:
        line("", f"and {len(prefixes) - _MOST_PREFIXES:,} more")


def _diff(options: argparse.Namespace) -> int:
    if options.first == options.second == STANDARD:
        raise UsageError("both logs are standard input", hint="name a file for one of them")
    same = True
    with open_log(options.first, options) as first, open_log(options.second, options) as second:
        for difference in compare(first, second):
            if same:
                print(f"--- {options.first}\n+++ {options.second}")
                same = False
            if isinstance(difference, Surplus):
                longer = options.second if difference.second else options.first
                print(
                    f"{longer} has {difference.message_count:,} more, from message {difference.number} on"
                )
            else:
                print(f"message {difference.number}")
                for sign, quads in (("-", difference.first_only), ("+", difference.second_only)):
                    for quad in quads:
                        print(sign, quad)
    sys.stdout.flush()
    return 0 if same else 1


def counted(number: int, noun: str) -> str:
    """A number of things, in words.

    >>> counted(1, "quad"), counted(1200, "message")
    ('1 quad', '1,200 messages')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

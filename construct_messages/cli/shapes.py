"""Shared parts of the commands that validate messages: their options, and the output of reports and dead letters."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from construct_messages.cli.arguments import add_table
from construct_messages.cli.terminal import STANDARD
from construct_messages.errors import CannotWrite, UsageError
from construct_messages.logs import EncoderOptions, encoder_for
from construct_messages.logs.targets import format_of_target, log_file
from construct_messages.rdf.formats.lookup import find_log, packing_of_name
from construct_messages.rdf.message import Message

if TYPE_CHECKING:
    from construct_messages.construct.shapes import Validation, ValidationReport

# `shapes` is imported where it is used: other commands would take longer to start

DO_NOT_CONFORM: Final = 5
"""The exit status if messages do not conform to the shapes and were not dropped."""

STATUS: Final = "5 messages do not conform to the shapes."

_SHOWN: Final = 20  # reports on standard error
_JSON_LINES: Final = (".jsonl", ".ndjson", ".json")


def add_shapes(command: argparse.ArgumentParser) -> None:
    """Adds the options of a command that validates messages."""
    add_table(
        command.add_argument_group("shapes"),
        """
        --shapes FILE*   validate each message by itself against these SHACL shapes; several files are one graph
        --shapes-data FILE*   data that each message is validated with, such as a class hierarchy
        --on-invalid {report,drop,stop}   messages that do not conform are written and reported, dropped, or stop the
            command; default: report
        --invalid-to FILE   write messages that do not conform to this log, each with its report; with --on-invalid drop
        --report FILE   write the reports to FILE: .jsonl has a line of JSON for each, .ttl, .nq and so on are a log of
            RDF
        --allow-warnings   messages conform despite results of severity sh:Warning or sh:Info
        """,
    )


class Reports:
    """The output of validation: standard error, the log of dead letters (`invalid`), and the file of reports (`write`).

    If validation `stops`, the first message that does not conform is shown as an error.
    """

    def __init__(
        self,
        *,
        quiet: bool,
        stops: bool,
        write: Callable[[ValidationReport], object] | None,
        invalid: Callable[[Message], object] | None,
    ) -> None:
        self._quiet, self._write, self._invalid = quiet, write, invalid
        self._shows = write is None and not quiet and not stops
        self._count = 0

    def take(self, message: Message, report: ValidationReport) -> None:
        """Takes the report of a message that has results."""
        from construct_messages.construct.shapes import dead_letter

        if self._invalid is not None and not report.conforms:
            self._invalid(dead_letter(message, report))
        if self._write is not None:
            self._write(report)
        if self._shows and self._count < _SHOWN:
            print(report, file=sys.stderr)
        self._count += 1
        if self._shows and self._count == _SHOWN + 1:
            print("further messages are only counted; --report FILE has all", file=sys.stderr)

    def finish(self, validation: Validation) -> None:
        """Prints the counts."""
        if not self._quiet:
            print(
                f"messages: {validation.messages:,}, not conforming: {validation.invalid:,}, "
                f"results: {validation.results:,}",
                file=sys.stderr,
            )


@contextmanager
def validating(options: argparse.Namespace, *, grows: bool = False) -> Iterator[Validation | None]:
    """Yields the validation of the messages of a command; None without shapes.

    If the output `grows`, dead letters and reports are appended to their files, each before the messages after it are
    written to a stream; otherwise the files appear when the block ends without an error.
    """
    if not options.shapes:
        for name in ("shapes_data", "on_invalid", "invalid_to", "report", "allow_warnings"):
            if getattr(options, name):
                raise UsageError(
                    f"--{name.replace('_', '-')} needs --shapes", hint="name a file with shapes"
                )
        yield None
        return
    from construct_messages.construct.shapes import Shapes, Validation

    if getattr(options, "select", False):
        raise UsageError("--shapes and --select do not go together", hint="leave one of them out")
    if (options.on_invalid == "drop") != (options.invalid_to is not None):
        raise UsageError(
            "--on-invalid drop and --invalid-to need each other",
            hint="name the log of messages that do not conform, or leave both out",
        )
    _check_places(options)
    shapes = Shapes(
        options.shapes, data=options.shapes_data or (), allow_warnings=options.allow_warnings
    )
    opened = _appended if grows else _whole
    with ExitStack() as stack:
        write, invalid = None, None
        if options.report is not None:
            write = stack.enter_context(_reporting(options.report, grows=grows))
        if options.invalid_to is not None:
            _check_graphs(options.invalid_to)
            invalid = stack.enter_context(opened(options.invalid_to))
        reports = Reports(
            quiet=options.quiet,
            stops=options.on_invalid == "stop",
            write=write,
            invalid=invalid,
        )
        validation = Validation(
            shapes, on_invalid=options.on_invalid or "report", on_report=reports.take
        )
        yield validation
        reports.finish(validation)


def status_of(validation: Validation | None, options: argparse.Namespace) -> int:
    """The exit status of a command that has ended."""
    return (
        DO_NOT_CONFORM
        if validation is not None and validation.invalid and options.on_invalid != "drop"
        else 0
    )


@contextmanager
def _reporting(place: str, *, grows: bool) -> Iterator[Callable[[ValidationReport], object]]:
    packing = packing_of_name(place)[0] or ""
    if Path(place.removesuffix(packing)).suffix not in _JSON_LINES:
        with (_appended if grows else _whole)(place) as put:
            yield lambda report: put(report.as_message())
        return
    import json  # imported here because a run without shapes does not need it

    with _appending(place) if grows else log_file(place) as write:
        yield lambda report: write(
            json.dumps(report.as_json(), ensure_ascii=False).encode() + b"\n"
        )


@contextmanager
def _appending(place: str) -> Iterator[Callable[[bytes], object]]:
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open(place, "ab", buffering=0))
        except OSError as error:
            raise CannotWrite(f"{place}: cannot write: {error.strerror}") from error
        yield file.write


@contextmanager
def _whole(place: str) -> Iterator[Callable[[Message], object]]:
    """A log that appears when the command is complete."""
    from construct_messages.construct.shapes.graph import SH
    from construct_messages.logs.writing import OpenLog

    type = find_log(format_of_target(place))
    with log_file(place) as write:
        log = OpenLog(
            encoder_for(
                type.format, type.syntax, EncoderOptions({"sh": SH}, graphs=True, triple_terms=True)
            ),
            write,
        )
        yield log.write
        log.finish()


@contextmanager
def _appended(place: str) -> Iterator[Callable[[Message], object]]:
    """A log to which messages are appended, each on disk before the next message is written elsewhere."""
    from construct_messages.logs.writing import GrowingLog

    log = GrowingLog(place)
    log.check_continued()
    with log.opened(log.size) as opened:

        def put(message: Message) -> None:
            opened.write(message)
            opened.sync()

        yield put


def _check_places(options: argparse.Namespace) -> None:
    """Rejects reports and dead letters on standard output, and a file that would be written twice."""
    names: dict[Path, str] = {}
    for key in ("output", "to", "report", "invalid_to"):
        place, name = getattr(options, key, None), f"--{key.replace('_', '-')}"
        if place is None or "://" in place:
            continue
        if place == STANDARD:
            if key in ("report", "invalid_to"):
                raise UsageError(
                    f"{name} {STANDARD}: reports and dead letters go to files",
                    hint="name a file; without --report, reports are shown on standard error",
                )
            continue
        if (other := names.setdefault(Path(place).resolve(), name)) != name:
            raise UsageError(f"{other} and {name} are both {place}", hint="name different files")


def _check_graphs(place: str) -> None:
    format = find_log(format_of_target(place)).format
    if not format.graphs:
        raise UsageError(
            f"--invalid-to {place}: {format.name} has no named graphs, and the report of a message is in one",
            hint="write .nq, .trig or .jelly",
        )

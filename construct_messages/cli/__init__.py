"""The command line: arguments, terminal output and exit statuses. Each group of commands has a module.

The log goes to standard output or to a file, everything else to standard error. Other packages implement the work of
the commands.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Final, TextIO

from construct_messages.cli.arguments import (
    DEFAULTS,
    Parser,
    PrintCompletion,
    PrintManual,
    as_flags,
    version,
)
from construct_messages.cli.defaults import apply_defaults
from construct_messages.cli.terminal import (
    END_SIGNALS,
    refuse_inputs,
    reopen_closed_standard_streams,
    report,
)
from construct_messages.errors import (
    CannotFold,
    CannotWrite,
    ColumnError,
    ConstructMessagesError,
    DoesNotConform,
    IncompleteResult,
    LogError,
    QuadsError,
    QueryError,
    QueryWarning,
    ShapesError,
    SourceError,
    SparkUnavailable,
    TermError,
    UnsupportedByFormat,
    UsageError,
)

# The commands by the module that adds them, which is imported when one of them is called, or for the help on all.
_COMMANDS: Final = {
    "run": ("run",),
    "load": ("load",),
    "serve": ("serve", "streams", "mcp"),
    "convert": ("convert", "cat", "head", "slice", "tail"),
    "examine": ("validate", "inspect", "diff"),
    "feeds": ("publish", "subscribe", "register", "relay"),
    "watch": ("watch",),
    "spark": ("spark",),
}
_VERSION: Final = "--version"
_CANNOT_WRITE: Final = 1
# The first class that matches; all other errors of the package mean that the log is incomplete.
_EXIT_STATUS: Final[tuple[tuple[type[ConstructMessagesError], int], ...]] = (
    (CannotWrite, _CANNOT_WRITE),
    (UsageError, 2),
    (QueryError, 2),
    (ShapesError, 2),
    (DoesNotConform, 5),
    (TermError, 2),
    (UnsupportedByFormat, 2),
    (ColumnError, 2),
    (CannotFold, 2),
    (SparkUnavailable, 2),
    (QuadsError, 3),
    (LogError, 3),
    (IncompleteResult, 4),
    (SourceError, 3),
    (ConstructMessagesError, 4),
)
_INTERRUPTED: Final = 130  # as shells report a program that SIGINT ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line, by default with the arguments of the process, and returns its exit status."""
    if arguments is None:
        reopen_closed_standard_streams()
    debug, trouble = False, 0
    try:
        options = _parse(arguments)
        debug, trouble = options.debug, options.trouble
        if arguments is None:
            # SIGTERM must not leave a hidden partial file: it raises an exception like Ctrl-C
            for number in END_SIGNALS:
                if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP
                    signal.signal(number, lambda number, _: sys.exit(128 + number))
        if isinstance(sys.stdout, io.TextIOWrapper):
            # the name of a file, or a quad, may have characters that it cannot encode
            sys.stdout.reconfigure(errors="backslashreplace")
        refuse_inputs(options)
        with warnings.catch_warnings():
            quiet = getattr(options, "quiet", False)
            warnings.simplefilter("ignore" if quiet else "default", QueryWarning)
            warnings.showwarning = _show_warning
            return int(options.command(options))
    except ConstructMessagesError as error:
        error.hint = error.hint and as_flags(error.hint)
        report(error, debug=debug)
        status = next(status for kind, status in _EXIT_STATUS if isinstance(error, kind))
        # where 1 is a result, no error has this status
        return trouble or status if status == _CANNOT_WRITE else status
    except OSError as error:
        # the buffered output would fail again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return trouble  # 0: the reader needs no more
        report(error, debug=debug)
        return trouble or _CANNOT_WRITE
    except KeyboardInterrupt:
        return _INTERRUPTED


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,  # noqa: ARG001 - of the function that this one replaces
    line: str | None = None,
) -> None:
    if not issubclass(category, QueryWarning):
        message = warnings.formatwarning(message, category, filename, lineno, line).rstrip()
    print(message, file=sys.stderr)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    try:
        given = sys.argv[1:] if arguments is None else arguments
        parser = build_parser(given[0] if given else None)
        apply_defaults(parser, frozenset(name for names in _COMMANDS.values() for name in names))
        return parser.parse_args(given)
    except SystemExit:
        sys.stdout.flush()  # of --help and --version
        raise


def build_parser(first: str | None = None) -> argparse.ArgumentParser:
    """The parser of all commands, or of one only: that which the first of the arguments to parse names."""
    parser = Parser(
        prog="construct-messages",
        description="Write one RDF Message per SPARQL CONSTRUCT solution, and work with logs and streams of messages.",
        epilog=f"construct-messages COMMAND --help shows options and examples of a command; {DEFAULTS}",
    )
    # the status of files that cannot be written, for commands where 1 is a result
    parser.set_defaults(trouble=0)
    parser.add_argument(
        "--print-completion",
        metavar="bash|zsh|fish",
        action=PrintCompletion,
        help="print completions for a shell and exit",
    )
    parser.add_argument("--man", action=PrintManual, help="print the manual page, for man -l -")
    parser.add_argument(_VERSION, action="version", version=version())
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    needed = [module for module, names in _COMMANDS.items() if first in names]
    for module in needed or ([] if first == _VERSION else _COMMANDS):
        import_module(f"{__name__}.{module}").add(commands)
    return parser

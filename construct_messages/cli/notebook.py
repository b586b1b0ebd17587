"""The cell magic `%%construct` of IPython, with the options and errors of the command line.

`%load_ext construct_messages` adds it. IPython is not imported here; it passes its shell.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from keyword import iskeyword
from typing import Any, Final, NoReturn, Protocol

from construct_messages.cli.arguments import Parser, add_lenient, add_options, option
from construct_messages.cli.queries import add_dataset
from construct_messages.cli.run import ask
from construct_messages.cli.terminal import report_lines
from construct_messages.errors import ConstructMessagesError, UsageError
from construct_messages.rdf.message import Message
from construct_messages.rdf.options import Grouping, MessageOptions, Requests

_SHOWN: Final = 10  # messages below a cell


class Shell(Protocol):
    """The shell of IPython."""

    user_ns: dict[str, Any]

    def register_magic_function(
        self, func: Callable[..., Any], magic_kind: str, magic_name: str
    ) -> None: ...


class MessageList(list[Message]):
    """The messages of a cell: a list that notebooks show as tables.

    >>> MessageList([Message()])
    <1 message>
    >>> MessageList([Message()])._repr_html_()
    '<p>1 message</p><p>1. Message of 0 quads</p>'
    """

    def __repr__(self) -> str:
        return f"<{self._count()}>"

    def _repr_html_(self) -> str:
        """The first messages, each as a table."""
        tables = (
            message._repr_html_().replace("<p>", f"<p>{number}. ", 1)
            for number, message in enumerate(self[:_SHOWN], 1)
        )
        left = len(self) - _SHOWN
        more = f"<p>and {left:,} more</p>" if left > 0 else ""
        return f"<p>{self._count()}</p>{''.join(tables)}{more}"

    def _count(self) -> str:
        return "1 message" if len(self) == 1 else f"{len(self):,} messages"


class _MagicParser(Parser):
    """Raises usage errors, instead of ending the program."""

    def error(self, message: str) -> NoReturn:
        """Raises a `UsageError`."""
        raise UsageError(message, hint=f"see {self.prog} --help")


def _parser() -> Parser:
    parser = _MagicParser(
        prog="%%construct",
        description="Run the CONSTRUCT query in this cell and show one RDF Message per solution.",
        examples=[
            "%%construct data.ttl -o cities",
            "%%construct https://dbpedia.org/sparql --profile virtuoso --group-by ?country -o countries",
        ],
    )
    parser.add_argument(
        "source",
        metavar="SOURCE",
        nargs="*",
        help="RDF files, a store directory or an endpoint URL",
    )
    option(parser, "-o, --output NAME", "the variable that gets the list of messages")
    add_dataset(parser)
    for kind in (Grouping, MessageOptions, Requests):
        add_options(parser, kind)
    add_lenient(parser, "solutions")
    return parser


def load_ipython_extension(shell: Shell) -> None:
    """Adds the cell magic `%%construct` to IPython; `%load_ext construct_messages` calls this.

    Args:
        shell: IPython's.

    >>> class Recorder:
    ...     user_ns = {}
    ...     def register_magic_function(self, func, magic_kind, magic_name):
    ...         print(magic_kind, magic_name)
    >>> load_ipython_extension(Recorder())
    cell construct
    """

    def construct(line: str, cell: str) -> MessageList | None:
        return run_cell(shell, line, cell)

    construct.__doc__ = _parser().format_help()
    shell.register_magic_function(construct, magic_kind="cell", magic_name="construct")


def run_cell(shell: Shell, line: str, cell: str) -> MessageList | None:
    """Runs the query of a cell with the options after `%%construct`; returns None if the help was requested.

    IPython shows errors without a traceback. Their positions are those in the cell, whose first line has the magic.
    """
    try:
        options = _parser().parse_args(_split(line))
        name = options.output
        if name is not None and (not name.isidentifier() or iskeyword(name)):
            raise UsageError(f"-o {name} is not the name of a variable", hint="write -o NAME")
        with ask(f"\n{cell}", options.source or None, options) as messages:
            found = MessageList(messages)
    except SystemExit:  # after --help
        return None
    except ConstructMessagesError as error:
        lines = report_lines(error)
        error._render_traceback_ = lambda: lines  # type: ignore[attr-defined] # what IPython asks for
        raise
    if name is not None:
        shell.user_ns[name] = found
    return found


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"%%construct {line}: {error}", hint="close the quotes") from error

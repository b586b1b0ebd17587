"""The cell magic `%%construct` of IPython, with the options and errors of the command line.

`%load_ext construct_messages` adds it, with `%construct_source` and `%construct_prefixes` for all later cells. IPython
is not imported here; it passes its shell.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from keyword import iskeyword
from typing import Any, Final, NoReturn, Protocol

from construct_messages.cli.arguments import Parser, add_lenient, add_options, option, pairs
from construct_messages.cli.queries import add_dataset
from construct_messages.cli.run import ask
from construct_messages.cli.terminal import report_lines
from construct_messages.errors import ConstructMessagesError, UsageError
from construct_messages.query.prologue import Prologue
from construct_messages.query.tokens import tokenize
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
        raise UsageError(message, hint=self._hint(message))


def _parser() -> Parser:
    parser = _MagicParser(
        prog="%%construct",
        description="Run the CONSTRUCT query in this cell and show one RDF Message per solution.",
        examples=[
            "%%construct data.ttl -o cities",
            "%%construct https://dbpedia.org/sparql --profile virtuoso --group-by ?country -o countries",
            "%%construct --frame -o frame",
        ],
    )
    parser.add_argument(
        "source",
        metavar="SOURCE",
        nargs="*",
        help="RDF files, a store directory or an endpoint URL; by default that of %%construct_source",
    )
    option(parser, "-o, --output NAME", "the variable that gets the list of messages")
    option(parser, "--frame", "return the solutions as a DataFrame of pandas instead")
    add_dataset(parser)
    for kind in (Grouping, MessageOptions, Requests):
        add_options(parser, kind)
    add_lenient(parser, "solutions")
    return parser


def load_ipython_extension(shell: Shell) -> None:
    """Adds the magics `%%construct`, `%construct_source` and `%construct_prefixes` to IPython; `%load_ext
    construct_messages` calls this.

    Args:
        shell: IPython's.

    >>> class Recorder:
    ...     user_ns = {}
    ...     def register_magic_function(self, func, magic_kind, magic_name):
    ...         print(magic_kind, magic_name)
    >>> load_ipython_extension(Recorder())
    line_cell construct
    line construct_source
    line_cell construct_prefixes
    """
    magics = _Magics(shell)
    magics.construct.__func__.__doc__ = _parser().format_help()  # type: ignore[attr-defined] # of a method
    shell.register_magic_function(magics.construct, "line_cell", "construct")
    shell.register_magic_function(magics.construct_source, "line", "construct_source")
    shell.register_magic_function(magics.construct_prefixes, "line_cell", "construct_prefixes")


class _Magics:
    """The magics of a shell, with what later cells share."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._source: list[str] = []  # and its options, as they are written
        self._prefixes: dict[str, str] = {}

    def construct(self, line: str, cell: str | None = None) -> Any:
        """Runs the query of a cell with the options after `%%construct`; returns None if the help was requested.

        Positions in errors are those in the cell, whose first line has the magic.
        """
        return _shown(self._construct, line, cell)

    def construct_source(self, line: str) -> Any:
        """Sets the source of later cells, with its options: `%construct_source URL --profile NAME`.

        A cell that names a source has only that one. Without arguments, returns the source.
        """
        return _shown(self._set_source, line)

    def construct_prefixes(self, line: str, cell: str = "") -> Any:
        """Declares prefixes for later cells: `%construct_prefixes NAME=IRI …`, or PREFIX lines below
        `%%construct_prefixes`. Returns all of them. A query may declare them in another way.
        """
        return _shown(self._declare, line, cell)

    def _construct(self, line: str, cell: str | None) -> Any:
        options = self._options(_split(line))
        if options is None:  # after --help
            return None
        if cell is None:
            raise UsageError(
                "%construct has no query",
                hint="write %%construct, and the query on the lines below",
            )
        name = options.output
        if name is not None and (not name.isidentifier() or iskeyword(name)):
            raise UsageError(f"-o {name} is not the name of a variable", hint="write -o NAME")
        with ask(f"\n{cell}", options.source or None, options) as messages:
            found = messages.to_pandas() if options.frame else MessageList(messages)
        if name is not None:
            self._shell.user_ns[name] = found
        return found

    def _options(self, given: list[str]) -> argparse.Namespace | None:
        prefixes = [f"--prefix={name}={iri}" for name, iri in self._prefixes.items()]
        try:
            options = _parser().parse_args([*prefixes, *given])
            if not options.source:
                options = _parser().parse_args([*prefixes, *self._source, *given])
        except SystemExit:
            return None
        return options

    def _set_source(self, line: str) -> str | None:
        given = _split(line)
        if not given:
            return shlex.join(self._source) or None
        if not _parser().parse_args(given).source:
            raise UsageError(
                f"%construct_source {line} names no source", hint="begin with a file or a URL"
            )
        self._source = given
        return None

    def _declare(self, line: str, cell: str) -> dict[str, str]:
        self._prefixes |= pairs("%construct_prefixes", _split(line), "NAME=IRI", named=False)
        text = f"\n{cell}"
        prologue = Prologue.read(text, tokenize(text), base=None, prefixes={})
        self._prefixes |= prologue.prefixes
        if cell.strip() and not prologue.prefixes:
            raise UsageError(
                "%%construct_prefixes has no PREFIX", hint="write PREFIX ex: <http://example.org/>"
            )
        return dict(self._prefixes)


def _shown(magic: Callable[..., Any], *arguments: str | None) -> Any:
    """The result of a magic; IPython shows its errors without a traceback."""
    try:
        return magic(*arguments)
    except ConstructMessagesError as error:
        lines = report_lines(error)
        error._render_traceback_ = lambda: lines  # type: ignore[attr-defined] # what IPython asks for
        raise


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"%%construct {line}: {error}", hint="close the quotes") from error

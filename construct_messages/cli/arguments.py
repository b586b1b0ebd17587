"""Shared parts of the command line: the parser, completion in shells, and options that several commands have."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    NoReturn,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
)

from construct_messages._version import __version__
from construct_messages.cli.standard import STANDARD
from construct_messages.logs import FormatOptions, options_class
from construct_messages.rdf import compiled
from construct_messages.rdf.errors import UsageError
from construct_messages.rdf.formats import COLUMNS, FORMATS, READ, SYNTAXES, WRITTEN, Format
from construct_messages.rdf.options import Option, is_choice, options_of

if TYPE_CHECKING:
    from construct_messages.sparql.client.oauth import BearerToken

_T = TypeVar("_T")
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_COLUMNS: Final = 80  # of what is no terminal


class _Formatter(argparse.HelpFormatter):
    """Keeps the lines of examples, which are indented, and wraps other text."""

    def __init__(self, prog: str) -> None:
        # argparse creates one also to add an option, and would import `shutil`, and so all compression, for the width
        super().__init__(prog, width=_columns() - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        return "\n".join(
            line if line.startswith("  ") else fill(line, width, indent)
            for line in text.split("\n")
        )


def _columns() -> int:
    """The width of the terminal: from COLUMNS, or else from the terminal."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns if sys.__stdout__ else _COLUMNS
    except (OSError, ValueError):  # standard output is no terminal, or is closed
        return _COLUMNS


class Parser(argparse.ArgumentParser):
    """Accepts no abbreviated options, and reports usage errors like all other errors.

    Args:
        examples: command lines, which `--help` shows after the options.
        arguments: see `argparse.ArgumentParser`.
    """

    def __init__(
        self, *, examples: Sequence[str] = (), epilog: str | None = None, **arguments: Any
    ) -> None:
        self.examples = examples
        shown = [
            *(["examples:", *(f"  {line}" for line in examples), ""] if examples else []),
            *([epilog] if epilog else []),
        ]
        super().__init__(
            allow_abbrev=False, epilog="\n".join(shown), formatter_class=_Formatter, **arguments
        )

    def error(self, message: str) -> NoReturn:
        """Ends the program with status 2."""
        self.exit(2, f"error: {message}\nhint: see {self.prog} --help\n")


SHELLS: Final = ("bash", "zsh", "fish")
# the names of files and folders in the usage of commands
_FILES: Final = {
    "FILE",
    "QUERY-FILE",
    "SOURCE",
    "LOG",
    "IN",
    "OUT",
    "A",
    "B",
    "PATH",
    "TABLE",
    "DIR",
    "DIR|FILE",
    "URL|FILE",
}


class PrintCompletion(argparse.Action):
    """Prints the completions of the parser for a shell and ends the program."""

    def __init__(self, option_strings: Sequence[str], **arguments: Any) -> None:
        super().__init__(
            option_strings,
            **(arguments | {"dest": argparse.SUPPRESS, "default": argparse.SUPPRESS}),
        )

    def __call__(self, parser: argparse.ArgumentParser, *given: Any, **_: Any) -> None:
        """Prints; see `argparse.Action`.

        Raises:
            UsageError: another shell.
        """
        shell = given[1]  # after the namespace
        if shell not in SHELLS:
            raise UsageError(
                f"there are no completions for {shell}", hint=f"choose {', '.join(SHELLS)}"
            )
        import shtab  # imported here because nothing else in the command line needs it

        for action in _actions(parser):
            if action.metavar in _FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined] # what shtab looks for
        print(shtab.complete(parser, shell))
        parser.exit()


class PrintVersion(argparse.Action):
    """Prints the version of the package and ends the program."""

    def __init__(self, option_strings: Sequence[str], **arguments: Any) -> None:
        given = {"dest": argparse.SUPPRESS, "default": argparse.SUPPRESS, "nargs": 0}
        super().__init__(option_strings, **(arguments | given))

    def __call__(self, parser: argparse.ArgumentParser, *_given: Any, **_: Any) -> None:
        """Prints; see `argparse.Action`."""
        pure = "" if compiled.wire else " (pure Python, without the compiled module)"
        print(f"{parser.prog} {__version__}{pure}")
        parser.exit()


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The arguments of a parser and of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
"""The object to which commands are added."""


def pairs(option: str, values: Sequence[str], shape: str) -> dict[str, str]:
    """The values of a repeated option of the form `shape`: a name, a separator and the rest."""
    separator = "=" if "=" in shape else ":"
    pairs = {}
    for value in values:
        name, found, rest = value.partition(separator)
        if not found or not name.strip():
            raise UsageError(f"{option} {value!r} is not {shape}", hint=f"write {option} {shape}")
        pairs[name.strip()] = rest.strip()
    return pairs


def option(
    group: argparse._ActionsContainer,
    usage: str,
    help: str,
    *,
    repeatable: bool = False,
    **arguments: Any,
) -> None:
    """Adds an option of a command alone; `add_options` adds those of option classes.

    `usage` has its names and its value, as `--help` shows them: `-n, --count N`. Without a value and `choices` it is a
    switch. Its default, and that it is repeatable, are added to `help`.
    """
    names, _, value = usage.replace(", ", ",").partition(" ")
    if value:
        arguments["metavar"] = value
    elif "choices" not in arguments:
        arguments.setdefault("action", "store_true")
    if arguments.get("default") not in (None, STANDARD):
        help = f"{help}; default: %(default)s"
    if repeatable:
        help = f"{help}; repeatable"
        arguments |= {"action": "append", "default": []}
    group.add_argument(*names.split(","), help=help, **arguments)


# the flags and values of options whose names or types do not tell them
_USAGES: Final = {
    "by": "--group-by ?v",
    "order": "--group-order",
    "limit": "--group-limit N",
    "default_graph": "--default-graph IRI",
    "named_graphs": "--named-graph IRI",
    "skolemize": "--skolemize IRI",
    "label_prefix": "--label-prefix PREFIX",
    "page_key": "--page-key ?v",
    "headers": "--header K:V",
}


def add_options(
    group: argparse._ActionsContainer,
    kind: type,
    *names: str,
    but: Sequence[str] = (),
    **helps: str,
) -> None:
    """Adds these options of a class (without names: all), with another help text where one is given."""
    for name, each in options_of(kind).items():
        if name not in but and (not names or name in names):
            _add(group, each, helps.get(name, each.meaning))


def _add(group: argparse._ActionsContainer, declared: Option, help: str) -> None:
    flag, value = _usage(declared)
    help = _LINK.sub(r"\1", help)
    choices = [get_args(each) for each in declared.types if is_choice(each)]
    if bool in declared.types:
        option(group, flag, help)
    elif choices:
        option(group, flag, help, choices=choices[0], default=declared.default)
    elif _is_list(declared):
        option(group, f"{flag} {value}", help, repeatable=True)
    else:
        read = partial(_number, declared) if {int, float} & {*declared.types} else None
        option(group, f"{flag} {value}", help, type=read, default=declared.default)


def _usage(declared: Option) -> tuple[str, str]:
    """The flag of an option, and its value; a switch that is on by default is turned off by `--no-…`."""
    if declared.name in _USAGES:
        flag, _, value = _USAGES[declared.name].partition(" ")
        return flag, value
    no = "no-" if declared.default is True else ""
    values = {int: "N", float: "SECONDS"}
    value = next((values[each] for each in declared.types if each in values), "NAME")
    return f"--{no}{declared.name.replace('_', '-')}", value


def _number(declared: Option, text: str) -> float:
    with suppress(ValueError):
        if declared.admits(value := (int if int in declared.types else float)(text)):
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not {declared.described('')}")


def _is_list(declared: Option) -> bool:
    return any(get_origin(each) in (Sequence, Mapping) for each in declared.types)


def made(kind: type[_T], options: argparse.Namespace, **given: Any) -> _T:
    """An object of an option class, from the options that `add_options` added, and other fields."""
    for name, each in options_of(kind).items():
        flag, shape = _usage(each)
        dest = flag.removeprefix("--").replace("-", "_")
        if name not in given and dest in options:
            value = getattr(options, dest)
            if any(get_origin(kind) is Mapping for kind in each.types):
                value = pairs(flag, value, shape)
            given[name] = not value if each.default is True else value
    return kind(**given)


def add_reports(
    group: argparse._ActionsContainer, quiet: str | None = "do not show progress"
) -> None:
    """Adds the options for output on standard error.

    Args:
        group: the group of options that shows them.
        quiet: the description of `--quiet`; None: there is no such option.
    """
    if quiet is not None:
        option(group, "--quiet", quiet)
    option(group, "--debug", "show where in the program an error occurred")


def add_token(group: argparse._ActionsContainer, side: str = "") -> None:
    """Adds the options for the token of a server; if there are two servers, the names begin with `side`."""
    option(
        group,
        f"--{side}token-variable NAME",
        "the environment variable that holds a token for the server",
    )
    option(
        group,
        f"--{side}oauth",
        "fetch tokens for the server with the client credentials in CONSTRUCT_MESSAGES_TOKEN_URL and so on",
    )


def token_of(options: argparse.Namespace, side: str = "") -> BearerToken | None:
    """The token in the named environment variable, or the credentials in the environment.

    Raises:
        UsageError: there is no such variable, or both options are used.
    """
    option = f"{side}token-variable"
    name = getattr(options, option.replace("-", "_"))
    if getattr(options, f"{side}oauth".replace("-", "_")):
        return _credentials(f"--{side}oauth", None if name is None else f"--{option}")
    if name is None:
        return None
    if not (token := os.environ.get(name)):
        raise UsageError(
            f"--{option} {name}: there is no such environment variable",
            hint="set it to the token",
        )
    return token


def _credentials(option: str, other: str | None) -> BearerToken:
    from construct_messages.sparql.client.oauth import ClientCredentials

    if other is not None:
        raise UsageError(f"{option} and {other} do not go together", hint="choose one")
    if (credentials := ClientCredentials.of_environment()) is None:
        raise UsageError(
            f"{option}: there is no environment variable CONSTRUCT_MESSAGES_TOKEN_URL",
            hint="set it to the token endpoint, and the credentials of the client",
        )
    return credentials


LOG_FORMATS: Final = "|".join([*(format.extension for format in READ), "MEDIA-TYPE"])
"""The values of options for the format of a log."""

LABELS: Final = [syntax.label for syntax in SYNTAXES]
"""The values of options for the syntax of a log."""

NO_PREFIXES: Final = "write all IRIs in full"


def add_format(
    group: argparse._ActionsContainer,
    default: str,
    *,
    has_contexts: bool = False,
    formats: Sequence[Format] = WRITTEN,
) -> None:
    """Adds the options for the format of an output log, with the options of single formats, such as `--jelly`.

    Args:
        group: the group of options that shows them.
        default: the default format.
        has_contexts: whether the command already has the option for JSON-LD contexts.
        formats: the formats that the command writes.
    """
    names = "|".join([*(format.extension for format in formats), "MEDIA-TYPE"])
    option(group, f"--format {names}", f"the format; default: {default}")
    option(
        group,
        "--syntax",
        "the syntax that delimits messages in nq, trig, nt and ttl; default: rdfm",
        choices=LABELS,
    )
    for format in FORMATS:
        if format.options is not None:
            option(
                group,
                f"--{format.extension} OPTION[=VALUE]",
                f"set an option of a {format.name} log",
                repeatable=True,
            )
    option(
        group, "--frame FILE", "the JSON-LD frame of json documents, or a context for their keys"
    )
    option(group, "--array", "write json documents as one array instead of a line each")
    if not has_contexts:
        add_contexts(group, "a JSON-LD context that the frame names")
    option(group, "--no-native", "write numbers and booleans of json documents as other literals")
    if COLUMNS[0] in formats:
        _add_columns(group)


def _add_columns(group: argparse._ActionsContainer) -> None:
    """Adds the options of files of columns; see `ColumnOptions`."""
    option(
        group,
        "--layout",
        "the rows of parquet, arrow and csv; default: solutions of a query, quads of a log",
        choices=["solutions", "quads", "nested"],
    )
    option(group, "--raw-terms", "write terms into columns as in N-Triples")
    option(
        group,
        "--column-type NAME=TYPE",
        "the type of the column of a variable: boolean, int64, double, decimal, decimal(P,S), date, timestamp, "
        "timestamptz, time, duration, string or raw",
        repeatable=True,
    )
    option(
        group,
        "--language-column NAME",
        "add a column with the languages of a variable",
        repeatable=True,
    )
    option(
        group,
        "--invalid-values",
        "how to handle values that do not fit into a column; default: error",
        choices=["error", "null"],
    )


def _column_options(options: argparse.Namespace) -> FormatOptions | None:
    given = {
        "layout": options.layout,
        "raw": options.raw_terms,
        "types": pairs("--column-type", options.column_type, "NAME=TYPE"),
        "languages": options.language_column,
        "invalid": options.invalid_values,
    }
    given = {name: value for name, value in given.items() if value}
    if not given:
        return None
    from construct_messages.logs.columns.options import ColumnOptions

    return ColumnOptions(**given)


def add_lenient(group: argparse._ActionsContainer, left_out: str) -> None:
    """Adds the options for terms that are not RDF, with the name of what `--skip-invalid` leaves out."""
    option(
        group, "--lenient", "accept terms that are not RDF, such as malformed IRIs, and count them"
    )
    option(
        group,
        "--skip-invalid",
        f"leave out, and count, the {left_out} with terms that are not RDF",
        action="store_const",
        dest="lenient",
        const="skip",
    )


def add_contexts(group: argparse._ActionsContainer, help: str) -> None:
    """Adds the option for JSON-LD contexts."""
    option(group, "--context IRI=FILE", help, repeatable=True)


def contexts(options: argparse.Namespace) -> dict[str, Any]:
    """The JSON-LD contexts that `--context` names.

    Raises:
        UsageError: a file that cannot be read, or is not JSON.
    """
    contexts = {}
    for value in options.context:
        iri, found, name = value.rpartition("=")  # an IRI may contain `=`
        if not found or not iri:
            raise UsageError(
                f"--context {value!r} is not IRI=FILE", hint="write --context IRI=FILE"
            )
        contexts[iri] = _json_file("context", name)
    return contexts


def _json_file(what: str, name: str) -> Any:
    import json

    try:
        return json.loads(Path(name).read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read the {what} {name}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the {what} {name} is not JSON: {error}") from error


def format_options(options: argparse.Namespace) -> FormatOptions | None:
    """The format's options on the command line; None if there are none.

    Raises:
        UsageError: an unknown or repeated option, or an invalid value.
    """
    if "frame" in options and (options.frame or options.array or options.no_native):
        from construct_messages.logs.json.options import JsonOptions

        return JsonOptions(
            frame=None if options.frame is None else _json_file("frame", options.frame),
            contexts=contexts(options),
            native=not options.no_native,
            array=options.array,
        )
    if "layout" in options and (columns := _column_options(options)) is not None:
        return columns
    for format in FORMATS:
        if (
            format.options
            and (given := getattr(options, format.extension))
            and (own := options_class(format))
        ):
            values: dict[str, str] = {}
            for option in given:
                name, equals, value = option.partition("=")
                if name in values:
                    raise UsageError(
                        f"--{format.extension} {name} is repeated", hint="give it once"
                    )
                values[name] = value if equals else "true"
            return own.of(values)
    return None

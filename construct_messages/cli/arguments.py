"""Shared parts of the command line: the parser, completion in shells, and options that several commands have."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
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
from construct_messages.cli.defaults import VARIABLE, withdrawn
from construct_messages.cli.terminal import STANDARD
from construct_messages.errors import UsageError
from construct_messages.logs import FormatOptions, options_class
from construct_messages.logs.columns.options import ColumnOptions
from construct_messages.logs.json.options import JsonOptions
from construct_messages.rdf import compiled
from construct_messages.rdf.formats import COLUMNS, FORMATS, READ, SYNTAXES, WRITTEN, Format
from construct_messages.rdf.options import (
    Grouping,
    MessageOptions,
    Option,
    Requests,
    TransportOptions,
    is_choice,
    options_of,
)

if TYPE_CHECKING:
    from construct_messages.feeds.delivery import Target
    from construct_messages.sparql.client.oauth import BearerToken

_T = TypeVar("_T")
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_USAGE: Final = re.compile(
    r"(?P<names>-[\w-]+(?:, --[\w-]+)?)(?: (?P<value>[^\s*]+))?(?P<many>\*)?(?: \[(?P<default>.+)\])?"
)
_TYPES: Final[Mapping[str, type]] = {"N": int, "M": int, "SECONDS": float}
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

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """Shows the value once, after all names, as Python 3.13 does."""
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


def _columns() -> int:
    """The width of the terminal: from COLUMNS, or else from the terminal."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns if sys.__stdout__ else _COLUMNS
    except (OSError, ValueError):  # standard output is no terminal, or is closed
        return _COLUMNS


_CHOICE: Final = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)")
_UNRECOGNIZED: Final = re.compile(r"unrecognized arguments: .*?(--?[\w-]+)")


class Parser(argparse.ArgumentParser):
    """Accepts no abbreviated options, and reports usage errors like all other errors.

    `examples` are command lines, which `--help` shows after the options. `gone` are commands and options of earlier
    versions, each with its replacement. With `common`, the names of some options, `--help` fits on a screen, and
    `--help-all` shows all.
    """

    def __init__(
        self,
        *,
        examples: Sequence[str] = (),
        epilog: str | None = None,
        gone: Mapping[str, str] | None = None,
        common: Sequence[str] = (),
        **arguments: Any,
    ) -> None:
        self.examples, self.gone, self.common = examples, gone or {}, common
        lines = ["examples:", *(f"  {line}" for line in examples), ""] if examples else []
        super().__init__(
            allow_abbrev=False,
            epilog="\n".join([*lines, epilog or ""]),
            formatter_class=_Formatter,
            **arguments,
        )
        if common:
            self.add_argument("--help-all", action=_HelpAll, help="show all options and exit")

    def format_help(self) -> str:
        """The help: with `common`, only with these options, and what they mean up to the first semicolon."""
        if not self.common:
            return self.format_all()
        formatter = self._get_formatter()
        positional = [each.metavar for each in self._actions if not each.option_strings]
        formatter.add_text(f"usage: {self.prog} {' '.join(map(str, positional))} [options]")
        formatter.add_text(self.description)
        formatter.start_section("options")
        for name in self.common:
            action = copy(self._option_string_actions[name])
            action.help = (action.help or "").partition(";")[0]
            if "|" in str(action.metavar):  # a long list of choices
                action.metavar = "NAME"
            elif action.nargs == "+":
                action.metavar, action.nargs = f"{action.metavar}...", None
            formatter.add_argument(action)
        formatter.end_section()
        examples = "\n".join(f"  {each}" for each in self.examples[:2])
        formatter.add_text(f"examples:\n{examples}")
        formatter.add_text(f"{self.prog} --help-all shows all options; {DEFAULTS}")
        return formatter.format_help()

    def format_all(self) -> str:
        """The help with all options."""
        return super().format_help()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Reports arguments that a command does not have as its own error; else the first parser would."""
        options, left = super().parse_known_args(args, namespace)
        if left and self._subparsers is None:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return options, left

    def error(self, message: str) -> NoReturn:
        """Ends the program with status 2."""
        self.exit(2, f"error: {message}\nhint: {self._hint(message)}\n")

    def _hint(self, message: str) -> str:
        """What was probably meant, and where the help is."""
        from difflib import get_close_matches  # imported here because most commands are right

        known: Iterable[str] = self._option_string_actions
        if found := _CHOICE.search(message):
            known = re.findall(r"[^\s',]+", found[2])
        else:
            found = _UNRECOGNIZED.search(message)
        if found and found[1] in self.gone:
            return self.gone[found[1]]
        likely = get_close_matches(found[1], known, n=1) if found else []
        see = f"see {self.prog} --help"
        return f"did you mean {likely[0]}? Or {see}" if likely else see


DEFAULTS: Final = "defaults of your own are in ~/.config/construct-messages/options.toml"


class _HelpAll(argparse.Action):
    """Prints the help with all options and ends the program."""

    def __init__(self, option_strings: Sequence[str], **arguments: Any) -> None:
        suppressed = {"dest": argparse.SUPPRESS, "default": argparse.SUPPRESS, "nargs": 0}
        super().__init__(option_strings, **arguments | suppressed)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        """Prints; see `argparse.Action`."""
        assert isinstance(parser, Parser)
        print(parser.format_all(), end="")
        parser.exit()


class PrintManual(_HelpAll):
    """Prints the manual page of all commands and ends the program."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        """Prints; see `argparse.Action`."""
        print(manual(parser), end="")
        parser.exit()


SHELLS: Final = ("bash", "zsh", "fish")
# the names of files and folders in the usage of commands
_FILES: Final = {
    *("FILE", "QUERY-FILE", "SOURCE", "LOG", "IN", "OUT", "A", "B", "PATH", "TABLE", "DIR"),
    *("DIR|FILE", "URL|FILE"),
}


class PrintCompletion(argparse.Action):
    """Prints the completions of the parser for a shell and ends the program."""

    def __init__(self, option_strings: Sequence[str], **arguments: Any) -> None:
        suppressed = {"dest": argparse.SUPPRESS, "default": argparse.SUPPRESS}
        super().__init__(option_strings, **arguments | suppressed)

    def __call__(self, parser: argparse.ArgumentParser, *given: Any, **_: Any) -> None:
        """Prints; see `argparse.Action`."""
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


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The arguments of a parser and of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)


def version() -> str:
    """The version as `--version` shows it."""
    pure = "" if compiled.wire else " (pure Python, without the compiled module)"
    return f"%(prog)s {__version__}{pure}"


# --- manual ---------------------------------------------------------------------------------------
# The manual page: all commands and options, from the same parsers as `--help`, in roff with the macros of man(7).


def manual(parser: argparse.ArgumentParser) -> str:
    """The manual page of a program.

    >>> parser = argparse.ArgumentParser("try", description="Try it.")
    >>> manual(parser).splitlines()[:3]
    ['.TH TRY 1 "" "try 0.1.0"', '.SH NAME', 'try \\\\- Try it']
    """
    name, about = parser.prog, parser.description or ""
    lines = [
        f'.TH {name.upper()} 1 "" "{name} {__version__}"',
        ".SH NAME",
        f"{name} \\- {_roff(about.rstrip('.'))}",
        ".SH SYNOPSIS",
        f".B {name}",
        r".I COMMAND \fR[options]",
        ".SH OPTIONS",
        *_described(parser._actions),
        ".SH COMMANDS",
    ]
    for command in _parsers(parser):
        lines += [f".SS {_roff(command.prog.removeprefix(name).strip())}"]
        lines += [_roff(command.description or "")]
        for group in command._action_groups:
            actions = [each for each in group._group_actions if each.help != argparse.SUPPRESS]
            if actions and group.title not in ("positional arguments", "options"):
                lines += [".PP", f".I {_roff(group.title or '')}"]
            lines += _described(actions)
        text = (command.epilog or "").strip()
        lines += _epilog(text)
    return "\n".join(
        [
            *lines,
            ".SH FILES",
            ".TP",
            ".I ~/.config/construct-messages/options.toml",
            "Defaults of options, a table for each command.",
            ".SH ENVIRONMENT",
            ".TP",
            f".B {VARIABLE}",
            "The file of defaults, instead of that one; empty: there is none.",
            ".TP",
            ".B CONSTRUCT_MESSAGES_SOURCE",
            "The source of a query without \\-\\-source.",
            "",
        ]
    )


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield command
                yield from _parsers(command)


def _described(actions: list[argparse.Action]) -> Iterator[str]:
    for action in actions:
        if isinstance(action, argparse._SubParsersAction):
            continue
        value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else "")
        names = ", ".join(rf"\fB{_roff(each)}\fR" for each in action.option_strings)
        value = "" if action.nargs == 0 else rf"\fI{_roff(str(value or action.dest))}\fR"
        yield ".TP"
        yield f"{names} {value}".strip()
        yield _roff((action.help or "") % {"default": action.default, "prog": ""})


def _epilog(text: str) -> Iterator[str]:
    """Examples, which are indented, and the rest of the text."""
    for line in text.splitlines():
        if line.startswith("  "):
            yield from (".PP", ".EX", _roff(line.strip()), ".EE")
        elif line:
            yield from (".PP", _roff(line))


def _roff(text: str) -> str:
    """Escapes text; a line must not begin with a control character."""
    escaped = re.sub(r"[-\\]", lambda each: r"\-" if each[0] == "-" else r"\e", text)
    return re.sub(r"^(?=[.'])", r"\\&", " ".join(escaped.split()))


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
"""The object to which commands are added."""

# --- options --------------------------------------------------------------------------------------


def add_table(group: argparse._ActionsContainer, table: str) -> None:
    """Adds the options of a table, which is written as `--help` shows it.

    Three spaces separate an option from its help; other lines continue the help. See `option`.
    """
    for line in re.sub(r"\n\s*(?!\s*-)", " ", table).splitlines():
        usage, _, help = line.strip().partition("   ")
        if usage:
            option(group, usage, help.strip())


def option(group: argparse._ActionsContainer, usage: str, help: str, **arguments: Any) -> None:
    """Adds an option. `add_options` adds those of option classes.

    The usage has the names, the value, `*` if the option may be repeated, and the default in brackets. For example,
    `-n, --count N [10]` is a whole number, because of `N`; `SECONDS` is another number. A value in braces is one of
    several: `--mode {error,overwrite}`. Without a value, the option is a switch.
    """
    match = _USAGE.fullmatch(usage)
    assert match is not None, usage
    value, default = match["value"], match["default"]
    if value is None and not {"action", "choices"} & arguments.keys():
        arguments["action"] = "store_true"
    elif value is not None and value.startswith("{"):
        arguments["choices"] = value.strip("{}").split(",")
    elif value is not None:
        arguments = {"metavar": value, "type": _TYPES.get(value)} | arguments
    if default is not None:
        arguments["default"] = default  # argparse converts it
    if arguments.get("default") not in (None, STANDARD):
        help = f"{help}; default: %(default)s"
    if match["many"]:
        help = f"{help}; repeatable"
        arguments |= {"action": "append", "default": []}
    group.add_argument(*match["names"].split(", "), help=help, **arguments)


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
    "memory_limit": "--memory-limit SIZE",
    "spill": "--spill DIR",
    "headers": "--header K:V",
    "contact": "--contact ADDRESS",
    "resume": "--resume FILE",
    "message_bytes": "--max-message-bytes N",
    "raw": "--raw-terms",
    "types": "--column-type NAME=TYPE",
    "languages": "--language-column NAME",
    "invalid": "--invalid-values",
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
    choices = [get_args(each) for each in declared.types if is_choice(each)]
    arguments: dict[str, Any] = {}
    if choices and int not in declared.types:
        value = f"{{{','.join(choices[0])}}}"
    elif bool in declared.types:
        value = ""
    elif _is_list(declared):
        value += "*"
    elif {int, float} & {*declared.types}:
        arguments["type"] = partial(_number, declared)
    if value and not value.endswith("*"):
        arguments["default"] = declared.default
    option(group, f"{flag} {value}".rstrip(), without_links(help), **arguments)


def without_links(meaning: str) -> str:
    """The text of Markdown.

    >>> without_links("see [Sources](sources.md)")
    'see Sources'
    """
    return _LINK.sub(r"\1", meaning).replace("`", "")


def _usage(declared: Option) -> tuple[str, str]:
    """The flag of an option, and its value; a switch that is on by default is turned off by `--no-…`."""
    if declared.name in _USAGES:
        flag, _, value = _USAGES[declared.name].partition(" ")
        return flag, value
    no = "no-" if declared.default is True else ""
    values = {int: "N", float: "SECONDS"}
    value = next((values[each] for each in declared.types if each in values), "NAME")
    return f"--{no}{declared.name.replace('_', '-')}", value


def _number(declared: Option, text: str) -> float | str:
    if any(text in get_args(each) for each in declared.types if is_choice(each)):
        return text
    with suppress(ValueError):
        if declared.admits(value := (int if int in declared.types else float)(text)):
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not {declared.described('')}")


def _is_list(declared: Option) -> bool:
    return any(get_origin(each) in (Sequence, Mapping) for each in declared.types)


def _dest(flag: str) -> str:
    """The attribute of parsed options that a flag sets."""
    return flag.removeprefix("--").replace("-", "_")


def made(kind: type[_T], options: argparse.Namespace, **given: Any) -> _T:
    """An object of an option class, from the options that `add_options` added, and other fields."""
    for name, each in options_of(kind).items():
        flag, shape = _usage(each)
        if name not in given and _dest(flag) in options:
            value = getattr(options, _dest(flag))
            if any(get_origin(kind) is Mapping for kind in each.types):
                value = pairs(flag, value, shape)
            given[name] = not value if each.default is True else value
    return kind(**given)


def flags_given(kind: type, options: argparse.Namespace, but: Sequence[str] = ()) -> list[str]:
    """The flags of options of a class that have other values than by default."""
    flags = []
    for name, each in options_of(kind).items():
        flag, _ = _usage(each)
        value = getattr(options, _dest(flag), None)
        # a list without values is that of an option that was not given
        is_given = name not in but and value not in (None, False, [], each.default)
        if is_given and not withdrawn(options, _dest(flag)):
            flags.append(flag)
    return flags


_KEYWORD: Final = re.compile(r"""(?<![\w-])(\w+)=(["']?)([\w.-]+)\2""")


def as_flags(hint: str) -> str:
    """A hint that names options of a query as Python does, with the flags of the command line.

    >>> as_flags('read it in pages: page_size=100, of a Virtuoso with profile="virtuoso"')
    'read it in pages: --page-size 100, of a Virtuoso with --profile virtuoso'
    """
    known = {
        name: each
        for kind in (Grouping, MessageOptions, Requests)
        for name, each in options_of(kind).items()
    }

    def flag(found: re.Match[str]) -> str:
        if found[1] not in known:
            return found[0]
        option, value = _usage(known[found[1]])
        return f"{option} {found[3]}" if value and found[3] != "True" else option

    return _KEYWORD.sub(flag, hint)


def pairs(option: str, values: Sequence[str], shape: str, *, named: bool = True) -> dict[str, str]:
    """The values of a repeated option of the form `shape`: a name, a separator and the rest.

    `named`: whether the name may not be empty, as that of a prefix may.
    """
    separator = "=" if "=" in shape else ":"
    pairs = {}
    for value in values:
        name, found, rest = value.partition(separator)
        if not found or (named and not name.strip()):
            raise UsageError(f"{option} {value!r} is not {shape}", hint=f"write {option} {shape}")
        pairs[name.strip()] = rest.strip()
    return pairs


def add_reports(
    group: argparse._ActionsContainer, quiet: str | None = "do not show progress"
) -> None:
    """Adds the options for output on standard error; without help for `--quiet`, there is no such option."""
    if quiet is not None:
        option(group, "--quiet", quiet)
    option(group, "--debug", "show where in the program an error occurred")


def add_output(group: argparse._ActionsContainer, what: str) -> None:
    """Adds the option for the output, with what it writes."""
    option(group, "-o, --output FILE", f"write {what}", default=STANDARD)


def add_token(group: argparse._ActionsContainer, side: str = "") -> None:
    """Adds the options for the token of a server; if there are two servers, the names begin with `side`."""
    add_table(
        group,
        f"""
        --{side}token-variable NAME   the environment variable that holds a token for the server
        --{side}oauth   fetch tokens for the server with the client credentials in
            CONSTRUCT_MESSAGES_TOKEN_URL and so on
        """,
    )


def token_of(options: argparse.Namespace, side: str = "") -> BearerToken | None:
    """The token in the named environment variable, or the credentials in the environment."""
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

    `has_contexts` says that the command already has the option for JSON-LD contexts.
    """
    names = "|".join([*(format.extension for format in formats), "MEDIA-TYPE"])
    option(group, f"-f, --format {names}", f"the format; default: {default}")
    option(
        group,
        "-s, --syntax",
        "the syntax that delimits messages in nq, trig, nt and ttl; default: rdfm",
        choices=LABELS,
    )
    for format in FORMATS:
        if format.options is not None:
            usage = f"--{format.extension} OPTION[=VALUE]*"
            option(group, usage, f"set an option of a {format.name} log")
    option(
        group, "--frame FILE", "the JSON-LD frame of json documents, or a context for their keys"
    )
    if not has_contexts:
        add_contexts(group, "a JSON-LD context that the frame names")
    helps = {
        "native": "write numbers and booleans of json documents as other literals",
        "array": "write json documents as one array instead of a line each",
    }
    add_options(group, JsonOptions, *helps, **helps)
    if COLUMNS[0] in formats:
        add_options(group, ColumnOptions, but=["batch_rows"], **_COLUMN_HELPS)


_COLUMN_HELPS: Final = {
    "layout": "the rows of parquet, arrow and csv; default: solutions of a query, quads of a log",
    "raw": "write terms into columns as in N-Triples",
    "types": "the type of the column of a variable: boolean, int64, double, decimal, decimal(P,S), date, timestamp, "
    "timestamptz, time, duration, string or raw",
    "languages": "add a column with the languages of a variable",
    "invalid": "how to handle values that do not fit into a column",
}


def add_lenient(group: argparse._ActionsContainer, left_out: str) -> None:
    """Adds the options for terms that are not RDF, with the name of what `--skip-invalid` leaves out."""
    option(
        group, "--lenient", "accept terms that are not RDF, such as malformed IRIs, and count them"
    )
    help = f"leave out, and count, the {left_out} with terms that are not RDF"
    option(group, "--skip-invalid", help, action="store_const", dest="lenient", const="skip")


def add_contexts(group: argparse._ActionsContainer, help: str) -> None:
    """Adds the option for JSON-LD contexts."""
    option(group, "--context IRI=FILE*", help)


def contexts(options: argparse.Namespace) -> dict[str, Any]:
    """The JSON-LD contexts that `--context` names."""
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
    """The format's options on the command line; None if there are none."""
    if "frame" in options and (options.frame or options.array or options.no_native):
        frame = None if options.frame is None else _json_file("frame", options.frame)
        # `--context` has contexts by IRI, and no context of its own
        return made(JsonOptions, options, frame=frame, context=None, contexts=contexts(options))
    if "layout" in options and (columns := made(ColumnOptions, options)) != ColumnOptions():
        return columns
    for format in FORMATS:
        given = getattr(options, format.extension) if format.options else []
        values: dict[str, str] = {}
        for each in given:
            name, equals, value = each.partition("=")
            if name in values:
                raise UsageError(f"--{format.extension} {name} is repeated", hint="give it once")
            values[name] = value if equals else "true"
        if given and (own := options_class(format)):
            return own.of(values)
    return None


# --- streams --------------------------------------------------------------------------------------
# `feeds` is imported where it is used: other commands would take longer to start


def add_transport(group: argparse._ActionsContainer) -> None:
    """Adds the options of the transport of an output stream."""
    add_options(group, TransportOptions, "create")
    add_token(group)
    add_set(group, "--set")
    option(group, "--media-type TYPE", "of the records that a broker gets; default: N-Quads")


def add_set(group: argparse._ActionsContainer, name: str) -> None:
    """Adds the option for the options of a transport."""
    help = "an option of the transport, as its library calls it; $NAME is the value of an environment variable"
    option(group, f"{name} NAME=VALUE*", help)


def transport_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The options of `add_transport`, and `--retries`, as `publish` and `Settings` take them."""
    return {
        "create": options.create,
        "token": token_of(options),
        "retries": options.retries,
        "media_type": options.media_type,
        "options": pairs("--set", options.set, "NAME=VALUE"),
    }


def refuse_stream_options(options: argparse.Namespace, reason: str) -> None:
    """Rejects the options of `add_transport` if the output is not a stream, with a clause that names the output."""
    for name in ("create", "token_variable", "oauth", "set", "media_type"):
        if getattr(options, name) and not withdrawn(options, name):
            raise UsageError(
                f"--{name.replace('_', '-')} is for a stream, and {reason}",
                hint="pass its URL as --to",
            )


def refuse_log_options(options: argparse.Namespace, *names: str) -> None:
    """Rejects these options of a log if the output is a stream."""
    for name in names:
        if getattr(options, name) not in (None, STANDARD) and not withdrawn(options, name):
            raise UsageError(
                f"--{name} is for a log, and {options.to} is a stream",
                hint="leave it out; --media-type is for records of a broker",
            )


def is_stream(place: str) -> bool:
    """Whether a target is the URL of a stream, and not the name of a log."""
    return "://" in place


def target_of(options: argparse.Namespace) -> Target:
    """Returns the target `--to`: a stream, a log that grows, or standard output."""
    from construct_messages.feeds import delivery
    from construct_messages.feeds.transport import Settings

    if is_stream(options.to):
        refuse_log_options(options, "format", "syntax")
        settings = Settings(**transport_arguments(options))
    else:
        refuse_stream_options(options, f"{options.to} is a log")
        settings = Settings(media_type=options.format)
    place = sys.stdout.buffer if options.to == STANDARD else options.to
    own = format_options(options)
    return delivery.target_of(place, settings, syntax=options.syntax, own=own)

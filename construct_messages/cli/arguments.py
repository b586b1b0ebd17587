"""What the commands' arguments have in common: how the parser reports, pairs of a name and a value, format options."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any, Final, NoReturn, TypeAlias

from construct_messages.errors import UsageError
from construct_messages.formats import FORMATS, SYNTAXES
from construct_messages.logs import FormatOptions, options_class


class Parser(argparse.ArgumentParser):
    """Takes no abbreviations of options, and reports a usage error as every other error is reported."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(allow_abbrev=False, **arguments)

    def error(self, message: str) -> NoReturn:
        """Ends the program with status 2."""
        self.exit(2, f"error: {message}\nhint: see {self.prog} --help\n")


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
"""What a command adds itself to."""


def pairs(option: str, values: Sequence[str], shape: str) -> dict[str, str]:
    """The values of a repeated option that are written as `shape`, a name, a separator and the rest."""
    separator = "=" if "=" in shape else ":"
    pairs = {}
    for value in values:
        name, found, rest = value.partition(separator)
        if not found or not name.strip():
            raise UsageError(f"{option} {value!r} is not {shape}", hint=f"write {option} {shape}")
        pairs[name.strip()] = rest.strip()
    return pairs


def add_label_prefix(group: argparse._ActionsContainer) -> None:
    """Adds the option for the labels of blank nodes."""
    group.add_argument(
        "--label-prefix",
        metavar="PREFIX",
        help="what labels of blank nodes begin with; default: at random, so that no two logs share a node",
    )


def add_token(group: argparse._ActionsContainer) -> None:
    """Adds the option for the token of a server."""
    group.add_argument(
        "--token-variable", metavar="NAME", help="the environment variable that holds a token for the server"
    )


def token_of(options: argparse.Namespace) -> str | None:
    """The token in the environment variable that is named.

    Raises:
        UsageError: there is none.
    """
    name = options.token_variable
    if name is None:
        return None
    if not (token := os.environ.get(name)):
        raise UsageError(f"--token-variable {name}: there is no such environment variable", hint="set it to the token")
    return token


LOG_FORMATS: Final = "|".join([*(format.extension for format in FORMATS), "MEDIA-TYPE"])
"""What options that name the format of a log take."""

LABELS: Final = [syntax.label for syntax in SYNTAXES]
"""What options that name the syntax of a log take."""


def add_format_options(group: argparse._ActionsContainer) -> None:
    """Adds an option for each format that has options of its own, such as `--jelly`."""
    for format in FORMATS:
        if format.options is not None:
            group.add_argument(
                f"--{format.extension}",
                metavar="OPTION[=VALUE]",
                action="append",
                default=[],
                help=f"an option of a {format.name} log, may be repeated",
            )


def format_options(options: argparse.Namespace) -> FormatOptions | None:
    """The options of a format that are given; None: there are none.

    Raises:
        UsageError: an option that does not exist, that comes twice, or a value that is none of its.
    """
    for format in FORMATS:
        if (own := options_class(format)) and (given := getattr(options, format.extension)):
            values: dict[str, str] = {}
            for option in given:
                name, equals, value = option.partition("=")
                if name in values:
                    raise UsageError(f"--{format.extension} {name} comes twice", hint="give it once")
                values[name] = value if equals else "true"
            return own.of(values)
    return None

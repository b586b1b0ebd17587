"""The user's own defaults of options: a TOML file with a table for each command.

    [run]
    profile = "virtuoso"
    page-size = 10000

It is read for each command, so that it costs nothing where there is none. A default that does not apply to what is
asked, such as the size of pages of a file, has no effect; an option on the command line wins over it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from construct_messages.errors import UsageError

VARIABLE: Final = "CONSTRUCT_MESSAGES_OPTIONS"
"""The environment variable with the name of the file; empty: there is none."""

Known = Mapping[str, tuple[Any, Any]]
"""The values of the file and those without it, by the attribute of parsed options."""


def file_of_defaults(environ: Mapping[str, str]) -> Path | None:
    """The file of defaults, whether it exists or not.

    >>> file_of_defaults({"XDG_CONFIG_HOME": "/c"}), file_of_defaults({VARIABLE: ""})
    (PosixPath('/c/construct-messages/options.toml'), None)
    """
    named = environ.get(VARIABLE)
    if named is not None:
        return Path(named) if named else None
    folder = environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(folder, "construct-messages", "options.toml")


def apply_defaults(parser: argparse.ArgumentParser, names: frozenset[str]) -> None:
    """Sets the defaults of the commands of a parser; `names` are those of all commands.

    Raises:
        UsageError: the file cannot be read, or has a command, an option or a value that does not exist.
    """
    path = file_of_defaults(os.environ)
    if path is None or (not path.exists() and VARIABLE not in os.environ):
        return
    import tomllib

    try:
        document = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise UsageError(f"cannot read the options {path}: {error.strerror}") from error
    except ValueError as error:  # of TOML, or of UTF-8
        raise UsageError(f"the options {path} are no TOML: {error}") from error
    for name in document:
        if name not in names or not isinstance(document[name], dict):
            raise _wrong(path, name, "is not the table of a command", sorted(names), name)
    for command, own in _commands(parser):
        table: Any = document
        for part in command:
            table = table.get(part, {})
        known = {
            key: _set(path, own, ".".join((*command, key)), key, value)
            for key, value in table.items()
            if not isinstance(value, dict)
        }
        own.set_defaults(from_file=dict(known.values()))


def _commands(
    parser: argparse.ArgumentParser, above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield (*above, name), command
                yield from _commands(command, (*above, name))


def _set(
    path: Path, parser: argparse.ArgumentParser, place: str, key: str, value: Any
) -> tuple[str, tuple[Any, Any]]:
    """Sets the default of one option. Returns its attribute, and its values with and without the file."""
    flag = f"--{key.replace('_', '-')}"
    known = parser._option_string_actions
    action = known.get(flag)
    if action is None or action.default == argparse.SUPPRESS:
        options = sorted(name[2:] for name in known if name.startswith("--"))
        raise _wrong(path, place, "is not an option", options, flag[2:])
    before = action.default
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise _wrong(path, place, f"= {value!r} is neither true nor false")
        action.default = getattr(action, "const", True) if value else before
    else:
        several = action.nargs in ("+", "*") or isinstance(action, argparse._AppendAction)
        values = value if isinstance(value, list) else [value]
        if (len(values) != 1 and not several) or not all(
            isinstance(each, str | int | float) and not isinstance(each, bool) for each in values
        ):
            raise _wrong(path, place, f"= {value!r} is no value of {flag}")
        try:
            found = [parser._get_value(action, str(each)) for each in values]
            for each in found:
                parser._check_value(action, each)
        except argparse.ArgumentError as error:
            raise _wrong(path, place, f"= {value!r}: {error.message}") from error
        action.default = found if several else found[0]
    return action.dest, (action.default, before)


def _wrong(
    path: Path, place: str, what: str, known: list[str] | None = None, name: str = ""
) -> UsageError:
    from difflib import get_close_matches

    likely = get_close_matches(name, known or [], n=1)
    hint = f"did you mean {likely[0]}?" if likely else "see --help-all of the command"
    return UsageError(f"{path}: {place} {what}", hint=hint)


def withdrawn(options: argparse.Namespace, attribute: str) -> bool:
    """Whether the value of an option that does not apply is a default of the file, which then has no effect."""
    known: Known = getattr(options, "from_file", {})
    if attribute not in known or getattr(options, attribute) != known[attribute][0]:
        return False
    setattr(options, attribute, known[attribute][1])
    return True

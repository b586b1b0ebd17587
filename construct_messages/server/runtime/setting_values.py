"""Converts values of settings to their types, and describes types and mistakes in errors.

`settings.py` finds the values in files, variables and flags.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

import msgspec

from construct_messages.rdf.errors import UsageError
from construct_messages.server.config import (
    BridgeSettings,
    Config,
    EndpointSettings,
    JwtSettings,
    Key,
    Limits,
    StreamsSettings,
)

TABLES: Final[Mapping[str, type[msgspec.Struct]]] = {
    "streams": StreamsSettings,
    "jwt": JwtSettings,
}
BRIDGES: Final = "bridges"
"""The field of `StreamsSettings` whose tables are written as `[streams.NAME]`."""
NONE: Final = "none"  # TOML has no null
TOML_PLACE: Final = re.compile(
    r" \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)$"
)


@dataclass(frozen=True)
class Given:
    """The value of a setting, with the right type, and its origin: a file and key, a variable, or a flag."""

    value: object
    origin: str


@cache
def fields(struct: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.encode_name: field for field in msgspec.structs.fields(struct)}


def _field(key: Key) -> msgspec.structs.FieldInfo:
    struct = TABLES.get(key[0], Config) if len(key) > 1 else Config
    if key[0] == "endpoints":
        struct = Limits if len(key) == 4 else EndpointSettings
    if key[:2] == ("streams", BRIDGES):
        struct = BridgeSettings
    return fields(struct)[key[-1]]


def typed(key: Key, value: object, origin: str) -> Given:
    wanted = _field(key).type
    if value == NONE and type(None) in get_args(wanted):
        return Given(None, origin)
    if isinstance(value, str) and get_origin(wanted) is tuple:
        value = [value]  # a list of one
    try:
        return Given(msgspec.convert(value, wanted), origin)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"{origin} must be {described(wanted)}, not {quoted(value)}",
            hint=_example(key, wanted),
        ) from error


def from_text(key: Key, text: str, origin: str) -> object:
    """Parses a value of the environment or of a flag: lists and tables as in TOML, other types without quotes."""
    wanted = _field(key).type
    if text.startswith(("[", "{")) and {tuple, dict} & {
        get_origin(option) for option in _alternatives(wanted)
    }:
        try:
            return tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError as error:
            raise UsageError(
                f"{origin} is no list or table of TOML: {TOML_PLACE.sub('', str(error))}",
                hint=_example(key, wanted),
            ) from error
    for scalar in (bool, int, float):
        if scalar in _alternatives(wanted):
            try:
                return msgspec.convert(text, scalar, strict=False)
            except msgspec.ValidationError:
                return text  # `typed` reports the error
    return text


def _alternatives(wanted: Any) -> list[Any]:
    """Returns the types that a setting may have, without their bounds."""
    options = get_args(wanted) if get_origin(wanted) in (Union, UnionType) else (wanted,)
    return [
        get_args(option)[0] if hasattr(option, "__metadata__") else option for option in options
    ]


def described(wanted: Any) -> str:
    """Returns a description of a setting's type.

    >>> described(int), described(tuple[str, ...])
    ('a whole number', 'a list of strings')
    """
    return _described(msgspec.inspect.type_info(wanted))


def _described(info: msgspec.inspect.Type) -> str:
    match info:
        case msgspec.inspect.UnionType(types=types):
            return " or ".join(_described(type) for type in types)
        case msgspec.inspect.NoneType():
            return f'"{NONE}"'
        case msgspec.inspect.BoolType():
            return "true or false"
        case msgspec.inspect.IntType() | msgspec.inspect.FloatType():
            number = "a whole number" if isinstance(info, msgspec.inspect.IntType) else "a number"
            if info.gt is not None:
                return f"{number} above {info.gt:g}"
            return number if info.ge is None else f"{number} of at least {info.ge:g}"
        case msgspec.inspect.LiteralType(values=values):
            return " or ".join(f'"{value}"' for value in values)
        case msgspec.inspect.VarTupleType(item_type=msgspec.inspect.StructType()):
            return "a list of tables"
        case msgspec.inspect.VarTupleType():
            return "a list of strings"
        case msgspec.inspect.DictType():
            return "a table of strings"
        case _:
            return "a string"


def _example(key: Key, wanted: Any) -> str:
    default = _field(key).default
    if isinstance(default, int | float) and not isinstance(default, bool):
        return f"write it like {key[-1]} = {default}"
    examples = {
        bool: "true",
        int: "1000",
        float: "2.5",
        str: '"…"',
        tuple: '["…", "…"]',
        dict: '{ name = "…" }',
    }
    options = [get_origin(option) or option for option in _alternatives(wanted)]
    if Literal in options:
        value = f'"{get_args(_alternatives(wanted)[options.index(Literal)])[0]}"'
    else:
        value = next(examples[option] for option in options if option in examples)
    return f"write it like {key[-1]} = {value}"


def quoted(value: object) -> str:
    text = repr(value)
    kind = {"str": "the string", "bool": "", "int": "the number", "float": "the number"}.get(
        type(value).__name__
    )
    words = f"the {type(value).__name__}" if kind is None else kind
    return f"{words} {text if len(text) <= 60 else text[:60] + '…'}".strip()


def unknown(origin: str, name: str, known: list[str]) -> UsageError:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"choose one of {', '.join(sorted(known))}"
    return UsageError(f"{origin}: there is no setting {name!r}", hint=hint)

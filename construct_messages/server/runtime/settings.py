"""Reads settings from a TOML file, environment variables and flags; later ones win, setting by setting.

A setting is a path of keys, as `("endpoints", "dbpedia", "page_size")`. Errors name the place it was written in.
`config.py` has the structures, and `checks.py` checks that they are consistent.
pydantic-settings is not used: it ignores misspelt variables, and its errors name neither file nor variable.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

import msgspec

from construct_messages.rdf.errors import Position, UsageError
from construct_messages.server.config import (
    OF_FILES,
    OF_URLS,
    UNNAMED,
    BridgeSettings,
    Config,
    EndpointSettings,
    JwtSettings,
    Key,
    Limits,
    StreamsSettings,
    dotted_name,
)
from construct_messages.server.runtime.checks import check_config
from construct_messages.sparql.sources.open import VARIABLE as SOURCE_VARIABLE

# --- setting values -------------------------------------------------------------------------------
# Converts values of settings to their types, and describes types and mistakes in errors.

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


# --- settings -------------------------------------------------------------------------------------

PREFIX: Final = "CONSTRUCT_MESSAGES_SERVER_"
"""The prefix of environment variables: `CONSTRUCT_MESSAGES_SERVER_ENDPOINTS__DBPEDIA__PAGE_SIZE`."""

_NESTED: Final[Mapping[tuple[type[msgspec.Struct], str], type[msgspec.Struct]]] = {
    (EndpointSettings, "limits"): Limits,
    **{(Config, name): struct for name, struct in TABLES.items()},
}
_FILES: Final = (
    *(("streams", "file"), ("streams", "grpc_certificate"), ("streams", "grpc_key")),
    ("jwt", "keys"),
)


def load_config(
    path: Path | None, environ: Mapping[str, str], flags: Mapping[str, str | list[str] | bool]
) -> Config:
    """Reads the settings of a server.

    Args:
        path: the TOML file; None: there is none.
        environ: the environment variables.
        flags: the flags by setting, as `bind` or `endpoint.page_size`; lists and switches as such, other values as
            text.

    Raises:
        UsageError: an unknown setting, or a wrong type or value; the error has the setting, its place and the fix.

    >>> config = load_config(None, {}, {"endpoint.source": ["https://example.org/sparql"], "bind": "127.0.0.1:8000"})
    >>> config.bind, config.endpoints[""].source
    ('127.0.0.1:8000', ('https://example.org/sparql',))
    """
    settings = dict(_from_file(path)) if path is not None else {}
    settings |= dict(_from_environment(environ, _names(settings)))
    settings |= dict(_from_flags(flags))
    if not _names(settings) and (source := environ.get(SOURCE_VARIABLE)):
        settings["endpoints", "", "source"] = Given((source,), SOURCE_VARIABLE)
    config = _build(settings)
    check_config(config, environ, {key: given.origin for key, given in settings.items()})
    return config


def as_toml(config: Config) -> str:
    """Returns the settings as a TOML file, without the queries of URLs, which may contain keys.

    >>> print(as_toml(Config(endpoints={"": EndpointSettings(source=("a.ttl",))})).split()[:3])
    ['bind', '=', '"127.0.0.1:8080"']
    """

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(inner) for key, inner in value.items()}
        return NONE if value is None else value

    document = plain(msgspec.to_builtins(config))
    endpoints = document.pop("endpoints")
    for table in TABLES:
        if getattr(config, table) is None:
            del document[table]
    for name, endpoint in endpoints.items():
        is_remote = config.endpoints[name].is_remote
        if is_remote:
            endpoint["source"] = [re.sub(r"\?.*", "?…", source) for source in endpoint["source"]]
            endpoint["update_source"] = re.sub(r"\?.*", "?…", endpoint["update_source"])
        for setting in OF_FILES if is_remote else OF_URLS:
            del endpoint[setting]
    if config.streams is not None:
        document["streams"] |= document["streams"].pop(BRIDGES)
    if unnamed := endpoints.pop("", None):
        document[UNNAMED] = unnamed
    if endpoints:
        document["endpoints"] = endpoints
    return msgspec.toml.encode(document).decode()


# --- the three layers ---


def _from_file(path: Path) -> Iterator[tuple[Key, Given]]:
    try:
        document = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise UsageError(f"cannot read the settings {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is not UTF-8 at byte {error.start}", hint="convert it to UTF-8"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise _toml_error(path, error) from error
    if UNNAMED in document:
        endpoints = document.setdefault("endpoints", {})
        if not isinstance(endpoints, dict) or "" in endpoints:
            raise UsageError(
                f"{path}: there are both {UNNAMED} and endpoints", hint=f"write [{UNNAMED}] only"
            )
        endpoints[""] = document.pop(UNNAMED)
    for key, value in _leaves(document, Config, (), str(path)):
        given = typed(key, value, f"{path}: {dotted_name(key)}")
        if given.value is not None and (key in _FILES or key[-1].endswith("client_secret_file")):
            given = Given(_beside(path, str(given.value)), given.origin)
        if key[-1] == "source":
            # paths are relative to the file, not to the working directory
            given = Given(tuple(_beside(path, source) for source in given.value), given.origin)  # type: ignore[attr-defined] # its type is that of `EndpointSettings.source`
        if key[-1] in ("shapes", "shapes_data"):
            given = Given(tuple(_beside(path, file) for file in given.value), given.origin)  # type: ignore[attr-defined] # its type is that of `BridgeSettings.shapes`
        if key[-1] in ("frames", "contexts"):
            files = {name: _beside(path, file) for name, file in given.value.items()}  # type: ignore[attr-defined] # its type is that of `EndpointSettings.frames`
            given = Given(files, given.origin)
        yield key, given


def _toml_error(path: Path, error: tomllib.TOMLDecodeError) -> UsageError:
    message = str(error)
    position = None
    if place := TOML_PLACE.search(message):
        message = message[: place.start()]
        if place["line"]:
            position = Position(int(place["line"]), int(place["column"]))
        else:
            message += " at its end"
    return UsageError(
        f"{path} is not TOML: {message}", position=position, hint="see https://toml.io/en/v1.0.0"
    )


def _beside(path: Path, source: str) -> str:
    return source if "://" in source else str(path.parent / source)


def _leaves(
    table: object, struct: type[msgspec.Struct], above: Key, origin: str
) -> Iterator[tuple[Key, object]]:
    """Yields the settings of a table with their complete keys."""
    if not isinstance(table, dict):
        place = dotted_name(above)
        raise UsageError(
            f"{origin}: {place} must be a table, not {quoted(table)}", hint=f"write [{place}]"
        )
    known = fields(struct)
    for name, value in table.items():
        key = (*above, name)
        if struct is StreamsSettings and isinstance(value, dict) and name != "contexts":
            if name in known and name != BRIDGES:
                raise UsageError(
                    f"{origin}: {dotted_name(key)} is the name of a setting, and not of a bridge",
                    hint="give the stream another name",
                )
            yield from _leaves(value, BridgeSettings, (*above, BRIDGES, name), origin)
            continue
        if name not in known or name == BRIDGES:
            raise unknown(
                f"{origin}: {dotted_name(key)}", name, [*known, *([UNNAMED] if not above else [])]
            )
        if name == "endpoints":
            if not isinstance(value, dict):
                raise UsageError(
                    f"{origin}: endpoints must be a table", hint="write [endpoints.NAME]"
                )
            for endpoint, inner in value.items():
                yield from _leaves(inner, EndpointSettings, (*key, endpoint), origin)
        elif (inner_struct := _NESTED.get((struct, name))) is not None:
            yield from _leaves(value, inner_struct, key, origin)
        else:
            yield key, value


def _from_environment(environ: Mapping[str, str], names: list[str]) -> Iterator[tuple[Key, Given]]:
    for variable in sorted(environ):
        # some tools set an empty variable if there is none
        if variable.startswith(PREFIX) and environ[variable]:
            key = _key_of(variable, names)
            yield key, typed(key, from_text(key, environ[variable], variable), variable)


def _key_of(variable: str, endpoints: list[str]) -> Key:
    """Returns the setting of an environment variable, for a known or a new endpoint."""
    parts = variable.removeprefix(PREFIX).lower().split("__")
    if parts[0] == UNNAMED:
        parts[:1] = ["endpoints", ""]
    elif parts[0] == "endpoints" and len(parts) > 1:
        known = [name for name in endpoints if re.sub(r"[^a-z0-9]", "_", name.lower()) == parts[1]]
        if len(known) > 1:
            raise UsageError(
                f"{variable} could mean the endpoints {' and '.join(known)}",
                hint="rename one of them",
            )
        parts[1:2] = known or [parts[1]]
    elif parts[0] == "streams" and len(parts) > 2:
        parts.insert(1, BRIDGES)
    key = tuple(parts)
    struct: type[msgspec.Struct] = Config
    rest = key
    if key[0] == "endpoints" and len(key) > 2:
        struct, rest = (
            (Limits, key[3:])
            if key[2] == "limits" and len(key) > 3
            else (EndpointSettings, key[2:])
        )
    elif key[:2] == ("streams", BRIDGES) and len(key) > 3:
        struct, rest = BridgeSettings, key[3:]
    elif key[0] in TABLES and len(key) > 1:
        struct, rest = TABLES[key[0]], key[1:]
    names = [
        name
        for name in fields(struct)
        if name not in ("endpoints", BRIDGES) and (struct, name) not in _NESTED
    ]
    if len(rest) != 1 or rest[0] not in names:
        raise unknown(variable, rest[-1], names)
    return key


def _from_flags(flags: Mapping[str, str | list[str] | bool]) -> Iterator[tuple[Key, Given]]:
    for name, value in flags.items():
        parts = name.split(".")
        key: Key = ("endpoints", "", *parts[1:]) if parts[0] == UNNAMED else tuple(parts)
        flag = "--streams" if name == "streams.file" else f"--{parts[-1].replace('_', '-')}"
        yield (
            key,
            typed(key, from_text(key, value, flag) if isinstance(value, str) else value, flag),
        )


# --- the structures ---


def _names(settings: Mapping[Key, Given]) -> list[str]:
    return sorted({key[1] for key in settings if key[0] == "endpoints"})


def _build(settings: Mapping[Key, Given]) -> Config:
    endpoints = {}
    for name in _names(settings):
        own = {
            key[2:]: given.value
            for key, given in settings.items()
            if key[:2] == ("endpoints", name)
        }
        if ("source",) not in own:
            origin = next(
                given.origin for key, given in settings.items() if key[:2] == ("endpoints", name)
            )
            missing = dotted_name(("endpoints", name, "source"))
            raise UsageError(
                f"{origin} is set, but not {missing}",
                hint=f"set {missing}{' or --source' if not name else ''}",
            )
        limits = Limits(**{key[1]: value for key, value in own.items() if key[0] == "limits"})  # type: ignore[arg-type] # each has been converted
        rest = {key[0]: value for key, value in own.items() if key[0] != "limits"}
        endpoints[name] = EndpointSettings(limits=limits, **rest)  # type: ignore[arg-type] # see above
    tables = {
        table: _table({**settings, **_bridges(settings)}, table, struct)
        for table, struct in TABLES.items()
    }
    if not endpoints and tables["streams"] is None:
        raise UsageError(
            "no endpoint is named",
            hint=f"give --source, or --config with [{UNNAMED}] or [endpoints.NAME] and its source; or --streams",
        )
    return Config(
        endpoints=endpoints,
        **tables,  # type: ignore[arg-type] # see above
        **{key[0]: given.value for key, given in settings.items() if len(key) == 1},  # type: ignore[arg-type] # see above
    )


def _bridges(settings: Mapping[Key, Given]) -> dict[Key, Given]:
    """Returns the tables of bridges as one setting; None: there are none."""
    tables: dict[str, dict[str, object]] = {}
    origin = ""
    for key, given in settings.items():
        if key[:2] == ("streams", BRIDGES):
            tables.setdefault(key[2], {})[key[3]] = given.value
            origin = given.origin
    made = {name: msgspec.convert(table, BridgeSettings) for name, table in tables.items()}
    return {("streams", BRIDGES): Given(made, origin)} if made else {}


def _table(
    settings: Mapping[Key, Given], table: str, struct: type[msgspec.Struct]
) -> msgspec.Struct | None:
    """Returns a table of the settings; None: it has no values."""
    own = {key[1]: given for key, given in settings.items() if key[0] == table and len(key) == 2}
    for field in msgspec.structs.fields(struct) if own else ():
        if field.required and field.name not in own:
            flag = " or --streams" if table == "streams" else ""
            raise UsageError(
                f"{next(iter(own.values())).origin} is set, but not {table}.{field.name}",
                hint=f"set {table}.{field.name}{flag}",
            )
    return struct(**{name: given.value for name, given in own.items()}) if own else None

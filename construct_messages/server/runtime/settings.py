"""Reads settings from a TOML file, environment variables and flags; later ones win, setting by setting.

A setting is a path of keys, as `("endpoints", "dbpedia", "page_size")`. Errors name the place it was written in.
`config.py` has the structures, and `checks.py` checks that they are consistent.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar, get_args, get_origin

import msgspec

from construct_messages.errors import Position, UsageError
from construct_messages.rdf.options import REQUIRED, Option, is_choice, is_option_class, options_of
from construct_messages.server.config import (
    OF_FILES,
    OF_URLS,
    UNNAMED,
    BridgeSettings,
    Config,
    Key,
    StreamsSettings,
    dotted_name,
)
from construct_messages.server.runtime.checks import check_config
from construct_messages.sparql.sources.open import VARIABLE as SOURCE_VARIABLE

PREFIX: Final = "CONSTRUCT_MESSAGES_SERVER_"
"""The prefix of environment variables: `CONSTRUCT_MESSAGES_SERVER_ENDPOINTS__DBPEDIA__PAGE_SIZE`."""

_T = TypeVar("_T")
_NONE: Final = "none"  # TOML has no null
_BRIDGES: Final = "bridges"  # of `StreamsSettings`; its tables are written as [streams.NAME]
_PATHS: Final = {
    *("source", "frames", "file", "contexts", "keys", "shapes", "shapes_data"),
    *("grpc_certificate", "grpc_key"),
    *("client_secret_file", "from_client_secret_file", "to_client_secret_file"),
}
"""The settings whose values are files; in a settings file, their paths are relative to that file."""
_FLAGS: Final = {
    ("endpoints", "", "source"): " or --source",
    ("streams", "file"): " or --streams",
}
_TOML_PLACE: Final = re.compile(
    r" \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)$"
)


@dataclass(frozen=True)
class Given:
    """The value of a setting, with the right type, and its origin: a file and key, a variable, or a flag."""

    value: Any
    origin: str


def load_config(
    path: Path | None, environ: Mapping[str, str], flags: Mapping[str, str | list[str] | bool]
) -> Config:
    """Reads the settings of a server. An error has the setting, the place where it was written, and the fix.

    Flags have the names of their settings, as `bind` or `endpoint.page_size`; lists and switches are given as such,
    other values as text.

    >>> config = load_config(None, {}, {"endpoint.source": ["https://example.org/sparql"], "bind": "127.0.0.1:8000"})
    >>> config.bind, config.endpoints[""].source
    ('127.0.0.1:8000', ('https://example.org/sparql',))
    """
    settings = dict(_from_file(path)) if path is not None else {}
    settings |= dict(_from_environment(environ, _names(settings, ("endpoints",))))
    settings |= dict(_from_flags(flags))
    if not _names(settings, ("endpoints",)) and (source := environ.get(SOURCE_VARIABLE)):
        settings["endpoints", "", "source"] = Given((source,), SOURCE_VARIABLE)
    config = _built(Config, settings, ())
    if not config.endpoints and config.streams is None:
        raise UsageError(
            "no endpoint is named",
            hint=f"give --source, or --config with [{UNNAMED}] or [endpoints.NAME] and its source; or --streams",
        )
    check_config(config, environ, {key: given.origin for key, given in settings.items()})
    return config


def as_toml(config: Config) -> str:
    """Returns the settings as a TOML file, without the queries of URLs, which may contain keys.

    >>> from construct_messages.server.config import EndpointSettings
    >>> print(as_toml(Config(endpoints={"": EndpointSettings(source=("a.ttl",))})).split()[:3])
    ['bind', '=', '"127.0.0.1:8080"']
    """
    document = _as_table(config)
    endpoints = document.pop("endpoints")
    for name, endpoint in endpoints.items():
        is_remote = config.endpoints[name].is_remote
        if is_remote:
            endpoint["source"] = [re.sub(r"\?.*", "?…", source) for source in endpoint["source"]]
            endpoint["update_source"] = re.sub(r"\?.*", "?…", endpoint["update_source"])
        for setting in OF_FILES if is_remote else OF_URLS:
            del endpoint[setting]
    for table in ("streams", "jwt"):
        if getattr(config, table) is None:
            del document[table]
    if config.streams is not None:
        document["streams"] |= document["streams"].pop(_BRIDGES)
    if unnamed := endpoints.pop("", None):
        document[UNNAMED] = unnamed
    if endpoints:
        document["endpoints"] = endpoints
    return msgspec.toml.encode(document).decode()


def _as_table(value: Any) -> Any:
    if is_option_class(type(value)):
        known = settings_of(type(value))
        return {name: _as_table(getattr(value, each.name)) for name, each in known.items()}
    if isinstance(value, dict):
        return {key: _as_table(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return [_as_table(inner) for inner in value]
    return _NONE if value is None else value


# --- the structures -------------------------------------------------------------------------------


def settings_of(kind: type) -> dict[str, Option]:
    """The settings of a structure, by their names in a file."""
    # `from` is a keyword of Python
    names = {"source": "from", "target": "to"} if kind is BridgeSettings else {}
    return {names.get(name, name): each for name, each in options_of(kind).items()}


def _nested(setting: Option) -> tuple[type | None, bool]:
    """The structure of a setting that is a table, and whether it is a table of such tables; None: it is a value."""
    for kind in setting.types:
        if is_option_class(kind):
            return kind, False
        if get_origin(kind) is dict and is_option_class(get_args(kind)[1]):
            return get_args(kind)[1], True
    return None, False


def _names(settings: Mapping[Key, Given], above: Key) -> list[str]:
    """The names of the tables, or settings, below a key."""
    size = len(above)
    return sorted({key[size] for key in settings if key[:size] == above and len(key) > size})


def _built(kind: type[_T], settings: Mapping[Key, Given], at: Key) -> _T:
    """The structure of the settings below a key."""
    values: dict[str, Any] = {}
    for name, each in settings_of(kind).items():
        key = (*at, name)
        inner, several = _nested(each)
        if inner is None and key in settings:
            values[each.name] = settings[key].value
        elif inner is not None and several:
            names = _names(settings, key)
            values[each.name] = {own: _built(inner, settings, (*key, own)) for own in names}
        elif inner is not None and _names(settings, key):
            values[each.name] = _built(inner, settings, key)
        if each.default is REQUIRED and each.name not in values:
            first = next(given for place, given in settings.items() if place[: len(at)] == at)
            missing = dotted_name(key)
            raise UsageError(
                f"{first.origin} is set, but not {missing}",
                hint=f"set {missing}{_FLAGS.get(key, '')}",
            )
    return kind(**values)


# --- the three layers -----------------------------------------------------------------------------


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
    for key, setting, value in _leaves(document, Config, (), str(path)):
        given = _typed(setting, key, value, f"{path}: {dotted_name(key)}")
        is_path = key[-1] in _PATHS
        yield key, Given(_beside(path.parent, given.value), given.origin) if is_path else given


def _toml_error(path: Path, error: tomllib.TOMLDecodeError) -> UsageError:
    message = str(error)
    position = None
    if place := _TOML_PLACE.search(message):
        message = message[: place.start()]
        if place["line"]:
            position = Position(int(place["line"]), int(place["column"]))
        else:
            message += " at its end"
    return UsageError(
        f"{path} is not TOML: {message}", position=position, hint="see https://toml.io/en/v1.0.0"
    )


def _beside(folder: Path, value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_beside(folder, each) for each in value)
    if isinstance(value, dict):
        return {name: _beside(folder, each) for name, each in value.items()}
    return str(folder / value) if value is not None and "://" not in value else value


def _leaves(
    table: object, kind: type, above: Key, origin: str
) -> Iterator[tuple[Key, Option, object]]:
    """Yields the values in a table with their complete keys."""
    if not isinstance(table, dict):
        place = dotted_name(above)
        raise UsageError(
            f"{origin}: {place} must be a table, not {_quoted(table)}", hint=f"write [{place}]"
        )
    known = settings_of(kind)
    for name, value in table.items():
        key = (*above, name)
        if kind is StreamsSettings and isinstance(value, dict) and name != "contexts":
            if name in known and name != _BRIDGES:
                raise UsageError(
                    f"{origin}: {dotted_name(key)} is the name of a setting, and not of a bridge",
                    hint="give the stream another name",
                )
            yield from _leaves(value, BridgeSettings, (*above, _BRIDGES, name), origin)
            continue
        if name not in known or name == _BRIDGES:
            place = f"{origin}: {dotted_name(key)}"
            raise _unknown(place, name, [*known, *([UNNAMED] if not above else [])])
        inner, several = _nested(known[name])
        if inner is None:
            yield key, known[name], value
        elif several and not isinstance(value, dict):
            raise UsageError(f"{origin}: {name} must be a table", hint=f"write [{name}.NAME]")
        elif several:
            for own, settings in value.items():
                yield from _leaves(settings, inner, (*key, own), origin)
        else:
            yield from _leaves(value, inner, key, origin)


def _from_environment(environ: Mapping[str, str], names: list[str]) -> Iterator[tuple[Key, Given]]:
    for variable in sorted(environ):
        # some tools set an empty variable if there is none
        if variable.startswith(PREFIX) and environ[variable]:
            key = _key_of(variable, names)
            setting = _setting(key, variable)
            yield key, _typed(setting, key, environ[variable], variable, is_text=True)


def _key_of(variable: str, endpoints: list[str]) -> Key:
    """Returns the key of an environment variable, for a known or a new endpoint."""
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
        parts.insert(1, _BRIDGES)
    return tuple(parts)


def _setting(key: Key, origin: str) -> Option:
    """The setting of a key, which must be a value, and not a table."""
    kind: type = Config
    rest = list(key)
    while True:
        known = settings_of(kind)
        setting = known.get(rest.pop(0))
        inner, several = (None, False) if setting is None else _nested(setting)
        if setting is not None and inner is None and not rest:
            return setting
        if inner is None or len(rest) <= several:
            values = [name for name, each in known.items() if _nested(each)[0] is None]
            raise _unknown(origin, key[-1], values)
        kind, rest = inner, rest[several:]


def _from_flags(flags: Mapping[str, str | list[str] | bool]) -> Iterator[tuple[Key, Given]]:
    for name, value in flags.items():
        parts = name.split(".")
        key: Key = ("endpoints", "", *parts[1:]) if parts[0] == UNNAMED else tuple(parts)
        flag = "--streams" if name == "streams.file" else f"--{parts[-1].replace('_', '-')}"
        is_text = isinstance(value, str)
        yield key, _typed(_setting(key, flag), key, value, flag, is_text=is_text)


# --- values ---------------------------------------------------------------------------------------


def _typed(setting: Option, key: Key, value: Any, origin: str, *, is_text: bool = False) -> Given:
    """Converts a value; in text (of a variable or flag), lists and tables are those of TOML, strings have no quotes."""
    kinds = {get_origin(each) or each for each in setting.types}
    if is_text and value.startswith(("[", "{")) and kinds & {tuple, dict}:
        try:
            value = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError as error:
            raise UsageError(
                f"{origin} is no list or table of TOML: {_TOML_PLACE.sub('', str(error))}",
                hint=_example(setting, key),
            ) from error
    if value == _NONE and type(None) in kinds:
        return Given(None, origin)
    if isinstance(value, str) and kinds == {tuple}:
        value = [value]  # a list of one
    _check_tables(setting, value, origin)
    try:
        converted = msgspec.convert(value, setting.type, strict=not is_text)
        # only "none" is None: msgspec also takes the text "null" for it
        is_fit = converted is not None and setting.admits(converted)
        fault = "" if is_fit else f", not {_quoted(value if converted is None else converted)}"
    except msgspec.ValidationError as error:
        # msgspec names the place within a list or table
        inner = f": {error}" if "`$" in str(error) else ""
        converted, fault = None, f", not {_quoted(value)}{inner}"
    if fault:
        raise UsageError(
            f"{origin} must be {in_words(setting)}{fault}", hint=_example(setting, key)
        )
    return Given(converted, origin)


def in_words(setting: Option) -> str:
    """The values of a setting."""
    return setting.described(f'"{_NONE}"')


def _check_tables(setting: Option, value: Any, origin: str) -> None:
    """Refuses unknown names in a list of tables, which msgspec ignores."""
    kinds = [get_args(each)[0] for each in setting.types if get_origin(each) is tuple]
    for known in (options_of(each) for each in kinds if is_option_class(each)):
        for table in value if isinstance(value, list) else ():
            for name in table if isinstance(table, dict) else ():
                if name not in known:
                    raise _unknown(origin, name, list(known))


def _example(setting: Option, key: Key) -> str:
    examples: dict[Any, Any] = {
        **{bool: "true", int: "1000", float: "2.5", str: '"…"'},
        **{tuple: '["…", "…"]', dict: '{ name = "…" }'},
    }
    choices = [get_args(each)[0] for each in setting.types if is_choice(each)]
    if "a list of tables" in in_words(setting):
        return f"write each one as a table [[{dotted_name(key)}]]"
    value: object
    if isinstance(setting.default, int | float) and not isinstance(setting.default, bool):
        value = setting.default
    elif choices:
        value = f'"{choices[0]}"'
    else:
        kinds = [get_origin(each) or each for each in setting.types]
        value = next(examples[kind] for kind in kinds if kind in examples)
    return f"write it like {key[-1]} = {value}"


def _quoted(value: object) -> str:
    text = repr(value)
    kind = {"str": "the string", "bool": "", "int": "the number", "float": "the number"}.get(
        type(value).__name__
    )
    words = f"the {type(value).__name__}" if kind is None else kind
    return f"{words} {text if len(text) <= 60 else text[:60] + '…'}".strip()


def _unknown(origin: str, name: str, known: list[str]) -> UsageError:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"choose one of {', '.join(sorted(known))}"
    return UsageError(f"{origin}: there is no setting {name!r}", hint=hint)

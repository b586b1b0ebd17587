"""The options of reading and writing logs on Spark: converts texts by name to checked values, before any job runs.

No files are read, and Spark is not used here. The names are those of `read_log` and `write_log`, in Spark's spelling.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final, Self, TypeVar, get_origin

from construct_messages.errors import UsageError
from construct_messages.logs import MESSAGE_BYTES, FormatOptions, check_options, options_class
from construct_messages.logs.reading import read_log
from construct_messages.rdf.files.unpacking import COMPRESSIONS
from construct_messages.rdf.formats import FORMATS, Format, Syntax, content_type
from construct_messages.rdf.formats.lookup import default_format, find_log
from construct_messages.rdf.options import (
    Count,
    Size,
    TransportOptions,
    option_class,
    options_of,
)
from construct_messages.spark.logs.files import S3Settings, s3_settings_of

_BYTES: Final = re.compile(r"(?P<number>[0-9]+)\s*(?P<unit>[kmgt]?)i?b?", re.IGNORECASE)
_POWERS: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_OBJECT: Final = 'write it as {"name": …}'
_BOOLEANS: Final = {"true": True, "false": False}
T = TypeVar("T")
_PACKINGS: Final = {
    "none": "",
    "gzip": ".gz",
    "bzip2": ".bz2",
    "zstd": ".zst",
    **{extension.removeprefix("."): extension for extension in COMPRESSIONS},
}


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading logs; see `register` and `read_log`."""

    paths: tuple[str, ...]
    format: str | None = None
    syntax: str | None = None
    base: str | None = None
    contexts: Mapping[str, Any] | None = None
    message_bytes: int = MESSAGE_BYTES
    # of the ranges of a log, and of the small logs in one partition
    max_partition_bytes: int = 1 << 27
    lenient: bool = False
    shared_labels: bool | None = None
    s3: S3Settings = ()

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        """Takes the options of a data source, by name in lower case, as Spark passes them.

        >>> ReadOptions.of({"path": "logs", "maxpartitionbytes": "64m"}).max_partition_bytes
        67108864
        """
        given = _Given(options, "read")
        read = given.made(cls, paths=given.paths(), s3=given.s3())
        given.end()
        # the checks of `read_log` itself
        read_log(
            b"",
            read.format,
            syntax=read.syntax,
            base=read.base,
            message_bytes=read.message_bytes,
        ).close()
        return read


@option_class
@dataclass(frozen=True)
class FolderStreamOptions(ReadOptions):
    """Options for reading a folder of logs as a stream; see `register`."""

    max_partition_bytes: int = 1 << 24  # batches are small, and are to be read by several tasks
    max_files_per_trigger: Count | None = None
    max_bytes_per_trigger: Count | None = None


@option_class
@dataclass(frozen=True, kw_only=True)
class ServerOptions(TransportOptions):
    """Options for a stream of a server; see `register` and `TransportOptions`."""

    url: str
    token: str | None = None
    query_id: str | None = None
    batch_id: Size | None = None

    @classmethod
    def of(cls, options: Mapping[str, str], what: str = "write to a stream") -> Self:
        """Takes the options of a data source; see `ReadOptions.of`.

        >>> ServerOptions.of({"path": "https://example.org/streams/a", "retries": "3"}).retries
        3
        """
        # loads asyncio and aiohttp, which workers that read files do not need
        from construct_messages.feeds.opening import check_url

        given = _Given({n: v for n, v in options.items() if not n.startswith("fs.")}, what)
        read = given.made(cls, url=given.paths()[0])
        given.end()
        check_url(read.url)
        return read


@option_class
@dataclass(frozen=True, kw_only=True)
class ServerStreamOptions(ServerOptions):
    """Options for reading a stream of a server; see `register`."""

    after: Size | None = None  # the sequence to begin after; None: begin with the first element
    max_offsets_per_trigger: Count | None = None
    max_partition_messages: Count = 50_000

    def __post_init__(self) -> None:
        if self.create:
            raise UsageError("create is for writing to a stream", hint="leave it out")


@dataclass(frozen=True)
class WriteOptions:
    """Options for writing logs; see `register` and `EncoderOptions`."""

    path: str
    format: Format
    syntax: Syntax
    prefixes: Mapping[str, str] | None = None
    graphs: bool = True
    own: FormatOptions | None = None
    packing: str = ""  # the extension of the compression; empty: none
    single: bool = False  # whether all messages form one log
    lenient: bool = False
    alone: bool = False  # whether logs of others in the folder are an error
    # identify a micro-batch, which is written once; Spark itself knows both in a streaming query
    query_id: str | None = None
    batch_id: Size | None = None
    s3: S3Settings = ()

    @property
    def extension(self) -> str:
        """The extension of each log."""
        return f"{self.format.extension}{self.packing}"

    @property
    def media_type(self) -> str:
        return content_type(self.format, self.syntax)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> WriteOptions:
        """Takes the options of a data source; see `ReadOptions.of`.

        >>> options = WriteOptions.of({"path": "logs", "format": "trig", "compression": "gzip"})
        >>> options.format.name, options.syntax.label, options.packing
        ('TriG', 'rdfm', '.gz')
        """
        given = _Given(options, "write")
        paths = given.paths()
        if len(paths) != 1:
            raise UsageError(f"{len(paths)} paths to write to", hint="give one")
        single = given.boolean("single") or False
        named = paths[0] if single else None
        format, syntax = find_log(
            given.text("format") or default_format(named), given.text("syntax"), FORMATS
        )
        written = given.made(
            cls,
            path=paths[0],
            format=format,
            syntax=syntax,
            own=given.format_options(format),
            packing=given.packing(named),
            single=single,
            s3=given.s3(),
        )
        given.end()
        return written


class _Given:
    """Options that are taken one by one; `end` raises if one is left."""

    def __init__(self, options: Mapping[str, str], what: str) -> None:
        self._left, self._what = dict(options), what
        self._known: list[str] = []

    def text(self, name: str) -> str | None:
        self._known.append(name)
        return self._left.pop(name.lower(), None)

    def paths(self) -> tuple[str, ...]:
        path, more = self._left.pop("path", None), self._left.pop("paths", None)
        paths = (*([path] if path else []), *(json.loads(more) if more else []))
        if not paths:
            raise UsageError(f"no path to {self._what}", hint="give it to load() or save()")
        return paths

    def s3(self) -> S3Settings:
        settings = {name: value for name, value in self._left.items() if name.startswith("fs.")}
        self._left = {name: value for name, value in self._left.items() if name not in settings}
        return s3_settings_of({}, settings)

    def made(self, kind: type[T], **given: Any) -> T:
        """Returns an object of these fields, and of the options that have the names of other fields."""
        for each in options_of(kind).values():
            if each.name in given:
                continue
            first, *rest = each.name.split("_")
            name = first + "".join(map(str.capitalize, rest))
            kinds = {get_origin(kind) or kind for kind in each.types}
            whole = self.bytes if "bytes" in each.name else self.count
            readers = {
                bool: self.boolean,
                int: whole,
                float: self.seconds,
                Mapping: self.mapping,
                str: self.text,
            }
            value = next(read for kind, read in readers.items() if kind in kinds)(name)
            if value is not None:
                given[each.name] = value
        return kind(**given)

    def bytes(self, name: str) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        match = _BYTES.fullmatch(text.strip())
        size = int(match["number"]) << _POWERS[match["unit"].lower()] if match else 0
        if size <= 0:
            raise UsageError(
                f"{name}={text} is not a number of bytes", hint="write it as 1048576 or 64m"
            )
        return size

    def count(self, name: str) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise UsageError(f"{name}={text} is not a whole number", hint="write it as 1000")
        return int(text)

    def seconds(self, name: str) -> float | None:
        text = self.text(name)
        try:
            return None if text is None else float(text)
        except ValueError:
            raise UsageError(f"{name}={text} is not a number", hint="write it as 60") from None

    def boolean(self, name: str) -> bool | None:
        text = self.text(name)
        if text is None:
            return None
        if text.lower() not in _BOOLEANS:
            raise UsageError(
                f"{name}={text} is neither true nor false",
                hint="write one of them, or leave it out",
            )
        return _BOOLEANS[text.lower()]

    def mapping(self, name: str) -> dict[str, Any] | None:
        text = self.text(name)
        if text is None:
            return None
        try:
            value = json.loads(text)
        except ValueError as error:
            raise UsageError(f"{name} is not JSON: {error}", hint=_OBJECT) from error
        if not isinstance(value, dict):
            raise UsageError(f"{name} is not a JSON object", hint=_OBJECT)
        return value

    def format_options(self, format: Format) -> FormatOptions | None:
        for each in FORMATS:
            if (own := options_class(each)) and (
                values := self.mapping(each.extension)
            ) is not None:
                options = own.of(values)
                check_options(format, options)
                return options
        return None

    def packing(self, named: str | None) -> str:
        text = self.text("compression")
        if text is None:
            suffix = PurePath(named or "").suffix.lower()
            return suffix if suffix in COMPRESSIONS else ""
        if text.lower() not in _PACKINGS:
            raise UsageError(
                f"compression={text} is not known", hint=f"choose one of {', '.join(_PACKINGS)}"
            )
        return _PACKINGS[text.lower()]

    def end(self) -> None:
        if self._left:
            raise UsageError(
                f"unknown option {', '.join(sorted(self._left))} to {self._what} logs",
                hint=f"choose among {', '.join(self._known)}",
            )

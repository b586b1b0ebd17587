"""Finds formats, syntaxes and types of logs, and formats of documents, by a text: a name, an extension, a label or a
media type.

The media types and their parameters are those of the table, `rdf/formats/__init__.py`. Headers are read in
`negotiation.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final, NamedTuple

from construct_messages.errors import UsageError, shown
from construct_messages.rdf.files.unpacking import COMPRESSIONS
from construct_messages.rdf.formats import (
    FORMATS,
    LABELLED,
    N_QUADS,
    RDFM,
    READ,
    SYNTAXES,
    VARIANTS,
    WRITTEN,
    Format,
    LogType,
    Syntax,
)
from construct_messages.rdf.formats.media_types import (
    EXTENSIONS,
    DocumentFormat,
    find_document_format,
    format_of_document,
    read_parameters,
)

# --- file names -----------------------------------------------------------------------------------
# The formats of files by the extensions of their names, before an extension of compression. No file is opened here.

_ARCHIVES: Final = {".tgz": ".gz", ".tbz2": ".bz2", ".txz": ".xz", ".tzst": ".zst"}


def format_of_file(name: str) -> Format | None:
    """Returns the format of a file name's extension, before any extension of compression; else None.

    >>> format_of_file("log.trig.zst").name, format_of_file("log.jsonl").name, format_of_file("log.txt")
    ('TriG', 'NDJSON-LD', None)
    """
    extension = _extension(name)
    return next((format for format in READ if extension in format.extensions), None)


def default_format(name: str | None, otherwise: Format = N_QUADS) -> str:
    """Returns the format of an output log by the name of its file. `name`: the name of the file; its extension
    determines the format. `otherwise`: the format without an extension or a name; N-Quads carries everything.

    >>> from construct_messages.rdf.formats import TRIG
    >>> default_format("log.ttl.gz"), default_format("log"), default_format("log.gz"), default_format(None, TRIG)
    ('ttl', 'nq', 'nq', 'trig')
    >>> default_format("data.rdf")
    Traceback (most recent call last):
    ...
    construct_messages.errors.UsageError: data.rdf: .rdf is not the extension of a log format
      hint: end the name in .nq, .trig, .nt, .ttl, .ndjsonld, .ndjson, .jsonl, .jelly, .yamlld, .yaml, .yml, .rdfxml, \
.json, .parquet, .arrow, .arrows, .feather or .csv (after it .gz, .bz2, .xz or .zst), or give the format
    """
    if name is None or not (extension := _extension(name)):
        return otherwise.extension
    if (found := next((each for each in WRITTEN if extension in each.extensions), None)) is None:
        *most, last = (f".{each}" for format in WRITTEN for each in format.extensions)
        *packings, packing = COMPRESSIONS
        raise UsageError(
            f"{name}: .{extension} is not the extension of a log format",
            hint=f"end the name in {', '.join(most)} or {last} (after it {', '.join(packings)} or {packing}), "
            "or give the format",
        )
    return found.extension


def _extension(name: str) -> str:
    """The last extension of a file's name that is not one of compression, in lower case and without the dot."""
    path = PurePath(name)
    if path.suffix.lower() in COMPRESSIONS:
        path = path.with_suffix("")
    return path.suffix.lower()[1:]


def is_archive_name(name: str) -> bool:
    """Whether a file's name is that of a tar archive.

    >>> is_archive_name("stream.tar.zst"), is_archive_name("stream.ttl.gz")
    (True, False)
    """
    return packing_of_name(name)[1]


def packing_of_name(name: str) -> tuple[str | None, bool]:
    """The compression of a file by its name, and whether the name is that of an archive.

    >>> packing_of_name("stream.tgz"), packing_of_name("stream.ttl")
    (('.gz', True), (None, False))
    """
    path = PurePath(name)
    suffix = path.suffix.lower()
    if suffix in _ARCHIVES:
        return _ARCHIVES[suffix], True
    if suffix in COMPRESSIONS:
        return suffix, PurePath(path.stem).suffix.lower() == ".tar"
    return None, suffix == ".tar"


class DocumentFile(NamedTuple):
    """What the name of a file with RDF tells."""

    format: DocumentFormat
    packing: str  # the extension of its compression, as written; empty without one
    suffix: str  # all of these extensions, as written


def document_file(name: str, format: str | None = None, *, named: bool = False) -> DocumentFile:
    """Returns the format and the compression of a file, by its path or URL.

    Args:
        name: the path, or the URL without percent-encoding.
        format: the format by an extension, a name or a media type; None: that of the file's extension.
        named: whether the user named the file, rather than its folder: `.txt` files in a folder are no RDF.

    Raises:
        UsageError: it is not a format of documents.

    >>> found = document_file("hdfs:///dumps/a.ttl.bz2")
    >>> found.format.name, found.packing, found.suffix
    ('Turtle', '.bz2', '.ttl.bz2')
    """
    path = PurePath(name)
    packing = path.suffix if path.suffix.lower() in COMPRESSIONS else ""
    if format is not None:
        return DocumentFile(document_format(format), packing, packing)
    extension = PurePath(path.name.removesuffix(packing)).suffix
    if (found := format_of_document(extension[1:].lower(), named=named)) is None:
        raise UsageError(
            f"{name}: the extension {extension or '(none)'!r} is not an RDF format",
            hint=f"name its format, or end its name in one of {EXTENSIONS}; {', '.join(COMPRESSIONS)} may follow",
        )
    return DocumentFile(found, packing, extension + packing)


def document_format(text: str) -> DocumentFormat:
    """Returns the format of documents with an extension, a name or a media type.

    >>> document_format("csv")
    Traceback (most recent call last):
    ...
    construct_messages.errors.UsageError: csv is no format of documents
      hint: name one: .ttl, .nt, .rdf, .owl, .xml, .jsonld, .nq, .trig, .n3
    """
    if (found := find_document_format(text)) is None:
        raise UsageError(f"{shown(text)} is no format of documents", hint=f"name one: {EXTENSIONS}")
    return found


# --- lookup ---------------------------------------------------------------------------------------


def find_format(text: str, formats: Sequence[Format] = FORMATS) -> tuple[Format, Syntax | None]:
    """Returns the format of a name, extension or media type, and the syntax if the media type has a parameter for it.
    `formats`: the formats to choose from; by default those that are both read and written.

    Names, labels and parameters are read in any case; a value may be quoted.

    >>> format, syntax = find_format('application/trig; version="1.2-messages"')
    >>> format.name, syntax.label
    ('TriG', '1.2-messages')
    >>> find_format(".ttl")[0].media_type, find_format("N-Quads")[1]
    ('text/turtle', None)
    >>> format, syntax = find_format("application/x-jelly-rdf; messages=rdfm")
    >>> syntax is format.own
    True
    """
    name, semicolon, parameters = text.partition(";")
    name = name.strip().lower().removeprefix(".")
    for format in formats:
        if name in (format.name.lower(), *format.media_types, *format.extensions, *format.names):
            return format, (_syntax_of(format, parameters, text) if semicolon else format.own)
    raise UsageError(
        f"unknown format {text!r}",
        hint=f"choose one of {', '.join(f'{f.extension} ({f.media_type})' for f in formats)}",
    )


def is_media_type(text: str) -> bool:
    """Whether a text for `find_format` is a media type, not a name or an extension.

    >>> is_media_type("Text/Turtle; version=1.2"), is_media_type("ttl"), is_media_type("RDF/XML")
    (True, False, False)
    """
    name = text.partition(";")[0].strip().lower()
    return any(name in format.media_types for format in WRITTEN)


def find_syntax(label: str) -> Syntax:
    """The syntax with a label, read in any case.

    >>> find_syntax("RDFM").delimiter
    '# @message\\n'
    """
    for syntax in SYNTAXES:
        if syntax.label == label.strip().lower():
            return syntax
    raise UsageError(
        f"unknown message syntax {label!r}",
        hint=f"choose one of {', '.join(syntax.label for syntax in SYNTAXES)}",
    )


def find_log(
    format: str | LogType, syntax: str | None = None, formats: Sequence[Format] = WRITTEN
) -> LogType:
    """Returns the type of an output log. `syntax`: a label; None: the format's own syntax, or else `rdfm`.

    >>> find_log("nt", "1.2-messages")[1].delimiter, find_log("nt")[1].delimiter, find_log("jelly")[1].delimiter
    ('MESSAGE\\n', '# @message\\n', '')
    """
    if isinstance(format, LogType):
        return format
    found, announced = find_format(format, formats)
    if syntax is None:
        return LogType(found, announced or RDFM)
    asked = find_syntax(syntax)
    if found.own is not None:
        raise UsageError(
            f"{found.name} delimits messages by itself: syntax={asked.label} has no meaning there",
            hint="leave it out, or choose another format",
        )
    return LogType(found, announced or asked)


def _syntax_of(format: Format, parameters: str, text: str) -> Syntax | None:
    given = read_parameters(f";{parameters}")
    if given is None:
        raise UsageError(
            f"malformed parameters in {text!r}",
            hint="write them as in application/trig; messages=rdfm",
        )
    if (charset := given.pop("charset", "utf-8")) != "utf-8":
        raise UsageError(f"charset={charset} in {text!r}", hint="logs are UTF-8: leave charset out")
    if unknown := given.keys() - {"version", "messages"}:
        raise UsageError(
            f"{', '.join(sorted(unknown))} in {text!r} is not a parameter of a message log",
            hint="write version=… or messages=rdfm",
        )
    # a format that delimits messages by itself always has messages, with or without the parameter
    asked = syntax_of({"messages": RDFM.label, **given} if format.own else given)
    if asked is None and given not in ({}, {"version": RDFM.version}):
        raise UsageError(
            f"{'; '.join(f'{name}={value}' for name, value in given.items())} in {text!r} is not a message syntax",
            hint="choose messages=rdfm (with version=1.2, 1.2-basic or 1.1), or one of "
            + ", ".join(f"version={syntax.label}" for syntax in LABELLED),
        )
    return asked and format.syntax(asked)


def syntax_of(parameters: Mapping[str, str]) -> Syntax | None:
    """Returns the syntax that media type parameters (in lower case) request, or None.

    A version that is a label takes precedence over `messages`. With `messages=rdfm`, any other version restricts the
    content of messages.

    >>> syntax_of({"messages": "rdfm", "version": "1.2-messages"}).label
    '1.2-messages'
    >>> syntax_of({"messages": "rdfm", "version": "1.1"}).triple_terms, syntax_of({"version": "1.1"})
    (False, None)
    """
    version = parameters.get("version")
    if version is not None and version.endswith("-messages"):
        label = version
    else:
        label, version = parameters.get("messages", ""), version or RDFM.version
        if label != RDFM.label:
            return None
    return next((s for s in VARIANTS if (s.label, s.version) == (label, version)), None)


def asks_for_messages(media_type: str, parameters: Mapping[str, str]) -> bool:
    """Whether a media type is only for logs, even if the format is unknown here.

    >>> [asks_for_messages("text/turtle", {"version": version}) for version in ("1.2", "1.2-messages", "9-messages")]
    [False, True, True]
    >>> asks_for_messages("application/rdfm+xml", {}), asks_for_messages("application/x-jelly-rdf", {})
    (True, False)
    """
    return (
        "messages" in parameters
        or parameters.get("version", "").endswith("-messages")
        or media_type.startswith("application/rdfm+")
    )

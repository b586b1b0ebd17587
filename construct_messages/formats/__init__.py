"""Formats and syntaxes of message logs: names, media types and their parameters, version labels, file extensions.

Tables and the one place that reads a media type; what a client would rather have is `negotiation.py`'s business, and no
bytes of a message are written here. A *format* is an RDF serialization, a *syntax* is how a log in it delimits
messages: the comment delimiters of the first draft of RDF Messages (`messages=rdfm`,
https://www.pieter.pm/rdf-messages, section 3.1) or the version labels of the current one (`version=1.2-messages`,
https://w3c-cg.github.io/rsp/messages/). Media types are read as RFC 9110, section 8.3.1 writes them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from construct_messages.errors import UsageError
from construct_messages.files.compression import COMPRESSIONS


@dataclass(frozen=True)
class Syntax:
    """How a log delimits its messages, and which version of RDF it keeps to.

    Args:
        label: what it is called: the value of the media type parameter that asks for it; empty where the format itself
            delimits messages.
        version: the value of the media type's parameter `version`; empty where it has none.
        announcement: what a log begins with.
        delimiter: the line of a delimiter, with its line break.
        delimiter_first: whether a delimiter stands before every message, instead of after.
        triple_terms: whether a message may hold triple terms (RDF 1.2 Full).
        directions: whether a literal may have a base direction (RDF 1.2).
    """

    label: str
    version: str
    announcement: str
    delimiter: str
    delimiter_first: bool
    triple_terms: bool
    directions: bool

    def allows(self, other: Syntax) -> bool:
        """Whether messages may hold all that those of the other may."""
        return self.triple_terms >= other.triple_terms and self.directions >= other.directions


@dataclass(frozen=True)
class Format:
    """An RDF serialization that logs are written in; to be compared by `==`, for processes of Spark's hold copies.

    Args:
        name: as people write it.
        media_types: without parameters; the first is written, all are read.
        extensions: of files, without the dot; the first is also the name on a command line.
        names: further ones, in lower case.
        graphs: whether it can name graphs.
        own: where the format delimits messages by itself, what such messages may hold; None: any of `SYNTAXES` does.
    """

    name: str
    media_types: tuple[str, ...]
    extensions: tuple[str, ...]
    names: tuple[str, ...]
    graphs: bool
    own: Syntax | None = None

    @property
    def media_type(self) -> str:
        """The one that is written, without parameters."""
        return self.media_types[0]

    @property
    def extension(self) -> str:
        """The one that names the format."""
        return self.extensions[0]

    def can(self, asked: Syntax) -> bool:
        """Whether a log in this format can be what a syntax asks for: its own messages may hold more than that allows.

        >>> TURTLE.can(find_syntax("1.1-messages")), JELLY.can(find_syntax("1.1-messages")), JELLY.can(RDFM)
        (True, False, True)
        """
        return self.own is None or asked.allows(self.own)

    def syntax(self, asked: Syntax) -> Syntax:
        """What a log in this format is in where a syntax is asked for.

        Raises:
            UsageError: it cannot be what is asked for.

        >>> TURTLE.syntax(RDFM) is RDFM, JELLY.syntax(RDFM) == JELLY.own
        (True, True)
        """
        if not self.can(asked):
            raise UsageError(
                f"a {self.name} log may hold more than version={asked.version} allows",
                hint="leave the version out, or choose one of "
                + ", ".join(format.media_type for format in FORMATS if format.own is None),
            )
        return self.own or asked


def _own(*, triple_terms: bool, directions: bool = False) -> Syntax:
    return Syntax("", "", "", "", False, triple_terms, directions)


N_TRIPLES: Final = Format("N-Triples", ("application/n-triples",), ("nt",), ("ntriples",), graphs=False)
N_QUADS: Final = Format("N-Quads", ("application/n-quads",), ("nq",), ("nquads",), graphs=True)
TURTLE: Final = Format("Turtle", ("text/turtle",), ("ttl",), (), graphs=False)
TRIG: Final = Format("TriG", ("application/trig",), ("trig",), (), graphs=True)
NDJSON_LD: Final = Format(
    "NDJSON-LD",
    ("application/x-ld+ndjson", "application/x-ndjson"),
    ("ndjsonld", "ndjson", "jsonl"),
    (),
    graphs=True,
    own=_own(triple_terms=False, directions=True),
)
YAML_LD: Final = Format(
    "YAML-LD",
    ("application/rdfm+yaml",),
    ("yamlld", "yaml", "yml"),
    (),
    graphs=True,
    own=_own(triple_terms=False, directions=True),
)
RDF_XML: Final = Format(
    "RDF/XML",
    ("application/rdfm+xml",),
    # .rdf and .xml are files of one document over many lines, which is no log
    ("rdfxml",),
    ("rdf-xml", "rdf", "xml"),
    graphs=False,
    own=_own(triple_terms=False),
)
JELLY: Final = Format("Jelly", ("application/x-jelly-rdf",), ("jelly",), (), graphs=True, own=_own(triple_terms=True))

FORMATS: Final = (N_TRIPLES, N_QUADS, TURTLE, TRIG, NDJSON_LD, YAML_LD, RDF_XML, JELLY)


def _rdfm(version: str, *, triple_terms: bool, directions: bool) -> Syntax:
    return Syntax("rdfm", version, "", "# @message\n", True, triple_terms, directions)


def _labelled(label: str, *, triple_terms: bool, directions: bool) -> Syntax:
    return Syntax(label, label, f'VERSION "{label}"\n', "MESSAGE\n", False, triple_terms, directions)


RDFM: Final = _rdfm("1.2", triple_terms=True, directions=True)

LABELLED: Final = (
    _labelled("1.2-messages", triple_terms=True, directions=True),
    _labelled("1.2-basic-messages", triple_terms=False, directions=True),
    _labelled("1.1-messages", triple_terms=False, directions=False),
)
"""Those that a log announces by `VERSION`."""

SYNTAXES: Final = (RDFM, *LABELLED)
"""One for each label."""

VARIANTS: Final = (
    *SYNTAXES,
    # rdfm is a convention over plain RDF of any version: a requested version restricts what the messages may hold
    _rdfm("1.2-basic", triple_terms=False, directions=True),
    _rdfm("1.1", triple_terms=False, directions=False),
)
"""All that can be asked for by media type, where the format has none of its own: one for each label and version."""

LOGS: Final = tuple((format, syntax) for format in FORMATS for syntax in ((format.own,) if format.own else VARIANTS))
"""Every kind of log there is."""

# RFC 9110: section 5.6.2 (token), 5.6.4 (quoted-string), 5.6.6 (parameters), 8.3.1 (media-type), in possessive
# repetitions, so that a hostile header costs linear time
_TOKEN: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
_MEDIA_TYPE: Final = re.compile(rf"[ \t]*+({_TOKEN}/{_TOKEN})[ \t]*+")
_PARAMETER: Final = re.compile(rf';[ \t]*+(?:({_TOKEN})=(?:({_TOKEN})|"((?:[^"\\]|\\.)*+)"))?[ \t]*+')
_QUOTED_PAIR: Final = re.compile(r"\\(.)")


def read_media_type(text: str) -> tuple[str, dict[str, str]] | None:
    """A media type or range, as `type/subtype` and its parameters, all in lower case; None where the text is malformed.

    >>> read_media_type('Text/Turtle; Version="1.2-messages";')
    ('text/turtle', {'version': '1.2-messages'})
    >>> read_media_type("text/turtle; version"), read_media_type("text/turtle; q=1; q=0")
    (None, None)
    """
    match = _MEDIA_TYPE.match(text)
    if match is None:
        return None
    parameters = _read_parameters(text[match.end() :])
    return None if parameters is None else (match[1].lower(), parameters)


def _read_parameters(text: str) -> dict[str, str] | None:
    parameters: dict[str, str] = {}
    place = 0
    while place < len(text):
        match = _PARAMETER.match(text, place)
        if match is None:
            return None
        place = match.end()
        name, token, quoted = match.groups()
        if name is None:
            continue
        if name.lower() in parameters:
            return None
        parameters[name.lower()] = (token if quoted is None else _QUOTED_PAIR.sub(r"\1", quoted)).lower()
    return parameters


def asks_for_messages(media_type: str, parameters: Mapping[str, str]) -> bool:
    """Whether a media type is that of a log and of nothing else, if only of one that is not known here.

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


def syntax_of(parameters: Mapping[str, str]) -> Syntax | None:
    """The syntax that media type parameters (in lower case) ask for; None where there is none like that.

    A version that is a label wins over `messages`; beside `messages=rdfm` any other restricts what messages may hold.

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


def content_type(format: Format, syntax: Syntax) -> str:
    """The media type of a log, with the parameters that announce its messages.

    >>> content_type(find_format("trig")[0], RDFM)
    'application/trig; version=1.2; messages=rdfm'
    >>> content_type(find_format("nt")[0], find_syntax("1.2-messages"))
    'application/n-triples; version=1.2-messages'
    >>> content_type(JELLY, JELLY.own)
    'application/x-jelly-rdf'
    """
    version = f"; version={syntax.version}" if syntax.version else ""
    messages = f"; messages={syntax.label}" if syntax.label != syntax.version else ""
    return f"{format.media_type}{version}{messages}"


def find_format(text: str) -> tuple[Format, Syntax | None]:
    """The format of a name, a file extension or a media type, and the syntax if the media type has a parameter for it.

    Names, labels and parameters are read in any case; a value may be quoted.

    Raises:
        UsageError: an unknown format or label, a parameter that no log has, or two that contradict each other.

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
    for format in FORMATS:
        if name in (format.name.lower(), *format.media_types, *format.extensions, *format.names):
            return format, (_syntax_of(format, parameters, text) if semicolon else format.own)
    raise UsageError(
        f"unknown format {text!r}",
        hint=f"choose one of {', '.join(f'{f.extension} ({f.media_type})' for f in FORMATS)}",
    )


def find_syntax(label: str) -> Syntax:
    """The syntax with a label, read in any case.

    Raises:
        UsageError: an unknown label.

    >>> find_syntax("RDFM").delimiter
    '# @message\\n'
    """
    for syntax in SYNTAXES:
        if syntax.label == label.strip().lower():
            return syntax
    raise UsageError(
        f"unknown message syntax {label!r}", hint=f"choose one of {', '.join(syntax.label for syntax in SYNTAXES)}"
    )


def find_log(format: str, messages: str | None = None) -> tuple[Format, Syntax]:
    """The format and the syntax that a log is to be written in.

    Args:
        format: see `find_format`; a media type's parameters win over `messages`.
        messages: a label; None: what the format has, and where it has none, `rdfm`.

    Raises:
        UsageError: as `find_format` and `find_syntax`, and a label beside a format that delimits messages by itself.

    >>> find_log("nt", "1.2-messages")[1].delimiter, find_log("nt")[1].delimiter, find_log("jelly")[1].delimiter
    ('MESSAGE\\n', '# @message\\n', '')
    """
    found, syntax = find_format(format)
    if messages is None:
        return found, syntax or RDFM
    asked = find_syntax(messages)
    if found.own is not None:
        raise UsageError(
            f"{found.name} delimits messages by itself: messages={asked.label} has no meaning there",
            hint="leave it out, or choose another format",
        )
    return found, syntax or asked


def format_of_file(name: str) -> Format | None:
    """The format that a file name's extension says, behind an extension of compression if there is one; else None.

    >>> format_of_file("log.trig.zst").name, format_of_file("log.jsonl").name, format_of_file("log.txt")
    ('TriG', 'NDJSON-LD', None)
    """
    extension = _extension(name)
    return next((format for format in FORMATS if extension in format.extensions), None)


def default_format(name: str | None, otherwise: Format = N_QUADS) -> str:
    """The format that a log is written in where none is named.

    Args:
        name: of the file; its extension says the format.
        otherwise: for a name without an extension, and where there is no name; N-Quads carries everything.

    Raises:
        UsageError: the extension is that of no format.

    >>> default_format("log.ttl.gz"), default_format("log"), default_format("log.gz"), default_format(None, TRIG)
    ('ttl', 'nq', 'nq', 'trig')
    >>> default_format("data.rdf")
    Traceback (most recent call last):
    ...
    construct_messages.errors.UsageError: data.rdf: .rdf is the extension of no log
      hint: end the name in .nt, .nq, .ttl, .trig, .ndjsonld, .ndjson, .jsonl, .yamlld, .yaml, .yml, .rdfxml or .jelly \
(behind it .gz, .bz2, .xz or .zst), or give the format
    """
    extension = "" if name is None else _extension(name)
    if not extension:
        return otherwise.extension
    found = next((format for format in FORMATS if extension in format.extensions), None)
    if found is None:
        *most, last = (f".{each}" for format in FORMATS for each in format.extensions)
        *packings, packing = COMPRESSIONS
        raise UsageError(
            f"{name}: .{extension} is the extension of no log",
            hint=f"end the name in {', '.join(most)} or {last} (behind it {', '.join(packings)} or {packing}), "
            "or give the format",
        )
    return found.extension


def _extension(name: str) -> str:
    """The last extension of a file's name that is not one of compression, in lower case and without the dot."""
    path = PurePath(name)
    if path.suffix.lower() in COMPRESSIONS:
        path = path.with_suffix("")
    return path.suffix.lower()[1:]


def _syntax_of(format: Format, parameters: str, text: str) -> Syntax | None:
    given = _read_parameters(f";{parameters}")
    if given is None:
        raise UsageError(f"malformed parameters in {text!r}", hint="write them as in application/trig; messages=rdfm")
    charset = given.pop("charset", "utf-8")
    if charset != "utf-8":
        raise UsageError(f"charset={charset} in {text!r}", hint="logs are UTF-8: leave charset out")
    if unknown := given.keys() - {"version", "messages"}:
        raise UsageError(
            f"{', '.join(sorted(unknown))} in {text!r} is no parameter of a message log",
            hint="give version=… or messages=rdfm",
        )
    # a format that delimits messages by itself is about messages, with or without the parameter
    asked = syntax_of({"messages": RDFM.label, **given} if format.own else given)
    if asked is None and given not in ({}, {"version": RDFM.version}):
        raise UsageError(
            f"{'; '.join(f'{name}={value}' for name, value in given.items())} in {text!r} is no message syntax",
            hint="choose messages=rdfm (with version=1.2, 1.2-basic or 1.1), or one of "
            + ", ".join(f"version={syntax.label}" for syntax in LABELLED),
        )
    return asked and format.syntax(asked)

"""Formats and syntaxes of message logs: names, media types and their parameters, version labels, file extensions.

Tables and the one place that reads a media type; no bytes of a message are written here. A *format* is an RDF
serialization, a *syntax* is how a log in it delimits messages: the comment delimiters of the first draft of RDF
Messages (`messages=rdfm`, https://www.pieter.pm/rdf-messages, section 3.1) or the version labels of the current one
(`version=1.2-messages`, https://w3c-cg.github.io/rsp/messages/).
"""

from __future__ import annotations

from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import PurePath
from typing import Final

from construct_messages.compression import COMPRESSIONS
from construct_messages.errors import UsageError


@dataclass(frozen=True)
class Format:
    """An RDF serialization that logs are written in.

    Args:
        name: as people write it.
        media_type: without parameters.
        extension: of files, without the dot; also the name on a command line.
        aliases: further names, in lower case.
        graphs: whether it can name graphs.
    """

    name: str
    media_type: str
    extension: str
    aliases: tuple[str, ...]
    graphs: bool


@dataclass(frozen=True)
class Syntax:
    """How a log delimits its messages, and which version of RDF it keeps to.

    Args:
        label: the value of the media type parameter.
        announcement: what a log begins with.
        delimiter: the line of a delimiter, with its line break.
        delimiter_first: whether a delimiter stands before every message, instead of after.
        triple_terms: whether a message may hold triple terms (RDF 1.2 Full).
        directions: whether a literal may have a base direction (RDF 1.2).
    """

    label: str
    announcement: str
    delimiter: str
    delimiter_first: bool
    triple_terms: bool
    directions: bool


FORMATS: Final = (
    Format("N-Triples", "application/n-triples", "nt", ("ntriples", "n-triples"), graphs=False),
    Format("N-Quads", "application/n-quads", "nq", ("nquads", "n-quads"), graphs=True),
    Format("Turtle", "text/turtle", "ttl", ("turtle",), graphs=False),
    Format("TriG", "application/trig", "trig", (), graphs=True),
)

RDFM: Final = Syntax("rdfm", "", "# @message\n", delimiter_first=True, triple_terms=True, directions=True)


def _labelled(label: str, *, triple_terms: bool, directions: bool) -> Syntax:
    return Syntax(label, f'VERSION "{label}"\n', "MESSAGE\n", False, triple_terms, directions)


SYNTAXES: Final = (
    RDFM,
    _labelled("1.2-messages", triple_terms=True, directions=True),
    _labelled("1.2-basic-messages", triple_terms=False, directions=True),
    _labelled("1.1-messages", triple_terms=False, directions=False),
)


def content_type(format: Format, syntax: Syntax) -> str:
    """The media type of a log, with the parameters that announce its messages.

    >>> content_type(find_format("trig")[0], RDFM)
    'application/trig; version=1.2; messages=rdfm'
    >>> content_type(find_format("nt")[0], find_syntax("1.2-messages"))
    'application/n-triples; version=1.2-messages'
    """
    # rdfm is a convention over plain RDF 1.2: its version is the format's own
    parameters = "version=1.2; messages=rdfm" if syntax is RDFM else f"version={syntax.label}"
    return f"{format.media_type}; {parameters}"


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
    """
    name, semicolon, parameters = text.partition(";")
    name = name.strip().lower().removeprefix(".")
    for format in FORMATS:
        if name in (format.media_type, format.extension, *format.aliases):
            return format, _syntax_of(parameters, text) if semicolon else None
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


def format_of_file(name: str) -> Format | None:
    """The format that a file name's extension says, behind an extension of compression if there is one; else None.

    >>> format_of_file("log.trig.zst").name, format_of_file("log.txt")
    ('TriG', None)
    """
    path = PurePath(name)
    if path.suffix.lower() in COMPRESSIONS:
        path = path.with_suffix("")
    return next((format for format in FORMATS if path.suffix.lower() == f".{format.extension}"), None)


def default_format(name: str | None) -> str:
    """The format of a log where none is named: what the file's extension says, else N-Quads, which carries everything.

    >>> default_format("log.ttl.gz"), default_format("log.txt"), default_format(None)
    ('ttl', 'nq', 'nq')
    """
    found = None if name is None else format_of_file(name)
    return found.extension if found else "nq"


def _syntax_of(parameters: str, text: str) -> Syntax | None:
    header = EmailMessage()  # the standard library's reader of media type parameters, quoted values included
    header["Content-Type"] = f"text/plain;{parameters}"
    given = {name: value.lower() for name, value in header["Content-Type"].params.items()}
    if header["Content-Type"].defects:
        raise UsageError(f"malformed parameters in {text!r}", hint="write them as in application/trig; messages=rdfm")
    charset = given.pop("charset", "utf-8")
    if charset != "utf-8":
        raise UsageError(f"charset={charset} in {text!r}", hint="logs are UTF-8: leave charset out")
    version, messages = given.pop("version", "1.2"), given.pop("messages", None)
    if given:
        raise UsageError(
            f"{', '.join(given)} in {text!r} is no parameter of a message log", hint="give version=… or messages=rdfm"
        )
    if messages is not None:
        if messages != RDFM.label or version != "1.2":
            raise UsageError(
                f"{text!r} names no message syntax",
                hint="messages=rdfm goes with version=1.2; other syntaxes are version=…",
            )
        return RDFM
    if version == "1.2":
        return None
    for syntax in SYNTAXES:
        if syntax is not RDFM and syntax.label == version:
            return syntax
    raise UsageError(
        f"version={version} in {text!r} is no message syntax",
        hint=f"choose one of {', '.join(syntax.label for syntax in SYNTAXES if syntax is not RDFM)}, or messages=rdfm",
    )

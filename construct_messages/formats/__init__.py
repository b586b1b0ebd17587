"""The table of log formats: names, media types, file extensions, first bytes, and where encoder and decoder are.

A *format* is an RDF serialization, a *syntax* is how a log in it delimits messages: the comment delimiters of the first
draft of RDF Messages (`messages=rdfm`, https://www.pieter.pm/rdf-messages, section 3.1) or the version labels of the
current one (`version=1.2-messages`, https://w3c-cg.github.io/rsp/messages/). A new format is a folder in `logs/` and a
record here. No bytes of a message are read or written here; `lookup.py` finds a record by a name, and `negotiation.py`
decides which one a client gets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from construct_messages.errors import UsageError
from construct_messages.formats.media_types import ACTIVITY_JSON, JSON, NDJSON


@dataclass(frozen=True)
class Syntax:
    """A syntax of logs: how messages are delimited, and the version of RDF.

    Args:
        label: what it is called: the value of the media type parameter that asks for it; empty where the format itself
            delimits messages.
        version: the value of the media type's parameter `version`; empty where it has none.
        announcement: what a log begins with.
        delimiter: the line of a delimiter, with its line break.
        delimiter_first: whether a delimiter comes before every message, instead of after.
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


@dataclass(frozen=True, kw_only=True)
class Format:
    """An RDF serialization that logs are written in; to be compared by `==`, for processes of Spark's hold copies.

    Encoder, decoder, options and sniffer are `module:name` within `logs/`, or of the package, imported when they are
    first asked for: few programs need more than one or two formats.

    Args:
        name: as people write it.
        media_types: without parameters; the first is written, all are read.
        extensions: of files, without the dot; the first is also the name on a command line.
        names: further ones, in lower case.
        documents: the media types of a document that is one message, where they are others than those of a log; the
            first is written, all are read.
        subprotocol: of WebSockets whose frames are such documents; it begins with `rdfm.`.
        graphs: whether it can name graphs.
        own: where the format delimits messages by itself, what such messages may hold; None: any of `SYNTAXES` does.
        encoder: an `Encoder`, made of format, syntax and `EncoderOptions`.
        decoder: a `Decoder`, made of format, syntax and `DecoderOptions`; None: the format is written, and not read.
        document_reader: a function that returns the messages of a document, and takes its bytes and `DecoderOptions`;
            None: the decoder reads it, as a log of one message.
        document_lines: a function that returns canonical N-Quads lines for each of several documents, and takes them
            and `DecoderOptions`; it returns None where they have to be read one by one. None: they always have.
        options: `FormatOptions`, where the format has options that no other has.
        beginning: a regular expression for the beginning of logs in this format only, after white space and comments.
        sniffer: for formats without such a regular expression, a function that takes the first bytes of a document, and
            returns whether it is a log in this format; None: it needs more bytes.
        binary: whether documents are no text, which is UTF-8.
        line_based: whether each statement is a line, so that a log can be cut at line ends.
        log_prefixes: whether a log declares the prefixes of the query that it is the answer to; not where its readers
            take each message by itself.
    """

    name: str
    media_types: tuple[str, ...]
    extensions: tuple[str, ...]
    names: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    subprotocol: str
    graphs: bool
    own: Syntax | None = None
    encoder: str
    decoder: str | None
    document_reader: str | None = None
    document_lines: str | None = None
    options: str | None = None
    beginning: bytes | None = None
    sniffer: str | None = None
    binary: bool = False
    line_based: bool = False
    log_prefixes: bool = True

    @property
    def media_type(self) -> str:
        """The one that is written, without parameters."""
        return self.media_types[0]

    @property
    def document_type(self) -> str:
        """The media type of a document that is one message.

        >>> NDJSON_LD.document_type, TRIG.document_type
        ('application/ld+json', 'application/trig')
        """
        return self.document_types[0]

    @property
    def document_types(self) -> tuple[str, ...]:
        """The media types that name documents of the format and no logs; without such types, the one of its logs."""
        return self.documents or self.media_types[:1]

    @property
    def extension(self) -> str:
        """The one that names the format."""
        return self.extensions[0]

    def can(self, asked: Syntax) -> bool:
        """Whether a log in this format can be what a syntax asks for: its own messages may hold more than that allows.

        >>> TURTLE.can(LABELLED[2]), JELLY.can(LABELLED[2]), JELLY.can(RDFM)
        (True, False, True)
        """
        return self.own is None or asked.allows(self.own)

    def syntax(self, asked: Syntax) -> Syntax:
        """Returns the syntax of a log in this format for a requested one.

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


N_QUADS: Final = Format(
    name="N-Quads",
    media_types=("application/n-quads",),
    extensions=("nq",),
    names=("nquads",),
    subprotocol="rdfm.n-quads",
    graphs=True,
    encoder="lines.encoder:LinesEncoder",
    decoder="lines.decoder:LinesDecoder",
    document_reader="lines.documents:read_n_quads",
    document_lines="lines.documents:lines_of_n_quads",
    line_based=True,
)
TRIG: Final = Format(
    name="TriG",
    media_types=("application/trig",),
    extensions=("trig",),
    subprotocol="rdfm.trig",
    graphs=True,
    encoder="turtle.encoder:TurtleEncoder",
    decoder="turtle.decoder:TurtleDecoder",
    beginning=rb"(?i:@?(?:prefix|base)\s|@version\s|@message\s)",  # of Turtle, too
)
N_TRIPLES: Final = Format(
    name="N-Triples",
    media_types=("application/n-triples",),
    extensions=("nt",),
    names=("ntriples",),
    subprotocol="rdfm.n-triples",
    graphs=False,
    encoder="lines.encoder:LinesEncoder",
    decoder="lines.decoder:LinesDecoder",
    document_reader="lines.documents:read_n_triples",
    document_lines="lines.documents:lines_of_n_triples",
    line_based=True,
)
TURTLE: Final = Format(
    name="Turtle",
    media_types=("text/turtle",),
    extensions=("ttl",),
    subprotocol="rdfm.turtle",
    graphs=False,
    encoder="turtle.encoder:TurtleEncoder",
    decoder="turtle.decoder:TurtleDecoder",
)
NDJSON_LD: Final = Format(
    name="NDJSON-LD",
    media_types=("application/x-ld+ndjson", NDJSON),
    extensions=("ndjsonld", "ndjson", "jsonl"),
    subprotocol="rdfm.ld-json",
    documents=("application/ld+json", JSON, ACTIVITY_JSON),
    graphs=True,
    own=_own(triple_terms=False, directions=True),
    encoder="jsonld.encoder:JsonLdEncoder",
    decoder="jsonld.decoder:JsonLdDecoder",
    document_reader="jsonld.decoder:read_document",
    beginning=rb"\{\s*+[\"}]|\[\s*+\{",  # names in a JSON object are in double quotes
    log_prefixes=False,
)
JELLY: Final = Format(
    name="Jelly",
    media_types=("application/x-jelly-rdf",),
    extensions=("jelly",),
    subprotocol="rdfm.jelly",
    graphs=True,
    own=_own(triple_terms=True),
    encoder="jelly.encoder:JellyEncoder",
    decoder="jelly.decoder:JellyDecoder",
    options="jelly.options:JellyOptions",
    sniffer="jelly.sniffer:begins_stream",
    binary=True,
)
YAML_LD: Final = Format(
    name="YAML-LD",
    media_types=("application/rdfm+yaml",),
    extensions=("yamlld", "yaml", "yml"),
    subprotocol="rdfm.ld-yaml",
    documents=("application/ld+yaml",),
    graphs=True,
    own=_own(triple_terms=False, directions=True),
    encoder="yamlld.encoder:YamlLdEncoder",
    decoder="yamlld.decoder:YamlLdDecoder",
    beginning=rb"---|%(?:YAML|TAG)|[\"']",  # no statement of RDF begins with a literal, a hyphen or a percent sign
)
RDF_XML: Final = Format(
    name="RDF/XML",
    media_types=("application/rdfm+xml",),
    extensions=(
        "rdfxml",
    ),  # .rdf and .xml are files of one document over many lines, which is no log
    subprotocol="rdfm.rdf-xml",
    documents=("application/rdf+xml",),
    names=("rdf-xml", "rdf", "xml"),
    graphs=False,
    own=_own(triple_terms=False),
    encoder="rdfxml.encoder:RdfXmlEncoder",
    decoder="rdfxml.decoder:RdfXmlDecoder",
    document_reader="rdfxml.decoder:read_document",
    beginning=rb"<(?:\?xml|!--|!DOCTYPE|[A-Za-z_][\w.\-]*+(?::[\w.\-]++)?)\s",  # an IRI holds no blank
)

FORMATS: Final = (N_QUADS, TRIG, N_TRIPLES, TURTLE, NDJSON_LD, JELLY, YAML_LD, RDF_XML)
"""All of them, in the order in which one is chosen where a client does not care: first those that carry everything and
are quickest to read."""

_COLUMN_OPTIONS: Final = "construct_messages.columns.options:ColumnOptions"
JSON_DOCUMENTS: Final = Format(
    name="JSON",
    media_types=(NDJSON,),
    extensions=("json",),
    subprotocol="",
    documents=(JSON,),
    graphs=True,
    own=_own(triple_terms=False, directions=True),
    encoder="json.encoder:JsonEncoder",
    decoder=None,
    options="json.options:JsonOptions",
)

_COLUMNS: Final = _own(triple_terms=True, directions=True)
PARQUET: Final = Format(
    name="Parquet",
    media_types=("application/vnd.apache.parquet",),
    extensions=("parquet",),
    subprotocol="",
    graphs=True,
    own=_COLUMNS,
    encoder="columns.encoder:ColumnsEncoder",
    decoder="columns.decoder:ColumnsDecoder",
    options=_COLUMN_OPTIONS,
    beginning=b"PAR1",
    binary=True,
)
ARROW: Final = replace(
    PARQUET,
    name="Arrow",
    media_types=("application/vnd.apache.arrow.file", "application/vnd.apache.arrow.stream"),
    extensions=("arrow", "arrows", "feather"),
    beginning=b"ARROW1|\xff\xff\xff\xff",
)
CSV: Final = Format(
    name="CSV",
    media_types=("text/csv",),
    extensions=("csv",),
    subprotocol="",
    graphs=True,
    own=_COLUMNS,
    encoder="columns.encoder:ColumnsEncoder",
    decoder=None,
    options=_COLUMN_OPTIONS,
)

COLUMNS: Final = (PARQUET, ARROW, CSV)
"""Files of columns, which no server sends: a file of Parquet or Arrow is whole or nothing."""

READ: Final = (*FORMATS, PARQUET, ARROW)
"""Those that files of messages are read in."""

WRITTEN: Final = (*FORMATS, JSON_DOCUMENTS, *COLUMNS)
"""Those that messages are written in: JSON documents and CSV are no RDF, so nothing reads them."""


def _rdfm(version: str, *, triple_terms: bool, directions: bool) -> Syntax:
    return Syntax("rdfm", version, "", "# @message\n", True, triple_terms, directions)


def _labelled(label: str, *, triple_terms: bool, directions: bool) -> Syntax:
    return Syntax(
        label, label, f'VERSION "{label}"\n', "MESSAGE\n", False, triple_terms, directions
    )


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


class LogType(NamedTuple):
    """The type of a log: a format, and a syntax that goes with it."""

    format: Format
    syntax: Syntax


LOGS: Final = tuple(
    LogType(format, syntax)
    for format in FORMATS
    for syntax in ((format.own,) if format.own else VARIANTS)
)
"""Every type of log there is."""


def content_type(format: Format, syntax: Syntax) -> str:
    """The media type of a log, with the parameters that announce its messages.

    >>> content_type(TRIG, RDFM)
    'application/trig; version=1.2; messages=rdfm'
    >>> content_type(N_TRIPLES, LABELLED[0])
    'application/n-triples; version=1.2-messages'
    >>> content_type(JELLY, JELLY.own)
    'application/x-jelly-rdf'
    """
    version = f"; version={syntax.version}" if syntax.version else ""
    messages = f"; messages={syntax.label}" if syntax.label != syntax.version else ""
    return f"{format.media_type}{version}{messages}"

"""The table of log formats: names, media types, file extensions, first bytes, encoders and decoders.

A *format* is an RDF serialization, a *syntax* is its way to delimit messages: the comment delimiters of the first draft
of RDF Messages (`messages=rdfm`, https://www.pieter.pm/rdf-messages, section 3.1) or the version labels of the current
one (`version=1.2-messages`, https://w3c-cg.github.io/rsp/messages/). A new format is a folder in `logs/` and a record
here. No bytes of a message are read or written here; `lookup.py` finds a record by name, and `negotiation.py` chooses
one for a client.
"""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from construct_messages.errors import UsageError
from construct_messages.rdf.formats.media_types import ACTIVITY_JSON, JSON, NDJSON


@dataclass(frozen=True, slots=True)
class Syntax:
    """A syntax of logs: the delimiters of messages, and the version of RDF."""

    # its name, which is the value of the media type parameter that requests it; empty if the format itself delimits
    # messages
    label: str
    # the value of the media type's parameter `version`; empty if there is none
    version: str
    # the text at the beginning of a log
    announcement: str
    # the line of a delimiter, with its line break
    delimiter: str
    # whether a delimiter comes before every message, instead of after
    delimiter_first: bool
    # whether a message may hold triple terms (RDF 1.2 Full)
    triple_terms: bool
    # whether a literal may have a base direction (RDF 1.2)
    directions: bool

    def allows(self, other: "Syntax") -> bool:
        """Whether its messages may hold everything that messages of the other syntax may hold."""
        return self.triple_terms >= other.triple_terms and self.directions >= other.directions


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """An RDF serialization of logs; compare by `==`, since Spark's processes have copies.

    Encoder, decoder, options and sniffer are `module:name` within `logs/`, or of the package, imported on first use:
    few programs need more than one or two formats.
    """

    name: str
    # without parameters; the first is written, all are read
    media_types: tuple[str, ...]
    # of files, without the dot; the first is also the name on a command line
    extensions: tuple[str, ...]
    # further names, in lower case
    names: tuple[str, ...] = ()
    # the media types of a document that is one message, if they differ from those of a log; the first is written, all
    # are read
    documents: tuple[str, ...] = ()
    # the subprotocol of WebSockets whose frames are such documents; it begins with `rdfm.`
    subprotocol: str
    # whether it can name graphs
    graphs: bool
    # the syntax of a format that delimits messages by itself; None: any of `SYNTAXES` delimits them
    own: Syntax | None = None
    # an `Encoder`, created from format, syntax and `EncoderOptions`
    encoder: str
    # a `Decoder`, created from format, syntax and `DecoderOptions`; None: the format is written, but not read
    decoder: str | None
    # a function from the format, the bytes of a document and `DecoderOptions` to its messages; None: the decoder
    # reads the document, as a log of one message
    document_reader: str | None = None
    # a function from the format, several documents and `DecoderOptions` to canonical N-Quads lines for each; it
    # returns None if they must be read one by one. None: they always must
    document_lines: str | None = None
    # `FormatOptions`, if the format has options
    options: str | None = None
    # a regular expression that only matches the beginning of logs in this format, after white space and comments
    beginning: bytes | None = None
    # for formats without such a regular expression, a function from the first bytes of a document to whether it is a
    # log in this format; None: it needs more bytes
    sniffer: str | None = None
    # whether documents are binary, not UTF-8 text
    binary: bool = False
    # whether each statement is a line, so that a log can be split at line ends
    line_based: bool = False
    # whether a log declares the prefixes of its query; false if readers parse each message by itself
    log_prefixes: bool = True

    @property
    def media_type(self) -> str:
        """The media type that is written, without parameters."""
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
        """The media types of documents that are not logs; without such types, the one of its logs."""
        return self.documents or self.media_types[:1]

    @property
    def extension(self) -> str:
        """The extension that names the format."""
        return self.extensions[0]

    def can(self, asked: Syntax) -> bool:
        """Whether a log in this format conforms to a syntax: its own messages may hold more than the syntax allows.

        >>> TURTLE.can(LABELLED[2]), JELLY.can(LABELLED[2]), JELLY.can(RDFM)
        (True, False, True)
        """
        return self.own is None or asked.allows(self.own)

    def syntax(self, asked: Syntax) -> Syntax:
        """Returns the syntax of a log in this format for a requested one.

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
    document_reader="lines.decoder:read_document",
    document_lines="lines.decoder:document_lines",
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
    document_reader="lines.decoder:read_document",
    document_lines="lines.decoder:document_lines",
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
    sniffer="jelly.decoder:begins_stream",
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
    ),  # .rdf and .xml are files of one document over many lines, which is not a log
    subprotocol="rdfm.rdf-xml",
    documents=("application/rdf+xml",),
    names=("rdf-xml", "rdf", "xml"),
    graphs=False,
    own=_own(triple_terms=False),
    encoder="rdfxml.encoder:RdfXmlEncoder",
    decoder="rdfxml.decoder:RdfXmlDecoder",
    document_reader="rdfxml.decoder:read_document",
    beginning=rb"<(?:\?xml|!--|!DOCTYPE|[A-Za-z_][\w.\-]*+(?::[\w.\-]++)?)\s",  # an IRI contains no space
)

FORMATS: Final = (N_QUADS, TRIG, N_TRIPLES, TURTLE, NDJSON_LD, JELLY, YAML_LD, RDF_XML)
"""All formats, in the order for clients without preference: complete and fast formats come first."""

_COLUMN_OPTIONS: Final = "columns.options:ColumnOptions"
JSON_DOCUMENTS: Final = Format(
    name="JSON",
    media_types=(NDJSON,),
    extensions=("json",),
    subprotocol="",
    documents=(JSON,),
    graphs=True,
    own=_own(triple_terms=False, directions=True),
    encoder="json.documents:JsonEncoder",
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
"""Files of columns; servers do not send them, as a file of Parquet or Arrow cannot be read in parts."""

READ: Final = (*FORMATS, PARQUET, ARROW)
"""The formats of input files."""

WRITTEN: Final = (*FORMATS, JSON_DOCUMENTS, *COLUMNS)
"""The formats of output files: JSON documents and CSV are not RDF, so they are not read."""


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
"""The syntaxes that a log announces by `VERSION`."""

SYNTAXES: Final = (RDFM, *LABELLED)
"""The syntaxes, one for each label."""

VARIANTS: Final = (
    *SYNTAXES,
    # rdfm is a convention over plain RDF of any version: a requested version restricts what the messages may hold
    _rdfm("1.2-basic", triple_terms=False, directions=True),
    _rdfm("1.1", triple_terms=False, directions=False),
)
"""The syntaxes that a media type can request if the format has no own syntax: one for each label and version."""


class LogType(NamedTuple):
    """The type of a log: a format, and a syntax of this format."""

    format: Format
    syntax: Syntax


LOGS: Final = tuple(
    LogType(format, syntax)
    for format in FORMATS
    for syntax in ((format.own,) if format.own else VARIANTS)
)
"""All types of logs."""


def content_type(format: Format, syntax: Syntax) -> str:
    """The media type of a log, with the parameters for its messages.

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

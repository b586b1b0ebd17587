"""Message logs: encoders write messages as bytes, decoders read them. No I/O, no sources.

The common protocols of encoders, decoders and options of all formats. The record of a format in `formats` names its
encoder and decoder, which are imported on first use: few programs need more than one or two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from pkgutil import resolve_name
from typing import Any, ClassVar, Final, Protocol, Self

import pyoxigraph as ox

from construct_messages.errors import UsageError
from construct_messages.rdf.formats import WRITTEN, Format, Syntax
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from construct_messages.rdf.options import TransportOptions
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Template
from construct_messages.rdf.terms import Lenience

MESSAGE_BYTES: Final = TransportOptions.message_bytes
"""The default maximal size of a message in a log: 256 MiB."""
BOOLEANS: Final = {"true": True, "false": False}


@dataclass(frozen=True)
class FormatOptions:
    """Options of one format, such as `JellyOptions`, of a log that is read or written."""

    _SHOWN: ClassVar[str]  # the format, for errors

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Creates options from names and values as users write them: words in either case, with `-` or `_`.

        Raises:
            UsageError: an unknown option or an invalid value.
        """
        names = [field.name for field in fields(cls)]
        read: dict[str, Any] = {}
        for given, value in values.items():
            name = given.replace("-", "_").lower()
            if name not in names:
                known = ", ".join(name.replace("_", "-") for name in names)
                raise UsageError(
                    f"unknown option {given!r} of {cls._SHOWN}", hint=f"choose among {known}"
                )
            read[name] = cls._value(name, value)
        return cls(**read)

    @classmethod
    def _value(cls, _name: str, value: Any) -> Any:
        """Returns the value of an option from its text, or unchanged."""
        return BOOLEANS.get(value.lower(), value) if isinstance(value, str) else value

    def as_dict(self) -> dict[str, Any]:
        """Returns the options by name, for JSON."""
        return asdict(self)

    def in_words(self) -> str:
        """Returns a line that describes the options to people."""
        raise NotImplementedError

    def for_writing(
        self,
        source: Self | None = None,  # noqa: ARG002 - by which some formats decide, and the others, too
        *,
        graphs: bool = True,  # noqa: ARG002
        triple_terms: bool = False,  # noqa: ARG002
        generalized: bool = True,  # noqa: ARG002
    ) -> Self:
        """Returns the options for writing a log: open ones are chosen according to the properties of its messages.

        Args:
            source: the options of the log that is converted, if it has the same format.
            graphs: whether messages may have named graphs.
            triple_terms: whether messages are known to have triple terms.
            generalized: whether messages may be generalized if those of the source may.

        Raises:
            UsageError: the options cannot be used for these messages.
        """
        return self

    @property
    def names_graphs(self) -> bool:
        """Whether messages may have named graphs."""
        return True

    @property
    def is_generalized(self) -> bool:
        """Whether terms may be in positions that RDF does not allow."""
        return False

    @property
    def is_flat(self) -> bool:
        """Whether the log is one dataset, in which a blank node label is one node."""
        return False


@dataclass(frozen=True, slots=True)
class EncoderOptions:
    """The options of an encoder; each encoder uses those of its format."""

    # namespace IRIs by prefix
    prefixes: Mapping[str, str] | None = None
    # whether a message may have named graphs
    graphs: bool = True
    # whether messages are known to have triple terms
    triple_terms: bool = False
    # the format's own options; None: chosen by the other options
    own: FormatOptions | None = None
    # the template of the messages; None: unknown
    template: Template | None = None
    # the variables that have the same terms in all solutions of a message; None: each solution is a message
    group_by: frozenset[str] | None = None
    # the origin of the messages, as `query` and `source`, for formats that record it
    origin: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DecoderOptions:
    """The options of a decoder; each decoder uses those of its format."""

    # the IRI that relative IRIs resolve against, until the log declares another
    base: str | None = None
    # JSON-LD contexts by their IRI, as parsed JSON (`{"@context": …}` or its value)
    contexts: Mapping[str, Any] | None = None
    # the IRI of a JSON-LD context that is active before each document's own, unless the log sets one; None: no
    # context (`expandContext` of JSON-LD 1.1 API, section 9.3)
    context: str | None = None
    # the maximal size of a message in the log, and of its N-Quads in characters
    message_bytes: int = MESSAGE_BYTES
    # creates the labels of the log; None: with a unique prefix
    labels: Labels | None = None
    generalized: bool = False
    shared_labels: bool | None = None
    # whether comments delimit messages in a log without a declared syntax; False if its media type declares a plain
    # document
    comments: bool = True
    # whether a log whose first line is the beginning of a document is that document, in formats with one document a
    # line
    documents: bool = False
    # accepts and counts terms that are not RDF, or leaves out their statements; None: they are errors
    lenience: Lenience | None = None
    # whether messages keep their lines if these are canonical N-Quads without blank nodes, and create their terms
    # later, which takes half of the time if they are stored or written unchanged
    keep_lines: bool = False


class EncodedBatch(Protocol):
    """The messages of a batch, in order, each with its delimiter in the log."""

    def __bytes__(self) -> bytes:
        """Returns all messages, joined. This is the fast path: it should not create a `bytes` object for each
        message.
        """
        ...

    def __iter__(self) -> Iterator[bytes]:
        """Yields the messages one by one; may be called repeatedly, and after `bytes()`."""
        ...


class TemplateEncoder(Protocol):
    """An encoder specialised for a template. It writes the same bytes as its encoder."""

    def encode(self, solutions: Solutions, first: int) -> EncodedBatch:
        """Encodes the messages of a batch of solutions, one message per solution. `first`: the number of the first
        solution in the stream, for fresh blank nodes.

        `bytes(…)` of the result is their part of the log; iterating over it yields the messages one by one.
        """
        ...


class Encoder(Protocol):
    """Writes one log, or documents with one message each.

    A log is the concatenation of `start()`, `encode(message)` for each message, and `finish()`. The result of `encode`
    may depend on the preceding log: on prefixes, a JSON-LD context, the lookup tables of Jelly. `encode_document`
    depends on its message alone, and changes nothing in the log.
    """

    def start(self) -> bytes:
        """Returns the bytes before the first message."""
        ...

    def encode(self, message: Message) -> bytes:
        """Encodes one message with its delimiter."""
        ...

    def encode_document(self, message: Message) -> bytes:
        """Encodes one message as a separate document, which any parser of the format can read.

        It has no delimiter and no version label, and declares the prefixes that it uses; its blank node labels have no
        meaning outside of it. A Jelly document is one frame, without its length, with options and lookup tables of its
        own: the value of a record in a broker, or a frame of a gRPC stream whose frames have the same options. A
        document of NDJSON-LD is JSON-LD on one line. A message without quads may be no bytes at all.
        """
        ...

    def finish(self) -> bytes:
        """Returns the bytes after the last message."""
        ...

    def for_template(self, template: Template) -> TemplateEncoder:
        """Returns this encoder for batches of a template's solutions; calls of the two may alternate."""
        ...


class Decoder(Protocol):
    """Reads one log: `feed(data)` for each chunk, then `close()`; each returns the completed messages.

    Chunks may be split anywhere. Exhaust the result of `feed` before the next call; messages before an error are
    returned before it is raised. Blank nodes get unique labels (see `Labels`), different ones for each message, unless
    a label is one node in the whole log: under `rdfm`.
    """

    @property
    def syntax(self) -> Syntax | None:
        """The syntax of the log, as detected so far; None: no delimiter yet."""
        ...

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes that the log has declared so far, the last declaration of each."""
        ...

    @property
    def options(self) -> FormatOptions | None:
        """The format's own options; None: not read yet, or the format has none."""
        ...

    def feed(self, data: bytes) -> Iterator[Message]:
        """Returns the messages that are complete now."""
        ...

    def close(self) -> Iterator[Message]:
        """Returns the messages that the end of the log completes."""
        ...


def encoder_for(format: Format, syntax: Syntax, options: EncoderOptions | None = None) -> Encoder:
    """Creates an encoder for a new log."""
    options = options or EncoderOptions()
    check_options(format, options.own)
    encoder: Callable[[Format, Syntax, EncoderOptions], Encoder] = _resolve(format.encoder)
    return encoder(format, syntax, options)


def decoder_for(
    format: Format, syntax: Syntax | None = None, options: DecoderOptions | None = None
) -> Decoder:
    """Creates a decoder for a log. `syntax`: the syntax of the media type; None: the log itself declares it. A document
    without a declaration is one message, or none if it is empty.
    """
    options = options or DecoderOptions()
    if options.base is not None:
        try:
            ox.NamedNode(options.base)
        except ValueError as error:
            raise UsageError(
                f"the base <{options.base}> is no absolute IRI",
                hint="give one such as https://example.org/",
            ) from error
    if format.decoder is None:
        raise UsageError(f"{format.name} is written, and not read")
    decoder: Callable[[Format, Syntax | None, DecoderOptions], Decoder] = _resolve(format.decoder)
    return decoder(format, syntax or format.own, options)


def read_document(
    format: Format, document: bytes, options: DecoderOptions, syntax: Syntax | None = None
) -> Iterator[Message]:
    """Returns the messages of a document: one, unless the document or its media type delimits several. `syntax`: the
    syntax of the media type; None: the document itself declares one, or none.
    """
    if syntax is None and format.document_reader is not None:
        read: Callable[[Format, bytes, DecoderOptions], Iterator[Message]] = _resolve(
            format.document_reader
        )
        return read(format, document, options)
    return _decoded(decoder_for(format, syntax, options), document)


def document_lines(
    format: Format, documents: Sequence[bytes], options: DecoderOptions
) -> Sequence[bytes] | None:
    """Returns the canonical N-Quads lines of several documents, which are read together; see `read_document`. Each
    document has a final LF. None: they must be read one by one, for example because one of them is malformed.
    """
    if format.document_lines is None:
        return None
    read: Callable[[Format, Sequence[bytes], DecoderOptions], Sequence[bytes] | None] = _resolve(
        format.document_lines
    )
    return read(format, documents, options)


def _decoded(decoder: Decoder, document: bytes) -> Iterator[Message]:
    yield from decoder.feed(document)
    yield from decoder.close()


def sniffer_of(format: Format) -> Callable[[bytes], bool | None] | None:
    """Returns the function that detects the format by its first bytes; None: it has a regular expression, or none."""
    sniffer: Callable[[bytes], bool | None] | None = (
        None if format.sniffer is None else _resolve(format.sniffer)
    )
    return sniffer


def options_class(format: Format) -> type[FormatOptions] | None:
    """Returns the class of the format's own options; None: it has none."""
    found: type[FormatOptions] | None = None if format.options is None else _resolve(format.options)
    return found


def check_options(format: Format, options: FormatOptions | None) -> None:
    """Rejects options of another format."""
    if options is None or ((own := options_class(format)) is not None and isinstance(options, own)):
        return
    owners = (
        each.name for each in WRITTEN if (own := options_class(each)) and isinstance(options, own)
    )
    if (owner := next(owners, None)) is None:
        raise UsageError(
            f"options={options!r} are the options of no format",
            hint="pass JellyOptions(…), JsonOptions(…) or ColumnOptions(…), or leave it out",
        )
    raise UsageError(
        f"options of {owner} have no meaning for {format.name}",
        hint=f"leave them out, or write {owner}",
    )


def options_for_writing(
    format: Format,
    options: FormatOptions | None = None,
    source: FormatOptions | None = None,
    *,
    graphs: bool = True,
    triple_terms: bool = False,
    generalized: bool = True,
) -> FormatOptions | None:
    """Returns the format's own options for writing a log; None: it has none. `source`: the options of the log that is
    converted, in any format.
    """
    check_options(format, options)
    own = options_class(format)
    if own is None:
        return None
    return (options or own()).for_writing(
        source if isinstance(source, own) else None,
        graphs=graphs,
        triple_terms=triple_terms,
        generalized=generalized,
    )


@cache
def _resolve(name: str) -> Any:
    """Imports the object at `module:name` of this folder: the table of formats names codecs so."""
    return resolve_name(f"{__name__}.{name}")

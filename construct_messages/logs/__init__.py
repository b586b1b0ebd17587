"""Message logs: messages in, bytes out, and back. No I/O, and nothing about sources.

The common protocols of encoders, decoders and options of all formats; the record of a format in `formats` names its
own. They are imported when they are first asked for: few programs need more than one or two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pkgutil import resolve_name
from typing import Any, Final, Protocol, Self

import pyoxigraph as ox

from construct_messages.errors import UsageError
from construct_messages.formats import WRITTEN, Format, Syntax
from construct_messages.labels import Labels
from construct_messages.logs.encoded import EncodedBatch
from construct_messages.message import Message
from construct_messages.solutions import Solutions
from construct_messages.template import Template
from construct_messages.terms import Lenience
from construct_messages.values import Value

MESSAGE_BYTES: Final = 1 << 28
"""How large a message in a log may be by default: 256 MiB."""


class FormatOptions(Protocol):
    """Options that one format has and no other, such as `JellyOptions`: of a log that is read, or of one to write."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Options by their names, as users write them: words as texts, in either case and with `-` for `_`.

        Raises:
            UsageError: an option that does not exist, or a value that is none of its.
        """
        ...

    def as_dict(self) -> dict[str, Any]:
        """The options by their names, as JSON has them."""
        ...

    def in_words(self) -> str:
        """The options in one line, for people."""
        ...

    def for_writing(
        self,
        source: Self | None = None,
        *,
        graphs: bool = True,
        triple_terms: bool = False,
        generalized: bool = True,
    ) -> Self:
        """The options that a log is written with: these, and for what they leave open what is known of its messages.

        Args:
            source: the options of the log whose messages they are, if that is in the same format.
            graphs: whether messages may have named graphs.
            triple_terms: whether messages are known to have triple terms.
            generalized: whether messages may be generalized where those of the source may.

        Raises:
            UsageError: options that cannot be written so.
        """
        ...

    @property
    def names_graphs(self) -> bool:
        """Whether messages may have named graphs."""
        ...

    @property
    def is_generalized(self) -> bool:
        """Whether terms may be in positions that RDF does not allow."""
        ...

    @property
    def is_flat(self) -> bool:
        """Whether the log is one dataset, and a blank node label one node in all of it."""
        ...


class EncoderOptions(Value):
    """The options of an encoder; each encoder uses those that its format has.

    Args:
        prefixes: namespace IRIs by prefix.
        graphs: whether a message may have named graphs.
        triple_terms: whether messages are known to have triple terms.
        own: the format's own options; None: as is best for what else is known.
        template: the template that makes the messages; None: it is not known.
        group_by: the variables that have the same terms in all solutions of a message; None: a message is a solution.
        origin: where the messages come from, as `query` and `source`, for formats that record it.
    """

    prefixes: Mapping[str, str] | None = None
    graphs: bool = True
    triple_terms: bool = False
    own: FormatOptions | None = None
    template: Template | None = None
    group_by: frozenset[str] | None = None
    origin: Mapping[str, str] = {}


class DecoderOptions(Value):
    """The options of a decoder; each decoder uses those that its format has.

    Args:
        base: the IRI that relative IRIs resolve against, until the log declares another.
        contexts: JSON-LD contexts by their IRI, as parsed JSON (`{"@context": …}` or its value).
        context: the IRI of a JSON-LD context that is active before each document's own, unless the log sets one; None:
            none is (`expandContext` of JSON-LD 1.1 API, section 9.3).
        message_bytes: how large a message may be in the log, and in characters as N-Quads.
        labels: of the log; None: with a prefix that no other has.
        generalized, shared_labels: see `read_log`.
        comments: whether comments delimit messages in a log that announces no syntax; not where its media type does
            not announce one, so that it is a plain document.
        lenience: what passes and counts malformed IRIs and language tags; None: they are errors.
    """

    base: str | None = None
    contexts: Mapping[str, Any] | None = None
    context: str | None = None
    message_bytes: int = MESSAGE_BYTES
    labels: Labels | None = None
    generalized: bool = False
    shared_labels: bool | None = None
    comments: bool = True
    lenience: Lenience | None = None


class TemplateEncoder(Protocol):
    """An encoder specialised for a template. It writes the same bytes as its encoder."""

    def encode(self, solutions: Solutions, first: int) -> EncodedBatch:
        """Encodes the messages of a batch of solutions, one message a solution.

        `bytes(…)` of the result is their part of the log; iterating over it yields the messages one by one.

        Args:
            solutions: their columns are the template's variables.
            first: the number of the first solution in the stream, for fresh blank nodes.

        Raises:
            UnsupportedByFormat: as `Encoder.encode`.
        """
        ...


class Encoder(Protocol):
    """Writes one log, or documents that hold one message each.

    `start()`, then `encode(message)` for each message, then `finish()`, joined, are a log. What `encode` returns may
    depend on the preceding log: on prefixes, a JSON-LD context, the lookup tables of Jelly. `encode_document` depends
    on its message alone, and changes nothing in the log.
    """

    def start(self) -> bytes:
        """Returns the bytes before the first message."""
        ...

    def encode(self, message: Message) -> bytes:
        """One message with its delimiter.

        Raises:
            UnsupportedByFormat: a quad that the format or the version has no syntax for.
        """
        ...

    def encode_document(self, message: Message) -> bytes:
        """Encodes one message as a document of its own, which any parser of the format reads by itself.

        It has no delimiter and no version label, and declares those prefixes that it uses; its blank node labels mean
        nothing outside it. A Jelly document is one frame, without its length, with options and lookup tables of its
        own: the value of a record in a broker, or a frame of a gRPC stream whose frames have the same options. A
        document of NDJSON-LD is JSON-LD on one line. A message without quads may be no bytes at all.

        Raises:
            UnsupportedByFormat: as `encode`.
        """
        ...

    def finish(self) -> bytes:
        """Returns the bytes after the last message."""
        ...

    def for_template(self, template: Template) -> TemplateEncoder:
        """This encoder, for batches of a template's solutions; the two may be called in turn."""
        ...


class Decoder(Protocol):
    """Reads one log: `feed(data)` for each chunk, then `close()`; each returns the messages that it completes.

    Chunks may be split anywhere. Exhaust the result of `feed` before the next call; messages before an error are
    returned before it is raised. Blank nodes get labels that are unique (see `Labels`), other ones for each message,
    except where a label means one node in a whole log: under `rdfm`.
    """

    @property
    def syntax(self) -> Syntax | None:
        """The syntax of the log as far as it is known; None: no delimiter so far."""
        ...

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes that the log has declared so far, the last declaration of each."""
        ...

    @property
    def options(self) -> FormatOptions | None:
        """The format's own options, once they have been read; None: not yet, or the format has none."""
        ...

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that are complete now.

        Raises:
            LogError: malformed bytes, with position and number of the message.
            LimitExceeded: a message that is too large.
        """
        ...

    def close(self) -> Iterator[Message]:
        """The messages that only the end completes.

        Raises:
            LogError: the log ends within a message, or a statement of it.
        """
        ...


def encoder_for(format: Format, syntax: Syntax, options: EncoderOptions | None = None) -> Encoder:
    """An encoder for a new log.

    Args:
        format: the RDF serialization.
        syntax: how messages are delimited.
        options: what else is known of the log.

    Raises:
        UsageError: options that cannot be written, or that are not for the format.
    """
    options = options or EncoderOptions()
    check_options(format, options.own)
    encoder: Callable[[Format, Syntax, EncoderOptions], Encoder] = _resolve(format.encoder)
    return encoder(format, syntax, options)


def decoder_for(
    format: Format, syntax: Syntax | None = None, options: DecoderOptions | None = None
) -> Decoder:
    """A decoder for a log.

    Args:
        format: the RDF serialization.
        syntax: what the media type announces; None: nothing, or there is none, so the log itself shows it. A document
            that shows nothing is one message, or none where it is empty.
        options: what else is known of the log.

    Raises:
        UsageError: a base that is no absolute IRI.
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


def read_document(format: Format, document: bytes, options: DecoderOptions) -> Iterator[Message]:
    """The messages of a document, which is one message, unless it delimits several by itself.

    Args:
        format: of the document.
        document: the bytes.
        options: see `DecoderOptions`.

    Raises:
        LogError: it is malformed.
        LimitExceeded: it is too large.
    """
    if format.document_reader is not None:
        read: Callable[[bytes, DecoderOptions], Iterator[Message]] = _resolve(
            format.document_reader
        )
        return read(document, options)
    return _decoded(decoder_for(format, options=options), document)


def document_lines(
    format: Format, documents: Sequence[bytes], options: DecoderOptions
) -> Sequence[bytes] | None:
    """Canonical N-Quads lines for each of several documents, which `read_document` returns messages of.

    Args:
        format, options: as for `read_document`.
        documents: at least one.

    Returns:
        The lines of each, which end with LF; None: the documents have to be read one by one, for example because one of
            them is malformed.
    """
    if format.document_lines is None:
        return None
    read: Callable[[Sequence[bytes], DecoderOptions], Sequence[bytes] | None] = _resolve(
        format.document_lines
    )
    return read(documents, options)


def _decoded(decoder: Decoder, document: bytes) -> Iterator[Message]:
    yield from decoder.feed(document)
    yield from decoder.close()


def sniffer_of(format: Format) -> Callable[[bytes], bool | None] | None:
    """The function that knows the format's first bytes; None: a regular expression does, or nothing."""
    sniffer: Callable[[bytes], bool | None] | None = (
        None if format.sniffer is None else _resolve(format.sniffer)
    )
    return sniffer


def options_class(format: Format) -> type[FormatOptions] | None:
    """The class of the format's own options; None: it has none."""
    found: type[FormatOptions] | None = None if format.options is None else _resolve(format.options)
    return found


def check_options(format: Format, options: FormatOptions | None) -> None:
    """Refuses options that are another format's.

    Raises:
        UsageError: naming the formats.
    """
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
    """The format's own options that a log is written with; None: it has none.

    Args:
        format: of the log.
        options: those of the caller.
        source: those of the log whose messages they are, which may be in any format.
        graphs, triple_terms, generalized: see `FormatOptions.for_writing`.

    Raises:
        UsageError: options that cannot be written, or that are not for the format.
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
    """Imports the object at `module:name` of this folder, or of the package if the name begins with the package's."""
    package = __package__.partition(".")[0]
    return resolve_name(name if name.startswith(f"{package}.") else f"{__name__}.{name}")

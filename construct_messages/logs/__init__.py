"""Message logs: messages in, bytes out, and back. No I/O, and nothing about sources.

A syntax is loaded when it is asked for: few programs need more than one or two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyoxigraph as ox

from construct_messages.errors import UsageError
from construct_messages.formats import (
    JELLY,
    N_QUADS,
    N_TRIPLES,
    NDJSON_LD,
    RDF_XML,
    TRIG,
    TURTLE,
    YAML_LD,
    Format,
    Syntax,
)
from construct_messages.labels import Labels
from construct_messages.logs.encoded import EncodedBatch
from construct_messages.message import Message
from construct_messages.solutions import Solutions
from construct_messages.template import Template
from construct_messages.terms import Lenience

if TYPE_CHECKING:
    from construct_messages.logs.jelly.options import JellyOptions

MESSAGE_BYTES: Final = 1 << 28
"""How large a message may be as it stands in a log unless told otherwise: 256 MiB."""


class TemplateEncoder(Protocol):
    """An encoder specialised for a template. It writes the same bytes as its encoder."""

    def encode(self, solutions: Solutions, first: int) -> EncodedBatch:
        """Encodes the messages of a batch of solutions, one message a solution.

        `bytes(…)` of the result is what they add to the log; iterating over it gives the messages one by one.

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
    depend on what stands before it: on prefixes, a JSON-LD context, the lookup tables of Jelly. `encode_document`
    depends on its message alone, and changes nothing in the log.
    """

    def start(self) -> bytes:
        """What stands before the first message."""
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
        """What stands after the last message."""
        ...

    def for_template(self, template: Template) -> TemplateEncoder:
        """This encoder, for batches of a template's solutions; the two may be called in turn."""
        ...


class Decoder(Protocol):
    """Reads one log: `feed(data)` for each chunk, then `close()`; each gives the messages that are complete with it.

    Chunks may be split anywhere. What `feed` gives is to be exhausted before the next call; messages that stand before
    an error come before it. Blank nodes get labels that are unique (see `Labels`), each message others, but for those
    that a label stands for in a whole log: under `rdfm`.
    """

    @property
    def syntax(self) -> Syntax | None:
        """How the log delimits its messages, as far as it is known yet; None: it has no delimiter so far."""
        ...

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes that the log has declared so far, the last declaration of each."""
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


def encoder_for(
    format: Format,
    syntax: Syntax,
    prefixes: Mapping[str, str] | None = None,
    *,
    graphs: bool = True,
    triple_terms: bool = False,
    jelly: JellyOptions | None = None,
) -> Encoder:
    """An encoder for a new log.

    Args:
        format: the RDF serialization.
        syntax: how messages are delimited.
        prefixes: for the formats that have them.
        graphs: whether a message may have named graphs, which Jelly says at the start of the log.
        triple_terms: whether messages are known to have triple terms, which Jelly says there, too.
        jelly: the options of a Jelly log.

    Raises:
        UsageError: options that cannot be written, or that are not for the format.
    """
    check_options(format, jelly)
    if format in (N_TRIPLES, N_QUADS):
        from construct_messages.logs.lines.encoder import LinesEncoder

        return LinesEncoder(format, syntax)
    if format in (TURTLE, TRIG):
        from construct_messages.logs.turtle.encoder import TurtleEncoder

        return TurtleEncoder(format, syntax, prefixes)
    if format == RDF_XML:
        from construct_messages.logs.rdfxml.encoder import RdfXmlEncoder

        return RdfXmlEncoder(prefixes)
    if format == JELLY:
        from construct_messages.logs.jelly.encoder import JellyEncoder

        return JellyEncoder(jelly, graphs=graphs, triple_terms=triple_terms, prefixes=prefixes)
    if format == NDJSON_LD:
        from construct_messages.logs.jsonld.encoder import JsonLdEncoder

        return JsonLdEncoder(prefixes)
    assert format == YAML_LD
    from construct_messages.logs.yamlld.encoder import YamlLdEncoder

    return YamlLdEncoder(prefixes)


def options_of(decoder: object) -> JellyOptions | None:
    """The options of a Jelly log that is read, once they came; None: it is another log."""
    from construct_messages.logs.jelly.decoder import JellyDecoder

    return decoder.options if isinstance(decoder, JellyDecoder) else None


def check_options(format: Format, jelly: JellyOptions | None) -> None:
    """Refuses options of Jelly for another format.

    Raises:
        UsageError: naming the format.
    """
    if jelly is not None and format != JELLY:
        raise UsageError(f"options of Jelly have no meaning for {format.name}", hint="leave them out, or write Jelly")


def decoder_for(
    format: Format,
    syntax: Syntax | None = None,
    *,
    base: str | None = None,
    contexts: Mapping[str, Any] | None = None,
    message_bytes: int = MESSAGE_BYTES,
    labels: Labels | None = None,
    generalized: bool = False,
    shared_labels: bool | None = None,
    lenience: Lenience | None = None,
) -> Decoder:
    """A decoder for a log.

    Args:
        format: the RDF serialization.
        syntax: what the media type announces; None: nothing, so that the log itself tells. A document that tells
            nothing is one message, or none where it is empty.
        base: the IRI that relative IRIs resolve against, until the log says otherwise.
        contexts: JSON-LD contexts by their IRI, as parsed JSON (`{"@context": …}` or what stands in there).
        message_bytes: how large a message may be, as it stands in the log, and in characters as N-Quads.
        labels: of the log; None: with a prefix that no other has.
        generalized, shared_labels: of a Jelly log, see `read_log`.
        lenience: what passes and counts malformed IRIs and language tags; None: they are errors.

    Raises:
        UsageError: a base that is no absolute IRI.
    """
    if base is not None:
        try:
            ox.NamedNode(base)
        except ValueError as error:
            raise UsageError(
                f"the base <{base}> is no absolute IRI", hint="give one such as https://example.org/"
            ) from error
    if format in (N_TRIPLES, N_QUADS):
        from construct_messages.logs.lines.decoder import LinesDecoder

        return LinesDecoder(format, syntax, message_bytes=message_bytes, labels=labels, lenience=lenience)
    if format in (TURTLE, TRIG):
        from construct_messages.logs.turtle.decoder import TurtleDecoder

        return TurtleDecoder(format, syntax, base=base, message_bytes=message_bytes, labels=labels, lenience=lenience)
    if format == RDF_XML:
        from construct_messages.logs.rdfxml.decoder import RdfXmlDecoder

        return RdfXmlDecoder(base=base, message_bytes=message_bytes, labels=labels, lenience=lenience)
    if format == JELLY:
        from construct_messages.logs.jelly.decoder import JellyDecoder

        return JellyDecoder(
            message_bytes=message_bytes,
            generalized=generalized,
            shared_labels=shared_labels,
            labels=labels,
            lenience=lenience,
        )
    if format == NDJSON_LD:
        from construct_messages.logs.jsonld.decoder import JsonLdDecoder

        return JsonLdDecoder(
            base=base, contexts=contexts, message_bytes=message_bytes, labels=labels, lenience=lenience
        )
    assert format == YAML_LD
    from construct_messages.logs.yamlld.decoder import YamlLdDecoder

    return YamlLdDecoder(base=base, contexts=contexts, message_bytes=message_bytes, labels=labels, lenience=lenience)

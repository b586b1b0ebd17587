"""Reads the messages in a request body: one document or a whole log, in every format of logs.

Linked Data Notifications, section 3.3.1 (JSON-LD with a profile is JSON-LD); LDN for RDF streams (an element is an RDF
document); Activity Streams 2.0, section 2.1, and ActivityPub, section 3.2 (the implied context).
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from construct_messages.logs import DecoderOptions
from construct_messages.logs.documents import (
    CONTEXTS,
    DocumentReader,
    KnownContexts,
    document_format,
    implied_context,
)
from construct_messages.rdf.errors import LimitExceeded, LogError, ProtocolError, UsageError
from construct_messages.rdf.formats import FORMATS, N_QUADS, N_TRIPLES, Format, Syntax
from construct_messages.rdf.formats.lookup import find_format
from construct_messages.rdf.formats.media_types import read_media_type
from construct_messages.rdf.message import Message, of_lines

ACCEPTED: Final = tuple(
    dict.fromkeys(
        media_type
        for format in FORMATS
        for media_type in (*format.media_types, *format.document_types)
    )
)
"""The media types that publishers may send, for `Accept-Post`."""


def read_messages(
    content_type: str | None,
    body: bytes,
    *,
    base: str,
    message_bytes: int,
    most: int,
    contexts: KnownContexts = CONTEXTS,
) -> list[Message]:
    """Returns the messages of a body: one for a document, all messages of a log.

    Args:
        content_type: the header.
        body: the request body.
        base: the base of relative IRIs.
        message_bytes: the maximal size of a message.
        most: the maximal number of messages.
        contexts: the known JSON-LD contexts, by IRI.

    Raises:
        ProtocolError: another media type or charset (415), an empty body in a format without empty documents (400), or
            a body that is not valid in its format (422).
        LimitExceeded: too many messages, or a message that is too large.

    >>> options = {"base": "urn:x", "message_bytes": 1000, "most": 10}
    >>> [len(message) for message in read_messages("text/turtle", b"<urn:s> <urn:p> 1, 2 .", **options)]
    [2]
    >>> document = b"<urn:s> <urn:p> 1 .\\n# @message me\\n<urn:s> <urn:p> 2 ."
    >>> [len(message) for message in read_messages("text/turtle", document, **options)]
    [2]
    >>> log = b"# @message\\n<urn:s> <urn:p> 1 .\\n# @message\\n"
    >>> [len(message) for message in read_messages("text/turtle; messages=rdfm", log, **options)]
    [1, 0]
    """
    body_type = body_type_of(content_type)
    options = options_of(body_type, base, message_bytes, contexts)
    messages = DocumentReader(body_type.format, options, body_type.syntax).messages(body)
    read: list[Message] = []
    try:
        for message in messages:
            message.checked = True  # decoders only return RDF
            read.append(message)
            if len(read) > most:
                raise LimitExceeded(
                    f"the log has more than {most} messages", hint="send it in parts"
                )
    except LogError as error:
        refused = refused_log(error)
        if not body.removeprefix(BOM_UTF8).strip():
            refused.status = 400
        raise refused from error
    # a document without statements is an empty message
    return read or ([Message()] if body_type.is_document else [])


def read_documents(
    content_type: str | None, documents: Sequence[bytes], *, base: str, message_bytes: int
) -> list[Message] | None:
    """Returns the messages of documents that are stored unchanged; None: use `read_messages` for each of them.

    Checking all documents together takes a third of the time.

    >>> options = {"base": "urn:x", "message_bytes": 1000}
    >>> documents = [b"<urn:s> <urn:p> <urn:o> .\\n", b"<urn:s> <urn:p> <urn:s> .\\n"]
    >>> list(map(len, read_documents("application/n-quads", documents, **options)))
    [1, 1]
    >>> read_documents("text/turtle", documents, **options)
    """
    body_type = body_type_of(content_type)
    options = options_of(body_type, base, message_bytes)
    lines = DocumentReader(body_type.format, options, body_type.syntax).lines(documents)
    return None if lines is None else list(map(of_lines, lines))


def refused_log(error: LogError) -> ProtocolError:
    """Returns the error for a body that is not valid in its format (422)."""
    refused = ProtocolError(str(error).partition("\n")[0], status=422, hint=error.hint)
    refused.position = error.position
    return refused


class BodyType(NamedTuple):
    """The meaning of a body's Content-Type.

    Args:
        format: the format of the body.
        syntax: the syntax of a log; None: the body is one document.
        context: the IRI of the JSON-LD context that the media type implies.
    """

    format: Format
    syntax: Syntax | None
    context: str | None

    @property
    def is_document(self) -> bool:
        """Whether the body is one document, which may itself delimit messages."""
        return self.syntax is None

    @property
    def has_base(self) -> bool:
        """Whether its IRIs may be relative."""
        return self.format not in (N_QUADS, N_TRIPLES)


@lru_cache(maxsize=64)
def body_type_of(content_type: str | None) -> BodyType:
    """Interprets the Content-Type of a body.

    Args:
        content_type: the header.

    Raises:
        ProtocolError: another media type or charset (415).

    >>> body_type_of("text/turtle").is_document, body_type_of("text/turtle; messages=rdfm").is_document
    (True, False)
    """
    media_type, parameters = read_media_type(content_type or "") or ("", {})
    if not media_type:
        raise _refused(
            "the request has no Content-Type"
            if not content_type
            else f"Content-Type: {content_type}"
        )
    charset = parameters.pop("charset", "utf-8")
    if charset not in ("utf-8", "utf8"):
        raise ProtocolError(f"charset={charset} is not read here", status=415, hint="send UTF-8")
    context = implied_context(media_type, parameters)
    try:
        if any(media_type in format.documents for format in FORMATS):
            return BodyType(document_format(media_type), None, context)
        written = (f'{name}="{value}"' for name, value in parameters.items())
        return BodyType(*find_format("; ".join((media_type, *written))), context)
    except UsageError as error:
        raise _refused(error.message) from error


def known_contexts(files: Mapping[str, str]) -> KnownContexts:
    """Returns the JSON-LD contexts of this package and those in files, by IRI.

    Raises:
        UsageError: a file cannot be read, or is not JSON.
    """
    contexts: dict[str, Any] = {}
    for iri, file in files.items():
        try:
            contexts[iri] = json.loads(Path(file).read_bytes())
        except OSError as error:
            raise UsageError(f"cannot read the context {file}: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise UsageError(f"the context {file} is not JSON: {error}") from error
    return KnownContexts(contexts)


def options_of(
    body_type: BodyType, base: str, message_bytes: int, contexts: KnownContexts = CONTEXTS
) -> DecoderOptions:
    """Returns the options of the decoder of a body; see `read_messages`."""
    if body_type.has_base:
        return _options_of(base, body_type.context, message_bytes, contexts)
    return _known_options_of(None, body_type.context, message_bytes)


def _options_of(
    base: str | None,
    context: str | None,
    message_bytes: int,
    contexts: KnownContexts = CONTEXTS,
) -> DecoderOptions:
    return DecoderOptions(
        base=base,
        contexts=contexts,
        context=context,
        message_bytes=message_bytes,
        comments=False,  # the media type decides whether comments delimit messages
        keep_lines=True,
    )


_known_options_of = lru_cache(_options_of)  # creating them takes as long as reading a small message


def _refused(message: str) -> ProtocolError:
    return ProtocolError(message, status=415, hint=f"send one of {', '.join(ACCEPTED)}")

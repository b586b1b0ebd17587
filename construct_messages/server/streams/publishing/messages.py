"""The messages in a request that publishes: one document or a whole log, in every format that logs are read in.

Linked Data Notifications, section 3.3.1 (JSON-LD with a profile is JSON-LD); LDN for RDF streams (an element is an RDF
document); Activity Streams 2.0, section 2.1, and ActivityPub, section 3.2 (the implied context).
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Final

from construct_messages.documents import DocumentReader, document_format
from construct_messages.documents.contexts import CONTEXTS, implied_context
from construct_messages.errors import LimitExceeded, LogError, ProtocolError, UsageError
from construct_messages.formats import FORMATS
from construct_messages.formats.lookup import find_format
from construct_messages.formats.media_types import read_media_type
from construct_messages.logs import Decoder, DecoderOptions, decoder_for
from construct_messages.message import Message

ACCEPTED: Final = tuple(
    dict.fromkeys(
        media_type
        for format in FORMATS
        for media_type in (*format.media_types, *format.document_types)
    )
)
"""The media types that publishers may send, for `Accept-Post`."""


def read_messages(
    content_type: str | None, body: bytes, *, base: str, message_bytes: int, most: int
) -> list[Message]:
    """The messages of a body: a document is one message, a log as many as it has.

    Args:
        content_type: the header.
        body: of the request.
        base: what relative IRIs resolve against.
        message_bytes: how large a message may be.
        most: how many there may be.

    Raises:
        ProtocolError: another media type or charset (415), an empty body in a format without empty documents (400), or
            bytes that are not in the format (422).
        LimitExceeded: too many messages, or too large a one.

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
    options = DecoderOptions(
        base=base,
        contexts=CONTEXTS,
        context=implied_context(media_type, parameters),
        message_bytes=message_bytes,
        comments=False,  # the media type decides whether they delimit messages
    )
    messages, is_document = _reading(media_type, parameters, body, options)
    read: list[Message] = []
    try:
        for message in messages:
            message.checked = True  # no decoder gives anything but RDF
            read.append(message)
            if len(read) > most:
                raise LimitExceeded(
                    f"the log has more than {most} messages", hint="send it in parts"
                )
    except LogError as error:
        is_empty = not body.removeprefix(BOM_UTF8).strip()
        refused = ProtocolError(
            str(error).partition("\n")[0], status=400 if is_empty else 422, hint=error.hint
        )
        refused.position = error.position
        raise refused from error
    # a document without a statement is a message without one
    return read or ([Message()] if is_document else [])


def _reading(
    media_type: str, parameters: dict[str, str], body: bytes, options: DecoderOptions
) -> tuple[Iterator[Message], bool]:
    """The messages, and whether they are those of one document."""
    try:
        if any(media_type in format.documents for format in FORMATS):
            return DocumentReader(document_format(media_type), options).messages(body), True
        written = (f'{name}="{value}"' for name, value in parameters.items())
        format, syntax = find_format("; ".join((media_type, *written)))
    except UsageError as error:
        raise _refused(error.message) from error
    if syntax is None:
        return DocumentReader(format, options).messages(body), True
    return _decoded(decoder_for(format, syntax, options), body), False


def _decoded(decoder: Decoder, body: bytes) -> Iterator[Message]:
    yield from decoder.feed(body)
    yield from decoder.close()


def _refused(message: str) -> ProtocolError:
    return ProtocolError(message, status=415, hint=f"send one of {', '.join(ACCEPTED)}")

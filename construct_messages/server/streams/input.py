"""The messages in a request that publishes: one document or a whole log, in every format that logs are read in.

Linked Data Notifications, section 3.3.1 (JSON-LD with a profile is JSON-LD); LDN for RDF streams (an element is an RDF
document); Activity Streams 2.0, section 2.1, and ActivityPub, section 3.2 (the implied context).

Nothing is fetched: JSON-LD contexts that senders name by IRI are those of `streams/contexts.py`.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator
from functools import partial
from typing import Final

from construct_messages.errors import LimitExceeded, LogError, ProtocolError, UsageError
from construct_messages.formats import FORMATS, NDJSON_LD, RDF_XML, YAML_LD, find_format
from construct_messages.formats.media_types import ACTIVITY_JSON, JSON, read_media_type
from construct_messages.logs import Decoder, DecoderOptions, decoder_for
from construct_messages.logs.rdfxml.decoder import read_document
from construct_messages.message import Message
from construct_messages.streams.contexts import CONTEXTS, implied_context

_JSON: Final = (NDJSON_LD.document_type, JSON, ACTIVITY_JSON)

ACCEPTED: Final = tuple(
    dict.fromkeys(
        [
            *(
                media_type
                for format in FORMATS
                for media_type in (*format.media_types, format.document_type)
            ),
            ACTIVITY_JSON,
        ]
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
        ProtocolError: another media type or charset (415), no JSON at all (400), or bytes that are not what it says
            (422).
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
    try:
        messages, document = _reading(media_type, parameters, body, base, message_bytes)
        read: list[Message] = []
        for message in messages:
            message.checked = True  # no decoder gives anything but RDF
            read.append(message)
            if len(read) > most:
                raise LimitExceeded(
                    f"the log has more than {most} messages", hint="send it in parts"
                )
    except LogError as error:
        refused = ProtocolError(str(error).partition("\n")[0], status=422, hint=error.hint)
        refused.position = error.position
        raise refused from error
    # a document without a statement is a message without one
    return read or ([Message()] if document else [])


def _reading(
    media_type: str, parameters: dict[str, str], body: bytes, base: str, message_bytes: int
) -> tuple[Iterator[Message], bool]:
    """The messages, and whether they are to be those of one document."""
    if media_type == RDF_XML.document_type:
        return iter([read_document(body, base=base, message_bytes=message_bytes)]), True
    context = implied_context(media_type, parameters)
    # the media type decides whether comments delimit messages
    options = DecoderOptions(
        base=base, contexts=CONTEXTS, context=context, message_bytes=message_bytes, comments=False
    )
    decoder = partial(decoder_for, options=options)
    if media_type in _JSON:
        # between the tokens of JSON a line end is a blank, and within them there is none
        text = body.translate(_LINE_ENDS).strip()
        if not text.removeprefix(BOM_UTF8):
            raise ProtocolError(
                "the body is empty, which is no JSON",
                hint="send {} for a message without a statement",
            )
        if text.startswith(b"["):
            text = b'{"@included":' + text + b"}"
        return _decode(decoder(NDJSON_LD), text), True
    if media_type == YAML_LD.document_type:
        return _decode(decoder(YAML_LD), body), True
    try:
        shown = "; ".join(
            (media_type, *(f'{name}="{value}"' for name, value in parameters.items()))
        )
        format, syntax = find_format(shown)
    except UsageError as error:
        raise _refused(error.message) from error
    return _decode(decoder(format, syntax), body), syntax is None


def _decode(decoder: Decoder, body: bytes) -> Iterator[Message]:
    yield from decoder.feed(body)
    yield from decoder.close()


_LINE_ENDS: Final = bytes.maketrans(b"\r\n", b"  ")


def _refused(message: str) -> ProtocolError:
    return ProtocolError(message, status=415, hint=f"send one of {', '.join(ACCEPTED)}")

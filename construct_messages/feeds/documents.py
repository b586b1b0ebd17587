"""Creates readers for the documents of a stream: of one media type, with the contexts and limits of `Settings`.

No I/O.
"""

from __future__ import annotations

from construct_messages.feeds.transport import Settings
from construct_messages.logs import DecoderOptions
from construct_messages.logs.documents import DocumentReader, document_format, document_syntax
from construct_messages.rdf.errors import SourceError, UsageError


def reader_of(
    content_type: str, settings: Settings, *, base: str, context: str | None = None
) -> DocumentReader:
    """Returns the reader for documents that the other side sends.

    `base` is the IRI that relative IRIs resolve against, `context` the IRI of the context for all of them, from a Link
    header. Raises `SourceError` for an unknown media type, or an unknown syntax of messages in it.
    """
    try:
        format = document_format(content_type)
        syntax = document_syntax(content_type, format)
    except UsageError as error:
        raise SourceError(error.message, hint=error.hint) from error
    options = DecoderOptions(
        base=base,
        contexts=settings.contexts,
        context=context,
        message_bytes=settings.message_bytes,
        comments=False,
    )
    return DocumentReader(format, options, syntax)

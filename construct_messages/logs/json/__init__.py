"""Writes messages as JSON documents, by a JSON-LD frame. JSON-LD 1.1 Framing. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from construct_messages.logs import EncoderOptions
from construct_messages.logs.json.documents import JsonEncoder
from construct_messages.logs.json.options import JsonOptions
from construct_messages.rdf.errors import UsageError
from construct_messages.rdf.formats import JSON_DOCUMENTS
from construct_messages.rdf.message import Message

_MOST_FRAMES: Final = 32


def to_json(
    message: Message,
    frame: Mapping[str, Any] | None = None,
    *,
    context: Any = None,
    contexts: Mapping[str, Any] | None = None,
    native: bool = True,
) -> dict[str, Any]:
    """Returns a message as a JSON document.

    Args:
        message: the message.
        frame: a JSON-LD frame, as parsed JSON, which decides what the document has; None: what is embedded of the
            subjects that are no objects, with local names of predicates as keys.
        context: a JSON-LD context, or its IRI, for a frame without one, or for documents without a frame.
        contexts: JSON-LD contexts by IRI, as parsed JSON; contexts are never fetched.
        native: whether numbers and booleans are those of JSON.

    Returns:
        The node that matches the frame; several are under `@graph`, and where there is none, it is empty. Contexts are
            left out.

    Raises:
        UsageError: a frame or context that has no meaning.
        UnsupportedByFormat: a triple term, or an IRI that the context cannot write.

    >>> from construct_messages import Quad, iri, literal
    >>> message = Message([Quad(iri("urn:a"), iri("urn:x:size"), literal(3))])
    >>> to_json(message)
    {'id': 'urn:a', 'size': 3}
    >>> to_json(message, {"@context": {"large": "urn:x:size"}, "large": {}})
    {'@id': 'urn:a', 'large': 3}
    """
    try:
        # callers pass the same frame with every message
        key = msgspec.json.encode([frame, context, contexts, native])
    except (TypeError, ValueError) as error:
        raise UsageError(f"the frame or context is no JSON: {error}") from error
    encoder = _encoder(key)
    encoder.begin()
    encoded: dict[str, Any] = msgspec.json.decode(encoder.encode_document(message))
    return encoded


@lru_cache(_MOST_FRAMES)
def _encoder(key: bytes) -> JsonEncoder:
    frame, context, contexts, native = msgspec.json.decode(key)
    options = JsonOptions(frame, context, contexts or {}, native)
    assert JSON_DOCUMENTS.own is not None
    return JsonEncoder(JSON_DOCUMENTS, JSON_DOCUMENTS.own, EncoderOptions(own=options))

"""Writes messages as JSON documents, by a JSON-LD frame. JSON-LD 1.1 Framing. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from construct_messages.errors import UsageError
from construct_messages.formats import JSON_DOCUMENTS
from construct_messages.logs import EncoderOptions
from construct_messages.logs.json.encoder import JsonEncoder
from construct_messages.logs.json.options import JsonOptions
from construct_messages.message import Message

_MOST_FRAMES: Final = 32


def document(
    message: Message,
    frame: Mapping[str, Any] | None,
    context: Any,
    contexts: Mapping[str, Any] | None,
    native: bool,
) -> dict[str, Any]:
    """Returns the document of a message; see `Message.to_json`."""
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

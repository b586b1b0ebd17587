"""The contract between a server of streams and its clients: all names and codes that both must agree on.

RDF Messages, section 3 (server-sent events, WebSocket, Jelly gRPC); LDN for RDF streams (descriptions); Linked Data
Notifications.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from construct_messages.rdf.formats import FORMATS


class Header(StrEnum):
    """A header of requests or responses."""

    AFTER = "RDF-Stream-After"
    """The sequence before the first element of a response, whose elements have no gap."""

    LAST = "RDF-Stream-Last"
    """The sequence of the last element of a response, by which its reader checks that it is complete."""

    IDENTITY = "RDF-Stream-Id"
    """Distinguishes a stream from earlier and later streams of the same name."""

    CONTENT_TYPE = "RDF-Message-Content-Type"
    """The media type of the messages in server-sent events."""

    TAKEN = "RDF-Stream-Taken"
    """In the answer to a preview: the number of elements that the query has read."""

    INVALID = "RDF-Stream-Invalid"
    """In the answer to a dry run: the number of messages that do not conform to the shapes of the stream."""

    LAST_EVENT_ID = "Last-Event-ID"
    """The id of the last event that a follower received (WHATWG HTML, section 9.2.4)."""

    DEAD_LETTER_SOURCE = "RDF-Message-Source"
    """In a dead letter: the URL of the original record, which is not a message."""

    DEAD_LETTER_REASON = "RDF-Message-Reason"
    """In a dead letter: the reason why the record is not a message."""

    DEAD_LETTER_PLACE = "RDF-Message-Place"
    """In a dead letter: where the original record is, as `partition:offset`, or as its sequence."""

    KEY = "Idempotency-Key"
    """The publisher's key of a batch of messages (draft-ietf-httpapi-idempotency-key-header)."""

    LOG_AFTER = "RDF-Log-After"
    """The number of messages of the key's log that a request does not repeat, because they were acknowledged before."""


class CallMetadata(StrEnum):
    """Metadata of a call of Jelly's gRPC service: of its request, of its answer, or of its trailers."""

    AFTER = "rdf-stream-after"
    """Of a request: the sequence to begin after. Of an answer: the sequence before its first frame."""

    LAST = "rdf-stream-last"
    """Of a request: the number of newest elements to begin with. Of trailers: the sequence of the last element that was
    stored."""

    SINCE = "rdf-stream-since"
    """Of a request: the time (xsd:dateTime with a zone) of the elements to begin with."""

    FOLLOW = "rdf-stream-follow"
    """Of a request: `false` ends the answer after the newest element."""

    IDENTITY = "rdf-stream-id"
    """Of an answer: see `Header.IDENTITY`."""

    TOPIC = "rdf-stream-topic"
    """Of a request that publishes: the topic, instead of the option stream_name of the first frame."""

    KEY = "idempotency-key"
    """Of a request that publishes: see `Header.KEY`."""

    FRAME_BYTES = "rdf-stream-frame-bytes"
    """Of a request: the maximal number of bytes of a frame of the answer."""

    HINT = "rdf-stream-hint"
    """Of trailers: the hint of the error."""

    RETRY_AFTER = "grpc-retry-pushback-ms"
    """Of trailers: milliseconds to wait (gRPC proposal A6)."""

    AUTHORIZATION = "authorization"
    """Of a request: `Bearer` and the token."""


class FrameMetadata(StrEnum):
    """Metadata of a frame of Jelly, in a stream of version 2 or higher."""

    SEQUENCE = "rdf-stream-sequence"
    """The sequence of the element, in decimal digits."""

    TIME = "rdf-stream-time"
    """The time when it was stored, in microseconds since 1970 in UTC, in decimal digits."""


CONTEXT_RELATION: Final = "http://www.w3.org/ns/json-ld#context"
"""The relation of the link to the JSON-LD context of the documents in a response (JSON-LD 1.1, section 6.1)."""


class Event(StrEnum):
    """The type of a server-sent event."""

    MESSAGE = "rdf-message"
    """Its data is one message; its id is the sequence, or the position in the answer to a query."""

    END = "end"
    """The answer to a query is complete; its data is the number of messages."""

    ERROR = "error"
    """There will be no further events, even on a new connection; its data is the reason."""


class Parameter(StrEnum):
    """A query parameter that selects elements; `docs/reference/streams/http.md` defines them."""

    LAST = "last"
    AFTER = "after"
    SINCE = "since"
    BEFORE = "before"
    UNTIL = "until"


class Property(StrEnum):
    """A property of a description, as the term for it in JSON-LD; see `vocabulary.CONTEXT`."""

    INBOX = "inbox"
    INPUT = "input"
    LOG_INPUT = "logInput"
    """The input, where it acknowledges a log while it is being sent."""

    OUTPUT = "output"
    EVENTS = "push"
    SOCKET = "websocket"
    GRPC = "grpc"
    LDES = "ldes"
    QUERY = "query"
    STREAM = "stream"
    SEQUENCE = "sequence"
    FIRST_SEQUENCE = "firstSequence"
    LAST_SEQUENCE = "lastSequence"
    NEXT = "next"
    PREVIOUS = "previous"


ENDPOINTS: Final[Mapping[str, str]] = {
    Property.INBOX: "ldp",
    Property.INPUT: "rsp",
    Property.LOG_INPUT: "cm",
    Property.OUTPUT: "rsp",
    Property.EVENTS: "cm",
    Property.SOCKET: "cm",
    Property.GRPC: "cm",
    Property.LDES: "cm",
    Property.QUERY: "cm",
}
"""The properties that name the endpoints of a stream, with the prefixes of their IRIs."""

SUBPROTOCOLS: Final = {format.subprotocol: format for format in FORMATS}
"""The subprotocols of WebSockets, with the formats of their frames, in the order of the server's preference."""

_CLOSED: Final = 4000


def close_code(status: int) -> int:
    """Returns the close code of a WebSocket for a status of HTTP (RFC 6455, 7.4.2).

    >>> close_code(422)
    4422
    """
    return _CLOSED + status


def refused_status(code: int | None) -> int | None:
    """Returns the status of HTTP for a close code, or None.

    >>> refused_status(4422), refused_status(1001), refused_status(4000)
    (422, None, None)
    """
    return code - _CLOSED if code is not None and 400 <= code - _CLOSED < 600 else None

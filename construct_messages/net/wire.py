"""The contract between a server of streams and its clients: every name and code that both must agree on, once.

RDF Messages, section 3 (server-sent events, WebSocket, Jelly gRPC); LDN for RDF streams (descriptions); Linked Data
Notifications.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from construct_messages.formats import FORMATS


class Header(StrEnum):
    """A header of requests or responses."""

    AFTER = "RDF-Stream-After"
    """The sequence before the first element of a response, whose elements have no gap."""

    LAST = "RDF-Stream-Last"
    """The sequence of the last element of a response, by which its reader knows that all came."""

    IDENTITY = "RDF-Stream-Id"
    """Distinguishes a stream from another one that had its name before, or will have it."""

    CONTENT_TYPE = "RDF-Message-Content-Type"
    """The media type of the messages in server-sent events."""

    TAKEN = "RDF-Stream-Taken"
    """How many elements a query has read that is only tried."""

    INVALID = "RDF-Stream-Invalid"
    """How many messages of a body that is only checked do not conform to the shapes of the stream."""

    LAST_EVENT_ID = "Last-Event-ID"
    """The id of the last event that a follower got (WHATWG HTML, section 9.2.4)."""

    DEAD_LETTER_SOURCE = "RDF-Message-Source"
    """The URL that a record came from which is no message, in the record of a dead letter."""

    DEAD_LETTER_REASON = "RDF-Message-Reason"
    """Why it is no message."""

    KEY = "Idempotency-Key"
    """The publisher's key of a batch of messages (draft-ietf-httpapi-idempotency-key-header)."""

    LOG_AFTER = "RDF-Log-After"
    """How many messages of the log that a key names are left out of a request, as they were acknowledged before."""


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
    """Of a request that publishes: the topic, in the place of the option stream_name of the first frame."""

    KEY = "idempotency-key"
    """Of a request that publishes: see `Header.KEY`."""

    FRAME_BYTES = "rdf-stream-frame-bytes"
    """Of a request: how many bytes a frame of the answer may have."""

    HINT = "rdf-stream-hint"
    """Of trailers: what to do about the refusal."""

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
    """Its data are one message; its id is the sequence, or the position in the answer to a query."""

    END = "end"
    """The answer to a query is complete; its data are the number of its messages."""

    ERROR = "error"
    """Its data are the reason why no further event can come, also on the next connection."""


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
    Property.OUTPUT: "rsp",
    Property.EVENTS: "cm",
    Property.SOCKET: "cm",
    Property.GRPC: "cm",
    Property.LDES: "cm",
    Property.QUERY: "cm",
}
"""The properties that name the endpoints of a stream, with the prefixes of their IRIs."""

SUBPROTOCOLS: Final = {format.subprotocol: format for format in FORMATS}
"""The subprotocols of WebSockets, with the formats of their frames; those that the server prefers first."""

_CLOSED: Final = 4000


def close_code(status: int) -> int:
    """Returns the code that a socket is closed with where a request would get a status of HTTP (RFC 6455, 7.4.2).

    >>> close_code(422)
    4422
    """
    return _CLOSED + status


def refused_status(code: int | None) -> int | None:
    """Returns the status of HTTP for a close code; None: there is none.

    >>> refused_status(4422), refused_status(1001), refused_status(4000)
    (422, None, None)
    """
    return code - _CLOSED if code is not None and 400 <= code - _CLOSED < 600 else None

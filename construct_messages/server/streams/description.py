"""A client's description of a new stream, in JSON or RDF, and the query that fills it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from construct_messages.rdf.errors import ProtocolError, UsageError
from construct_messages.rdf.formats import NDJSON_LD
from construct_messages.rdf.formats.media_types import JSON
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import is_literal, literal_parts
from construct_messages.rdf.vocabulary import CM, CONTEXT, RDFS, RSP
from construct_messages.server.streams.publishing.messages import read_messages
from construct_messages.streams.element import Description, Retention

N = TypeVar("N", int, float)

_MOST_BYTES: Final = 1 << 20


class NewStream(NamedTuple):
    """The description of a stream in the body of a request.

    Args:
        description: the description of the stream.
        query: the text of the query whose results become its elements; None: publishers send them.
    """

    description: Description
    query: str | None = None


def read_description(content_type: str | None, body: bytes, iri: str) -> NewStream:
    """Parses the description of a stream in the body of a request.

    Args:
        content_type: the header. JSON needs no context: its members are those of stream descriptions.
        body: the request body; empty: no description.
        iri: the IRI of the stream, the base of relative IRIs.

    Raises:
        ProtocolError: another media type (415), a malformed body (422), or an invalid value (422).

    >>> read_description("application/json", b'{"label": "A", "retainedElements": 10}', "urn:a").description.label
    'A'
    """
    if not body:
        return NewStream(Description())
    if content_type is not None and content_type.partition(";")[0].strip().lower() in _JSON:
        body = _with_context(body)
    messages = read_messages(content_type, body, base=iri, message_bytes=_MOST_BYTES, most=1)
    message = messages[0] if messages else Message()
    try:
        description = Description(
            label=_value(message, f"{RDFS}label") or "",
            retention=Retention(
                count=_number(message, "retainedElements", int),
                seconds=_number(message, "retainedSeconds", float),
                bytes=_number(message, "retainedBytes", int),
            ),
            publish=_value(message, f"{CM}publish"),
        )
        return NewStream(description, _value(message, f"{RSP}query"))
    except UsageError as error:
        raise ProtocolError(
            f"the description makes no sense: {error.message}", status=422, hint=error.hint
        ) from error


_JSON: Final = (JSON, NDJSON_LD.document_type)
_MEMBERS: Final = (
    "label",
    "publish",
    "queryText",
    "retainedBytes",
    "retainedElements",
    "retainedSeconds",
)


def _with_context(body: bytes) -> bytes:
    """Returns the JSON, with the context of this package if it has none.

    Raises:
        ProtocolError: a member that is not in the context.
    """
    try:
        value = json.loads(body)
    except ValueError:
        return body  # the reader raises the error with its position
    if isinstance(value, dict) and "@context" not in value:
        for name in sorted(value.keys() - CONTEXT.keys()):
            # JSON-LD interprets keywords and IRIs, including prefixed ones
            if not name.startswith("@") and ":" not in name:
                raise ProtocolError(
                    f"a description has no member {name!r:.80}",
                    status=422,
                    hint=f"there are {', '.join(_MEMBERS)}",
                )
        return json.dumps({"@context": CONTEXT, **value}).encode()
    return body


def _number(message: Message, name: str, kind: Callable[[str], N]) -> N | None:
    value = _value(message, f"{CM}{name}")
    try:
        return None if value is None else kind(value)
    except ValueError:
        raise UsageError(
            f"{name} is {value!r:.80}", hint="give a number above 0, or leave it out"
        ) from None


def _value(message: Message, predicate: str) -> str | None:
    """Returns the literal of a property."""
    for quad in message:
        if quad.predicate == f"<{predicate}>" and is_literal(quad.object):
            return literal_parts(quad.object)[0]
    return None

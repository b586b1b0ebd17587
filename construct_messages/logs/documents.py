"""Converts one message to one document, and back: the value of a record, a frame, an event or the body of a request.

RDF Messages, section 3: the same blank node label in two documents is two nodes. Each format's record in `formats`
names its codec, so that a new format needs no change here. No I/O: no JSON-LD context is fetched.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pkgutil import get_data
from typing import Any, Final

from construct_messages.errors import LogError, UsageError, shown
from construct_messages.logs import (
    DecoderOptions,
    EncoderOptions,
    document_lines,
    encoder_for,
    read_document,
)
from construct_messages.logs.jsonld.json_text import refusing
from construct_messages.rdf.formats import FORMATS, LABELLED, RDFM, Format, Syntax
from construct_messages.rdf.formats.lookup import asks_for_messages, syntax_of
from construct_messages.rdf.formats.media_types import ACTIVITY_JSON, JSON_LD, read_media_type
from construct_messages.rdf.message import Message
from construct_messages.rdf.vocabulary import CONTEXT, RSP

# --- contexts -------------------------------------------------------------------------------------
# JSON-LD contexts of notifications, by the IRIs that their senders use. Nothing is fetched.
#
# Activity Streams 2.0, Verifiable Credentials, DIDs and Security Vocabulary are the published files, which PyLD
# includes. The others are in `known_contexts.json`: Web Annotation has each term of the published context (Web
# Annotation Vocabulary, appendix A). Linked Data Platform, PROV-O and LDN for RDF streams have no published context:
# theirs are written from the vocabularies, with each class and property, and reject names that are not in them
# (`logs/jsonld/json_text.py`).

ACTIVITY_STREAMS: Final = "https://www.w3.org/ns/activitystreams"
"""The context that the media type of Activity Streams implies (Activity Streams 2.0, section 2.1)."""

_KNOWN: Final[dict[str, dict[str, Any]]] = json.loads(
    get_data("construct_messages.logs.jsonld", "known_contexts.json") or b""
)
_STREAMS: Final = {
    **CONTEXT,
    "rsp-s": RSP,
    **{name: f"{RSP}{name}" for name in ("Stream", "InputStream", "OutputStream", "query")},
}


def _by_iri(contexts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"{scheme}://{iri}": context
        for iri, context in contexts.items()
        for scheme in ("http", "https")
    }


_WHOLE: Final = _by_iri(
    {f"www.w3.org/ns/{name}": _KNOWN["annotation"] for name in ("anno", "anno.jsonld")}
)

_OWN: Final = _by_iri(
    {
        "www.w3.org/ns/ldp": _KNOWN["ldp"],
        "www.w3.org/ns/ldp#": _KNOWN["ldp"],
        "www.w3.org/ns/ldp.jsonld": _KNOWN["ldp"],
        "www.w3.org/ns/prov": _KNOWN["prov"],
        "www.w3.org/ns/prov#": _KNOWN["prov"],
        "www.w3.org/ns/prov.jsonld": _KNOWN["prov"],
        "w3id.org/rsp/ldn-s": _STREAMS,
        "w3id.org/rsp/streams": _STREAMS,
        "w3id.org/rsp/streams#": _STREAMS,
    }
)


@cache
def _published() -> dict[str, Any]:
    # loading PyLD takes a third of a second, and messages without a context do not need it
    from pyld.documentloader.frozen import BUNDLED_CONTEXTS  # type: ignore[import-untyped] # it has no type information

    published = {
        iri.partition("://")[2]: json.loads(path.read_text("utf-8"))
        for iri, path in BUNDLED_CONTEXTS.items()
    }
    activity_streams = published["www.w3.org/ns/activitystreams"]
    return _by_iri(
        {
            **published,
            "www.w3.org/ns/activitystreams#": activity_streams,
            "www.w3.org/ns/activitystreams.jsonld": activity_streams,
        }
    )


class KnownContexts(Mapping[str, Any]):
    """Returns contexts by their IRI: the given ones, then those of this module. `strict`: for contexts that are not
    published, whether a name that is not in the vocabulary is an error; if not, it is ignored.

    >>> KnownContexts({"urn:c": {"p": "urn:p"}})["urn:c"]
    {'p': 'urn:p'}
    >>> KnownContexts()["https://www.w3.org/ns/anno.jsonld"]["bodyValue"]
    'http://www.w3.org/ns/oa#bodyValue'
    >>> KnownContexts()["https://www.w3.org/ns/activitystreams"]["@context"]["orderedItems"]
    {'@id': 'as:items', '@type': '@id', '@container': '@list'}
    """

    def __init__(self, given: Mapping[str, Any] | None = None, *, strict: bool = True) -> None:
        own = {iri: refusing(context, iri) for iri, context in _OWN.items()} if strict else _OWN
        self._given = given
        self._known = {**_WHOLE, **own, **(given or {})}

    def for_descriptions(self) -> KnownContexts:
        """Returns the same contexts for the description or the list of a stream, which may have unknown names."""
        return KnownContexts(self._given, strict=False)

    def __getitem__(self, iri: str) -> Any:
        known = self._known.get(iri)
        return _published()[iri] if known is None else known

    def __iter__(self) -> Iterator[str]:
        yield from self._known
        yield from _published().keys() - self._known.keys()

    def __len__(self) -> int:
        return len(self._known.keys() | _published().keys())


def implied_context(media_type: str, parameters: Mapping[str, str]) -> str | None:
    """Returns the context that a media type implies, before those of the document, or None.

    ActivityPub, section 3.2, makes JSON-LD with a profile the same as the media type of Activity Streams.

    >>> implied_context("application/activity+json", {})
    'https://www.w3.org/ns/activitystreams'
    >>> implied_context("application/ld+json", {"profile": "https://www.w3.org/ns/activitystreams"})
    'https://www.w3.org/ns/activitystreams'
    >>> implied_context("application/ld+json", {})
    """
    profiled = (
        media_type == JSON_LD.media_type
        and ACTIVITY_STREAMS in parameters.get("profile", "").split()
    )
    return ACTIVITY_STREAMS if profiled or media_type == ACTIVITY_JSON else None


CONTEXTS: Final = KnownContexts()
"""The contexts of this module, by the IRIs that senders use."""


# --- documents ------------------------------------------------------------------------------------


def document_format(content_type: str) -> Format:
    """Returns the format of a document by its media type, whose parameters are ignored.

    >>> document_format("application/ld+json; charset=utf-8").name
    'NDJSON-LD'
    """
    media_type, _ = read_media_type(content_type) or ("", {})
    for format in FORMATS:
        if media_type in (*format.document_types, *format.media_types):
            return format
    raise UsageError(
        f"the media type of a document is {shown(content_type)!a}, which is not read",
        hint="ask for one of " + ", ".join(format.document_type for format in FORMATS),
    )


def document_syntax(content_type: str, format: Format) -> Syntax | None:
    """Returns the syntax of messages that the media type of a document declares; other parameters are ignored. None:
    the media type declares none, or the format delimits messages by itself.

    >>> from construct_messages.rdf.formats import TRIG
    >>> document_syntax("application/trig; messages=rdfm", TRIG) is RDFM, document_syntax("application/trig", TRIG)
    (True, None)
    """
    media_type, parameters = read_media_type(content_type) or ("", {})
    if format.own is not None:
        return None
    syntax = syntax_of(parameters)
    if syntax is None and asks_for_messages(media_type, parameters):
        raise UsageError(
            f"the messages of a document are declared by {shown(content_type)!a}, which is not read",
            hint="choose messages=rdfm (with version=1.2, 1.2-basic or 1.1), or one of "
            + ", ".join(f"version={syntax.label}" for syntax in LABELLED),
        )
    return syntax


def document_writer(format: Format) -> Callable[[Message], bytes]:
    r"""Returns the function that writes documents of a format; see `Encoder.encode_document`.

    >>> from construct_messages.rdf.formats import TURTLE
    >>> document_writer(TURTLE)(Message())
    b''
    """
    encoder = encoder_for(format, format.own or RDFM, EncoderOptions(triple_terms=True))
    return encoder.encode_document


@dataclass(frozen=True)
class DocumentReader:
    """Reads the documents of one format.

    >>> from construct_messages.rdf.formats import NDJSON_LD
    >>> options = DecoderOptions(contexts={"urn:c": {"p": "urn:p"}}, context="urn:c", comments=False)
    >>> DocumentReader(NDJSON_LD, options).read(b'{"@id": "urn:s", "p": "x"}')
    <Message of 1 quad: <urn:s> <urn:p> "x" .>
    """

    # the format of the documents
    format: Format
    # see `DecoderOptions`; comments delimit messages only if the syntax says so
    options: DecoderOptions
    # the syntax of messages that their media type declares; None: none, see `document_syntax`
    syntax: Syntax | None = None

    def read(self, document: bytes, number: int = 1) -> Message:
        """Returns the message of a document. In every format, an empty document is a message without statements."""
        if not document:
            return Message()
        try:
            messages = self.messages(document)
            message = next(messages, None)
            another = next(messages, None)
        except LogError as error:
            error.number = number
            raise
        if another is not None or (message is None and self.syntax is not None):
            count = "no message" if message is None else "2 messages or more"
            raise LogError(
                f"the document holds {count}", number=number, hint="send one message in each"
            )
        return Message() if message is None else message

    def lines(self, documents: Sequence[bytes]) -> Sequence[bytes] | None:
        """Returns canonical N-Quads lines for the message of each document; None: read them one by one, by `read`."""
        if self.syntax is not None:
            return None
        return document_lines(self.format, documents, self.options)

    def messages(self, document: bytes) -> Iterator[Message]:
        """Yields the messages of a document that may be a log, by its media type or because it begins with a version
        label.
        """
        return read_document(self.format, document, self.options, self.syntax)

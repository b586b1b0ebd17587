"""Converts one message to one document, and back: the value of a record, a frame, an event or the body of a request.

RDF Messages, section 3: the same blank node label in two documents is two nodes. Each format's record in `formats`
names its codec, so that a new format needs no change here. No I/O: no JSON-LD context is fetched.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from construct_messages.logs import (
    DecoderOptions,
    EncoderOptions,
    document_lines,
    encoder_for,
    read_document,
)
from construct_messages.logs.jsonld.deserialization import refusing
from construct_messages.rdf.errors import LogError, UsageError, shown
from construct_messages.rdf.formats import FORMATS, LABELLED, RDFM, Format, Syntax
from construct_messages.rdf.formats.documents import JSON_LD
from construct_messages.rdf.formats.lookup import asks_for_messages, syntax_of
from construct_messages.rdf.formats.media_types import ACTIVITY_JSON, read_media_type
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import RDF, XSD
from construct_messages.rdf.vocabulary import CONTEXT, DCTERMS, LDP, PROV, RDFS, RSP

# --- contexts -------------------------------------------------------------------------------------
# JSON-LD contexts of notifications, by the IRIs that their senders use. Nothing is fetched.
#
# Activity Streams 2.0, Verifiable Credentials, DIDs and Security Vocabulary are the published files, which PyLD
# includes. Web Annotation has each term of the published context (Web Annotation Vocabulary, appendix A). Linked Data
# Platform, PROV-O and LDN for RDF streams have no published context: theirs are written from the vocabularies, with
# each class and property, and reject names that are not in them (`logs/jsonld/deserialization.py`).

ACTIVITY_STREAMS: Final = "https://www.w3.org/ns/activitystreams"
"""The context that the media type of Activity Streams implies (Activity Streams 2.0, section 2.1)."""

_AS: Final = "http://www.w3.org/ns/activitystreams#"  # as in Web Annotation
_OA: Final = "http://www.w3.org/ns/oa#"
_DC: Final = "http://purl.org/dc/elements/1.1/"
_DCTYPES: Final = "http://purl.org/dc/dcmitype/"
_FOAF: Final = "http://xmlns.com/foaf/0.1/"
_SCHEMA: Final = "http://schema.org/"


def _terms(namespace: str, names: str) -> dict[str, Any]:
    return {name: f"{namespace}{name}" for name in names.split()}


def _links(namespace: str, names: str, *, to: str = "@id") -> dict[str, Any]:
    return {name: {"@id": f"{namespace}{name}", "@type": to} for name in names.split()}


def _typed(namespace: str, datatype: str, names: str) -> dict[str, Any]:
    return _links(namespace, names, to=f"{XSD}{datatype}")


def _link(iri: str, to: str = "@id") -> dict[str, str]:
    return {"@id": iri, "@type": to}


_LDP_CONTEXT: Final = {
    "ldp": LDP,
    **_terms(
        LDP,
        "Resource RDFSource NonRDFSource Container BasicContainer DirectContainer IndirectContainer Page",
    ),
    **_terms(LDP, "PageSortCriterion Ascending Descending MemberSubject pageSequence"),
    **_terms(LDP, "PreferContainment PreferEmptyContainer PreferMembership PreferMinimalContainer"),
    **_links(
        LDP,
        "contains member membershipResource hasMemberRelation isMemberOfRelation inbox constrainedBy",
    ),
    **_links(LDP, "insertedContentRelation interactionModel"),
    **_links(LDP, "pageSortCollation pageSortCriteria pageSortOrder pageSortPredicate"),
}

_ANNOTATION: Final = {
    **{
        "oa": _OA,
        "dc": _DC,
        "dcterms": DCTERMS,
        "dctypes": _DCTYPES,
        "foaf": _FOAF,
        "rdf": RDF,
        "rdfs": RDFS,
    },
    **{"skos": "http://www.w3.org/2004/02/skos/core#", "xsd": XSD, "as": _AS, "schema": _SCHEMA},
    **{
        "iana": "http://www.iana.org/assignments/relation/",
        "owl": "http://www.w3.org/2002/07/owl#",
    },
    "id": _link("@id"),
    "type": _link("@type"),
    **_terms(_OA, "Annotation TextualBody ResourceSelection SpecificResource Choice Motivation"),
    **_terms(
        _OA, "FragmentSelector CssSelector XPathSelector TextQuoteSelector TextPositionSelector"
    ),
    **_terms(_OA, "DataPositionSelector SvgSelector RangeSelector TimeState HttpRequestState"),
    "CssStylesheet": f"{_OA}CssStyle",
    **_terms(_DCTYPES, "Dataset Text"),
    **{
        "Image": f"{_DCTYPES}StillImage",
        "Video": f"{_DCTYPES}MovingImage",
        "Audio": f"{_DCTYPES}Sound",
    },
    **_terms(_FOAF, "Person Organization name"),
    "Software": f"{_AS}Application",
    "AnnotationCollection": f"{_AS}OrderedCollection",
    "AnnotationPage": f"{_AS}OrderedCollectionPage",
    "Audience": f"{_SCHEMA}Audience",
    **_terms(
        _OA,
        "assessing bookmarking classifying commenting describing editing highlighting identifying linking",
    ),
    **_terms(_OA, "moderating questioning replying reviewing tagging"),
    **{name: f"{_OA}{name}Direction" for name in ("auto", "ltr", "rtl")},
    **{
        name: _link(f"{_OA}has{name.title()}")
        for name in ("body", "target", "source", "selector", "state", "scope")
    },
    **_links(_OA, "refinedBy renderedVia via canonical"),
    "startSelector": _link(f"{_OA}hasStartSelector"),
    "endSelector": _link(f"{_OA}hasEndSelector"),
    "stylesheet": _link(f"{_OA}styledBy"),
    "cached": _link(f"{_OA}cachedSource"),
    "motivation": _link(f"{_OA}motivatedBy", "@vocab"),
    "purpose": _link(f"{_OA}hasPurpose", "@vocab"),
    **_links(_OA, "textDirection", to="@vocab"),
    **_links(DCTERMS, "creator rights conformsTo"),
    **_links(_AS, "generator partOf first last next prev"),
    "items": {**_link(f"{_AS}items"), "@container": "@list"},
    **_links(_FOAF, "homepage"),
    **_links(_SCHEMA, "audience"),
    "accessibility": f"{_SCHEMA}accessibilityFeature",
    **_terms(_OA, "bodyValue processingLanguage exact prefix suffix styleClass"),
    **_terms(_DC, "format language"),
    "value": f"{RDF}value",
    "label": f"{RDFS}label",
    **{"email": f"{_FOAF}mbox", "email_sha1": f"{_FOAF}mbox_sha1sum", "nickname": f"{_FOAF}nick"},
    **_typed(DCTERMS, "dateTime", "created modified"),
    "generated": _link(f"{DCTERMS}issued", f"{XSD}dateTime"),
    **_typed(_OA, "dateTime", "sourceDate sourceDateStart sourceDateEnd"),
    **_typed(_OA, "nonNegativeInteger", "start end"),
    "total": _link(f"{_AS}totalItems", f"{XSD}nonNegativeInteger"),
    **_typed(_AS, "nonNegativeInteger", "startIndex"),
}

_PROVENANCE: Final = {
    "prov": PROV,
    "rdfs": RDFS,
    "xsd": XSD,
    "label": f"{RDFS}label",
    **_terms(
        PROV,
        "Accept Activity ActivityInfluence Agent AgentInfluence Association Attribution Bundle Collection",
    ),
    **_terms(
        PROV,
        "Communication Contribute Contributor Copyright Create Creator Delegation Derivation Dictionary",
    ),
    **_terms(
        PROV,
        "DirectQueryService EmptyCollection EmptyDictionary End Entity EntityInfluence Generation",
    ),
    **_terms(
        PROV,
        "Insertion InstantaneousEvent Invalidation KeyEntityPair Location Modify Organization Person Plan",
    ),
    **_terms(
        PROV,
        "PrimarySource Publish Publisher Quotation Removal Replace Revision RightsAssignment RightsHolder",
    ),
    **_terms(PROV, "Influence Role ServiceDescription SoftwareAgent Start Submit Usage"),
    **_links(
        PROV,
        "actedOnBehalfOf activity agent alternateOf asInBundle atLocation derivedByInsertionFrom",
    ),
    **_links(
        PROV,
        "derivedByRemovalFrom describesService dictionary entity generated hadActivity hadDictionaryMember",
    ),
    **_links(
        PROV,
        "hadGeneration hadMember hadPlan hadPrimarySource hadRole hadUsage has_anchor has_provenance",
    ),
    **_links(
        PROV,
        "has_query_service influenced influencer insertedKeyEntityPair invalidated mentionOf pairEntity",
    ),
    **_links(
        PROV,
        "pingback qualifiedAssociation qualifiedAttribution qualifiedCommunication qualifiedDelegation",
    ),
    **_links(
        PROV,
        "qualifiedDerivation qualifiedEnd qualifiedGeneration qualifiedInfluence qualifiedInsertion",
    ),
    **_links(
        PROV, "qualifiedInvalidation qualifiedPrimarySource qualifiedQuotation qualifiedRemoval"
    ),
    **_links(
        PROV,
        "qualifiedRevision qualifiedStart qualifiedUsage specializationOf used wasAssociatedWith",
    ),
    **_links(
        PROV,
        "wasAttributedTo wasDerivedFrom wasEndedBy wasGeneratedBy wasInfluencedBy wasInformedBy",
    ),
    **_links(PROV, "wasInvalidatedBy wasQuotedFrom wasRevisionOf wasStartedBy"),
    **_typed(
        PROV, "dateTime", "atTime endedAtTime generatedAtTime invalidatedAtTime startedAtTime"
    ),
    **_terms(PROV, "pairKey provenanceUriTemplate removedKey value"),
}

_STREAMS: Final = {
    **CONTEXT,
    "rsp-s": RSP,
    **_terms(RSP, "Stream InputStream OutputStream query"),
}


def _by_iri(contexts: Mapping[str, Any]) -> dict[str, Any]:
    """Contexts by the IRIs that senders write, with either scheme."""
    return {
        f"{scheme}://{iri}": context
        for iri, context in contexts.items()
        for scheme in ("http", "https")
    }


_WHOLE: Final = _by_iri(
    {"www.w3.org/ns/anno": _ANNOTATION, "www.w3.org/ns/anno.jsonld": _ANNOTATION}
)

_OWN: Final = _by_iri(
    {
        "www.w3.org/ns/ldp": _LDP_CONTEXT,
        "www.w3.org/ns/ldp#": _LDP_CONTEXT,
        "www.w3.org/ns/ldp.jsonld": _LDP_CONTEXT,
        "www.w3.org/ns/prov": _PROVENANCE,
        "www.w3.org/ns/prov#": _PROVENANCE,
        "www.w3.org/ns/prov.jsonld": _PROVENANCE,
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

"""JSON-LD contexts that senders of notifications name by IRI, as far as messages need them. Nothing is fetched.

Written from the vocabularies: Linked Data Platform, Activity Streams 2.0, Web Annotation, PROV-O, LDN for RDF streams.
Each has the terms of its vocabulary. A term that the published context has beside them means nothing here.
"""

from __future__ import annotations

from typing import Any, Final

from construct_messages.streams.vocabulary import CONTEXT, DCTERMS, LDP, PROV, RDFS, RSP
from construct_messages.terms import XSD

_AS: Final = "https://www.w3.org/ns/activitystreams#"
_OA: Final = "http://www.w3.org/ns/oa#"


def _terms(namespace: str, names: str) -> dict[str, Any]:
    return {name: f"{namespace}{name}" for name in names.split()}


def _links(namespace: str, names: str) -> dict[str, Any]:
    return {name: {"@id": f"{namespace}{name}", "@type": "@id"} for name in names.split()}


def _typed(namespace: str, datatype: str, names: str) -> dict[str, Any]:
    return {name: {"@id": f"{namespace}{name}", "@type": f"{XSD}{datatype}"} for name in names.split()}


_LDP_CONTEXT: Final = {
    "ldp": LDP,
    **_terms(LDP, "Resource RDFSource NonRDFSource Container BasicContainer DirectContainer IndirectContainer Page"),
    **_links(LDP, "contains member membershipResource hasMemberRelation isMemberOfRelation inbox constrainedBy"),
    **_links(LDP, "insertedContentRelation interactionModel"),
}

_ACTIVITY_STREAMS: Final = {
    "as": _AS,
    "ldp": LDP,
    "xsd": XSD,
    "id": "@id",
    "type": "@type",
    **_terms(_AS, "Accept Activity Add Announce Application Arrive Article Audio Block Collection CollectionPage"),
    **_terms(_AS, "Create Delete Dislike Document Event Flag Follow Group Ignore Image IntransitiveActivity Invite"),
    **_terms(_AS, "Join Leave Like Link Listen Mention Move Note Object Offer OrderedCollection Organization Page"),
    **_terms(_AS, "OrderedCollectionPage Person Place Profile Question Read Reject Relationship Remove Service"),
    **_terms(_AS, "TentativeAccept TentativeReject Tombstone Travel Undo Update Video View content name summary"),
    **_terms(_AS, "mediaType hreflang units"),
    **_links(_AS, "actor attachment attributedTo audience bcc bto cc context current describes first formerType"),
    **_links(_AS, "generator href icon image inReplyTo instrument items last location next object oneOf anyOf origin"),
    **_links(_AS, "partOf prev preview rel relationship replies result subject tag target to url"),
    **_typed(_AS, "dateTime", "deleted endTime published startTime updated closed"),
    **_typed(_AS, "float", "accuracy altitude latitude longitude radius"),
    **_typed(_AS, "nonNegativeInteger", "height width startIndex totalItems"),
    "duration": {"@id": f"{_AS}duration", "@type": f"{XSD}duration"},
    "inbox": {"@id": f"{LDP}inbox", "@type": "@id"},
    "contentMap": {"@id": f"{_AS}content", "@container": "@language"},
    "nameMap": {"@id": f"{_AS}name", "@container": "@language"},
    "summaryMap": {"@id": f"{_AS}summary", "@container": "@language"},
}

_ANNOTATION: Final = {
    "oa": _OA,
    "dcterms": DCTERMS,
    "id": {"@id": "@id", "@type": "@id"},
    "type": {"@id": "@type", "@type": "@id"},
    **_terms(_OA, "Annotation Choice CssSelector DataPositionSelector FragmentSelector HttpRequestState RangeSelector"),
    **_terms(_OA, "ResourceSelection SpecificResource Style SvgSelector TextPositionSelector TextQuoteSelector"),
    **_terms(_OA, "TextualBody TimeState XPathSelector exact prefix suffix styleClass"),
    "body": {"@id": f"{_OA}hasBody", "@type": "@id"},
    "target": {"@id": f"{_OA}hasTarget", "@type": "@id"},
    "source": {"@id": f"{_OA}hasSource", "@type": "@id"},
    "selector": {"@id": f"{_OA}hasSelector", "@type": "@id"},
    "state": {"@id": f"{_OA}hasState", "@type": "@id"},
    "scope": {"@id": f"{_OA}hasScope", "@type": "@id"},
    "motivation": {"@id": f"{_OA}motivatedBy", "@type": "@vocab"},
    "purpose": {"@id": f"{_OA}hasPurpose", "@type": "@vocab"},
    **_terms(_OA, "assessing bookmarking classifying commenting describing editing highlighting identifying linking"),
    **_terms(_OA, "moderating questioning replying tagging"),
    "value": "http://www.w3.org/1999/02/22-rdf-syntax-ns#value",
    "start": {"@id": f"{_OA}start", "@type": f"{XSD}nonNegativeInteger"},
    "end": {"@id": f"{_OA}end", "@type": f"{XSD}nonNegativeInteger"},
    "created": {"@id": f"{DCTERMS}created", "@type": f"{XSD}dateTime"},
    "modified": {"@id": f"{DCTERMS}modified", "@type": f"{XSD}dateTime"},
    "creator": {"@id": f"{DCTERMS}creator", "@type": "@id"},
    "rights": {"@id": f"{DCTERMS}rights", "@type": "@id"},
    "format": "http://purl.org/dc/elements/1.1/format",
    "language": "http://purl.org/dc/elements/1.1/language",
}

_PROVENANCE: Final = {
    "prov": PROV,
    "rdfs": RDFS,
    "xsd": XSD,
    "label": f"{RDFS}label",
    **_terms(PROV, "Activity Agent Association Bundle Collection Entity Organization Person Plan Role SoftwareAgent"),
    **_links(PROV, "actedOnBehalfOf alternateOf generated hadMember hadPrimarySource influenced specializationOf used"),
    **_links(PROV, "wasAssociatedWith wasAttributedTo wasDerivedFrom wasGeneratedBy wasInformedBy wasRevisionOf"),
    **_typed(PROV, "dateTime", "atTime endedAtTime generatedAtTime invalidatedAtTime startedAtTime"),
}

_STREAMS: Final = {
    **CONTEXT,
    "rsp-s": RSP,
    **_terms(RSP, "Stream InputStream OutputStream query"),
}


def _both_schemes(iri: str) -> tuple[str, str]:
    rest = iri.partition("://")[2]
    return f"http://{rest}", f"https://{rest}"


CONTEXTS: Final[dict[str, Any]] = {
    iri: context
    for name, context in {
        "http://www.w3.org/ns/ldp": _LDP_CONTEXT,
        "http://www.w3.org/ns/ldp#": _LDP_CONTEXT,
        "http://www.w3.org/ns/ldp.jsonld": _LDP_CONTEXT,
        "https://www.w3.org/ns/activitystreams": _ACTIVITY_STREAMS,
        "https://www.w3.org/ns/activitystreams#": _ACTIVITY_STREAMS,
        "http://www.w3.org/ns/anno": _ANNOTATION,
        "http://www.w3.org/ns/anno.jsonld": _ANNOTATION,
        "http://www.w3.org/ns/prov": _PROVENANCE,
        "http://www.w3.org/ns/prov#": _PROVENANCE,
        "http://www.w3.org/ns/prov.jsonld": _PROVENANCE,
        "http://w3id.org/rsp/ldn-s": _STREAMS,
        "http://w3id.org/rsp/streams": _STREAMS,
        "http://w3id.org/rsp/streams#": _STREAMS,
    }.items()
    for iri in _both_schemes(name)
}
"""By the IRIs that senders write, with either scheme."""

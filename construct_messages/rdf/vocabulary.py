"""The terms of descriptions of streams, and their JSON-LD context.

LDN for RDF streams (`rsp`, the vocabulary of its prototype), Linked Data Platform, PROV-O, TREE, LDES.
`cm` has the terms of this package that the other vocabularies lack.
"""

from __future__ import annotations

from typing import Any, Final

from construct_messages.rdf.terms import XSD
from construct_messages.rdf.wire import ENDPOINTS, Property

CM: Final = "https://w3id.org/construct-messages#"
RSP: Final = "http://w3id.org/rsp/streams#"
LDP: Final = "http://www.w3.org/ns/ldp#"
LDES: Final = "https://w3id.org/ldes#"
TREE: Final = "https://w3id.org/tree#"
DCTERMS: Final = "http://purl.org/dc/terms/"
PROV: Final = "http://www.w3.org/ns/prov#"
RDFS: Final = "http://www.w3.org/2000/01/rdf-schema#"

PROFILE: Final = "https://w3id.org/tree/profile"
"""The TREE profile: a page has its hypermedia first, and then the quads of each member together."""

PREFIXES: Final = {"cm": CM, "ldp": LDP, "prov": PROV, "rdfs": RDFS, "rsp": RSP, "xsd": XSD}


def _link(iri: str) -> dict[str, str]:
    return {"@id": iri, "@type": "@id"}


CONTEXT: Final[dict[str, Any]] = {
    **PREFIXES,
    "label": "rdfs:label",
    **{name: _link(f"{prefix}:{name}") for name, prefix in ENDPOINTS.items()},
    "contains": {**_link("ldp:contains"), "@container": "@set"},
    "generatedAtTime": {"@id": "prov:generatedAtTime", "@type": "xsd:dateTime"},
    **{
        name: {"@id": f"cm:{name}", "@type": "xsd:integer"}
        for name in (Property.SEQUENCE, Property.FIRST_SEQUENCE, Property.LAST_SEQUENCE)
    },
    "retainedElements": {"@id": "cm:retainedElements", "@type": "xsd:integer"},
    "retainedSeconds": {"@id": "cm:retainedSeconds", "@type": "xsd:double"},
    "retainedBytes": {"@id": "cm:retainedBytes", "@type": "xsd:integer"},
    "publish": "cm:publish",
    "queryText": "rsp:query",
    "inputs": {**_link("prov:wasDerivedFrom"), "@container": "@set"},
    "status": "cm:status",
    "error": "cm:error",
    "taken": {"@id": "cm:taken", "@type": "xsd:integer"},
    "given": {"@id": "cm:given", "@type": "xsd:integer"},
    "dropped": {"@id": "cm:dropped", "@type": "xsd:integer"},
    "droppedLate": {"@id": "cm:droppedLate", "@type": "xsd:integer"},
    "droppedUntimed": {"@id": "cm:droppedUntimed", "@type": "xsd:integer"},
    "droppedAhead": {"@id": "cm:droppedAhead", "@type": "xsd:integer"},
    "droppedSkipped": {"@id": "cm:droppedSkipped", "@type": "xsd:integer"},
    "evaluations": {"@id": "cm:evaluations", "@type": "xsd:integer"},
    "evaluationSeconds": {"@id": "cm:evaluationSeconds", "@type": "xsd:double"},
    "slowestSeconds": {"@id": "cm:slowestSeconds", "@type": "xsd:double"},
    "memoryBytes": {"@id": "cm:memoryBytes", "@type": "xsd:integer"},
    "plan": "cm:plan",
    "restarts": {"@id": "cm:restarts", "@type": "xsd:integer"},
    "lag": {"@id": "cm:lag", "@type": "xsd:integer"},
    **{name: _link(f"cm:{name}") for name in (Property.STREAM, Property.NEXT, Property.PREVIOUS)},
}
"""The context of all descriptions; each description includes it, so that it need not be fetched."""

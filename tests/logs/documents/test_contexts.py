"""The contexts that are known without a fetch have every term of the published ones, and lose nothing."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyoxigraph as ox
import pytest
from pyld import jsonld  # type: ignore[import-untyped] # it has no type information
from pyld.context_resolver import ContextResolver  # type: ignore[import-untyped] # nor has this
from pyld.documentloader.frozen import BUNDLED_CONTEXTS  # type: ignore[import-untyped] # nor has this

from construct_messages.errors import LogError, ProtocolError
from construct_messages.feeds.http.discovery import document_in
from construct_messages.feeds.transport import Settings
from construct_messages.logs.documents import CONTEXTS, KnownContexts
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import RDF, XSD
from construct_messages.rdf.wire import CONTEXT_RELATION
from construct_messages.server.streams.publishing import read_messages
from tests.support.logs.json_ld import NODE
from tests.support.places import absent

ACTIVITY_STREAMS = "https://www.w3.org/ns/activitystreams"
ANNOTATION = "http://www.w3.org/ns/anno.jsonld"
LDP = "http://www.w3.org/ns/ldp"
PROV = "http://www.w3.org/ns/prov"


def received(document: Any, media_type: str = "application/ld+json") -> Message:
    """A document as an inbox takes it."""
    (message,) = read_messages(
        media_type, json.dumps(document).encode(), base="http://e/", message_bytes=1 << 20, most=1
    )
    return message


def response(media_type: str, *, context: str | None = None) -> Any:
    """A response with what is read of it but its body."""
    links = {} if context is None else {CONTEXT_RELATION: {"url": context}}
    return SimpleNamespace(headers={"Content-Type": media_type}, links=links, url="http://e/")


def settings(contexts: KnownContexts) -> Settings:
    return Settings(contexts=contexts, message_bytes=1000, retries=0, idle_seconds=60)


def objects(message: Message, predicate: str) -> set[str]:
    return {quad.object for quad in message if quad.predicate == f"<{predicate}>"}


def package(name: str) -> Path:
    folder = NODE / "node_modules" / name
    if not folder.exists():
        absent(
            f"npm's {name} is absent: set CONSTRUCT_MESSAGES_NODE to the folder that holds its node_modules"
        )
    return folder


def mappings(context: Any) -> dict[str, Any]:
    """What the terms of a context stand for, by PyLD."""
    processor = jsonld.JsonLdProcessor()
    options = {
        "base": "",
        "processingMode": "json-ld-1.1",
        "contextResolver": ContextResolver({}, None),
    }
    found: dict[str, Any] = processor.process_context(
        processor._get_initial_context(options), context, options
    )
    return {term: dict(mapping) for term, mapping in found["mappings"].items()}


# --- term by term -------------------------------------------------------------------------------------------------


def test_activity_streams_has_every_term_of_the_published_context() -> None:
    published = mappings(
        json.loads((package("activitystreams-context") / "context.json").read_text())
    )
    known = mappings(CONTEXTS[ACTIVITY_STREAMS])
    assert len(published) > 140
    assert {term: known.get(term) for term in published} == published
    # which the package has not, as it is older
    assert known.keys() - published.keys() == {"vcard", "alsoKnownAs"}


@cache
def terms_of(name: str, namespace: str) -> frozenset[str]:
    """The classes, properties and individuals of a vocabulary, by npm's copy of it."""
    text = (package(f"@vocabulary/{name}") / f"{name}.nq").read_bytes()
    typed = [
        quad
        for quad in ox.parse(text, format=ox.RdfFormat.N_QUADS)
        if quad.predicate.value == f"{RDF}type"
    ]
    return frozenset(
        quad.subject.value
        for quad in typed
        if isinstance(quad.subject, ox.NamedNode)
        and quad.subject.value.startswith(namespace)
        and quad.subject.value != namespace
        and not str(quad.object).endswith("#AnnotationProperty>")
    )


# what Web Annotation's context, which names them by other words or not at all, leaves to their IRIs
WITHOUT_A_TERM = {
    *(
        "Direction",
        "PreferContainedDescriptions",
        "PreferContainedIRIs",
        "Selector",
        "State",
        "Style",
    ),
    "annotationService",
}


@pytest.mark.parametrize(
    ("iri", "name", "namespace", "without"),
    [
        (ANNOTATION, "oa", "http://www.w3.org/ns/oa#", WITHOUT_A_TERM),
        (LDP, "ldp", "http://www.w3.org/ns/ldp#", set[str]()),
        (PROV, "prov", "http://www.w3.org/ns/prov#", set[str]()),
    ],
)
def test_contexts_have_every_term_of_their_vocabulary(
    iri: str, name: str, namespace: str, without: set[str]
) -> None:
    terms = terms_of(name, namespace)
    assert len(terms) > 25
    known = {mapping["@id"] for mapping in mappings(CONTEXTS[iri]).values()}
    assert {term.removeprefix(namespace) for term in terms - known} == without


def test_the_published_files_are_those_of_pyld() -> None:
    for iri, path in BUNDLED_CONTEXTS.items():
        assert CONTEXTS[iri] == json.loads(path.read_text("utf-8"))
        assert CONTEXTS[iri.replace("https:", "http:")] is CONTEXTS[iri]


# --- nothing is lost ----------------------------------------------------------------------------------------------


def test_a_collection_keeps_its_items() -> None:
    message = received(
        {
            "@context": ACTIVITY_STREAMS,
            "id": "urn:c",
            "type": "OrderedCollection",
            "totalItems": 2,
            "orderedItems": ["urn:1", "urn:2"],
        }
    )
    assert objects(message, f"{RDF}first") == {"<urn:1>", "<urn:2>"}
    assert len(objects(message, f"{ACTIVITY_STREAMS}#items")) == 1


def test_an_annotation_keeps_its_body() -> None:
    message = received(
        {
            "@context": ANNOTATION,
            "type": "Annotation",
            "bodyValue": "church",
            "via": "urn:via",
            "target": "urn:t",
        }
    )
    assert objects(message, "http://www.w3.org/ns/oa#bodyValue") == {'"church"'}
    assert objects(message, "http://www.w3.org/ns/oa#via") == {"<urn:via>"}


@pytest.mark.parametrize(
    "iri", [ACTIVITY_STREAMS, ANNOTATION, LDP, PROV, "http://w3id.org/rsp/ldn-s"]
)
def test_a_value_of_each_term_is_kept(iri: str) -> None:
    given = {
        term: mapping
        for term, mapping in mappings(CONTEXTS[iri]).items()
        if not mapping["@id"].startswith("@") and not mapping["_prefix"]
    }
    assert len(given) > 20
    for term, mapping in given.items():
        containers = mapping.get("@container", [])
        value: Any = (
            {"en": "x"}
            if "@language" in containers
            else "urn:x"
            if mapping.get("@type") == "@id"
            else "1"
        )
        message = received({"@context": iri, "@id": "urn:s", term: value})
        assert objects(message, mapping["@id"]), term


# --- names that are unknown ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "name"),
    [
        ({"@id": "urn:s", "contain": "urn:x"}, "contain"),
        ({"@id": "urn:s", "contains": {"@id": "urn:x", "label": "x"}}, "label"),
        ({"@id": "urn:s", "@type": "Conteiner"}, "Conteiner"),
        ({"@id": "urn:s", "@type": ["Container", "b c"]}, "b c"),
        ({"id": "urn:s", "ldp:contains": {"@id": "urn:x"}}, "id"),
        ({"@id": "urn:s", "ldp:contains": {"@value": "x", "@type": "date"}}, "date"),
        ({"@id": "urn:s", "@reverse": {"contained": {"@id": "urn:x"}}}, "contained"),
    ],
)
def test_a_name_that_an_own_context_does_not_know_is_refused(document: Any, name: str) -> None:
    with pytest.raises(
        ProtocolError, match=f'"{name}" is no name of the vocabulary whose context is <{LDP}>'
    ) as raised:
        received({"@context": LDP, **document})
    assert raised.value.status == 422
    assert raised.value.hint == "write its IRI, or define it in the @context of the document"


def test_a_name_that_the_document_defines_is_known() -> None:
    own = {"label": "http://example.org/label", "Conteiner": "http://example.org/C"}
    message = received({"@context": [LDP, own], "@id": "urn:s", "@type": "Conteiner", "label": "x"})
    assert objects(message, "http://example.org/label") == {'"x"'}
    message = received(
        {"@context": [LDP, {"@vocab": "http://example.org/"}], "@id": "urn:s", "label": "x"}
    )
    assert objects(message, "http://example.org/label") == {'"x"'}


def test_descriptions_may_say_more_than_is_understood() -> None:
    assert "@vocab" in KnownContexts()[LDP]
    assert "@vocab" not in KnownContexts().for_descriptions()[LDP]
    given = KnownContexts({LDP: {"a": "urn:a"}, "urn:c": {}}).for_descriptions()
    assert given[LDP] == {"a": "urn:a"}
    assert "urn:c" in given


# --- the context that a media type implies (Activity Streams 2.0, section 2.1) ----------------------------------------

FOLLOW = {
    "id": "urn:f",
    "type": "Follow",
    "actor": "https://a.example/ada",
    "object": "https://b.example/bob",
}
PROFILED = f'application/ld+json; profile="http://example.org/other {ACTIVITY_STREAMS}"'
EXTENDED = {
    "@context": {"toot": "http://joinmastodon.org/ns#", "votersCount": "toot:votersCount"},
    "votersCount": 3,
}


@pytest.mark.parametrize(
    "media_type", ["application/activity+json", "Application/Activity+JSON;charset=utf-8", PROFILED]
)
def test_activities_need_no_context(media_type: str) -> None:
    written = received({"@context": ACTIVITY_STREAMS, **FOLLOW})
    assert len(written) == 3
    assert received(FOLLOW, media_type) == written
    assert received({"@context": [ACTIVITY_STREAMS], **FOLLOW}, media_type) == written
    assert received([FOLLOW], media_type) == written
    message = received({**FOLLOW, **EXTENDED}, media_type)
    assert len(message) == 4
    assert objects(message, "http://joinmastodon.org/ns#votersCount") == {f'"3"^^<{XSD}integer>'}


def test_other_json_ld_has_no_implied_context() -> None:
    assert not received(FOLLOW)
    assert not received(FOLLOW, "application/json")


def test_a_graph_of_activities_is_the_default_graph() -> None:
    message = received({"@graph": [FOLLOW]}, "application/activity+json")
    assert {quad.graph for quad in message} == {None}
    assert len(message) == 3


@pytest.mark.parametrize(
    "twice", [b'{"id": "urn:a", "id": "urn:b"}', b'{"@context": [], "@context": {}}']
)
def test_a_key_twice_is_an_error_under_an_implied_context(twice: bytes) -> None:
    with pytest.raises(ProtocolError, match="occurs twice in one object"):
        read_messages(
            "application/activity+json", twice, base="http://e/", message_bytes=1000, most=1
        )
    answer = response("application/json", context="urn:c")
    with pytest.raises(LogError, match="occurs twice in one object"):
        document_in(answer, settings(KnownContexts({"urn:c": {}}))).read(twice, 1)


def test_subscribers_read_activities() -> None:
    reader = document_in(response("application/activity+json"), settings(CONTEXTS))
    assert reader.read(json.dumps(FOLLOW).encode(), 1) == received(
        FOLLOW, "application/activity+json"
    )

"""The service description of an endpoint: its languages and result formats, including logs.

SPARQL 1.1 Service Description (https://www.w3.org/TR/sparql11-service-description/). The format of a log is a
`formats:Format` of the W3C's vocabulary of file formats (https://www.w3.org/ns/formats/), identified by its media type
with parameters and by the specification that it conforms to. The description of the source endpoint is merged in.
Fetches nothing.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyoxigraph as ox

from construct_messages.errors import LimitExceeded
from construct_messages.logs.rdfxml import DocumentLimits, NTriplesFile
from construct_messages.rdf.formats import LOGS, content_type
from construct_messages.rdf.formats.media_types import TRIPLES
from construct_messages.rdf.formats.negotiation import prefer
from construct_messages.rdf.terms import iri

_RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDFS: Final = "http://www.w3.org/2000/01/rdf-schema#"
_SD: Final = "http://www.w3.org/ns/sparql-service-description#"
_FORMATS: Final = "http://www.w3.org/ns/formats/"
_DCT: Final = "http://purl.org/dc/terms/"
_PREFIXES: Final = {"rdfs": _RDFS, "sd": _SD, "formats": _FORMATS, "dct": _DCT}

_TYPE: Final = ox.NamedNode(_RDF + "type")
_ENDPOINT: Final = ox.NamedNode(_SD + "endpoint")
_SERVICE: Final = ox.NamedNode(_SD + "Service")
_RESULT_FORMAT: Final = ox.NamedNode(_SD + "resultFormat")

_WRITTEN: Final = {format.media_type: format.parsed_as for format in TRIPLES}
MEDIA_TYPES: Final = tuple(_WRITTEN)
"""The formats of a description, best first."""

_SPECIFICATIONS: Final = {
    True: "https://www.pieter.pm/rdf-messages",
    False: "https://w3c-cg.github.io/rsp/messages/",
}
"""The IRIs of a syntax, by whether its delimiters are comments."""


@dataclass(frozen=True)
class ServiceDescription:
    """A description to send; `left_out` says why that of the source endpoint was not merged, if it was not."""

    content_type: str
    body: bytes
    left_out: str | None


def describe(
    url: str,
    accept: str | None = None,
    *,
    languages: Sequence[str] = ("SPARQL11Query",),
    results: Sequence[str] = (),
    refused: Collection[str] = (),
    extended: tuple[str, bytes] | None = None,
) -> ServiceDescription:
    """Returns the description of an endpoint.

    `languages` are names of `sd:Language`, such as `SPARQL11Update`. `refused` are languages and features that this
    server rejects, even if the source supports them, such as `BasicFederatedQuery`. `extended` is the Content-Type and
    the body of the source endpoint's own description.

    >>> print(describe("http://example.org/sparql", "application/n-triples").body.decode().splitlines()[0])
    <http://example.org/sparql> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> \
<http://www.w3.org/ns/sparql-service-description#Service> .
    """
    media_type = prefer(accept, MEDIA_TYPES)
    service = ox.NamedNode(iri(url)[1:-1])
    taken, left_out = _taken_over(*extended, service, refused) if extended else ([], None)
    triples = dict.fromkeys((*_own(service, languages, results), *taken))
    # N-Quads and TriG also carry triples, in the default graph
    body = ox.serialize(triples, format=_WRITTEN[media_type], prefixes=_PREFIXES)
    return ServiceDescription(media_type, body or b"", left_out)


def _own(
    service: ox.NamedNode, languages: Sequence[str], results: Sequence[str]
) -> Iterator[ox.Triple]:
    yield ox.Triple(service, _TYPE, _SERVICE)
    yield ox.Triple(service, _ENDPOINT, service)
    for name in languages:
        yield ox.Triple(service, ox.NamedNode(_SD + "supportedLanguage"), ox.NamedNode(_SD + name))
    for media_type in results:
        known = ox.QueryResultsFormat.from_media_type(media_type) or ox.RdfFormat.from_media_type(
            media_type
        )
        if known is not None:
            yield ox.Triple(service, _RESULT_FORMAT, ox.NamedNode(known.iri))
        else:
            yield from _format(service, media_type, media_type)
    for type in LOGS:
        log = yield from _format(
            service, content_type(*type), f"RDF Messages in {type.format.name}"
        )
        specification = ox.NamedNode(_SPECIFICATIONS[type.syntax.delimiter_first])
        yield ox.Triple(log, ox.NamedNode(_DCT + "conformsTo"), specification)
        yield ox.Triple(
            log,
            ox.NamedNode(_FORMATS + "preferred_suffix"),
            ox.Literal(f".{type.format.extension}"),
        )


def _format(
    service: ox.NamedNode, media_type: str, label: str
) -> Generator[ox.Triple, None, ox.BlankNode]:
    """Adds a format without IRI and returns its node."""
    node = ox.BlankNode()
    yield ox.Triple(service, _RESULT_FORMAT, node)
    yield ox.Triple(node, _TYPE, ox.NamedNode(_FORMATS + "Format"))
    yield ox.Triple(node, ox.NamedNode(_RDFS + "label"), ox.Literal(label, language="en"))
    yield ox.Triple(node, ox.NamedNode(_FORMATS + "media_type"), ox.Literal(media_type))
    return node


def _taken_over(
    content_type: str, body: bytes, service: ox.NamedNode, refused: Collection[str]
) -> tuple[list[ox.Triple], str | None]:
    """Returns the triples of another endpoint's description as triples about this service, or the reason why there are
    none.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    format = ox.RdfFormat.from_media_type(media_type)
    if format is None:
        return [], f"its description is {media_type or 'of no media type'}, which is not RDF"
    try:
        document: Any = body
        if format == ox.RdfFormat.RDF_XML:
            document = NTriplesFile(io.BytesIO(body), service.value, DocumentLimits(doctype=False))
            format = ox.RdfFormat.N_TRIPLES
        # relative IRIs refer to this service; blank nodes are renamed, to be distinct from those of this description
        quads = list(
            ox.parse(document, format=format, base_iri=service.value, rename_blank_nodes=True)
        )
    except (SyntaxError, ValueError, LimitExceeded) as error:
        return [], f"its description is not read: {error}"
    if any(quad.graph_name != ox.DefaultGraph() for quad in quads):
        return [], "its description holds named graphs"
    described = {
        quad.subject for quad in quads if quad.predicate == _TYPE and quad.object == _SERVICE
    }
    if len(described) != 1:
        return [], f"its description is of {len(described)} services"
    theirs = described.pop()
    unwanted = {ox.NamedNode(_SD + name) for name in refused}
    return [
        ox.Triple(
            service if quad.subject == theirs else quad.subject,
            quad.predicate,
            service if quad.object == theirs else quad.object,
        )
        for quad in quads
        if quad.predicate != _ENDPOINT and quad.object not in unwanted
    ], None

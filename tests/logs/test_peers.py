"""Other programs read the logs of this package, and it reads theirs: real data, both ways.

A difference is a bug of ours, or stands in `THEIRS` with its reason, and in docs/reference/log-peers.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import pytest
import rdflib

from construct_messages import construct_messages
from construct_messages.logs import EncoderOptions, encoder_for
from construct_messages.logs.jelly.wire import delimited
from construct_messages.rdf.formats import JELLY, NDJSON_LD, RDF_XML
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import is_triple
from tests.support.logs.kinds import Kind, isomorphic, read, write
from tests.support.logs.peers import PEERS, PREFIXES, THEIRS, Peer, node_process
from tests.support.logs.seeds import DIRECTIONS, GRAPHS, PLAIN, TRIPLE_TERMS
from tests.support.places import shared_path

# rdflib's own parsers use what it deprecates
pytestmark = [
    pytest.mark.engine,
    pytest.mark.suite,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def _literals_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    # else rdflib makes "1" of "01"
    monkeypatch.setattr(rdflib, "NORMALIZE_LITERALS", False)


@pytest.fixture(scope="module", autouse=True)
def _node_process_ends() -> Iterator[None]:
    yield
    if node_process.cache_info().currsize:
        node_process().communicate(timeout=120)
        node_process.cache_clear()  # other tests of this module may yet be given to this worker


# --- messages --------------------------------------------------------------------------------------------------------

SUBJECTS: Final = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
IN_GRAPHS: Final = "CONSTRUCT { ?s a ?class . GRAPH ?s { ?s ?p ?o } } WHERE { ?s a ?class ; ?p ?o }"
QUERIES: Final[dict[str, tuple[str, str]]] = {
    "countries": ("dbpedia-countries.nt", SUBJECTS),
    "species": ("dbpedia-links-eunis.nt", SUBJECTS),
    "units": ("qudt-units.ttl", SUBJECTS),
    "building": ("brick-mediumOffice.ttl", SUBJECTS),
    "teams in graphs": ("spb-football.ttl", IN_GRAPHS),
}
MADE: Final[dict[str, list[Message]]] = {
    "plain": PLAIN,
    "graphs": [*PLAIN, *GRAPHS],
    "triple terms": TRIPLE_TERMS,
    "directions": DIRECTIONS,
    "no message": [],
}


@cache
def corpus(name: str) -> list[Message]:
    if name in MADE:
        return MADE[name]
    file, query = QUERIES[name]
    source = str(shared_path(f"data/{file}"))
    return list(construct_messages(query, source, group_by=["s"], max_messages=20))


def corpora(kind: Kind) -> list[str]:
    return [
        name
        for name in (*QUERIES, *MADE)
        if (kind.format.graphs or "graphs" not in name)
        and (kind.syntax.triple_terms or name != "triple terms")
        and (kind.syntax.directions or name != "directions")
    ]


def cases(way: str) -> list[Any]:
    found = []
    for peer in PEERS:
        if (peer.read if way == "reads" else peer.write) is None:
            continue
        for kind in peer.kinds:
            for name in corpora(kind):
                key = (peer.name, way, kind.format.extension, name)
                reasons = [why for what, why in THEIRS.items() if all(map(re.fullmatch, what, key))]
                marks = [pytest.mark.xfail(reason=why, strict=True) for why in reasons]
                found.append(
                    pytest.param(peer, kind, name, id="-".join(key).replace(" ", "_"), marks=marks)
                )
    return found


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("peer", "kind", "name"), cases("reads"))
def test_peers_read_what_we_write(peer: Peer, kind: Kind, name: str) -> None:
    messages = corpus(name)
    assert peer.read
    found = peer.read(write(messages, kind, PREFIXES), kind.format)
    if peer.flat:
        messages = [Message(quad for message in messages for quad in message)]
    assert isomorphic(found, messages)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("peer", "kind", "name"),
    # pyling-n3 has one function for logs, which wants their version label
    [
        case
        for case in cases("reads")
        if case.values[0].name != "pyling-n3" and case.values[2] != "no message"
    ],
)
def test_peers_read_each_message_as_a_document(peer: Peer, kind: Kind, name: str) -> None:
    """As they come by a transport that frames messages itself: none depends on another, or on how logs delimit them."""
    messages = corpus(name)
    triple_terms = any(is_triple(quad.object) for message in messages for quad in message)
    encoder = encoder_for(
        kind.format, kind.syntax, EncoderOptions(PREFIXES, triple_terms=triple_terms)
    )
    found = []
    for message in messages:
        document = encoder.encode_document(message)
        if kind.format in (NDJSON_LD, RDF_XML):  # these peers read lines
            document += b"\n"
        elif "rdfjs-jelly" in peer.name:  # which reads delimited frames only
            document = delimited(document)
        assert peer.read
        found.append(Message(quad for part in peer.read(document, kind.format) for quad in part))
    assert isomorphic(found, messages)


@pytest.mark.parametrize("name", ["countries", "building", "teams in graphs", "graphs"])
@pytest.mark.parametrize(
    "peer", [peer for peer in PEERS if peer.kinds[0].format == JELLY], ids=lambda peer: peer.name
)
def test_peers_read_jelly_documents_as_frames(peer: Peer, name: str) -> None:
    """A gRPC stream may begin with any of them: each names its options, and the ids of its entries."""
    encoder = encoder_for(*peer.kinds[0], EncoderOptions(PREFIXES))
    assert peer.read
    frames = b"".join(delimited(encoder.encode_document(message)) for message in corpus(name))
    assert isomorphic(peer.read(frames, JELLY), corpus(name))


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("peer", "kind", "name"), cases("writes"))
def test_we_read_what_peers_write(peer: Peer, kind: Kind, name: str) -> None:
    messages = corpus(name)
    assert peer.write
    found = read([peer.write(messages, kind.format)], kind)
    assert found.error is None
    assert isomorphic(found.messages, messages)

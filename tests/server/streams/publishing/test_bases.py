"""Relative IRIs in what is published resolve against the element that a message becomes; rdflib says to what.

Linked Data Platform, section 5.2.3.7; RFC 3986, section 5.1.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from urllib.parse import urljoin

import pytest
import rdflib
from rdflib.compare import isomorphic

from construct_messages.streams.store import open_store
from tests.support.http.streams import StreamsServer

ACTIVITY = {"@context": {"as": "https://www.w3.org/ns/activitystreams#", "@vocab": "urn:v#"}}
DOCUMENTS = {
    "text/turtle": (
        "turtle",
        "<> <#p> <x>, <../y>, </z>, <#f>, <//example.org/o>, 'literal' . [] <urn:p> <> .",
    ),
    "application/trig": ("trig", "<> <#p> <x> . <#graph> { <> <urn:p> <#f> . }"),
    "application/n-triples": ("nt", "<urn:s> <urn:p> <urn:o> ."),
    "application/rdf+xml": (
        "xml",
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:v="urn:v#">'
        '<rdf:Description rdf:about=""><v:p rdf:resource="x"/></rdf:Description><v:C rdf:ID="f"/></rdf:RDF>',
    ),
    "application/ld+json": (
        "json-ld",
        json.dumps(
            {
                **ACTIVITY,
                "@id": "",
                "@type": "as:Announce",
                "as:object": {"@id": "#f"},
                "p": [1, {"@id": "x"}],
            }
        ),
    ),
}


def dataset(text: str | bytes, format: str, base: str | None = None) -> rdflib.Dataset:
    return rdflib.Dataset().parse(data=text, format=format, publicID=base)  # type: ignore[return-value] # a Dataset


def same(one: rdflib.Dataset, other: rdflib.Dataset) -> bool:
    def graphs(of: rdflib.Dataset) -> dict[object, rdflib.Graph]:
        return {graph.identifier: graph for graph in of.graphs() if len(graph)}

    these, those = graphs(one), graphs(other)
    return these.keys() == those.keys() and all(
        isomorphic(these[name], those[name]) for name in these
    )


@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated", "ignore:Dataset")
@pytest.mark.parametrize("media_type", DOCUMENTS)
@pytest.mark.parametrize("endpoint", ["input", "inbox"])
async def test_the_base_is_the_created_resource(
    served: StreamsServer, endpoint: str, media_type: str
) -> None:
    format, text = DOCUMENTS[media_type]
    for _ in range(2):
        sent = await served.ask("POST", f"/streams/a/{endpoint}", text.encode(), media_type)
        assert sent.status == 201
        element = sent.headers["Location"]
        read = await served.ask("GET", element, Accept="application/n-quads")
        assert same(dataset(read.body, "nquads"), dataset(text, format, element))


async def test_a_query_alone_keeps_the_path(served: StreamsServer) -> None:
    """RFC 3986, section 5.2.2; rdflib takes the last segment away."""
    sent = await served.ask("POST", "/streams/a/input", b"<?q> <urn:p> 1 .", "text/turtle")
    assert await subjects(served, sent.headers["Location"]) == {
        urljoin(sent.headers["Location"], "?q")
    }


async def test_notifications_without_a_name_are_about_themselves(served: StreamsServer) -> None:
    body = json.dumps(
        {"@context": "https://www.w3.org/ns/activitystreams", "id": "", "type": "Announce"}
    ).encode()
    located = [
        (await served.ask("POST", "/streams/a/inbox", body, "application/ld+json")).headers[
            "Location"
        ]
        for _ in range(3)
    ]
    assert [await subjects(served, each) for each in located] == [{each} for each in located]


async def test_each_message_of_a_log_has_the_base_of_its_own(served: StreamsServer) -> None:
    """And a base that the log declares holds from there on."""
    messages = (
        b"<> <urn:p> 1 .\n",
        b"<> <urn:p> 2 .\n",
        b"BASE <urn:b>\n<> <urn:p> 3 .\n",
        b"<> <urn:p> 4 .\n",
    )
    log = b"# @message\n".join(messages)
    sent = await served.ask("POST", "/streams/a/input", log, "text/turtle; messages=rdfm")
    assert sent.json["elements"] == 4
    of = [f"{served.url}/streams/a/output/{sequence}" for sequence in range(1, 5)]
    assert [await subjects(served, each) for each in of] == [{of[0]}, {of[1]}, {"urn:b"}, {"urn:b"}]


@pytest.mark.parametrize("subprotocol", ["rdfm.turtle", "rdfm.ld-json"])
async def test_frames(served: StreamsServer, subprotocol: str) -> None:
    frame = '{"@id": "", "urn:p": 1}' if "json" in subprotocol else "<> <urn:p> 1 ."
    async with served.client.ws_connect(
        f"{served.url}/streams/a/input", protocols=(subprotocol,)
    ) as socket:
        assert socket.protocol == subprotocol
        for _ in range(3):
            await socket.send_str(frame)
        located = [json.loads((await socket.receive()).data)["first"] for _ in range(3)]
    assert [await subjects(served, each) for each in located] == [{each} for each in located]


async def test_a_key_is_known_whatever_the_base_was(served: StreamsServer) -> None:
    """What was published is the same, and so is where it is."""
    answers = [
        await served.ask(
            "POST", "/streams/a/input", b"<> <urn:p> _:b .", "text/turtle", Idempotency_Key="k"
        )
        for _ in range(2)
    ]
    assert [answer.status for answer in answers] == [201, 201]
    assert len({answer.headers["Location"] for answer in answers}) == 1
    other = await served.ask(
        "POST", "/streams/a/input", b"<x> <urn:p> _:b .", "text/turtle", Idempotency_Key="k"
    )
    assert other.status == 422


async def test_the_store_counts_what_it_keeps(served: StreamsServer) -> None:
    """The bytes of a stream are those of its elements, in which a sequence is shorter than what stood for it."""
    await served.ask("POST", "/streams/a/input", b"<> <urn:p> <#x>, <> .", "text/turtle")
    own = f"{served.url}/streams/a/output/2"
    twice = f"<> <urn:p> 1 . <{own}> <urn:p> 1 .".encode()
    await served.ask("POST", "/streams/a/input", twice, "text/turtle")
    with open_store(served.streams._store.path, read_only=True) as store:
        elements = list(store.read("a"))
        assert store.state("a").bytes == sum(len(element.nquads) for element in elements)
    assert len(elements[1].message) == elements[1].nquads.count(b"\n") + 1 == 1, (
        "a message is a set"
    )


async def subjects(served: StreamsServer, element: str) -> set[str]:
    read = await served.ask("GET", element, Accept="application/n-triples")
    return set(map(str, rdflib.Graph().parse(data=read.body, format="nt").subjects()))


async def pulled(served: StreamsServer, url: str) -> Iterable[str]:
    read = await served.ask("GET", url, Accept="application/n-quads; messages=rdfm")
    assert read.status == 200
    return read.body.decode().split("# @message\n")[1:]


async def test_the_location_of_a_log_means_the_same_elements_for_good(
    served: StreamsServer,
) -> None:
    def log(*numbers: int) -> bytes:
        return b"".join(b'# @message\n<urn:s> <urn:p> "%d" .\n' % number for number in numbers)

    media_type = "application/n-quads; messages=rdfm"
    await served.ask("POST", "/streams/a/input", log(0, 0, 0), media_type)
    sent = await served.ask("POST", "/streams/a/input", log(1, 2), media_type)
    location = sent.headers["Location"]
    assert location == f"{served.url}/streams/a/output?after=3&before=6"
    expected = ['<urn:s> <urn:p> "1" .\n', '<urn:s> <urn:p> "2" .\n']
    assert await pulled(served, location) == expected
    for _ in range(3):
        await served.ask("POST", "/streams/a/input", log(3, 4), media_type)
        assert await pulled(served, location) == expected
    for query, numbers in (
        ("before=4", [1, 2, 3]),
        ("before=99&last=1", [11]),
        ("before=6&last=1", [5]),
        ("before=1", []),
    ):
        answer = await served.ask("GET", f"/streams/a/output?{query}", Accept="application/ld+json")
        assert [int(each["@id"].rpartition("/")[2]) for each in answer.json["@graph"]] == numbers
    # what retention took is not left out silently
    await served.ask("PUT", "/streams/a", b'{"retainedElements": 7}', "application/json")
    assert (await served.ask("GET", location, Accept=media_type)).status == 410


@pytest.mark.parametrize(
    ("query", "said"), [("before=x", "whole number"), ("before=1&before=2", "given 2 times")]
)
async def test_bounds_that_are_none(served: StreamsServer, query: str, said: str) -> None:
    answer = await served.ask("GET", f"/streams/a/output?{query}", Accept="application/trig")
    assert (answer.status, said in answer.json["detail"]) == (400, True)


async def test_followers_have_no_upper_bound(served: StreamsServer) -> None:
    for endpoint in ("events?before=3", "events?until=2026-01-01T00:00:00Z"):
        answer = await served.ask("GET", f"/streams/a/{endpoint}")
        assert (answer.status, "pull" in answer.json["hint"]) == (400, True)

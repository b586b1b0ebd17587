"""LDN for RDF streams, row by row: discovery, publishing, listing, elements, sequences."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pyoxigraph as ox
import pytest
import rdflib

from construct_messages import Message, Quad, iri, read_log
from construct_messages.rdf.vocabulary import CM, LDP, RSP
from tests.support.http.streams import StreamsServer, serving_streams
from tests.support.streams import numbered

TURTLE = "text/turtle"
JSON_LD = "application/ld+json"
ELEMENT = b"<urn:s> <urn:p> 1 ."


async def test_discovery(served: StreamsServer) -> None:
    """Rows 1 to 4: a stream is an IRI, described in the body and in Link headers, with an endpoint for each use."""
    stream = f"{served.url}/streams/a"
    answer = await served.ask("GET", "/streams/a")
    assert (answer.status, answer.headers["Content-Type"]) == (200, JSON_LD)
    described = answer.json
    assert described["@id"] == stream
    assert {
        name: described[name] for name in ("inbox", "input", "output", "push", "websocket", "ldes")
    } == {
        "inbox": f"{stream}/inbox",
        "input": f"{stream}/input",
        "output": f"{stream}/output",
        "push": f"{stream}/events",
        "websocket": f"ws{stream.removeprefix('http')}/socket",
        "ldes": f"{stream}/ldes",
    }
    head = await served.ask("HEAD", "/streams/a")
    assert (head.status, head.body) == (200, b"")
    for relation, path in (
        (f"{LDP}inbox", "inbox"),
        (f"{RSP}input", "input"),
        (f"{RSP}output", "output"),
        (f"{CM}ldes", "ldes"),
    ):
        assert f'<{stream}/{path}>; rel="{relation}"' in head.headers["Link"]
    listed = await served.ask("GET", "/streams")
    assert listed.json["contains"] == [stream]
    assert (await served.ask("GET", "/streams/b")).status == 404


@pytest.mark.slow
@pytest.mark.parametrize(
    ("accept", "type", "format"),
    [
        ("*/*", JSON_LD, "json-ld"),
        ("application/ld+json", JSON_LD, "json-ld"),
        ("text/turtle, */*;q=0.1", TURTLE, "turtle"),
        ("application/n-triples", "application/n-triples", "nt"),
        ("application/rdf+xml", "application/rdf+xml", "xml"),
        ("application/trig", "application/trig", "trig"),
    ],
)
@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated")  # rdflib uses its own
@pytest.mark.parametrize(
    "path", ["/streams", "/streams/a", "/streams/a/output", "/streams/a/inbox"]
)
async def test_descriptions_as_rdf(
    served: StreamsServer, path: str, accept: str, type: str, format: str
) -> None:
    """A reader of other hands finds the same statements in each serialization."""
    await served.publish([numbered(1), numbered(2)])
    answer = await served.ask("GET", path, Accept=accept)
    assert (answer.status, answer.headers["Content-Type"]) == (200, type)
    graph = rdflib.Dataset().parse(data=answer.body, format=format)
    subject = rdflib.URIRef(served.url + path)
    if path == "/streams/a":
        assert set(graph.objects(subject, rdflib.URIRef(f"{RSP}input"))) == {subject + "/input"}
        assert set(graph.objects(subject, rdflib.URIRef(f"{CM}lastSequence"))) == {
            rdflib.Literal(2)
        }
    else:
        contains = set(graph.objects(subject, rdflib.URIRef(f"{LDP}contains")))
        expected = (
            {"/streams/a"} if path == "/streams" else {"/streams/a/output/1", "/streams/a/output/2"}
        )
        assert contains == {rdflib.URIRef(served.url + each) for each in expected}


async def test_descriptions_that_nobody_has(served: StreamsServer) -> None:
    answer = await served.ask("GET", "/streams/a", Accept="image/png")
    assert (answer.status, "application/ld+json" in answer.json["offered"]) == (406, True)


NAMED = Message([Quad(iri("urn:s"), iri("urn:p"), iri("urn:o"), iri("urn:g"))])


@pytest.mark.parametrize(
    ("path", "accept", "expected"),
    [
        ("/output/2", "text/turtle", None),
        ("/output/2", "text/turtle, application/n-triples;q=0.9", None),
        (
            "/output/2",
            "text/turtle, application/n-triples;q=0.9, application/trig;q=0.1",
            "application/trig",
        ),
        ("/output/1", "text/turtle, application/trig;q=0.5", "text/turtle"),
        ("/output/2", "text/turtle, */*;q=0.1", "application/ld+json"),
        ("/output?after=1", "text/turtle", None),
        ("/output?after=1", "text/turtle; messages=rdfm", None),
        ("/ldes/1-1000", "text/turtle", None),
    ],
)
async def test_formats_that_cannot_carry_a_message(
    served: StreamsServer, path: str, accept: str, expected: str | None
) -> None:
    """An element is given in the next format that is acceptable; where there is none, the answer names some."""
    await served.publish([Message(), NAMED])
    answer = await served.ask("GET", f"/streams/a{path}", Accept=accept)
    if expected is None:
        assert (answer.status, "application/n-quads" in answer.json["offered"]) == (406, True)
        assert "application/n-quads" in answer.json["hint"]
    else:
        assert (answer.status, answer.headers["Content-Type"]) == (200, expected)


@pytest.mark.parametrize(
    "path",
    ["/inbox", "/output", "/output?list=1", "/output/1", "/output?last=2", "/ldes", "/ldes/1-1000"],
)
@pytest.mark.parametrize("accept", ["application/json", "application/json, image/*"])
async def test_json_is_json_ld_by_another_name(
    served: StreamsServer, path: str, accept: str
) -> None:
    """At every door that answers with JSON-LD, and with the same content."""
    await served.publish([Message(), NAMED])
    answer = await served.ask("GET", f"/streams/a{path}", Accept=accept)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    other = await served.ask("GET", f"/streams/a{path}", Accept=JSON_LD)
    assert answer.json == other.json
    anything = await served.ask("GET", f"/streams/a{path}", Accept="application/*")
    assert anything.headers["Content-Type"].partition(";")[0] != "application/json"


@pytest.mark.parametrize(
    ("path", "allow"),
    [
        ("/streams", "GET, HEAD, POST, OPTIONS"),
        ("/streams/a", "GET, HEAD, PUT, PATCH, DELETE, OPTIONS"),
        ("/streams/a/query", "POST, OPTIONS"),
        ("/streams/a/input", "POST, OPTIONS"),
        ("/streams/a/output", "GET, HEAD, OPTIONS"),
        ("/streams/a/inbox", "GET, HEAD, POST, OPTIONS"),
        ("/streams/a/output/1", "GET, HEAD, OPTIONS"),
        ("/streams/a/events", "GET, HEAD, OPTIONS"),
        ("/streams/a/socket", "GET, OPTIONS"),
        ("/streams/a/ldes", "GET, HEAD, OPTIONS"),
        ("/streams/a/ldes/1-1000", "GET, HEAD, OPTIONS"),
    ],
)
async def test_methods(served: StreamsServer, path: str, allow: str) -> None:
    """Rows 5 to 7: the input is write-only, the output read-only, the inbox both."""
    options = await served.ask("OPTIONS", path)
    assert (options.status, options.headers["Allow"]) == (204, allow)
    assert ("Accept-Post" in options.headers) == ("POST" in allow)
    refused = await served.ask("PROPFIND", path)
    assert (refused.status, set(refused.headers["Allow"].split(", "))) == (
        405,
        set(allow.split(", ")),
    )


async def test_an_element_is_sent_listed_and_read(served: StreamsServer) -> None:
    """Rows 8 to 10."""
    sent = await served.ask("POST", "/streams/a/input", ELEMENT, TURTLE)
    element = f"{served.url}/streams/a/output/1"
    assert (sent.status, sent.headers["Location"]) == (201, element)
    assert sent.json == {"first": element, "last": element, "elements": 1}
    listed = await served.ask("GET", "/streams/a/output")
    assert listed.json["contains"] == [element]
    read = await served.ask("GET", element, Accept="application/n-triples")
    assert read.body == b'<urn:s> <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
    assert "immutable" in read.headers["Cache-Control"]
    again = await served.ask(
        "GET", element, Accept="application/n-triples", If_None_Match=read.headers["ETag"]
    )
    assert (again.status, again.body) == (304, b"")
    other = await served.ask("GET", element, Accept=TURTLE, If_None_Match=read.headers["ETag"])
    assert other.status == 200, "an ETag is of one representation"
    assert (await served.ask("GET", "/streams/a/output/2")).status == 404
    assert (await served.ask("GET", "/streams/a/output/x")).status == 400


async def test_the_inbox_is_one_of_linked_data_notifications(served: StreamsServer) -> None:
    body = json.dumps(
        {"@context": "https://www.w3.org/ns/activitystreams", "type": "Announce", "actor": "urn:a"}
    )
    profile = f'{JSON_LD}; profile="https://www.w3.org/ns/activitystreams"'
    sent = await served.ask("POST", "/streams/a/inbox", body.encode(), profile)
    assert sent.status == 201
    inbox = await served.ask("GET", "/streams/a/inbox", Accept=JSON_LD)
    assert inbox.json["contains"] == [sent.headers["Location"]]
    notification = await served.ask("GET", sent.headers["Location"], Accept=JSON_LD)
    assert notification.headers["Content-Type"] == JSON_LD
    (quad, other) = ox.parse(notification.body, format=ox.RdfFormat.JSON_LD)
    activity = "https://www.w3.org/ns/activitystreams#"
    assert {quad.predicate.value, other.predicate.value} == {
        f"{activity}actor",
        str(rdflib.RDF.type),
    }


PAPER = {
    "@context": {"prov": "http://www.w3.org/ns/prov#"},
    "@id": "urn:g",
    "prov:generatedAtTime": "2016-05-01T11:04:59Z",
    "@graph": [{"@id": "urn:s", "urn:p": {"@id": "urn:o"}}],
}


async def test_the_element_of_the_paper(served: StreamsServer) -> None:
    """Rows 8 and 11: a named graph and when it was made; a sequence is one JSON-LD document of such."""
    for _ in range(2):
        assert (
            await served.ask(
                "POST", "/streams/a/input", json.dumps(PAPER, indent=2).encode(), JSON_LD
            )
        ).status == 201
    pulled = await served.ask("GET", "/streams/a/output?last=2", Accept=JSON_LD)
    nodes = pulled.json["@graph"]
    assert [node["@id"] for node in nodes] == [f"{served.url}/streams/a/output/{n}" for n in (1, 2)]
    assert {node["prov:generatedAtTime"]["@value"] for node in nodes} == {"2016-05-01T11:04:59Z"}
    quads = {str(quad) for quad in ox.parse(pulled.body, format=ox.RdfFormat.JSON_LD)}
    assert "<urn:s> <urn:p> <urn:o> <urn:g>" in quads


@pytest.mark.parametrize(
    ("type", "body", "status"),
    [
        ("", b"", 415),
        ("text/plain", b"x", 415),
        ("nonsense", b"x", 415),
        ("text/turtle; charset=latin-1", b"", 415),
        ("text/turtle; messages=other", b"", 415),
        (TURTLE, b"<urn:s> <urn:p> .", 422),
        (TURTLE, b"<urn:s> <urn:p> <urn:o>", 422),
        ("application/n-quads; messages=rdfm", b"", 422),
        (JSON_LD, b"{", 422),
        (JSON_LD, b'"x"', 422),
        (JSON_LD, b'{"@context": "https://example.org/unknown", "x": 1}', 422),
        ("application/rdf+xml", b"<rdf:RDF", 422),
        ("application/rdf+xml", b'<!DOCTYPE x [<!ENTITY e "x">]><x/>', 422),
        ("application/x-jelly-rdf", b"\x01\x02", 422),
        (
            "application/n-quads; version=1.2-messages",
            b'VERSION "1.2-messages"\n<urn:a> <urn:b> <urn:c> .\nMESSAGE\n<x',
            422,
        ),
    ],
)
async def test_refused_bodies(served: StreamsServer, type: str, body: bytes, status: int) -> None:
    """What is refused is named, and nothing of it is in the stream: a log is appended as a whole or not at all."""
    answer = await served.ask("POST", "/streams/a/input", body, type)
    assert answer.status == status, answer.body
    assert answer.json["detail"]
    if status == 415:
        assert "text/turtle" in answer.headers["Accept-Post"]
    assert (await served.ask("GET", "/streams/a")).json["lastSequence"] == 0


async def test_where_a_log_is_malformed(served: StreamsServer) -> None:
    log = b"# @message\n<urn:a> <urn:b> <urn:c> .\n# @message\n<urn:a> <urn:b> .\n"
    answer = await served.ask("POST", "/streams/a/input", log, "application/n-quads; messages=rdfm")
    assert (answer.status, answer.json["line"]) == (422, 4)
    assert "message 2" in answer.json["detail"]


@pytest.mark.parametrize(
    ("type", "body", "lengths"),
    [
        (TURTLE, b"", [0]),
        (TURTLE, b"@prefix : <urn:> . :a :b :c, :d .", [2]),
        (TURTLE, b"# @message\n<urn:a> <urn:b> 1 .\n# @message\n", [1]),
        (f"{TURTLE}; messages=rdfm", b"# @message\n<urn:a> <urn:b> 1 .\n# @message\n", [1, 0]),
        ("application/trig", b"<urn:g> { <urn:a> <urn:b> 1 }", [1]),
        (JSON_LD, b"{}", [0]),
        (JSON_LD, b"[]", [0]),
        (JSON_LD, b'{"@context": {"a": "urn:a"}}', [0]),
        (JSON_LD, b'[\n {"@id": "urn:a", "urn:b": 1},\r\n {"@id": "urn:b", "urn:b": 1}\n]', [2]),
        ("application/json", b'{"@id": "urn:a", "urn:b": 1}', [1]),
        (
            "application/rdf+xml",
            b'<rdf:RDF\n xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"\n xmlns:u="urn:">\n'
            b'<rdf:Description rdf:about="urn:a"><u:b>one\ntwo</u:b></rdf:Description>\n</rdf:RDF>',
            [1],
        ),
        ("application/x-ndjson", b'{"@id": "urn:a", "urn:b": 1}\n{}\n', [1, 0]),
    ],
)
async def test_accepted_bodies(
    served: StreamsServer, type: str, body: bytes, lengths: list[int]
) -> None:
    answer = await served.ask("POST", "/streams/a/input", body, type)
    assert (answer.status, answer.json["elements"]) == (201, len(lengths)), answer.body
    pulled = await served.ask(
        "GET", "/streams/a/output", Accept="application/n-quads; messages=rdfm"
    )
    assert [
        len(message) for message in read_log(pulled.body, pulled.headers["Content-Type"])
    ] == lengths


async def test_a_key_publishes_once(served: StreamsServer) -> None:
    for _ in range(2):
        answer = await served.ask(
            "POST", "/streams/a/input", b"_:b <urn:p> 1 .", TURTLE, Idempotency_Key='"k-1"'
        )
        assert answer.headers["Location"].endswith("/output/1")
    other = await served.ask("POST", "/streams/a/input", ELEMENT, TURTLE, Idempotency_Key='"k-1"')
    assert (other.status, "k-1" in other.json["detail"]) == (422, True)
    assert (
        await served.ask("POST", "/streams/a/input", ELEMENT, TURTLE, Idempotency_Key="")
    ).status == 400


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("last=3", [8, 9, 10]),
        ("last=100", list(range(1, 11))),
        ("last=0", []),
        ("after=7", [8, 9, 10]),
        ("after=10", []),
        ("after=2&last=2", [9, 10]),
        ("since=2000-01-01T00:00:00Z", list(range(1, 11))),
        ("until=2000-01-01T00:00:00Z", []),
        ("since=2100-01-01T00:00:00%2B01:00", []),
        ("since=2000-01-01T00:00:00Z&until=2100-01-01T00:00:00Z&last=1", [10]),
    ],
)
async def test_sequences(served: StreamsServer, query: str, expected: list[int]) -> None:
    """Row 11, as a log."""
    await served.publish([numbered(number) for number in range(1, 11)])
    pulled = await served.ask(
        "GET", f"/streams/a/output?{query}", Accept="application/trig; version=1.2-messages"
    )
    assert pulled.headers["Content-Type"] == "application/trig; version=1.2-messages"
    assert list(read_log(pulled.body, pulled.headers["Content-Type"])) == [
        numbered(number) for number in expected
    ]


@pytest.mark.parametrize(
    "query", ["last=x", "last=-1", "after=1.5", "since=yesterday", "until=2026-01-01T00:00:00"]
)
async def test_refused_sequences(served: StreamsServer, query: str) -> None:
    answer = await served.ask("GET", f"/streams/a/output?{query}")
    assert (answer.status, "write it as" in answer.json["hint"]) == (400, True)


async def test_what_retention_took_is_gone(served: StreamsServer) -> None:
    """Row 14."""
    body = json.dumps({"label": "short", "retainedElements": 2}).encode()
    assert (await served.ask("PUT", "/streams/a", body, "application/json")).status == 204
    await served.publish([numbered(number) for number in range(1, 6)])
    assert (await served.ask("GET", "/streams/a")).json["retainedElements"] == 2
    assert [(await served.ask("GET", f"/streams/a/output/{n}")).status for n in (3, 4, 6)] == [
        410,
        200,
        404,
    ]
    assert (
        await served.ask("GET", "/streams/a/output?after=1", Accept="application/n-quads")
    ).status == 410


@pytest.mark.parametrize(
    ("type", "body"),
    [
        (
            "application/json",
            b'{"label": "L", "retainedElements": 7, "retainedSeconds": 60.5, "retainedBytes": 1000}',
        ),
        (
            TURTLE,
            b"@prefix cm: <https://w3id.org/construct-messages#> . <> a <http://w3id.org/rsp/streams#Stream> ;"
            b'<http://www.w3.org/2000/01/rdf-schema#label> "L" ; cm:retainedElements 7 ;'
            b"cm:retainedSeconds 60.5 ; cm:retainedBytes 1000 .",
        ),
    ],
)
async def test_streams_are_made_described_and_deleted(
    served: StreamsServer, type: str, body: bytes
) -> None:
    made = await served.ask("PUT", "/streams/b", body, type)
    assert (made.status, made.headers["Location"]) == (201, f"{served.url}/streams/b")
    described = (await served.ask("GET", "/streams/b")).json
    kept = ("label", "retainedElements", "retainedSeconds", "retainedBytes")
    assert [described[name] for name in kept] == ["L", 7, 60.5, 1000]
    posted = await served.ask("POST", "/streams", body, type, Slug="c")
    assert posted.headers["Location"] == f"{served.url}/streams/c"
    unnamed = await served.ask("POST", "/streams", body, type)
    assert unnamed.status == 201
    assert (await served.ask("POST", "/streams", body, type, Slug="c")).status == 409
    assert (await served.ask("PUT", "/streams/d%2Fe", body, type)).status == 400
    assert (
        await served.ask("PUT", "/streams/f", b'{"retainedElements": 0}', "application/json")
    ).status == 422
    unknown = await served.ask(
        "PUT", "/streams/f", b'{"label": "F", "retained": 5}', "application/json"
    )
    assert (unknown.status, "'retained'" in unknown.json["detail"]) == (422, True)
    assert "retainedElements" in unknown.json["hint"]
    assert (await served.ask("GET", "/streams/f")).status == 404
    assert (await served.ask("DELETE", "/streams/b")).status == 204
    assert (await served.ask("DELETE", "/streams/b")).status == 404
    assert (await served.ask("GET", "/streams/b")).status == 404


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        ({"body_bytes": 100}, 413),
        ({"message_bytes": 50}, 413),
        ({"batch_messages": 3}, 413),
        ({"streams": 1}, 507),
    ],
)
async def test_limits(tmp_path: Path, settings: dict[str, int], status: int) -> None:
    async with serving_streams(tmp_path / "streams.db", **settings) as server:
        await server.ask("PUT", "/streams/a")
        if "streams" in settings:
            assert (await server.ask("PUT", "/streams/b")).status == status
            return
        messages = [numbered(number, size=40) for number in range(5)]
        assert (await server.publish(messages)).status == status
        assert (await server.ask("GET", "/streams/a")).json["lastSequence"] == 0


async def test_who_may_publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMS_TOKEN", "secret")
    async with serving_streams(tmp_path / "streams.db", publish="STREAMS_TOKEN") as server:
        allowed = {"Authorization": "Bearer secret"}
        refused = await server.ask("PUT", "/streams/a")
        assert (refused.status, refused.headers["WWW-Authenticate"]) == (
            401,
            'Bearer realm="streams"',
        )
        assert (await server.ask("PUT", "/streams/a", Authorization="Bearer wrong")).status == 401
        assert (await server.ask("PUT", "/streams/a", **allowed)).status == 201
        assert (await server.ask("POST", "/streams/a/input", ELEMENT, TURTLE)).status == 401
        assert (
            await server.ask("POST", "/streams/a/input", ELEMENT, TURTLE, **allowed)
        ).status == 201
        open = b'{"publish": "allow"}'
        assert (
            await server.ask("PUT", "/streams/open", open, "application/json", **allowed)
        ).status == 201
        assert (await server.ask("POST", "/streams/open/input", ELEMENT, TURTLE)).status == 201
        shut = b'{"publish": "deny"}'
        assert (
            await server.ask("PUT", "/streams/shut", shut, "application/json", **allowed)
        ).status == 201
        assert (
            await server.ask("POST", "/streams/shut/input", ELEMENT, TURTLE, **allowed)
        ).status == 403
        assert (await server.ask("GET", "/streams/shut/output")).status == 200, "reading is free"
        assert (await server.ask("DELETE", "/streams/open")).status == 401


async def test_the_request_log_and_metrics(served: StreamsServer) -> None:
    await served.publish([numbered(1), numbered(2)])
    await served.ask("GET", "/streams/a/output?last=1", Accept="application/n-quads; messages=rdfm")
    log = served.served.request_log.getvalue()
    assert "action=publish" in log
    assert "published=2" in log
    assert "action=pull" in log
    metrics = (await served.ask("GET", "/metrics")).body.decode()
    assert 'construct_messages_published_total{endpoint="/streams"} 2.0' in metrics
    assert 'construct_messages_delivered_total{endpoint="/streams"} 1.0' in metrics
    ready = await served.ask("GET", "/health/ready")
    assert (ready.status, ready.json["endpoints"]) == (200, {"/streams": "answers"})


@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated")  # rdflib uses its own
@pytest.mark.parametrize("format", ["turtle", "xml", None])
async def test_rdflib_reads_the_output(served: StreamsServer, format: str | None) -> None:
    """A client that knows nothing of messages: the list, and a sequence as the union of its messages."""
    await served.publish([numbered(1), numbered(2)])

    def read(url: str) -> rdflib.Graph:
        return rdflib.Graph().parse(url, format=format)

    output = f"{served.url}/streams/a/output"
    listed = await asyncio.to_thread(read, output)
    contains = set(listed.objects(rdflib.URIRef(output), rdflib.URIRef(f"{LDP}contains")))
    assert contains == {rdflib.URIRef(f"{output}/1"), rdflib.URIRef(f"{output}/2")}
    if format == "turtle":
        union = await asyncio.to_thread(read, f"{output}?last=2")
        assert sorted(str(value) for value in union.objects()) == ["x1", "x2"]


@pytest.mark.parametrize(
    ("head", "body", "status"),
    [
        (b"Transfer-Encoding: chunked", b"zz\r\n", b"400"),
        (b"Content-Length: 5\r\nContent-Encoding: gzip", b"12345", b"400"),
        (b"Content-Length: 5\r\nContent-Encoding: br", b"12345", b"415"),
    ],
)
async def test_damaged_and_compressed_bodies(
    served: StreamsServer, head: bytes, body: bytes, status: bytes
) -> None:
    host, _, port = served.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    start = b"POST /streams/a/input HTTP/1.1\r\nHost: x\r\nContent-Type: text/turtle\r\n"
    writer.write(start + head + b"\r\n\r\n" + body)
    assert (await reader.readline()).split()[1] == status
    writer.close()
    assert (await served.ask("GET", "/streams/a")).json["lastSequence"] == 0


@pytest.mark.parametrize(
    ("path", "headers", "status", "said", "hint"),
    [
        ("a", {"If_None_Match": "*"}, 412, "the stream a exists already", "choose another name"),
        (
            "a",
            {"If_Match": '"x"'},
            412,
            "the stream a is not the one that If-Match names",
            "send its ETag",
        ),
        ("new", {"If_Match": "*"}, 412, "the stream new does not exist", "leave out If-Match"),
    ],
)
async def test_conditions_that_do_not_hold(
    served: StreamsServer, path: str, headers: dict[str, str], status: int, said: str, hint: str
) -> None:
    """What the page shows to somebody who creates a stream of a name that is taken."""
    answer = await served.ask("PUT", f"/streams/{path}", **headers)
    assert (answer.status, answer.json["detail"]) == (status, said)
    assert hint in answer.json["hint"]
    posted = await served.ask("POST", "/streams", Slug="a")
    assert (posted.status, posted.json["detail"]) == (409, "the stream a exists already")


async def test_contexts_of_the_settings(tmp_path: Path) -> None:
    """As pyoxigraph reads it with the context inline; a context that is not known is not fetched."""
    terms = {"@context": {"schema": "https://schema.org/", "name": "schema:name"}}
    file = tmp_path / "schema.jsonld"
    file.write_text(json.dumps(terms))
    notification = {"@id": "urn:s", "name": "Ada"}
    body = json.dumps({"@context": "https://schema.org/", **notification}).encode()
    expected = set(ox.parse(json.dumps(terms | notification), format=ox.RdfFormat.JSON_LD))
    known = {"https://schema.org/": str(file)}
    for contexts, status in ((known, 201), ({}, 422)):
        async with serving_streams(tmp_path / "streams.db", contexts=contexts) as served:
            await served.ask("PUT", "/streams/a")
            assert (await served.ask("POST", "/streams/a/inbox", body, JSON_LD)).status == status
            found = await served.ask("GET", "/streams/a/output/1", Accept="application/n-triples")
            assert set(ox.parse(found.body, format=ox.RdfFormat.N_TRIPLES)) == expected

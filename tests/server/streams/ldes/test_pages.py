"""A stream as a Linked Data Event Stream: root, pages and members; what may be cached; what retention leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pyoxigraph as ox
import pytest
from hypothesis import given

from construct_messages import Message, Quad, iri, literal, read_log
from construct_messages.logs.lines.decoder import to_text
from construct_messages.rdf.terms import RDF, XSD, Term
from construct_messages.rdf.vocabulary import CM, DCTERMS, LDES, PROFILE, PROV, TREE
from construct_messages.server.streams.ldes import members
from construct_messages.server.streams.resources import StreamIris
from construct_messages.streams.element import Element, generated_at
from construct_messages.streams.store import StreamStore
from tests.support.http.streams import Answer, StreamsServer, of_member, serving_streams
from tests.support.logs.kinds import isomorphic
from tests.support.strategies import messages
from tests.support.streams import numbered

N_QUADS = "application/n-quads"
TRIG = "application/trig"
JSON_LD = "application/ld+json"
FORMATS = {
    N_QUADS: ox.RdfFormat.N_QUADS,
    TRIG: ox.RdfFormat.TRIG,
    JSON_LD: ox.RdfFormat.JSON_LD,
}
PUBLIC = "example.org"
"""The Host of requests whose answers are compared: the server's own port is another each time."""

BLANK = Message(
    [Quad(Term("_:a"), iri("urn:p"), Term("_:b")), Quad(Term("_:b"), iri("urn:p"), Term("_:a"))]
)
GRAPHS = Message(
    [
        Quad(Term("_:a"), iri("urn:p"), literal("x", language="en"), graph)
        for graph in (None, iri("urn:g"))
    ]
)
SENT = [*map(numbered, range(1, 5)), BLANK, Message(), GRAPHS]


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[StreamsServer]:
    """A server whose pages have three members, with one stream, `a`."""
    async with serving_streams(tmp_path / "streams.db", ldes_page=3) as server:
        assert (await server.ask("PUT", "/streams/a")).status == 201
        yield server


async def ask(
    served: StreamsServer, page: str = "", accept: str = N_QUADS, **headers: str
) -> Answer:
    """The root, or a page."""
    return await served.ask("GET", f"/streams/a/ldes{page}", Accept=accept, **headers)


def objects(quads: Iterable[ox.Quad], subject: str | ox.BlankNode, predicate: str) -> list[str]:
    """The values of a property in the default graph, in order."""
    node = ox.NamedNode(subject) if isinstance(subject, str) else subject
    return [
        quad.object.value
        for quad in quads
        if quad.graph_name == ox.DefaultGraph()
        and quad.subject == node
        and quad.predicate.value == predicate
        and not isinstance(quad.object, ox.Triple)
    ]


def parsed(answer: Answer) -> list[ox.Quad]:
    """What an answer says, as a parser of other hands has it."""
    assert answer.status == 200, answer.body
    media_type = answer.headers["Content-Type"].partition(";")[0]
    return list(ox.parse(answer.body, format=FORMATS[media_type]))


def bounds(quads: list[ox.Quad], view: str) -> dict[str, dict[str, str]]:
    """The values of the relations of a view, by the name of the page and the kind."""
    found: dict[str, dict[str, str]] = {}
    relations = [quad.object for quad in quads if quad.predicate.value == f"{TREE}relation"]
    for relation in relations:
        assert isinstance(relation, ox.BlankNode)
        (kind,), (page,), (path,), (value,) = (
            objects(quads, relation, predicate)
            for predicate in (f"{RDF}type", f"{TREE}node", f"{TREE}path", f"{TREE}value")
        )
        assert path == f"{DCTERMS}issued"
        found.setdefault(page.removeprefix(f"{view}/"), {})[kind.removeprefix(TREE)] = value
    return found


async def pages(served: StreamsServer, accept: str = N_QUADS) -> list[list[ox.Quad]]:
    """What the pages say that the root leads to."""
    root = parsed(await ask(served, accept=accept))
    return [
        parsed(await ask(served, f"/{page}", accept))
        for page in bounds(root, f"{served.url}/streams/a/ldes")
    ]


@pytest.mark.parametrize("accept", FORMATS)
async def test_root(served: StreamsServer, accept: str) -> None:
    """The server primer: context of the stream, one view, two bounds for each page, of the timestamp path."""
    await served.publish(SENT)
    view = f"{served.url}/streams/a/ldes"
    answer = await ask(served, accept=accept)
    assert (answer.headers["Content-Type"], answer.headers["Cache-Control"]) == (accept, "no-cache")
    assert "Accept" in answer.headers["Vary"]
    root = parsed(answer)
    said = {
        predicate: objects(root, f"{view}#stream", predicate)
        for predicate in (
            f"{RDF}type",
            f"{TREE}view",
            f"{LDES}timestampPath",
            f"{LDES}sequencePath",
        )
    }
    assert said == {
        f"{RDF}type": [f"{LDES}EventStream"],
        f"{TREE}view": [view],
        f"{LDES}timestampPath": [f"{DCTERMS}issued"],
        f"{LDES}sequencePath": [f"{CM}sequence"],
    }
    lower, upper = "GreaterThanOrEqualToRelation", "LessThanOrEqualToRelation"
    found = bounds(root, view)
    # a log is stored at one time, so that all borders are equal, and elements at them are on one page all the same
    (time,) = {value for values in found.values() for value in values.values()}
    assert found == {
        "1-3": {lower: time, upper: time},
        "4-6": {lower: time, upper: time},
        "7-9": {lower: time},
    }
    for predicate in ("retentionPolicy", "versionOfPath"):
        assert not [quad for quad in root if quad.predicate.value == f"{LDES}{predicate}"], (
            predicate
        )


async def test_bounds_hold_the_times_of_members(served: StreamsServer) -> None:
    for message in SENT:
        await served.publish([message])
    root = parsed(await ask(served))
    times = []
    for page, values in bounds(root, f"{served.url}/streams/a/ldes").items():
        quads = parsed(await ask(served, f"/{page}"))
        on_page = [
            quad.object.value for quad in quads if quad.predicate.value == f"{DCTERMS}issued"
        ]
        assert values["GreaterThanOrEqualToRelation"] == on_page[0]
        assert values.get("LessThanOrEqualToRelation", on_page[-1]) == on_page[-1]
        times += on_page
    assert times == sorted(times)
    assert len(set(times)) > 1


@pytest.mark.parametrize("accept", FORMATS)
async def test_each_member_once_and_in_order(served: StreamsServer, accept: str) -> None:
    """A member has its time and sequence in the default graph, and its message in the graph of its name."""
    await served.publish(SENT)
    stream, output = f"{served.url}/streams/a/ldes#stream", f"{served.url}/streams/a/output"
    quads = [quad for page in await pages(served, accept) for quad in page]
    expected = [f"{output}/{number}" for number in range(1, len(SENT) + 1)]
    assert objects(quads, stream, f"{TREE}member") == expected
    for number, (member, sent) in enumerate(zip(expected, SENT, strict=True), 1):
        assert objects(quads, member, f"{CM}sequence") == [str(number)]
        assert len(objects(quads, member, f"{DCTERMS}issued")) == 1
        payload = [quad.triple for quad in quads if quad.graph_name == ox.NamedNode(member)]
        default = Message(quad for quad in sent if quad.graph is None)
        assert Message.from_pyoxigraph(payload).isomorphic(default)
    assert len([quad for quad in quads if quad.graph_name == ox.NamedNode("urn:g")]) == 1


@pytest.mark.parametrize("accept", [N_QUADS, TRIG])
async def test_the_tree_profile(served: StreamsServer, accept: str) -> None:
    """Hypermedia come first, and what belongs to a member is together: in that order, each member is a message."""
    await served.publish(SENT)
    asked = f'{accept}; profile="{PROFILE}"'
    blocks: list[list[ox.Quad]] = []
    for page in ("1-3", "4-6", "7-9"):
        answer = await ask(served, f"/{page}", asked)
        assert answer.headers["Content-Type"] == asked
        assert (await ask(served, f"/{page}", accept)).headers["Content-Type"] == accept
        hypermedia = True
        for quad in parsed(answer):
            if quad.predicate.value == f"{TREE}member":
                blocks.append([])
                hypermedia = False
            assert hypermedia == (
                quad.predicate.value in (f"{RDF}type", f"{TREE}view", f"{LDES}immutable")
            )
            if not hypermedia:
                blocks[-1].append(quad)
        # and the page is a log
        first, *others = read_log(answer.body, f"{accept}; messages=rdfm")
        assert len(first) == 4 - (page == "7-9")
        assert len(others) == (1 if page == "7-9" else 3)
    assert isomorphic([of_member(Message.from_pyoxigraph(block)) for block in blocks], SENT)


@given(messages())
def test_members_hold_any_messages(sent: list[Message]) -> None:
    """Whatever a message holds, the member does, under the same labels each time, which no other member has."""
    elements = [
        Element("a", number, number, to_text(message).encode(), generated_at(message))
        for number, message in enumerate(sent, 1)
    ]
    iris = StreamIris("https://example.org/streams/a")
    made = list(members(iris, elements))
    assert isomorphic([of_member(member) for member in made], sent)
    assert made == [next(members(iris, [element])) for element in elements]
    labels = [
        {term for quad in member for term in quad if term and term.startswith("_:")}
        for member in made
    ]
    assert len(set().union(*labels)) == sum(map(len, labels))


async def test_what_publishers_say_of_time_and_versions(tmp_path: Path) -> None:
    version_of, at = f"{DCTERMS}isVersionOf", f"{PROV}generatedAtTime"
    said = Message(
        [
            Quad(iri("urn:v1"), iri(version_of), iri("urn:v")),
            Quad(
                iri("urn:v1"), iri(at), literal("2026-01-01T00:00:00Z", datatype=f"{XSD}dateTime")
            ),
        ]
    )
    of_two = Message([Quad(iri("urn:v1"), iri(version_of), iri(f"urn:{name}")) for name in "vw"])
    async with serving_streams(tmp_path / "streams.db", ldes_version_of_path=version_of) as served:
        await served.ask("PUT", "/streams/a")
        await served.publish([said, of_two, numbered(3)])
        root = parsed(await ask(served))
        assert objects(root, f"{served.url}/streams/a/ldes#stream", f"{LDES}versionOfPath") == [
            version_of
        ]
        (page,) = await pages(served)
        of_members = [
            [
                objects(page, f"{served.url}/streams/a/output/{number}", predicate)
                for predicate in (version_of, at)
            ]
            for number in (1, 2, 3)
        ]
        assert of_members == [[["urn:v"], ["2026-01-01T00:00:00Z"]], [[], []], [[], []]]


async def test_messages_cannot_forge_hypermedia(served: StreamsServer) -> None:
    stream, page = (
        iri(f"{served.url}/streams/a/ldes#stream"),
        iri(f"{served.url}/streams/a/ldes/1-3"),
    )
    await served.publish(
        [
            Message(
                [
                    Quad(stream, iri(f"{TREE}member"), iri("urn:evil")),
                    Quad(page, iri(f"{TREE}relation"), iri("urn:e")),
                ]
            )
        ]
    )
    (quads,) = await pages(served)
    assert objects(quads, stream[1:-1], f"{TREE}member") == [f"{served.url}/streams/a/output/1"]
    assert objects(quads, page[1:-1], f"{TREE}relation") == []


@pytest.mark.parametrize("accept", FORMATS)
async def test_full_pages_stay_as_they_are(tmp_path: Path, accept: str) -> None:
    """Byte for byte, when elements come, and under another server over the same store with pages of another size."""
    answers = []
    for size in (3, 3, 5):
        async with serving_streams(tmp_path / "streams.db", ldes_page=size) as served:
            if not answers:
                await served.ask("PUT", "/streams/a")
            for message in (BLANK, GRAPHS, Message(), numbered(4)):
                await served.publish([message])
            answers.append(await ask(served, "/1-3", accept, Host=PUBLIC))
    first = answers[0]
    assert first.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert {(answer.status, answer.body, answer.headers["ETag"]) for answer in answers} == {
        (200, first.body, first.headers["ETag"])
    }


async def test_entity_tags(served: StreamsServer) -> None:
    """Each representation has its own; 304 where a client has it; those of root and last page follow what they say."""
    await served.publish(SENT)
    tags = {}
    for page in ("", "/1-3", "/7-9"):
        for accept in FORMATS:
            answer = await ask(served, page, accept)
            tag = tags[page, accept] = answer.headers["ETag"]
            for known in (tag, f'"x", W/{tag}', "*"):
                again = await ask(served, page, accept, If_None_Match=known)
                assert (again.status, again.body, again.headers["ETag"]) == (304, b"", tag)
            head = await served.ask("HEAD", f"/streams/a/ldes{page}", Accept=accept)
            assert (head.status, head.body, head.headers["ETag"]) == (200, b"", tag)
            plain = await ask(served, page, accept, Accept_Encoding="identity")
            assert plain.headers["ETag"] != tag, "an entity tag is of one content coding"
    assert len(set(tags.values())) == len(tags)
    assert (await ask(served, "/7-9")).headers["Cache-Control"] == "no-cache"
    await served.publish([numbered(8)])
    assert (await ask(served)).headers["ETag"] == tags["", N_QUADS], "the root says the same"
    assert (await ask(served, "/1-3")).headers["ETag"] == tags["/1-3", N_QUADS]
    grown = await ask(served, "/7-9", If_None_Match=tags["/7-9", N_QUADS])
    assert grown.status == 200
    await served.publish([numbered(9)])
    assert "immutable" in (await ask(served, "/7-9")).headers["Cache-Control"]
    assert (await ask(served, If_None_Match=tags["", N_QUADS])).status == 200, (
        "the last page is full now"
    )


async def test_a_stream_that_was_made_anew_is_another(served: StreamsServer) -> None:
    before = []
    for _ in range(2):
        await served.publish(SENT)
        answers = [await ask(served, page) for page in ("", "/1-3", "/7-9")]
        before.append([answer.headers["ETag"] for answer in answers])
        assert (await served.ask("DELETE", "/streams/a")).status == 204
        assert (await ask(served)).status == 404
        assert (await served.ask("PUT", "/streams/a")).status == 201
    assert not set(before[0]) & set(before[1])


RETENTIONS: dict[str, tuple[bytes, list[str]]] = {
    "by count": (b'{"retainedElements": 4}', []),
    "by age and count": (
        b'{"retainedElements": 4, "retainedSeconds": 2592000.5}',
        ["PT2592000.5S"],
    ),
    "by bytes": (b'{"retainedBytes": 110}', []),
}


@pytest.mark.parametrize(("body", "durations"), RETENTIONS.values(), ids=RETENTIONS)
async def test_retention(served: StreamsServer, body: bytes, durations: list[str]) -> None:
    """Pages are gone once all their members are; one that is cut is asked for again until then."""
    view = f"{served.url}/streams/a/ldes"
    for number in range(1, 9):
        await served.publish([numbered(number)])
    assert (await ask(served, "/1-3")).status == 200
    assert (await served.ask("PUT", "/streams/a", body, "application/json")).status == 204
    first = (await served.ask("GET", "/streams/a")).json["firstSequence"]
    assert first == 5
    assert (await ask(served, "/1-3")).status == 410
    cut = await ask(served, "/4-6")
    assert cut.headers["Cache-Control"] == "no-cache"
    quads = parsed(cut)
    assert objects(quads, f"{view}#stream", f"{TREE}member") == [
        f"{served.url}/streams/a/output/{n}" for n in (5, 6)
    ]
    assert objects(quads, f"{view}/4-6", f"{LDES}immutable") == ["true"], "no member can come to it"
    root = parsed(await ask(served))
    found = bounds(root, view)
    assert list(found) == ["4-6", "7-9"]
    (oldest,) = objects(quads, f"{served.url}/streams/a/output/5", f"{DCTERMS}issued")
    (policy,) = objects(root, view, f"{LDES}retentionPolicy")
    assert policy == f"{view}#retention"
    assert objects(root, policy, f"{LDES}startingFrom") == [oldest]
    assert found["4-6"]["GreaterThanOrEqualToRelation"] == oldest
    assert objects(root, policy, f"{LDES}fullLogDuration") == durations


async def test_borders_are_read_once(
    served: StreamsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    times = StreamStore.times

    def counted(store: StreamStore, stream: str, sequences: Iterable[int]) -> list[int]:
        wanted = list(sequences)
        asked.extend(wanted)
        return times(store, stream, wanted)

    monkeypatch.setattr(StreamStore, "times", counted)
    await served.publish([numbered(number) for number in range(1, 31)])
    roots = []
    for _ in range(3):
        roots.append((await ask(served)).body)
    assert len(set(roots)) == 1
    assert len(asked) == 20 + 2, "one is read again, to see whether it is the same stream"


@pytest.mark.slow
async def test_pages_while_retention_goes_on(served: StreamsServer) -> None:
    """Elements that go while a page is answered are missing from it; it is not said to be gone while one is kept."""
    await served.ask("PUT", "/streams/a", b'{"retainedElements": 4}', "application/json")
    await served.publish([numbered(number) for number in range(1, 5)])

    async def publish() -> None:
        for number in range(5, 60):
            await served.publish([numbered(number)])

    publishing = asyncio.ensure_future(publish())
    while not publishing.done():
        view = f"{served.url}/streams/a/ldes"
        for page in bounds(parsed(await ask(served)), view):
            answer = await ask(served, f"/{page}")
            if answer.status == 200:
                found = objects(parsed(answer), f"{view}#stream", f"{TREE}member")
                sequences = [int(member.rpartition("/")[2]) for member in found]
                assert sequences == list(range(sequences[0], sequences[-1] + 1))
            else:
                state = (await served.ask("GET", "/streams/a")).json
                assert (answer.status, state["firstSequence"] > int(page.partition("-")[2])) == (
                    410,
                    True,
                )
    await publishing


NO_PAGES = [
    "10-12",
    "0-2",
    "2-4",
    "3-1",
    "1",
    "-",
    "1-",
    "01-03",
    "x-y",
    "1-3-5",
    "1-1000000000000000000",
    "1-３",
]


@pytest.mark.parametrize("page", NO_PAGES)
async def test_pages_that_never_were(served: StreamsServer, page: str) -> None:
    await served.publish(SENT)
    answer = await ask(served, f"/{page}")
    assert (answer.status, "/streams/a/ldes" in answer.json["hint"]) == (404, True)


async def test_an_empty_stream(served: StreamsServer) -> None:
    root = parsed(await ask(served))
    assert not [quad for quad in root if quad.predicate.value == f"{TREE}relation"]
    assert (await ask(served, "/1-3")).status == 404
    assert (await served.ask("GET", "/streams/b/ldes")).status == 404


TRIPLE = b"<urn:s> <urn:p> <<( <urn:a> <urn:b> <urn:c> )>> ."


GRAPH = b"<urn:g> { <urn:s> <urn:p> <urn:o> . }"


@pytest.mark.parametrize(
    ("accept", "body"),
    [("text/turtle", GRAPH), (JSON_LD, TRIPLE)],
    ids=["no graphs", "no triple terms"],
)
async def test_formats_that_cannot_carry_it(
    served: StreamsServer, accept: str, body: bytes
) -> None:
    await served.ask("POST", "/streams/a/input", body, TRIG)
    answer = await ask(served, "/1-3", accept)
    assert (answer.status, N_QUADS in answer.json["offered"]) == (406, True)
    assert (await ask(served, "/1-3")).status == 200


async def test_a_host_that_makes_no_iris(served: StreamsServer) -> None:
    answer = await ask(served, Host="a> <urn:p> <urn:o")
    assert answer.status == 400

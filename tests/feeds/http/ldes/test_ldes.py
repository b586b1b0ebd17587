"""Linked Data Event Streams, read: from a server of this package, and from pages written by hand."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from construct_messages import Message, Quad, iri, literal
from construct_messages.errors import SourceError
from construct_messages.feeds import Checkpoint, Subscription, subscribe
from construct_messages.rdf.terms import Term
from construct_messages.streams.element import Element
from tests.support.http.ldes import (
    EX,
    FAST,
    FORMATS,
    all_of,
    members,
    numbers,
    pages,
    relation,
    site,
    time_of,
)
from tests.support.http.streams import StreamsServer
from tests.support.logs.kinds import isomorphic
from tests.support.streams import numbered
from tests.support.waiting import eventually


class Following:
    """A subscription that is followed until the test ends."""

    def __init__(self, subscription: Subscription) -> None:
        self.subscription, self.elements = subscription, list[Element]()
        self.task = asyncio.ensure_future(self._follow())

    async def _follow(self) -> None:
        async with aclosing(self.subscription):
            async for element in self.subscription:
                self.elements.append(element)

    async def until(self, count: int) -> list[Element]:
        await eventually(lambda: len(self.elements) >= count or self.task.done())
        return self.elements

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


# --- of a server of this package --------------------------------------------------------------------------------------


MIXED = [
    numbered(1),
    Message(),
    Message(
        [
            Quad(Term("_:b"), iri("urn:p"), Term("_:c")),
            Quad(iri("urn:s"), iri("urn:p"), Term("_:b"), iri("urn:g")),
        ]
    ),
    Message([Quad(iri("urn:s"), iri("https://w3id.org/tree#member"), iri("urn:m"))]),
    Message([Quad(iri("urn:s"), iri("urn:p"), literal("\r\n\u2028é😀"), Term("_:g"))]),
]


@pytest.mark.parametrize("path", ["/ldes", "/ldes#stream", "/ldes/1-1000"])
async def test_messages_come_back(served: StreamsServer, path: str) -> None:
    await served.publish(MIXED)
    elements = await all_of(f"{served.url}/streams/a{path}")
    assert [element.sequence for element in elements] == [1, 2, 3, 4, 5]
    assert all(
        isomorphic([element.message], [sent]) for element, sent in zip(elements, MIXED, strict=True)
    )
    assert {element.stream for element in elements} == {f"{served.url}/streams/a/ldes#stream"}
    stored = await served.ask("GET", "/streams/a/output?after=0", Accept="application/ld+json")
    times = [each["prov:generatedAtTime"]["@value"] for each in stored.json["@graph"]]
    assert [element.time.isoformat() for element in elements] == times


async def test_by_the_description_of_a_stream(served: StreamsServer) -> None:
    await served.publish(MIXED)
    elements = await all_of(f"{served.url}/streams/a", via="ldes", after=2)
    assert [element.sequence for element in elements] == [3, 4, 5]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"after": 3}, [4, 5]),
        ({"last": 2}, [4, 5]),
        ({"last": 0}, []),
        ({"last": 9}, [1, 2, 3, 4, 5]),
    ],
)
async def test_where_it_begins(
    served: StreamsServer, where: dict[str, Any], expected: list[int]
) -> None:
    for number in range(1, 6):
        await served.publish([numbered(number)])
    elements = await all_of(f"{served.url}/streams/a/ldes", **where)
    assert [element.sequence for element in elements] == expected
    if expected:
        elements = await all_of(f"{served.url}/streams/a/ldes", since=elements[0].time)
        assert [element.sequence for element in elements] == expected


async def test_following_over_pages(small_pages: StreamsServer) -> None:
    """Full pages are fetched once, and nothing is fetched whole that has not changed."""
    await small_pages.publish([numbered(number) for number in range(1, 26)])
    following = Following(subscribe(f"{small_pages.url}/streams/a/ldes", after=0, **FAST))
    assert len(await following.until(25)) == 25
    for number in range(26, 46):
        await small_pages.publish([numbered(number)])
    await following.until(45)
    await following.stop()
    assert [(each.sequence, each.message) for each in following.elements] == [
        (n, numbered(n)) for n in range(1, 46)
    ]


async def test_going_on(small_pages: StreamsServer) -> None:
    """From a checkpoint behind any element, also where many have one time."""
    await small_pages.publish([numbered(number) for number in range(1, 16)])
    await small_pages.publish([numbered(number) for number in range(16, 31)])
    url = f"{small_pages.url}/streams/a/ldes"
    for behind in (1, 10, 14, 15, 16, 29, 30):
        subscription = subscribe(url, follow=False)
        async with aclosing(subscription):
            for _ in range(behind):
                await anext(subscription)
            checkpoint = subscription.checkpoint
        kept = msgspec.json.decode(msgspec.json.encode(checkpoint), type=Checkpoint)
        assert len(kept.place["known"]) == 1
        rest = await all_of(url, checkpoint=kept)
        assert [each.sequence for each in rest] == list(range(behind + 1, 31))


async def test_after_retention(small_pages: StreamsServer) -> None:
    await small_pages.ask("PUT", "/streams/a", b'{"retainedElements": 12}', "application/json")
    await small_pages.publish([numbered(number) for number in range(1, 46)])
    elements = await all_of(f"{small_pages.url}/streams/a/ldes")
    assert [each.sequence for each in elements] == list(range(34, 46))


# --- pages of other hands ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("media_type", FORMATS)
@pytest.mark.parametrize("path", ["/", "/#stream", "/a"])
async def test_five_formats(media_type: str, path: str) -> None:
    async with site(media_type) as where:
        pages(where)
        where.pages["/a"] = f"{where.pages['/a']}\n</#stream> tree:view </> ."
        elements = await all_of(where.url + path)
        assert numbers(elements) == [1, 2, 3, 4, 5, 6]
        assert [each.sequence for each in elements] == [1, 2, 3, 4, 5, 6]
        assert [each.time.minute for each in elements] == [1, 2, 3, 4, 5, 6]
        assert all(len(each.message) == 4 for each in elements), (
            "with the blank node, and nothing of the page"
        )
        assert all(len(list(each.message)) == 4 for each in elements)


async def test_in_no_order() -> None:
    async with site() as where:
        pages(where, ordered=False)
        assert sorted(numbers(await all_of(where.url + "/"))) == [1, 2, 3, 4, 5, 6]


async def test_members_as_graphs_and_versions() -> None:
    """A member has its star, the graph of its name, and what the blank nodes in them lead to; nothing of others."""
    async with site() as where:
        where.page(
            "/",
            """
            </#s> a ldes:EventStream ; ldes:timestampPath dct:created ; ldes:versionOfPath dct:isVersionOf ;
                tree:view <> ; tree:member ex:v1, ex:v2 .
            ex:v1 dct:created "2026-11-22T12:00:00Z"^^xsd:dateTime ; dct:isVersionOf ex:v .
            ex:v1 { ex:v ex:p [ ex:q ex:w, ( 1 2 ) ] ; ex:next ex:v2 . }
            ex:v2 dct:isVersionOf ex:v .
            ex:v2 { ex:v2 dct:created "2026-11-22T12:00:01Z"^^xsd:dateTime . ex:v ex:p _:a . _:a ex:q _:a . }
            ex:w ex:is "no part of any" .
            """,
        )
        first, second = await all_of(where.url + "/")
        assert len(first.message) == 10
        assert {quad.graph for quad in first.message} == {None, f"<{EX}v1>"}
        assert len(second.message) == 4


async def test_the_profile() -> None:
    """Each member is what stands behind its `tree:member`, whatever its subject, also where another says the same."""
    async with site('application/n-quads; profile="https://w3id.org/tree/profile"') as where:
        where.pages["/"] = f"""<{where.url}/#s> <https://w3id.org/tree#view> <{where.url}/> .
<{where.url}/#s> <https://w3id.org/tree#member> <urn:1> .
<urn:1> <urn:p> <urn:x> .
<urn:x> <urn:p> "shared" .
<{where.url}/#s> <https://w3id.org/tree#member> <urn:2> .
<urn:2> <urn:p> <urn:x> .
<urn:x> <urn:p> "shared" .
<urn:2> <urn:p> <{where.url}/x> <urn:2> .
<{where.url}/> <https://w3id.org/tree#relation> _:r .
_:r <https://w3id.org/tree#node> <http://127.0.0.2/> .
"""
        where.media_type = where.media_type.partition(";")[0]
        where.headers["/"] = {
            "Content-Type": 'application/n-quads; profile="https://w3id.org/tree/profile"'
        }
        where.serialized = lambda page, _: page.encode()  # type: ignore[method-assign]
        first, second = await all_of(where.url + "/")
        assert (len(first.message), len(second.message)) == (2, 5), (
            "what members say is no hypermedia"
        )


async def test_times_on_both_sides_of_bounds() -> None:
    """Relations in any order, a linked list, several relations to one page, bounds of another path: all the same."""
    async with site() as where:
        where.page(
            "/",
            "</#stream> a ldes:EventStream ; ldes:timestampPath dct:created ; tree:view <> . "
            + relation("/3", "GreaterThan", time_of(7))
            + relation("/1", "LessThanOrEqualTo", time_of(7))
            + relation("/1", "GreaterThanOrEqualTo", time_of(5))
            + relation("/0", "LessThan", "100", path="ex:number"),
        )
        where.page("/1", members(7, 5, 6))
        where.page("/3", members(9) + relation("/4"))
        where.page("/4", members(8) + relation("/3") + relation("/"))
        where.page("/0", members(2, 1) + relation("/0"))
        assert numbers(await all_of(where.url + "/")) == [1, 2, 5, 6, 7, 8, 9]


async def test_bounds_without_a_datatype() -> None:
    """They are times as well; what is neither a time nor a number is no bound."""
    async with site() as where:
        bounds = [f'"2026-11-22T00:0{number}:00Z"' for number in (4, 7)]
        where.page(
            "/",
            "</#s> ldes:timestampPath dct:created ; tree:view <> . "
            + relation("/b", "GreaterThanOrEqualTo", bounds[0])
            + relation("/c", "GreaterThanOrEqualTo", '"September"')
            + relation("/a", "LessThan", bounds[0]),
        )
        where.page("/a", members(3, 1))
        where.page("/b", members(5, 4))
        where.page("/c", members(2))
        assert numbers(await all_of(where.url + "/")) == [1, 2, 3, 4, 5]


async def test_a_path_of_several_steps() -> None:
    async with site() as where:
        said = "".join(
            f"</#s> tree:member ex:m{n} . ex:m{n} ex:a [ ex:b {10 - n} ] ; ex:number {n} . "
            for n in (1, 2, 3)
        )
        where.page("/", f"</#s> ldes:sequencePath ( ex:a ex:b ) ; tree:view <> . {said}")
        assert numbers(await all_of(where.url + "/")) == [3, 2, 1]
        where.page("/", f"</#s> ldes:sequencePath [ ex:inverse ex:a ] ; tree:view <> . {said}")
        with pytest.raises(SourceError, match="not read here"):
            await all_of(where.url + "/")


# --- following --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ordered", [True, False])
async def test_what_is_asked_again(ordered: bool) -> None:
    async with site() as where:
        pages(where, ordered=ordered)
        following = Following(subscribe(where.url + "/", after=0, **FAST))
        await following.until(6)
        where.page("/b", members(5, 4, 6, 7))
        await following.until(7)
        where.page("/c", members(8))
        where.pages["/"] = f"{where.pages['/']}{relation('/c', 'GreaterThan', time_of(7))}"
        await following.until(8)
        before = where.asked["/"]
        await eventually(lambda: where.asked["/"] > before + 2)
        await following.stop()
        assert sorted(numbers(following.elements)) == list(range(1, 9))
        assert where.asked["/a"] == 1, "it is immutable"
        whole = [path for path, status in where.answered if status == 200]
        assert whole[:3].count("/") == 2, "to find the stream, and to read it"
        assert (whole.count("/b"), whole.count("/c")) == (2, 1)


async def test_a_page_that_grows_while_others_are_read() -> None:
    """The later page has a member that is later than one which the earlier page gets after it was read."""
    async with site() as where:
        where.page(
            "/",
            "</#stream> ldes:timestampPath dct:created ; tree:view <> . "
            + relation("/a")
            + relation("/b"),
        )
        where.page("/a", members(1))
        where.page("/b", members(2))

        def grow(path: str) -> None:
            if path == "/b" and where.asked["/b"] == 0:
                where.page("/a", members(1, 3))
                where.page("/b", members(2, 4))

        where.before = grow
        assert numbers(await all_of(where.url + "/")) == [1, 2, 3, 4]


async def test_pages_that_are_merged() -> None:
    """The old ones redirect to the new one, which has the members of all."""
    async with site() as where:
        pages(where)
        del where.headers["/a"]["Cache-Control"]
        following = Following(subscribe(where.url + "/", after=0, **FAST))
        await following.until(6)
        where.page("/ab", members(7, 3, 2, 1, 6, 5, 4))
        for old in ("/a", "/b"):
            where.pages[old], where.headers[old] = 302, {"Location": "/ab"}
        await following.until(7)
        assert numbers(await all_of(where.url + "/")) == [1, 2, 3, 4, 5, 6, 7]
        await following.stop()
        assert numbers(following.elements) == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ('"PT1H"^^xsd:duration', 3600),
        ("60", 60),
        ('"P1DT0.5S"^^xsd:duration', 86400.5),
        ('"soon"', 0.01),
        ("0", 0.01),
    ],
)
async def test_polling_interval(monkeypatch: pytest.MonkeyPatch, said: str, seconds: float) -> None:
    """A stream may say how long to wait, if that is longer than the client would."""
    pauses = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.Event().wait()

    async with site() as where:
        pages(where)
        where.pages["/"] = f"{where.pages['/']} </#stream> ldes:pollingInterval {said} ."
        with monkeypatch.context() as patched:
            patched.setattr(
                "construct_messages.feeds.http.ldes.asyncio", SimpleNamespace(sleep=sleep)
            )
            following = Following(subscribe(where.url + "/", after=0, **FAST))
            await eventually(lambda: pauses)
            await following.stop()
        assert pauses == [seconds]


@pytest.mark.parametrize("ordered", [True, False])
async def test_going_on_behind_each(ordered: bool) -> None:
    async with site() as where:
        pages(where, ordered=ordered)
        checkpoint: Checkpoint | None = Checkpoint(0)
        found: list[Element] = []
        for _ in range(6):
            subscription = subscribe(where.url + "/", checkpoint=checkpoint, **FAST)
            async with aclosing(subscription):
                found.append(await anext(subscription))
                checkpoint = subscription.checkpoint
        assert sorted(numbers(found)) == [1, 2, 3, 4, 5, 6]
        assert [each.sequence for each in found] == [1, 2, 3, 4, 5, 6]
        assert await all_of(where.url + "/", checkpoint=checkpoint) == []
        if ordered:
            before = where.asked["/a"]
            await all_of(where.url + "/", checkpoint=checkpoint)
            assert where.asked["/a"] == before, "all of it was given"


async def test_from_now_on() -> None:
    async with site() as where:
        pages(where)
        subscription = subscribe(where.url + "/", **FAST)
        await subscription.start()
        assert subscription.checkpoint is not None
        assert subscription.checkpoint.sequence == 6
        where.page("/b", members(5, 4, 6, 7))
        async with aclosing(subscription):
            assert numbers([await anext(subscription)]) == [7]

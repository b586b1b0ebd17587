"""Servers that leave something out: a reader notices, by the sequences that the server itself tells."""

from __future__ import annotations

from typing import Any

import pytest

from construct_messages.errors import SourceError
from construct_messages.feeds import subscribe
from tests.support.http.feeds import answering
from tests.support.http.ldes import FAST, all_of, site
from tests.support.http.streams import StreamsServer
from tests.support.streams import numbered

EVENTS = {"Content-Type": "text/event-stream", "RDF-Message-Content-Type": "application/n-quads"}
LOG = {"Content-Type": "application/n-quads; messages=rdfm"}


def event(id: object) -> bytes:
    return f"event: rdf-message\nid: {id}\ndata: <urn:s> <urn:p> <urn:o> .\n\n".encode()


async def sequences(url: str, count: int, after: int) -> list[int]:
    subscription = subscribe(url, after=after, retries=0)
    taken = [(await anext(subscription)).sequence for _ in range(count)]
    await subscription.aclose()
    return taken


async def test_events_with_a_gap() -> None:
    body = b"".join(map(event, (6, 7, 9)))
    async with answering({**EVENTS, "RDF-Stream-After": "5"}, body) as (url, _):
        assert await sequences(url, 2, 5) == [6, 7]
        with pytest.raises(SourceError, match="element 8 is missing between 7 and 9"):
            await sequences(url, 3, 5)


async def test_events_of_servers_that_number_otherwise() -> None:
    """Ids of others are what they are: times, or positions in a log."""
    async with answering(EVENTS, b"".join(map(event, (10, 20, 1_800_000_000)))) as (url, _):
        assert await sequences(url, 3, 5) == [10, 20, 1_800_000_000]


@pytest.mark.parametrize(
    ("after", "said"),
    [("7", "elements 6 to 7 are missing between 5 and 8"), ("4", "begins after element 4")],
)
async def test_events_that_begin_elsewhere(after: str, said: str) -> None:
    async with answering({**EVENTS, "RDF-Stream-After": after}, event(int(after) + 1)) as (url, _):
        with pytest.raises(SourceError, match=said):
            await sequences(url, 1, 5)


async def test_a_log_that_ends_too_early() -> None:
    """At the end of a message, as behind a proxy that cuts what it caches; whole messages alone do not tell."""
    async with site() as where:
        described = '{"@id": "/s", "output": "/o"}'
        where.serialized = lambda page, _: page.encode()  # type: ignore[method-assign]
        where.pages["/s"], where.headers["/s"] = described, {"Content-Type": "application/ld+json"}
        where.pages["/o?after=0"] = "# @message\n<urn:s> <urn:p> <urn:o> .\n" * 2
        where.headers["/o?after=0"] = {**LOG, "RDF-Stream-After": "0", "RDF-Stream-Last": "3"}
        with pytest.raises(SourceError, match="answered with status 404"):
            await all_of(f"{where.url}/s", after=0)
        where.pages["/o?after=2"] = "# @message\n<urn:s> <urn:p> <urn:last> .\n"
        where.headers["/o?after=2"] = {**LOG, "RDF-Stream-After": "2", "RDF-Stream-Last": "3"}
        read = await all_of(f"{where.url}/s", after=0)
        assert [element.sequence for element in read] == [1, 2, 3], "it is asked for the rest"


INBOX = "PREFIX ldp: <http://www.w3.org/ns/ldp#> </inbox> ldp:contains"


@pytest.mark.parametrize(
    "links",
    [
        {"/inbox": '</inbox?2>; rel="next"', "/inbox?2": '</inbox?3>; rel="next"'},
        {
            "/inbox": '</inbox?2>; rel="prev"',
            "/inbox?2": '</inbox?3>; rel="previous", </inbox>; rel="next"',
        },
        {"/inbox": '</inbox?2>; rel="prev", </inbox?3>; rel="next"'},
    ],
    ids=["from the first", "from the last", "from the middle"],
)
async def test_all_pages_of_an_inbox_are_read(links: dict[str, str]) -> None:
    async with site("text/turtle") as where:
        for number, path in enumerate(("/inbox", "/inbox?2", "/inbox?3"), 1):
            headers = {"Content_Location": "https://elsewhere.example/inbox"}
            headers |= {"Link": links[path]} if path in links else {}
            where.page(path, f"{INBOX} </n/{number}> .", **headers)
            where.page(f"/n/{number}", f"<> ex:number {number} .")
        read = await all_of(f"{where.url}/inbox", **FAST)
        assert {quad.subject for element in read for quad in element.message} == {
            f"<{where.url}/n/{number}>" for number in (1, 2, 3)
        }


@pytest.mark.parametrize(
    "relation",
    ["https://www.w3.org/ns/activitystreams#next", "http://www.w3.org/ns/hydra/core#next"],
)
async def test_pages_that_the_page_itself_names(relation: str) -> None:
    async with site("text/turtle") as where:
        where.page("/inbox", f"{INBOX} </n/1> . </inbox> <{relation}> </inbox?2> .")
        where.page("/inbox?2", f"{INBOX} </n/2> .")
        for number in (1, 2):
            where.page(f"/n/{number}", "<urn:s> <urn:p> 1 .")
        assert len(await all_of(f"{where.url}/inbox", **FAST)) == 2


async def test_a_list_that_is_shorter_than_it_says() -> None:
    async with site("text/turtle") as where:
        bounds = "cm:firstSequence 1 ; cm:lastSequence 3"
        prefix = "PREFIX cm: <https://w3id.org/construct-messages#>"
        where.page("/inbox", f"{prefix} {INBOX} </n/1>, </n/2> ; {bounds} .")
        with pytest.raises(SourceError, match="lists 2 of its elements 1 to 3"):
            await all_of(f"{where.url}/inbox", **FAST)


@pytest.mark.parametrize("via", ["sse", "websocket", "pull"])
@pytest.mark.parametrize("again", [False, True], ids=["reconnected", "from a checkpoint"])
async def test_another_stream_of_the_same_name(
    served: StreamsServer, via: Any, again: bool
) -> None:
    """It was created while nobody was connected, and has got further than the one that was deleted."""
    url = f"{served.url}/streams/a"
    await served.publish(numbered(number) for number in range(1, 4))
    subscription = subscribe(url, via=via, after=0, **FAST)
    assert [(await anext(subscription)).sequence for _ in range(3)] == [1, 2, 3]
    checkpoint = subscription.checkpoint
    if again:
        await subscription.aclose()
    await served.ask("DELETE", "/streams/a")
    await served.ask("PUT", "/streams/a")
    await served.publish(numbered(number) for number in range(11, 21))
    if again:
        subscription = subscribe(url, via=via, checkpoint=checkpoint, **FAST)
    with pytest.raises(SourceError) as raised:
        await anext(subscription)
    # a socket is closed with 4404 where the server notices first
    assert raised.value.status == 410 or raised.value.response_status == 404
    await subscription.aclose()

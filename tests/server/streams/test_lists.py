"""Lists of elements, read to the end by clients of other hands: what they find is compared as a set.

Linked Data Notifications, section 3.3.2; Linked Data Platform Paging, sections 6.1 and 6.2. The walk over pages is
written from these, over urllib and rdflib. py-ldnlib reads one document, as most clients of inboxes do.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
import rdflib

from construct_messages import Message
from construct_messages.errors import SourceError
from construct_messages.feeds import subscribe
from construct_messages.rdf.vocabulary import LDP
from construct_messages.server.streams.resources import OFFERED
from tests.support.http.ldes import FAST
from tests.support.http.streams import StreamsServer
from tests.support.places import absent
from tests.support.streams import numbered
from tests.support.waiting import eventually

COUNT = 3005
CONTAINS = rdflib.URIRef(f"{LDP}contains")
PAGED = {"Prefer": 'return=representation; max-member-count="500"'}
FORMATS = {"application/ld+json": "json-ld", "text/turtle": "turtle", "application/n-triples": "nt"}

# the deprecation is within rdflib
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning"),
]


async def fill(served: StreamsServer, count: int = COUNT) -> set[str]:
    """Publishes elements; returns their IRIs."""
    sent = await served.publish(numbered(number) for number in range(1, count + 1))
    assert sent.status == 201
    return {f"{served.url}/streams/a/output/{number}" for number in range(1, count + 1)}


def members(body: bytes, media_type: str, container: str) -> set[str]:
    format = "json-ld" if media_type == "application/json" else media_type
    graph = rdflib.Dataset().parse(data=body, format=format, publicID=container)
    found = [
        object for _, _, object, _ in graph.quads((rdflib.URIRef(container), CONTAINS, None, None))
    ]
    return set(map(str, found))


def fetch(url: str, headers: Mapping[str, str]) -> tuple[bytes, dict[str, str]]:
    with urlopen(Request(url, headers=dict(headers))) as response:
        links = ", ".join(response.headers.get_all("Link", []))
        return response.read(), {
            relation: target for target, relation in re.findall(r'<([^>]*)>; rel="([^"]*)"', links)
        }


def walk(url: str, accept: str, relation: str = "next") -> tuple[set[str], int]:
    """What the pages of a list contain, and how many there are."""
    found, pages, page = set[str](), 0, url
    while page:
        body, links = fetch(page, {"Accept": accept, **PAGED})
        assert links["type"] == f"{LDP}Page"
        assert links["canonical"] == url.partition("?")[0]
        listed = members(body, accept, url.partition("?")[0])
        assert listed.isdisjoint(found), "an element is on one page"
        found, pages, page = found | listed, pages + 1, links.get(relation, "")
    return found, pages


@pytest.mark.parametrize("media_type", OFFERED)
@pytest.mark.parametrize("endpoint", ["inbox", "output"])
async def test_one_document_lists_all(
    served: StreamsServer, endpoint: str, media_type: str
) -> None:
    expected = await fill(served)
    url = f"{served.url}/streams/a/{endpoint}"
    body, links = await asyncio.to_thread(fetch, url, {"Accept": media_type})
    assert members(body, media_type, url) == expected
    assert "next" not in links


@pytest.mark.parametrize("media_type", FORMATS)
async def test_pages_lead_to_all(served: StreamsServer, media_type: str) -> None:
    """From the first to the last, and back."""
    expected = await fill(served)
    inbox = f"{served.url}/streams/a/inbox"
    assert await asyncio.to_thread(walk, inbox, media_type) == (expected, 4)
    _, links = await asyncio.to_thread(fetch, inbox, PAGED)
    assert await asyncio.to_thread(walk, links["last"], media_type, "prev") == (expected, 4)


async def test_pages_of_what_retention_left(served: StreamsServer) -> None:
    await fill(served)
    await served.ask("PUT", "/streams/a", b'{"retainedElements": 1500}', "application/json")
    expected = {f"{served.url}/streams/a/output/{number}" for number in range(1506, COUNT + 1)}
    inbox = f"{served.url}/streams/a/inbox"
    assert await asyncio.to_thread(walk, inbox, "text/turtle") == (expected, 3)
    body, _ = await asyncio.to_thread(fetch, inbox, {"Accept": "text/turtle"})
    assert members(body, "text/turtle", inbox) == expected
    statuses = [
        (await served.ask("GET", f"/streams/a/inbox?list={at}")).status
        for at in (1, 1001, 3005, 3006, 4001)
    ]
    assert statuses == [410, 200, 200, 200, 404]
    cached = [
        "immutable"
        in (await served.ask("GET", f"/streams/a/inbox?list={at}")).headers["Cache-Control"]
        for at in (1001, 2001, 3001)
    ]
    assert cached == [False, True, False], (
        "retention has begun to take the first, and the last goes on"
    )


@pytest.mark.parametrize("accept", [*OFFERED, "text/html"])
async def test_lists_without_an_element(served: StreamsServer, accept: str) -> None:
    for path in ("/streams/a/inbox", "/streams/a/output?list=1"):
        answer = await served.ask("GET", path, Accept=accept, **PAGED)
        assert answer.status == 200
        if accept != "text/html":
            assert members(answer.body, accept, f"{served.url}/streams/a/inbox") == set()


async def test_a_list_is_sent_once(served: StreamsServer) -> None:
    await fill(served, 10)
    first = await served.ask("GET", "/streams/a/inbox")
    etag = first.headers["ETag"]
    assert (await served.ask("GET", "/streams/a/inbox", If_None_Match=etag)).status == 304
    assert (await served.ask("HEAD", "/streams/a/inbox")).headers["ETag"] == etag
    await served.publish([Message()])
    assert (await served.ask("GET", "/streams/a/inbox", If_None_Match=etag)).status == 200


CONSUME = """
import json, sys
import ldnlib
consumer = ldnlib.Consumer(allow_localhost=True)
print(json.dumps(consumer.notifications(consumer.discover(sys.argv[1]))))
"""


@pytest.mark.engine
async def test_ldnlib_reads_the_inbox_to_its_end(served: StreamsServer) -> None:
    folder = Path(os.environ.get("CONSTRUCT_MESSAGES_LDNLIB", "nowhere"))
    if not (folder / "ldnlib").exists():
        absent(
            "PyPI's py-ldnlib is absent: set CONSTRUCT_MESSAGES_LDNLIB to the folder that it is installed in"
        )
    expected = await fill(served)
    program = (sys.executable, "-c", CONSUME, f"{served.url}/streams/a")
    process = await asyncio.create_subprocess_exec(
        *program, stdout=PIPE, env=os.environ | {"PYTHONPATH": str(folder)}
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    found = json.loads(output)
    assert (set(found), len(found)) == (expected, len(expected))


async def test_our_reader_reads_the_inbox_to_its_end(served: StreamsServer) -> None:
    await fill(served, 1001)
    url = f"{served.url}/streams/a"
    read = [element async for element in subscribe(url, via="inbox", follow=False, **FAST)]
    assert [(element.sequence, element.message) for element in read] == [
        (number, numbered(number)) for number in range(1, 1002)
    ]
    last = [
        element.sequence
        async for element in subscribe(f"{url}/inbox", via="inbox", follow=False, last=2)
    ]
    assert last == [1000, 1001]


async def test_our_reader_follows_over_the_end_of_a_page(served: StreamsServer) -> None:
    await fill(served, 990)
    subscription = subscribe(f"{served.url}/streams/a", via="inbox", **FAST)
    await subscription.start()
    taken = []
    for number in (991, 1001):
        await served.publish(numbered(each) for each in range(number, number + 10))
        taken += [(await anext(subscription)) for _ in range(10)]
    await subscription.aclose()
    assert [each.sequence for each in taken] == list(range(991, 1011))
    assert [each.message for each in taken] == [numbered(each) for each in range(991, 1011)]


@pytest.mark.parametrize("via", ["inbox", "ldes"])
async def test_our_reader_notices_what_was_removed_before_it_was_read(
    served: StreamsServer, via: str
) -> None:
    await served.ask("PUT", "/streams/a", b'{"retainedElements": 3}', "application/json")
    await served.publish(numbered(each) for each in range(1, 4))
    options = {**FAST, "poll_seconds": 0.05}
    subscription = subscribe(f"{served.url}/streams/a", via=via, after=0, **options)  # type: ignore[arg-type]
    assert [(await anext(subscription)).sequence for _ in range(3)] == [1, 2, 3]
    await served.publish(numbered(each) for each in range(4, 10))
    with pytest.raises(SourceError, match="elements 4 to 6 are missing between 3 and 7") as raised:
        await anext(subscription)
    assert raised.value.status == 410
    await eventually(lambda: served.followers() == 0)


async def test_the_list_of_streams_has_all(served: StreamsServer) -> None:
    """In one document; pages for browsers lead from one to the next."""
    store = served.streams._store
    await asyncio.gather(*(store.acreate(f"s{number:03}") for number in range(410)))
    expected = {
        f"{served.url}/streams/{name}"
        for name in ("a", *(f"s{number:03}" for number in range(410)))
    }
    container = f"{served.url}/streams"
    for media_type in FORMATS:
        body, _ = await asyncio.to_thread(fetch, container, {"Accept": media_type})
        assert members(body, media_type, container) == expected
    found, page = set[str](), "/streams"
    while page:
        html = (await served.ask("GET", page, Accept="text/html")).body.decode()
        rows = re.findall(r'<h3><a href="([^"]*)"', html)
        found |= {row.rpartition("/")[2] for row in rows}
        following = re.search(
            r'<a href="(\?after=[^"]*)"[^>]*rel="next"|<a rel="next" href="(\?after=[^"]*)"', html
        )
        page = f"/streams{following[1] or following[2]}" if following else ""
    assert found == {iri.rpartition("/")[2] for iri in expected}

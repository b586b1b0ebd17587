"""LDN inboxes of other hands, read: what they list is fetched, once each."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from construct_messages import Message
from construct_messages.errors import ConstructMessagesError, LogError, SourceError, UsageError
from construct_messages.feeds import subscribe
from construct_messages.streams.element import Element
from tests.support.http.ldes import FAST, FORMATS, Site, all_of, site
from tests.support.waiting import eventually

ACTIVITY = """{"@context": "https://www.w3.org/ns/activitystreams", "id": "urn:n%s", "type": "Announce",
 "actor": "urn:me", "summary": "one\\nof many"}"""


def subjects(elements: list[Element]) -> list[str]:
    return [
        "".join(sorted({quad.subject[5:-1] for quad in element.message})) for element in elements
    ]


def inbox(where: Site, *names: int) -> None:
    """An inbox with notifications: Activity Streams in JSON-LD, whose context is named."""
    listed = ", ".join(f"</inbox/{name}>" for name in names)
    where.page(
        "/inbox",
        "" if not names else f"PREFIX ldp: <http://www.w3.org/ns/ldp#> <> ldp:contains {listed} .",
    )
    where.pages["/"], where.headers["/"] = (
        "",
        {"Link": '</inbox>; rel="http://www.w3.org/ns/ldp#inbox"'},
    )
    for name in names:
        where.page(
            f"/inbox/{name}",
            "",
            Content_Type='application/ld+json; profile="https://www.w3.org/ns/x"',
        )
        where.pages[f"/inbox/{name}"] = ACTIVITY % name


@pytest.mark.parametrize("media_type", FORMATS)
@pytest.mark.parametrize("path", ["/inbox", "/"])
async def test_what_is_listed(media_type: str, path: str) -> None:
    async with site(media_type) as where:
        inbox(where, 1, 2, 3)
        serialized = where.serialized
        where.serialized = lambda page, path: (  # type: ignore[method-assign]
            page.encode() if path.startswith("/inbox/") else serialized(page, path)
        )
        elements = await all_of(where.url + path)
        assert sorted(subjects(elements)) == ["n1", "n2", "n3"]
        assert [element.sequence for element in elements] == [1, 2, 3]
        assert all(len(element.message) == 3 for element in elements)


async def test_following_and_going_on() -> None:
    async with site() as where:
        inbox(where, 1, 2)
        subscription = subscribe(where.url + "/inbox", **FAST)
        await subscription.start()
        taking = asyncio.ensure_future(anext(subscription))
        await eventually(lambda: ("/inbox", 304) in where.answered)
        assert where.asked["/inbox/1"] == 0, "it begins with what comes next"
        inbox(where, 1, 2, 3)
        assert subjects([await taking]) == ["n3"]
        checkpoint = subscription.checkpoint
        await subscription.aclose()
        inbox(where, 3, 4, 2, 5)
        where.pages["/inbox/5"] = 404  # it was removed since
        elements = await all_of(where.url + "/inbox", checkpoint=checkpoint)
        assert (subjects(elements), elements[0].sequence) == (["n4"], 4)
        assert (where.asked["/inbox/3"], where.asked["/inbox/1"]) == (1, 0)


async def test_pages_of_the_list() -> None:
    async with site() as where:
        inbox(where, 1, 2)
        where.headers["/inbox"] = {"Link": '</inbox?2>; rel="next"'}
        where.page(
            "/inbox?2", "</inbox> <http://www.w3.org/ns/ldp#contains> </inbox/3>, </inbox/1> ."
        )
        where.pages["/inbox/3"], where.headers["/inbox/3"] = (
            ACTIVITY % 3,
            {"Content-Type": "application/ld+json"},
        )
        where.headers["/inbox?2"] = {"Link": '</inbox>; rel="next"'}  # a loop
        assert sorted(subjects(await all_of(where.url + "/inbox"))) == ["n1", "n2", "n3"]
        assert subjects(await all_of(where.url + "/inbox", last=1)) == ["n3"]


async def test_json_whose_context_is_in_a_header() -> None:
    """JSON-LD 1.1, section 6.1: of JSON, and not of JSON-LD."""
    link = '<urn:context>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"'
    async with site() as where:
        inbox(where, 1, 2)
        for name, media_type in ((1, "application/json"), (2, "application/ld+json")):
            where.headers[f"/inbox/{name}"] = {"Content-Type": media_type, "Link": link}
            where.pages[f"/inbox/{name}"] = '{"@id": "urn:s", "p": "o", "urn:q": 1}'
        elements = await all_of(where.url + "/inbox", contexts={"urn:context": {"p": "urn:p"}})
        assert sorted(len(element.message) for element in elements) == [1, 2]


@pytest.mark.parametrize(
    ("headers", "body", "error", "said"),
    [
        (
            {"Content-Type": "application/ld+json"},
            '{"@context": "urn:none", "p": 1}',
            LogError,
            "urn:none",
        ),
        ({"Content-Type": "application/ld+json"}, "{", LogError, "/inbox/1"),
        ({"Content-Type": "text/html"}, "<html>", SourceError, "not read"),
        (
            {"Content-Type": "text/turtle; messages=rdfm"},
            "<urn:s> a 1 .\n# @message\n<urn:s> a 2 .",
            LogError,
            "2 messages",
        ),
    ],
    ids=str,
)
async def test_notifications_that_are_none(
    headers: dict[str, str], body: str, error: type[ConstructMessagesError], said: str
) -> None:
    async with site() as where:
        inbox(where, 1)
        where.headers["/inbox/1"], where.pages["/inbox/1"] = headers, body
        with pytest.raises(error) as raised:
            await all_of(where.url + "/inbox")
        assert said in "\n".join((str(raised.value), *getattr(raised.value, "__notes__", ())))


async def test_other_origins() -> None:
    async with site() as where, site() as other:
        inbox(where)
        other.pages["/n"], other.headers["/n"] = "", {"Content-Type": "text/turtle"}
        where.page("/inbox", f"<> <http://www.w3.org/ns/ldp#contains> <{other.url}/n> .")
        with pytest.raises(SourceError, match="another origin"):
            await all_of(where.url + "/inbox")
        elements = await all_of(where.url + "/inbox", origins=[other.url], token="secret")
        assert [element.message for element in elements] == [Message()]
        assert "Authorization" not in other.requests[0].headers


@pytest.mark.parametrize("where", [{"after": 1}, {"via": "ldes"}], ids=str)
async def test_what_cannot_be_asked_for(where: dict[str, Any]) -> None:
    async with site() as place:
        inbox(place, 1)
        with pytest.raises((UsageError, SourceError)):
            await all_of(place.url + "/inbox", **where)


async def test_an_inbox_of_a_server_of_this_package(served: Any) -> None:
    """By its description; what it lists are elements."""
    await served.publish([Message(), Message()])
    async with aclosing(
        subscribe(f"{served.url}/streams/a", via="inbox", follow=False, **FAST)
    ) as elements:
        assert [element.sequence async for element in elements] == [1, 2]

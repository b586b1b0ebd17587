"""Event streams that fail, that are refused, or that mean harm."""

from __future__ import annotations

from typing import Any

import pytest

from construct_messages.errors import (
    ConstructMessagesError,
    LimitExceeded,
    LogError,
    SourceError,
    UsageError,
)
from construct_messages.feeds import subscribe
from tests.support.http.ldes import FAST, all_of, members, numbers, pages, relation, site, time_of


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
async def test_statuses_that_pass(status: int) -> None:
    async with site() as where:
        pages(where)
        where.failures = {"/": [status], "/a": [status, status], "/b": [status]}
        assert numbers(await all_of(where.url + "/")) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 406, 501])
async def test_statuses_that_do_not(status: int) -> None:
    async with site() as where:
        pages(where)
        where.pages["/b"] = status
        with pytest.raises(SourceError) as raised:
            await all_of(where.url + "/")
        assert raised.value.response_status == status
        assert where.asked["/b"] == 1


async def test_pages_that_are_gone() -> None:
    async with site() as where:
        pages(where)
        where.pages["/a"] = 410
        assert numbers(await all_of(where.url + "/")) == [4, 5, 6]
        where.pages["/"] = 410
        with pytest.raises(SourceError) as raised:
            await all_of(where.url + "/")
        assert (raised.value.status, raised.value.response_status) == (410, 410)


async def test_other_origins() -> None:
    """Pages and redirects lead to the same origin, unless another one is allowed; the token goes to the first only."""
    async with site() as where, site() as other:
        pages(where)
        where.page(
            "/",
            f"</#stream> ldes:timestampPath dct:created ; tree:view <> . {relation(other.url + '/c')}",
        )
        other.page("/c", members(1).replace("</#", f"<{where.url}/#"))
        with pytest.raises(SourceError, match="another origin"):
            await all_of(where.url + "/")
        assert not other.requests
        assert numbers(await all_of(where.url + "/", origins=[other.url], token="secret")) == [1]
        assert "Authorization" not in other.requests[0].headers
        assert where.requests[-1].headers["Authorization"] == "Bearer secret"
        where.pages["/redirect"], where.headers["/redirect"] = 302, {"Location": f"{other.url}/c"}
        with pytest.raises(SourceError, match="redirects"):
            await all_of(where.url + "/redirect")
        where.headers["/redirect"] = {"Location": "/"}
        assert numbers(await all_of(where.url + "/redirect", origins=[other.url])) == [1]


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.2/",
        "http://169.254.169.254/latest/meta-data/",
        "https://127.0.0.1/",
        "file:///etc/passwd",
        "http://me:secret@127.0.0.1/",
        "gopher://127.0.0.1/",
        "urn:x",
        "//example.org/",
    ],
)
async def test_hostile_relations(target: str) -> None:
    async with site() as where:
        where.page("/", f"</#stream> tree:view <> . {relation(target)}")
        with pytest.raises(
            (SourceError, UsageError), match=r"another origin|malformed|credentials"
        ):
            await all_of(where.url + "/")
        assert set(where.asked) == {"/"}


VIEW = "</#s> ldes:timestampPath dct:created ; tree:view <> . "


@pytest.mark.parametrize(
    ("body", "error", "said"),
    [
        ("<> a tree:Node .", SourceError, "describes no stream"),
        ("</#s> tree:view </x>, </y> .", SourceError, "2 views"),
        ("</#s> tree:view </x> .", SourceError, "status 404"),
        ("</#s> tree:view <", SourceError, "describes no stream"),
        (VIEW + "</#s> tree:member [] .", SourceError, "is no IRI"),
        (VIEW + "</#s> tree:member ex:m .", SourceError, "0 values"),
        (VIEW + "</#s> tree:member ex:m . ex:m dct:created 1, 2 .", SourceError, "2 values"),
        (VIEW + "<> tree:relation [ tree:node [] ] .", SourceError, "no page"),
        (VIEW + relation("/x"), SourceError, "status 404"),
        (VIEW + relation("/broken"), LogError, "/broken"),
        (VIEW + relation("/html"), SourceError, "not read"),
        (VIEW + relation("/large"), LimitExceeded, "more than 100000 bytes"),
    ],
    ids=str,
)
async def test_pages_that_are_none(
    body: str, error: type[ConstructMessagesError], said: str
) -> None:
    async with site() as where:
        where.page("/", body)
        where.page("/broken", "ex:s ex:p")
        where.page("/html", "<html>", Content_Type="text/html")
        where.page("/large", "# " + "x" * 100_000)
        with pytest.raises(error) as raised:
            await all_of(where.url + "/", message_bytes=100_000)
        assert said in "\n".join((str(raised.value), *getattr(raised.value, "__notes__", ())))


@pytest.mark.parametrize(
    ("kind", "number"), [("GreaterThan", 3), ("LessThanOrEqualTo", 1), ("EqualTo", 1)]
)
async def test_relations_that_lie(kind: str, number: int) -> None:
    """A member out of bounds might have been given before one that is earlier, or be left out for ever."""
    async with site() as where:
        said = relation("/a", kind, time_of(number))
        where.page("/", f"</#stream> ldes:timestampPath dct:created ; tree:view <> . {said}")
        where.page("/a", members(2))
        with pytest.raises(SourceError, match="not within the bounds"):
            await all_of(where.url + "/")


async def test_pages_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("construct_messages.feeds.http.ldes._PAGES", 20)
    async with site() as where:
        where.page("/", f"</#stream> tree:view <> . {relation('/1')}")
        where.before = lambda path: where.page(path, relation(f"{path}1")) if path != "/" else None
        with pytest.raises(LimitExceeded, match="more than 20 pages"):
            await all_of(where.url + "/")
        assert len(where.asked) <= 21


async def test_members_that_cannot_be_brought_into_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without bounds all of them are held; with bounds those of a page are."""
    monkeypatch.setattr("construct_messages.feeds.http.ldes._HELD_BYTES", 1500)
    async with site() as where:
        for number in range(1, 9):
            where.page(f"/{number}", members(number))
        path = "</#stream> ldes:timestampPath dct:created ; tree:view <> . "
        bounds = ("GreaterThanOrEqualTo", "LessThanOrEqualTo")
        said = "".join(relation(f"/{n}", kind, time_of(n)) for n in range(1, 9) for kind in bounds)
        where.page("/", path + said)
        assert numbers(await all_of(where.url + "/")) == [1, 2, 3, 4, 5, 6, 7, 8]
        where.page("/", path + "".join(relation(f"/{number}") for number in range(1, 9)))
        with pytest.raises(LimitExceeded, match="brought into order"):
            await all_of(where.url + "/")


@pytest.mark.slow
async def test_many_relations() -> None:
    """Ten thousand relations to one page, and a loop, cost one request each."""
    async with site() as where:
        where.page(
            "/",
            "</#stream> ldes:timestampPath dct:created ; tree:view <> . "
            + "".join(
                relation("/a", "GreaterThan", time_of(number % 2)) for number in range(10_000)
            ),
        )
        where.page("/a", members(1) + relation("/") + relation("/a"))
        assert numbers(await all_of(where.url + "/")) == [1]
        assert where.asked["/a"] <= 2


@pytest.mark.parametrize(
    ("options", "said"),
    [({"after": 3}, "no sequences"), ({"via": "sse", "follow": True}, "cannot be had via sse")],
    ids=str,
)
async def test_what_cannot_be_asked_for(options: dict[str, Any], said: str) -> None:
    async with site() as where:
        pages(where)
        with pytest.raises((UsageError, SourceError), match=said):
            await anext(subscribe(where.url + "/", **FAST | {"follow": False} | options))

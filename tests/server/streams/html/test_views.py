"""Streams in a browser: who gets pages, that nobody else gets anything new, and what the pages say."""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
import pytest_asyncio

from construct_messages import Message, Quad, iri, literal
from construct_messages.server.pages.endpoint import POLICY
from construct_messages.streams import Description, Retention, open_store
from tests.support.http.streams import Answer, StreamsServer, serving_streams
from tests.support.pages.accepts import BROWSERS, PROGRAMS
from tests.support.streams import numbered

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHROMIUM = BROWSERS["Chromium"]
PUBLIC = "https://example.org/data"
QUERY = "CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:number> ?o FILTER(?o != '<b>') }"
PATHS = {
    "/streams": "the list of streams",
    "/streams/a": "a stream",
    "/streams/b": "an empty stream",
    "/streams/none": "no stream (404)",
    "/streams/a/output": "the listing",
    "/streams/a/output?list=12": "a page of the listing",
    "/streams/a/inbox": "the inbox",
    "/streams/a/output?last=3": "a sequence",
    "/streams/a/output?after=x": "a malformed parameter (400)",
    "/streams/a/output/12": "an element",
    "/streams/a/output/2": "an element that is gone (410)",
    "/streams/a/output/99": "an element to come (404)",
    "/streams/a/ldes": "an event stream",
    "/streams/a/ldes/11-15": "a page of it",
    "/streams/a/ldes/1-5": "a page that is gone (410)",
    "/nowhere": "nothing (404)",
}
HOSTILE = (
    '<script>document.title = "run"</script>',
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }} {% raw %} ${x} &amp; &lt;",
    "‮txet desrever ‭",
    "\x00\x01\x0b\x7f\ufffe",
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a stream of whose 30 elements retention keeps 20, and one that a query gives out."""
    path = tmp_path_factory.mktemp("streams") / "streams.db"
    with open_store(path) as store:
        store.create("a", Description(label='A & "B" <b>', retention=Retention(count=20)))
        store.append_all("a", map(numbered, range(1, 29)))
        text = [Quad(iri("urn:s"), iri("urn:p"), literal(each)) for each in HOSTILE]
        link = Quad(iri("urn:s"), iri("javascript:alert(1)"), iri("javascript:alert(1)"))
        store.append(
            "a",
            Message(
                [*text, link, Quad(iri("urn:s"), iri("urn:p"), iri("https://example.org/x?a&b"))]
            ),
        )
        store.append("a", Message([Quad(iri("urn:s"), iri("urn:p"), literal("x" * 200_000))]))
        store.create("b")
    return path


def served_with(filled: Path, folder: Path, *, page: bool) -> AsyncIterator[StreamsServer]:
    copy = folder / "streams.db"
    shutil.copy(filled, copy)
    settings = {"publish": "allow", "register": "allow", "ldes_page": 5}
    return serving_streams(copy, server={"page": page, "public_url": PUBLIC}, **settings)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def with_page(
    filled: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[StreamsServer]:
    async with served_with(filled, tmp_path_factory.mktemp("with"), page=True) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def without_page(
    filled: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[StreamsServer]:
    async with served_with(filled, tmp_path_factory.mktemp("without"), page=False) as server:
        yield server


async def get(
    server: StreamsServer, path: str, accept: str | None, method: str = "GET", **headers: str
) -> Answer:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if accept is not None:
        sent["Accept"] = accept
    async with server.client.request(
        method, server.url + path, headers=sent, skip_auto_headers=("Accept", "Accept-Encoding")
    ) as response:
        return Answer(response.status, response.headers, await response.read())


def is_html(answer: Answer) -> bool:
    return answer.headers["Content-Type"].startswith("text/html")


class Page(HTMLParser):
    """The links, texts and elements of a page."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: list[str] = []
        self.attributes: list[str] = []
        self.texts: list[str] = []
        self.feed(body.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.links += [value or "" for name, value in attrs if tag == "a" and name == "href"]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.parametrize("path", PATHS, ids=PATHS.get)
async def test_programs_get_what_they_got(
    with_page: StreamsServer, without_page: StreamsServer, path: str
) -> None:
    """Byte for byte, and all headers."""
    for name, accept in PROGRAMS.items():
        answers = [
            await get(server, path, accept, X_Request_ID="same")
            for server in (with_page, without_page)
        ]
        here, there = ((each.status, without_date(each), each.body) for each in answers)
        assert here == there, name
        assert not is_html(answers[0]), name


def without_date(answer: Answer) -> list[tuple[str, str]]:
    return [(name, value) for name, value in answer.headers.items() if name != "Date"]


@pytest.mark.parametrize("path", PATHS, ids=PATHS.get)
async def test_browsers_get_pages(with_page: StreamsServer, path: str) -> None:
    for name, accept in BROWSERS.items():
        assert is_html(await get(with_page, path, accept)), name
    page, data = await get(with_page, path, accept), await get(with_page, path, "*/*")
    assert (page.status, page.headers["Content-Type"]) == (data.status, "text/html; charset=utf-8")
    assert page.headers["Content-Security-Policy"] == POLICY
    assert "Accept" in page.headers["Vary"].split(", ")
    head = await get(with_page, path, accept, "HEAD")
    assert (head.status, head.body) == (page.status, b"")
    assert head.headers["Content-Length"] == page.headers["Content-Length"] == str(len(page.body))
    if page.status == 200:
        assert page.headers["ETag"] != data.headers["ETag"]
        known = await get(with_page, path, accept, If_None_Match=page.headers["ETag"])
        assert (known.status, known.body, known.headers["ETag"]) == (304, b"", page.headers["ETag"])
        other = await get(with_page, path, accept, If_None_Match=data.headers["ETag"])
        assert other.status == 200
    else:
        problem = data.json
        assert problem["detail"] in "".join(Page(page.body).texts)
        assert f"{problem['status']} {problem['title']}" in "".join(Page(page.body).texts)


@pytest.mark.parametrize("path", PATHS, ids=PATHS.get)
async def test_no_pages_without_the_page(without_page: StreamsServer, path: str) -> None:
    assert not is_html(await get(without_page, path, CHROMIUM))


@pytest.mark.parametrize("path", PATHS, ids=PATHS.get)
async def test_pages_link_to_what_is_there(with_page: StreamsServer, path: str) -> None:
    """Relative ways within the server, and formats that answer a browser with what they are named for."""
    page = Page((await get(with_page, path, CHROMIUM)).body)
    formats = set()
    for link in page.links:
        if link.startswith(("#", "http://", "https://")):
            assert not link.startswith(PUBLIC)
            continue
        assert not link.startswith("/")  # it would leave the prefix of a proxy
        target = urlsplit(urljoin(f"http://server{path}", link))
        assert target.netloc == "server"
        answer = await get(
            with_page, target._replace(scheme="", netloc="").geturl() or "/", CHROMIUM
        )
        if "format=" in link:
            formats.add(answer.headers["Content-Type"])
            assert answer.status in (200, 406)  # of what it cannot carry
            assert not is_html(answer)
        else:
            assert (answer.status, is_html(answer)) == (200, True), link
    if "(4" not in PATHS[path]:
        assert len(formats) >= 3, formats


@pytest.mark.parametrize("path", PATHS, ids=PATHS.get)
async def test_nothing_of_a_message_is_markup(with_page: StreamsServer, path: str) -> None:
    answer = await get(with_page, path, CHROMIUM)
    assert len(answer.body) < 100_000  # one literal is longer by itself
    page = Page(answer.body)
    assert not {"img", "b", "style", "iframe", "object", "base"} & set(page.names)
    assert page.names.count("script") <= 1
    assert not [name for name in page.attributes if name.startswith("on") or name == "style"]
    assert not [link for link in page.links if link.lower().startswith("javascript:")]


async def test_messages_are_linked_as_text(with_page: StreamsServer) -> None:
    """A short message is in the page, for the scripts that draw it; a long one is not."""
    pages = [
        Page((await get(with_page, f"/streams/a/output/{number}", CHROMIUM)).body)
        for number in (29, 30)
    ]
    assert ["data-lines" in page.attributes for page in pages] == [True, False]
    for page in pages:
        assert not {"\u202e", "\u202d", "\x00"} & set("".join(page.texts))
        assert [link for link in page.links if link.endswith("?format=nq")]


async def test_everything_is_reached_by_following_links(with_page: StreamsServer) -> None:
    """From the newest page of the event stream to the oldest, and from the first elements to the last."""
    for start, word in (("/streams/a/ldes/26-30", "prev"), ("/streams/a/output?after=10", "next")):
        path: str | None = start
        seen: list[int] = []
        while path is not None:
            body = (await get(with_page, path, CHROMIUM)).body.decode()
            titles = re.findall('<h3><a href="[^"]*">element ([0-9]+)</a></h3>', body)
            seen += map(int, titles)
            found = (
                body.partition(f'rel="{word}" href="')[2].partition('"')[0].replace("&amp;", "&")
            )
            path = urljoin(path, found) if found else None
        assert sorted(seen) == list(range(11, 31))


@pytest.mark.slow
async def test_queries_are_listed_with_their_state(tmp_path: Path) -> None:
    settings = {"publish": "allow", "register": "allow"}
    async with serving_streams(tmp_path / "streams.db", **settings) as server:
        await server.ask("PUT", "/streams/a")
        made = await server.ask(
            "POST", "/streams/a/query", QUERY.encode(), "application/sparql-query", Slug="out"
        )
        assert made.status == 201, made.body
        await server.ask("PATCH", "/streams/out", b'{"status": "paused"}', "application/json")
        for path in ("/streams", "/streams/out"):
            page = Page((await get(server, path, CHROMIUM)).body)
            assert {QUERY, "paused"} <= set(page.texts), path
            assert "b" not in page.names
        forms = (await get(server, "/streams/out", CHROMIUM)).body
        assert b"Resume the query" in forms
        assert b'data-form="publish"' not in forms  # what a query gives out is the query's alone


@pytest.mark.parametrize(
    ("publish", "register", "forms"),
    [
        ("allow", "allow", {"create", "register", "publish", "manage"}),
        ("deny", "allow", {"register"}),
        ("allow", "deny", {"create", "publish", "manage"}),
        ("deny", "deny", set()),
    ],
)
async def test_forms_are_for_what_is_allowed(
    tmp_path: Path, publish: str, register: str, forms: set[str]
) -> None:
    with open_store(tmp_path / "streams.db") as store:
        store.create("a")
    async with serving_streams(
        tmp_path / "streams.db", publish=publish, register=register
    ) as server:
        bodies = [
            (await get(server, path, CHROMIUM)).body.decode() for path in ("/streams", "/streams/a")
        ]
    named = {part.partition('"')[0] for body in bodies for part in body.split('data-form="')[1:]}
    assert named == forms


async def test_a_token_is_asked_for_where_one_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PUBLISH", "secret")
    with open_store(tmp_path / "streams.db") as store:
        store.create("a")
        store.create("open", Description(publish="allow"))
    async with serving_streams(
        tmp_path / "streams.db", publish="PUBLISH", register="deny"
    ) as server:
        asked, free = [
            (await get(server, f"/streams/{name}", CHROMIUM)).body.decode()
            for name in ("a", "open")
        ]
    assert asked.count('name="token"') == 2
    assert free.count('name="token"') == 1  # to delete it
    assert "secret" not in asked + free

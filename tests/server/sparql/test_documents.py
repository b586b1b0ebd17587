"""JSON documents of a server: by a frame in the request, of its settings, and without one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pyoxigraph as ox
import pytest
import pytest_asyncio

from construct_messages.errors import UsageError
from construct_messages.server.sparql.messages import FRAME_RELATION, KnownFrames, frame_of
from tests.support.http.serving import Served, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

EX = "http://example.org/"
TRIPLES = "?s :in ?o ; :is ?p . ?o :is ?q"
QUERY = f"PREFIX : <{EX}> CONSTRUCT {{ {TRIPLES} }} WHERE {{ {TRIPLES} }} ORDER BY ?s"
DATA = f"PREFIX : <{EX}> :a :in :c ; :is 1 . :b :in :c ; :is 2 . :c :is 3 ."
FRAME = {"@context": {"@vocab": EX, "id": "@id"}, "in": {"@explicit": True}}
FRAMED = [
    {"id": f"{EX}{name}", "in": {"id": f"{EX}c"}, "is": number}
    for name, number in (("a", 1), ("b", 2))
]
PLAIN = [
    {"id": f"{EX}{name}", "in": {"id": f"{EX}c", "is": 3}, "is": number}
    for name, number in (("a", 1), ("b", 2))
]
NDJSON, JSON = "application/x-ndjson", "application/json"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    folder: Path = tmp_path_factory.mktemp("frames")
    store = ox.Store(str(folder / "store"))
    store.load(DATA, format=ox.RdfFormat.TURTLE)
    store.flush()
    del store
    (folder / "frame.json").write_text(json.dumps(FRAME))
    (folder / "reverse.json").write_text(
        json.dumps({"@context": {"@vocab": EX}, "@type": [], "@reverse": {"in": {}}})
    )
    frames = {name: str(folder / f"{name}.json") for name in ("frame", "reverse")}
    frames[f"{EX}frame"] = frames["frame"]
    async with serving(str(folder / "store"), frames=frames) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


def read(content_type: str, body: str) -> Any:
    return json.loads(body) if content_type == JSON else list(map(json.loads, body.splitlines()))


LINK = f'<{EX}frame>; rel="{FRAME_RELATION}"'


@pytest.mark.parametrize(
    ("parameters", "headers", "content_type", "expected"),
    [
        ({"frame": json.dumps(FRAME)}, {}, NDJSON, FRAMED),
        ({"frame": json.dumps(FRAME)}, {"Accept": JSON}, JSON, FRAMED),
        ({"frame": json.dumps(FRAME)}, {"Accept": f"{JSON};q=0.5, {NDJSON}"}, NDJSON, FRAMED),
        ({"frame": json.dumps(FRAME), "format": "json"}, {}, JSON, FRAMED),
        ({"frame": "frame"}, {}, NDJSON, FRAMED),
        ({"frame": f"{EX}frame"}, {"Accept": "*/*"}, NDJSON, FRAMED),
        ({}, {"Link": LINK}, NDJSON, FRAMED),
        ({}, {"Link": f'<urn:x>; rel="license", {LINK}', "Accept": JSON}, JSON, FRAMED),
        ({}, {"Accept": NDJSON}, NDJSON, PLAIN),
        ({"frame": json.dumps({"@context": {"@vocab": EX, "id": "@id"}})}, {}, NDJSON, PLAIN),
    ],
)
async def test_documents(
    served: Served,
    session: aiohttp.ClientSession,
    parameters: dict[str, str],
    headers: dict[str, str],
    content_type: str,
    expected: Any,
) -> None:
    asked = {"query": QUERY, **parameters}
    async with session.get(served.sparql, params=asked, headers=headers) as answer:
        body = await answer.text()
        assert (answer.status, answer.headers["Content-Type"]) == (200, content_type), body
    assert read(content_type, body) == expected


async def test_frames_of_the_settings_may_be_left_to_pyld(
    served: Served, session: aiohttp.ClientSession
) -> None:
    query = {"query": QUERY, "frame": "reverse"}
    async with session.get(served.sparql, params=query) as answer:
        assert answer.status == 200
        assert len((await answer.text()).splitlines()) == 2


@pytest.mark.parametrize(
    ("parameters", "headers", "status", "error"),
    [
        ({"frame": "other"}, {}, 400, "the frame other is not known"),
        ({}, {"Link": LINK.replace("frame>", "other>")}, 400, "is not known, and none is fetched"),
        ({"frame": "{"}, {}, 400, "the frame is malformed"),
        ({"frame": '{"a": 1, "a": 2}'}, {}, 400, "occurs twice"),
        ({"frame": '{"a":' * 200 + "1" + "}" * 200}, {}, 400, "nested more than"),
        ({"frame": '{"@embed": "@last"}'}, {}, 400, "at /@embed"),
        ({"frame": '{"@context": "http://127.0.0.1:9/c", "p": {}}'}, {}, 400, "is not known"),
        ({"frame": '{"@reverse": {"urn:p": {}}}'}, {}, 400, "only frames of the settings"),
        ({"frame": "frame"}, {"Accept": "text/turtle"}, 406, "matches Accept"),
        ({"frame": "frame", "format": "ttl"}, {}, 400, "format=ttl"),
        ({"frame": "frame", "query": "SELECT * { ?s ?p ?o }"}, {}, 406, "only CONSTRUCT"),
    ],
)
async def test_bad_frames(
    served: Served,
    session: aiohttp.ClientSession,
    parameters: dict[str, str],
    headers: dict[str, str],
    status: int,
    error: str,
) -> None:
    asked = {"query": QUERY, **parameters}
    async with session.get(served.sparql, params=asked, headers=headers) as answer:
        assert (answer.status, error in (await answer.text())) == (status, True)


async def test_a_large_frame(served: Served, session: aiohttp.ClientSession) -> None:
    asked = {"query": QUERY, "frame": json.dumps({"@context": {"a": "urn:" + "a" * 70_000}})}
    async with session.post(served.sparql, data=asked) as answer:
        assert answer.status == 413
        assert "65536" in await answer.text()


@pytest.mark.parametrize(
    ("text", "error"),
    [(None, "cannot read the frame"), ("{", "is not JSON"), ("[]", "is no JSON object")],
)
async def test_frames_of_the_settings_are_read_at_the_start(
    tmp_path: Path, text: str | None, error: str
) -> None:
    path = tmp_path / "frame.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=error):
        KnownFrames({"frame": str(path)})


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ([], None),
        (['<urn:a>; rel="next"'], None),
        ([LINK], f"{EX}frame"),
        ([f"<urn:a>; rel={FRAME_RELATION}"], "urn:a"),
        ([f'<urn:a>; rel="next", <urn:b>; title="x, y"; rel="up {FRAME_RELATION}"'], "urn:b"),
        (["<urn:a>; rel", f'<urn:b>;REL="{FRAME_RELATION}"'], "urn:b"),
        ([f"{FRAME_RELATION}"], None),
    ],
)
async def test_links(links: list[str], expected: str | None) -> None:
    assert frame_of(links) == expected

"""Registering queries by the client and the command, over real connections."""

from __future__ import annotations

from pathlib import Path

import pytest

from construct_messages.errors import SourceError, UsageError
from construct_messages.feeds import register, subscribe
from tests.support.http.streams import StreamsServer, serving_streams
from tests.support.streams import numbered

pytestmark = pytest.mark.slow

ECHO = "CONSTRUCT { ?s <urn:saw> ?n } WHERE { ?s <urn:number> ?n }"


async def first(url: str) -> str:
    async for element in subscribe(url, after=0):
        return element.nquads.decode()
    raise AssertionError


@pytest.mark.parametrize("path", ["/streams/a", "/streams/a/query", "/streams"])
async def test_register(served: StreamsServer, path: str) -> None:
    await served.publish([numbered(1)])
    parameters = {"from": "first"} | ({"stream": "a"} if path == "/streams" else {})
    location = await register(ECHO, served.url + path, name="seen", parameters=parameters)
    assert location == f"{served.url}/streams/seen"
    assert await first(location) == '<urn:s> <urn:saw> "x1" .'


async def test_refused(served: StreamsServer) -> None:
    with pytest.raises(SourceError, match="no stream b"):
        await register(ECHO, f"{served.url}/streams/b")
    with pytest.raises(SourceError, match="engine refuses") as refused:
        await register("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p }", f"{served.url}/streams/a")
    assert refused.value.response_status == 400
    with pytest.raises(UsageError, match="credentials"):
        await register(ECHO, served.url.replace("//", "//me:secret@"))


async def test_with_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGISTER_TOKEN", "secret")
    async with serving_streams(tmp_path / "streams.db", register="REGISTER_TOKEN") as served:
        await served.ask("PUT", "/streams/a")
        with pytest.raises(SourceError) as refused:
            await register(ECHO, f"{served.url}/streams/a")
        assert refused.value.response_status == 401
        await register(ECHO, f"{served.url}/streams/a", token="secret")

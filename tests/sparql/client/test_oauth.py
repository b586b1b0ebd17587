"""`sparql/client/oauth.py`: client credentials at a token endpoint over a socket, for both clients."""

import asyncio
import urllib.request
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from construct_messages.errors import SourceError, UsageError
from construct_messages.rdf.formats.media_types import FORM
from construct_messages.rdf.solutions import Solutions
from construct_messages.sparql.client.aiohttp_client import asend, new_session
from construct_messages.sparql.client.oauth import (
    AccessTokens,
    ClientCredentials,
    read_secret,
    tokens_for,
)
from construct_messages.sparql.client.retries import Timeouts
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.http.endpoint import Endpoint, EndpointSource
from construct_messages.sparql.sources.http.upstream import Upstream
from construct_messages.sparql.sources.open import open_source
from tests.support.engines.issuer import Issuer
from tests.support.http.clients import SELECT

RESULTS = b'{"head":{"vars":["s","p","o"]},"results":{"bindings":[]}}'


@dataclass
class Protected:
    """An endpoint that wants a token.

    Attributes:
        revoked: tokens that it refuses.
        sent: the headers of the requests.
    """

    url: str = ""
    revoked: set[str] = field(default_factory=set)
    sent: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        header = request.headers.get("Authorization", "")
        self.sent.append(header)
        if not header.startswith("Bearer token-") or header.removeprefix("Bearer ") in self.revoked:
            return web.Response(status=401, headers={"WWW-Authenticate": "Bearer"})
        assert "SELECT" in str((await request.post()).get("query")), "also when it is sent again"
        return web.Response(body=RESULTS, content_type="application/sparql-results+json")


@pytest.fixture
async def endpoint() -> AsyncIterator[Protected]:
    protected = Protected()
    app = web.Application()
    app.router.add_route("*", "/sparql", protected.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    protected.url = "http://{}:{}/sparql".format(*runner.addresses[0][:2])
    yield protected
    await runner.cleanup()


async def ask(how: str, url: str, tokens: AccessTokens) -> list[Solutions]:
    if how == "upstream":
        async with aclosing(
            Upstream(url, tokens=tokens, allow_private=True, retries=0)
        ) as upstream:
            return [batch async for batch in upstream.asolutions(Request(SELECT))]
    source = EndpointSource(Endpoint.at(url, tokens=tokens), retries=0)
    if how == "blocking":
        return await asyncio.to_thread(lambda: list(source.solutions(Request(SELECT))))
    return [batch async for batch in source.asolutions(Request(SELECT))]


HOW = pytest.mark.parametrize("how", ["blocking", "asyncio", "upstream"])


@HOW
async def test_a_token_is_kept_and_renewed(how: str, issuer: Issuer, endpoint: Protected) -> None:
    tokens = AccessTokens(issuer.credentials(scope="sparql read"))
    for _ in range(3):
        await ask(how, endpoint.url, tokens)
    assert endpoint.sent == ["Bearer token-1"] * 3
    assert issuer.granted == [{"grant_type": "client_credentials", "scope": "sparql read"}]
    endpoint.revoked.add("token-1")
    await ask(how, endpoint.url, tokens)
    assert endpoint.sent[3:] == ["Bearer token-1", "Bearer token-2"]
    await ask(how, endpoint.url, tokens)
    assert endpoint.sent[5:] == ["Bearer token-2"]


@HOW
async def test_an_endpoint_that_accepts_none(how: str, issuer: Issuer, endpoint: Protected) -> None:
    endpoint.revoked = {f"token-{number}" for number in range(9)}
    with pytest.raises(SourceError) as raised:
        await ask(how, endpoint.url, AccessTokens(issuer.credentials()))
    assert raised.value.response_status == 401
    assert "token-" not in str(raised.value)
    assert len(endpoint.sent) == 2, "once more, and not again"


async def test_a_body_that_is_sent_once(issuer: Issuer, endpoint: Protected) -> None:
    """It cannot be repeated with a new token; whoever made it can make it again."""
    tokens, bodies = AccessTokens(issuer.credentials()), 0
    endpoint.revoked.add("token-1")

    async def body() -> AsyncIterator[bytes]:
        nonlocal bodies
        bodies += 1
        yield b"query=SELECT"

    async def send(session: aiohttp.ClientSession) -> int:
        request = urllib.request.Request(endpoint.url, body(), {"Content-Type": FORM})  # type: ignore[arg-type] # aiohttp sends it
        response = await asend(session, request, endpoint.url, Timeouts(60), tokens)
        response.close()
        return response.status

    async with new_session() as session:
        with pytest.raises(SourceError, match="renewed") as raised:
            await send(session)
        assert (raised.value.transient, raised.value.response_status) == (True, 401)
        assert (endpoint.sent, bodies) == (["Bearer token-1"], 1)
        assert await send(session) == 200
    assert (endpoint.sent[1:], bodies) == (["Bearer token-2"], 2)


async def test_when_a_token_expires(issuer: Issuer) -> None:
    now = 0.0
    tokens = AccessTokens(issuer.credentials(), lambda: now)
    issuer.lifetime = 100
    assert await asyncio.to_thread(tokens.get) == "token-1"
    now = 89.0
    assert await asyncio.to_thread(tokens.get) == "token-1"
    now = 91.0
    assert await asyncio.to_thread(tokens.get) == "token-2"
    issuer.lifetime = -1  # nonsense counts as five minutes
    assert await asyncio.to_thread(tokens.get, "token-2") == "token-3"
    now = 300.0
    assert await asyncio.to_thread(tokens.get) == "token-3"


async def test_one_request_for_many_threads(issuer: Issuer) -> None:
    tokens = AccessTokens(issuer.credentials())
    with ThreadPoolExecutor(8) as threads:
        loop = asyncio.get_running_loop()
        found = await asyncio.gather(
            *(loop.run_in_executor(threads, tokens.get) for _ in range(50))
        )
    assert (set(found), len(issuer.granted)) == ({"token-1"}, 1)


@HOW
async def test_wrong_credentials(how: str, issuer: Issuer, endpoint: Protected) -> None:
    with pytest.raises(SourceError, match=r"401 \(invalid_client\)") as raised:
        await ask(how, endpoint.url, AccessTokens(issuer.credentials(secret="hunter2")))
    assert "hunter2" not in str(raised.value) + repr(issuer.credentials(secret="hunter2"))
    assert (raised.value.response_status, endpoint.sent) == (401, [])


async def test_a_token_endpoint_that_fails(issuer: Issuer) -> None:
    issuer.status = 503
    with pytest.raises(SourceError) as raised:
        await asyncio.to_thread(AccessTokens(issuer.credentials()).get)
    assert raised.value.transient
    away = ClientCredentials("http://127.0.0.1:9/token", "me", "x")
    with pytest.raises(SourceError):
        await asyncio.to_thread(AccessTokens(away).get)


def test_no_secret_goes_over_plain_http() -> None:
    with pytest.raises(UsageError, match="read and changed in transit"):
        ClientCredentials("http://id.example.org/token", "me", "x")


async def test_the_environment(
    issuer: Issuer, endpoint: Protected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text(f"{issuer.secret}\n")
    for name, value in {
        "TOKEN_URL": f"{issuer.url}/token",
        "CLIENT_ID": "me",
        "CLIENT_SECRET_FILE": str(tmp_path / "secret"),
    }.items():
        monkeypatch.setenv(f"CONSTRUCT_MESSAGES_{name}", value)
    for _ in range(2):
        source = open_source(endpoint.url)
        async for _ in source.asolutions(Request(SELECT)):
            pass
    assert endpoint.sent == ["Bearer token-1"] * 2, "for all sources of the process"
    monkeypatch.setenv("CONSTRUCT_MESSAGES_CLIENT_SECRET", "too")
    with pytest.raises(UsageError, match="not the credentials of one client"):
        open_source(endpoint.url)
    assert tokens_for(issuer.credentials()) is tokens_for(issuer.credentials())


def test_secrets_in_files(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    for file, said in (("none", "cannot be read"), ("empty", "is empty")):
        with pytest.raises(UsageError, match=said):
            read_secret(None, str(tmp_path / file))

"""Clients of streams with OAuth 2 client credentials: every transport, renewal after a 401, and only their server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from construct_messages.cli import main
from construct_messages.errors import SourceError, UsageError
from construct_messages.feeds import publish, register, relay, subscribe
from construct_messages.sparql.client.oauth import ClientCredentials
from tests.support.engines.issuer import Issuer
from tests.support.grpc.serving import serving_grpc
from tests.support.http.streams import StreamsServer, serving_streams
from tests.support.streams import numbered

ECHO = "CONSTRUCT { ?s <urn:saw> ?n } WHERE { ?s <urn:number> ?n }"


@pytest.fixture
async def protected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[StreamsServer]:
    """A server that takes the second token of the issuer, and refuses the first."""
    monkeypatch.setenv("SERVER_TOKEN", "token-2")
    name = "SERVER_TOKEN"
    async with serving_streams(
        tmp_path / "streams.db", read=name, publish=name, register=name
    ) as served:
        yield served


async def test_a_token_that_was_refused_is_fetched_again(
    issuer: Issuer, protected: StreamsServer
) -> None:
    """A publisher begins with a token that the server refuses; everything after it uses the second."""
    credentials = issuer.credentials()
    stream = f"{protected.url}/streams/a"
    assert await publish([numbered(1)], stream, create=True, token=credentials) == 1
    assert len(issuer.granted) == 2
    for via in ("sse", "websocket", "pull", "ldes"):
        async with aclosing(subscribe(stream, after=0, via=via, token=credentials)) as elements:
            assert (await anext(elements)).message == numbered(1)
    await register(ECHO, stream, name="seen", token=credentials)
    copy = f"{protected.url}/streams/copy"
    relayed = await relay(
        stream, copy, follow=False, create=True, source_token=credentials, target_token=credentials
    )
    assert relayed == 1
    assert len(issuer.granted) == 2


async def test_grpc(issuer: Issuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls are made again with a new token whenever one is refused, but not when the new one is refused, too."""
    monkeypatch.setenv("SERVER_TOKEN", "token-2")
    credentials = issuer.credentials()
    async with serving_grpc(tmp_path, read="SERVER_TOKEN", publish="SERVER_TOKEN") as server:
        assert await publish([numbered(1)], server.url, token=credentials, retries=0) == 1
        async with aclosing(subscribe(server.url, after=0, token=credentials)) as elements:
            assert (await anext(elements)).message == numbered(1)
        assert len(issuer.granted) == 2
        monkeypatch.setenv("SERVER_TOKEN", "token-3")
    async with serving_grpc(tmp_path, read="SERVER_TOKEN", publish="SERVER_TOKEN") as server:
        reading = subscribe(server.url, after=0, follow=False, token=credentials, retries=0)
        assert [element.message async for element in reading] == [numbered(1)]
        assert len(issuer.granted) == 3
        monkeypatch.setenv("SERVER_TOKEN", "token-9")
    async with serving_grpc(tmp_path, read="SERVER_TOKEN", publish="SERVER_TOKEN") as server:
        with pytest.raises(SourceError, match="UNAUTHENTICATED"):
            await publish([numbered(1)], server.url, token=credentials)
        assert len(issuer.granted) == 4


async def test_without_credentials(protected: StreamsServer) -> None:
    with pytest.raises(SourceError) as refused:
        await publish([numbered(1)], f"{protected.url}/streams/a", create=True)
    assert refused.value.response_status == 401


async def test_credentials_that_the_issuer_refuses(
    issuer: Issuer, protected: StreamsServer
) -> None:
    wrong = ClientCredentials(f"{issuer.url}/token", "me", "wrong")
    with pytest.raises(SourceError, match="no access token"):
        await publish([numbered(1)], f"{protected.url}/streams/a", token=wrong)


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("mqtts://127.0.0.1:9/a", "username and password"),
        ("nats://127.0.0.1:9/a", "token, or user and password"),
        ("kafka://127.0.0.1:9/a", "sasl.username"),
    ],
)
async def test_brokers_have_other_credentials(url: str, options: str) -> None:
    """A token that would not be sent is refused, also with the credentials that tokens are fetched with."""
    credentials = ClientCredentials("http://127.0.0.1:9/token", "me", "secret")
    for token in ("secret", credentials):
        with pytest.raises(UsageError, match="no bearer tokens") as refused:
            await publish([numbered(1)], url, token=token)
        assert options in str(refused.value)
        assert "secret" not in str(refused.value)
        with pytest.raises(UsageError, match="no bearer tokens"):
            await anext(subscribe(url, token=token))
    with pytest.raises(UsageError, match="no bearer tokens"):
        await relay("http://127.0.0.1:9/streams/a", url, target_token="secret")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--oauth"], "CONSTRUCT_MESSAGES_TOKEN_URL"),
        (["--oauth", "--token-variable", "A"], "--oauth and --token-variable do not go together"),
    ],
)
def test_options_that_are_refused(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["subscribe", "http://127.0.0.1:9/streams/a", *options]) == 2
    assert words in capsys.readouterr().err

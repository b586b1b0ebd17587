"""The settings of authorization: what cannot be served is refused, with the place and the fix."""

from pathlib import Path

import aiohttp
import pytest

from construct_messages.errors import UsageError
from construct_messages.server.runtime.settings import load_config
from tests.support.engines.issuer import Issuer
from tests.support.http.clients import JSON_BODY
from tests.support.http.fault_server import FaultServer, response
from tests.support.http.serving import serving

STREAMS = '[streams]\nfile = "streams.db"\n'
JWT = '[jwt]\nissuer = "i"\naudience = "a"\nkeys = "https://id.example.org/jwks.json"\n'
ENDPOINT = '[endpoint]\nsource = "https://example.org/sparql"\n'
CLIENT = 'token_url = "https://id.example.org/token"\nclient_id = "me"\n'
REFUSED = {
    "no table": (f'{STREAMS}read = "jwt"\n', "streams.read is jwt, and there is no table"),
    "no issuer": (f'{STREAMS}[jwt]\nkeys = "x"\n', "set, but not jwt.issuer"),
    "a shared secret": (f'{STREAMS}{JWT}algorithms = ["HS256"]\n', "jwt.algorithms has HS256"),
    "none": (f'{STREAMS}{JWT}algorithms = ["RS256", "none"]\n', "jwt.algorithms has none"),
    "no algorithm": (f"{STREAMS}{JWT}algorithms = []\n", "jwt.algorithms has nothing"),
    "plain http": (STREAMS + JWT.replace("https", "http"), "read and changed in transit"),
    "no file": (STREAMS + JWT.replace("https://id.example.org/", ""), "no such file"),
    "no token": (
        f'{STREAMS}tokens = ["ABSENT"]\n',
        "streams.tokens names ABSENT, which is not set",
    ),
    "no secret": (ENDPOINT + CLIENT, "not all that a token is fetched with"),
    "an absent secret": (
        f'{ENDPOINT}{CLIENT}client_secret_variable = "ABSENT"\n',
        "client_secret_variable.*is empty",
    ),
    "an absent file": (
        f'{ENDPOINT}{CLIENT}client_secret_file = "absent"\n',
        "client_secret_file.*cannot be read",
    ),
    "only a scope": (f'{ENDPOINT}scope = "x"\n', "scope is set, but not all"),
    "two credentials": (
        f'{ENDPOINT}{CLIENT}client_secret_variable = "SET"\ntoken_variable = "SET"\n',
        "beside other credentials",
    ),
    "a client's header": (
        f'{ENDPOINT}{CLIENT}client_secret_variable = "SET"\nforward_headers = ["Authorization"]\n',
        "beside other credentials",
    ),
    "a secret over http": (
        f'{ENDPOINT}{CLIENT}client_secret_variable = "SET"\n'.replace("https://id", "http://id"),
        "read and changed in transit",
    ),
    "files": (
        f'[endpoint]\nsource = "data.ttl"\n{CLIENT}client_secret_variable = "SET"\n',
        "for URLs only",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_served(case: str, tmp_path: Path) -> None:
    text, words = REFUSED[case]
    (tmp_path / "data.ttl").write_text("")
    (tmp_path / "server.toml").write_text(text)
    with pytest.raises(UsageError, match=words) as raised:
        load_config(tmp_path / "server.toml", {"SET": "a secret"}, {})
    assert raised.value.hint
    assert "a secret" not in str(raised.value)


async def test_a_proxy_with_client_credentials(issuer: Issuer, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(issuer.secret)
    client = {
        "token_url": f"{issuer.url}/token",
        "client_id": "me",
        "client_secret_file": str(tmp_path / "secret"),
    }
    upstream = FaultServer()
    try:
        upstream.play(response(JSON_BODY))
        async with (
            serving(upstream.url, allow_private=True, retries=0, **client) as server,
            aiohttp.ClientSession() as session,
        ):
            for _ in range(2):
                query = {"query": "SELECT * { ?s ?p ?o }"}
                async with session.post(server.sparql, data=query) as answer:
                    assert answer.status == 200, await answer.text()
            log = server.request_log.getvalue()
    finally:
        upstream.close()
    sent = [asked.headers.get("authorization") for asked in upstream.asked]
    assert set(sent) == {"Bearer token-1"}
    assert len(issuer.granted) == 1
    assert issuer.secret not in log
    assert "token-1" not in log

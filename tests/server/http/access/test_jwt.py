"""`access/`: JSON Web Tokens at a server of streams, with keys of an issuer over a socket."""

import asyncio
import base64
import hmac
import json
import subprocess
import time
import warnings
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from joserfc.jwk import RSAKey

from construct_messages.errors import SourceError, UsageError
from construct_messages.server.http.access.jwt import Keys
from tests.support.engines.issuer import AUDIENCE, Issuer, ec_key, rsa_key
from tests.support.http.streams import Answer, StreamsServer, serving_streams

TURTLE, ELEMENT = "text/turtle", b"<urn:a> <urn:b> 1 ."


@pytest.fixture
async def served(issuer: Issuer, tmp_path: Path) -> AsyncIterator[StreamsServer]:
    async with serving_streams(
        tmp_path / "streams.db",
        server={"jwt": issuer.trusted()},
        **dict.fromkeys(("read", "publish", "register"), "jwt"),
    ) as server:
        yield server


async def create(served: StreamsServer, token: str, name: str = "a") -> Answer:
    return await served.ask("PUT", f"/streams/{name}", Authorization=f"Bearer {token}")


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


async def test_a_valid_token(served: StreamsServer, issuer: Issuer) -> None:
    issuer.keys.append(ec_key("two"))
    for key in issuer.keys:
        own = {"Authorization": f"Bearer {issuer.token(key)}"}
        assert (await served.ask("PUT", f"/streams/{key.kid}", **own)).status == 201
        path = f"/streams/{key.kid}/input"
        assert (await served.ask("POST", path, ELEMENT, TURTLE, **own)).status == 201
        read = await served.ask("GET", f"/streams/{key.kid}/output/1", **own)
        assert (read.status, read.headers["Cache-Control"].partition(",")[0]) == (200, "private")
    assert issuer.sent_keys == 1, "they are kept"
    several = issuer.token(aud=["urn:other", AUDIENCE], scope=None, scp=["publish"])
    assert (await create(served, several)).status == 201


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"exp": -60}, "expired"),
        ({"exp": None}, "claim exp"),
        ({"exp": "soon"}, "claim exp"),
        ({"nbf": 3600}, "not yet valid|nbf|not allowed"),
        ({"iat": 3600}, "iat|not allowed"),
        ({"iss": "https://id.example.org"}, "claim iss"),
        ({"iss": None}, "claim iss"),
        ({"aud": "urn:other"}, "claim aud"),
        ({"aud": ["urn:other"]}, "claim aud"),
        ({"aud": None}, "claim aud"),
        ({"aud": {"x": AUDIENCE}}, "claim aud"),
    ],
    ids=str,
)
async def test_claims_that_are_wrong(
    served: StreamsServer, issuer: Issuer, claims: dict[str, Any], said: str
) -> None:
    """Numbers are seconds from now."""
    now = int(time.time())
    given = {
        name: now + value if isinstance(value, int) else value for name, value in claims.items()
    }
    answer = await create(served, issuer.token(**given))
    assert answer.status == 401
    challenge = answer.headers["WWW-Authenticate"]
    assert challenge.startswith('Bearer realm="streams", error="invalid_token"')
    assert any(word in challenge for word in said.split("|")), challenge
    assert (await served.ask("GET", "/health/live")).status == 200


async def test_the_clocks_may_differ(served: StreamsServer, issuer: Issuer) -> None:
    now = int(time.time())
    assert (await create(served, issuer.token(exp=now - 5, nbf=now + 5))).status == 201


async def test_scopes(served: StreamsServer, issuer: Issuer) -> None:
    token = issuer.token(scope="publisher read")
    answer = await create(served, token)
    assert (answer.status, answer.headers["WWW-Authenticate"]) == (
        403,
        'Bearer realm="streams", error="insufficient_scope", scope="publish"',
    )
    assert (await served.ask("GET", "/streams", Authorization=f"Bearer {token}")).status == 200
    query = b"CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
    asked = await served.ask(
        "POST", "/streams", query, "application/sparql-query", Authorization=f"Bearer {token}"
    )
    assert (asked.status, 'scope="register"' in asked.headers["WWW-Authenticate"]) == (403, True)
    for scope in ({"read": 1}, 7, [["read"]]):
        own = f"Bearer {issuer.token(scope=scope)}"
        assert (await served.ask("GET", "/streams", Authorization=own)).status == 403


@pytest.mark.parametrize(
    "path", ["", "/a", "/a/output", "/a/output/1", "/a/events", "/a/socket", "/a/inbox", "/a/ldes"]
)
async def test_nothing_is_read_without_a_token(served: StreamsServer, path: str) -> None:
    for headers in ({}, {"Accept": "text/html"}):
        answer = await served.ask("GET", f"/streams{path}", **headers)
        assert (answer.status, answer.headers["WWW-Authenticate"]) == (
            401,
            'Bearer realm="streams"',
        )


async def test_where_a_token_may_stand(served: StreamsServer, issuer: Issuer) -> None:
    token = issuer.token()
    for headers in ({"Authorization": f"Basic {token}"}, {"Authorization": token}):
        assert (await served.ask("GET", "/streams", **headers)).status == 401
    assert (await served.ask("GET", f"/streams?access_token={token}")).status == 401
    assert (await served.ask("GET", "/streams", Authorization=f"bearer  {token} ")).status == 200


def forged(key: Any, payload: str, **header: Any) -> str:
    """A token that is signed, with a header that joserfc would not write."""
    text = f"{encoded({'alg': 'RS256', 'kid': 'one', **header})}.{payload}"
    signature = key.raw_value.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{text}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


async def test_signatures_that_prove_nothing(served: StreamsServer, issuer: Issuer) -> None:
    """RFC 8725, section 2: no signature, a public key as a secret, keys in the header, parts of other tokens."""
    key, other = issuer.keys[0], rsa_key("one")
    head, payload, signature = issuer.token().split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    signed = f"{encoded({'alg': 'HS256', 'kid': 'one'})}.{payload}"
    digest = hmac.digest(key.as_pem(private=False), signed.encode(), "sha256")
    confused = f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"
    unsigned = [f"{encoded({'alg': alg, 'kid': 'one'})}.{payload}." for alg in ("none", "None", "")]
    hostile = [
        *unsigned,
        confused,
        issuer.token(other),
        forged(other, payload, jwk=other.as_dict(private=False)),
        forged(other, payload, jku="https://evil.example.org/jwks.json"),
        forged(key, payload, crit=["exp"]),
        forged(key, payload, crit=["b64"], b64=False),
        forged(key, payload, typ="logout+jwt"),
        forged(key, encoded([1])),
        forged(key, "e30x"),
        f"{encoded({'alg': 'RS512', 'kid': 'one'})}.{payload}.{signature}",
        f"{encoded({'alg': 'ES256', 'kid': 'one'})}.{payload}.{signature}",
        f"{encoded({'alg': ['RS256'], 'kid': 'one'})}.{payload}.{signature}",
        f"{encoded({'alg': 'RS256', 'kid': ['one']})}.{payload}.{signature}",
        f"{encoded([])}.{payload}.{signature}",
        f"{head}.{encoded({**claims, 'scope': 'register'})}.{signature}",
        f"{head}.{payload}.{signature[:-4]}AAAA",
        *(f"{head}.{payload}", f"{head}.{payload}.{signature}.x", "x", "..", "a.b.c", "é.é.é"),
        f"{head}.{'[' * 3000}.{signature}",
    ]
    for token in hostile:
        answer = await create(served, token)
        assert answer.status == 401, token
        assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]
        assert token[:40] not in answer.body.decode() or len(token) < 3
    assert (await create(served, issuer.token())).status == 201


async def test_a_huge_token(served: StreamsServer, issuer: Issuer) -> None:
    answer = await create(served, issuer.token(padding="x" * 6100))
    assert answer.status == 401
    answer = await create(served, issuer.token(padding="x" * 60_000))
    assert answer.status in (400, 401, 431)  # aiohttp bounds a header


async def test_keys_that_rotate(served: StreamsServer, issuer: Issuer) -> None:
    """An unknown key makes the server fetch, but not each time: else any client could make it."""
    assert (await create(served, issuer.token())).status == 201
    issuer.keys = [rsa_key("new")]
    for _ in range(5):
        assert (await create(served, issuer.token())).status == 401
    assert issuer.sent_keys == 1, "within ten seconds"


async def test_the_cache_of_keys(issuer: Issuer) -> None:
    now = 0.0
    keys = Keys(f"{issuer.url}/jwks.json", lambda: now)

    async def found(kid: str | None, kind: str = "RSA") -> str | None:
        key = await keys.find(kid, kind)
        return key and key.kid

    assert await found("one") == "one"
    assert await found("one", "EC") is None, "keys are of one kind"
    assert await found(None) == "one", "the only one"
    issuer.keys.append(rsa_key("two"))
    now = 11.0
    assert await found("two") == "two"
    assert await found(None) is None, "one of several is a guess"
    count = issuer.sent_keys
    issuer.status = 500
    now = 700.0
    assert await found("one") == "one", "as it is known, for an hour"
    assert issuer.sent_keys == count + 1
    with pytest.raises(SourceError, match="HTTP status 500") as raised:
        await found("three")
    assert raised.value.status == 503
    now = 4000.0
    with pytest.raises(SourceError):
        await found("one")
    issuer.status = 200
    now = 4011.0
    assert await found("one") == "one"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b'{"keys": {}}',
        b"x" * (1 << 19),
        json.dumps({"keys": [{}] * 101}).encode(),
    ],
    ids=["nothing", "an object", "a list", "no list", "too long", "too many"],
)
async def test_keys_that_are_none(served: StreamsServer, issuer: Issuer, body: bytes) -> None:
    issuer.body = body
    answer = await create(served, issuer.token())
    assert (answer.status, int(answer.headers["Retry-After"])) == (503, 10)


async def test_keys_of_other_kinds_are_left_out(served: StreamsServer, issuer: Issuer) -> None:
    documents: list[Any] = [issuer.keys[0].as_dict(private=False), {"kty": "future"}, 7]
    documents.append({"kty": "oct", "kid": "s", "k": "c2VjcmV0"})
    issuer.body = json.dumps({"keys": documents}).encode()
    assert (await create(served, issuer.token())).status == 201


@pytest.mark.parametrize(("bits", "status"), [(1024, 401), (2040, 401), (2048, 201), (3072, 201)])
async def test_the_size_of_rsa_keys(
    served: StreamsServer, issuer: Issuer, caplog: pytest.LogCaptureFixture, bits: int, status: int
) -> None:
    """RFC 7518, section 3.3: 2048 bits or more. The keys are made by OpenSSL; others of the set are used."""
    command = ["openssl", "genrsa", str(bits)]
    made = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # joserfc warns of what the issuer does here
        issuer.keys.append(RSAKey.import_key(made.stdout, {"kid": "new"}))
        token = issuer.token(issuer.keys[1])
    assert (await create(served, token)).status == status
    assert (f"'new' is left out: it has {bits} bits" in caplog.text) == (status == 401)
    assert (await create(served, issuer.token(), "b")).status == 201


async def test_an_issuer_that_is_not_there(tmp_path: Path, issuer: Issuer) -> None:
    settings = issuer.trusted("http://127.0.0.1:9/jwks.json")
    async with serving_streams(
        tmp_path / "streams.db", server={"jwt": settings}, publish="jwt"
    ) as served:
        assert (await create(served, issuer.token())).status == 503
        assert (await served.ask("PUT", "/streams/a")).status == 401, "without it"
        assert (await served.ask("GET", "/streams")).status == 200, "reading is open"


async def test_keys_in_a_file(tmp_path: Path, issuer: Issuer) -> None:
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps({"keys": [issuer.keys[0].as_dict(private=False)]}))
    settings = issuer.trusted(str(file))
    async with serving_streams(
        tmp_path / "streams.db", server={"jwt": settings}, publish="jwt"
    ) as served:
        assert (await create(served, issuer.token())).status == 201
        assert (await create(served, issuer.token(rsa_key("x")))).status == 401
    file.write_text("{}")
    with pytest.raises(UsageError, match="not a JSON Web Key Set"):
        Keys(str(file))


async def test_a_stream_names_only_policies_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise whoever creates a stream could make any variable of the server its token, and guess its value."""
    for name, value in {"A_TOKEN": "a", "B_TOKEN": "b", "SECRET_KEY": "s"}.items():
        monkeypatch.setenv(name, value)
    async with serving_streams(
        tmp_path / "streams.db", publish="A_TOKEN", tokens=("B_TOKEN",)
    ) as served:
        own = {"Authorization": "Bearer a"}
        for policy, status in {"SECRET_KEY": 422, "jwt": 422, "B_TOKEN": 201}.items():
            body = json.dumps({"publish": policy}).encode()
            answer = await served.ask("PUT", f"/streams/{policy}", body, "application/json", **own)
            assert answer.status == status
        assert "A_TOKEN, B_TOKEN, allow, deny" in answer.body.decode() or answer.status == 201
        for token, status in {"a": 401, "b": 201}.items():
            sent = await served.ask(
                "POST", "/streams/B_TOKEN/input", ELEMENT, TURTLE, Authorization=f"Bearer {token}"
            )
            assert sent.status == status

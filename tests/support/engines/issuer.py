"""An issuer of access tokens over a real socket: a token endpoint (RFC 6749) and its keys (RFC 7517)."""

from __future__ import annotations

import base64
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from aiohttp import web
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from construct_messages.sparql.client.oauth import ClientCredentials

if TYPE_CHECKING:
    from construct_messages.server.config import JwtSettings

ISSUER = "https://id.example.org/"
AUDIENCE = "https://data.example.org/streams"


@dataclass
class Issuer:
    """What the issuer has, and what it was asked.

    Attributes:
        keys: its keys, with their private parts; the documents it sends have the public ones.
        status: of its answers; 200 if it works.
        sent_keys: how often its keys were fetched.
        granted: the forms of requests for a token, one for each token.
        lifetime: of the tokens of the token endpoint, in seconds.
        jwt: whether these are JSON Web Tokens.
        body: what it sends instead of its keys.
    """

    url: str = ""
    keys: list[Any] = field(default_factory=lambda: [rsa_key("one")])
    status: int = 200
    sent_keys: int = 0
    granted: list[dict[str, str]] = field(default_factory=list)
    lifetime: float = 3600
    jwt: bool = False
    body: bytes | None = None
    secret: str = "a secret + %"

    def token(self, key: Any = None, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """A token that is valid, but for what is given; a claim that is None is left out."""
        key, now = key or self.keys[0], int(time.time())
        given = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "a client",
            "iat": now,
            "exp": now + 600,
            "scope": "read publish",
            **claims,
        }
        algorithm = "ES256" if key.key_type == "EC" else "RS256"
        return jwt.encode(
            {"alg": algorithm, "kid": key.kid, "typ": "at+jwt", **(header or {})},
            {name: value for name, value in given.items() if value is not None},
            key,
            algorithms=[algorithm],
        )

    def trusted(self, keys: str | None = None) -> JwtSettings:
        """The settings of a server that accepts its tokens; `keys`: another place of its keys."""
        from construct_messages.server.config import JwtSettings  # others need not load the server

        keys = keys or f"{self.url}/jwks.json"
        return JwtSettings(issuer=ISSUER, audience=AUDIENCE, keys=keys)

    def credentials(self, **changes: Any) -> ClientCredentials:
        """Those of a client that it knows, but for what is given."""
        given: dict[str, Any] = {"client_id": "me", "secret": self.secret, **changes}
        return ClientCredentials(f"{self.url}/token", **given)

    async def send_keys(self, _: web.Request) -> web.Response:
        """Answers a request for the keys."""
        self.sent_keys += 1
        if self.body is not None:
            return web.Response(status=self.status, body=self.body)
        documents = [key.as_dict(private=False) for key in self.keys]
        return web.json_response({"keys": documents}, status=self.status)

    async def grant(self, request: web.Request) -> web.Response:
        """Answers a request for a token (RFC 6749, section 4.4)."""
        form = {name: str(value) for name, value in (await request.post()).items()}
        sent = request.headers.get("Authorization", "").removeprefix("Basic ")
        client, _, secret = base64.b64decode(sent).decode().partition(":")
        if (unquote_plus(client), unquote_plus(secret)) != ("me", self.secret):
            return web.json_response({"error": "invalid_client"}, status=401)
        if self.status != 200:
            return web.json_response({}, status=self.status)
        self.granted.append(form)
        token = f"token-{len(self.granted)}"
        if self.jwt:
            token = self.token(exp=time.time() + self.lifetime)
        return web.json_response(
            {
                "access_token": token,
                "token_type": "Bearer",
                "expires_in": self.lifetime,
            }
        )


def rsa_key(kid: str) -> RSAKey:
    """A new RSA key."""
    return RSAKey.generate_key(2048, parameters={"kid": kid})


def ec_key(kid: str) -> ECKey:
    """A new key of the curve P-256."""
    return ECKey.generate_key("P-256", parameters={"kid": kid})


@asynccontextmanager
async def issuing() -> AsyncIterator[Issuer]:
    """An issuer that runs."""
    issuer = Issuer()
    app = web.Application()
    app.router.add_get("/jwks.json", issuer.send_keys)
    app.router.add_post("/token", issuer.grant)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        issuer.url = f"http://{host}:{port}"
        yield issuer
    finally:
        await runner.cleanup()

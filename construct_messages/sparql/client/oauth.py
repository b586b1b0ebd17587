"""Access tokens for requests, by the client credentials grant of OAuth 2 (RFC 6749, section 4.4).

A token is kept until shortly before it expires, and fetched again once if a response is 401. One `AccessTokens` serves
all requests with the same credentials, from threads and from asyncio. Errors and `repr` contain no secret or token.
"""

from __future__ import annotations

import json
import os
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import quote_plus, urlencode

from construct_messages.errors import SourceError, UsageError
from construct_messages.rdf.formats.media_types import FORM, JSON
from construct_messages.sparql.client.responses import TRANSIENT, authorization
from construct_messages.sparql.client.urllib_client import fetch
from construct_messages.sparql.client.urls import check_secure, without_query

_SECONDS: Final = 10.0
_MOST_BYTES: Final = 1 << 16
_LIFETIME: Final = (
    300.0  # for tokens without expires_in, which is only recommended (RFC 6749, section 5.1)
)
_EARLY: Final = (
    30.0  # seconds before its expiry at which a token is replaced, at most a tenth of its lifetime
)


@dataclass(frozen=True)
class ClientCredentials:
    """The credentials of a client, and the endpoint that exchanges them for tokens, which must be https or on this
    machine.
    """

    token_url: str  # the token endpoint: https, or on this machine
    client_id: str
    # the secret of the client; it is sent by HTTP Basic authentication (RFC 6749, section 2.3.1)
    secret: str = field(repr=False)
    scope: str | None = None  # the requested scope; None: the default of the server

    def __post_init__(self) -> None:
        check_secure(self.token_url)

    @classmethod
    def of_environment(cls, environ: Mapping[str, str] = os.environ) -> ClientCredentials | None:
        """Returns the credentials in the environment, or None.

        They are `CONSTRUCT_MESSAGES_TOKEN_URL`, `CONSTRUCT_MESSAGES_CLIENT_ID`, and `CONSTRUCT_MESSAGES_CLIENT_SECRET`
        or `CONSTRUCT_MESSAGES_CLIENT_SECRET_FILE`, with `CONSTRUCT_MESSAGES_SCOPE`.
        """
        url, client, secret, file, scope = (
            environ.get(f"CONSTRUCT_MESSAGES_{name}")
            for name in ("TOKEN_URL", "CLIENT_ID", "CLIENT_SECRET", "CLIENT_SECRET_FILE", "SCOPE")
        )
        if url is None:
            return None
        if client is None or (secret is None) == (file is None):
            raise UsageError(
                "CONSTRUCT_MESSAGES_TOKEN_URL is set, but not the credentials of one client",
                hint="set CONSTRUCT_MESSAGES_CLIENT_ID, and CONSTRUCT_MESSAGES_CLIENT_SECRET or "
                "CONSTRUCT_MESSAGES_CLIENT_SECRET_FILE",
            )
        return cls(url, client, read_secret(secret, file), scope)


BearerToken: TypeAlias = str | ClientCredentials
"""The authorization of requests: a token, or credentials to fetch tokens."""


def read_secret(secret: str | None, file: str | None) -> str:
    """Returns a secret, or the one in a file, without surrounding white space."""
    try:
        found = Path(file).read_text(encoding="utf-8") if file is not None else secret or ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"the secret in {file} cannot be read: {error}",
            hint="check the path and the permissions of the file",
        ) from error
    if not found.strip():
        raise UsageError("the secret of the client is empty", hint="write it there")
    return found.strip()


class AccessTokens:
    """The access tokens for some credentials; see `tokens_for`."""

    def __init__(
        self, credentials: ClientCredentials, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._credentials, self._clock = credentials, clock
        self._lock = threading.Lock()
        self._token, self._expires = "", float("-inf")

    def get(self, refused: str | None = None) -> str:
        """Returns a token that is probably valid, and not the refused one; blocks while it is fetched, and may raise
        `SourceError`.
        """
        with self._lock:
            if self._clock() >= self._expires or self._token == refused:
                self._token, lifetime = _fetch(self._credentials)
                self._expires = self._clock() + lifetime - min(_EARLY, lifetime / 10)
            return self._token

    def authorization(self, request: urllib.request.Request, challenge: str | None) -> str:
        """See `Credentials.authorization`: after a rejection, another token than that of the request."""
        if challenge is None:
            return f"Bearer {self.get()}"
        return f"Bearer {self.get((request.get_header('Authorization') or '').removeprefix('Bearer '))}"


@lru_cache(maxsize=64)
def tokens_for(credentials: ClientCredentials) -> AccessTokens:
    """Returns the `AccessTokens` for some credentials, shared by all sources of this process."""
    return AccessTokens(credentials)


def _fetch(credentials: ClientCredentials) -> tuple[str, float]:
    """Fetches a new token, and returns it with its lifetime in seconds."""
    name = without_query(credentials.token_url)
    form = {"grant_type": "client_credentials"}
    if credentials.scope is not None:
        form["scope"] = credentials.scope
    user, password = quote_plus(credentials.client_id), quote_plus(credentials.secret)
    headers = authorization(user, password, None) | {"Content-Type": FORM, "Accept": JSON}

    request = urllib.request.Request(
        credentials.token_url, urlencode(form).encode(), headers, method="POST"
    )
    status, body = fetch(request, name, seconds=_SECONDS, most=_MOST_BYTES)

    def broken(reason: object) -> SourceError:
        return SourceError(
            f"{name} returned no access token: {reason}",
            hint="check the credentials of the client",
            response_status=status,
            transient=status in TRANSIENT or status == 500,
        )

    try:
        document = json.loads(body)
    except ValueError:
        document = None
    members = document if isinstance(document, dict) else {}
    token, lifetime = members.get("access_token"), members.get("expires_in", _LIFETIME)
    if status != 200:
        error = members.get("error")
        known = f" ({error:.80})" if isinstance(error, str) and error.isprintable() else ""
        raise broken(f"HTTP status {status}{known}")
    if (
        not isinstance(token, str)
        or not token.isascii()
        or not token.isprintable()
        or not token
        or str(members.get("token_type", "")).lower() != "bearer"
    ):
        raise broken("the answer has no bearer token")
    if isinstance(lifetime, str) and lifetime.isdigit():  # as some servers send it
        lifetime = float(lifetime)
    valid = isinstance(lifetime, int | float) and not isinstance(lifetime, bool) and lifetime > 0
    return token, float(lifetime) if valid else _LIFETIME

"""Access control: an authorizer for each right, built from the settings.

A rejected request gets 401 with a challenge (RFC 6750, section 3) if credentials are missing or wrong, and 403 if they
are valid but insufficient, or if the right is switched off. `jwt.py` checks JSON Web Tokens, and holds the keys
of their issuer. This package does not depend on the protected resources.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias
from urllib.parse import urlsplit

from multidict import MultiMapping

from construct_messages.errors import Forbidden
from construct_messages.sparql.client.urls import is_loopback

Right: TypeAlias = Literal["read", "publish", "register"]
"""To read streams; to publish, and to create and delete streams; to register, pause and remove queries."""

RIGHTS: Final[Mapping[Right, str]] = {
    "read": "reading",
    "publish": "publishing",
    "register": "registering queries",
}
"""A description of each right, for errors."""

JWT: Final = "jwt"
"""The policy that requires a JSON Web Token."""


class Requesting(Protocol):
    """The part of an HTTP or gRPC request that authorizers read."""

    @property
    def headers(self) -> MultiMapping[str]: ...


EXPIRED: Final = "the token has expired"


class Permit(NamedTuple):
    """The permission of a request to use a right, until `expires`, in seconds since 1970; None: without end."""

    right: Right
    expires: float | None = None

    def limit(self) -> AbstractAsyncContextManager[None]:
        """Cancels the block with `Forbidden` (401) when the token expires: answers may last for days."""
        return nullcontext() if self.expires is None else self._limit(self.expires - time.time())

    @asynccontextmanager
    async def _limit(self, seconds: float) -> AsyncGenerator[None]:
        try:
            async with asyncio.timeout(seconds) as limit:
                yield
        except TimeoutError:
            if limit.expired():
                raise refused(self.right, reason=EXPIRED) from None
            raise


class Authorizer(Protocol):
    """Decides whether a request may use a right.

    `asks` names the credentials that it requires, for pages that show only the forms that can succeed.
    """

    @property
    def asks(self) -> Literal["open", "token", "deny"]: ...

    async def admit(self, request: Requesting, right: Right) -> Permit:
        """Checks that the request may use the right, and returns for how long. `Forbidden` with 401: other credentials
        may help. `SourceError` with 503: it cannot decide now.
        """
        ...


class Everybody:
    """Admits every request."""

    asks: Final = "open"

    async def admit(self, request: Requesting, right: Right) -> Permit:  # noqa: ARG002 - the protocol's
        return Permit(right)


class Nobody:
    """Admits no request."""

    asks: Final = "deny"

    async def admit(self, request: Requesting, right: Right) -> Permit:  # noqa: ARG002 - the protocol's
        raise Forbidden(
            f"{RIGHTS[right]} is switched off here",
            hint=f"allow it in the settings: streams.{right}",
        )


class ThisMachine:
    """Admits programs, and pages of this machine; for servers that only this machine can reach.

    A browser on this machine sends requests for pages of any site, including sites whose host names resolve to this
    server.
    """

    asks: Final = "open"

    async def admit(self, request: Requesting, right: Right) -> Permit:
        for origin in request.headers.getall("Origin", ()):
            if not is_loopback(_host(origin)):
                raise Forbidden(
                    f"{RIGHTS[right]} is switched off for pages of other sites",
                    hint=f"allow it in the settings: streams.{right}",
                )
        return Permit(right)


class SharedToken:
    """Admits requests with the token in an environment variable, which is read for each request."""

    asks: Final = "token"

    def __init__(self, variable: str) -> None:
        self._variable = variable

    async def admit(self, request: Requesting, right: Right) -> Permit:
        token, sent = os.environ.get(self._variable, ""), bearer_token(request, right)
        if not token or not hmac.compare_digest(sent.encode(), token.encode()):
            raise refused(right)
        return Permit(right)


class Access:
    """The authorizers of a server, by policy.

    A policy is `"allow"`, `"deny"`, `"jwt"`, or the name of an environment variable with a token; without one,
    `default` decides. `tokens` are further variables that the description of a stream may name.

    >>> access = Access({"read": "allow", "publish": "PUBLISH_TOKEN", "register": None}, default=Nobody())
    >>> [access.of(right).asks for right in RIGHTS]
    ['open', 'token', 'deny']
    """

    def __init__(
        self,
        policies: Mapping[Right, str | None],
        *,
        default: Authorizer,
        tokens: tuple[str, ...] = (),
        jwt: Authorizer | None = None,
    ) -> None:
        self._default, self._policies = default, policies
        self._known: dict[str, Authorizer] = {"allow": Everybody(), "deny": Nobody()}
        if jwt is not None:
            self._known[JWT] = jwt
        for name in (*policies.values(), *tokens):
            if name is not None and name not in self._known:
                self._known[name] = SharedToken(name)

    @property
    def names(self) -> list[str]:
        """The policies that a stream may name."""
        return sorted(self._known)

    def of(self, right: Right, policy: str | None = None) -> Authorizer:
        """Returns the authorizer of a right; the policy of a stream overrides that of the server."""
        name = policy or self._policies[right]
        return self._default if name is None else self._known.get(name, self._known["deny"])


def bearer_token(request: Requesting, right: Right) -> str:
    """Returns the token in the header `Authorization` (RFC 6750, section 2.1); tokens in URLs and forms are not
    read."""
    headers = request.headers.getall("Authorization", [])
    scheme, _, token = headers[0].partition(" ") if len(headers) == 1 else ("", "", "")
    if scheme.lower() != "bearer" or not token.strip():
        raise refused(right, error=None)
    return token.strip()


def refused(right: Right, *, error: str | None = "invalid_token", reason: str = "") -> Forbidden:
    """Returns the error for a request without a valid token, with its challenge (RFC 6750, section 3).

    `error` is None if the request had no token. `reason` is for the owner of the token, and contains no part of it.

    >>> refused("publish", reason="the token has expired").challenge
    'Bearer realm="streams", error="invalid_token", error_description="the token has expired"'
    """
    challenge = 'Bearer realm="streams"'
    if error is not None:
        challenge += f', error="{error}"' + (f', error_description="{reason}"' if reason else "")
    return Forbidden(
        f"{RIGHTS[right]} needs a token" + (f": {reason}" if reason else ""),
        status=401,
        hint="send it as Authorization: Bearer TOKEN",
        challenge=challenge,
    )


def _host(origin: str) -> str:
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""

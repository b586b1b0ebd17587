"""JSON Web Tokens as access tokens (RFC 7519, RFC 9068): issuer, audience, expiry and scopes.

joserfc verifies signatures and claims. This module decides which keys and algorithms are allowed (RFC 8725), and raises
401 and 403 according to RFC 6750. Needs the extra `jwt`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.request import Request

from joserfc import jws, jwt
from joserfc.errors import (
    BadSignatureError,
    ExpiredTokenError,
    InvalidClaimError,
    JoseError,
    MissingClaimError,
)
from joserfc.jwk import KeySet

from construct_messages.errors import Forbidden, SourceError, UsageError
from construct_messages.server.config import JwtSettings
from construct_messages.server.http.access import (
    EXPIRED,
    RIGHTS,
    Permit,
    Requesting,
    Right,
    bearer_token,
    refused,
)
from construct_messages.sparql.client.urllib_client import fetch
from construct_messages.sparql.client.urls import is_url, without_query

# --- keys -----------------------------------------------------------------------------------------
# The public keys of an issuer of tokens (RFC 7517), from a file or a URL.
#
# They are cached, limited in size, and fetched again for an unknown key, as after a rotation.

_FRESH_SECONDS: Final = 600.0
# seconds that known keys are still used while new ones cannot be fetched
_STALE_SECONDS: Final = 3600.0
_PAUSE_SECONDS: Final = 10.0  # seconds between two fetches for unknown keys
_FETCH_SECONDS: Final = 10.0
_MOST_BYTES: Final = 1 << 18
_MOST_KEYS: Final = 100
_RSA_BITS: Final = 2048  # RFC 7518, sections 3.3 and 3.5

_LOGGER: Final = logging.getLogger(__name__)


class Keys:
    """The keys of one issuer, by `kid`, from a URL or a file."""

    def __init__(self, place: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._place, self._clock = place, clock
        self._keys: list[Any] = []
        self._fetched = self._tried = float("-inf")
        self._error: SourceError | None = None
        self._fetching = asyncio.Lock()
        if not is_url(place):
            try:
                self._keys = _read(Path(place).read_bytes())
            except (OSError, ValueError) as error:
                raise UsageError(f"{place} holds no keys: {error}") from error

    async def find(self, kid: str | None, kind: str) -> Any | None:
        """Returns the key with an identifier, or None. Without an identifier, returns the only key of its kind. 503:
        the keys cannot be fetched.
        """
        found = self._find(kid, kind)
        if not is_url(self._place):
            return found
        age = self._clock() - self._fetched
        if found is None or age > _FRESH_SECONDS:
            await self._refresh()
            found = self._find(kid, kind)
            if self._error is not None and (
                found is None or self._clock() - self._fetched > _STALE_SECONDS
            ):
                raise self._error
        return found

    def _find(self, kid: str | None, kind: str) -> Any | None:
        keys = [key for key in self._keys if key.key_type == kind and kid in (None, key.kid)]
        return keys[0] if len(keys) == 1 else None

    async def _refresh(self) -> None:
        """Fetches the keys, at most once in some seconds, independently of the tokens in requests."""
        async with self._fetching:
            if self._clock() - self._tried < _PAUSE_SECONDS:
                return
            self._tried, self._error = self._clock(), None
            try:
                loop = asyncio.get_running_loop()
                self._keys = await loop.run_in_executor(None, partial(_fetch, self._place))
                self._fetched = self._clock()
            except SourceError as error:
                self._error = SourceError(
                    error.message, status=503, retry_after=_PAUSE_SECONDS, transient=True
                )


def _fetch(url: str) -> list[Any]:
    """Returns the keys at a URL."""
    name, request = without_query(url), Request(url, headers={"Accept": "*/*"})
    status, body = fetch(request, name, seconds=_FETCH_SECONDS, most=_MOST_BYTES)
    if status != 200:
        raise SourceError(f"{name} sent no keys: HTTP status {status}")
    try:
        return _read(body)
    except ValueError as error:
        raise SourceError(f"{name} sent no keys: {error}") from error


def _read(document: bytes) -> list[Any]:
    """Returns the public signature keys of a JSON Web Key Set.

    Keys of an unknown kind are left out (RFC 7517, section 5), and so are symmetric ones, because a published secret is
    not secret, and short ones of RSA, which can be broken.
    """
    value = json.loads(document)
    if not isinstance(value, dict) or not isinstance(value.get("keys"), list):
        raise ValueError("it is not a JSON Web Key Set")
    if len(value["keys"]) > _MOST_KEYS:
        raise ValueError(f"it has more than {_MOST_KEYS} keys")
    keys = []
    for each in value["keys"]:
        if not isinstance(each, dict) or each.get("kty") == "oct" or each.get("use") == "enc":
            continue
        try:
            if each.get("kty") == "RSA" and (bits := _bits(each["n"])) < _RSA_BITS:
                _LOGGER.warning(
                    "the issuer's key %r is left out: it has %d bits, and RSA needs %d (RFC 7518)",
                    each.get("kid"),
                    bits,
                    _RSA_BITS,
                )
                continue
            keys += KeySet.import_key_set({"keys": [each]}).keys
        except (JoseError, ValueError, TypeError, KeyError):
            continue
    return keys


def _bits(modulus: str) -> int:
    """Returns the size of an RSA key.

    >>> _bits("AQAB")
    17
    """
    decoded = base64.urlsafe_b64decode(modulus + "==")
    return int.from_bytes(decoded, "big").bit_length()


# --- jwt ------------------------------------------------------------------------------------------

_MOST_CHARACTERS: Final = 8192
_KINDS: Final[Mapping[str, str]] = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
_TYPES: Final = ("jwt", "at+jwt")  # RFC 9068, section 2.1


class JsonWebTokens:
    """Admits requests with a token of the issuer for this server, with a scope for the right."""

    asks: Final = "token"

    def __init__(self, settings: JwtSettings, keys: Keys | None = None) -> None:
        self._settings = settings
        self._keys = Keys(settings.keys) if keys is None else keys
        self._scopes: dict[Right, str] = {
            "read": settings.read_scope,
            "publish": settings.publish_scope,
            "register": settings.register_scope,
        }
        self._claims = jwt.JWTClaimsRegistry(
            leeway=settings.leeway_seconds,
            iss={"essential": True, "value": settings.issuer},
            aud={"essential": True, "value": settings.audience},
            exp={"essential": True},
        )

    async def admit(self, request: Requesting, right: Right) -> Permit:
        token = bearer_token(request, right)
        try:
            claims = await self._verified(token)
        except ExpiredTokenError as error:
            raise refused(right, reason=EXPIRED) from error
        except (InvalidClaimError, MissingClaimError) as error:
            raise refused(
                right, reason=f"the claim {error.claim} is missing or not as it must be"
            ) from error
        except BadSignatureError as error:
            raise refused(right, reason="the signature is wrong") from error
        except (JoseError, ValueError, TypeError, RecursionError) as error:
            raise refused(right, reason="the token is malformed or not allowed") from error
        if (scope := self._scopes[right]) not in _scopes(claims):
            raise Forbidden(
                f"{RIGHTS[right]} needs a token with the scope {scope}",
                hint="ask the issuer for it",
                challenge=f'Bearer realm="streams", error="insufficient_scope", scope="{scope}"',
            )
        expires: float = claims["exp"]
        if expires <= time.time():  # it is accepted because the clocks may differ
            expires += self._settings.leeway_seconds
        return Permit(right, expires)

    async def _verified(self, token: str) -> Mapping[str, Any]:
        """Returns the claims of a token that is valid for this server."""
        if len(token) > _MOST_CHARACTERS:
            raise ValueError(f"more than {_MOST_CHARACTERS} characters")
        header = jws.extract_compact(token.encode()).headers()
        algorithm, kid = header.get("alg"), header.get("kid")
        # before a key is chosen: this excludes `none`, and a public key in the role of a secret
        if algorithm not in self._settings.algorithms:
            raise ValueError("an algorithm that is not allowed")
        kind = str(header.get("typ", "JWT")).lower().removeprefix("application/")
        if kind not in _TYPES or not isinstance(kid, str | None):
            raise ValueError("another kind of token")
        key = await self._keys.find(kid, _KINDS[algorithm[:2]])
        if key is None:
            raise ValueError("a key that the issuer does not have")
        found = jwt.decode(token, key, algorithms=list(self._settings.algorithms))
        self._claims.validate(found.claims)
        return found.claims


def _scopes(claims: Mapping[str, Any]) -> set[str]:
    """Returns the scopes of a token: `scope` (RFC 9068, section 2.2.3), or `scp`, which some issuers use.

    >>> sorted(_scopes({"scope": "read publish"})), sorted(_scopes({"scp": ["read"]}))
    (['publish', 'read'], ['read'])
    """
    given = claims.get("scope", claims.get("scp", ()))
    if isinstance(given, str):
        return set(given.split())
    return {each for each in given if isinstance(each, str)} if isinstance(given, list) else set()

"""JSON Web Tokens as access tokens (RFC 7519, RFC 9068): issuer, audience, expiry and scopes.

joserfc verifies signatures and claims. This module decides which keys and algorithms are allowed (RFC 8725), and raises
401 and 403 according to RFC 6750. Needs the extra `jwt`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from joserfc import jws, jwt
from joserfc.errors import (
    BadSignatureError,
    ExpiredTokenError,
    InvalidClaimError,
    JoseError,
    MissingClaimError,
)

from construct_messages.rdf.errors import Forbidden
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
from construct_messages.server.http.access.keys import Keys

_MOST_CHARACTERS: Final = 8192
_KINDS: Final[Mapping[str, str]] = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
_TYPES: Final = ("jwt", "at+jwt")  # RFC 9068, section 2.1


class JsonWebTokens:
    """Admits requests with a token of the issuer for this server, with a scope for the right.

    Args:
        settings: the issuer, its keys, and the required claims.
        keys: the keys of the issuer; None: those of the settings.

    Raises:
        UsageError: the file of keys cannot be read.
    """

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
        """Checks the request; see `Authorizer`."""
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
        """Returns the claims of a token that is valid for this server.

        Raises:
            JoseError, ValueError, TypeError: the token is not valid.
            SourceError: the keys cannot be fetched.
        """
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

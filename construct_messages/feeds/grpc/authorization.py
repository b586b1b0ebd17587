"""The token of calls, from the caller or fetched: OAuth 2 client credentials are exchanged when the token is
rejected.
"""

from __future__ import annotations

import asyncio
from typing import Final

from construct_messages.rdf.errors import SourceError
from construct_messages.rdf.wire import CallMetadata
from construct_messages.sparql.client.oauth import BearerToken, ClientCredentials, tokens_for

UNAUTHENTICATED: Final = 401
"""The status of HTTP for calls without a valid token."""


class CallAuthorization:
    """The token of calls to one server.

    Args:
        token: the token, or the credentials for fetching tokens; None: calls have no token.
    """

    def __init__(self, token: BearerToken | None) -> None:
        self._token = token
        self._sent: str | None = None
        self._refused: str | None = None

    async def metadata(self) -> dict[str, str]:
        """Returns the metadata of a call.

        Raises:
            SourceError: the token endpoint returns no token.
        """
        token = self._token
        if token is None:
            return {}
        if isinstance(token, ClientCredentials):
            token = self._sent = await asyncio.to_thread(tokens_for(token).get, self._refused)
        return {CallMetadata.AUTHORIZATION: f"Bearer {token}"}

    def renews(self, error: SourceError) -> bool:
        """Returns whether a failed call should be repeated with a new token: once, until a call succeeds."""
        if (
            error.response_status != UNAUTHENTICATED
            or self._sent is None
            or self._refused is not None
        ):
            return False
        self._refused = self._sent
        return True

    def accepted(self) -> None:
        """Records that a call was not rejected."""
        self._refused = None

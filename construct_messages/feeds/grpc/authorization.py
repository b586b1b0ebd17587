"""The token of calls, as it is given or fetched: OAuth 2 client credentials are exchanged when the token is refused."""

from __future__ import annotations

import asyncio

from construct_messages.errors import SourceError
from construct_messages.net.oauth import BearerToken, ClientCredentials, tokens_for
from construct_messages.net.wire import CallMetadata

_UNAUTHENTICATED = 401


class CallAuthorization:
    """The token that calls to one server are made with.

    Args:
        token: the token, or the credentials that tokens are fetched with; None: calls have no token.
    """

    def __init__(self, token: BearerToken | None) -> None:
        self._token = token
        self._sent: str | None = None
        self._refused: str | None = None

    async def metadata(self) -> dict[str, str]:
        """Returns the metadata of a call.

        Raises:
            SourceError: there is no token for the credentials.
        """
        token = self._token
        if token is None:
            return {}
        if isinstance(token, ClientCredentials):
            token = self._sent = await asyncio.to_thread(tokens_for(token).get, self._refused)
        return {CallMetadata.AUTHORIZATION: f"Bearer {token}"}

    def renews(self, error: SourceError) -> bool:
        """Returns whether a call that failed is to be made again with a new token: once, until a call succeeds."""
        if (
            error.response_status != _UNAUTHENTICATED
            or self._sent is None
            or self._refused is not None
        ):
            return False
        self._refused = self._sent
        return True

    def accepted(self) -> None:
        """Called when a call was not refused."""
        self._refused = None

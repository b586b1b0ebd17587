"""Reads the elements that a WebSocket pushes, one per frame. RDF Messages, section 3 (WebSocket); RFC 6455."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Final

import aiohttp

from construct_messages.errors import SourceError, shown
from construct_messages.feeds.connections import reader_of
from construct_messages.feeds.http.client import ended
from construct_messages.feeds.http.connections import ConnectedTransport, ConnectionState
from construct_messages.rdf.wire import SUBPROTOCOLS, Property, refused_status
from construct_messages.sparql.client.urls import without_query
from construct_messages.streams import Element

_ENDS: Final = frozenset((aiohttp.WSCloseCode.OK, aiohttp.WSCloseCode.GOING_AWAY, 1012, 1013))
"""Close codes after which a client may reconnect (RFC 6455, section 7.4; 1012 and 1013 as registered)."""
_REFUSED: Final = frozenset((1002, 1003, 1007, 1008, 1009, 1010))
"""Close codes that the same client would receive again."""


class WebSocketTransport(ConnectedTransport):
    """Reads frames, which have no sequences and are counted; see `Transport`."""

    endpoint = Property.SOCKET

    async def connection(self, url: str, state: ConnectionState) -> AsyncGenerator[Element]:
        await self.ask_position(state)  # frames do not name their stream
        most = 2 * self._settings.message_bytes
        socket = await self._client.connect(state.url(url), tuple(SUBPROTOCOLS), most)
        async with socket:
            if socket.protocol is None:
                raise SourceError(
                    f"{without_query(url)} takes none of the subprotocols {', '.join(SUBPROTOCOLS)}",
                    hint="check that it is a stream of RDF Messages",
                )
            media_type = SUBPROTOCOLS[socket.protocol].document_type
            reader = reader_of(media_type, self._settings, base=without_query(url))
            while (frame := await socket.receive()).type in (
                aiohttp.WSMsgType.TEXT,
                aiohttp.WSMsgType.BINARY,
            ):
                data = frame.data.encode() if isinstance(frame.data, str) else frame.data
                yield self.counted(state, reader.read(data, (state.sequence or 0) + 1))
        reason = frame.extra if frame.type is aiohttp.WSMsgType.CLOSE else None
        _check_close(url, socket.close_code, reason or "")


def _check_close(url: str, code: int | None, reason: str) -> None:
    """Raises the error of a close code, unless a client may reconnect after it."""
    if code in _ENDS:
        return
    if (status := refused_status(code)) is not None:
        raise ended(url, status, json.dumps({"detail": reason}).encode() if reason else b"")
    detail = f": {shown(reason)}" if reason else ""
    raise SourceError(
        f"{without_query(url)} was closed with code {code}{detail}", transient=code not in _REFUSED
    )

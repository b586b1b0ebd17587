"""Messages that are not stored, as a message log: of a query that is only tried, or of a body that is only checked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence

from aiohttp import web

from construct_messages.errors import UnsupportedByFormat
from construct_messages.formats import N_QUADS, RDFM, LogType, content_type
from construct_messages.formats.negotiation import Plain, negotiate
from construct_messages.server.streams.documents import log, not_carried
from construct_messages.server.streams.requests import accept_of, record_of
from construct_messages.streams import Publication
from construct_messages.streams.element import Element


async def unstored(
    request: web.Request, messages: Sequence[Publication], headers: Mapping[str, str]
) -> web.Response:
    """Answers with messages, as a log of the format that the client wants; N-Quads where it wants none.

    Raises:
        NotAcceptable: it wants a format that there is not, or that cannot carry a message.
    """
    choice = negotiate(accept_of(request), messages=request.query.get("messages"))
    if isinstance(choice, Plain):
        choice = LogType(N_QUADS, RDFM)
    media_type = content_type(*choice)
    record_of(request).format = media_type
    try:
        body = b"".join([part async for part in log(_page(messages), *choice)])
    except UnsupportedByFormat as error:
        raise not_carried(error) from error
    return web.Response(
        body=body, headers={"Content-Type": media_type, "Cache-Control": "no-store", **headers}
    )


async def _page(messages: Sequence[Publication]) -> AsyncGenerator[list[Element]]:
    yield [Element("", number, 0, *each) for number, each in enumerate(messages, 1)]

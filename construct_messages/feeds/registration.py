"""Registers a query at a server of streams: `register` is the public function. LDN for RDF streams."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import urlencode

from construct_messages.errors import SourceError
from construct_messages.feeds.http.client import Client, check_stream_url, origin_of, target_of
from construct_messages.rdf.arguments import checked
from construct_messages.rdf.formats import NDJSON_LD
from construct_messages.rdf.formats.media_types import SPARQL_QUERY
from construct_messages.rdf.wire import Property
from construct_messages.sparql.client.oauth import BearerToken
from construct_messages.sparql.client.urls import without_query

_NO_GET = 405


@checked
async def register(
    query: str,
    url: str,
    *,
    name: str | None = None,
    parameters: Mapping[str, str] = MappingProxyType({}),
    token: BearerToken | None = None,
    idle_seconds: float = 60.0,
) -> str:
    """Registers a query, and returns the URL of its output stream.

    The request is sent once: if the connection is lost, check the stream list for the query.

    Args:
        query: RSP-QL, C-SPARQL or CQELS, or SPARQL.
        url: the URL of the input stream; or of the stream list, if the query names its streams, or watches an endpoint.
        name: the name of the output stream, if it is not in the query; None: the server chooses it.
        parameters: the parameters of the registration, such as `{"from": "first"}`; see
            docs/reference/continuous/registered.md.
        token: a token, sent as `Authorization: Bearer`; or the credentials for fetching tokens.
        idle_seconds: the maximal time without data from the server.

    Raises:
        UsageError: requests cannot be sent to the URL.
        SourceError: the server rejects the query (see `response_status`), or cannot be reached.

    >>> import asyncio
    >>> from construct_messages.feeds import publish
    >>> async def main(stream):
    ...     await publish([], stream, create=True)
    ...     return await register("CONSTRUCT { ?s a <urn:Hot> } WHERE { ?s <urn:celsius> ?c }", stream, name="hot")
    >>> asyncio.run(main(f"{server}/streams/rooms")).removeprefix(server)
    '/streams/hot'
    """
    check_stream_url(url)
    async with Client(origin_of(url), token, 0, idle_seconds) as client:
        target = await _endpoint(client, url)
        if parameters:
            target = f"{target}?{urlencode(parameters)}"
        headers = {"Content-Type": SPARQL_QUERY, **({} if name is None else {"Slug": name})}
        response = await client.open("POST", target, headers, query.encode())
        await client.body(response, target)
        if (location := response.headers.get("Location")) is None:
            raise SourceError(
                f"{without_query(target)} does not name the stream that the query fills"
            )
        return target_of(target, location)


async def _endpoint(client: Client, url: str) -> str:
    """Returns the URL for registering queries over a stream; the URL itself if it is not that of a stream."""
    response = await client.open(
        "GET", url, {"Accept": NDJSON_LD.document_type}, accepted=(_NO_GET,)
    )
    body = await client.body(response, url)
    if response.status == _NO_GET:
        return url
    try:
        description = json.loads(body)
    except ValueError as error:
        raise SourceError(f"{without_query(url)} describes no stream") from error
    query = description.get(Property.QUERY) if isinstance(description, dict) else None
    return target_of(url, query) if isinstance(query, str) else url

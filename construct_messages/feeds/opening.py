"""Opens the transport for a URL: the requested one, or else the first one in the table that supports it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from pkgutil import resolve_name
from typing import Any
from urllib.parse import urldefrag, urlsplit

from construct_messages.errors import SourceError, UsageError
from construct_messages.feeds.http.client import Client, check_stream_url, origin_of
from construct_messages.feeds.http.connections import Endpoints, HttpStream
from construct_messages.feeds.http.discovery import discover
from construct_messages.feeds.table import TRANSPORTS, TransportKind, kinds_for
from construct_messages.feeds.transport import Settings, Transport
from construct_messages.rdf.wire import Property


def check_via(url: str, via: str | None, *, follow: bool) -> None:
    """Raises `UsageError` for a URL or a transport that cannot be read in this way."""
    check_url(url)
    kinds = kinds_for(url)
    if via is None:
        if kinds and not follow and not any(kind.capabilities.ends for kind in kinds):
            raise UsageError(
                f"a stream at {urlsplit(url).scheme}: does not end",
                hint="follow it: follow=True, or --follow",
            )
        return
    for wrong, fitting in (
        ("is no transport", TRANSPORTS),
        ("follows a stream", [kind for kind in TRANSPORTS if follow or kind.capabilities.ends]),
        ("has no such URLs", kinds),
    ):
        names = [kind.name for kind in fitting]
        if via not in names:
            raise UsageError(f"via={via!r} {wrong}", hint=f"choose one of {', '.join(names)}")


def check_url(url: str) -> None:
    """Raises `UsageError` for a URL that no transport supports, or that contains credentials."""
    if all(kind.endpoint is not None for kind in kinds_for(url)):
        check_stream_url(urldefrag(url).url)
    elif "@" in urlsplit(url).netloc:
        raise UsageError(
            "the URL holds credentials", hint="pass them as options of the transport, see its page"
        )


def check_token(url: str) -> None:
    """Raises `UsageError` for a transport without bearer tokens: brokers have other credentials."""
    for kind in kinds_for(url):
        if kind.credentials is not None:
            raise UsageError(
                f"a token is given, and {kind.title} has no bearer tokens",
                hint=f"pass the options {kind.credentials}: --set NAME=VALUE, of a relay --from-set and --to-set, of a "
                "bridge from_options and to_options",
            )


def check_dead_letters(url: str, place: str) -> None:
    """Raises `UsageError` unless a stream has records, as those of brokers, and a place accepts those that are not
    messages.
    """
    if all(kind.credentials is None for kind in kinds_for(url)):
        raise UsageError(
            f"dead_letters is for records of a broker, and {url} has none", hint="leave it out"
        )
    if kinds_for(place):
        check_url(place)
        if place == url or all(kind.credentials is None for kind in kinds_for(place)):
            raise UsageError(
                f"dead letters cannot go to {place}",
                hint="name a file, or a URL such as kafka://localhost/dead-letters",
            )


@asynccontextmanager
async def opened(
    url: str,
    settings: Settings,
    *,
    via: str | None = None,
    follow: bool = True,
    write: bool = False,
) -> AsyncGenerator[Transport]:
    """Opens the transport for the URL of a stream, or of an endpoint of it, and closes it at the end of the block.

    Without `via`, the first suitable one. Raises `UsageError`, and `SourceError` if the stream has no suitable
    endpoint, or cannot be reached.
    """
    if settings.token is not None:
        check_token(url)
    kinds = [
        kind
        for kind in kinds_for(url)
        if via in (None, kind.name)
        and (kind.capabilities.writes if write else follow or kind.capabilities.ends)
    ]
    for kind in kinds:
        if kind.endpoint is None:
            async with aclosing(_resolve(kind)(url, settings)) as transport:
                yield transport
            return
    async with Client(
        origin_of(url), settings.token, settings.retries, settings.idle_seconds
    ) as client:
        async for attempt in client.attempts():
            with attempt:
                endpoints = await _discovered(client, url, settings)
                kind = _chosen(endpoints, kinds, via, write=write)
        async with aclosing(_resolve(kind)(HttpStream(client, endpoints, settings))) as transport:
            yield transport


async def _discovered(client: Client, url: str, settings: Settings) -> Endpoints:
    try:
        return await discover(client, url, settings)
    except SourceError as error:
        if not settings.create or error.response_status != 404:
            raise
    try:
        (await client.open("PUT", url, {})).close()
    except SourceError as error:
        # another client, such as a second task of Spark, has created it since
        if error.response_status != 409:
            raise
    return await discover(client, url, settings)


def _chosen(
    endpoints: Endpoints, kinds: Sequence[TransportKind], via: str | None, *, write: bool
) -> TransportKind:
    for kind in kinds:
        if (Property.INPUT if write else kind.endpoint) in endpoints.urls:
            return kind
    if write:
        raise SourceError(
            f"{endpoints.stream} takes no messages", hint="give the URL of a stream that does"
        )
    offered = ", ".join(kind.name for kind in TRANSPORTS if kind.endpoint in endpoints.urls)
    raise SourceError(
        f"{endpoints.stream} cannot be had via {via or 'any transport'}",
        hint=f"choose one of {offered}" if offered else "give the URL of a stream that can be read",
    )


def _resolve(kind: TransportKind) -> Any:
    """Imports the class of a transport; raises `UsageError` if a package that it needs is not installed."""
    try:
        return resolve_name(f"{__package__}.{kind.room}")
    except ModuleNotFoundError as error:
        if kind.extra is None:
            raise
        raise UsageError(
            f"the transport {kind.name} needs {error.name}, which is not installed",
            hint=f"pip install 'construct-messages[{kind.extra}]'",
        ) from error

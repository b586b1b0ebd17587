"""Creates the endpoints of a server from its settings. Only this module depends on every kind of endpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path

from construct_messages.server.config import Config, StreamsSettings
from construct_messages.server.http.access import Access, Authorizer, Nobody, ThisMachine
from construct_messages.server.http.endpoint import Endpoint
from construct_messages.server.http.request_log import RequestLog
from construct_messages.server.pages.endpoint import Listed, PagesEndpoint
from construct_messages.server.runtime.checks import bounded
from construct_messages.server.sparql.backend import open_backend
from construct_messages.server.sparql.endpoint import SparqlEndpoint, path_of
from construct_messages.server.streams.bridges import BridgesEndpoint
from construct_messages.server.streams.endpoint import StreamsEndpoint
from construct_messages.server.streams.queries import WatchedEndpoint
from construct_messages.server.streams.resources import ROOT
from construct_messages.sparql.client.urls import is_loopback
from construct_messages.streams.store import open_store


def open_endpoints(
    config: Config, directories: Mapping[str, Path], request_log: RequestLog, executor: Executor
) -> Sequence[Endpoint]:
    """Creates the endpoints in the settings.

    `directories` has the store directories of endpoints over files, by name; `request_log` gets details that clients
    must not see. The caller shuts the executor down after it has closed the endpoints.
    """
    public_url = _public_url(config)
    endpoints: list[Endpoint] = []
    watched: dict[str, WatchedEndpoint] = {}
    for name, settings in bounded(config).endpoints.items():
        path, backend = path_of(name), open_backend(settings, executor, directories.get(name))
        endpoints.append(
            SparqlEndpoint(
                path,
                settings,
                backend,
                request_log=request_log,
                executor=executor,
                public_url=None if public_url is None else f"{public_url}{path}",
                page=config.page,
                cors=config.trusted_origins,
            )
        )
        watched[path] = WatchedEndpoint(
            backend,
            settings.limits.seconds,
            settings.union_default_graph,
            None if settings.is_remote else directories.get(name) or Path(settings.source[0]),
            settings.service_policy,
        )
    if config.streams is not None:
        endpoints += _streams_endpoints(config, config.streams, watched, request_log, executor)
    if config.page:
        listed = [
            Listed(
                name,
                path_of(name),
                settings.prefixes,
                settings.examples,
            )
            for name, settings in config.endpoints.items()
        ]
        endpoints.append(PagesEndpoint(listed, streams=ROOT if config.streams else None))
    return endpoints


def _streams_endpoints(
    config: Config,
    streams: StreamsSettings,
    watched: Mapping[str, WatchedEndpoint],
    request_log: RequestLog,
    executor: Executor,
) -> list[Endpoint]:
    store = open_store(streams.file, reserve_bytes=streams.reserve_bytes)
    endpoint = StreamsEndpoint(
        streams,
        store,
        executor=executor,
        access=_access(config, streams),
        watched=watched,
        public_url=_public_url(config),
        page=config.page,
    )
    if any(each.source or each.target for each in streams.bridges.values()):
        return [endpoint, BridgesEndpoint(streams, store, request_log, endpoint.shapes)]
    return [endpoint]


def _public_url(config: Config) -> str | None:
    return None if config.public_url is None else config.public_url.rstrip("/")


def _access(config: Config, streams: StreamsSettings) -> Access:
    tokens: Authorizer | None = None
    if config.jwt is not None:
        from construct_messages.server.http.access.jwt import JsonWebTokens  # needs an extra

        tokens = JsonWebTokens(config.jwt)
    return Access(
        {
            "read": streams.read or "allow",
            "publish": streams.publish,
            "register": streams.register,
        },
        default=ThisMachine() if is_loopback(config.address[0]) else Nobody(),
        tokens=streams.tokens,
        jwt=tokens,
    )

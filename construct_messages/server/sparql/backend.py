"""Opens the backend of a SPARQL endpoint by its settings: a remote endpoint, or evaluators over a store directory."""

from __future__ import annotations

import os
from concurrent.futures import Executor
from pathlib import Path

from construct_messages.rdf.errors import UsageError
from construct_messages.server.config import EndpointSettings
from construct_messages.server.sparql.service_proxy import ServiceProxy
from construct_messages.sparql.client.oauth import (
    AccessTokens,
    ClientCredentials,
    read_secret,
    tokens_for,
)
from construct_messages.sparql.sources.evaluators.pool import EvaluatorPool
from construct_messages.sparql.sources.http.upstream import Upstream
from construct_messages.sparql.sources.operations import Backend


def open_backend(
    settings: EndpointSettings, executor: Executor, directory: Path | None = None
) -> Backend:
    """Opens the backend of an endpoint.

    Args:
        settings: the settings of the endpoint, with limits.
        executor: threads for work that would block the event loop.
        directory: the store directory with the content of the source's files; None: the source is a URL or a directory.

    Raises:
        ConstructMessagesError: the backend cannot be opened.
    """
    if not settings.is_remote:
        if directory is None:
            if len(settings.source) != 1 or not Path(settings.source[0]).is_dir():
                raise UsageError(
                    f"{' '.join(settings.source)}: files must be loaded into a store before"
                )
            directory = Path(settings.source[0])
        # `bounded` divides the memory by the number of processes
        assert settings.evaluator_bytes != "auto"
        pool = EvaluatorPool(
            directory,
            size=settings.evaluators,
            queue_seconds=settings.queue_seconds,
            memory_bytes=settings.evaluator_bytes,
            executor=executor,
        )
        policy = settings.service_policy
        if policy == "deny":
            return pool
        return ServiceProxy(pool, policy, contact=settings.contact, seconds=settings.limits.seconds)
    updates = (
        None
        if settings.update_source is None
        else _upstream(settings, settings.update_source, executor)
    )
    return _upstream(settings, settings.source[0], executor, updates)


def _upstream(
    settings: EndpointSettings, url: str, executor: Executor, updates: Upstream | None = None
) -> Upstream:
    return Upstream(
        url,
        profile=settings.profile,
        results=settings.results,
        method=settings.method,
        user=_secret(settings.user_variable),
        password=_secret(settings.password_variable),
        token=_secret(settings.token_variable),
        tokens=_tokens(settings),
        contact=settings.contact,
        prefixes=settings.prefixes,
        retries=settings.retries,
        connect_seconds=settings.connect_seconds,
        read_seconds=settings.read_seconds,
        rate=settings.rate,
        connections=settings.concurrency,
        allow_private=settings.allow_private,
        updates=updates,
        executor=executor,
    )


def _tokens(settings: EndpointSettings) -> AccessTokens | None:
    if settings.token_url is None or settings.client_id is None:
        return None
    secret = read_secret(_secret(settings.client_secret_variable), settings.client_secret_file)
    return tokens_for(
        ClientCredentials(settings.token_url, settings.client_id, secret, settings.scope)
    )


def _secret(variable: str | None) -> str | None:
    return None if variable is None else os.environ.get(variable)

"""From an endpoint's settings to what answers it: a remote endpoint, or processes over a store directory."""

from __future__ import annotations

import os
from pathlib import Path

from construct_messages.errors import UsageError
from construct_messages.server.config import Endpoint
from construct_messages.server.sparql.service_proxy import ServiceProxy
from construct_messages.sources.evaluators.pool import EvaluatorPool
from construct_messages.sources.http.upstream import Upstream
from construct_messages.sources.operations import Backend


def open_backend(endpoint: Endpoint, directory: Path | None = None) -> Backend:
    """The backend of an endpoint.

    Args:
        endpoint: the settings, `bounded`.
        directory: of the store that holds the content of the source's files; None: the source is a URL or a directory.

    Raises:
        ConstructMessagesError: it cannot be opened.
    """
    if not endpoint.is_remote:
        if directory is None:
            if len(endpoint.source) != 1 or not Path(endpoint.source[0]).is_dir():
                raise UsageError(f"{' '.join(endpoint.source)}: files must be loaded into a store before")
            directory = Path(endpoint.source[0])
        assert endpoint.evaluator_bytes != "auto"  # the whole server knows how many share the memory
        pool = EvaluatorPool(
            directory,
            size=endpoint.evaluators,
            queue_seconds=endpoint.queue_seconds,
            memory_bytes=endpoint.evaluator_bytes,
        )
        policy = endpoint.service_policy
        if policy == "deny":
            return pool
        return ServiceProxy(pool, policy, contact=endpoint.contact, seconds=endpoint.limits.seconds)
    updates = None if endpoint.update_source is None else _upstream(endpoint, endpoint.update_source)
    return _upstream(endpoint, endpoint.source[0], updates)


def _upstream(endpoint: Endpoint, url: str, updates: Upstream | None = None) -> Upstream:
    return Upstream(
        url,
        profile=endpoint.profile,
        results=endpoint.results,
        method=endpoint.method,
        user=_secret(endpoint.user_variable),
        password=_secret(endpoint.password_variable),
        token=_secret(endpoint.token_variable),
        contact=endpoint.contact,
        prefixes=endpoint.prefixes,
        retries=endpoint.retries,
        connect_seconds=endpoint.connect_seconds,
        read_seconds=endpoint.read_seconds,
        rate=endpoint.rate,
        connections=endpoint.concurrency,
        allow_private=endpoint.allow_private,
        updates=updates,
    )


def _secret(variable: str | None) -> str | None:
    return None if variable is None else os.environ.get(variable)

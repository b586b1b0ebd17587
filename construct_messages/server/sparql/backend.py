"""Opens the backend of a SPARQL endpoint by its settings: a remote endpoint, or evaluators over a store directory."""

from __future__ import annotations

import base64
import ipaddress
import math
import os
import re
import secrets
from collections.abc import AsyncGenerator, Collection, Generator, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import aclosing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from aiohttp import web

from construct_messages.errors import (
    ConstructMessagesError,
    Forbidden,
    LimitExceeded,
    Position,
    SourceError,
    UsageError,
)
from construct_messages.query.select import Select
from construct_messages.query.service import check_services, redirect_services, services
from construct_messages.query.tokens import QueryText
from construct_messages.rdf.solutions import Solutions
from construct_messages.server.config import EndpointSettings
from construct_messages.server.http.sending import Aborted, send
from construct_messages.sparql.client.aiohttp_client import is_public
from construct_messages.sparql.client.oauth import (
    AccessTokens,
    ClientCredentials,
    read_secret,
    tokens_for,
)
from construct_messages.sparql.client.responses import OK
from construct_messages.sparql.sources import Answer, Backend, Operation, Request
from construct_messages.sparql.sources.evaluators.pool import EvaluatorPool
from construct_messages.sparql.sources.http.upstream import Upstream

# --- service proxy --------------------------------------------------------------------------------
# A proxy for the SERVICE clauses of the embedded engine, with the same checks as for other endpoints.
#
# The engine's own HTTP client follows any redirect and connects to any address. The IRIs of SERVICE clauses are
# therefore replaced by URLs of a listener on loopback, with an unpredictable path. The listener relays the sub-query
# through `Upstream` (SPARQL 1.1 Federated Query), which checks addresses, rejects redirects to other origins, and
# limits time and size. `query/service.py` finds the clauses. No evaluation here.

Policy: TypeAlias = Literal["allow"] | Collection[str]
"""The endpoints that SERVICE may reach: all public ones, or these IRIs."""

_REQUEST_BYTES: Final = 16 << 20
_IDLE_SECONDS: Final = math.inf  # the engine reads while it joins; its own time limit applies


class ServiceProxy:
    """A backend whose engine can only reach SERVICE endpoints through this proxy.

    The policy has IRIs of the operator, which may have private addresses, or is `"allow"`: clients choose the IRIs, and
    private addresses are rejected. `response_bytes` and `seconds` bound each SERVICE request.
    """

    def __init__(
        self,
        backend: Backend,
        policy: Policy,
        *,
        response_bytes: int = 256 << 20,
        seconds: float | None = 300.0,
        contact: str | None = None,
    ) -> None:
        self._backend, self._policy = backend, policy
        self._response_bytes, self._seconds, self._contact = response_bytes, seconds, contact
        self._secret = secrets.token_urlsafe(24)
        self._runner: web.AppRunner | None = None
        self._prefix = ""

    @property
    def predefined(self) -> Mapping[str, str]:
        return self._backend.predefined

    @property
    def stable_blank_nodes(self) -> bool:
        return self._backend.stable_blank_nodes

    async def start(self) -> None:
        """Starts the proxy and the backend; must be called before the first query. See `Backend.start`."""
        app = web.Application(client_max_size=_REQUEST_BYTES)
        app.router.add_post(f"/{self._secret}/{{target}}", self._relay)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._prefix = f"http://127.0.0.1:{self._runner.addresses[0][1]}/{self._secret}/"
        await self._backend.start()

    async def asolutions(self, request: Request) -> AsyncGenerator[Solutions]:
        # the engine requires the complete text
        text, written = self._redirected(str(request.select)), request.select.written
        select = Select("", "", request.select.variables, "", text, written=written)
        async with aclosing(self._backend.asolutions(replace(request, select=select))) as batches:
            with self._restoring():
                async for batch in batches:
                    yield batch

    def solutions(self, request: Request) -> Generator[Solutions]:
        """Yields the solutions of the backend, without the proxy, which needs asyncio."""
        return self._backend.solutions(request)

    async def answer(self, operation: Operation) -> Answer:
        if operation.text is not None:
            operation = replace(operation, text=self._redirected(operation.text))
        with self._restoring():
            answer = await self._backend.answer(operation)
        body = self._body(answer)
        await anext(body)  # started, so that closing it also closes its source
        return replace(answer, body=body)

    async def check(self) -> None:
        await self._backend.check()

    def close(self) -> None:
        self._backend.close()

    async def aclose(self) -> None:
        await self._backend.aclose()
        if self._runner is not None:
            await self._runner.cleanup()

    # --- texts on their way to the engine, and back ---

    def _redirected(self, text: str) -> str:
        query = QueryText(text)
        if not isinstance(self._policy, str):
            check_services(query, self._policy)
        targets: dict[str, str] = {}
        for clause in services(query):
            if clause.iri is None:
                raise Forbidden(
                    "this SERVICE, whose IRI is not in the text, is not allowed here",
                    position=Position.at(query.text, clause.start),
                    hint="write the IRI in full, and no escapes",
                )
            targets[clause.iri] = (
                self._prefix + base64.urlsafe_b64encode(clause.iri.encode()).decode()
            )
        return redirect_services(query, targets) if targets else text

    def _named(self, text: str) -> str:
        """Replaces URLs of the proxy by the original IRIs."""
        return re.sub(
            re.escape(self._prefix) + r"([A-Za-z0-9_=-]+)", lambda url: _decoded(url[1]), text
        )

    @contextmanager
    def _restoring(self) -> Iterator[None]:
        """Shows the IRIs of the query in errors, not the URLs of the proxy."""
        try:
            yield
        except ConstructMessagesError as error:
            error.message = self._named(error.message)
            raise

    async def _body(self, answer: Answer) -> AsyncGenerator[bytes]:
        async with aclosing(answer.body) as chunks:
            yield b""
            with self._restoring():
                async for chunk in chunks:
                    yield chunk

    # --- requests of the engine ---

    async def _relay(self, request: web.Request) -> web.StreamResponse:
        try:
            iri = self._target(request.match_info["target"])
            # the other endpoint evaluates a nested SERVICE, so it gets the original IRI
            text = self._named((await request.read()).decode())
            upstream = Upstream(iri, contact=self._contact)
            try:
                accept = {"Accept": request.headers.get("Accept", "*/*")}
                answer = await upstream.answer(
                    Operation(text, headers=accept, timeout=self._seconds)
                )
                async with aclosing(answer.body):
                    if answer.status not in OK:
                        raise SourceError(
                            f"SERVICE <{iri}> answered with HTTP status {answer.status}"
                        )
                    content = {
                        name: value
                        for name, value in answer.headers
                        if name.lower() == "content-type"
                    }
                    bounded = self._bounded(iri, answer.body)
                    return await send(request, bounded, content, idle_seconds=_IDLE_SECONDS)
            finally:
                await upstream.aclose()
        except ConstructMessagesError as error:
            return web.Response(status=error.status, text=error.message)
        except Aborted:
            return (
                web.Response()
            )  # never sent: the connection has been reset, and the engine reports it

    def _target(self, name: str) -> str:
        iri = _decoded(name)
        if not isinstance(self._policy, str):
            if iri not in self._policy:
                raise Forbidden(f"SERVICE <{iri}> is not allowed here")
        elif not _may_be_public(iri):
            raise Forbidden(f"SERVICE <{iri}> is not at a public address")
        return iri

    async def _bounded(self, iri: str, body: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        count = 0
        async for chunk in body:
            count += len(chunk)
            if count > self._response_bytes:
                raise LimitExceeded(
                    f"SERVICE <{iri}> answered with more than {self._response_bytes} bytes"
                )
            yield chunk


def _decoded(name: str) -> str:
    try:
        return base64.urlsafe_b64decode(name).decode()
    except ValueError as error:
        raise Forbidden("no SERVICE has this path") from error


def _may_be_public(iri: str) -> bool:
    """Returns whether `Upstream` will check the resolved address of a host name, or the literal address is public."""
    host = (urlsplit(iri).hostname or "").lower()
    try:
        return is_public(ipaddress.ip_address(host))
    except ValueError:  # a host name
        return host != "localhost"


# --- backend --------------------------------------------------------------------------------------


def open_backend(
    settings: EndpointSettings, executor: Executor, directory: Path | None = None
) -> Backend:
    """Opens the backend of an endpoint.

    `directory` is the store with the content of the source's files; None: the source is a URL or a directory.
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

"""A proxy for the SERVICE clauses of the embedded engine, with the same checks as for other endpoints.

The engine's own HTTP client follows any redirect and connects to any address. The IRIs of SERVICE clauses are therefore
replaced by URLs of a listener on loopback, with an unpredictable path. The listener relays the sub-query through
`Upstream` (SPARQL 1.1 Federated Query), which checks addresses, rejects redirects to other origins, and limits time and
size. `query/service.py` finds the clauses. No evaluation here.
"""

from __future__ import annotations

import base64
import ipaddress
import math
import re
import secrets
from collections.abc import AsyncGenerator, Collection, Generator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from aiohttp import web

from construct_messages.query.select import Select
from construct_messages.query.service import check_services, redirect_services, services
from construct_messages.query.tokens import QueryText
from construct_messages.rdf.errors import (
    ConstructMessagesError,
    Forbidden,
    LimitExceeded,
    Position,
    SourceError,
)
from construct_messages.rdf.solutions import Solutions
from construct_messages.server.http.sending import Aborted, send
from construct_messages.sparql.client.addresses import is_public
from construct_messages.sparql.client.responses import OK
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.http.upstream import Upstream
from construct_messages.sparql.sources.operations import Answer, Backend, Operation

Policy: TypeAlias = Literal["allow"] | Collection[str]
"""The endpoints that SERVICE may reach: all public ones, or these IRIs."""

_REQUEST_BYTES: Final = 16 << 20
_IDLE_SECONDS: Final = math.inf  # the engine reads while it joins; its own time limit applies


class ServiceProxy:
    """A backend whose engine can only reach SERVICE endpoints through this proxy.

    Args:
        backend: the backend that evaluates, in this process's network.
        policy: the endpoints that SERVICE may reach. IRIs of the operator may have private addresses. With `"allow"`,
            clients choose the IRIs, and private addresses are rejected.
        response_bytes: the maximal size of a SERVICE's answer.
        seconds: the maximal time of a SERVICE request.
        contact: see `Upstream`.
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
        """See `Source.predefined`."""
        return self._backend.predefined

    @property
    def stable_blank_nodes(self) -> bool:
        """See `Source.stable_blank_nodes`."""
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
        """Yields the solutions; see `Source.asolutions`.

        Raises:
            Forbidden: SERVICE may not reach an endpoint of the query.
        """
        # the engine requires the complete text
        text, written = self._redirected(str(request.select)), request.select.written
        select = Select("", "", request.select.variables, "", text, written=written)
        async with aclosing(self._backend.asolutions(request.replace(select=select))) as batches:
            with self._restoring():
                async for batch in batches:
                    yield batch

    def solutions(self, request: Request) -> Generator[Solutions]:
        """Yields the solutions of the backend, without the proxy, which needs asyncio."""
        return self._backend.solutions(request)

    async def answer(self, operation: Operation) -> Answer:
        """Answers a query; see `Backend.answer`.

        Raises:
            Forbidden: SERVICE may not reach an endpoint of the query.
        """
        if operation.text is not None:
            operation = replace(operation, text=self._redirected(operation.text))
        with self._restoring():
            answer = await self._backend.answer(operation)
        body = self._body(answer)
        await anext(body)  # started, so that closing it also closes its source
        return replace(answer, body=body)

    async def check(self) -> None:
        """Checks the backend; see `Backend.check`."""
        await self._backend.check()

    def close(self) -> None:
        """Closes the backend; see `Source.close`."""
        self._backend.close()

    async def aclose(self) -> None:
        """Closes the proxy and the backend; see `Backend.aclose`."""
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

"""SPARQL endpoints as sources (SPARQL 1.1 Protocol, section 2.1).

Makes the HTTP requests for both clients; `paging.py` decides which to send, `response.py` reads their responses.
"""

from __future__ import annotations

import os
import urllib.request
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, aclosing, closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit

from construct_messages._version import __version__
from construct_messages.errors import UsageError
from construct_messages.query.select import Select
from construct_messages.rdf.formats.media_types import FORM, SPARQL_QUERY
from construct_messages.rdf.formats.results import READ
from construct_messages.rdf.options import RETRIES, UNION
from construct_messages.rdf.solutions import Solutions
from construct_messages.sparql.client.responses import (
    Credentials,
    Digest,
    authorization,
    check_header,
)
from construct_messages.sparql.client.retries import CONNECT_SECONDS, Attempts, Timeouts
from construct_messages.sparql.client.urllib_client import Connections, receive, send
from construct_messages.sparql.client.urls import check_url, without_query
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.http.paging import ResultPage, pages
from construct_messages.sparql.sources.http.profiles import Profile
from construct_messages.sparql.sources.http.response import ASKED_CODINGS

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import aiohttp
    from SPARQLWrapper import SPARQLWrapper

    from construct_messages.sparql.sources.http.resuming import Responses


# --- protocol -------------------------------------------------------------------------------------
# Requests of the SPARQL Protocol: an endpoint, and the HTTP request for each query or update to it.
#
# SPARQL 1.1 Protocol, sections 2.1 and 2.2. Sends nothing; imports no HTTP client, and no SPARQLWrapper.

_AGENT: Final = f"construct-messages/{__version__} (one RDF Message per CONSTRUCT solution)"
_METHODS: Final = ("get", "post")
FORMAT_PARAMETERS: Final = ("format", "output", "results", "callback", "messages")
"""Parameters by which engines choose the format of the answer, instead of the Accept header."""

_DEFAULTS: Final = {"Accept": "*/*"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint, with the headers and parameters of each request to it."""

    url: str  # an http or https URL, which may hold parameters
    # `"post"` (a form), `"get"`, or `"direct"` (a POST whose body is the query, section 2.1.3)
    method: str
    headers: Mapping[str, str]  # of each request; names as in `Accept`
    parameters: tuple[tuple[str, str], ...] = ()  # of each request, in order
    # credentials that change; None: the headers have them, or there are none
    credentials: Credentials | None = None
    read_seconds: float | None = None  # the maximal time between two bytes; None: any

    @classmethod
    def at(
        cls,
        url: str,
        *,
        method: str = "post",
        headers: Mapping[str, str] | None = None,
        contact: str | None = None,
        tokens: Credentials | None = None,
    ) -> Endpoint:
        """The endpoint at a URL, which may hold parameters; raises `UsageError`.

        `contact` is for the User-Agent: an address by which the endpoint's operator can reach you.

        >>> Endpoint.at("https://example.org/sparql", contact="me@example.org").headers["User-Agent"].partition("; ")[2]
        'me@example.org)'
        >>> Endpoint.at("https://example.org/sparql", method="put")
        Traceback (most recent call last):
        construct_messages.errors.UsageError: unknown method 'put' for a query
          hint: choose get or post
        """
        check_url(url)
        if method not in _METHODS:
            raise UsageError(
                f"unknown method {method!r} for a query", hint=f"choose {' or '.join(_METHODS)}"
            )
        if method == "get" and "query" in dict(
            parse_qsl(urlsplit(url).query, keep_blank_values=True)
        ):
            raise UsageError("the endpoint URL holds the parameter 'query'", hint="leave it out")
        agent = _AGENT if contact is None else f"{_AGENT.removesuffix(')')}; {contact})"
        given = _DEFAULTS | {"User-Agent": agent} | _titled(headers or {})
        for name, value in given.items():
            check_header(name, value)
        return cls(url, method, given, credentials=tokens)

    @classmethod
    def of_wrapper(cls, wrapper: SPARQLWrapper) -> Endpoint:
        """The endpoint of a `SPARQLWrapper`, with its method, credentials, headers, parameters and timeout.

        The wrapper is read once, so later changes to it have no effect. Its query and return format are ignored.

        >>> from SPARQLWrapper import SPARQLWrapper
        >>> wrapper = SPARQLWrapper("https://example.org/sparql", defaultGraph="urn:g")
        >>> Endpoint.of_wrapper(wrapper).parameters
        (('default-graph-uri', 'urn:g'),)
        """
        check_url(wrapper.endpoint)
        method = wrapper.method.lower()
        if method == "post" and wrapper.requestMethod == "postdirectly":
            method = "direct"
        user = (wrapper.user, wrapper.passwd) if wrapper.user and wrapper.passwd else None
        by_digest = wrapper.http_auth == "DIGEST"
        basic = {} if user is None or by_digest else authorization(*user, None)
        return cls(
            wrapper.endpoint,
            method,
            _DEFAULTS | {"User-Agent": wrapper.agent} | basic | _titled(wrapper.customHttpHeaders),
            tuple(
                (name, value)
                for name, values in wrapper.parameters.items()
                for value in values
                if name not in FORMAT_PARAMETERS
            ),
            Digest(*user) if user is not None and by_digest else None,
            read_seconds=wrapper.timeout,
        )

    @property
    def name(self) -> str:
        """The URL without its query component, for errors."""
        return without_query(self.url)

    def request(
        self,
        text: str | None,
        parameters: Iterable[tuple[str, str]],
        headers: Mapping[str, str],
        *,
        update: bool = False,
    ) -> urllib.request.Request:
        """The request for a query or update, which is always sent as a form; None asks for the service description.

        Parameters follow those of the endpoint, headers override them; names as in `Accept`. By default, nothing is
        to be compressed.

        >>> Endpoint.at("https://example.org/sparql", method="get").request("ASK {}", (), {}).full_url
        'https://example.org/sparql?query=ASK+%7B%7D'
        """
        given = {"Accept-Encoding": "identity", **self.headers, **headers}
        pairs = [*self.parameters, *parameters]
        if update or (self.method == "post" and text is not None):
            form = urlencode([("update" if update else "query", text or ""), *pairs])
            return urllib.request.Request(
                self.url, form.encode(), given | {"Content-Type": FORM}, method="POST"
            )
        if self.method == "direct" and text is not None:
            given["Content-Type"] = SPARQL_QUERY
            return urllib.request.Request(self._url(pairs), text.encode(), given, method="POST")
        return urllib.request.Request(
            self._url(pairs if text is None else [("query", text), *pairs]), headers=given
        )

    def _url(self, parameters: list[tuple[str, str]]) -> str:
        mark = "" if not parameters else "&" if "?" in self.url else "?"
        return f"{self.url}{mark}{urlencode(parameters)}"


def _titled(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.title(): value for name, value in headers.items()}


# --- reading --------------------------------------------------------------------------------------
# Sends the request for a page and feeds the page's reader with the response; blocking, and for asyncio.
#
# `sparql/client/` has both HTTP clients. `response.py` reads the bytes, and `paging.py` decides which requests to
# send.

_AT_ONCE: Final = 1 << 14
"""The number of bytes that are decoded between two turns of the event loop; see `ResponseReader.pieces`."""
# bytes of a solution; if all of them must be percent-encoded, this takes some 20 ms
_LONG: Final = 1 << 14


_Keep: TypeAlias = Callable[[bytes], object]
_Keeping: TypeAlias = Callable[[int, Iterable[tuple[str, str]]], AbstractContextManager[_Keep]]
"""From the status and headers of a response to a block that keeps its bytes; see `resuming.Responses.keeping`."""


def _not_kept(*_: object) -> AbstractContextManager[_Keep]:
    return nullcontext(lambda _: None)


def read(
    request: urllib.request.Request,
    page: ResultPage,
    timeouts: Timeouts,
    credentials: Credentials | None,
    connections: Connections | None = None,
    keeping: _Keeping = _not_kept,
) -> Generator[Solutions]:
    """Sends a request, and reads the answer; closing the generator closes the connection, unless all was read."""
    with closing(send(request, page.url, timeouts, credentials, connections)) as response:
        reader = page.open(response.status, response.headers.get)
        with keeping(response.status, response.headers.items()) as keep:
            while chunk := receive(response, timeouts, reader.cut):
                keep(chunk)
                for piece in reader.pieces(chunk):
                    yield from reader.feed(piece)
            yield from reader.rest()
            reader.close()


async def aread(
    session: aiohttp.ClientSession,
    request: urllib.request.Request,
    page: ResultPage,
    timeouts: Timeouts,
    credentials: Credentials | None,
    executor: Executor | None = None,
    keeping: _Keeping = _not_kept,
) -> AsyncGenerator[Solutions]:
    """The same as `read`, for asyncio; long solutions are decoded in the threads of `executor`."""
    import asyncio

    from construct_messages.sparql.client.aiohttp_client import areceive, asend, has_trailing_data

    loop = asyncio.get_running_loop()
    response = await asend(session, request, page.url, timeouts, credentials, is_safe=True)
    try:
        reader = page.open(response.status, response.headers.get)
        with keeping(response.status, response.headers.items()) as keep:
            while chunk := await areceive(response, timeouts, reader.cut):
                keep(chunk)
                for piece in reader.pieces(chunk, _AT_ONCE):
                    batches = reader.feed(piece)
                    if reader.held > _LONG:  # a long solution is decoded at its end
                        batches = iter(await loop.run_in_executor(executor, list, batches))
                    for batch in batches:
                        yield batch
                    await asyncio.sleep(0)
            if await has_trailing_data(response):
                raise reader.exceeded()
            for batch in (
                reader.rest()
                if reader.held <= _LONG
                else await loop.run_in_executor(executor, reader.rest)
            ):
                yield batch
            reader.close()
    finally:
        response.close()  # its connection is back in the pool, if the body has ended


# --- endpoint -------------------------------------------------------------------------------------

# headers for content negotiation; a range or a condition would change the answer
_NOT_OF_THE_SELECT: Final = ("Accept", "Accept-Encoding", "Range", "Content-Type", "Content-Length")


class EndpointSource:
    """An endpoint as a source. The `Accept` header of an `Endpoint` is ignored.

    `results`: `json`, `xml` or `tsv` to request only this format, or `auto` for those of the profile. `read_seconds`:
    between two bytes; None: that of the endpoint. `resume`: a file with the responses so far, for results in pages (see
    `resuming.Responses`). Raises `UsageError`.

    >>> EndpointSource("https://example.org/sparql", profile="virtuoso").predefined["dbo"]
    'http://dbpedia.org/ontology/'
    """

    def __init__(
        self,
        endpoint: str | Endpoint,
        *,
        results: str = "auto",
        profile: str = "generic",
        retries: int = RETRIES,
        connect_seconds: float = CONNECT_SECONDS,
        read_seconds: float | None = None,
        resume: str | os.PathLike[str] | None = None,
    ) -> None:
        self._resume, self._profile_name = resume, profile
        self._endpoint = Endpoint.at(endpoint) if isinstance(endpoint, str) else endpoint
        if retries < 0:
            raise UsageError(f"retries={retries} is negative", hint="pass 0 to try once")
        self._profile = Profile.named(profile)
        if results != "auto" and results not in READ:
            raise UsageError(
                f"unknown results format {results!r}", hint=f"choose auto, {', '.join(READ)}"
            )
        if results == "tsv" and not self._profile.tsv_is_exact:
            raise UsageError(
                f"the TSV of {profile} does not tell all texts and numbers apart",
                hint='ask for JSON results: results="json"',
            )
        self._asked = self._profile.results if results == "auto" else (results,)
        self._retries, self._connect_seconds = retries, connect_seconds
        self._read_seconds = self._endpoint.read_seconds if read_seconds is None else read_seconds
        self._connections = Connections()

    @property
    def predefined(self) -> Mapping[str, str]:
        return self._profile.prefixes

    @property
    def stable_blank_nodes(self) -> bool:
        return self._profile.stable_blank_nodes

    def solutions(self, request: Request) -> Generator[Solutions]:
        timeouts = self._timeouts(request)
        with self._responses(request) as kept:
            for page in self._pages(request):
                with page:
                    for attempt in Attempts(self._retries, timeouts, page.may_retry):
                        with attempt:
                            yield from self._read(request, page, timeouts, kept)

    def _read(
        self, request: Request, page: ResultPage, timeouts: Timeouts, kept: Responses | None
    ) -> Generator[Solutions]:
        """The solutions of a page, from the responses that were kept and then from the endpoint."""
        if kept is not None:
            yield from kept.replay(page)
        if page.took is None and (select := page.select):
            yield from read(
                self._http_request(request, select),
                page,
                timeouts,
                self._endpoint.credentials,
                self._connections,
                _keeping(kept, select, page),
            )

    async def asolutions(self, request: Request) -> AsyncGenerator[Solutions]:
        # it takes longer to import than the other client takes for a short answer
        from construct_messages.sparql.client.aiohttp_client import new_session

        async with (
            new_session(connect_seconds=self._connect_seconds) as session,
            aclosing(self.asolutions_over(session, request)) as batches,
        ):
            async for batch in batches:
                yield batch

    async def asolutions_over(
        self, session: aiohttp.ClientSession, request: Request, executor: Executor | None = None
    ) -> AsyncGenerator[Solutions]:
        """`asolutions` with a session of the caller, which stays open, and threads for decoding long solutions."""
        timeouts = self._timeouts(request)
        with self._responses(request) as kept:
            for page in self._pages(request):
                with page:
                    async for attempt in Attempts(self._retries, timeouts, page.may_retry):
                        with attempt:
                            async with aclosing(
                                self._aread(session, request, page, timeouts, executor, kept)
                            ) as batches:
                                async for batch in batches:
                                    yield batch

    async def _aread(
        self,
        session: aiohttp.ClientSession,
        request: Request,
        page: ResultPage,
        timeouts: Timeouts,
        executor: Executor | None,
        kept: Responses | None,
    ) -> AsyncGenerator[Solutions]:
        """See `_read`."""
        if kept is not None:
            import asyncio

            for batch in kept.replay(page):
                yield batch
                await asyncio.sleep(0)
        if page.took is None and (select := page.select):
            batches = aread(
                session,
                self._http_request(request, select),
                page,
                timeouts,
                self._endpoint.credentials,
                executor,
                _keeping(kept, select, page),
            )
            async with aclosing(batches):
                async for batch in batches:
                    yield batch

    def close(self) -> None:
        """Closes the connections that were kept; those in use end with their generators."""
        self._connections.close()

    def _pages(self, request: Request) -> Iterator[ResultPage]:
        if request.lenience is not None and request.lenience.base is None:
            request.lenience.base = self._endpoint.url
        return pages(request, self._profile, asked=self._asked, url=self._endpoint.name)

    @contextmanager
    def _responses(self, request: Request) -> Iterator[Responses | None]:
        """The responses to a request that are kept, to be resumed; None: none are."""
        if self._resume is None:
            yield None
            return
        # most results do without its database
        from construct_messages.sparql.sources.http.resuming import Responses

        described = {
            "url": self._endpoint.name,
            "profile": self._profile_name,
            "results": self._asked,
        }
        with closing(Responses(self._resume, request, **described)) as responses:
            yield responses

    def _timeouts(self, request: Request) -> Timeouts:
        return Timeouts(request.timeout, self._read_seconds, self._connect_seconds)

    def _http_request(self, request: Request, select: Select) -> urllib.request.Request:
        if UNION in request.default_graphs:
            raise UsageError(
                "the SPARQL Protocol cannot ask for the union of all graphs as the default graph",
                hint="name the graphs, or write GRAPH ?g { … } in the query",
            )
        parameters = [("default-graph-uri", graph) for graph in request.default_graphs]
        parameters += [("named-graph-uri", graph) for graph in request.named_graphs]
        parameters += [pair for pair in request.parameters if pair[0] not in FORMAT_PARAMETERS]
        headers = {"Accept": _accept(self._asked)}
        if "Accept-Encoding" not in self._endpoint.headers:
            headers["Accept-Encoding"] = ", ".join(ASKED_CODINGS)
        for name, value in request.headers:
            if (title := name.title()) not in _NOT_OF_THE_SELECT and not title.startswith("If-"):
                check_header(name, value)
                headers[title] = value
        # a condition is for GET (RFC 9110, section 13.1.2) and for the whole result, not for a page or probe
        condition = request.condition
        if condition and select is request.select and self._endpoint.method == "get":
            headers |= condition.headers
        return self._endpoint.request(str(select), parameters, headers)


def _keeping(kept: Responses | None, select: Select, page: ResultPage) -> _Keeping:
    return _not_kept if kept is None else partial(kept.keeping, select, page)


def _accept(asked: tuple[str, ...]) -> str:
    """
    >>> _accept(("json", "xml"))  # doctest: +NORMALIZE_WHITESPACE
    'application/sparql-results+json, application/x-sparqlstar-results+json,
    application/sparql-results+xml;q=0.5'
    """
    return ", ".join(
        media_type + (";q=0.5" if place else "")
        for place, name in enumerate(asked)
        for media_type in (READ[name].media_type, *READ[name].variants)
    )

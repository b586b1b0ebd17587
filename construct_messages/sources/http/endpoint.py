"""SPARQL endpoints as sources (SPARQL 1.1 Protocol, section 2.1): by URL, or by a caller's `SPARQLWrapper`.

`SPARQLWrapper` makes the HTTP request for both clients, so that its options mean the same in each. `reading.py` sends
it.
"""

from __future__ import annotations

import copy
import os
import urllib.request
from collections.abc import AsyncGenerator, Generator, Mapping
from concurrent.futures import Executor
from contextlib import aclosing
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

from SPARQLWrapper import DIGEST, GET, JSON, POST, SELECT, SPARQLWrapper

from construct_messages import __version__
from construct_messages.errors import UsageError
from construct_messages.formats.results import READ
from construct_messages.net.headers import authorization, check_header
from construct_messages.net.retries import attempts
from construct_messages.net.timeouts import CONNECT_SECONDS, RETRIES, Timeouts
from construct_messages.net.urllib_client import Digest
from construct_messages.net.urls import check_url, without_query
from construct_messages.query.select import Select
from construct_messages.solutions import Solutions
from construct_messages.sources import UNION, Request
from construct_messages.sources.http.paging import pages
from construct_messages.sources.http.profiles import Profile
from construct_messages.sources.http.reading import aread, read

if TYPE_CHECKING:
    import aiohttp

_AGENT: Final = f"construct-messages/{__version__} (one RDF Message per CONSTRUCT solution)"
_METHODS: Final = {"get": GET, "post": POST}
# which a wrapper may carry for the CONSTRUCT it was made for; they would overrule the Accept header
_FORMAT_PARAMETERS: Final = ("format", "output", "results", "callback", "messages")
# which a request may carry for the answer it wanted; a range or a condition would make another answer of the result
_NOT_OF_THE_SELECT: Final = ("Accept", "Accept-Encoding", "Range", "Content-Type", "Content-Length")


class WrapperSource:
    """A caller's `SPARQLWrapper` as a source: its endpoint, method, credentials, headers, parameters and timeout.

    The wrapper is copied, so later changes to it have no effect. Its query, return format and `Accept` header are
    ignored.

    Args:
        wrapper: the wrapper.
        results: `json`, `xml` or `tsv` to request only this format; `auto`: that of the profile.
        profile: the kind of engine; see `profiles.PROFILES`.
        retries: how often a request is repeated after a temporary failure; see `net/retries.py`.
        connect_seconds: the maximal time to connect.
        read_seconds: the maximal time between two bytes; None: the wrapper's `timeout`, if it has one.

    Raises:
        UsageError: unknown results or profile, or a negative number.

    >>> source = WrapperSource(SPARQLWrapper("https://example.org/sparql"), profile="virtuoso")
    >>> source.predefined["dbo"]
    'http://dbpedia.org/ontology/'
    """

    def __init__(
        self,
        wrapper: SPARQLWrapper,
        *,
        results: str = "auto",
        profile: str = "generic",
        retries: int = RETRIES,
        connect_seconds: float = CONNECT_SECONDS,
        read_seconds: float | None = None,
    ) -> None:
        check_url(wrapper.endpoint)
        if retries < 0:
            raise UsageError(f"retries={retries} is negative", hint="give 0 to try once")
        self._profile = Profile.named(profile)
        if results != "auto" and results not in READ:
            raise UsageError(
                f"there are no results in {results!r}", hint=f"choose auto, {', '.join(READ)}"
            )
        self._asked = self._profile.results if results == "auto" else (results,)
        self._wrapper = _clone(wrapper)
        self._wrapper.customHttpHeaders["Accept"] = _accept(self._asked)
        self._digest: tuple[str, str] | None = None
        if wrapper.http_auth == DIGEST and wrapper.user and wrapper.passwd:
            # SPARQLWrapper would change urllib's opener for the whole process
            self._digest = wrapper.user, wrapper.passwd
            self._wrapper.user = self._wrapper.passwd = None
        self._url = without_query(wrapper.endpoint)
        self._retries, self._connect_seconds = retries, connect_seconds
        self._read_seconds: float | None = wrapper.timeout if read_seconds is None else read_seconds

    @property
    def predefined(self) -> Mapping[str, str]:
        """See `Source.predefined`."""
        return self._profile.prefixes

    @property
    def stable_blank_nodes(self) -> bool:
        """See `Source.stable_blank_nodes`."""
        return self._profile.stable_blank_nodes

    def solutions(self, request: Request) -> Generator[Solutions]:
        """See `Source.solutions`."""
        timeouts = self._timeouts(request)
        handlers = [] if self._digest is None else [Digest(self._wrapper.endpoint, *self._digest)]
        for page in pages(request, self._profile, asked=self._asked, url=self._url):
            with page:
                for attempt in attempts(self._retries, timeouts, page.may_retry):
                    with attempt:
                        if select := page.select:
                            yield from read(
                                self._http_request(request, select), page, timeouts, *handlers
                            )

    async def asolutions(self, request: Request) -> AsyncGenerator[Solutions]:
        """See `Source.asolutions`."""
        import aiohttp  # takes longer than a short answer to the other client

        from construct_messages.net.aiohttp_client import new_session

        middlewares = [] if self._digest is None else [aiohttp.DigestAuthMiddleware(*self._digest)]
        async with (
            new_session(*middlewares, connect_seconds=self._connect_seconds) as session,
            aclosing(self.asolutions_over(session, request)) as batches,
        ):
            async for batch in batches:
                yield batch

    async def asolutions_over(
        self, session: aiohttp.ClientSession, request: Request, executor: Executor | None = None
    ) -> AsyncGenerator[Solutions]:
        """`asolutions` over a session of the caller's, which stays open.

        Args:
            session: what sends the requests.
            request: the SELECT to answer.
            executor: threads for decoding long solutions; None: those of the event loop.
        """
        timeouts = self._timeouts(request)
        for page in pages(request, self._profile, asked=self._asked, url=self._url):
            with page:
                async for attempt in attempts(self._retries, timeouts, page.may_retry):
                    with attempt:
                        if select := page.select:
                            sent = self._http_request(request, select)
                            async with aclosing(
                                aread(session, sent, page, timeouts, executor)
                            ) as batches:
                                async for batch in batches:
                                    yield batch

    def close(self) -> None:
        """Does nothing: connections end with the generators that use them."""

    def _timeouts(self, request: Request) -> Timeouts:
        return Timeouts(request.timeout, self._read_seconds, self._connect_seconds)

    def _http_request(self, request: Request, select: Select) -> urllib.request.Request:
        if UNION in request.default_graphs:
            raise UsageError(
                "the SPARQL Protocol cannot ask for the union of all graphs as the default graph",
                hint="name the graphs, or write GRAPH ?g { … } in the query",
            )
        wrapper = _clone(self._wrapper)
        # not setQuery(), which guesses the form of the query from its text
        wrapper.queryString, wrapper.queryType = str(select), SELECT
        for graph in request.default_graphs:
            wrapper.addParameter("default-graph-uri", graph)
        for graph in request.named_graphs:
            wrapper.addParameter("named-graph-uri", graph)
        for name, value in request.parameters:
            if name not in _FORMAT_PARAMETERS:
                wrapper.addParameter(name, value)
        for name, value in request.headers:
            if name.title() not in _NOT_OF_THE_SELECT and not name.title().startswith("If-"):
                check_header(name, value)
                wrapper.addCustomHttpHeader(name, value)
        # a condition is for GET (RFC 9110, section 13.1.2), and for the whole result, which no page or probe is
        if request.condition is not None and select is request.select and wrapper.method == GET:
            for name, value in request.condition.headers.items():
                wrapper.addCustomHttpHeader(name, value)
        return wrapper._createRequest()


class EndpointSource(WrapperSource):
    """An endpoint as a source.

    Credentials come from the environment: `CONSTRUCT_MESSAGES_USER` and `CONSTRUCT_MESSAGES_PASSWORD` (Basic), or
    `CONSTRUCT_MESSAGES_TOKEN` (Bearer). An `Authorization` header in `headers` overrides them.

    Args:
        url: an http or https URL.
        method: `post` (a form with its length, which every engine accepts) or `get`.
        headers: additional request headers, such as a `User-Agent` with your contact.
        results, profile, retries: see `WrapperSource`.

    Raises:
        UsageError: an invalid URL, method, header, results or profile, or incomplete credentials.

    >>> EndpointSource("https://example.org/sparql", method="put")
    Traceback (most recent call last):
    construct_messages.errors.UsageError: there is no method 'put' for a query
      hint: choose get or post
    """

    def __init__(
        self,
        url: str,
        *,
        method: str = "post",
        headers: Mapping[str, str] | None = None,
        results: str = "auto",
        profile: str = "generic",
        retries: int = RETRIES,
    ) -> None:
        user, password, token = (
            os.environ.get(f"CONSTRUCT_MESSAGES_{name}") for name in ("USER", "PASSWORD", "TOKEN")
        )
        if (user is None) != (password is None) or (user is not None and token is not None):
            raise UsageError(
                "the environment holds half of the credentials, or two of them",
                hint="set both CONSTRUCT_MESSAGES_USER and CONSTRUCT_MESSAGES_PASSWORD, or only "
                "CONSTRUCT_MESSAGES_TOKEN",
            )
        given = authorization(user, password, token) | dict(headers or {})
        super().__init__(
            new_wrapper(url, method=method, headers=given),
            results=results,
            profile=profile,
            retries=retries,
        )


def new_wrapper(
    url: str,
    *,
    method: str = "post",
    headers: Mapping[str, str] | None = None,
    contact: str | None = None,
) -> SPARQLWrapper:
    """The wrapper for an endpoint.

    Args:
        url: an http or https URL, which may hold parameters.
        method: `post` (a form) or `get`.
        headers: further request headers.
        contact: for the User-Agent: how the endpoint's operator can reach whoever runs this.

    Raises:
        UsageError: no such URL, method or header.

    >>> new_wrapper("https://example.org/sparql", contact="me@example.org").agent.partition("; ")[2]
    'me@example.org)'
    """
    if method not in _METHODS:
        raise UsageError(
            f"there is no method {method!r} for a query", hint=f"choose {' or '.join(_METHODS)}"
        )
    base, mark, parameters = url.partition("?")
    agent = _AGENT if contact is None else f"{_AGENT.removesuffix(')')}; {contact})"
    check_header("User-Agent", agent)
    wrapper = SPARQLWrapper(url if method == "post" else base, agent=agent)
    wrapper.setMethod(_METHODS[method])
    if mark and method == "get":  # SPARQLWrapper would put a second question mark
        for name, value in parse_qsl(parameters, keep_blank_values=True):
            if not wrapper.addParameter(name, value):
                raise UsageError(
                    f"the endpoint URL holds the parameter {name!r}", hint="leave it out"
                )
    for name, value in (headers or {}).items():
        check_header(name, value)
        wrapper.addCustomHttpHeader(name.title(), value)
    return wrapper


def _clone(wrapper: SPARQLWrapper) -> SPARQLWrapper:
    clone = copy.copy(wrapper)
    clone.parameters = {
        name: list(values)
        for name, values in wrapper.parameters.items()
        if name not in _FORMAT_PARAMETERS
    }
    clone.customHttpHeaders = {"Accept-Encoding": "identity"} | {
        name.title(): value for name, value in wrapper.customHttpHeaders.items()
    }
    clone.setOnlyConneg(True)
    clone.setReturnFormat(JSON)  # any that SELECT has: only the Accept header of the request counts
    return clone


def _accept(asked: tuple[str, ...]) -> str:
    """
    >>> _accept(("json", "xml"))
    'application/sparql-results+json, application/sparql-results+xml;q=0.5'
    """
    return ", ".join(
        READ[name].media_type + (";q=0.5" if place else "") for place, name in enumerate(asked)
    )

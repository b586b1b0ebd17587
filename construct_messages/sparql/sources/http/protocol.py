"""Requests of the SPARQL Protocol: an endpoint, and the HTTP request for each query or update to it.

SPARQL 1.1 Protocol, sections 2.1 and 2.2. Sends nothing; imports no HTTP client, and no SPARQLWrapper.
"""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from construct_messages._version import __version__
from construct_messages.rdf.errors import UsageError
from construct_messages.rdf.formats.media_types import FORM, SPARQL_QUERY
from construct_messages.sparql.client.responses import (
    OK,
    Credentials,
    Digest,
    authorization,
    check_header,
)
from construct_messages.sparql.client.urls import check_url, without_query
from construct_messages.sparql.results.completeness import tells_of_a_part

if TYPE_CHECKING:
    from SPARQLWrapper import SPARQLWrapper


# --- partial --------------------------------------------------------------------------------------
# Detects partial responses by their status and headers (RFC 9110; Virtuoso's own headers), and reads engines' errors.
#
# `sparql/results/completeness.py` checks the result itself.

_RANGE: Final = re.compile(r"[!-~]+ ([0-9]{1,20})-([0-9]{1,20})/([0-9]{1,20})")


def partial_reason(status: int, header: Callable[[str], str | None]) -> str | None:
    """Returns the header that marks a response as partial; the empty string for the status alone; else None.

    Partial responses have status 206, a `Content-Range` of less than the whole (RFC 9110, section 14.4), or Virtuoso's
    header for a result that ran out of time.

    >>> partial_reason(200, {"X-SQL-Message": "Returning incomplete results"}.get)
    'Returning incomplete results'
    >>> partial_reason(200, {"Content-Range": "bytes 0-99/100"}.get)
    """
    state, message, range = (
        header("X-SQL-State"),
        header("X-SQL-Message") or "",
        header("Content-Range"),
    )
    if status == 206 or (status in OK and (state or (message and tells_of_a_part(message)))):
        return message or state or ""
    if status in OK and range is not None and not _is_whole(range):
        return f"Content-Range: {range}"
    return None


def _is_whole(content_range: str) -> bool:
    match = _RANGE.fullmatch(content_range.strip())
    return match is not None and int(match[1]) == 0 and int(match[2]) + 1 == int(match[3])


# what engines append to a result that they cannot finish: QLever; Blazegraph, with the query
_TAILS: Final = re.compile(r"!!!!>># An error has occurred|SPARQL-QUERY: queryStr=")
_QLEVER: Final = "The error message was:"
# of Java's exceptions, each within the one before: the last one says the reason
_WRAPPERS: Final = re.compile(
    r"(?:SPARQL-QUERY: queryStr=)?\s*(?:[\w.$]+(?:Exception|Error): (?=[\w.$]+(?:Exception|Error)\b))*"
)


def explained_at(body: str) -> int | None:
    """Returns the place in the end of a body where an engine begins to say why the result ends there, or None.

    >>> explained_at('{"results": {"bindings": [ !!!!>># An error has occurred while exporting the query result.')
    27
    """
    found = _TAILS.search(body)
    return None if found is None else found.start()


def reason_of(error: str) -> str:
    r"""Returns what a user needs of an engine's error: no frames of a stack, and no exceptions around another one.

    >>> reason_of("java.util.ExecutionException: a.b.QueryTimeoutException: Query deadline is expired.\n\tat a.b.C")
    'a.b.QueryTimeoutException: Query deadline is expired.'
    """
    reason = error.partition(_QLEVER)[2] or error
    reason = reason.partition("\n\tat ")[0]
    match = _WRAPPERS.match(reason)
    assert match is not None  # it can be empty
    return reason[match.end() :].strip() or error


# --- protocol -------------------------------------------------------------------------------------

_AGENT: Final = f"construct-messages/{__version__} (one RDF Message per CONSTRUCT solution)"
_METHODS: Final = ("get", "post")
FORMAT_PARAMETERS: Final = ("format", "output", "results", "callback", "messages")
"""Parameters by which engines choose the format of the answer, instead of the Accept header."""

# a server that compresses delays solutions
_DEFAULTS: Final = {"Accept": "*/*", "Accept-Encoding": "identity"}


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
        construct_messages.rdf.errors.UsageError: unknown method 'put' for a query
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

        Parameters follow those of the endpoint, headers override them; names as in `Accept`.

        >>> Endpoint.at("https://example.org/sparql", method="get").request("ASK {}", (), {}).full_url
        'https://example.org/sparql?query=ASK+%7B%7D'
        """
        given = {**self.headers, **headers}
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

"""HTTP clients of several makes, each of which reads an answer to its end or says that it could not.

They check what the framing lets them check and nothing else: none knows what the answer should hold. Iterating over
urllib's lines, or `http.client`'s `read(n)`, would end cleanly on a body that was cut, so all read the whole.
"""

from __future__ import annotations

import ast
import asyncio
import gzip
import http.client
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import parse_qsl, urlsplit

import aiohttp
import yarl
from SPARQLWrapper import SPARQLWrapper
from SPARQLWrapper.SPARQLExceptions import SPARQLWrapperException

from tests.support.waiting import SECONDS

# of their own: the server in the same loop has work for those of asyncio, and a client waits for it
_THREADS: Final = ThreadPoolExecutor(32)


class Received(NamedTuple):
    """An answer that the client takes for a whole one."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes  # decoded


class Broken(Exception):
    """The client met an error where the answer should go on; `body` is what of it the client gave away before."""

    def __init__(self, cause: object, body: bytes = b"") -> None:
        super().__init__(str(cause) or type(cause).__name__)
        self.body = body


Client: TypeAlias = Callable[[str, Mapping[str, str]], Awaitable[Received]]
"""Gets a URL with some headers.

Raises:
    Broken: see there.
"""


async def by_aiohttp(url: str, headers: Mapping[str, str], *, coding: str = "identity") -> Received:
    body = bytearray()
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(
                yarl.URL(url, encoded=True), headers={"Accept-Encoding": coding, **headers}
            ) as response,
        ):
            async for data in response.content.iter_any():
                body += data
            return _received(response.status, response.headers.items(), bytes(body))
    except (aiohttp.ClientError, OSError) as error:
        raise Broken(error, bytes(body)) from error


def by_urllib(url: str, headers: Mapping[str, str]) -> Received:
    return _read(
        lambda: urllib.request.urlopen(
            urllib.request.Request(url, headers={**headers}), timeout=SECONDS
        )
    )


def by_sparqlwrapper(url: str, headers: Mapping[str, str]) -> Received:
    parameters = dict(parse_qsl(urlsplit(url).query))
    wrapper = SPARQLWrapper(url.partition("?")[0])
    wrapper.setOnlyConneg(True)
    wrapper.setTimeout(int(SECONDS))
    wrapper.setQuery(parameters.pop("query"))
    for name, value in parameters.items():
        wrapper.addParameter(name, value)
    for name, value in headers.items():
        wrapper.addCustomHttpHeader(name, value)

    def ask() -> http.client.HTTPResponse:
        response: http.client.HTTPResponse = wrapper.query().response
        return response

    try:
        return _read(ask)
    except (
        SPARQLWrapperException
    ) as error:  # of its own for some statuses, raised while it handled urllib's
        refusal = error.__context__
        assert isinstance(refusal, urllib.error.HTTPError)
        body: bytes = ast.literal_eval(str(error).partition("Response:\n")[2])
        return _received(refusal.code, refusal.headers.items(), body)


def _read(ask: Callable[[], http.client.HTTPResponse]) -> Received:
    try:
        try:
            response = ask()
        except urllib.error.HTTPError as refusal:
            with refusal:
                return _received(refusal.code, refusal.headers.items(), refusal.read())
        with response:
            body = response.read()
            if response.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            return _received(response.status, response.headers.items(), body)
    except http.client.IncompleteRead as error:
        raise Broken(error, error.partial) from error
    except (OSError, EOFError, http.client.HTTPException) as error:
        raise Broken(error) from error


def by_curl(url: str, headers: Mapping[str, str], *, options: tuple[str, ...] = ()) -> Received:
    given = [part for name, value in headers.items() for part in ("--header", f"{name}: {value}")]
    done = subprocess.run(
        [
            "curl",
            "--silent",
            "--show-error",
            "--include",
            "--max-time",
            str(SECONDS),
            *options,
            *given,
            url,
        ],
        capture_output=True,
        check=False,
    )
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    if done.returncode:
        raise Broken(done.stderr.decode(), body)
    return _parsed(head, body)


def by_http_1_0(url: str, headers: Mapping[str, str]) -> Received:
    """By a socket that is read until the other end closes it, as HTTP/1.0 has it; a length is heeded."""
    parts = urlsplit(url)
    target = f"{parts.path or '/'}?{parts.query}"
    lines = [
        f"GET {target} HTTP/1.0",
        f"Host: {parts.netloc}",
        *(f"{name}: {value}" for name, value in headers.items()),
        "",
        "",
    ]
    came = b""
    try:
        with socket.create_connection((parts.hostname, parts.port), timeout=SECONDS) as connection:
            connection.sendall("\r\n".join(lines).encode())
            while data := connection.recv(1 << 16):
                came += data
    except OSError as error:
        raise Broken(error, came.partition(b"\r\n\r\n")[2]) from error
    head, separator, body = came.partition(b"\r\n\r\n")
    if not separator:
        raise Broken("no head of a response")
    received = _parsed(head, body)
    assert "transfer-encoding" not in received.headers  # which HTTP/1.0 does not know
    if len(body) != int(received.headers.get("content-length", len(body))):
        raise Broken("another length than was promised", body)
    return received


def _parsed(head: bytes, body: bytes) -> Received:
    status, *lines = head.decode().split("\r\n")
    return _received(int(status.split()[1]), (line.split(": ", 1) for line in lines), body)


def _received(status: int, headers: Iterable[Sequence[str]], body: bytes) -> Received:
    return Received(status, {name.lower(): value for name, value in headers}, body)


def _in_a_thread(read: Callable[..., Received], **options: object) -> Client:
    async def ask(url: str, headers: Mapping[str, str]) -> Received:
        return await asyncio.get_running_loop().run_in_executor(
            _THREADS, partial(read, url, headers, **options)
        )

    return ask


CLIENTS: Final[Mapping[str, Client]] = {
    "aiohttp": by_aiohttp,
    "aiohttp, gzip": partial(by_aiohttp, coding="gzip"),
    "urllib": _in_a_thread(by_urllib),
    "HTTP/1.0": _in_a_thread(by_http_1_0),
    "curl": _in_a_thread(by_curl),
    "curl, gzip": _in_a_thread(by_curl, options=("--compressed",)),
    "curl as HTTP/1.0": _in_a_thread(by_curl, options=("--http1.0",)),
}
"""By name; those of curl need it installed."""

SPARQL_CLIENTS: Final[Mapping[str, Client]] = {
    **CLIENTS,
    "SPARQLWrapper": _in_a_thread(by_sparqlwrapper),
}
"""Those too that send a query, which the URL must hold."""


def is_installed(name: str) -> bool:
    """Whether what a client needs is on this machine."""
    return not name.startswith("curl") or shutil.which("curl") is not None

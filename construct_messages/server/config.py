"""What a server is told: its settings as data, checked when they are read.

One structure for the TOML file, the environment and the flags. Nothing here opens a source or a socket.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Bounds of one request; reaching one is an error, never a shorter log. None: no bound.

    Args:
        request_bytes: of a request body.
        query_characters: of a query's text.
        seconds: for the whole answer of the source.
        solutions: of one log.
        messages: of one log.
        message_bytes: of one message, as it is written.
        idle_seconds: how long a client may take none of the bytes that wait for it.
    """

    request_bytes: int = 1 << 20
    query_characters: int = 100_000
    seconds: float | None = 300.0
    solutions: int | None = None
    messages: int | None = None
    message_bytes: int | None = 64 << 20
    idle_seconds: float = 60.0


class Endpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One endpoint that is served.

    Args:
        source: an endpoint's URL, or RDF files, or one store directory.
        profile: what kind of endpoint the URL is; see `sources/profiles.py`.
        prefixes: IRI by prefix that templates may use without declaring them.
        results: the results format to ask a URL for.
        method: how queries are sent to a URL.
        page_size: solutions per request to a URL.
        contact: an address for the User-Agent, so that the operator of a URL can reach you.
        user_variable, password_variable, token_variable: the names of environment variables with the credentials.
        forward_headers: client headers that are sent on beside the usual ones, such as `Authorization`.
        allow_private: whether the URL's host name may lead to a private address.
        service: what SERVICE may reach: `"deny"`, `"allow"`, or a list of IRIs. None: denied for files, the
            endpoint's own business for a URL.
        update: whether updates are sent on to a URL.
        sponge: whether parameters that make a Virtuoso fetch from the web are sent on.
        retries: how often a request that failed for the moment is sent again.
        connect_seconds, read_seconds: how long to wait for a URL's connection, and between two of its bytes.
        concurrency: requests that are answered at once.
        queue_seconds: how long a request may wait for its turn; then 503.
        queue_length: requests that may wait; one more gets 503 at once.
        rate: requests a second to a URL, on average; None: no bound.
        evaluators: processes that evaluate over files.
        buffer_bytes: logs up to this size are sent whole, with their length.
        limits: see `Limits`.
    """

    source: tuple[str, ...]
    profile: str = "generic"
    prefixes: dict[str, str] = {}
    results: str = "auto"
    method: Literal["post", "get"] = "post"
    page_size: int | None = None
    contact: str | None = None
    user_variable: str | None = None
    password_variable: str | None = None
    token_variable: str | None = None
    forward_headers: tuple[str, ...] = ()
    allow_private: bool = False
    service: Literal["deny", "allow"] | tuple[str, ...] | None = None
    update: bool = False
    sponge: bool = False
    retries: int = 3
    connect_seconds: float = 10.0
    read_seconds: float = 120.0
    concurrency: int = 50
    queue_seconds: float = 10.0
    queue_length: int = 100
    rate: float | None = None
    evaluators: int = 4
    buffer_bytes: int = 0
    limits: Limits = Limits()

    @property
    def is_remote(self) -> bool:
        """Whether the source is an endpoint's URL."""
        return self.source[0].lower().startswith(("http://", "https://"))


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One server.

    Args:
        endpoints: by name: `dbpedia` is served at `/dbpedia/sparql`; the name "" at `/sparql`.
        bind: host and port.
        workers: server processes.
        public_url: how clients reach the server, where a proxy stands before it.
        cors: origins whose scripts may read answers; `*` for all.
        trust_forwarded: whether `X-Forwarded-For` of the peer is believed in logs.
        log_format: of the server's own log.
        log_level: the least level that is logged.
        log_queries: whether query texts are logged.
        shutdown_seconds: how long answers under way may take when the server stops.
    """

    endpoints: dict[str, Endpoint]
    bind: str = "127.0.0.1:8080"
    workers: int = 1
    public_url: str | None = None
    cors: tuple[str, ...] = ("*",)
    trust_forwarded: bool = False
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_queries: bool = False
    shutdown_seconds: float = 30.0

"""The settings of a server, as data.

One structure for the TOML file, the environment and the flags: `settings.py` reads them, `checks.py` checks that they
make sense together. Holds no secrets, only the names of the environment variables that hold them. Opens no source and
no socket.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

import msgspec

from construct_messages.errors import UsageError
from construct_messages.net.urls import is_url

_ADDRESS: Final = re.compile(
    r"(?:(?P<name>[A-Za-z0-9._-]+)|\[(?P<v6>[0-9A-Fa-f:.]+)\]):(?P<port>[0-9]{1,5})"
)

Count = Annotated[int, msgspec.Meta(ge=1)]
Size = Annotated[int, msgspec.Meta(ge=0)]
# up to three years: more, such as infinity, is a mistake
Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e8)]
Duration = Annotated[float, msgspec.Meta(ge=0, le=1e8)]
Text = Annotated[str, msgspec.Meta(min_length=1)]
Rate = Annotated[float, msgspec.Meta(gt=0, le=1e8)]

UNNAMED: Final = "endpoint"
"""What the file and the environment call the endpoint at `/sparql`, whose name is empty."""

Key = tuple[str, ...]
"""A setting: the names of the fields and of the endpoint that lead to it."""

# settings of an endpoint that say something of one kind of source only
OF_URLS: Final = (
    *("profile", "results", "method", "page_size", "strict", "contact"),
    *("user_variable", "password_variable", "token_variable"),
    *("token_url", "client_id", "client_secret_variable", "client_secret_file", "scope"),
    *("forward_headers", "allow_private", "update", "update_source", "sponge"),
    *("row_cap", "refuse_capped"),
    *("retries", "connect_seconds", "read_seconds", "rate"),
)
OF_FILES: Final = ("union_default_graph", "evaluators", "evaluator_bytes")


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The limits of one request; reaching one is an error, never a shorter log. None: no limit.

    Args:
        request_bytes: of a request body.
        query_characters: of a query's text.
        seconds: for the whole answer of the source.
        solutions: of one log.
        messages: of one log.
        message_bytes: of one message, as it is written.
        idle_seconds: how long a client may take none of the bytes that wait for it, or may take to send a body.
    """

    request_bytes: Count = 2 << 20
    query_characters: Count = 500_000
    seconds: Seconds | None = 300.0
    solutions: Count | None = None
    messages: Count | None = None
    message_bytes: Count | None = 64 << 20
    idle_seconds: Seconds = 60.0


class ExampleSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An example that the page offers for one endpoint: `[[endpoint.examples]]`.

    Args:
        name: a few words.
        query: of any form.
        sentence: what it shows, or what it is for.
        group_by: variables whose solutions with the same values make one message; `group-by` of a request.
    """

    name: Text
    query: Text
    sentence: str = ""
    group_by: tuple[str, ...] = ()


class EndpointSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The settings of one SPARQL endpoint.

    Args:
        source: an endpoint's URL, or RDF files, or one store directory.
        profile: what kind of endpoint the URL is; see `sources/http/profiles.py`.
        prefixes: IRI by prefix that templates may use without declaring them.
        frames: files with JSON-LD frames and contexts, by the names or IRIs that clients give.
        examples: queries that the page offers; the first one is what it begins with. See `ExampleSettings`.
        results: the results format to ask a URL for.
        method: how queries are sent to a URL.
        page_size: solutions per request to a URL.
        strict: whether blank nodes that pages tear apart are an error, instead of a warning in the log.
        contact: an address for the User-Agent, so that the operator of a URL can reach you.
        user_variable, password_variable, token_variable: the names of environment variables with the credentials.
        token_url: where access tokens are to be had with the credentials of a client (RFC 6749, section 4.4).
        client_id: of this client.
        client_secret_variable, client_secret_file: an environment variable, or a file, that holds its secret.
        scope: what the tokens are asked for; None: what the server gives.
        forward_headers: client headers that are sent on beside the usual ones, such as `Authorization`.
        allow_private: whether the URL's host name may lead to a private address.
        service: what SERVICE may reach: `"deny"`, `"allow"`, or a list of IRIs. None: denied for files, the
            endpoint's own business for a URL.
        update: whether updates are sent on to a URL.
        update_source: the URL that updates are sent on to, where it is not the one of queries.
        row_cap: how many rows or triples a URL sends at most in one answer. A CONSTRUCT of its own with as many may be
            a part, which is logged. None: nothing is counted.
        refuse_capped: whether that, or an answer that declares itself a part, is an error instead.
        sponge: whether parameters that make a Virtuoso fetch from the web are sent on.
        retries: how often a request that failed for the moment is sent again.
        connect_seconds, read_seconds: how long to wait for a URL's connection, and between two of its bytes.
        lenient: whether malformed IRIs and language tags are passed in logs, and loaded from files.
        concurrency: requests that are answered at once.
        queue_seconds: how long a request may wait for its turn; then 503.
        queue_length: requests that may wait; one more gets 503 at once.
        rate: requests a second to a URL, on average; None: no bound.
        union_default_graph: whether the default graph of files is all their graphs merged, where a request names none.
        evaluators: processes that evaluate over files, one query each.
        evaluator_bytes: memory that each of them may take for itself; a query that needs more fails. `"auto"`: a share
            of the machine's, see `memory.py`. None: no bound.
        buffer_bytes: logs up to this size are sent whole, with their length.
        heartbeat_seconds: how long an answer of events may be silent.
        limits: see `Limits`.
    """

    source: tuple[str, ...]
    profile: str = "generic"
    prefixes: dict[str, str] = {}
    frames: dict[str, str] = {}
    examples: tuple[ExampleSettings, ...] = ()
    results: Literal["auto", "json", "xml", "tsv"] = "auto"
    method: Literal["post", "get"] = "post"
    page_size: Count | None = None
    strict: bool = False
    contact: str | None = None
    user_variable: str | None = None
    password_variable: str | None = None
    token_variable: str | None = None
    token_url: str | None = None
    client_id: str | None = None
    client_secret_variable: str | None = None
    client_secret_file: str | None = None
    scope: str | None = None
    forward_headers: tuple[str, ...] = ()
    allow_private: bool = False
    service: Literal["deny", "allow"] | tuple[str, ...] | None = None
    update: bool = False
    update_source: str | None = None
    row_cap: Count | None = 10_000
    refuse_capped: bool = False
    sponge: bool = False
    retries: Size = 3
    connect_seconds: Seconds = 10.0
    read_seconds: Seconds = 120.0
    lenient: bool = False
    concurrency: Count = 50
    queue_seconds: Duration = 10.0
    queue_length: Size = 1000
    rate: Rate | None = None
    union_default_graph: bool = False
    evaluators: Count = 8
    evaluator_bytes: Count | Literal["auto"] | None = "auto"
    buffer_bytes: Size = 0
    heartbeat_seconds: Seconds = 15.0
    limits: Limits = Limits()

    @property
    def is_remote(self) -> bool:
        """Whether the source is an endpoint's URL."""
        return is_url(self.source[0])

    @property
    def service_policy(self) -> Literal["deny", "allow"] | frozenset[str]:
        """What SERVICE may reach; if `service` is None, it depends on the source."""
        if self.service is None:
            return "allow" if self.is_remote else "deny"
        return self.service if isinstance(self.service, str) else frozenset(self.service)


class BridgeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What one stream is fed from or forwarded to, and what its messages conform to: `[streams.NAME]`.

    Args:
        source: the URL that the stream is fed from; `from` in the file. None: it is not.
        target: the URL that it is forwarded to; `to` in the file. None: it is not.
        start: where reading and forwarding start at first: with the first element that is there, or the next one.
        via: the transport of `from`; None: the first that fits.
        from_token_variable, to_token_variable: the names of environment variables with a token for each side.
        from_token_url, to_token_url, from_client_id, to_client_id, from_client_secret_variable,
            to_client_secret_variable, from_client_secret_file, to_client_secret_file, from_scope, to_scope: the
            credentials of a client that tokens are fetched with, as those of an endpoint; see `EndpointSettings`.
        from_options, to_options: options of the transports, as their libraries call them. A value that begins with `$`
            is the name of an environment variable.
        from_media_type: of the records of a broker that name none.
        to_media_type: of the records that a broker gets; None: N-Quads.
        dead_letters: a file or topic for records that are no message; None: such a record stops the bridge.
        create: whether the stream of `to` is created if it does not exist.
        batch: how many elements are written together at most.
        shapes: files with SHACL shapes, against which each message is validated before it is stored.
        shapes_data: files with data that messages are validated with, such as a class hierarchy.
        allow_warnings: whether messages conform despite results of severity `sh:Warning` or `sh:Info`.
        invalid_to: the stream that gets messages which do not conform, each with its report; it is created if it does
            not exist. None: they are refused.
    """

    source: str | None = msgspec.field(default=None, name="from")
    target: str | None = msgspec.field(default=None, name="to")
    start: Literal["first", "next"] = "first"
    via: str | None = None
    from_token_variable: str | None = None
    to_token_variable: str | None = None
    from_token_url: str | None = None
    to_token_url: str | None = None
    from_client_id: str | None = None
    to_client_id: str | None = None
    from_client_secret_variable: str | None = None
    to_client_secret_variable: str | None = None
    from_client_secret_file: str | None = None
    to_client_secret_file: str | None = None
    from_scope: str | None = None
    to_scope: str | None = None
    from_options: dict[str, str] = {}
    to_options: dict[str, str] = {}
    from_media_type: str | None = None
    to_media_type: str | None = None
    dead_letters: str | None = None
    create: bool = False
    batch: Count = 1000
    shapes: tuple[str, ...] = ()
    shapes_data: tuple[str, ...] = ()
    allow_warnings: bool = False
    invalid_to: str | None = None


class StreamsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The live streams that are served, at `/streams`.

    Args:
        file: the store; made where there is none.
        read: who may read; None: everybody.
        publish: who may publish, and make and delete streams: `"deny"`, `"allow"`, `"jwt"`, or the name of an
            environment variable that holds a token. None: allowed where the server listens on loopback only, else
            denied.
        register: who may register queries, pause and remove them; as `publish`.
        tokens: further environment variables with tokens, which the description of a stream may name for its
            publishers.
        reserve_bytes: of the disk, beside the store: let go when the disk is full, so that a smaller retention, or
            deleting a stream, can make room.
        streams: how many there may be.
        message_bytes: of one message, as it is sent.
        body_bytes: of one request.
        bodies_bytes: of the bodies of all requests that are held at once; more get 503.
        batch_messages: in one request.
        concurrency: requests that are answered at once, beside followers; as many may publish meanwhile.
        queue_seconds: how long a request may wait for its turn; then 503.
        queue_length: requests that may wait; one more gets 503 at once.
        followers: that get elements pushed at once.
        heartbeat_seconds: how long a pushed answer may be silent.
        idle_seconds: how long a client may take none of the bytes that wait for it.
        ldes_page: how many elements a page of a Linked Data Event Stream has.
        ldes_version_of_path: the property in messages that names what a member is a version of; None: there is none.
        queries: how many may be registered, those that are paused included; each has a process.
        query_characters: of the text of one.
        query_seconds: how long one evaluation of a registered query may take; then it is paused.
        query_bytes: memory that the process of one may take for itself; a query that needs more is paused.
        query_output_bytes: of the messages of one evaluation; without windows, of those of up to 1,000 elements.
        grpc: host and port of Jelly's gRPC service; port 0 takes a free one. None: there is no such service.
        grpc_certificate, grpc_key: files in PEM with the certificate of that service (followed by those of the
            authorities between it and a known one) and its key. None: connections are not encrypted.
        grpc_url: how clients reach it, where a proxy stands before it, as `grpcs://data.example.org`.
        bridges: what streams are fed from, forwarded to and validated against, by their names.
    """

    file: str
    read: str | None = None
    publish: str | None = None
    register: str | None = None
    tokens: tuple[str, ...] = ()
    reserve_bytes: Size = 32 << 20
    streams: Count = 10_000
    message_bytes: Count = 8 << 20
    body_bytes: Count = 64 << 20
    bodies_bytes: Count = 128 << 20
    batch_messages: Count = 100_000
    concurrency: Count = 100
    queue_seconds: Duration = 10.0
    queue_length: Size = 1000
    followers: Count = 1000
    heartbeat_seconds: Seconds = 15.0
    idle_seconds: Seconds = 60.0
    ldes_page: Count = 1000
    ldes_version_of_path: str | None = None
    queries: Count = 16
    query_characters: Count = 100_000
    query_seconds: Seconds = 30.0
    query_bytes: Count = 512 << 20
    query_output_bytes: Count = 64 << 20
    grpc: str | None = None
    grpc_certificate: str | None = None
    grpc_key: str | None = None
    grpc_url: str | None = None
    bridges: dict[str, BridgeSettings] = {}

    @property
    def grpc_address(self) -> tuple[str, int]:
        """The host (an IPv6 address without its brackets) and the port of `grpc`.

        Raises:
            UsageError: it is not of that shape.
        """
        return address_of(self.grpc or "")


class JwtSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The JSON Web Tokens that the policy `"jwt"` asks for (RFC 7519, RFC 9068).

    Args:
        issuer: the value of `iss`.
        audience: the value of `aud`, or one of its values.
        keys: the issuer's public keys (RFC 7517): an https URL, or a file, which is read once.
        algorithms: those that are allowed; only ones whose keys are public.
        leeway_seconds: how far the clocks of the issuer and this machine may differ.
        read_scope, publish_scope, register_scope: what `scope` must have for each right.
    """

    issuer: str
    audience: str
    keys: str
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    leeway_seconds: Size = 30
    read_scope: str = "read"
    publish_scope: str = "publish"
    register_scope: str = "register"


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The settings of one server.

    Args:
        endpoints: by name: `dbpedia` is served at `/dbpedia/sparql`; the name "" at `/sparql`.
        bind: host and port; port 0 takes a free one.
        streams: live streams, if any are served.
        jwt: the JSON Web Tokens that streams ask for, if any do.
        workers: server processes.
        public_url: how clients reach the server, where a proxy stands before it.
        cors: other origins whose scripts may read answers; `*` for all.
        trust_forwarded: whether `X-Forwarded-For` of the peer is believed in logs.
        log_format: of the server's own log.
        log_level: the least level that is logged.
        log_queries: whether query texts are logged.
        shutdown_seconds: how long answers under way may take when the server stops.
        page: whether browsers get the page, at `/`, `/NAME/` and at SPARQL endpoints, and HTML of streams and errors.
    """

    endpoints: dict[str, EndpointSettings]
    bind: str = "127.0.0.1:8080"
    streams: StreamsSettings | None = None
    jwt: JwtSettings | None = None
    workers: Count = 1
    public_url: str | None = None
    cors: tuple[str, ...] = ()
    trust_forwarded: bool = False
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_queries: bool = False
    shutdown_seconds: Duration = 30.0
    page: bool = True

    @property
    def trusted_origins(self) -> tuple[str, ...]:
        """`cors`, and the origin of `public_url`, whose pages are this server's own.

        >>> Config(endpoints={}, public_url="https://example.org/data/").trusted_origins
        ('https://example.org',)
        """
        if self.public_url is None:
            return self.cors
        parts = urlsplit(self.public_url)
        return (*self.cors, f"{parts.scheme}://{parts.netloc}")

    @property
    def address(self) -> tuple[str, int]:
        """The host (an IPv6 address without its brackets) and the port of `bind`.

        Raises:
            UsageError: it is not of that shape.

        >>> Config(endpoints={}, bind="[::1]:8080").address
        ('::1', 8080)
        """
        return address_of(self.bind)


def address_of(text: str) -> tuple[str, int]:
    """Parses the address that a server listens at: its host (an IPv6 address without its brackets) and its port.

    Raises:
        UsageError: it is not of that shape.
    """
    if not (match := _ADDRESS.fullmatch(text)) or int(match["port"]) > 65_535:
        raise UsageError(
            f"{text!r} is no address to listen at",
            hint="write host and port, as in 127.0.0.1:8080 or [::1]:8080",
        )
    return match["name"] or match["v6"], int(match["port"])


def dotted_name(key: Key) -> str:
    """The name of a setting in the file.

    >>> dotted_name(("endpoints", "", "page_size")), dotted_name(("endpoints", "my data", "limits", "seconds"))
    ('endpoint.page_size', 'endpoints."my data".limits.seconds')
    """
    if key[:2] == ("endpoints", ""):
        key = (UNNAMED, *key[2:])
    if key[:2] == ("streams", "bridges"):
        key = ("streams", *key[2:])
    return ".".join(
        part if re.fullmatch(r"[\w-]+", part, re.ASCII) else f'"{part}"' for part in key
    )

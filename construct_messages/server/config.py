"""The settings of a server, as data.

One structure for the TOML file, the environment and the flags: `runtime/settings.py` reads them, `runtime/checks.py`
checks that they make sense together. Holds no secrets, only the names of the environment variables that hold them.
Opens no source and no socket.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from construct_messages.errors import UsageError
from construct_messages.rdf.options import Bound, Count, Requests, Size, option_class
from construct_messages.sparql.client.urls import is_url

_ADDRESS: Final = re.compile(
    r"(?:(?P<name>[A-Za-z0-9._-]+)|\[(?P<v6>[0-9A-Fa-f:.]+)\]):(?P<port>[0-9]{1,5})"
)

# three years; a larger value, such as infinity, is a mistake
_LONGEST: Final = 1e8
Time: TypeAlias = Annotated[float, Bound(above=0, most=_LONGEST)]
Duration: TypeAlias = Annotated[float, Bound(least=0, most=_LONGEST)]

UNNAMED: Final = "endpoint"
"""The name in the file and the environment of the endpoint at `/sparql`, whose own name is empty."""

Key = tuple[str, ...]
"""The path of a setting: the names of its endpoint and fields."""

# settings of an endpoint that apply to one kind of source only
OF_URLS: Final = (
    *("profile", "results", "method", "page_size", "strict", "contact"),
    *("user_variable", "password_variable", "token_variable"),
    *("token_url", "client_id", "client_secret_variable", "client_secret_file", "scope"),
    *("forward_headers", "allow_private", "update", "update_source", "sponge"),
    *("row_cap", "refuse_capped"),
    *("retries", "connect_seconds", "read_seconds", "rate"),
)
OF_FILES: Final = ("union_default_graph", "evaluators", "evaluator_bytes")


@option_class
@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of one request; reaching one is an error, never a shorter log. None: no limit.

    Args:
        request_bytes: size of a request body.
        query_characters: length of a query.
        seconds: time for the whole answer of the source.
        solutions: solutions per log.
        messages: messages per log.
        message_bytes: size of a message.
        idle_seconds: time without progress, while a client receives an answer or sends a body.
    """

    request_bytes: Count = 2 << 20
    query_characters: Count = 500_000
    seconds: Time | None = 300.0
    solutions: Count | None = None
    messages: Count | None = None
    message_bytes: Count | None = 64 << 20
    idle_seconds: Time = 60.0


@option_class
@dataclass(frozen=True, kw_only=True)
class ExampleSettings:
    """An example that the page offers for one endpoint: `[[endpoint.examples]]`.

    Args:
        name: a few words.
        query: the query, of any form.
        sentence: what it shows.
        group_by: variables; solutions with the same values of them become one message.
    """

    name: str
    query: str
    sentence: str = ""
    group_by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (self.name and self.query):
            raise ValueError("an example needs a name and a query")


@option_class
@dataclass(frozen=True, kw_only=True)
class EndpointSettings:
    """The settings of one SPARQL endpoint.

    Args:
        source: one URL, RDF files, or one Oxigraph store directory.
        prefixes: IRIs by prefix that templates may use without declaring them.
        frames: files with [JSON-LD frames](#json-documents) and contexts, by the names or IRIs that clients give.
        examples: [examples](#examples-of-an-endpoint) that [the page](../guides/page.md) offers.
        contact: address in the User-Agent, so that the operator of the URL can reach you.
        user_variable: environment variable with the user name for the URL.
        password_variable: environment variable with the password.
        token_variable: environment variable with a bearer token, instead of user and password.
        token_url: where access tokens are fetched with [client credentials](#access-tokens-for-sources): https, or on
            this machine.
        client_id: the identifier of the client.
        client_secret_variable: environment variable with the secret of the client.
        client_secret_file: file with the secret, instead of a variable.
        scope: scope to request.
        forward_headers: client headers to forward besides the usual ones, such as `Authorization`.
        allow_private: allow the URL's host name to resolve to a private address, as names of containers do.
        service: what `SERVICE` may reach; none: nothing for files, decided by the endpoint for a URL.
        update: forward updates to the URL.
        update_source: URL for updates, if the engine has a separate one.
        row_cap: rows or triples that the URL sends at most: its own answer to a CONSTRUCT with as many [may be a
            part](#the-endpoints-own-answer-may-be-a-part).
        refuse_capped: make such an answer an error, instead of logging a warning.
        sponge: forward parameters that make a Virtuoso fetch from the web.
        connect_seconds: time to connect to the URL.
        read_seconds: time between two reads from the URL.
        lenient: accept terms that are not RDF, and load them from files: see [Dirty data](sources.md#dirty-data).
        concurrency: requests that are answered at the same time.
        queue_seconds: time that a request may wait; after it, 503 with `Retry-After`.
        queue_length: requests that may wait; any further gets 503 immediately.
        rate: requests per second to the URL, on average.
        union_default_graph: if a request names no default graph, use the union of all graphs of the files.
        evaluators: processes that evaluate queries over files, one query each.
        evaluator_bytes: memory that each evaluator may allocate; a query that needs more fails. `"auto"`: half of the
            memory of the machine or container divided by all evaluators, at least 512 MiB.
        buffer_bytes: logs up to this size are sent when they are complete, with their length.
        heartbeat_seconds: longest silence of an answer as [events](#events); then a comment is sent.
        limits: the limits of one request.
        profile, results, method, page_size, strict, retries: see `Requests`.
    """

    source: tuple[str, ...]
    profile: str = Requests.profile
    prefixes: dict[str, str] = field(default_factory=dict)
    frames: dict[str, str] = field(default_factory=dict)
    examples: tuple[ExampleSettings, ...] = ()
    results: Literal["auto", "json", "xml", "tsv"] = Requests.results
    method: Literal["get", "post"] = Requests.method
    page_size: Count | Literal["auto"] | None = Requests.page_size
    strict: bool = Requests.strict
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
    retries: Size = Requests.retries
    connect_seconds: Time = 10.0
    read_seconds: Time = 120.0
    lenient: bool = False
    concurrency: Count = 50
    queue_seconds: Duration = 10.0
    queue_length: Size = 1000
    rate: Time | None = None
    union_default_graph: bool = False
    evaluators: Count = 8
    evaluator_bytes: Count | Literal["auto"] | None = "auto"
    buffer_bytes: Size = 0
    heartbeat_seconds: Time = 15.0
    limits: Limits = Limits()

    @property
    def is_remote(self) -> bool:
        """Whether the source is an endpoint's URL."""
        return is_url(self.source[0])

    @property
    def service_policy(self) -> Literal["deny", "allow"] | frozenset[str]:
        """The endpoints that SERVICE may reach; if `service` is None, it depends on the source."""
        if self.service is None:
            return "allow" if self.is_remote else "deny"
        return self.service if isinstance(self.service, str) else frozenset(self.service)


@option_class
@dataclass(frozen=True, kw_only=True)
class BridgeSettings:
    """The bridges of one stream to other systems, and the shapes of its messages: `[streams.NAME]`.

    Args:
        source: URL that the stream is fed from, by any [transport](streams/clients.md#transports).
        target: URL that the stream is forwarded to.
        start: where reading and forwarding start at first: with the first element that is there, or with the next one.
        via: transport of `from`; none: the first that fits.
        from_token_variable, to_token_variable: environment variable with a token for each side.
        from_token_url, to_token_url: token endpoint from which access tokens for a side are fetched (OAuth 2 client
            credentials), instead of a token.
        from_client_id, to_client_id: client that the tokens are for.
        from_client_secret_variable, to_client_secret_variable: environment variable with the secret of the client.
        from_client_secret_file, to_client_secret_file: file with that secret, instead of a variable.
        from_scope, to_scope: scope of the tokens; none: as the token endpoint decides.
        from_options, to_options: options of the transport of each side, as its library calls them; a value such as
            `"$SECRET"` is the name of an environment variable.
        from_media_type: type of records of a broker that name none.
        to_media_type: type of the records that a broker gets; none: N-Quads.
        dead_letters: file or topic for records of a broker that are no message; none: such a record stops the bridge.
        create: create the stream of `to` if it does not exist.
        batch: elements that are written together.
        shapes: files with [SHACL shapes](shapes.md#at-a-server) that messages must conform to before they are stored.
            It needs the extra `shapes`.
        shapes_data: files with data that messages are validated with, such as a class hierarchy.
        allow_warnings: messages conform despite results of severity `sh:Warning` or `sh:Info`.
        invalid_to: stream that gets messages which do not conform, with their reports; none: they are refused.
    """

    source: str | None = None
    target: str | None = None
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
    from_options: dict[str, str] = field(default_factory=dict)
    to_options: dict[str, str] = field(default_factory=dict)
    from_media_type: str | None = None
    to_media_type: str | None = None
    dead_letters: str | None = None
    create: bool = False
    batch: Count = 1000
    shapes: tuple[str, ...] = ()
    shapes_data: tuple[str, ...] = ()
    allow_warnings: bool = False
    invalid_to: str | None = None


@option_class
@dataclass(frozen=True, kw_only=True)
class StreamsSettings:
    """The live streams of a server, at `/streams`.

    Args:
        file: store of the live streams at `/streams`, created if it does not exist.
        read: who may read streams; values as of `publish`; none: everybody.
        publish: who may publish, and create and delete streams: `"deny"`, `"allow"`, [`"jwt"`](#authorization), or the
            environment variable with a token; none: everybody if the server listens on loopback only, except web pages
            of other sites, else nobody.
        register: who may register queries, pause, resume and remove them; values as of `publish`.
        tokens: further environment variables with tokens, which the description of a stream may name in `publish`.
        reserve_bytes: size of a file beside the store that is let go when the disk is full, so that a [smaller
            retention](streams/store.md#damage-and-full-disks) can make room; 0: none.
        streams: number of streams.
        contexts: files with JSON-LD contexts, by the IRIs that published documents name, in addition to the [known
            ones](streams/http.md); none is fetched.
        message_bytes: size of a message, as it is sent.
        body_bytes: size of a request body.
        bodies_bytes: size of all request bodies in memory at the same time; more are refused with 503. While a body is
            read, it takes about [ten times](logs.md#memory-of-a-message) its size, and JSON-LD 25 times.
        batch_messages: messages per request.
        concurrency: requests answered at the same time, followers not counted; publishers have as many places of their
            own.
        queue_seconds: time that a request may wait for a place; then it is refused with 503.
        queue_length: requests that may wait; one more is refused with 503 at once.
        followers: clients that receive pushed elements at the same time.
        heartbeat_seconds: longest silence of a pushed answer.
        idle_seconds: time that a client may take none of the waiting bytes.
        ldes_page: elements per page of a Linked Data Event Stream.
        ldes_version_of_path: property (an IRI) in messages that names the resource of which a member is a version, for
            Linked Data Event Streams.
        queries: registered queries, paused ones included; each has a process while it runs.
        query_characters: length of a registered query.
        query_seconds: time of one evaluation of a registered query; then it is paused.
        query_bytes: memory of the process of a registered query; one that needs more is paused.
        query_output_bytes: size of the messages of one evaluation; without windows, of those that up to 1,000 messages
            lead to.
        query_maintain: whether queries with windows [maintain their solutions](continuous/windows.md) where that is
            possible; the parameter `maintain` of a registration overrides it.
        grpc: host and port of [Jelly's gRPC service](streams/grpc.md), such as 127.0.0.1:50051; port 0
            takes a free one; none: there is no such service. It needs the extra `grpc`.
        grpc_certificate: file in PEM with the certificate of that service, followed by those between it and a known
            authority; none: no TLS.
        grpc_key: file in PEM with the key of that certificate, without a password.
        grpc_url: how clients reach that service if there is a proxy, such as `"grpcs://data.example.org"`.
        bridges: the settings of individual streams, by their names.
    """

    file: str
    read: str | None = None
    publish: str | None = None
    register: str | None = None
    tokens: tuple[str, ...] = ()
    reserve_bytes: Size = 32 << 20
    streams: Count = 10_000
    contexts: dict[str, str] = field(default_factory=dict)
    message_bytes: Count = 8 << 20
    body_bytes: Count = 64 << 20
    bodies_bytes: Count = 128 << 20
    batch_messages: Count = 100_000
    concurrency: Count = 100
    queue_seconds: Duration = 10.0
    queue_length: Size = 1000
    followers: Count = 1000
    heartbeat_seconds: Time = 15.0
    idle_seconds: Time = 60.0
    ldes_page: Count = 1000
    ldes_version_of_path: str | None = None
    queries: Count = 16
    query_characters: Count = 100_000
    query_seconds: Time = 30.0
    query_bytes: Count = 512 << 20
    query_output_bytes: Count = 64 << 20
    query_maintain: bool = True
    grpc: str | None = None
    grpc_certificate: str | None = None
    grpc_key: str | None = None
    grpc_url: str | None = None
    bridges: dict[str, BridgeSettings] = field(default_factory=dict)

    @property
    def grpc_address(self) -> tuple[str, int]:
        """The host (an IPv6 address without its brackets) and the port of `grpc`."""
        return address_of(self.grpc or "")


@option_class
@dataclass(frozen=True, kw_only=True)
class JwtSettings:
    """The JSON Web Tokens that the policy `"jwt"` requires (RFC 7519, RFC 9068).

    Args:
        issuer: who issues the tokens: the value of `iss`.
        audience: for whom they are: the value of `aud`, or one of its values.
        keys: the issuer's public keys (JWKS): an https URL, or a file, which is read at the start.
        algorithms: allowed signatures: `RS256` to `RS512`, `PS256` to `PS512`, `ES256` to `ES512`, `Ed25519`, `EdDSA`.
        leeway_seconds: difference that is allowed between the clocks of the issuer and the server.
        read_scope: scope that a token needs to read.
        publish_scope: scope that a token needs to publish, and to create and delete streams.
        register_scope: scope that a token needs to register queries.
    """

    issuer: str
    audience: str
    keys: str
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    leeway_seconds: Size = 30
    read_scope: str = "read"
    publish_scope: str = "publish"
    register_scope: str = "register"


@option_class
@dataclass(frozen=True, kw_only=True)
class Config:
    """The settings of one server.

    Args:
        endpoints: the SPARQL endpoints by name: `dbpedia` is served at `/dbpedia/sparql`; the name "" at `/sparql`.
        bind: host and port to listen at; port 0 takes a free port, which the log shows.
        streams: the live streams; None: none are served.
        jwt: the JSON Web Tokens that streams require; None: none.
        workers: number of server processes.
        public_url: the URL by which clients reach the server, if it is behind a proxy; used in the service description.
        cors: [other origins](#pages-of-other-origins) whose scripts may read answers, send updates and open WebSockets,
            such as https://example.org; * for all.
        trust_forwarded: log the last entry of `X-Forwarded-For` as the client.
        log_format: format of the server's log; text is logfmt.
        log_level: lowest level that is logged.
        log_queries: log the text of queries.
        shutdown_seconds: time for running answers to finish when the server stops; followers of streams are ended at
            once, as they resume.
        page: whether browsers get [the page](../guides/page.md) at `/`, `/NAME/` and the SPARQL endpoints, and HTML of
            [streams](streams/http.md#in-a-browser) and errors.
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
        """The origins of `cors` and of `public_url`, whose pages are this server's own.

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
    """Returns the name of a setting in the file.

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

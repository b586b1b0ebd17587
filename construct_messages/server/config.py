"""The settings of a server, as data.

One structure for the TOML file, the environment and the flags: `runtime/settings.py` reads them, `runtime/checks.py`
checks that they make sense together. Holds no secrets, only the names of the environment variables that hold them.
Opens no source and no socket.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

import msgspec

from construct_messages.rdf.errors import UsageError
from construct_messages.sparql.client.urls import is_url

_ADDRESS: Final = re.compile(
    r"(?:(?P<name>[A-Za-z0-9._-]+)|\[(?P<v6>[0-9A-Fa-f:.]+)\]):(?P<port>[0-9]{1,5})"
)

Count = Annotated[int, msgspec.Meta(ge=1)]
Size = Annotated[int, msgspec.Meta(ge=0)]
# three years; a larger value, such as infinity, is a mistake
Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e8)]
Duration = Annotated[float, msgspec.Meta(ge=0, le=1e8)]
Text = Annotated[str, msgspec.Meta(min_length=1)]
Rate = Annotated[float, msgspec.Meta(gt=0, le=1e8)]

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


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The limits of one request; reaching one is an error, never a shorter log. None: no limit.

    Args:
        request_bytes: the maximal size of a request body.
        query_characters: the maximal length of a query's text.
        seconds: the maximal time for the whole answer of the source.
        solutions: the maximal number of solutions of one log.
        messages: the maximal number of messages of one log.
        message_bytes: the maximal size of one serialized message.
        idle_seconds: the maximal time without progress of a client that reads an answer, and for sending a body.
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
        query: a query of any form.
        sentence: its subject or purpose.
        group_by: the variables whose values group solutions into messages; `group-by` of a request.
    """

    name: Text
    query: Text
    sentence: str = ""
    group_by: tuple[str, ...] = ()


class EndpointSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The settings of one SPARQL endpoint.

    Args:
        source: an endpoint's URL, or RDF files, or one store directory.
        profile: the kind of endpoint at the URL; see `sparql/sources/http/profiles.py`.
        prefixes: the prefixes, with their IRIs, that templates may use without declaring them.
        frames: files with JSON-LD frames and contexts, by the names or IRIs that clients send.
        examples: queries that the page offers; it shows the first one initially. See `ExampleSettings`.
        results: the results format to request from a URL.
        method: the HTTP method for queries to a URL.
        page_size: solutions per request to a URL.
        strict: whether blank nodes that are split across pages are an error, instead of a warning in the log.
        contact: an address for the User-Agent, so that the operator of a URL can reach you.
        user_variable, password_variable, token_variable: the names of environment variables with the credentials.
        token_url: the token endpoint for the client credentials grant (RFC 6749, section 4.4).
        client_id: the identifier of this client.
        client_secret_variable, client_secret_file: the environment variable, or the file, with its secret.
        scope: the scope of the requested tokens; None: the default of the token endpoint.
        forward_headers: client headers, such as `Authorization`, that are forwarded in addition to the usual ones.
        allow_private: whether the URL's host name may lead to a private address.
        service: the endpoints that SERVICE may reach: `"deny"`, `"allow"`, or a list of IRIs. None: denied for files;
            left to the endpoint for a URL.
        update: whether updates are forwarded to a URL.
        update_source: the URL for updates, if it differs from that of queries.
        row_cap: the maximal number of rows or triples in one answer of a URL. The answer to a CONSTRUCT with this many
            triples may be truncated, which is logged. None: answers are not counted.
        refuse_capped: whether such an answer, or one that declares itself truncated, is an error instead.
        sponge: whether to forward parameters that make Virtuoso fetch from the web.
        retries: the number of retries after a transient failure.
        connect_seconds, read_seconds: the timeouts for connecting to a URL, and for the next bytes of its answer.
        lenient: whether malformed IRIs and language tags are passed on in logs, and loaded from files.
        concurrency: the maximal number of concurrent requests.
        queue_seconds: the maximal time that a request waits for its turn; then 503.
        queue_length: the maximal number of waiting requests; further ones get 503 at once.
        rate: the maximal average rate of requests to a URL, per second; None: no limit.
        union_default_graph: whether the default graph of files is the merge of all their graphs, if a request names
            none.
        evaluators: the number of processes that evaluate over files, one query each.
        evaluator_bytes: the memory limit of each of them; a query that needs more fails. `"auto"`: a share of the
            machine's memory, see `runtime/checks.py`. None: no limit.
        buffer_bytes: logs up to this size are sent as a whole, with their length.
        heartbeat_seconds: the maximal time between two events of an answer; then a comment is sent.
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
        """The endpoints that SERVICE may reach; if `service` is None, it depends on the source."""
        if self.service is None:
            return "allow" if self.is_remote else "deny"
        return self.service if isinstance(self.service, str) else frozenset(self.service)


class BridgeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The bridges of one stream to other systems, and the shapes of its messages: `[streams.NAME]`.

    Args:
        source: the URL whose elements are appended to the stream; `from` in the file. None: no URL.
        target: the URL that the stream is forwarded to; `to` in the file. None: no URL.
        start: the initial position of reading and forwarding: the first available element, or the next one.
        via: the transport of `from`; None: the first one that supports the URL.
        from_token_variable, to_token_variable: the names of environment variables with a token for each side.
        from_token_url, to_token_url, from_client_id, to_client_id, from_client_secret_variable,
            to_client_secret_variable, from_client_secret_file, to_client_secret_file, from_scope, to_scope: the client
            credentials for tokens, as for an endpoint; see `EndpointSettings`.
        from_options, to_options: options of the transports, with the names that their libraries use. A value that
            begins with `$` is the name of an environment variable.
        from_media_type: the media type of a broker's records without one.
        to_media_type: the media type of the records that are written to a broker; None: N-Quads.
        dead_letters: a file or topic for records that are not a message; None: such a record stops the bridge.
        create: whether the stream of `to` is created if it does not exist.
        batch: the maximal number of elements per write.
        shapes: files with SHACL shapes, against which each message is validated before it is stored.
        shapes_data: files with data for the validation of messages, such as a class hierarchy.
        allow_warnings: whether messages conform despite results of severity `sh:Warning` or `sh:Info`.
        invalid_to: the stream for messages that do not conform, each with its report; it is created if it does not
            exist. None: they are rejected.
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
    """The live streams of a server, at `/streams`.

    Args:
        file: the store; created if it does not exist.
        read: the policy for reading; None: all clients may read.
        publish: the policy for publishing, and for creating and deleting streams: `"deny"`, `"allow"`, `"jwt"`, or the
            name of an environment variable that holds a token. None: allowed if the server listens on loopback only,
            else denied.
        register: the policy for registering, pausing and removing queries; as `publish`.
        tokens: additional environment variables with tokens; the description of a stream may name them for its
            publishers.
        reserve_bytes: the disk space to reserve next to the store: released when the disk is full, so that a smaller
            retention, or deleting a stream, can free space.
        streams: the maximal number of streams.
        contexts: files with JSON-LD contexts, by the IRIs that messages name; none is fetched.
        message_bytes: the maximal size of one message in a request body.
        body_bytes: the maximal size of one request body.
        bodies_bytes: the maximal size of all request bodies in memory; requests beyond it get 503.
        batch_messages: the maximal number of messages in one request.
        concurrency: the maximal number of concurrent requests without those of followers; as many again may publish.
        queue_seconds: the maximal time that a request waits for its turn; then 503.
        queue_length: the maximal number of waiting requests; further ones get 503 at once.
        followers: the maximal number of concurrent followers, to which elements are pushed.
        heartbeat_seconds: the maximal time between two parts of a pushed answer.
        idle_seconds: the maximal time without progress of a client that reads an answer.
        ldes_page: the number of elements per page of a Linked Data Event Stream.
        ldes_version_of_path: the property in messages whose object is the versioned resource of a member; None: there
            is none.
        queries: the maximal number of registered queries, including paused ones; each has a process.
        query_characters: the maximal length of a query's text.
        query_seconds: the maximal time for one evaluation of a registered query; then it is paused.
        query_bytes: the memory limit of its process; a query that needs more is paused.
        query_output_bytes: the maximal size of the messages of one evaluation; without windows, of those for up to
            1,000 elements.
        query_maintain: whether the solutions of registered queries are maintained by difference where that is possible;
            a registration overrides it.
        grpc: the host and port of Jelly's gRPC service; port 0 takes a free one. None: the service is not started.
        grpc_certificate, grpc_key: PEM files with the certificate of that service (followed by its intermediate
            certificates) and its key. None: connections are not encrypted.
        grpc_url: its public URL, if it is reached through a proxy, such as `grpcs://data.example.org`.
        bridges: the settings of individual streams, by their names.
    """

    file: str
    read: str | None = None
    publish: str | None = None
    register: str | None = None
    tokens: tuple[str, ...] = ()
    reserve_bytes: Size = 32 << 20
    streams: Count = 10_000
    contexts: dict[str, str] = {}
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
    query_maintain: bool = True
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
    """The JSON Web Tokens that the policy `"jwt"` requires (RFC 7519, RFC 9068).

    Args:
        issuer: the value of `iss`.
        audience: the value of `aud`, or one of its values.
        keys: the issuer's public keys (RFC 7517): an https URL, or a file, which is read once.
        algorithms: the allowed algorithms; only those with public keys.
        leeway_seconds: the maximal difference between the clocks of the issuer and this machine.
        read_scope, publish_scope, register_scope: the scope that each right requires.
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
        endpoints: the SPARQL endpoints by name: `dbpedia` is served at `/dbpedia/sparql`; the name "" at `/sparql`.
        bind: the host and port to listen at; port 0 takes a free one.
        streams: the live streams; None: none are served.
        jwt: the JSON Web Tokens that streams require; None: none.
        workers: the number of server processes.
        public_url: the public URL of the server, if it is reached through a proxy.
        cors: additional origins whose scripts may read answers; `*` for all.
        trust_forwarded: whether logs use the peer's `X-Forwarded-For`.
        log_format: the format of the server's own log.
        log_level: the lowest level to log.
        log_queries: whether query texts are logged.
        shutdown_seconds: the maximal time for running answers when the server stops.
        page: whether browsers get HTML: the page at `/`, `/NAME/` and SPARQL endpoints, and pages for streams and
            errors.
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

"""Whatever comes over HTTP gets an answer: Hypothesis writes the bytes of requests, right and wrong, onto real sockets.

For every request: no hang, no fault of the server, a response that is whole and says what is wrong in our own words,
unless aiohttp's parser refused the request or the answer is the upstream's; and the server goes on serving.
"""

import contextlib
import http.client
import json
import socket
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from construct_messages.server.config import Limits
from construct_messages.server.http.request_log import request_id
from construct_messages.server.pages.endpoint import POLICY
from tests.support.engines.servers import Serve
from tests.support.http.fault_server import FaultServer
from tests.support.waiting import SECONDS

pytestmark = pytest.mark.slow

DATA = '@prefix : <urn:> . :a :knows :b, :c ; :name "Anna"@en . :b :knows :c ; :name "Bert" .'
LIMITS = Limits(
    request_bytes=100_000, query_characters=20_000, seconds=SECONDS, idle_seconds=SECONDS
)


class Sent(NamedTuple):
    """A request, of which only the framing is sure to be right."""

    method: str
    target: bytes
    headers: tuple[tuple[str, bytes], ...]
    body: bytes | None

    def encoded(self) -> bytes:
        fields = [(name.encode(), value) for name, value in self.headers]
        if self.body is not None:
            fields.append((b"Content-Length", b"%d" % len(self.body)))
        head = b"".join(b"%b: %b\r\n" % field for field in (*fields, (b"Host", b"localhost")))
        return b"%b %b HTTP/1.1\r\n%b\r\n%b" % (
            self.method.encode(),
            self.target,
            head,
            self.body or b"",
        )


class Received(NamedTuple):
    """A response that was read to its end."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes
    closes: bool


class Connection:
    """One connection to a server; whatever is not whole, or does not come in time, is an exception."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._socket = socket.create_connection((parts.hostname, parts.port or 80), timeout=SECONDS)

    def exchange(self, request: bytes, method: str = "GET") -> Received:
        # whoever is refused early may find the connection closed, and the answer still there to read
        with contextlib.suppress(ConnectionError):
            self._socket.sendall(request)
        with http.client.HTTPResponse(self._socket, method=method) as response:
            response.begin()
            body = response.read()
            return Received(response.status, response.headers, body, response.will_close)

    def close(self) -> None:
        self._socket.close()


@contextlib.contextmanager
def connected(url: str) -> Iterator[Connection]:
    connection = Connection(url)
    try:
        yield connection
    finally:
        connection.close()


# --- requests -------------------------------------------------------------------------------------------------------

QUERIES = (
    "CONSTRUCT { ?x <urn:knownBy> ?y } WHERE { ?y <urn:knows> ?x }",
    "PREFIX : <urn:> CONSTRUCT { [] :of (?x [ :by ?y ]) } WHERE { ?y :knows ?x } ORDER BY ?y ?x LIMIT 2",
    "CONSTRUCT { <urn:s> <urn:p> << ?x <urn:q> 'a'@en--ltr >> } WHERE { ?x ?p ?o FILTER(?x < 3 || ?o > '''x''') }",
    "CONSTRUCT WHERE { ?s <urn:name> ?o }",
    "SELECT ?x (COUNT(*) AS ?n) WHERE { ?x ?p ?o } GROUP BY ?x",
    "ASK { ?s ?p ?o }",
    "DESCRIBE <urn:a>",
    "DEFINE input:default-graph-uri <urn:g> SELECT * { GRAPH ?g { ?s ?p ?o } }",
    "SELECT * { SERVICE SILENT <http://127.0.0.1:1/> { ?s ?p ?o } }",
    "INSERT DATA { <urn:s> <urn:p> 1 }",
)
PIECES = (
    *(
        "{",
        "}",
        "[",
        "(",
        ")",
        "<",
        ">",
        "<<(",
        '"',
        "'''",
        "\\",
        "\\u0041",
        "\\uD800",
        "#",
        "?",
        "_:",
        ".",
        ";",
        "%",
    ),
    *(
        "\x00",
        "\r\n",
        "\ufeff",
        "\u2028",
        "é",
        "𝄞",
        " SERVICE ",
        " FROM <urn:g>",
        " GROUP BY ",
        " LIMIT 99999999999 ",
    ),
    *("[" * 300, "(" * 300, "<<" * 300, "{" * 3000, "}" * 30),
)
NAMES = (
    *(
        "query",
        "update",
        "default-graph-uri",
        "named-graph-uri",
        "using-graph-uri",
        "format",
        "output",
        "messages",
    ),
    *("group-by", "timeout", "should-sponge", "callback", "Query", ""),
)
VALUES = (
    *(
        "rdfm",
        "1.2-messages",
        "nq",
        "application/n-quads",
        "urn:g",
        "relative",
        "?x",
        "json",
        "0",
        "",
    ),
    *(
        "ndjsonld",
        "yaml",
        "rdfxml",
        "jelly",
        "application/rdfm+xml",
        "application/x-jelly-rdf; version=1.1-messages",
    ),
)
TYPES = (
    "application/x-www-form-urlencoded",
    "application/sparql-query",
    "application/sparql-update",
)
METHODS = ("GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND")
# that may stand in the value of a field (RFC 9110, section 5.5)
FIELD = st.binary(max_size=60).map(
    lambda raw: bytes(byte for byte in raw if byte >= 32 and byte != 127).strip()
)
MEDIA = (
    *(
        "*/*",
        "text/turtle",
        "text/html",
        "application/n-quads;messages=rdfm",
        "application/trig; version=1.2-messages",
    ),
    *(
        "application/n-quads;messages=rdfm;q=0",
        'text/turtle;version="1.2-messages"',
        "text/csv",
        "x/y;messages=z",
    ),
    *(
        "application/x-jelly-rdf",
        "application/x-ndjson;q=0.9",
        "application/rdfm+xml;q=0.8",
        "application/rdfm+yaml",
    ),
    *(
        "application/sparql-results+json;q=0.5",
        ",",
        ";q",
        "a/b;q=2",
        "application/openmetrics-text; version=1.0.0",
    ),
)


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A query, most often with something wrong in it."""
    text = draw(st.sampled_from(QUERIES))
    for _ in range(draw(st.integers(0, 3))):
        start, end = sorted(draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        piece = draw(
            st.sampled_from(PIECES)
            | st.text(max_size=5).map(lambda s: s.encode(errors="ignore").decode())
        )
        text = draw(
            st.sampled_from(
                (
                    text[:start] + piece + text[start:],
                    text[:start] + text[end:],
                    text[:end] + text[start:],
                )
            )
        )
    return text


def encoded(pairs: list[tuple[bytes, bytes]]) -> bytes:
    return b"&".join(b"%b=%b" % pair for pair in pairs)


# what a form or a URL may hold: mostly encoded, sometimes as it is
TEXTS = (queries() | st.sampled_from(VALUES)).map(lambda text: quote(text).encode())
RAW = st.binary(max_size=20).map(
    lambda raw: bytes(byte for byte in raw if byte not in b"\r\n \t\x00#")
)
PARAMETERS = st.lists(
    st.tuples(
        st.sampled_from(NAMES).map(str.encode) | RAW,
        TEXTS | RAW | st.sampled_from((b"%", b"%zz", b"%ff")),
    ),
    max_size=4,
).map(encoded)
ASKED = st.tuples(TEXTS, PARAMETERS).map(lambda parts: b"query=%b&%b" % parts)
PATHS = st.sampled_from(
    (b"/sparql",) * 8 + (b"/", b"/sparql/", b"//sparql", b"/health/ready", b"/metrics", b"/%2e%2e")
)
TARGETS = st.one_of(
    st.tuples(PATHS, ASKED | PARAMETERS).map(b"?".join),
    PATHS,
    st.tuples(PATHS, ASKED).map(lambda parts: b"http://elsewhere.example:1%b?%b" % parts),
    RAW.map(lambda raw: b"/" + raw),
    st.sampled_from(
        (b"*", b"/sparql?query=ASK{}#x", b"http://[", b"http://h:99999/sparql", b"x:y", b"/\xff")
    ),
)
HEADERS = st.lists(
    st.one_of(
        st.tuples(
            st.just("Accept"),
            st.lists(st.sampled_from(MEDIA)).map(lambda types: ", ".join(types).encode()),
        ),
        st.tuples(
            st.just("Accept-Encoding"),
            st.sampled_from((b"gzip", b"zstd", b"gzip;q=nan, *;q=1e999", b"br", b"")),
        ),
        st.tuples(st.just("Origin"), st.sampled_from((b"null", b"https://evil.example"))),
        st.tuples(
            st.just("X-Request-ID"), st.sampled_from((b"abc-123", b"two words", b"x" * 9000))
        ),
        st.tuples(st.just("Range"), st.just(b"bytes=5-")),
        st.tuples(st.just("Upgrade"), st.just(b"websocket")),
        st.tuples(
            st.sampled_from(
                (
                    *(
                        "Accept",
                        "Accept-Encoding",
                        "Accept-Language",
                        "Access-Control-Request-Headers",
                        "Cookie",
                    ),
                    *(
                        "Access-Control-Request-Method",
                        "Authorization",
                        "If-None-Match",
                        "If-Modified-Since",
                        "Origin",
                    ),
                    *(
                        "X-Forwarded-For",
                        "X-Request-ID",
                        "Pragma",
                        "Cache-Control",
                        "Via",
                        "X-Anything",
                    ),
                )
            ),
            FIELD,
        ),
    ),
    max_size=4,
).map(tuple)


@st.composite
def requests(draw: st.DrawFn) -> Sent:
    """A request whose framing is right."""
    headers = draw(HEADERS)
    method = draw(st.sampled_from(METHODS[:2]) | st.sampled_from(METHODS))
    if method in ("GET", "HEAD"):
        return Sent(method, draw(TARGETS), headers, None)
    body = draw(st.one_of(ASKED, PARAMETERS, queries().map(str.encode), st.binary(max_size=100)))
    content_type = draw(
        st.one_of(st.sampled_from(TYPES[:1]), st.sampled_from(TYPES), st.just("text/x"))
    )
    charset = draw(
        st.sampled_from(
            (b"",) * 4 + (b"; charset=utf-8", b"; charset=latin-1", b";charset", b'; a="')
        )
    )
    headers += (("Content-Type", content_type.encode() + charset),)
    match draw(st.sampled_from(("", "", "", "gzip", "deflate", "corrupt", "br", "x"))):
        case "gzip" | "deflate" as coding:
            compressor = zlib.compressobj(wbits=31 if coding == "gzip" else 15)
            body = compressor.compress(body) + compressor.flush()
            headers += (("Content-Encoding", coding.encode()),)
        case "corrupt":
            headers += (("Content-Encoding", b"gzip"),)
        case "br" | "x" as coding:
            headers += (("Content-Encoding", coding.encode()),)
    target = draw(st.one_of(st.just(b"/sparql"), TARGETS))
    return Sent(method, target, headers, body)


# --- what holds of each response ------------------------------------------------------------------------------------


def check(sent: Sent, received: Received, *, relayed: bool) -> None:
    identifier = received.headers["X-Request-ID"]
    if identifier is None:  # aiohttp's own refusal of what is no request
        assert received.status in (400, 417)
        return
    assert received.status < 500, received
    ours = [value.decode("latin-1") for name, value in sent.headers if name == "X-Request-ID"]
    if ours and request_id(ours[0]) == ours[0]:
        assert identifier == ours[0]
    assert received.headers["X-Content-Type-Options"] == "nosniff"
    is_page = received.headers["Content-Security-Policy"] == POLICY
    assert is_page or "sandbox" in received.headers["Content-Security-Policy"]
    if sent.method == "HEAD" or received.status in (204, 304):
        assert received.body == b""
    elif received.status >= 400 and is_page:
        assert received.headers["Content-Type"].startswith("text/html")
        assert f"<code>{identifier}</code>".encode() in received.body
    elif received.status >= 400 and not (
        relayed and received.headers.get_content_subtype() != "problem+json"
    ):
        assert received.headers["Content-Type"].startswith("application/problem+json")
        document = json.loads(received.body)
        assert {"title", "status", "detail", "request_id"} <= set(document)
        assert (document["status"], document["request_id"]) == (received.status, identifier)


def simple_query(url: str) -> None:
    with connected(url) as connection:
        target = f"/sparql?messages=rdfm&query={quote(QUERIES[0])}"
        received = connection.exchange(Sent("GET", target.encode(), (), None).encoded())
    assert (received.status, received.body.count(b"# @message\n")) == (200, 3)


@pytest.fixture(scope="module", params=["files", "endpoint"])
def served(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    proxy: Callable[..., str],
    oxigraph_server: Serve,
) -> Iterator[tuple[str, bool]]:
    """The URL of a server that answers still when all is over, and whether it relays."""
    data = tmp_path_factory.mktemp("data") / "people.ttl"
    data.write_text(DATA)
    url = proxy(
        served_directory(data) if request.param == "files" else oxigraph_server(data), limits=LIMITS
    )
    simple_query(url)
    yield url, request.param == "endpoint"
    simple_query(url)


def served_directory(data: Path) -> str:
    import pyoxigraph as ox

    directory = str(data.parent / "store")
    store = ox.Store(directory)
    store.bulk_load(path=str(data))
    store.flush()
    return directory


@given(sent=requests())
@example(
    sent=Sent(
        "POST",
        b"/sparql",
        (("Content-Type", TYPES[0].encode()), ("Content-Encoding", b"gzip")),
        b"no gzip",
    )
)
@example(sent=Sent("POST", b"/sparql", (("Content-Type", b"\xff"),), b"ASK {}"))
@example(
    sent=Sent(
        "GET", b"/metrics", (("Accept", b"application/openmetrics-text; version=1.0.0.\xff"),), None
    )
)
@example(
    sent=Sent(
        "GET",
        b"/sparql?messages=rdfm&query=CONSTRUCT%20WHERE%7B%7DLIMIT%20" + b"9" * 5000,
        (),
        None,
    )
)
@example(sent=Sent("HEAD", b"/sparql?query=ASK%7B%7D", (), None))
def test_every_request_is_answered(served: tuple[str, bool], sent: Sent) -> None:
    url, relays = served
    with connected(url) as connection:
        check(sent, connection.exchange(sent.encoded(), sent.method), relayed=relays)


@given(many=st.lists(requests(), min_size=2, max_size=5))
def test_answers_on_one_connection_are_never_mixed_up(
    served: tuple[str, bool], many: list[Sent]
) -> None:
    url, relays = served
    with connected(url) as connection:
        for number, request in enumerate(many):
            others = tuple(field for field in request.headers if field[0] != "X-Request-ID")
            sent = request._replace(headers=(*others, ("X-Request-ID", b"number-%d" % number)))
            received = connection.exchange(sent.encoded(), sent.method)
            check(sent, received, relayed=relays)
            if received.closes:
                return


@given(garbage=st.binary(min_size=1, max_size=400), target=TARGETS)
def test_what_is_no_http_is_refused_and_the_connection_closed(
    served: tuple[str, bool], garbage: bytes, target: bytes
) -> None:
    """Or it is waited for what is missing, which ends with the connection."""
    url, _ = served
    with connected(url) as connection:
        connection._socket.sendall(b"GET %b %b\r\n\r\n" % (target, garbage))
        connection._socket.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            while connection._socket.recv(1 << 16):
                pass


# --- upstreams ------------------------------------------------------------------------------------------------------

STATUS_LINES = (
    b"200 OK",
    b"200 OK",
    b"200 OK",
    b"206 Part",
    b"204 No",
    b"304 No",
    b"400 Bad",
    b"401 No",
    b"500 x",
    b"600 x",
)
RESPONSE_FIELDS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from((b"Content-Type", b"content-type")),
            st.sampled_from(
                (
                    *(
                        b"application/sparql-results+json",
                        b"application/sparql-results+xml",
                        b"text/turtle",
                    ),
                    *(b"text/html", b"a/b, text/html", b";", b"\xff/\xfe"),
                )
            ),
        ),
        st.tuples(
            st.just(b"Content-Encoding"), st.sampled_from((b"gzip", b"identity", b"br", b"\xff"))
        ),
        st.tuples(st.just(b"Content-Length"), st.sampled_from((b"0", b"5", b"100000", b"x"))),
        st.tuples(st.just(b"Transfer-Encoding"), st.sampled_from((b"chunked", b"x"))),
        st.tuples(
            st.just(b"Location"),
            st.sampled_from((b"/x", b"http://[", b"//h:99999/", b"\xff", b"/a\tb")),
        ),
        st.tuples(
            st.just(b"Retry-After"),
            st.sampled_from((b"100", b"9" * 400, b"1 Jan 99999999999999999999 0:0 GMT")),
        ),
        st.tuples(
            st.sampled_from(
                (b"X-SPARQL-MaxRows", b"X-SQL-State", b"Vary", b"ETag", b"Warning", b"Link", b"X")
            ),
            FIELD | st.just(b"9" * 5000),
        ),
    ),
    max_size=4,
)
BODY = st.one_of(
    st.sampled_from(
        (
            b'{"head":{"vars":["x","y"]},"results":{"bindings":[{"x":{"type":"uri","value":"urn:a"}}]}}',
            b'<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head/><results/></sparql>',
            b"5\r\nhello\r\n0\r\n\r\n",
        )
    ),
    st.binary(max_size=60),
)


@given(
    status=st.sampled_from(STATUS_LINES),
    fields=RESPONSE_FIELDS,
    body=BODY,
    cut=st.none() | st.integers(0, 100),
    query=st.sampled_from(QUERIES[:1] + QUERIES[4:6]),
)
def test_whatever_an_upstream_says(
    scripted: tuple[str, FaultServer],
    status: bytes,
    fields: list[tuple[bytes, bytes]],
    body: bytes,
    cut: int | None,
    query: str,
) -> None:
    """An answer, a problem that is not ours, or an answer that breaks off."""
    url, upstream = scripted
    head = b"".join(b"%b: %b\r\n" % field for field in (*fields, (b"Connection", b"close")))
    upstream.play((b"HTTP/1.1 %b\r\n%b\r\n%b" % (status, head, body))[:cut] or b"x")
    accept = (("Accept", b"application/n-quads;messages=rdfm, */*;q=0.1"),)
    target = f"/sparql?query={quote(query)}".encode()
    with connected(url) as connection:
        try:
            received = connection.exchange(Sent("GET", target, accept, None).encoded())
        except (ConnectionError, http.client.IncompleteRead):
            return
    assert received.status != 500 or b"the server failed" not in received.body
    assert received.headers["X-Request-ID"]
    assert "html" not in received.headers.get("Content-Type", "")


@pytest.fixture(scope="module")
def scripted(proxy: Callable[..., str]) -> Iterator[tuple[str, FaultServer]]:
    server = FaultServer()
    yield proxy(server.url, limits=LIMITS, retries=0), server
    server.close()

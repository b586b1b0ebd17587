"""Endpoints that misbehave, seen by the clients of a server in front of them.

A client that heeds its framing and reads to the end without an error has every message; any other sees an error. And
the server's log and metrics name the reason.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Final
from urllib.parse import urlencode

import pytest
import pytest_asyncio

from construct_messages.server.config import EndpointSettings
from tests.support.engines.servers import Missing, free_port, program, running
from tests.support.http.clients import JSON_BODY, TABLE, VARIABLES
from tests.support.http.fault_server import (
    HOLD,
    JSON,
    PAUSE,
    RESET,
    STALL,
    TSV,
    XML,
    Act,
    Answering,
    Asked,
    FaultServer,
    Script,
    response,
)
from tests.support.http.faults import (
    CASES,
    COMPLETE,
    ENDPOINTS,
    LOG,
    PAGE,
    QUERY,
    READ,
    Case,
    Outcome,
    error,
    log_of,
    redirect,
    refused,
)
from tests.support.http.ledger import Ledger
from tests.support.http.pauses import no_pauses
from tests.support.http.programs import SPARQL_CLIENTS, Broken, Client, is_installed
from tests.support.http.serving import Served, serving
from tests.support.places import ROOT, absent
from tests.support.results.documents import json_document, tsv_document, xml_document
from tests.support.waiting import SECONDS, eventually

# starting the server takes longer than what is tested here
pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

HELD: Final = "-held"
CLIENTS: Final = {name: client for name, client in SPARQL_CLIENTS.items() if is_installed(name)}


async def test_curl_is_among_the_clients() -> None:
    if not is_installed("curl"):
        absent("curl is not installed")


@pytest.fixture(scope="module")
def upstream() -> Iterator[FaultServer]:
    with closing(FaultServer()) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(upstream: FaultServer) -> AsyncIterator[Served]:
    """One server; each endpoint of the table, and the same with logs held back until they are whole."""
    endpoints = {
        f"{name}{suffix}": EndpointSettings(
            source=(upstream.url,),
            **{"retries": 0, "allow_private": True, "buffer_bytes": buffer_bytes, **options},
        )
        for name, options in ENDPOINTS.items()
        for suffix, buffer_bytes in (("", 0), (HELD, 1 << 20))
    }
    for name, retries in (("paged", 0), ("resuming", 2)):
        endpoints[name] = EndpointSettings(
            source=(upstream.url,), allow_private=True, page_size=4, retries=retries
        )
    async with serving(endpoints=endpoints) as server:
        yield server


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def nothing_under_way(served: Served) -> AsyncIterator[None]:
    """A request ends a moment after its client has everything: it is not logged or counted in the next test."""
    yield
    await eventually(lambda: is_idle(served))


def is_idle(served: Served) -> bool:
    """Whether no request is being answered."""
    exposition, _ = served.metrics.exposition(None)
    counts = re.findall(rb"^construct_messages_in_flight\{.*\} (\S+)$", exposition, re.MULTILINE)
    return not any(map(float, counts))


def url_of(served: Served, endpoint: str, **parameters: str) -> str:
    return f"{served.url}/{endpoint}/sparql?{urlencode({'query': QUERY, 'messages': 'rdfm', **parameters})}"


async def seen(client: Client, url: str, log: bytes, outcome: Outcome) -> str:
    """What a client sees, in a word or with a status; and what else came than must, if any did."""
    try:
        received = await client(url, {})
    except Broken as broken:
        return "broken" if log.startswith(broken.body) else f"broken behind {broken.body!r}"
    if received.status == 200:
        return "complete" if received.body == log else f"complete with {received.body!r}"
    saw = f"refused with {received.status}"
    document = json.loads(received.body)
    is_right = (
        received.headers["content-type"].startswith("application/problem+json")
        and received.headers.get("retry-after") == outcome.retry_after
        and document["status"] == received.status
        and outcome.words in document["detail"]
        and "secret" not in document["detail"]
    )
    return saw if is_right else f"{saw}: {received}"


async def all_see(
    clients: Collection[str], url: str, served: Served, upstream: FaultServer, case: Case
) -> dict[str, str]:
    """What each of the clients sees of a case."""
    upstream.play(case.script)
    ledger = Ledger(served)
    seeing = asyncio.gather(*(seen(CLIENTS[name], url, case.log, case.outcome) for name in clients))
    if case.is_held:
        if HELD not in url:
            await ledger.sent(READ * len(clients))
        upstream.go_on.set()
    return dict(zip(clients, await seeing, strict=True))


@pytest.mark.one_in(12)
@pytest.mark.parametrize("held", [False, True], ids=["streamed", "held back"])
@pytest.mark.parametrize(("place", "case"), list(enumerate(CASES.values())), ids=CASES)
async def test_every_client_has_the_whole_log_or_an_error(
    served: Served, upstream: FaultServer, place: int, case: Case, held: bool
) -> None:
    ledger, reason = Ledger(served), case.outcome.reason
    expected = case.outcome.seen(held)
    clients = list(CLIENTS)[place // 2 % 2 :: 2]  # by turns: half of them are processes
    saw = await all_see(
        clients, url_of(served, case.served_by + (HELD if held else "")), served, upstream, case
    )
    assert saw == dict.fromkeys(clients, expected)
    said = {"complete": "complete", "broken": f"aborted:{reason}"}.get(expected, "refused")
    assert await ledger.ended(len(clients)) == {said}
    assert ledger.counted("aborts") == ({reason: len(clients)} if expected == "broken" else {})


# --- cut at every byte ---

SMALL: Final = TABLE[:2]
SMALL_LOG: Final = log_of(SMALL)
SMALL_BODIES: Final = {
    "json": (json_document(VARIABLES, SMALL, separators=(",", ":")), JSON),
    "xml": (xml_document(VARIABLES, SMALL).rstrip(), XML),
    "tsv": (tsv_document(VARIABLES, SMALL), TSV),
}
ERROR: Final = refused("")


CUT: Final = {"refused with 502", "broken"}


def clients_at(place: int, last: int) -> dict[str, Client]:
    """One of two at every place, in turn, and all at some: curl is a process a request."""
    if place % 54 == 0 or place >= last - 2:
        return CLIENTS
    name = ("aiohttp", "HTTP/1.0")[place % 2]
    return {name: CLIENTS[name]}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
@pytest.mark.parametrize("results", SMALL_BODIES)
async def test_an_answer_cut_at_every_byte(
    served: Served, upstream: FaultServer, results: str, framing: str
) -> None:
    wire = response(*SMALL_BODIES[results], framing=framing)
    endpoint = "tsv" if results == "tsv" else "generic"
    # no framing tells that TSV is whole where only the end of the connection ends it
    whole = "refused with 502" if (results, framing) == ("tsv", "close") else "complete"
    ledger, requests = Ledger(served), 0
    for place in range(len(wire) + 1):
        upstream.play(wire[:place])
        clients = clients_at(place, len(wire))
        url = url_of(served, endpoint)
        came = await asyncio.gather(
            *(seen(client, url, SMALL_LOG, ERROR) for client in clients.values())
        )
        requests += len(clients)
        assert set(came) <= ({whole} if place == len(wire) else CUT), place
        if clients is CLIENTS:
            held_back = await seen(
                CLIENTS["aiohttp"], url_of(served, endpoint + HELD), SMALL_LOG, ERROR
            )
            requests += 1
            assert held_back == (whole if place == len(wire) else "refused with 502"), place
    outcomes = await ledger.ended(requests)
    assert outcomes <= {"refused", "aborted:incomplete", "complete"}
    assert ledger.lines().count("complete") == (len(CLIENTS) + 1 if whole == "complete" else 0)
    assert ledger.counted("aborts").get("incomplete", 0) == ledger.lines().count(
        "aborted:incomplete"
    )


# --- answers that are relayed ---


def plain_url(served: Served) -> str:
    return f"{served.url}/generic/sparql?{urlencode({'query': 'SELECT ?s ?o WHERE { ?s <urn:p> ?o }'})}"


@pytest.mark.parametrize("framing", ["chunked", "length"])
async def test_a_relayed_answer_cut_at_every_byte(
    served: Served, upstream: FaultServer, framing: str
) -> None:
    body, content_type = SMALL_BODIES["json"]
    wire = response(body, content_type, framing=framing)
    ledger, requests = Ledger(served), 0
    for place in range(len(wire) + 1):
        upstream.play(wire[:place])
        clients = clients_at(place, len(wire))
        came = await asyncio.gather(
            *(seen(client, plain_url(served), body, ERROR) for client in clients.values())
        )
        requests += len(clients)
        assert set(came) <= ({"complete"} if place == len(wire) else CUT), place
    assert await ledger.ended(requests) == {"refused", "aborted:incomplete", "complete"}
    assert ledger.lines().count("complete") == len(CLIENTS)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param([response(JSON_BODY)[:-20]], id="cut"),
        pytest.param([response(JSON_BODY, framing="length")[:-20]], id="cut before its length"),
        pytest.param(
            [response(JSON_BODY, framing="close"), PAUSE, RESET], id="reset without a length"
        ),
        pytest.param([response(JSON_BODY)[:-5], PAUSE, RESET], id="reset before the last chunk"),
        pytest.param([response(JSON_BODY)[:-5], PAUSE, b"none\r\n"], id="a damaged chunk"),
        pytest.param(
            [response(gzip.compress(JSON_BODY), headers={"Content-Encoding": "gzip"})[:-20]],
            id="gzip",
        ),
    ],
)
async def test_a_relayed_answer_that_breaks(
    served: Served, upstream: FaultServer, answer: list[bytes | Act]
) -> None:
    wire, *behind = answer
    assert isinstance(wire, bytes)
    place = wire.index(b"\r\n\r\n") + 100
    upstream.play([wire[:place], HOLD, wire[place:], *behind])
    ledger = Ledger(served)
    asking = [asyncio.create_task(client(plain_url(served), {})) for client in CLIENTS.values()]
    # each has some 95 bytes of its body
    await eventually(
        lambda: ledger.counted("sent_bytes").get("sent_bytes", 0) > 100 * (len(CLIENTS) - 1)
    )
    upstream.go_on.set()
    assert [type(error) for error in await asyncio.gather(*asking, return_exceptions=True)] == [
        Broken
    ] * len(CLIENTS)
    assert await ledger.ended(len(CLIENTS)) == {"aborted:incomplete"}
    assert ledger.counted("aborts") == {"incomplete": len(CLIENTS)}


HTML: Final = {"Accept": "text/html"}


@pytest.mark.parametrize(
    ("answer", "headers", "status", "body"),
    [
        pytest.param(
            error("400 Bad Request", "Parse error"), {}, 400, b"Parse error", id="refused"
        ),
        pytest.param(
            error("500 Oops", "Virtuoso 42000 Error"), {}, 500, b"Virtuoso 42000 Error", id="failed"
        ),
        pytest.param(error("429 Slow", "later", Retry_After="7"), {}, 429, b"later", id="429"),
        pytest.param(
            [response(b"part", "text/csv", status="206 Partial Content")],
            {},
            206,
            b"part",
            id="a part of the result",
        ),
        pytest.param(
            [response(PAGE.encode(), "text/html")],
            HTML,
            200,
            PAGE.encode(),
            id="a page that was asked for",
        ),
        pytest.param([response(PAGE.encode(), "text/html")], {}, 502, None, id="a page"),
        pytest.param(
            error("404 Not Found", PAGE, "text/html"), {}, 502, None, id="a page with 404"
        ),
        pytest.param(error("500 Oops", PAGE, "text/html"), HTML, 502, None, id="a page with 500"),
        pytest.param(
            error("503 Busy", PAGE, "text/html", Retry_After="7"),
            HTML,
            503,
            None,
            id="a page with 503",
        ),
        pytest.param(error("504 Slow", PAGE, "text/html"), {}, 504, None, id="a page with 504"),
        pytest.param(redirect("http://127.0.0.1:1/"), {}, 502, None, id="redirected to loopback"),
        pytest.param(
            redirect("http://other.example/"), {}, 502, None, id="redirected to another host"
        ),
        pytest.param([b"SSH-2.0-x\r\n\r\n"], {}, 502, None, id="another protocol"),
        pytest.param([RESET], {}, 502, None, id="reset"),
    ],
)
async def test_what_is_relayed(
    served: Served,
    upstream: FaultServer,
    answer: Script,
    headers: dict[str, str],
    status: int,
    body: bytes | None,
) -> None:
    """`body` is the endpoint's own; None: the server's problem document."""
    upstream.play(answer)
    # without a format in the URL, who asks for HTML gets the page of the server
    url = plain_url(served) + ("&format=html" if headers is HTML else "")
    for name, client in CLIENTS.items():
        received = await client(url, headers)
        assert received.status == status, name
        if body is None:
            assert json.loads(received.body)["status"] == status, name
            assert b"secret" not in received.body
        else:
            assert received.body == body, name
        assert received.headers.get("retry-after") == ("7" if status in (429, 503) else None)


async def test_headers_that_are_not_relayed(served: Served, upstream: FaultServer) -> None:
    dropped = {
        "Set-Cookie": "session=secret",
        "Keep-Alive": "timeout=5",
        "Proxy-Authenticate": "Basic",
        "Trailer": "X-Time",
        "Upgrade": "h2c",
        "Strict-Transport-Security": "max-age=1",
        "Access-Control-Allow-Origin": "https://other.example",
        "Location": "http://other.example/",
        "X-Powered-By": "PHP",
    }
    upstream.play(response(JSON_BODY, headers={**dropped, "X-SPARQL-MaxRows": "100"}))
    received = await CLIENTS["aiohttp"](plain_url(served), {})
    assert received.body == JSON_BODY
    assert received.headers["x-sparql-maxrows"] == "100"
    assert not {
        name for name, value in dropped.items() if received.headers.get(name.lower()) == value
    }


# --- pages ---


def pages_with(failure: Callable[[bytes], Script]) -> list[Script | Answering]:
    """Two whole pages of 4, a third that fails, and then whatever is asked for.

    Each page begins with two solutions of the one before.
    """

    def page(asked: Asked) -> bytes:
        limit, offset = map(
            int, re.findall(r"LIMIT (\d+) OFFSET (\d+)$", asked.parameters["query"][0])[0]
        )
        return response(json_document(VARIABLES, TABLE[offset : offset + limit]))

    third = response(json_document(VARIABLES, TABLE[4:8]))
    return [page, page, failure(third), page]


PAGES: Final[dict[str, Callable[[bytes], Script]]] = {
    "cut": lambda wire: [wire[:-20]],
    "cut behind a solution": lambda wire: [wire[: wire.index(b"label 6")], PAUSE],
    "reset": lambda wire: [wire[: wire.index(b"label 6")], PAUSE, RESET],
    "a damaged chunk": lambda wire: [wire[:-5], PAUSE, b"none\r\n"],
    "503": lambda _: error("503 Busy", "later"),
    "429": lambda _: error("429 Slow", "later"),
    "closed": lambda _: [b""],
}


@pytest.mark.parametrize("failure", PAGES.values(), ids=PAGES)
@pytest.mark.parametrize("client", ["aiohttp", "urllib", "HTTP/1.0"])
async def test_a_page_that_fails(
    served: Served, upstream: FaultServer, client: str, failure: Callable[[bytes], Script]
) -> None:
    ledger = Ledger(served)
    upstream.play(*pages_with(failure))
    assert await seen(CLIENTS[client], url_of(served, "paged"), LOG, ERROR) == "broken"
    (outcome,) = await ledger.ended(1)
    assert outcome in ("aborted:incomplete", "aborted:source")
    with no_pauses():  # no pauses
        upstream.play(*pages_with(failure))
        assert await seen(CLIENTS[client], url_of(served, "resuming"), LOG, COMPLETE) == "complete"


# --- several clients ---


async def test_a_stalled_answer_holds_up_nobody_else(served: Served, upstream: FaultServer) -> None:
    upstream.play([response(JSON_BODY)[:300], STALL], response(JSON_BODY))
    ledger = Ledger(served)
    stalled = asyncio.create_task(CLIENTS["aiohttp"](url_of(served, "generic"), {}))
    await ledger.sent(1)
    others = [CLIENTS["aiohttp"](url_of(served, "generic"), {}) for _ in range(10)]
    async with asyncio.timeout(SECONDS):
        assert [received.body for received in await asyncio.gather(*others)] == [LOG] * 10
    assert not stalled.done()
    stalled.cancel()
    await eventually(upstream.left.is_set)
    await ledger.ended(11)
    assert sorted(ledger.lines()) == ["client-left", *["complete"] * 10]


@pytest.mark.parametrize(
    "sent", [0, 20, 300, 700], ids=["nothing", "half a head", "a solution", "some solutions"]
)
@pytest.mark.parametrize("kind", ["messages", "held back", "relayed"])
async def test_a_client_that_leaves_ends_the_request(
    served: Served, upstream: FaultServer, kind: str, sent: int
) -> None:
    upstream.play([response(JSON_BODY)[:sent], STALL])
    ledger = Ledger(served)
    urls = {
        "messages": url_of(served, "generic"),
        "held back": url_of(served, f"generic{HELD}"),
        "relayed": plain_url(served),
    }
    leaving = asyncio.create_task(CLIENTS["aiohttp"](urls[kind], {}))
    await eventually(lambda: upstream.asked)
    await asyncio.sleep(0.05)  # for what was sent
    leaving.cancel()
    await eventually(upstream.left.is_set)
    assert await ledger.ended(1) == {"client-left"}


# --- behind nginx ---


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def nginx(served: Served, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """The same server, behind an nginx that is configured as the documentation says."""
    try:
        executable = program("nginx", "apt-get install nginx-light")
    except Missing as missing:
        absent(str(missing))
    place, port = tmp_path_factory.mktemp("nginx"), free_port()
    (documented,) = re.findall(
        r"```nginx\n(.*?)```", (ROOT / "docs" / "guides" / "production.md").read_text(), re.DOTALL
    )
    locations = documented.replace("http://127.0.0.1:8080", served.url)
    temporary = "".join(
        f"{name}_temp_path {place};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (place / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {place}/pid; events {{}} http {{ access_log off; {temporary}"
        f" large_client_header_buffers 4 32k; server {{ listen 127.0.0.1:{port}; {locations} }} }}"
    )
    command = [
        executable,
        "-p",
        str(place),
        "-c",
        str(place / "nginx.conf"),
        "-e",
        str(place / "error.log"),
    ]
    with running(command, [port], place):
        yield replace(served, url=f"http://127.0.0.1:{port}")


# Of an HTTP/1.0 client nginx closes the connection as if the body were whole: it needs logs that are held back.
BEHIND_NGINX: Final = [name for name in CLIENTS if "HTTP/1.0" not in name]


@pytest.mark.parametrize("held", [False, True], ids=["streamed", "held back"])
@pytest.mark.parametrize(
    "name",
    [
        "a byte at a time",
        "Comunica's error behind the result",
        "json cut, framed by close",
        "a reset",
        "206",
    ],
)
async def test_behind_nginx(
    served: Served, nginx: Served, upstream: FaultServer, name: str, held: bool
) -> None:
    case, clients = CASES[name], CLIENTS if held else BEHIND_NGINX
    url = url_of(nginx, case.served_by + (HELD if held else ""))
    saw = await all_see(clients, url, served, upstream, case)
    assert saw == dict.fromkeys(clients, case.outcome.seen(held))

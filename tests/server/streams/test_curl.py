"""LDN for RDF streams, asked by curl: one or more requests for each behaviour that the paper describes.

The rows are those of the paper, in its order: 1 to 4 discovery, 5 to 7 input, output and inbox, 8 to 12 elements,
13 queries, 14 retention.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.http.streams import StreamsServer, serving_streams
from tests.support.places import absent
from tests.support.streams import numbered
from tests.support.waiting import SECONDS

pytestmark = [pytest.mark.engine, pytest.mark.slow]

JSON_LD, TURTLE = "Accept: application/ld+json", "Accept: text/turtle"
LDP, RSP, CM = (
    "http://www.w3.org/ns/ldp#",
    "http://w3id.org/rsp/streams#",
    "https://w3id.org/construct-messages#",
)
PAPER = json.dumps(
    {
        "@context": {"prov": "http://www.w3.org/ns/prov#"},
        "@id": "urn:g",
        "prov:generatedAtTime": "2016-05-01T11:04:59Z",
        "@graph": [{"@id": "urn:s", "urn:p": {"@id": "urn:o"}}],
    }
)


@dataclass
class Heard:
    """What curl printed: the status, the fields of the head in small letters, and the body."""

    status: int
    head: dict[str, str]
    body: str


async def curl(url: str, *arguments: str) -> Heard:
    program = shutil.which("curl")
    if program is None:
        absent("curl is absent")
    command = [
        program,
        "--silent",
        "--show-error",
        "--include",
        "--max-time",
        str(SECONDS),
        *arguments,
        url,
    ]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    head, _, body = out.decode().partition("\r\n\r\n")
    start, *fields = head.split("\r\n")
    said: dict[str, str] = {}
    for field in fields:
        name, _, value = field.partition(": ")
        said[name.lower()] = f"{said[name.lower()]}, {value}" if name.lower() in said else value
    return Heard(int(start.split()[1]), said, body)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[StreamsServer]:
    """A server of the stream `a` with three elements, and of `short`, which has lost two of three."""
    async with serving_streams(tmp_path / "streams.db") as server:
        await server.ask("PUT", "/streams/a")
        await server.ask("PUT", "/streams/short", b'{"retainedElements": 1}', "application/json")
        for stream in ("a", "short"):
            await server.publish([numbered(1), numbered(2), numbered(3)], stream=stream)
        yield server


Row = tuple[str, str, list[str], int, dict[str, str], str]
POST_TURTLE = ["--header", "Content-Type: text/turtle", "--data-raw", "<urn:s> <urn:p> 1 ."]
ROWS: list[Row] = [
    # row, path, arguments, status, patterns of fields of the head, pattern of the body
    (
        "1 list of streams",
        "",
        ["-H", JSON_LD],
        200,
        {"etag": '"', "cache-control": "no-cache"},
        "/streams/a",
    ),
    ("1 no such stream", "/none", [], 404, {"content-type": "application/problem"}, "no stream"),
    (
        "2 body",
        "/a",
        ["-H", JSON_LD],
        200,
        {"content-type": "application/ld"},
        r'"input": "http\S+/streams/a/input"',
    ),
    ("2 body, output", "/a", [], 200, {"vary": "Accept"}, r'"output": "http\S+/streams/a/output"'),
    ("2 body, Turtle", "/a", ["-H", TURTLE], 200, {"content-type": "text/turtle"}, "rsp:input"),
    (
        "2 body, N-Triples",
        "/a",
        ["-H", "Accept: application/n-triples"],
        200,
        {"etag": '"'},
        f"<{RSP}output>",
    ),
    ("2 body, RDF/XML", "/a", ["-H", "Accept: application/rdf+xml"], 200, {}, "rdf:RDF"),
    ("2 body, none", "/a", ["-H", "Accept: image/png"], 406, {}, '"offered"'),
    (
        "3 head",
        "/a",
        ["--head"],
        200,
        {"link": f'rel="{LDP}inbox".*rel="{RSP}input".*rel="{RSP}output"'},
        "^$",
    ),
    (
        "4 push",
        "/a",
        ["--head"],
        200,
        {"link": f'/events>; rel="{CM}push".*/socket>; rel="{CM}websocket"'},
        "^$",
    ),
    (
        "4 event stream",
        "/a",
        [],
        200,
        {"link": f'/ldes>; rel="{CM}ldes"'},
        r'"ldes": "http\S+/ldes"',
    ),
    (
        "5 options",
        "/a/input",
        ["-X", "OPTIONS"],
        204,
        {"allow": "^POST, OPTIONS$", "accept-post": "text/turtle"},
        "^$",
    ),
    ("5 get", "/a/input", [], 405, {"allow": "POST"}, ""),
    ("5 head", "/a/input", ["--head"], 405, {"allow": "POST"}, "^$"),
    ("6 post", "/a/output", POST_TURTLE, 405, {"allow": "GET, HEAD"}, ""),
    ("6 options", "/a/output", ["-X", "OPTIONS"], 204, {"allow": "^GET, HEAD, OPTIONS$"}, "^$"),
    ("7 get", "/a/inbox", ["-H", JSON_LD], 200, {}, r'"@id": "http\S+/streams/a/inbox"'),
    (
        "7 contains",
        "/a/inbox",
        [],
        200,
        {"content-type": "application/ld"},
        r'"contains": \[\s+"http\S+/output/1"',
    ),
    ("7 head", "/a/inbox", ["--head"], 200, {"etag": '"'}, "^$"),
    (
        "7 options",
        "/a/inbox",
        ["-X", "OPTIONS"],
        204,
        {"allow": "GET, HEAD, POST", "accept-post": "ld.json"},
        "^$",
    ),
    ("7 post", "/a/inbox", POST_TURTLE, 201, {"location": "/streams/a/output/4$"}, ""),
    (
        "8 the element of the paper",
        "/a/input",
        ["-H", "Content-Type: application/ld+json", "--data-raw", PAPER],
        201,
        {"location": "/streams/a/output/4$"},
        '"elements": 1',
    ),
    ("8 Turtle", "/a/input", POST_TURTLE, 201, {"location": "/streams/a/output/4$"}, ""),
    ("8 a form", "/a/input", ["--data", "x=y"], 415, {"accept-post": "application/ld.json"}, ""),
    (
        "8 malformed",
        "/a/input",
        [*POST_TURTLE[:2], "--data-raw", "<urn:s> <urn:p> ."],
        422,
        {},
        '"line": 1',
    ),
    (
        "9 list",
        "/a/output",
        ["-H", JSON_LD],
        200,
        {"etag": '"'},
        r'"contains": \[(\s+"http\S+output/\d",?){3}\s+\]',
    ),
    ("9 list, Turtle", "/a/output", ["-H", TURTLE], 200, {"vary": "Accept"}, "ldp:contains"),
    ("9 list, head", "/a/output", ["--head"], 200, {"cache-control": "no-cache"}, "^$"),
    (
        "10 element",
        "/a/output/2",
        ["-H", TURTLE],
        200,
        {"cache-control": "immutable", "etag": '"'},
        '"x2"',
    ),
    (
        "10 element, head",
        "/a/output/2",
        ["--head"],
        200,
        {"content-length": "^[1-9]", "last-modified": "GMT$"},
        "^$",
    ),
    ("10 never", "/a/output/4", [], 404, {}, "its last is 3"),
    (
        "11 the last",
        "/a/output?last=2",
        ["-H", JSON_LD],
        200,
        {"rdf-stream-after": "^1$"},
        '"x2"(.|\n)*"x3"',
    ),
    (
        "11 since",
        "/a/output?since=2000-01-01T00:00:00Z",
        ["-H", TURTLE],
        200,
        {"rdf-stream-after": "^0$"},
        '"x1"',
    ),
    (
        "11 after",
        "/a/output?after=2",
        ["-H", "Accept: application/n-quads; messages=rdfm"],
        200,
        {},
        '"x3"',
    ),
    (
        "11 head",
        "/a/output?last=2",
        ["--head"],
        200,
        {"rdf-stream-after": "^1$", "etag": '"'},
        "^$",
    ),
    ("11 no number", "/a/output?last=x", [], 400, {}, "write it as last="),
    ("12 push, head", "/a/events", ["--head"], 200, {"content-type": "text/event-stream"}, "^$"),
    (
        "12 push, type",
        "/a/events",
        ["--head"],
        200,
        {"rdf-message-content-type": "^application/n-quads$"},
        "^$",
    ),
    ("12 push, binary", "/a/events?format=jelly", [], 406, {}, "WebSocket"),
    ("12 socket", "/a/socket", [], 426, {"upgrade": "websocket"}, "ws:"),
    (
        "13 options",
        "/a/query",
        ["-X", "OPTIONS"],
        204,
        {"allow": "POST", "accept-post": "sparql-query"},
        "^$",
    ),
    ("14 gone", "/short/output/2", [], 410, {}, "removed by retention"),
    ("14 kept", "/short/output/3", [], 200, {"etag": '"'}, "x3"),
    ("14 list", "/short/output", [], 200, {}, r'"contains": \[\s+"http\S+/output/3"\s+\]'),
    ("14 sequence", "/short/output?after=0", [], 410, {}, "read from 3 on"),
    (
        "14 event stream",
        "/short/ldes",
        ["--head"],
        200,
        {"etag": '"', "cache-control": "no-cache"},
        "^$",
    ),
]


@pytest.mark.parametrize(
    ("path", "arguments", "status", "head", "body"),
    [row[1:] for row in ROWS],
    ids=[row[0] for row in ROWS],
)
async def test_rows(
    served: StreamsServer,
    path: str,
    arguments: list[str],
    status: int,
    head: dict[str, str],
    body: str,
) -> None:
    heard = await curl(f"{served.url}/streams{path}", *arguments)
    assert heard.status == status, heard
    for name, pattern in head.items():
        assert re.search(pattern, heard.head.get(name, "")), (name, heard)
    assert re.search(body, heard.body), heard


async def test_row_12_an_event(served: StreamsServer) -> None:
    """It comes at once, while the answer goes on."""
    command = [
        "--no-buffer",
        "--silent",
        "--header",
        "Last-Event-ID: 2",
        f"{served.url}/streams/a/events",
    ]
    process = await asyncio.create_subprocess_exec(
        shutil.which("curl") or absent("curl is absent"), *command, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    async with asyncio.timeout(SECONDS):
        lines = [(await process.stdout.readline()).decode() for _ in range(5)]
    assert lines[2:4] == ["event: rdf-message\n", "id: 3\n"]
    assert lines[4].startswith("data: <urn:s>")
    process.terminate()
    await process.communicate()


CONDITIONAL = [
    "",
    "/a",
    "/a/output",
    "/a/inbox",
    "/a/output?last=2",
    "/a/output/1",
    "/a/ldes",
    "/a/ldes/1-1000",
]


@pytest.mark.parametrize("path", CONDITIONAL)
async def test_what_is_known_is_not_sent_again(served: StreamsServer, path: str) -> None:
    """GET and HEAD have the same head; 304 where the entity tag is known, and another tag once there is more."""
    url = f"{served.url}/streams{path}"
    first, head = await curl(url), await curl(url, "--head")
    for name in ("etag", "cache-control", "content-type", "vary"):
        assert first.head[name] == head.head[name]
    for arguments in ([], ["--head"]):
        known = await curl(url, *arguments, "--header", f"If-None-Match: {first.head['etag']}")
        assert (known.status, known.body) == (304, "")
        assert [known.head[name] for name in ("etag", "cache-control", "vary")] == [
            first.head[name] for name in ("etag", "cache-control", "vary")
        ]
    await served.publish([numbered(4)])
    await served.ask("PUT", "/streams/b")
    again = await curl(url, "--header", f"If-None-Match: {first.head['etag']}")
    # the root says when pages begin, and when full ones end
    assert again.status == (304 if path in ("/a/output/1", "/a/ldes") else 200)


@pytest.mark.parametrize("path", CONDITIONAL)
async def test_what_is_wanted_as_it_was(served: StreamsServer, path: str) -> None:
    url = f"{served.url}/streams{path}"
    etag = (await curl(url)).head["etag"]
    for wanted, status in (
        (etag, 200),
        (f'"x", {etag}', 200),
        ("*", 200),
        ('"x"', 412),
        (f"W/{etag}", 412),
    ):
        assert (await curl(url, "--header", f"If-Match: {wanted}")).status == status
    # it is looked at first (RFC 9110, section 13.2.2)
    assert (await curl(url, "-H", 'If-Match: "x"', "-H", f"If-None-Match: {etag}")).status == 412


async def test_conditions_of_put(served: StreamsServer) -> None:
    async def put(name: str, condition: str) -> int:
        return (
            await curl(f"{served.url}/streams/{name}", "-X", "PUT", "--header", condition)
        ).status

    assert await put("a", "If-None-Match: *") == 412
    assert await put("new", "If-Match: *") == 412
    assert await put("new", 'If-Match: "x"') == 412
    assert await put("new", "If-None-Match: *") == 201
    assert await put("a", 'If-Match: "x"') == 412
    etag = (await curl(f"{served.url}/streams/a", "-H", TURTLE)).head["etag"]
    assert await put("a", f"If-Match: {etag}") == 204
    assert await put("a", "If-Match: *") == 204


@pytest.mark.parametrize(("program", "extension"), [("gzip", ".gz"), ("zstd", ".zst")])
async def test_files_that_other_programs_have_compressed(
    served: StreamsServer, tmp_path: Path, program: str, extension: str
) -> None:
    if shutil.which(program) is None:
        absent(f"{program} is absent")
    log = tmp_path / "log.nq"
    log.write_text("".join(f"# @message\n<urn:s> <urn:p> <urn:{n}> .\n" for n in range(3_000)))
    packing = await asyncio.create_subprocess_exec(program, "-9", "-q", str(log))
    assert await packing.wait() == 0
    arguments = ["-H", f"Content-Encoding: {program}", "--data-binary", f"@{log}{extension}"]
    arguments += ["-H", "Content-Type: application/n-quads; messages=rdfm"]
    answer = await curl(
        f"{served.url}/streams/a/input", "-H", "Accept: application/x-ndjson", *arguments
    )
    assert answer.status == 200
    lines = [json.loads(line) for line in answer.body.splitlines() if line.strip()]
    assert [line["messages"] for line in lines][-1] == 3_000
    assert lines[-1]["last"].endswith("/3003")

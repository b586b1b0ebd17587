"""Behind nginx, set up as the manual says: messages come as they are made, and half an answer is never a whole one."""

import asyncio
import http.client
import json
import shutil
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from tests.support.docs import BLOCKS
from tests.support.engines.servers import free_port
from tests.support.http.command import HALF, QUERY, WHOLE, Held, Running, begin, drain, refuses
from tests.support.http.fault_server import FaultServer
from tests.support.places import absent

pytestmark = [pytest.mark.process, pytest.mark.engine, pytest.mark.slow]

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
PLACES = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


@pytest.fixture
def upstream() -> Iterator[FaultServer]:
    server = FaultServer()
    yield server
    server.close()


Behind = Callable[..., tuple[str, Running]]


@pytest.fixture
def behind(tmp_path: Path, upstream: FaultServer) -> Iterator[Behind]:
    """Starts the server over the scripted endpoint, and nginx before it; gives nginx's URL and the server."""
    if NGINX is None:
        absent("nginx is not installed: apt-get install nginx-light")
    started: list[Running] = []
    proxies: list[subprocess.Popen[bytes]] = []

    def start(**settings: str) -> tuple[str, Running]:
        variables = {f"CONSTRUCT_MESSAGES_SERVER_{name}": value for name, value in settings.items()}
        running = Running(
            tmp_path,
            "--source",
            upstream.url,
            CONSTRUCT_MESSAGES_SERVER_TRUST_FORWARDED="true",
            **variables,
        )
        started.append(running)
        url = f"http://127.0.0.1:{free_port()}"
        (block,) = (block for block in BLOCKS if block.language == "nginx")
        assert "http://127.0.0.1:8080;" in block.text
        places = "".join(f"{place}_temp_path {tmp_path}/{place};\n" for place in PLACES)
        (tmp_path / "nginx.conf").write_text(
            f"daemon off; pid {tmp_path}/pid; error_log {tmp_path}/error.log;\nevents {{}}\n"
            f"http {{ access_log off; {places} server {{ listen {urlsplit(url).netloc};\n"
            f"{block.text.replace('http://127.0.0.1:8080', running.url)}}}}}\n"
        )
        proxies.append(
            subprocess.Popen(
                [str(NGINX), "-e", tmp_path / "error.log", "-c", tmp_path / "nginx.conf"]
            )
        )
        deadline = time.monotonic() + 120
        while refuses(url):
            assert proxies[-1].poll() is None, (tmp_path / "error.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return url, running

    yield start
    for proxy in proxies:
        proxy.terminate()
        proxy.wait()
    for running in started:
        running.kill()


def test_messages_come_as_they_are_made(behind: Behind, upstream: FaultServer) -> None:
    held = Held(WHOLE[:HALF], WHOLE[HALF:])
    upstream.play(held)
    url, running = behind()
    connection, came = begin(url)  # which returns with the first message, while the source is held
    held.go.set()
    with connection:
        came += drain(connection)
    assert came.count(b"# @message\n") == 20
    running.process.terminate()
    assert running.wait() == 0
    (line,) = running.events("request")
    assert line["client"] == "127.0.0.1"
    assert len(line["request_id"]) == 32  # nginx's own


def test_half_an_answer_is_an_error(behind: Behind, upstream: FaultServer) -> None:
    upstream.play([WHOLE[:HALF]])
    url, _ = behind(ENDPOINT__RETRIES="0")
    client = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)
    client.request("GET", f"/sparql?{QUERY}")
    response = client.getresponse()
    assert response.status == 200
    with pytest.raises(http.client.IncompleteRead):
        response.read()
    client.close()


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_an_answer_held_back_is_whole_or_refused(
    behind: Behind, upstream: FaultServer, version: str
) -> None:
    url, _ = behind(ENDPOINT__RETRIES="0", ENDPOINT__BUFFER_BYTES="1000000")
    address = urlsplit(url)
    for script, status, messages in ((WHOLE[:HALF], b"502", 0), (WHOLE, b"200", 20)):
        upstream.play([script])
        with socket.create_connection(
            (str(address.hostname), int(address.port or 0)), timeout=120
        ) as connection:
            connection.sendall(
                f"GET /sparql?{QUERY} HTTP/{version}\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
            )
            head, _, body = drain(connection).partition(b"\r\n\r\n")
        assert head.split()[1] == status
        assert body.count(b"# @message\n") == messages
        assert f"content-length: {len(body)}".encode() in head.lower()


def test_a_long_query_by_get(behind: Behind, upstream: FaultServer) -> None:
    """Issue 13, 24: nginx takes 8 KiB for a request line unless it is told more."""
    upstream.play([WHOLE])
    url, _ = behind()
    client = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)
    client.request("GET", f"/sparql?{QUERY}&x={'y' * 100_000}")
    answer = client.getresponse()
    assert answer.status == 200
    assert answer.read().count(b"# @message\n") == 20
    client.close()


def test_metrics_are_not_for_the_public(behind: Behind) -> None:
    url, running = behind()
    for asked, status in ((url, 403), (running.url, 200)):
        client = http.client.HTTPConnection(urlsplit(asked).netloc, timeout=120)
        client.request("GET", "/metrics")
        assert client.getresponse().status == status
        client.close()


def test_streams_are_followed_over_websockets(behind: Behind, tmp_path: Path) -> None:
    async def follow(url: str) -> str:
        async with aiohttp.ClientSession() as client:
            async with client.put(f"{url}/streams/a") as made:
                assert made.status == 201
            async with client.ws_connect(f"{url}/streams/a/socket?after=0") as following:
                body, turtle = "<urn:s> <urn:p> <urn:o> .\n", {"Content-Type": "text/turtle"}
                async with client.post(
                    f"{url}/streams/a/input", data=body, headers=turtle
                ) as published:
                    assert published.status == 201
                return await following.receive_str(timeout=120)

    url, _ = behind(STREAMS__FILE=str(tmp_path / "streams.db"), STREAMS__PUBLISH="allow")
    assert asyncio.run(follow(url)) == "<urn:s> <urn:p> <urn:o> .\n"


async def test_a_log_is_acknowledged_on_the_way(behind: Behind, tmp_path: Path) -> None:
    url, _ = behind(STREAMS__FILE=str(tmp_path / "streams.db"))
    acknowledged = asyncio.Event()

    async def log() -> AsyncIterator[bytes]:
        yield b"# @message\n<urn:s> <urn:p> 1 .\n# @message\n"
        await acknowledged.wait()
        yield b"<urn:s> <urn:p> 2 .\n"

    headers = {
        "Content-Type": "text/turtle; messages=rdfm",
        "Accept": "application/x-ndjson",
    }
    async with asyncio.timeout(120), aiohttp.ClientSession() as session:
        async with session.put(f"{url}/streams/a") as made:
            assert made.status == 201
        async with session.post(f"{url}/streams/a/input", data=log(), headers=headers) as response:
            counts = []
            async for line in response.content:
                if line.strip():
                    counts.append(json.loads(line)["messages"])
                    acknowledged.set()
    assert counts == [1, 2]

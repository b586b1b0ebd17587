"""How much a server of streams does at once: past each bound 503 with Retry-After, and nobody else waits for long."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from construct_messages.logs.checking import Checker
from construct_messages.rdf.message import Message
from construct_messages.server.streams.served import StreamLimits
from construct_messages.streams import StreamStore, open_store
from tests.support.http.command import Running
from tests.support.http.streams import Answer, StreamsServer, serving_streams
from tests.support.streams import numbered
from tests.support.waiting import SECONDS, eventually

BODY = b"<urn:s> <urn:p> 1 ."
AT_ONCE = {"concurrency": 1, "queue_seconds": 0.0}


def bounds_of(server: StreamsServer) -> StreamLimits:
    return server.streams.bounds


def is_busy(answer: Answer) -> bool:
    return (
        answer.status == 503 and int(answer.headers["Retry-After"]) >= 1 and "hint" in answer.json
    )


async def post(server: StreamsServer, body: bytes | AsyncIterator[bytes] = BODY) -> int:
    headers = {"Content-Type": "text/turtle"}
    async with server.client.post(
        f"{server.url}/streams/a/input", data=body, headers=headers
    ) as response:
        return response.status


@pytest.mark.slow
async def test_slow_readers_keep_others_from_reading_only(tmp_path: Path) -> None:
    with open_store(tmp_path / "streams.db") as store:
        store.create("a")
        store.append_all("a", [numbered(number, size=1_000_000) for number in range(30)])
    async with serving_streams(tmp_path / "streams.db", **AT_ONCE) as server:
        # more than sockets hold: it is answered for as long as nobody reads
        slow = await server.client.get(f"{server.url}/streams/a/output?after=0")
        assert slow.status == 200
        for path in ("", "/a", "/a/output", "/a/inbox", "/a/output/1", "/a/ldes", "/a/ldes/1-1000"):
            assert is_busy(await server.ask("GET", f"/streams{path}")), path
        assert await post(server) == 201
        following = await server.client.get(f"{server.url}/streams/a/events")
        assert following.status == 200, "followers have a bound of their own"
        following.close()
        slow.close()
        read = [await server.ask("GET", "/streams/a") for _ in range(1)]
        while is_busy(read[-1]):  # until the server sees that its client has left
            read.append(await server.ask("GET", "/streams/a"))
        assert read[-1].status == 200


async def test_publications_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written, appending = asyncio.Event(), StreamStore.aappend_all

    async def hold(*arguments: object, **options: object) -> range:
        await written.wait()
        return await appending(*arguments, **options)  # type: ignore[arg-type] # as it was called

    async with serving_streams(tmp_path / "streams.db", **AT_ONCE) as server:
        await server.ask("PUT", "/streams/a")
        monkeypatch.setattr(StreamStore, "aappend_all", hold)
        first = asyncio.create_task(post(server))
        await eventually(lambda: bounds_of(server).body_bytes == len(BODY))
        assert is_busy(await server.ask("POST", "/streams/a/input", BODY, "text/turtle"))
        assert is_busy(await server.ask("PUT", "/streams/b"))
        assert is_busy(await server.ask("DELETE", "/streams/a"))
        assert (await server.ask("GET", "/streams/a")).status == 200, (
            "readers have places of their own"
        )
        written.set()
        assert await first == 201
        assert await post(server) == 201
        assert bounds_of(server).body_bytes == 0


async def test_bodies_together(tmp_path: Path) -> None:
    """A body that trickles in takes memory as it comes, and no place."""
    rest = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"#" + b"x" * 60_000
        await rest.wait()
        yield b"\n" + BODY

    async with serving_streams(tmp_path / "streams.db", bodies_bytes=100_000, **AT_ONCE) as server:
        await server.ask("PUT", "/streams/a")
        first = asyncio.create_task(post(server, slow()))
        await eventually(lambda: bounds_of(server).body_bytes > 60_000)
        assert await post(server) == 201, "there is room for a small one"
        assert is_busy(
            await server.ask("POST", "/streams/a/input", b"#" + b"x" * 60_000, "text/turtle")
        )
        rest.set()
        assert await first == 201
        assert await post(server, b"#" + b"x" * 60_000 + b"\n" + BODY) == 201
        assert bounds_of(server).body_bytes == 0


async def test_a_long_log_is_made_ready_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked, check = set(), Checker.check

    def note(self: Checker, message: Message) -> None:
        checked.add(threading.current_thread())
        check(self, message)

    monkeypatch.setattr(Checker, "check", note)
    async with serving_streams(tmp_path / "streams.db") as server:
        await server.ask("PUT", "/streams/a")
        assert (await server.publish([numbered(number) for number in range(2000)])).status == 201
    assert threading.main_thread() not in checked


@pytest.mark.slow
@pytest.mark.process
def test_the_memory_of_bodies(tmp_path: Path) -> None:
    """Eight publishers of 12 MiB each, with room for one at a time: they take turns, and memory is that of one."""
    log = b"".join(
        b'# @message\n<urn:s> <urn:p> "%s%d" .\n' % (b"x" * 1000, number)
        for number in range(12_000)
    )
    server = Running(
        tmp_path,
        "--streams",
        str(tmp_path / "streams.db"),
        CONSTRUCT_MESSAGES_SERVER_STREAMS__BODIES_BYTES=str(16 << 20),
        CONSTRUCT_MESSAGES_SERVER_STREAMS__IDLE_SECONDS="300",
    )
    try:
        stream = f"{server.url}/streams/a"
        urlopen(Request(stream, method="PUT")).close()

        def publish(_: int) -> int:
            """Sends the log until it is taken; gives how often it was refused."""
            for refused in count():
                request = Request(
                    f"{stream}/input", log, {"Content-Type": "application/n-quads; messages=rdfm"}
                )
                try:
                    urlopen(request, timeout=SECONDS).close()
                except HTTPError as error:
                    with error:
                        if error.code != 503 or not error.headers["Retry-After"]:
                            raise
                except (
                    OSError
                ):  # the answer is lost where the server stops to read before all is sent
                    pass
                else:
                    return refused
            raise AssertionError

        with ThreadPoolExecutor(8) as threads:
            assert sum(threads.map(publish, range(8))) > 0, "some had to wait"
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        (peak,) = (
            int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")
        )
        assert peak < 400 << 10, "KiB"
    finally:
        server.kill()

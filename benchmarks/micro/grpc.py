"""Streams by Jelly's gRPC service: our server and client, a process each, and grpclib alone with the same bytes.

`python -m benchmarks micro grpc`. Frames of about 600 bytes, from a store on disk to elements, and the other way round.
What grpclib sends and receives are frames that were written before, one message of gRPC each, by its own `Channel`:
once from and to its own `Server`, which stores nothing, and once from and to our server, where the ratio is that of the
clients alone. All are in the same run, in turn, as the machine may do other work.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import Request, urlopen

from grpclib.client import Channel, StreamUnaryMethod, UnaryStreamMethod
from grpclib.const import Cardinality, Handler
from grpclib.encoding.base import CodecBase
from grpclib.server import Server as GrpclibServer
from grpclib.server import Stream

from benchmarks.harness import Figure, report
from benchmarks.micro.serving import listening
from construct_messages import Message, Quad, iri, literal
from construct_messages.feeds import publish, subscribe
from construct_messages.feeds.delivery import BATCH
from construct_messages.logs.jelly.encoder import FrameWriter
from construct_messages.logs.jelly.service import (
    PREFERRED_OPTIONS,
    PUBLISH,
    SUBSCRIBE,
    RdfStreamSubscribe,
)
from construct_messages.rdf.wire import CallMetadata

_SAME = "the same frames by grpclib alone"


def message(number: int) -> Message:
    """A message of five quads, whose frame has about 600 bytes."""
    return Message(
        [
            Quad(
                iri(f"http://example.org/thing/{number}"),
                iri(f"http://example.org/property/{each}"),
                literal(f"{number} {each} {'x' * 97}"),
            )
            for each in range(5)
        ]
    )


def frames(total: int) -> list[bytes]:
    """The frames of a stream of such messages."""
    writer = FrameWriter(PREFERRED_OPTIONS, {})
    return [writer.write(message(number)) for number in range(total)]


# --- grpclib alone ---


class Bytes(CodecBase):
    """Messages as they are."""

    __content_subtype__ = "proto"

    def encode(self, message: bytes, message_type: type[bytes]) -> bytes:  # noqa: ARG002 - the library's
        return message

    def decode(self, data: bytes, message_type: type[bytes]) -> bytes:  # noqa: ARG002 - the library's
        return data


class Raw:
    """The service, which sends frames that it has and forgets those that it gets."""

    def __init__(self, total: int) -> None:
        self._frames = frames(total)

    async def subscribe(self, stream: Stream[bytes, bytes]) -> None:
        """Sends all frames."""
        await stream.recv_message()
        for frame in self._frames:
            await stream.send_message(frame)

    async def publish(self, stream: Stream[bytes, bytes]) -> None:
        """Takes frames, and counts them."""
        count = sum([1 async for _ in stream])
        await stream.send_message(str(count).encode())

    def __mapping__(self) -> dict[str, Handler]:
        return {
            SUBSCRIBE: Handler(self.subscribe, Cardinality.UNARY_STREAM, bytes, bytes),
            PUBLISH: Handler(self.publish, Cardinality.STREAM_UNARY, bytes, bytes),
        }


async def serve_raw(total: int) -> None:
    """Serves until the process is ended; prints the port."""
    server = GrpclibServer([Raw(total)], codec=Bytes())
    await server.start("127.0.0.1", 0)
    assert server._server is not None
    (bound,) = server._server.sockets  # type: ignore[attr-defined] # asyncio's own class has them
    print(bound.getsockname()[1], flush=True)
    await server.wait_closed()


@contextmanager
def raw_server(total: int) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """The port of a server by grpclib alone, and its process."""
    command = [sys.executable, "-m", __spec__.name, "--raw", "--messages", str(total)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline()), process
        finally:
            process.terminate()


async def raw_subscribe(port: int, total: int, topic: str | None = None) -> float:
    """How long it takes to get the frames; those of a topic from our server."""
    request: bytes = b""
    metadata: dict[str, str | bytes] = {}
    if topic is not None:
        request = RdfStreamSubscribe(topic, PREFERRED_OPTIONS.encode()).encode()
        metadata = {str(CallMetadata.AFTER): "0", str(CallMetadata.FOLLOW): "false"}
    async with Channel("127.0.0.1", port, codec=Bytes()) as channel:
        started, count = time.perf_counter(), 0
        method = UnaryStreamMethod[bytes, bytes](channel, SUBSCRIBE, bytes, bytes)
        async with method.open(metadata=metadata) as stream:
            await stream.send_message(request, end=True)
            async for _ in stream:
                count += 1
        seconds = time.perf_counter() - started
    if count != total:
        raise SystemExit(f"{count} frames of {total} came")
    return seconds


async def raw_publish(port: int, sent: Sequence[bytes]) -> float:
    """How long it takes to send the frames."""
    async with Channel("127.0.0.1", port, codec=Bytes()) as channel:
        started = time.perf_counter()
        method = StreamUnaryMethod[bytes, bytes](channel, PUBLISH, bytes, bytes)
        async with method.open() as stream:
            for frame in sent:
                await stream.send_message(frame)
            await stream.end()
            reply = await stream.recv_message()
        seconds = time.perf_counter() - started
    if reply != str(len(sent)).encode():
        raise SystemExit(f"{reply!r} frames of {len(sent)} came")
    return seconds


async def raw_publish_batches(port: int, batches: Sequence[Sequence[bytes]], topic: str) -> float:
    """How long it takes to send frames to our server, a call with a key for each batch."""
    async with Channel("127.0.0.1", port, codec=Bytes()) as channel:
        started = time.perf_counter()
        method = StreamUnaryMethod[bytes, bytes](channel, PUBLISH, bytes, bytes)
        for number, batch in enumerate(batches):
            metadata: dict[str, str | bytes] = {
                str(CallMetadata.TOPIC): topic,
                str(CallMetadata.KEY): f"raw-{number}",
            }
            async with method.open(metadata=metadata) as stream:
                for frame in batch:
                    await stream.send_message(frame)
                await stream.end()
                await stream.recv_message()
        return time.perf_counter() - started


# --- ours ---


@contextmanager
def served(folder: Path, port: int) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The URL of a server of streams by HTTP, and its process; it has gRPC at the port."""
    command = [
        *(sys.executable, "-m", "construct_messages", "serve", "--bind", "127.0.0.1:0"),
        *("--streams", str(folder / "streams.db"), "--grpc", f"127.0.0.1:{port}"),
    ]
    with listening(command, os.environ) as (url, process):
        yield url, process


async def our_publish(url: str, messages: Sequence[Message]) -> float:
    """How long it takes until all messages are on disk."""
    started = time.perf_counter()
    await publish(messages, url)
    return time.perf_counter() - started


async def our_subscribe(url: str, total: int) -> float:
    """How long it takes to get the elements."""
    started, count = time.perf_counter(), 0
    async with aclosing(subscribe(url, follow=False)) as elements:
        async for _ in elements:
            count += 1
    seconds = time.perf_counter() - started
    if count != total:
        raise SystemExit(f"{count} elements of {total} came")
    return seconds


def free_port() -> int:
    """A port that nothing listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def cpu_seconds(pid: int) -> float:
    """What a process has used of the processors."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Cost:
    """What a run took.

    Args:
        seconds: wall time.
        server, client: seconds of CPU of each side.
    """

    seconds: float
    server: float
    client: float

    def described(self, total: int) -> str:
        """The CPU of both sides for each frame."""
        return f"CPU {self.server / total * 1e6:.0f} + {self.client / total * 1e6:.0f} µs"


def cost(process: subprocess.Popen[str], running: Coroutine[Any, Any, float]) -> Cost:
    """Runs one side here against a server that is a process."""
    server, client = cpu_seconds(process.pid), time.process_time()
    seconds = asyncio.run(running)
    return Cost(seconds, cpu_seconds(process.pid) - server, time.process_time() - client)


def measured(folder: Path, total: int, rounds: int) -> Iterator[Figure]:
    """The figures; those of a round are made one after the other, and the best of each counts."""
    sent, messages = frames(total), [message(number) for number in range(total)]
    batches = [frames(BATCH) for _ in range(0, total, BATCH)]
    size, port = sum(map(len, sent)) / total, free_port()
    found: dict[str, list[Cost]] = defaultdict(list)
    with served(folder, port) as (url, ours), raw_server(total) as (raw_port, raw):
        for number in range(rounds):
            stream = f"round-{number}"
            urlopen(Request(f"{url}/streams/{stream}", method="PUT")).close()
            topic = f"grpc://127.0.0.1:{port}/{stream}"
            found["publish"].append(cost(ours, our_publish(topic, messages)))
            found["publish, raw"].append(cost(raw, raw_publish(raw_port, sent)))
            found["subscribe"].append(cost(ours, our_subscribe(topic, total)))
            found["subscribe, raw"].append(cost(raw, raw_subscribe(raw_port, total)))
            found["subscribe, half"].append(cost(ours, raw_subscribe(port, total, stream)))
            urlopen(Request(f"{url}/streams/raw-{number}", method="PUT")).close()
            publishing = raw_publish_batches(port, batches, f"raw-{number}")
            found["publish, half"].append(cost(ours, publishing))
    for what in ("subscribe", "publish"):
        names = (what, f"{what}, raw", f"{what}, half")
        own, alone, half = (
            min(found[name], key=lambda each: each.server + each.client) for name in names
        )
        seconds, others, halves = (min(each.seconds for each in found[name]) for name in names)
        sides = max(alone.server, alone.client) / max(own.server, own.client)
        ratios = f"{others / seconds:.2f} × grpclib, by the CPU of the busier side {sides:.2f} ×"
        rate = f"{total / seconds:,.0f}/s: {what}, frames of {size:.0f} bytes"
        yield Figure(f"{rate}, {own.described(total)}; {ratios}", seconds, goal="15,000/s, 0.7 ×")
        yield Figure(f"{total / others:,.0f}/s: {what}, {_SAME}, {alone.described(total)}", others)
        share = f"{halves / seconds:.2f} × is ours"
        rate = f"{total / halves:,.0f}/s: {what}, the client of grpclib and our server"
        yield Figure(f"{rate}, {half.described(total)}; {share}", halves, goal="0.7 ×")


def main() -> None:
    """`python -m benchmarks micro grpc`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--raw", action="store_true", help="serve by grpclib alone")
    options = parser.parse_args()
    if options.raw:
        asyncio.run(serve_raw(options.messages))
        return
    with TemporaryDirectory() as place:
        figures = list(measured(Path(place), options.messages, options.rounds))
        report("grpc", "streams by Jelly gRPC", figures)


if __name__ == "__main__":
    main()

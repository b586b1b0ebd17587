"""The other side of gRPC by npm's `@grpc/grpc-js`: a process that subscribes, publishes, or serves; see `peer.cjs`."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from construct_messages.rdf.message import Message
from tests.support.engines.servers import NODE
from tests.support.logs.pyjelly import read_by_peer
from tests.support.places import ROOT, absent, shared_path
from tests.support.waiting import SECONDS

_PROGRAM: Final = ROOT / "tests" / "support" / "grpc" / "peer.cjs"
_LINE: Final = 1 << 26  # bytes of its output


class GrpcPeer:
    """A process of Node that runs.

    Args:
        process: the process.

    Attributes:
        lines: what it told so far.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []

    async def tells(self, name: str) -> Any:
        """What it tells next under a name."""
        assert self.process.stdout
        async with asyncio.timeout(SECONDS):
            while line := await self.process.stdout.readline():
                self.lines.append(json.loads(line))
                if name in self.lines[-1]:
                    return self.lines[-1][name]
        raise AssertionError(f"it ended without {name}: {self.lines}")

    async def rest(self) -> list[dict[str, Any]]:
        """All that it tells until it ends."""
        assert self.process.stdout
        async with asyncio.timeout(SECONDS):
            async for line in self.process.stdout:
                self.lines.append(json.loads(line))
            await self.process.wait()
        return self.lines


@asynccontextmanager
async def grpc_peer(mode: str, **orders: Any) -> AsyncIterator[GrpcPeer]:
    """A process of Node, which is killed at the end."""
    modules = Path(os.environ.get(NODE, "nowhere")) / "node_modules"
    if (
        shutil.which("node") is None
        or not (modules / "@grpc" / "grpc-js").exists()
        or not (modules / "@grpc" / "proto-loader").exists()
    ):
        absent(
            f"npm's @grpc/grpc-js and @grpc/proto-loader are absent: set {NODE} to the folder that holds their "
            "node_modules"
        )
    folder = str(shared_path("suites/jelly/proto"))
    process = await asyncio.create_subprocess_exec(
        "node",
        str(_PROGRAM),
        mode,
        folder,
        json.dumps(orders),
        stdout=asyncio.subprocess.PIPE,
        limit=_LINE,
        env={**os.environ, "NODE_PATH": str(modules)},
    )
    try:
        yield GrpcPeer(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def asked(mode: str, **orders: Any) -> list[dict[str, Any]]:
    """All that a process tells that ends by itself."""
    async with grpc_peer(mode, **orders) as peer:
        return await peer.rest()


def frames_of(lines: Sequence[dict[str, Any]]) -> list[bytes]:
    """The frames that a subscriber tells."""
    return [base64.b64decode(line["frame"]) for line in lines if "frame" in line]


def texts(frames: Sequence[bytes]) -> list[str]:
    """Frames as orders have them."""
    return [base64.b64encode(frame).decode() for frame in frames]


def decoded(frames: Sequence[bytes]) -> list[Message]:
    """The messages of frames, as pyjelly reads them."""
    return read_by_peer(b"".join(_length(len(frame)) + frame for frame in frames))


def split(log: bytes) -> list[bytes]:
    """The frames of a delimited log."""
    frames, place = [], 0
    while place < len(log):
        size = shift = 0
        while True:
            byte = log[place]
            place += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        frames.append(log[place : place + size])
        place += size
    return frames


def _length(size: int) -> bytes:
    out = bytearray()
    while size > 0x7F:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    out.append(size)
    return bytes(out)

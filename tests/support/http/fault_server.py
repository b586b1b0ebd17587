"""A small HTTP server on a raw socket that plays scripted answers, right and wrong, and remembers what it was asked."""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import IO, Final, TypeAlias
from urllib.parse import parse_qs, urlsplit

JSON: Final = "application/sparql-results+json"
XML: Final = "application/sparql-results+xml"
TSV: Final = "text/tab-separated-values"


class Act(Enum):
    """What a script can hold beside bytes."""

    STALL = "send nothing more, until the client leaves or the server stops"
    RESET = "end the connection with a reset"
    PAUSE = "wait until the client has read everything, and a moment"
    HOLD = "wait until `go_on` is set"


STALL: Final = Act.STALL
RESET: Final = Act.RESET
PAUSE: Final = Act.PAUSE
HOLD: Final = Act.HOLD

_PAUSE_SECONDS: Final = 0.1
_MOST_PAUSE_SECONDS: Final = 10.0
_SOCKETS: Final = Path("/proc/net/tcp")

Script: TypeAlias = Sequence[bytes | Act]
"""What to send for one request; the connection is closed behind it, unless a response in it leaves it open."""


@dataclass
class Asked:
    """A request as it came."""

    method: str
    target: str
    headers: dict[str, str]  # names in lower case
    body: bytes
    connection: int = 0  # its number

    @property
    def parameters(self) -> dict[str, list[str]]:
        """Those of the form, or of the URL."""
        return parse_qs(self.body.decode() or urlsplit(self.target).query, keep_blank_values=True)


Answering: TypeAlias = Callable[[Asked], bytes]
"""What to send, by what was asked."""


class FaultServer:
    """Plays one script for each request, in order; the last one again for all that follow."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.left = threading.Event()  # a client closed its connection before everything was sent
        self.connections = 0  # since `play`
        self.go_on = threading.Event()  # for those that are held
        self._scripts: list[Script | Answering] = []
        self._turn = threading.Lock()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/sparql"
        self._accepting = threading.Thread(target=self._serve, daemon=True)
        self._accepting.start()

    def play(self, *scripts: Script | Answering | bytes) -> None:
        """Sets what to answer from now on."""
        with self._turn:
            self.asked.clear()
            self.left.clear()
            self.go_on.clear()
            self.connections = 0
            self._scripts = [
                [script] if isinstance(script, bytes) else script for script in scripts
            ]

    def close(self) -> None:
        """Stops listening and waits for the connections in hand."""
        self._stop.set()
        with socket.socket() as wake:
            wake.connect(self._listener.getsockname())
        self._accepting.join()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._stop.is_set():
                connection.close()
                return
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            self._threads.append(
                threading.Thread(target=self._converse, args=(connection,), daemon=True)
            )
            self._threads[-1].start()

    def _converse(self, connection: socket.socket) -> None:
        with self._turn:
            self.connections += 1
            number = self.connections
        connection.setsockopt(
            socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
        )  # pieces arrive as they are sent
        with connection, connection.makefile("rb") as lines:
            while self._wait(connection) and (asked := _request(lines, number)) is not None:
                with self._turn:
                    self.asked.append(asked)
                    script = self._scripts[min(len(self.asked), len(self._scripts)) - 1]
                if callable(script):
                    script = [script(asked)]
                try:
                    self._play(connection, script)
                except OSError:
                    self.left.set()
                    return
                if not (isinstance(script[-1], bytes) and any(map(_leaves_open, script))):
                    return

    def _play(self, connection: socket.socket, script: Script) -> None:
        for piece in script:
            if piece is STALL:
                self._stall(connection)
            elif piece is PAUSE:
                end = time.monotonic() + _MOST_PAUSE_SECONDS
                while not self._stop.wait(_PAUSE_SECONDS):
                    if not _unread(connection) or time.monotonic() > end:
                        break
            elif piece is HOLD:
                while not (self.go_on.wait(_PAUSE_SECONDS) or self._stop.is_set()):
                    pass
            elif piece is RESET:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                assert isinstance(piece, bytes)
                connection.sendall(piece)

    def _wait(self, connection: socket.socket) -> bool:
        """Whether the client has something to say, once it has or leaves."""
        while not self._stop.is_set():
            readable, _, _ = select.select([connection], [], [], 0.05)
            if readable:
                return True
        return False

    def _stall(self, connection: socket.socket) -> None:
        while self._wait(connection):
            if not connection.recv(1024):
                self.left.set()
                return


def _unread(connection: socket.socket) -> bool:
    """Whether bytes lie in the client's queue, as proc_net_tcp(5) tells: a busy client reads late.

    False on systems that do not tell.
    """
    if not _SOCKETS.exists():
        return False
    own, client = (
        f":{name[1]:04X}" for name in (connection.getsockname(), connection.getpeername())
    )
    for line in _SOCKETS.read_text().splitlines()[1:]:
        _, local, remote, _, queues, *_ = line.split()
        if local.endswith(client) and remote.endswith(own):
            return int(queues.partition(":")[2], 16) > 0
    return False


def _leaves_open(piece: bytes | Act) -> bool:
    return isinstance(piece, bytes) and b"Connection: keep-alive\r\n" in piece


def _request(lines: IO[bytes], connection: int) -> Asked | None:
    try:
        start = lines.readline().decode().split()
        if not start:
            return None
        headers = {}
        while line := lines.readline().decode().strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return Asked(
            start[0],
            start[1],
            headers,
            lines.read(int(headers.get("content-length", 0))),
            connection,
        )
    except ConnectionError:
        return None


def chunks(body: bytes, size: int) -> bytes:
    """The body in chunks, without the empty one that ends it."""
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)


def response(
    body: bytes,
    content_type: str = JSON,
    *,
    status: str = "200 OK",
    headers: Mapping[str, str] | None = None,
    framing: str = "chunked",
    length: int | None = None,
    cut: int | None = None,
    chunk: int | None = None,
    keep_alive: bool = False,
) -> bytes:
    """The bytes of a response.

    Args:
        framing: `chunked`, `length` or `close`.
        chunk: the size of chunks; two of equal size, if None.
        length: the Content-Length to claim, where it is not that of the body.
        cut: send only so many bytes of the framed body.
        keep_alive: leave the connection open.
    """
    given = {"Content-Type": content_type, **(headers or {})}
    if framing == "chunked":
        given["Transfer-Encoding"] = "chunked"
        body = chunks(body, chunk or len(body) // 2 + 1) + b"0\r\n\r\n"
    elif framing == "length":
        given["Content-Length"] = str(len(body) if length is None else length)
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    connection = "keep-alive" if keep_alive else "close"
    return f"HTTP/1.1 {status}\r\n{head}Connection: {connection}\r\n\r\n".encode() + body[:cut]

"""A small HTTP server on a raw socket that plays scripted answers, right and wrong, and remembers what it was asked."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import parse_qs, urlsplit

JSON: Final = "application/sparql-results+json"
XML: Final = "application/sparql-results+xml"
TSV: Final = "text/tab-separated-values"

STALL: Final = None
"""In a script: send nothing more, until the client leaves or the server stops."""

Script: TypeAlias = Sequence[bytes | None]
"""What to send for one request; the connection is closed behind it."""


@dataclass
class Asked:
    """A request as it came."""

    method: str
    target: str
    headers: dict[str, str]  # names in lower case
    body: bytes

    @property
    def parameters(self) -> dict[str, list[str]]:
        """Those of the form, or of the URL."""
        return parse_qs(self.body.decode() or urlsplit(self.target).query, keep_blank_values=True)


class FaultServer:
    """Plays one script for each request, in order; the last one again for all that follow."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.left = threading.Event()  # a client closed the connection during a stall
        self._scripts: list[Script] = []
        self._stop = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/sparql"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def play(self, *scripts: Script | bytes) -> None:
        """Sets what to answer from now on."""
        self.asked.clear()
        self.left.clear()
        self._scripts = [[script] if isinstance(script, bytes) else script for script in scripts]

    def close(self) -> None:
        """Stops listening and waits for the connection in hand."""
        self._stop.set()
        with socket.socket() as wake:
            wake.connect(self._listener.getsockname())
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection:
                if self._stop.is_set():
                    return
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as lines:
            start = lines.readline().decode().split()
            if not start:
                return
            headers = {}
            while line := lines.readline().decode().strip():
                name, _, value = line.partition(":")
                headers[name.lower()] = value.strip()
            body = lines.read(int(headers.get("content-length", 0)))
        self.asked.append(Asked(start[0], start[1], headers, body))
        script = self._scripts[min(len(self.asked), len(self._scripts)) - 1]
        try:
            for piece in script:
                if piece is STALL:
                    self._stall(connection)
                else:
                    connection.sendall(piece)
        except OSError:
            self.left.set()  # the client left before everything was sent

    def _stall(self, connection: socket.socket) -> None:
        connection.settimeout(0.05)
        while not self._stop.is_set():
            try:
                if not connection.recv(1024):
                    self.left.set()
                    return
            except TimeoutError:
                continue


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
) -> bytes:
    """The bytes of a response.

    Args:
        framing: `chunked`, `length` or `close`.
        chunk: the size of chunks; two of equal size, if None.
        length: the Content-Length to claim, where it is not that of the body.
        cut: send only so many bytes of the framed body.
    """
    given = {"Content-Type": content_type, **(headers or {})}
    if framing == "chunked":
        given["Transfer-Encoding"] = "chunked"
        body = chunks(body, chunk or len(body) // 2 + 1) + b"0\r\n\r\n"
    elif framing == "length":
        given["Content-Length"] = str(len(body) if length is None else length)
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"HTTP/1.1 {status}\r\n{head}Connection: close\r\n\r\n".encode() + body[:cut]

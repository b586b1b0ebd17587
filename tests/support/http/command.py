"""`construct-messages serve` as a process: what it logs, its processes, and clients on raw sockets."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.support.http.fault_server import response
from tests.support.places import ROOT
from tests.support.processes import below, command_line
from tests.support.waiting import SECONDS

COMMAND = [sys.executable, "-m", "construct_messages", "serve"]
DATA = str(ROOT / "queries" / "data" / "companies.ttl")
QUERY = urlencode(
    {"query": "CONSTRUCT { ?s <urn:p> ?o } WHERE { ?s ?p ?o }", "format": "nq", "messages": "rdfm"}
)
RESULT = json.dumps(
    {
        "head": {"vars": ["s", "o"]},
        "results": {
            "bindings": [
                {
                    "s": {"type": "uri", "value": f"urn:s{number}"},
                    "o": {"type": "literal", "value": "x" * 5000},
                }
                for number in range(20)
            ]
        },
    }
).encode()
WHOLE = response(RESULT, framing="close")
HALF = len(WHOLE) // 2


class Running:
    """A server that runs, and what it logged so far; `through` are words before its command."""

    def __init__(
        self, temporary: Path, *arguments: str, through: Sequence[str] = (), **variables: str
    ) -> None:
        self.temporary = temporary
        self.process = subprocess.Popen(
            [*through, *COMMAND, "--bind", "127.0.0.1:0", "--log-format", "json", *arguments],
            env=os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)} | variables,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.log: list[dict[str, Any]] = []
        self.last_words = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if line.startswith("{") and line.endswith(
                "\n"
            ):  # what a kill has cut is no line of the log
                self.log.append(json.loads(line))
            else:
                self.last_words += line

    def events(self, event: str) -> list[dict[str, Any]]:
        return [line for line in list(self.log) if line["event"].startswith(event)]

    @property
    def url(self) -> str:
        eventually(lambda: self.events("listening on ") or self.process.poll() is not None, self)
        assert self.process.poll() is None, (self.log, self.last_words)
        (line,) = self.events("listening on ")
        return str(line["event"].removeprefix("listening on "))

    @property
    def children(self) -> list[int]:
        """The processes that serve, of several."""
        serving = "construct_messages.server.runtime.process"
        return [child.pid for child in below(self.process.pid) if serving in command_line(child)]

    def wait(self, seconds: float = SECONDS) -> int:
        """The exit status."""
        status = self.process.wait(seconds)
        self._reader.join(seconds)
        return status

    def kill(self) -> None:
        self.process.kill()
        self.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()


def eventually(holds: Callable[[], object], running: Running, seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, running.log
        time.sleep(0.02)


class Held(list[bytes]):
    """A script that sends its first piece, and the rest when it is let go."""

    def __init__(self, *pieces: bytes) -> None:
        super().__init__(pieces)
        self.go = threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        yield self[0]
        assert self.go.wait(SECONDS)
        yield from self[1:]


def refuses(url: str) -> bool:
    """Whether nobody listens."""
    address = urlsplit(url)
    with socket.socket() as probe:
        return probe.connect_ex((str(address.hostname), int(address.port or 0))) != 0


def begin(url: str, version: str = "1.1") -> tuple[socket.socket, bytes]:
    """Asks for a log over a bare socket; returns it when the first message is here, with what came."""
    address = urlsplit(url)
    connection = socket.create_connection(
        (str(address.hostname), int(address.port or 0)), timeout=120
    )
    connection.sendall(
        f"GET /sparql?{QUERY} HTTP/{version}\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    )
    came = b""
    while b"# @message" not in came:
        data = connection.recv(65536)
        assert data, came
        came += data
    return connection, came


def drain(connection: socket.socket) -> bytes:
    """The rest up to the end of the connection; a reset raises."""
    came = b""
    while data := connection.recv(65536):
        came += data
    return came

"""The server as a process of its own, for the benchmarks that go through it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Server:
    """A server that runs: the URL of its endpoint, and its process."""

    url: str
    process: subprocess.Popen[str]

    @property
    def peak_mib(self) -> float:
        """The most memory it has had resident so far."""
        return self._mib("VmHWM")

    @property
    def resident_mib(self) -> float:
        """The memory it has resident now."""
        return self._mib("VmRSS")

    def _mib(self, field: str) -> float:
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            value = re.search(rf"{field}:\s+(\d+) kB", status.read())
        assert value is not None
        return int(value[1]) / 1024


@contextmanager
def listening(
    command: Sequence[str], environment: Mapping[str, str]
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server that a command starts: its URL, once it listens, and its process."""
    with (
        ExitStack() as stack,
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process,
    ):
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if found := re.search(r'listening on (http://[^"\s]+)', line):
                    break
            else:
                raise SystemExit("the server did not start")
            # the server's log, to its end
            stack.enter_context(
                subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
            )
            yield found[1].rstrip("/"), process
        finally:
            process.terminate()


@contextmanager
def streams_server(store: Path) -> Iterator[Server]:
    """`construct-messages serve` of the streams in a store, on a free port; its URL is that of the server."""
    command = [
        *(sys.executable, "-m", "construct_messages", "serve"),
        *("--streams", str(store), "--bind", "127.0.0.1:0"),
    ]
    with listening(command, os.environ) as (url, process):
        yield Server(url, process)


@contextmanager
def server(source: str, **settings: object) -> Iterator[Server]:
    """`construct-messages serve` over one source, on a free port of loopback; `settings` are those of the endpoint."""
    command = [
        sys.executable,
        "-m",
        "construct_messages",
        "serve",
        "--source",
        source,
        "--bind",
        "127.0.0.1:0",
    ]
    variables = {
        f"CONSTRUCT_MESSAGES_SERVER_ENDPOINT__{name.upper()}": str(value)
        for name, value in settings.items()
    }
    with listening(command, os.environ | variables) as (url, process):
        yield Server(f"{url}/sparql", process)

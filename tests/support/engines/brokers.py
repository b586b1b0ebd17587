"""Real brokers on loopback, each over a folder that keeps what it has: killed and started again, they go on with it.

Mosquitto (MQTT 5) and the NATS server (JetStream). Nothing here speaks their protocols.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.support.engines.servers import NotStarted, free_port, program

_SECONDS: Final = 300.0


class Broker(ABC):
    """A broker, as a context manager; it listens from the beginning of the block.

    Args:
        place: its folder, for all that it keeps.
        settings: lines of its configuration, besides those of its place and port.

    Attributes:
        port: the same each time that it is started.
    """

    def __init__(self, place: Path, settings: str = "") -> None:
        self.place, self.settings = place, settings
        place.mkdir(exist_ok=True)
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The number of its process."""
        assert self._process is not None
        return self._process.pid

    @abstractmethod
    def command(self) -> list[str | Path]:
        """The command that runs it.

        Raises:
            Missing: it is not installed.
        """

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Starts it, and waits until it listens."""
        command = self.command()
        with open(self.place / "output.txt", "ab") as output:
            self._process = subprocess.Popen(
                command,
                cwd=self.place,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + _SECONDS
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise NotStarted(f"{command[0]} does not listen: {self.output()}")
            time.sleep(0.01)

    def output(self) -> str:
        """What it wrote so far."""
        return (self.place / "output.txt").read_text(errors="replace")

    def kill(self) -> None:
        """Ends it at once, as a loss of power does that leaves the disk alone."""
        if self._process is not None:
            with suppress(ProcessLookupError):  # it ended by itself
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        """Kills it, and starts it over the same folder and at the same port."""
        self.kill()
        self.start()

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


class Mosquitto(Broker):
    """Eclipse Mosquitto, which writes its database after each change, not only every half hour.

    It writes it after it has acknowledged: `saved` is when a kill loses nothing.

    Attributes:
        saves: whether it does.
    """

    saves = True

    def command(self) -> list[str | Path]:
        """See `Broker.command`."""
        configuration = self.place / "mosquitto.conf"
        listens = f"listener {self.port} 127.0.0.1\n"
        configuration.write_text(
            f"{self.settings if 'listener' in self.settings else listens + self.settings}\n"
            + ("" if "allow_anonymous" in self.settings else "allow_anonymous true\n")
            + f"persistence {str(self.saves).lower()}\npersistence_location {self.place}/\n"
            + (
                ""
                if "autosave" in self.settings
                else "autosave_interval 1\nautosave_on_changes true\n"
            )
            + "user root\nlog_type warning\nlog_type error\nlog_type subscribe\n"
        )
        return [_mosquitto("mosquitto"), "-c", configuration]

    def url(self, topic: str) -> str:
        """The URL of a topic."""
        return f"mqtt://127.0.0.1:{self.port}/{topic}"

    def saved(self) -> int:
        """When it wrote its database last, in nanoseconds."""
        try:
            return (self.place / "mosquitto.db").stat().st_mtime_ns
        except FileNotFoundError:
            return 0


class NatsServer(Broker):
    """The NATS server with JetStream, in files."""

    def command(self) -> list[str | Path]:
        """See `Broker.command`."""
        configuration = self.place / "nats.conf"
        configuration.write_text(
            f'listen: "127.0.0.1:{self.port}"\n'
            f'jetstream {{ store_dir: "{self.place}/store" }}\n{self.settings}\n'
        )
        executable = program("nats-server", "apt-get install nats-server")
        return [executable, "-c", configuration]

    def url(self, stream: str) -> str:
        """The URL of a stream."""
        return f"nats://127.0.0.1:{self.port}/{stream}"


def _mosquitto(name: str) -> str:
    for folder in (
        "/usr/sbin",
        "/usr/local/sbin",
    ):  # where Debian has servers, which not each PATH names
        if (path := Path(folder) / name).exists():
            return str(path)
    return program(name, "apt-get install mosquitto")

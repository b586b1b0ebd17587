"""`tail --follow` of files that other programs write: appended to in pieces, replaced and cut."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from construct_messages import Message, read_log
from tests.support.commands import ENVIRONMENT, run
from tests.support.logs.kinds import KINDS, Kind, write
from tests.support.streams import numbered
from tests.support.waiting import wait_until

COMMAND = [sys.executable, "-m", "construct_messages", "tail"]


class Following:
    """The command as a process, and what it wrote so far."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
        )
        self.output = bytearray()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        while chunk := os.read(self.process.stdout.fileno(), 65536):
            self.output += chunk

    def has(self, text: str) -> bool:
        return text.encode() in self.output

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """Sends a signal; returns the exit status."""
        self.process.send_signal(number)
        return self.end()

    def end(self) -> int:
        status = self.process.wait()
        self._reader.join()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return status


def lines(*numbers: int) -> bytes:
    return b"".join(b"# @message\n" + numbered(number).lines for number in numbers)


def messages(data: bytes, *numbers: int) -> bool:
    return list(read_log(bytes(data))) == [numbered(number) for number in numbers]


pytestmark = [pytest.mark.slow, pytest.mark.process]


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_messages_come_when_their_end_is_written(tmp_path: Path, end: signal.Signals) -> None:
    """Never a part of one, wherever the writer has got to."""
    path = tmp_path / "log.nq"
    path.write_bytes(lines(1, 2, 3, 4))
    following = Following("-n", "2", "-F", str(path))
    wait_until(lambda: following.has('"x3"'))
    assert messages(following.output, 2, 3), "that the fourth is whole is not known yet"
    rest = lines(5, 6) + b"# @message\n"
    with path.open("ab", buffering=0) as writer:
        for at in range(len(rest)):
            writer.write(rest[at : at + 1])
    wait_until(lambda: following.has('"x6"'))
    assert following.stop(end) == 0
    assert messages(following.output, 2, 3, 4, 5, 6)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.format.name != "RDF/XML"], ids=str)
def test_every_format(tmp_path: Path, kind: Kind) -> None:
    """A log of each kind grows in pieces; what is written is a log, too, of the messages that are known to be whole."""
    path = tmp_path / f"log.{kind.format.extension}"
    sent = [numbered(1), Message(), numbered(3), numbered(4)]
    data = write(sent, kind)
    path.write_bytes(b"")
    following = Following(
        "-n", "10", "-F", "--input-format", kind.format.extension, "--format", "nq", str(path)
    )
    with path.open("ab", buffering=0) as writer:
        for at in range(0, len(data), 7):
            writer.write(data[at : at + 7])
    wait_until(lambda: following.has('"x3"'))
    assert following.stop() == 0
    read = list(read_log(bytes(following.output)))
    assert read in (sent, sent[:3])


@pytest.mark.parametrize("how", ["replaced", "cut"])
def test_another_log_in_its_place(tmp_path: Path, how: str) -> None:
    """What the old one has at its end is there, and all of the new one."""
    path = tmp_path / "log.nq"
    path.write_bytes(lines(1, 2))
    following = Following("-n", "1", "-F", str(path))
    wait_until(lambda: following.has('"x1"'))
    if how == "replaced":
        path.rename(tmp_path / "log.nq.1")
        with (tmp_path / "log.nq.1").open("ab") as writer:
            writer.write(lines(3))
    path.write_bytes(lines(7) if how == "cut" else lines(7, 8, 9))
    with path.open("ab") as writer:
        writer.write(b"# @message\n")
    wait_until(lambda: following.has('"x7"' if how == "cut" else '"x9"'))
    assert following.stop() == 0
    assert messages(following.output, *((1, 2, 3, 7, 8, 9) if how == "replaced" else (1, 2, 7)))


def test_what_is_malformed_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "log.nq"
    path.write_bytes(lines(1))
    following = Following("-F", str(path))
    with path.open("ab") as writer:
        writer.write(b"# @message\nno statement\n# @message\n")
    assert following.end() == 3
    assert messages(following.output, 1)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["-F", "nowhere.nq"], 2, "No such file"),
        (["-F", "log.nq", "--output", "out.nq"], 2, "leave out --output"),
        (
            ["-F", "-n", "3", "https://example.org/a"],
            2,
            "subscribe https://example.org/a --last 3 --follow",
        ),
        (["https://example.org/a"], 2, "subscribe https://example.org/a --last 10"),
    ],
)
def test_what_cannot_be_followed(arguments: list[str], status: int, said: str) -> None:
    done = run("tail", *arguments)
    assert (done.status, said in done.errors) == (status, True)


def test_a_pipe_is_read_to_its_end() -> None:
    done = run("tail", "-F", "-n", "2", "-", stdin=lines(1, 2, 3))
    assert messages(done.log.encode(), 2, 3)

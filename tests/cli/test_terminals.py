"""The commands for logs in pipes and on terminals, interrupted, and left by their reader."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.commands import COMMAND, ENVIRONMENT, interrupt, on_terminal
from tests.support.logs.cases.commands import LOG

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("place")]

# --- pipes, terminals, stopping -------------------------------------------------------------------------------------


def test_a_message_goes_out_before_the_next_comes_in() -> None:
    command = [
        *COMMAND,
        "convert",
        "-",
        "-",
        "--input-format",
        "nt",
        "--format",
        "nt",
        "--syntax",
        "1.2-messages",
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'VERSION "1.2-messages"\n<urn:s> <urn:p> "1" .\nMESSAGE\n')
        process.stdin.flush()
        assert process.stdout.readline() == b'VERSION "1.2-messages"\n'
        assert process.stdout.readline() == b'<urn:s> <urn:p> "1" .\n'
        process.stdin.close()
        assert process.stdout.read() == b"MESSAGE\n"
    assert process.returncode == 0


@pytest.mark.parametrize(
    "command",
    [["convert", "-", "-"], ["validate", "log.ttl", "-"], ["convert", "-", "out.nq.gz"]],
    ids=" ".join,
)
def test_interrupted(command: list[str], place: Path) -> None:
    before = set(place.iterdir())
    process = subprocess.Popen(
        [*COMMAND, *command, "--input-format", "ttl"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(LOG.encode())
        process.stdin.flush()
        if command[-1] == "-":
            assert process.stdout.readline() != b""  # it waits for more
        else:
            deadline = time.monotonic() + 120
            while set(place.iterdir()) == before:  # the hidden file appears with the first message
                assert time.monotonic() < deadline
                time.sleep(0.02)
        interrupt(process)
        assert (process.returncode, process.stderr.read()) == (130, b"")
    assert set(place.iterdir()) == before


def test_a_reader_that_leaves_is_no_error(place: Path) -> None:
    (place / "long.nq").write_text(
        '# @message\n<urn:s> <urn:p> "1" .\n' * 100_000, encoding="utf-8"
    )
    with subprocess.Popen(
        [*COMMAND, "convert", "long.nq", "-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"# @message\n"
        process.stdout.close()
        assert (process.wait(timeout=120), process.stderr.read()) == (0, b"")


@pytest.mark.parametrize(
    "arguments", [["convert", "log.ttl", "out.nq"], ["validate", "log.ttl"]], ids=" ".join
)
def test_progress_on_a_terminal(arguments: list[str]) -> None:
    shown, _ = on_terminal(*arguments)
    assert re.search(r"4 messages, [\d,]+ messages/s, 190 bytes\r\n\Z", shown)


def test_quiet_on_a_terminal() -> None:
    assert on_terminal("head", "log.ttl", "--quiet")[0] == ""


def test_inspect_on_a_terminal() -> None:
    shown, _ = on_terminal("inspect", "log.ttl", "--quiet", log_too=True)
    assert "messages       4, of which 1 empty\r\n" in re.sub(r"\x1b\[[\d;]*m", "", shown)

"""The command line in processes of its own: run, interrupted, on a terminal. In this process: the fixture `here`."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.support.places import ROOT

COMMAND = [sys.executable, "-m", "construct_messages"]
_OWN = {"CONSTRUCT_MESSAGES_SOURCE": "", "NO_COLOR": "1"}
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), **_OWN}


class Done(NamedTuple):
    status: int
    log: str
    errors: str


def run(
    *arguments: str, stdin: str | bytes = "", cwd: Path | None = None, **variables: str
) -> Done:
    done = subprocess.run(
        [*COMMAND, *arguments],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        check=False,
        cwd=cwd,
        env=ENVIRONMENT | variables,
        timeout=240,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def interrupt(process: subprocess.Popen[bytes], by: signal.Signals = signal.SIGINT) -> None:
    """Ctrl-C, or another signal, and waits until the process is gone."""
    process.send_signal(by)
    process.wait(timeout=120)


def on_terminal(*arguments: str, log_too: bool = False, cwd: Path | None = None) -> tuple[str, str]:
    """What a command prints to a terminal as standard error, and to standard output."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=theirs if log_too else subprocess.PIPE,
        stderr=theirs,
        cwd=cwd,
        env=ENVIRONMENT | {"TERM": "xterm", "COLUMNS": "100"},
    )
    with process:
        os.close(theirs)
        shown = b""
        while chunk := _read_terminal(ours):
            shown += chunk
        os.close(ours)
        log = process.stdout.read().decode() if process.stdout else ""
    assert process.returncode == 0
    return shown.decode(), log


def _read_terminal(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # how Linux says that the other end is closed
        return b""

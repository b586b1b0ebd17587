"""Owners: a process is known to have ended only if it has, and only on its own machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from construct_messages.spark.logs import runs
from construct_messages.spark.logs.runs import Owner

TELL = (
    "import sys, json; from construct_messages.spark.logs.runs import Owner; "
    "print(json.dumps(Owner.this()), flush=True); sys.stdin.read()"
)


def told_by(*command: str) -> tuple[subprocess.Popen[str], Owner]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Owner(*json.loads(process.stdout.readline()))


def test_a_process_that_runs_and_one_that_was_killed() -> None:
    process, owner = told_by(sys.executable, "-c", TELL)
    with process:
        assert owner.process == process.pid
        assert not owner.has_ended()
        process.kill()
    assert owner.has_ended()


def test_a_killed_process_that_nobody_has_waited_for() -> None:
    process, owner = told_by(sys.executable, "-c", TELL)
    process.kill()
    assert process.stdout is not None
    assert process.stdout.read() == ""  # it has ended, and its number is still taken
    while not owner.has_ended():
        assert process.returncode is None
    process.communicate()


def test_another_process_with_the_same_number() -> None:
    this = Owner.this()
    assert this._replace(started="1").has_ended()
    assert not this._replace(started="").has_ended(), "when it started is not known"


@pytest.mark.parametrize("process", [1, 2**22 + 1], ids=["there", "not there"])
def test_another_machine(process: int) -> None:
    assert not Owner(process, "1", "", "elsewhere").has_ended()


def test_a_process_of_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_process: int, _signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(runs.os, "kill", refuse)
    assert not Owner.this()._replace(started="1").has_ended()


def test_the_java_process_above(tmp_path: Path) -> None:
    """Spark starts a worker by way of a daemon; the owner is what started that."""
    java = tmp_path / "java"
    java.symlink_to("/bin/sh")
    script = f'"{sys.executable}" -c "$0"; true'
    process, owner = told_by(str(java), "-c", script, TELL)
    with process:
        assert owner.process == process.pid
        process.communicate()
    assert Owner.this().process == os.getpid()

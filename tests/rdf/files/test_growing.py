"""`rdf/files/output.py`: a part is appended once and whole, whatever a kill or a power failure left of it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from random import Random
from typing import IO

import pytest

from construct_messages.errors import CannotWrite, UsageError
from construct_messages.rdf.files import output
from construct_messages.rdf.files.output import append_once, settled_size
from tests.support.commands import ENVIRONMENT


class Killed(BaseException):
    """The process ended here."""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log"
    append_once(path, b"one\n", 0)
    return path


def begin(path: Path, part: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ends when the part is written, and nothing is on disk for sure."""

    write = output.write_whole

    def killed(file: IO[bytes], data: bytes) -> None:
        if data == part:
            raise Killed
        write(file, data)

    with monkeypatch.context() as patch:
        patch.setattr(output, "write_whole", killed)
        with pytest.raises(Killed):
            append_once(path, part, settled_size(path))


def files(path: Path) -> list[str]:
    return sorted(os.listdir(path.parent))


@pytest.mark.parametrize("again", [b"two\n", b"three\n"], ids=["the same part", "another part"])
@pytest.mark.parametrize("left", [b"", b"t", b"two", b"tw\0\0", bytes(4), bytes(2)])
def test_a_part_of_a_part_is_cut_off(
    log: Path, left: bytes, again: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zeros in place of what was written are what a power failure leaves."""
    begin(log, b"two\n", monkeypatch)
    with log.open("ab") as file:
        file.write(left)
    assert settled_size(log) == 4
    assert log.read_bytes() == b"one\n"
    append_once(log, again, 4)
    assert log.read_bytes() == b"one\n" + again
    assert files(log) == ["log"]


@pytest.mark.parametrize("journal", [b"", b"4", b"4 4 12", bytes(20)])
def test_a_journal_that_is_not_whole(log: Path, journal: bytes) -> None:
    """A kill or a power failure came before the part was begun."""
    (log.parent / ".log.appending").write_bytes(journal)
    assert settled_size(log) == 4
    append_once(log, b"two\n", 4)
    assert log.read_bytes() == b"one\ntwo\n"
    assert files(log) == ["log"]


def test_a_part_that_is_whole_stays(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for behind in (b"", b"of another\n"):
        log.write_bytes(b"one\n")
        begin(log, b"two\n", monkeypatch)
        with log.open("ab") as file:
            file.write(b"two\n" + behind)
        append_once(log, b"two\n", 4)
        assert log.read_bytes() == b"one\ntwo\n" + behind
        assert settled_size(log) == log.stat().st_size
        assert files(log) == ["log"]


def test_a_first_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    begin(path, b"one\n", monkeypatch)
    assert settled_size(path) == 0
    append_once(path, b"one\n", 0)
    assert path.read_bytes() == b"one\n"


@pytest.mark.parametrize("found", [b"one\nx", b"one\ntwx\nand more", b"one"])
def test_not_as_it_was_left(log: Path, found: bytes) -> None:
    log.write_bytes(found)
    with pytest.raises(UsageError, match=r"shorter than it was|by another program after byte 4"):
        append_once(log, b"two\n", 4)
    assert log.read_bytes() == found


def test_another_program_wrote_behind_a_part_of_a_part(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(log, b"two\n", monkeypatch)
    with log.open("ab") as file:
        file.write(b"tw of another\n")
    for use in (lambda: settled_size(log), lambda: append_once(log, b"two\n", 4)):
        with pytest.raises(UsageError, match="by another program after byte 4"):
            use()
    assert log.read_bytes() == b"one\ntw of another\n"


def test_a_new_file_has_the_usual_mode(log: Path, tmp_path: Path) -> None:
    usual = tmp_path / "usual"
    usual.touch()
    assert stat.S_IMODE(log.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)
    assert settled_size(log) == 4
    assert settled_size(tmp_path / "none") == 0
    assert files(log) == ["log", "usual"]


def test_a_link_stays_a_link(log: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("log")
    append_once(tmp_path / "link", b"two\n", 4)
    assert log.read_bytes() == b"one\ntwo\n"
    assert (tmp_path / "link").is_symlink()


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    for path in (tmp_path, tmp_path / "none" / "log", tmp_path / ("x" * 300), tmp_path / "circle"):
        with pytest.raises(CannotWrite, match="cannot write"):
            append_once(path, b"one", 0)
    with pytest.raises(CannotWrite, match="cannot write"):
        settled_size(tmp_path / ("x" * 300))


def test_a_fifo_is_written_as_it_is(tmp_path: Path) -> None:
    path, found = tmp_path / "fifo", bytearray()
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: found.extend(path.read_bytes()), daemon=True)
    reader.start()
    append_once(path, b"one", settled_size(path))
    reader.join()
    assert found == b"one"


# --- killed ---

WRITER = """
import sys
from pathlib import Path
from construct_messages.rdf.files.output import append_once, settled_size
from construct_messages.rdf.files.output import atomic_file

log, state, parts, size = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
number, at = map(int, state.read_text().split()) if state.exists() else (0, 0)
while number < parts:
    append_once(log, b"%d\\n" % number * (size // len(b"%d\\n" % number)), at)
    number, at = number + 1, settled_size(log)
    with atomic_file(state) as file:
        file.write(b"%d %d" % (number, at))
"""
"""Appends parts, and keeps behind each how far it is."""


@pytest.mark.process
@pytest.mark.slow
def test_killed_within_parts(tmp_path: Path) -> None:
    """Whatever size the log has reached: started again, each part is there once and whole."""
    log, state, count, size = tmp_path / "log", tmp_path / "state", 12, 20_000_000
    chance = Random(26)
    command = [sys.executable, "-c", WRITER, str(log), str(state), str(count), str(size)]
    parts = [b"%d\n" % number * (size // len(b"%d\n" % number)) for number in range(count)]
    whole = {sum(map(len, parts[:number])) for number in range(count + 1)}
    within = 0
    for _ in range(10):
        with subprocess.Popen(command, env=ENVIRONMENT) as running:
            there = log.stat().st_size if log.exists() else 0
            limit = there + chance.randrange(2 * size)
            while running.poll() is None and (log.stat().st_size if log.exists() else 0) < limit:
                pass
            running.kill()
        within += log.exists() and log.stat().st_size not in whole
    assert within, "no kill came within a part"
    assert subprocess.run(command, env=ENVIRONMENT, check=False).returncode == 0
    assert log.read_bytes() == b"".join(parts)
    assert files(log) == ["log", "state"]

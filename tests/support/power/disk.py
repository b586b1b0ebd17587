"""What a disk may hold after a power cut, by a record of what a program wrote, synced and named in a folder.

What was synced is there. Of the rest, each write may be there, lost, torn at sectors or only a length, in any order;
names are those of any moment since their folder was synced, as a journal of a file system keeps them in order.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.support.places import ROOT

_SECTOR = 512
_EVENT = re.compile(rb"(\w+) (-?\d+) (-?\d+) (\d+)\n")
ACKNOWLEDGED = "acknowledged"
"""The name of the file to which a program writes what it takes for stored."""


class _Event(NamedTuple):
    kind: str
    file: int
    number: int
    data: bytes


class Recorded:
    """The events of one run of a program, which wrote to a folder."""

    def __init__(self, folder: Path, record: bytes) -> None:
        self.folder = folder
        self.events: list[_Event] = []
        at = 0
        while at < len(record):
            found = _EVENT.match(record, at)
            assert found is not None
            at = found.end() + int(found[4])
            data = record[found.end() : at]
            self.events.append(_Event(found[1].decode(), int(found[2]), int(found[3]), data))

    def cut(self, random: Random, *, syncs: bool = True) -> list[str]:
        """Leaves the folder as after a power cut at a random moment; gives what had been acknowledged.

        Args:
            random: chooses the moment, and what is lost.
            syncs: whether the disk heeds syncs.
        """
        names: dict[bytes, int] = {}  # in memory, and those of the disk are some steps behind
        history = [dict(names)]
        opened: dict[int, int] = {}  # files by descriptor; 0 is the folder
        disk: dict[int, bytearray] = {}
        unsynced: dict[int, list[_Event]] = {}
        acknowledged: list[str] = []
        for event in self.events[: random.randint(0, len(self.events))]:
            kind, descriptor, number, data = event
            match kind:
                case "open":
                    name = data.rpartition(b"/")[2]
                    if data == str(self.folder).encode():
                        opened[descriptor] = 0
                        continue
                    if name not in names:
                        names[name] = len(disk) + 1
                        disk[names[name]], unsynced[names[name]] = bytearray(), []
                        history.append(dict(names))
                    opened[descriptor] = names[name]
                    if number:  # it is truncated
                        unsynced[names[name]].append(_Event("truncate", 0, 0, b""))
                case "write" if opened[descriptor] == names.get(ACKNOWLEDGED.encode()):
                    acknowledged += data.decode().splitlines()
                case "write" | "truncate":
                    unsynced[opened[descriptor]].append(event)
                case "sync" if syncs and not opened[descriptor]:
                    del history[:-1]
                case "sync" if syncs:
                    for each in unsynced[opened[descriptor]]:
                        _apply(disk[opened[descriptor]], each)
                    unsynced[opened[descriptor]].clear()
                case "unlink":
                    del names[data.rpartition(b"/")[2]]
                    history.append(dict(names))
                case "rename":
                    old, new = (path.rpartition(b"/")[2] for path in data.split(b"\n"))
                    names[new] = names.pop(old)
                    history.append(dict(names))
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        for name, file in random.choice(history).items():
            if name != ACKNOWLEDGED.encode():
                _lose(disk[file], unsynced[file], random)
                (self.folder / os.fsdecode(name)).write_bytes(disk[file])
        return acknowledged


def record(program: Sequence[str], place: Path) -> Recorded:
    """Runs a module of Python with the path of a new folder as its last argument."""
    library, file, folder = place / "recorder.so", place / "record", place / "folder"
    folder.mkdir()
    source = Path(__file__).with_name("recorder.c")
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", library, source, "-ldl", "-lpthread"], check=True
    )
    watched = {"LD_PRELOAD": str(library), "FOLDER": str(folder), "RECORD": str(file)}
    subprocess.run(
        [sys.executable, "-m", *program, str(folder)],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | watched,
        check=True,
    )
    return Recorded(folder, file.read_bytes())


def _lose(disk: bytearray, unsynced: list[_Event], random: Random) -> None:
    """Applies some of the writes that were not synced."""
    loss = random.choice(["all", "none", "end", "some", "torn"])
    if loss == "all":
        return
    left = unsynced[: random.randint(0, len(unsynced))] if loss == "end" else list(unsynced)
    if loss in ("some", "torn"):
        left = [each for each in left if random.random() < 0.7]
        random.shuffle(left)
    for each in left:
        if loss != "torn" or each.kind == "truncate" or random.random() < 0.5:
            _apply(disk, each)
            continue
        disk.extend(bytes(max(0, each.number + len(each.data) - len(disk))))  # its length alone
        for start in range(0, len(each.data), _SECTOR):
            if random.random() < 0.5:
                data = each.data[start : start + _SECTOR]
                _apply(disk, _Event("write", 0, each.number + start, data))


def _apply(disk: bytearray, event: _Event) -> None:
    size = event.number + len(event.data)
    if event.kind == "truncate":
        del disk[size:]
    disk.extend(bytes(max(0, size - len(disk))))
    disk[event.number : size] = event.data

"""Stores between processes, on full disks and under kill: what was acknowledged is there."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import pytest

from construct_messages import Message, Quad, iri, literal
from construct_messages.errors import (
    NotFound,
    StoreError,
    StoreFull,
    StoreLocked,
    UsageError,
)
from construct_messages.streams import StreamStore, open_store
from construct_messages.streams.database import VERSION
from tests.support.streams import numbered, sequences
from tests.support.waiting import SECONDS


def test_another_process_reads_and_follows(path: Path, store: StreamStore) -> None:
    store.create("a")
    store.append("a", numbered(1))
    with open_store(path, read_only=True) as other:
        assert sequences(list(other.read("a"))) == [1]
        with ThreadPoolExecutor() as threads:
            following = threads.submit(lambda: list(islice(other.read("a", follow=True), 3)))
            store.append_all("a", [numbered(2), numbered(3)])
            assert sequences(following.result(SECONDS)) == [1, 2, 3]
        assert [state.last for state in other.streams()] == [other.state("a").last] == [3]
        with pytest.raises(UsageError, match="read-only"):
            other.append("a", numbered(4))


def test_a_second_writer_is_refused(path: Path, store: StreamStore) -> None:
    code = f"from construct_messages.streams import open_store; open_store({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "StoreLocked" in done.stderr
    assert "is written by another process" in done.stderr
    with pytest.raises(StoreLocked):
        open_store(path)
    store.close()
    open_store(path).close()


@pytest.mark.parametrize("read_only", [False, True])
def test_what_is_no_store(path: Path, read_only: bool) -> None:
    path.write_bytes(b"<urn:s> <urn:p> <urn:o> .\n" * 100)
    with pytest.raises(StoreError, match="not a database"):
        open_store(path, read_only=read_only)
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE x (y)")
    connection.close()
    with pytest.raises(StoreError, match="not a store of streams"):
        open_store(path, read_only=read_only)
    path.unlink()
    open_store(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    with pytest.raises(
        StoreError, match=f"version {VERSION + 1}, and this program has version {VERSION}"
    ):
        open_store(path, read_only=read_only)


def test_pages_of_an_older_store_keep_their_size(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA page_size = 4096")
    connection.execute("VACUUM")
    connection.close()
    other = path.with_name("new.db")
    for each, size in ((path, 4096), (other, 16_384)):
        for number in (1, 2):
            with open_store(each) as store:
                store.create("a", exist_ok=True)
                store.append("a", numbered(number, 9000))
        with open_store(each, read_only=True) as store:
            assert sequences(list(store.read("a"))) == [1, 2]
        connection = sqlite3.connect(each)
        assert connection.execute("PRAGMA page_size").fetchone() == (size,)
        connection.close()


def test_places(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no store"):
        open_store(tmp_path / "none.db", read_only=True)
    with pytest.raises(StoreError, match="No such file or directory"):
        open_store(tmp_path / "none" / "streams.db")


def test_a_full_disk_loses_nothing(path: Path) -> None:
    with open_store(path) as store:
        store.create("a")
        store.append("a", numbered(1))
        assert store._writer is not None
        # a bound on the file is what SQLite takes for a full disk
        store._writer._connection.execute("PRAGMA max_page_count = 40")
        with pytest.raises(StoreFull) as raised:
            store.append_all("a", [numbered(number, size=3000) for number in range(200)])
        assert raised.value.status == 507
        assert sequences(list(store.read("a"))) == [1]
        assert store.append("a", numbered(2)) == 2, "there is room for this"
        store._writer._connection.execute("PRAGMA max_page_count = 4000")
        assert store.append_all(
            "a", [numbered(number, size=3000) for number in range(200)]
        ) == range(3, 203)


PUBLISHER = """
import asyncio, sys
from construct_messages import Message, Quad, iri, literal
from construct_messages.streams import open_store

async def main(store):
    async def publish(name):
        for number in range(1_000_000):
            text = f"{name} {number}"
            message = Message([Quad(iri("urn:s"), iri("urn:p"), literal(text))])
            sequence = await store.aappend("a", message, key=text)
            print(sequence, text, flush=True)
    await asyncio.gather(*map(publish, range(20)))

store = open_store(sys.argv[1])
store.create("a", exist_ok=True)
asyncio.run(main(store))
"""


@pytest.mark.slow
@pytest.mark.parametrize("lines", [1, 50, 700, 3000])
def test_what_was_acknowledged_survives_a_kill(path: Path, lines: int) -> None:
    running = subprocess.Popen(
        [sys.executable, "-c", PUBLISHER, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    assert running.stdout is not None
    with running.stdout as output:
        acknowledged = list(islice(output, lines))
        running.send_signal(signal.SIGKILL)
        acknowledged += output.read().split("\n")[:-1]  # the last line may be cut
    running.wait()
    with open_store(path) as store:
        elements = list(store.read("a"))
        assert sequences(elements) == list(range(1, len(elements) + 1)), "no gap"
        there = {
            element.sequence: str(next(iter(element.message)).object).strip('"')
            for element in elements
        }
        assert len(set(there.values())) == len(there), "none twice"
        for line in acknowledged:
            sequence, _, text = line.rstrip("\n").partition(" ")
            assert there[int(sequence)] == text
        # publishers that heard nothing publish again
        for sequence, text in list(there.items())[-50:]:
            message = Message([Quad(iri("urn:s"), iri("urn:p"), literal(text))])
            assert store.append("a", message, key=text) == sequence
        assert store.append("a", numbered(0), key="new") == len(elements) + 1
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()

"""What programs keep beside streams: in the transaction of the elements it belongs to, and there after any end."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from construct_messages import Message, Quad, Term, iri
from construct_messages.errors import NotFound, StoreError, StoreFull, TermError, UsageError
from construct_messages.streams import Seen, StreamStore, open_store
from construct_messages.streams.database import VERSION
from tests.support.streams import numbered, sequences

A, B, C = b"a" * 12, b"b" * 12, b"c" * 12


def test_state_is_there_again(path: Path) -> None:
    with open_store(path) as store:
        store.create("out")
        assert store.saved_state("watch:x") == store.seen("watch:x") == {}
        seen = [Seen(A, 1), Seen(B, 3, b"content")]
        messages = [numbered(1), numbered(2)]
        state = {"position": b"7", "etag": b""}
        assert store.commit("watch:x", state, seen=seen, stream="out", messages=messages) == range(
            1, 3
        )
        assert store.commit("watch:y", {"position": b"1"}) == range(0)
    with open_store(path) as store:
        assert store.saved_state("watch:x") == {"etag": b"", "position": b"7"}
        assert store.seen("watch:x") == {A: 1, B: 3}
        assert store.seen_contents("watch:x", [B, A, C]) == [b"content", None, None]
        store.commit(
            "watch:x", {"position": b"8", "etag": None}, seen=[Seen(A, 0), Seen(B, 2), Seen(C, 1)]
        )
        assert store.saved_state("watch:x") == {"position": b"8"}
        assert store.seen("watch:x") == {B: 2, C: 1}
        assert store.seen_contents("watch:x", [B]) == [None]
        assert store.owners() == ["watch:x", "watch:y"]
        store.forget("watch:x")
        store.forget("watch:z")
        assert store.owners() == ["watch:y"]
        assert store.saved_state("watch:x") == store.seen("watch:x") == {}
        assert store.saved_state("watch:y") == {"position": b"1"}
        assert sequences(list(store.read("out"))) == [1, 2]


def test_for_asyncio(store: StreamStore) -> None:
    async def check() -> None:
        await store.acreate("out")
        seen = [Seen(A, 1, b"x")]
        assert await store.acommit(
            "w", {"k": b"v"}, seen=seen, stream="out", messages=[numbered(1)]
        ) == range(1, 2)
        assert await store.asaved_state("w") == {"k": b"v"}
        assert await store.aseen("w") == {A: 1}
        assert await store.aseen_contents("w", [A]) == [b"x"]
        await store.aforget("w")
        assert await store.asaved_state("w") == {}

    asyncio.run(check())


def test_another_process_reads_state(path: Path, store: StreamStore) -> None:
    store.commit("w", {"k": b"v"})
    with open_store(path, read_only=True) as other:
        assert other.saved_state("w") == {"k": b"v"}
        with pytest.raises(UsageError, match="read-only"):
            other.commit("w", {"k": None})


def test_what_is_refused_changes_nothing(store: StreamStore) -> None:
    store.create("out")
    broken = Message([Quad(Term("x"), iri("urn:p"), iri("urn:o"))])
    with pytest.raises(NotFound):
        store.commit("w", {"k": b"v"}, seen=[Seen(A, 1)], stream="none", messages=[numbered(1)])
    with pytest.raises(TermError):
        store.commit(
            "w", {"k": b"v"}, seen=[Seen(A, 1)], stream="out", messages=[numbered(1), broken]
        )
    with pytest.raises(UsageError, match="no stream"):
        store.commit("w", {"k": b"v"}, messages=[numbered(1)])
    assert store._writer is not None
    store._writer._connection.execute("PRAGMA max_page_count = 40")
    with pytest.raises(StoreFull):
        store.commit(
            "w", {"k": b"v" * 1_000_000}, seen=[Seen(A, 1)], stream="out", messages=[numbered(1)]
        )
    assert store.saved_state("w") == store.seen("w") == {}
    assert store.owners() == []
    assert list(store.read("out")) == []


def test_a_digest_takes_at_most_32_bytes(path: Path) -> None:
    """Also when they come by and by, in any order."""
    digests = random.Random(1).randbytes
    with open_store(path) as store:
        store.commit("w", {"k": b"v"})
        before = _size(path)
        for _ in range(20):
            store.commit("w", seen=[Seen(digests(12), 1) for _ in range(500)])
        assert len(store.seen("w")) == 10_000
        assert _size(path) - before <= 32 * 10_000


def _size(path: Path) -> int:
    connection = sqlite3.connect(path)
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    return int(pages * size)


VERSION_1 = """
CREATE TABLE stream (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, description TEXT NOT NULL,
    first INTEGER NOT NULL, next INTEGER NOT NULL, time INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT;
CREATE TABLE element (id INTEGER PRIMARY KEY, time INTEGER NOT NULL, generated TEXT, nquads BLOB NOT NULL) STRICT;
CREATE TABLE idempotency (stream INTEGER NOT NULL, key TEXT NOT NULL, digest BLOB NOT NULL, first INTEGER NOT NULL,
    count INTEGER NOT NULL, time INTEGER NOT NULL, PRIMARY KEY (stream, key)) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_time ON idempotency (time);
INSERT INTO stream VALUES (1, 'a',
    '{"label": "", "retention": {"count": null, "seconds": null, "bytes": null}, "publish": null}', 1, 2, 5, 25);
INSERT INTO element VALUES (1099511627777, 5, NULL, CAST('<urn:s> <urn:p> <urn:o> .' AS BLOB));
PRAGMA application_id = 1380799303;
PRAGMA user_version = 1;
"""


def test_a_store_of_the_version_before_is_brought_to_this_one(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(VERSION_1)
    connection.close()
    with pytest.raises(
        StoreError, match=f"version 1, and this program has version {VERSION}"
    ) as refused:
        open_store(path, read_only=True)
    assert refused.value.hint == "open it to write once, which migrates it to this version"
    with open_store(path) as store:
        assert [element.nquads for element in store.read("a")] == [b"<urn:s> <urn:p> <urn:o> ."]
        assert store.commit("w", {"k": b"v"}, stream="a", messages=[numbered(2)]) == range(2, 3)
    with open_store(path, read_only=True) as store:
        assert store.saved_state("w") == {"k": b"v"}


PROGRAM = """
import sys
from construct_messages import Message, Quad, iri, literal
from construct_messages.streams import Seen, open_store

store = open_store(sys.argv[1])
store.create("out", exist_ok=True)
number = int(store.saved_state("w").get("number", b"0"))
while True:
    count = number % 5
    messages = [Message([Quad(iri("urn:s"), iri("urn:p"), literal(f"{number} {i}"))]) for i in range(count)]
    number += 1
    seen = [Seen(number.to_bytes(12, "big"), 1), Seen((number - 10).to_bytes(12, "big", signed=True), 0)]
    store.commit("w", {"number": b"%d" % number}, seen=seen, stream="out", messages=messages)
    print(number, flush=True)
"""


@pytest.mark.slow
def test_state_and_elements_agree_after_a_kill(path: Path) -> None:
    acknowledged = 0
    for lines in (17, 60):
        running = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(path)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ,
        )
        assert running.stdout is not None
        with running.stdout as output:
            acknowledged = int(list(islice(output, lines))[-1])
            running.send_signal(signal.SIGKILL)
        running.wait()
        with open_store(path) as store:
            number = int(store.saved_state("w")["number"])
            assert number >= acknowledged
            expected = [f'"{done} {i}"' for done in range(number) for i in range(done % 5)]
            assert [
                str(next(iter(element.message)).object) for element in store.read("out")
            ] == expected
            assert [int.from_bytes(digest, "big") for digest in store.seen("w")] == [
                seen for seen in range(number - 9, number + 1) if seen > 0
            ]

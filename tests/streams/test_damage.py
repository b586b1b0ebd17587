"""Stores whose file is damaged: nothing is written to them, and what they lost is never passed over in silence."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from construct_messages import Message
from construct_messages.errors import ConstructMessagesError, NotFound, StoreDamaged, StoreError
from construct_messages.streams import Description, Retention, StreamStore, open_store
from construct_messages.streams.store import check_store
from tests.support.streams import numbered

pytestmark = pytest.mark.slow

PAGE = 1 << 14
SENT = [numbered(number, size) for number, size in enumerate([1, 9000, 100, 20_000] * 10)]


@pytest.fixture
def filled(path: Path) -> Path:
    """A store with two streams, closed."""
    with open_store(path) as store:
        for name in ("a", "b"):
            store.create(name)
            store.append_all(name, SENT, key="k")
    return path


def read(path: Path) -> dict[str, list[Message]]:
    with open_store(path, read_only=True) as store:
        return {
            state.name: [element.message for element in store.read(state.name)]
            for state in store.streams()
        }


def pages(path: Path) -> Iterator[int]:
    yield from range(path.stat().st_size // PAGE)


@pytest.mark.parametrize("filling", [b"\0", b"\xff", b"<urn:"])
def test_each_page_in_turn(filled: Path, filling: bytes) -> None:
    """A damaged page is found by the check, or nothing was on it; opening refuses what SQLite can see."""
    whole, expected = filled.read_bytes(), read(filled)
    refused = checked = 0
    for page in pages(filled):
        damage = (filling * PAGE)[:PAGE]
        filled.write_bytes(whole[: page * PAGE] + damage + whole[(page + 1) * PAGE :])
        try:
            findings = check_store(filled).findings
        except StoreError:  # no longer a store at all
            findings = []
            assert page == 0
        try:
            same = read(filled) == expected
        except (ConstructMessagesError, UnicodeDecodeError):
            same = False
        assert findings or same or page == 0
        checked += bool(findings)
        try:
            open_store(filled).close()
        except StoreError as error:
            refused += isinstance(error, StoreDamaged)
        else:
            assert not findings or all("N-Quads" in str(finding) for finding in findings)
        for left in ("-wal", "-shm"):
            Path(f"{filled}{left}").unlink(missing_ok=True)
    assert checked > 10
    assert refused > 10


def spoil(path: Path) -> None:
    """Damages all pages but the first ones, as a broken disk does under a program that runs."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    size = path.stat().st_size
    with open(path, "r+b") as file:
        file.seek(8 * PAGE)
        file.write(b"\xff" * (size - 8 * PAGE))


def test_damage_that_is_met_while_the_store_is_open(path: Path) -> None:
    with open_store(path) as store:
        store.create("a")
        store.create("b")
        store.append_all("a", SENT)
        store.check()
        spoil(path)
        size = path.stat().st_size
        with pytest.raises(StoreDamaged, match="is damaged"):
            [
                store.get("a", sequence) for sequence in range(1, len(SENT) + 1)
            ]  # the newest are also in memory
        with pytest.raises(StoreDamaged, match="is damaged") as refused:
            store.append("b", numbered(1))
        assert f"construct-messages streams check {path}" in str(refused.value)
        with pytest.raises(StoreDamaged):
            store.describe("a", Description(retention=Retention(count=1)))
        with pytest.raises(StoreDamaged):
            store.check()
        assert path.stat().st_size == size


@pytest.mark.parametrize(
    "statement", ["DELETE FROM element WHERE id % 7 = 3", "DELETE FROM element"]
)
def test_elements_that_are_missing(filled: Path, statement: str) -> None:
    """Each way of reading says so; a page that begins later, or is shorter, is not the end of a stream."""
    with sqlite3.connect(filled) as connection:
        connection.execute(statement)
    connection.close()
    with open_store(filled, read_only=True) as store:
        for ask in (
            lambda: list(store.read("a")),
            lambda: store.latest("a", 20),
            lambda: [store.get("a", sequence) for sequence in range(1, 20)],
            lambda: store.times("a", range(1, 20)),
        ):
            with pytest.raises(StoreDamaged, match="cannot be found"):
                ask()
    assert any("missing" in str(finding) for finding in check_store(filled).findings)


async def test_blocks_of_lines_with_elements_missing(filled: Path) -> None:
    with sqlite3.connect(filled) as connection:
        connection.execute("DELETE FROM element WHERE id % 50 = 3")
    connection.close()
    with (
        open_store(filled, read_only=True) as store,
        pytest.raises(StoreDamaged, match="cannot be found"),
    ):
        [_ async for _ in store.alines("a", 0, len(SENT), "")]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "UPDATE element SET nquads = x'FFFE' WHERE id & 255 = 9",
            "a, element 9: it is not N-Quads",
        ),
        (
            "UPDATE element SET time = 1 WHERE id & 255 = 9",
            "a, element 9: it is earlier than the previous one",
        ),
        ("UPDATE stream SET bytes = 1 WHERE name = 'a'", "a: its elements have"),
        (
            "UPDATE stream SET description = '{' WHERE name = 'a'",
            "the store is damaged: the description of the stream a is '{'",
        ),
        ("DELETE FROM element WHERE id & 255 IN (9, 10)", "a, elements 9 to 10: it is missing"),
    ],
)
def test_what_the_check_finds(filled: Path, statement: str, said: str) -> None:
    assert check_store(filled).findings == []
    with sqlite3.connect(filled) as connection:
        connection.execute(statement)
    connection.close()
    assert str(check_store(filled).findings[0]).startswith(said)


def test_what_cannot_be_checked(path: Path) -> None:
    with pytest.raises(NotFound):
        check_store(path)
    path.write_bytes(b"no store" * 1000)
    with pytest.raises(StoreError, match="not a database"):
        check_store(path)


def test_elements_are_deleted_some_at_a_time(path: Path) -> None:
    """The log of the database stays small, whatever is removed, and what an earlier process left is deleted, too."""
    with open_store(path) as store:
        for name in ("a", "b"):
            store.create(name)
            for start in range(0, 1000, 100):
                store.append_all(
                    name, [numbered(number, 20_000) for number in range(start, start + 100)]
                )
        store.describe("a", Description(retention=Retention(count=5)))
        assert [element.sequence for element in store.read("a")] == list(range(996, 1001)), (
            "at once"
        )
        store.delete("b")
        assert [state.name for state in store.streams()] == ["a"]
        most = Path(f"{path}-wal").stat().st_size
    assert rows(path) < 2005
    with open_store(path) as store:
        while rows(path) > 5:
            store.append("a", numbered(0))
            most = max(most, Path(f"{path}-wal").stat().st_size)
        assert [element.sequence for element in store.read("a")][-1] == store.state("a").last
    assert check_store(path).findings == []
    assert most < 20_000_000


def rows(path: Path) -> int:
    connection = sqlite3.connect(path)
    try:
        return int(connection.execute("SELECT count(*) FROM element").fetchone()[0])
    finally:
        connection.close()


def test_a_reserve_is_taken_and_let_go(path: Path) -> None:
    with StreamStore(path, reserve_bytes=1 << 20) as store:
        store.create("a")
        reserve = Path(f"{path}-reserve")
        assert reserve.stat().st_size == 1 << 20
    with open_store(path):
        assert reserve.exists(), "it stays, for a server that starts on a full disk"


def test_a_store_is_checked_while_it_is_written(path: Path) -> None:
    with open_store(path) as store:
        store.create("a", Description(retention=Retention(count=50)))
        with ThreadPoolExecutor(1) as threads:
            writing = threads.submit(lambda: [store.append("a", message) for message in SENT * 3])
            while not writing.done():
                assert check_store(path).findings == []
            writing.result()

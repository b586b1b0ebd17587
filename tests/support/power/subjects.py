"""What is to survive a power cut: programs that write and say what they take for stored, and who reads it again."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from construct_messages import Message, read_log, write_log
from construct_messages.feeds import relay, subscribe
from construct_messages.feeds.recording import RecordingState, record
from construct_messages.feeds.state import Received
from construct_messages.logs.writing import GrowingLog
from construct_messages.streams import Description, Retention, open_store
from construct_messages.streams.reading import Seen
from construct_messages.streams.store import check_store
from tests.support.http.streams import serving_streams
from tests.support.power.disk import ACKNOWLEDGED
from tests.support.streams import numbered

MESSAGES = [numbered(number, (1, 700, 5000)[number % 3]) for number in range(24)]
_VERSIONS = [MESSAGES[:20], MESSAGES[3:4], [], MESSAGES]
_LOGS = ("log.nq", "log.trig", "log.jsonl.gz", "log.jelly")


def _acknowledge(folder: Path, text: object) -> None:
    with open(folder / ACKNOWLEDGED, "ab", buffering=0) as file:
        file.write(f"{text}\n".encode())


def _count(acknowledged: list[str]) -> int:
    return int(acknowledged[-1]) if acknowledged else 0


def _messages(path: Path) -> list[Message]:
    return list(read_log(path)) if path.exists() else []


# --- finished logs, each of which replaces the one before


def write_logs(folder: Path) -> None:
    for version, messages in enumerate(_VERSIONS):
        for name in _LOGS:
            write_log(messages, folder / name)
            _acknowledge(folder, f"{name} {version}")


def check_logs(folder: Path, acknowledged: list[str]) -> None:
    for name in _LOGS:
        known = [int(each.split()[1]) for each in acknowledged if each.startswith(f"{name} ")]
        if known or (folder / name).exists():
            assert _messages(folder / name) in _VERSIONS[known[-1] if known else 0 :]


# --- a log that grows


def write_growing(folder: Path) -> None:
    log, at = GrowingLog(folder / "log.nq"), 0
    for number in range(0, len(MESSAGES), 2):
        at = log.append(MESSAGES[number : number + 2], at=at)
        _acknowledge(folder, number + 2)


def check_growing(folder: Path, acknowledged: list[str]) -> None:
    log, count = GrowingLog(folder / "log.nq"), _count(acknowledged)
    size = log.size  # removes what is unfinished
    read = _messages(log.path) if size else []
    assert read == MESSAGES[: len(read)]
    assert len(read) in (count, count + 2)
    log.append(MESSAGES[len(read) :], at=size)
    assert _messages(log.path) == MESSAGES


# --- a relay into a log


def _relay(folder: Path, step: Callable[[int], object] = lambda _: None) -> None:
    target, state = folder / "log.nq", folder / "state"
    source = folder.with_name("source.nq")
    if not source.exists():
        write_log(MESSAGES, source)
    asyncio.run(relay(source, target, state=state, batch=3, on_batch=step))


def write_relay(folder: Path) -> None:
    _relay(folder, lambda count: _acknowledge(folder, count))


def check_relay(folder: Path, acknowledged: list[str]) -> None:
    read = _messages(folder / "log.nq") if GrowingLog(folder / "log.nq").size else []
    assert len(read) >= _count(acknowledged)
    assert read == MESSAGES[: len(read)]
    _relay(folder)
    assert _messages(folder / "log.nq") == MESSAGES


# --- a subscriber


def write_subscription(folder: Path) -> None:
    async def main() -> None:
        with TemporaryDirectory() as place:
            async with serving_streams(Path(place, "streams.db")) as server:
                await server.ask("PUT", "/streams/a")
                for number in range(0, len(MESSAGES), 4):
                    await server.publish(MESSAGES[number : number + 4])
                    state = RecordingState(
                        folder / "state", f"{server.url}/streams/a", can_be_cut=True
                    )
                    known = state.known
                    elements = (
                        subscribe(f"{server.url}/streams/a", after=0, follow=False)
                        if known is None
                        else subscribe(
                            f"{server.url}/streams/a", checkpoint=known.checkpoint, follow=False
                        )
                    )
                    at = 0 if known is None else known.size or 0
                    with GrowingLog(folder / "log.nq").opened(at) as log:
                        await record(elements, log, state)
                    _acknowledge(folder, number + 4)

    asyncio.run(main())


def check_subscription(folder: Path, acknowledged: list[str]) -> None:
    state, count, size = folder / "state", 0, 0
    if state.exists():
        received = msgspec.json.decode(state.read_bytes(), type=Received)
        count, size = received.checkpoint.sequence, received.size or 0
    assert count >= _count(acknowledged)
    with GrowingLog(folder / "log.nq").opened(size) as log:
        for message in MESSAGES[count:]:
            log.write(message)
    assert _messages(folder / "log.nq") == MESSAGES


# --- a store of streams


def write_store(folder: Path) -> None:
    with open_store(folder / "streams.db") as store:
        store.create("a")
        store.create("b", Description(retention=Retention(count=3)))
        for number, message in enumerate(MESSAGES, 1):
            store.append("b", message)
            store.append("a", message, key=str(number))
            _acknowledge(folder, number)


def check_streams(folder: Path, acknowledged: list[str]) -> None:
    count = _count(acknowledged)
    path = folder / "streams.db"
    with open_store(path) as store:
        names = {state.name for state in store.streams()}
        for name in "ab":
            if name not in names:
                assert not count
                continue
            last = store.state(name).last
            read = [element.message for element in store.read(name)]
            assert last >= count
            assert read == MESSAGES[:last][-3 if name == "b" else 0 :]
    assert check_store(path).findings == []


# --- the state of a query, with what it published


def write_query(folder: Path) -> None:
    with open_store(folder / "streams.db") as store:
        store.create("a")
        for number, message in enumerate(MESSAGES, 1):
            store.commit(
                "query",
                {"count": b"%d" % number},
                seen=[Seen(b"%d" % number, 1), Seen(b"%d" % (number - 1), 0)],
                stream="a",
                messages=[message],
            )
            _acknowledge(folder, number)


def check_query(folder: Path, acknowledged: list[str]) -> None:
    count = _count(acknowledged)
    with open_store(folder / "streams.db") as store:
        if not store.streams():
            assert not count
            return
        read = [element.message for element in store.read("a")]
        assert len(read) >= count
        assert read == MESSAGES[: len(read)]
        assert int(store.saved_state("query").get("count", b"0")) == len(read)
        assert store.seen("query") == ({b"%d" % len(read): 1} if read else {})


SUBJECTS: dict[str, tuple[Callable[[Path], None], Callable[[Path, list[str]], None]]] = {
    "logs": (write_logs, check_logs),
    "growing logs": (write_growing, check_growing),
    "relay": (write_relay, check_relay),
    "subscription": (write_subscription, check_subscription),
    "store": (write_store, check_streams),
    "query": (write_query, check_query),
}
"""For each subject the program, and the check of a folder after a power cut."""

if __name__ == "__main__":
    SUBJECTS[sys.argv[1]][0](Path(sys.argv[2]))

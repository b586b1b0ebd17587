"""`sparql/children.py`: orders and reports arrive whole, and whatever a child does, its parent learns of it and goes
on."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import (
    ConstructMessagesError,
    IncompleteResult,
    NotAcceptable,
    Position,
    QueryError,
    SourceError,
    UsageError,
)
from construct_messages.sparql.children import Child, Failure, PackedValues, packed
from tests.support.engines.child import Order, Report
from tests.support.places import ROOT
from tests.support.waiting import SECONDS, eventually, wait_until

pytestmark = [pytest.mark.process, pytest.mark.slow]


def start(**options: object) -> Child[Report]:
    return Child(
        "tests.support.engines.child", reports=Report, task="does as it is told", **options
    )  # type: ignore[arg-type]


@pytest.fixture
async def child() -> AsyncIterator[Child[Report]]:
    child = start(hint="give it more memory")
    yield child
    await child.akill()


async def ask(child: Child[Report], do: str, text: str = "", seconds: float = SECONDS) -> str:
    deadline = time.monotonic() + seconds
    await child.send(Order(do, text), deadline)
    return (await child.receive(deadline)).text


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


# --- values ---


@given(st.lists(st.text()), st.data())
def test_values_come_whole_however_their_bytes_come(texts: list[str], data: st.DataObject) -> None:
    stream = b"".join(map(packed, texts))
    values, found = PackedValues[str](str), []
    while stream:
        count = data.draw(st.integers(1, len(stream)))
        values.feed(stream[:count])
        stream = stream[count:]
        while (value := values.take()) is not None:
            found.append(value)
    assert found == texts


@pytest.mark.parametrize(
    "data",
    [b"\xff" * 9, packed(7), b"\0\0\0\1\xc1", b"\0\0\0\0"],
    ids=["length", "kind", "code", ""],
)
def test_what_is_no_value(data: bytes) -> None:
    values = PackedValues[str](str)
    values.feed(data)
    with pytest.raises(ValueError, match=r"."):
        values.take()


@pytest.mark.parametrize(
    "error",
    [
        QueryError("no", position=Position(3, 4), hint="do"),
        UsageError("no"),
        SourceError("no", status=503),
        NotAcceptable("no", offered=("text/turtle",)),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_arrive_as_they_were(error: ConstructMessagesError) -> None:
    sent = msgspec.msgpack.decode(msgspec.msgpack.encode(Failure.of(error)), type=Failure)
    assert type(sent.error()) is type(error)
    assert vars(sent.error()) == vars(error)


# --- orders and reports ---


async def test_orders_are_answered_in_turn(child: Child[Report]) -> None:
    for text in ("", "a\nb", "é" * 3_000_000):  # the last is longer than what a socket holds
        assert await ask(child, "echo", text) == text


async def test_descriptors_come_with_their_order(child: Child[Report]) -> None:
    for count in (2, 0, 1):
        pipes = [os.pipe() for _ in range(count)]
        await child.send(Order("write", f"to {count}"), None, [write for _, write in pipes])
        for read, write in pipes:
            os.close(write)
            assert os.read(read, 100) == f"to {count}".encode()
            os.close(read)
        assert (await child.receive()).text == str(count)


async def test_what_is_printed_gets_between_no_reports(child: Child[Report]) -> None:
    assert await ask(child, "print", "\0\0\0\1x" * 1000) == "printed"
    assert await ask(child, "echo", "a") == "a"


def test_reports_can_be_waited_for_without_asyncio() -> None:
    child = start()
    asyncio.run(child.send(Order("half", "a")))
    assert list(child.reports()) == []
    assert child.kill_and_wait() == 0


async def test_cancelling_a_wait_loses_nothing(child: Child[Report]) -> None:
    await child.send(Order("echo", "a" * 1_000_000))
    for _ in range(200):
        try:
            async with asyncio.timeout(0.0001):
                report = await child.receive()
                break
        except TimeoutError:
            pass
    else:
        report = await child.receive()
    assert len(report.text) == 1_000_000


# --- how a child fails ---


@pytest.mark.parametrize(
    ("do", "text", "words"),
    [
        ("exit", "3", "the process that does as it is told ended with code 3"),
        ("exit", "0", "ended with code 0"),
        ("crash", "", "was ended by SIGSEGV"),
        ("half", "a", "ended with code 0"),
        ("allocate", "", "ended with code 1"),
        ("no such order", "", "ended with code 1"),
        ("garbage", "ffffffff00", "sent an invalid report: a value of 4294967295 bytes"),
        ("garbage", "00000001c1", "sent an invalid report"),
        ("garbage", "0000000107", "sent an invalid report: Expected `object`"),
    ],
)
async def test_a_child_that_fails_is_an_error(
    child: Child[Report], do: str, text: str, words: str
) -> None:
    await child.send(Order(do, text))
    with pytest.raises(IncompleteResult, match=words):
        await child.receive()
    with pytest.raises(IncompleteResult):  # again, and not for ever
        await ask(child, "echo")
    await eventually(lambda: not child.is_alive())


async def test_an_abort_is_reported_with_the_last_line_of_the_engine(
    capfd: pytest.CaptureFixture[str],
) -> None:
    child = start(hint="give it more memory", last_line=True)
    try:
        await child.send(Order("sort"))
        with pytest.raises(IncompleteResult, match="was ended by SIGABRT; its last line") as caught:
            await child.receive()
        assert "does not correctly implement a total order" in caught.value.message
        assert caught.value.hint is None
        assert "total order" in capfd.readouterr().err
    finally:
        await child.akill()


@pytest.mark.parametrize("do", ["echo", "hang", "spin"])
async def test_a_child_that_is_killed(child: Child[Report], do: str) -> None:
    await child.send(Order("echo", "a"))
    assert (await child.receive()).text == "a"
    await child.send(Order(do))
    if do == "echo":
        await child.receive()
    os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(IncompleteResult, match="was ended by SIGKILL, by a user") as caught:
        await child.receive()
    assert caught.value.hint == "give it more memory"


@pytest.mark.parametrize("do", ["hang", "spin"])
async def test_a_child_that_hangs_is_waited_for_no_longer_than_wanted(
    child: Child[Report], do: str
) -> None:
    with pytest.raises(TimeoutError):
        await ask(child, do, seconds=0.2)
    assert child.is_alive()
    await child.akill()
    assert not is_there(child.pid)


async def test_an_order_that_is_not_taken_in_time(child: Child[Report]) -> None:
    await child.send(Order("hang"))
    with pytest.raises(TimeoutError):
        await child.send(Order("echo", "a" * 10_000_000), time.monotonic() + 0.2)


async def test_the_end_of_an_idle_child_is_noticed(child: Child[Report]) -> None:
    assert await ask(child, "echo", "a") == "a"
    ended = asyncio.Event()
    child.watch(ended.set)
    child.signal(signal.SIGTERM)  # which it ignores
    child.signal(signal.SIGKILL)
    await asyncio.wait_for(ended.wait(), SECONDS)
    child.watch(None)
    assert not child.is_alive()
    assert await child.exited() == -signal.SIGKILL
    child.signal(signal.SIGKILL)  # nobody
    child.kill()


def test_a_child_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(SourceError, match="no process that does as it is told could be started"):
        start()
    assert len(os.listdir("/proc/self/fd")) == before


def test_children_end_with_their_parent() -> None:
    script = (
        "import asyncio\n"
        "from tests.sparql.test_children import Order, start\n"
        "children = [start() for _ in range(2)]\n"
        "for child, do in zip(children, ('echo', 'hang')):\n"
        "    asyncio.run(child.send(Order(do)))\n"
        "print(*(child.pid for child in children), flush=True)\n"
        "input()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    )
    with parent:
        assert parent.stdout is not None
        children = parent.stdout.readline().split()
        assert len(children) == 2
        parent.kill()
    wait_until(lambda: not any(is_there(int(child)) for child in children))


def test_children_of_many_threads_share_nothing() -> None:
    """Each ends when its own parent's end closes: no child has inherited the socket of another."""
    gc.collect()  # what other tests have left open
    descriptors = len(os.listdir("/proc/self/fd"))
    children = list[Child[Report]]()

    def begin() -> None:
        for _ in range(4):
            children.append(start())

    threads = [threading.Thread(target=begin) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def use() -> None:
        assert await asyncio.gather(
            *(ask(child, "echo", str(child.pid)) for child in children)
        ) == [str(child.pid) for child in children]
        for child in children:
            child._socket.close()
        await eventually(lambda: all(child._process.poll() == 0 for child in children))

    try:
        asyncio.run(use())
    finally:
        for child in children:
            child.kill_and_wait()
    assert len(os.listdir("/proc/self/fd")) <= descriptors

"""Messages of gRPC in pieces of any size, plain and compressed; what is malformed or too large."""

from __future__ import annotations

import asyncio
import gzip
import struct
from collections.abc import Sequence

import pytest
from grpclib.const import Status
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import ConstructMessagesError, LimitExceeded, SourceError
from construct_messages.sparql.client.grpc import (
    GZIP,
    IDENTITY,
    MessageReader,
    ReceiveBuffer,
    framed,
    http_status_of,
    status_of,
)
from tests.support.logs.kinds import cut
from tests.support.waiting import eventually


def reader(data: bytes, coding: str, most: int, cuts: Sequence[int]) -> MessageReader:
    """A reader of data that come in pieces."""
    pieces = cut(data, cuts)

    async def take() -> bytes:
        return pieces.pop(0) if pieces else b""

    return MessageReader(take, coding, most, "the client")


async def read(
    data: bytes, coding: str = GZIP, most: int = 1 << 20, cuts: Sequence[int] = ()
) -> list[bytes]:
    messages, found = reader(data, coding, most, cuts), []
    while (message := await messages.read()) is not None:
        found.append(message)
    return found


@given(
    st.lists(st.binary(max_size=400)),
    st.sampled_from((IDENTITY, GZIP)),
    st.lists(st.integers(0, 3000), max_size=9),
)
async def test_messages(messages: list[bytes], coding: str, cuts: list[int]) -> None:
    data = b"".join(framed(each, coding) for each in messages)
    places = sorted({place for place in cuts if 0 < place < len(data)})
    assert await read(data, coding, cuts=places) == messages
    assert await read(data, coding, cuts=range(1, len(data))) == messages


@pytest.mark.parametrize("end", range(1, 8))
async def test_an_end_within_a_message(end: int) -> None:
    """What is whole is returned first."""
    messages = reader((framed(b"a") + framed(b"bc"))[:-end], IDENTITY, 10, ())
    assert await messages.read() == b"a"
    if end == 7:
        assert await messages.read() is None
        return
    with pytest.raises(SourceError, match="ends within a message") as broken:
        await messages.read()
    assert broken.value.transient


async def test_messages_before_an_error() -> None:
    messages = reader(framed(b"a") + framed(b"b") + framed(bytes(99)), IDENTITY, 10, ())
    assert [await messages.read(), await messages.read()] == [b"a", b"b"]
    for _ in range(2):
        with pytest.raises(LimitExceeded, match="99 bytes"):
            await messages.read()


async def test_an_inbox() -> None:
    """What was read is acknowledged, and nothing else; who waits is woken."""
    acknowledged: list[int] = []
    inbox = ReceiveBuffer(acknowledged.append)
    waiting = asyncio.create_task(inbox.take())
    await asyncio.sleep(0)
    inbox.add(b"", 9)  # padding
    await asyncio.sleep(0)
    inbox.add(b"a", 1)
    inbox.add(b"b", 1)
    assert await waiting == b"ab"
    assert acknowledged == [11]
    inbox.add(b"c", 7)
    inbox.eof()
    assert inbox.unacked_size() == 7
    assert (await inbox.take(), await inbox.take()) == (b"c", b"")
    assert acknowledged == [11]


def packed(data: bytes) -> bytes:
    return struct.pack(">BI", 1, len(data)) + data


@pytest.mark.parametrize(
    ("data", "coding", "kind", "said"),
    [
        (framed(bytes(1001)), IDENTITY, LimitExceeded, "a message of 1001 bytes"),
        (struct.pack(">BI", 0, (1 << 32) - 1), IDENTITY, LimitExceeded, "4294967295 bytes"),
        (packed(gzip.compress(bytes(1 << 19))), GZIP, LimitExceeded, "compressed message"),
        (packed(gzip.compress(bytes(10))[:-1]), GZIP, SourceError, "truncated gzip"),
        (packed(b"x" * 30), GZIP, SourceError, "is not gzip"),
        (packed(b"x" * 30), "snappy", SourceError, "compressed with 'snappy'"),
        (packed(b"x" * 30), IDENTITY, SourceError, "compressed with 'identity'"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, str) else "",
)
async def test_refused(
    data: bytes, coding: str, kind: type[ConstructMessagesError], said: str
) -> None:
    with pytest.raises(kind, match=said):
        await read(data, coding, 1000)


def test_statuses() -> None:
    """An error keeps its meaning from our server to our client."""
    for status in (400, 401, 403, 404, 409, 410, 413, 501, 503, 504):
        assert http_status_of(status_of(status)) == status
    assert status_of(422) is Status.INVALID_ARGUMENT
    assert status_of(500) is Status.INTERNAL


async def test_what_came_before_a_stream_broke_off() -> None:
    """It is read first, also after who waited for the rest of a message was cancelled; then nothing is acknowledged."""
    acknowledged: list[int] = []
    buffer = ReceiveBuffer(acknowledged.append)
    messages = MessageReader(buffer.take, IDENTITY, 100, "the server")
    whole = framed(b"abc")
    buffer.add(whole[:6], 6)
    waiting = asyncio.ensure_future(messages.read())
    await eventually(lambda: acknowledged == [6])
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    buffer.add(whole[6:] + framed(b"d") + whole[:3], 15)
    buffer.fail(ConnectionResetError("cut"))
    assert [await messages.read(), await messages.read()] == [b"abc", b"d"]
    with pytest.raises(ConnectionResetError, match="cut"):
        await messages.read()
    assert acknowledged == [6], "there is no connection to acknowledge the rest on"
